"""An object store on loopback, as rclone serves a folder: the folders in it are its buckets."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers import free_port, is_answering

RCLONE = Path(sys.executable).with_name("rclone")
STARTS = 30  # seconds
KEY, SECRET = "AKIDTHATISSECRET", "secret/that+no=one+sees"


@contextmanager
def object_store(folder: Path) -> Iterator[dict[str, str]]:
    """The environment in which its keys are known, until the end."""
    port = free_port()
    command = [str(RCLONE), "serve", "s3", str(folder), "--addr", f"127.0.0.1:{port}", "--auth-key", f"{KEY},{SECRET}"]
    server = subprocess.Popen(
        [*command, "--config", os.devnull, "--vfs-cache-mode", "off", "--dir-cache-time", "1ms", "--no-cleanup"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        if not is_answering(server, port, STARTS, every=0.02):
            raise TimeoutError("rclone does not serve")
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
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
