"""Servers on loopback that tests start: a port for one, and waiting until it answers."""

from __future__ import annotations

import socket
import subprocess
import time


def free_port() -> int:
    """Return a port without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def is_answering(server: subprocess.Popen[bytes], port: int, patience: float, every: float) -> bool:
    """Wait until the port answers; False if the server ends first, or so many seconds are over."""
    until = time.monotonic() + patience
    while time.monotonic() < until and server.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return True
        except OSError:
            time.sleep(every)
    return False
