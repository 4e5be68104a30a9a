"""A network in which there is nothing but loopback: a broker listens for replicas on every address."""

from __future__ import annotations

import os
import shutil
import sys

INSIDE = "GAPLESS_INTEROP_INSIDE"  # set where this runs in a network of its own


def enter_a_network_of_its_own(module: str) -> str:  # noqa: RET503 - `execv` does not return
    """Run `module` again in such a network, with the same arguments; or say why not.

    That takes root and two commands of Linux; where they are missing, the machine's own loopback has to do.
    """
    if os.environ.get(INSIDE):
        return ""
    unshare = shutil.which("unshare")
    if os.geteuid() or not unshare or not shutil.which("ip"):
        return "note: not root, so the brokers' replica port is open to the network while this runs"
    os.environ[INSIDE] = "yes"
    again = [sys.executable, "-m", module, *sys.argv[1:]]
    os.execv(unshare, [unshare, "--net", "sh", "-c", 'ip link set lo up && exec "$0" "$@"', *again])  # noqa: S606 - ours
