"""An object store on loopback, as rclone serves a folder: the folders in it are its buckets."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RCLONE = Path(sys.executable).with_name("rclone")
STARTS = 30  # seconds
KEY, SECRET = "AKIDTHATNOBODYSEES", "secret/that+nobody=sees"


@contextmanager
def object_store(folder: Path) -> Iterator[dict[str, str]]:
    """The environment in which its keys are known, until the end."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(RCLONE), "serve", "s3", str(folder), "--addr", f"127.0.0.1:{port}", "--auth-key", f"{KEY},{SECRET}"]
    server = subprocess.Popen(
        [*command, "--config", os.devnull, "--vfs-cache-mode", "off"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait(server, port)
        yield environment(f"http://127.0.0.1:{port}", KEY, SECRET)
    finally:
        server.kill()
        server.wait()


def environment(endpoint: str, key: str = "", secret: str = "") -> dict[str, str]:
    """The environment of a user of S3 at an endpoint; without a key, of one whom no file and no machine lends one."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def _wait(server: subprocess.Popen[bytes], port: int) -> None:
    """Until somebody answers at the port. Raises TimeoutError."""
    until = time.monotonic() + STARTS
    while time.monotonic() < until and server.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.02)
    raise TimeoutError("rclone does not serve")
