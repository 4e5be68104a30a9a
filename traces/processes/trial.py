"""A trial run of a native library on a user's file, in a process of its own that can be ended.

A damaged file may make a library loop or crash. A loop in native code takes no signal, so this process would be lost
with it. The trial shows it first.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

CPU = 5  # seconds of processor time that a trial may take, and more for large files
SLOWER = 12  # times as long in seconds of the clock: other processes run, and a disk is slow
PER_SECOND = 1 << 25  # bytes for which a trial gets a second more
MEMORY = 1 << 30  # bytes of addresses that a trial may ask for: a library takes a part of that for itself
ONE_ARENA = {"MALLOC_ARENA_MAX": "1"}  # else glibc asks for 64 MiB for each thread that meets another in `malloc`

_LIMITED = """
import json, resource, sys
seconds, memory, sys.path[:] = json.loads(sys.argv.pop(1))
for limit, value in (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0):
    most = resource.getrlimit(limit)[1]
    resource.setrlimit(limit, (value if most < 0 else min(value, most),) * 2)
"""


def trial(program: str, *arguments: str, size: int = 0, memory: int = 0) -> str:
    """Run a Python program on some arguments, and return the reason why it must not run in this process.

    An empty text if it ends, well or with an exception: then this process can run it. `size`: of its files, in bytes ·
    `memory`: bytes that it may need besides `MEMORY`.
    """
    if not sys.executable:
        return ""
    seconds, room = CPU + size // PER_SECOND, MEMORY + memory
    command = [sys.executable, "-S", "-c", _LIMITED + program, json.dumps([seconds, room, sys.path]), *arguments]
    try:
        ended = subprocess.run(  # noqa: S603 - our own program
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SLOWER * seconds,
            env={**os.environ, **ONE_ARENA},
        ).returncode
    except subprocess.TimeoutExpired:
        return f"the library that reads it does not end within {SLOWER * seconds} s"
    except OSError:  # no room for another process: then this one tries
        return ""
    if ended in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"the library that reads it does not end within {seconds} s of processor time"
    return f"the library that reads it crashes ({signal.Signals(-ended).name})" if ended < 0 else ""
