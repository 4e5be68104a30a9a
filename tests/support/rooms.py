"""Folders that last as long as the process: what is unpacked or written once, for every test that reads it."""

import atexit
import tempfile
from pathlib import Path


def room(name: str) -> Path:
    """Make a folder that goes when the process ends."""
    folder = tempfile.TemporaryDirectory(prefix=f"gapless-{name}-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    return Path(folder.name)
