"""A real store, whole and with one entry damaged: both verdicts, the story, and a page to look at.

`orders.tar.xz` is what a RocketMQ 5.5.0 broker left after 3,000 sends and 800 transactions (see README.md).
"""

import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).parent
WORK = HERE.parent / "build" / "demo"
ENTRY = 20  # bytes
DAMAGED = 120  # the entry that is made to point 13 bytes too far


def main() -> None:
    """Run the demonstration. Leaves build/demo behind."""
    WORK.mkdir(parents=True, exist_ok=True)
    unpack("whole")
    unpack("damaged")
    with (WORK / "damaged/orders/store/consumequeue/orders/1/00000000000000000000").open("r+b") as queue:
        queue.seek(DAMAGED * ENTRY)
        position = int.from_bytes(queue.read(8), "big")
        queue.seek(DAMAGED * ENTRY)
        queue.write((position + 13).to_bytes(8, "big"))
    say("A store as a RocketMQ 5.5.0 broker left it:")
    whole = gapless("check", WORK / "whole/orders")
    say("The same store; one entry of one queue points 13 bytes too far:")
    damaged = gapless("check", WORK / "damaged/orders", "--report", WORK / "report.html")
    if (whole, damaged) != (0, 1):
        sys.exit(f"expected exit codes 0 and 1, but saw {whole} and {damaged}")


def unpack(name: str) -> None:
    """A fresh copy of the recorded store below `name`."""
    with tarfile.open(HERE / "orders.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        archive.extractall(WORK / name)  # noqa: S202 - our own archive


def say(text: str) -> None:
    """A heading between the commands."""
    print(f"\n{text}\n", flush=True)


def gapless(*arguments: str | Path) -> int:
    """Run the command line as a user would, and show the command."""
    displayed = [str(a.relative_to(HERE.parent)) if isinstance(a, Path) else a for a in arguments]
    print(f"$ gapless {shlex.join(displayed)}\n", flush=True)
    return subprocess.run([sys.executable, "-m", "gapless", *displayed], cwd=HERE.parent, check=False).returncode


if __name__ == "__main__":
    main()
