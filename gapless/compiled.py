"""Where native code is kept: beside the package, in the user's cache folder, or else for this run alone.

Where it finds no folder that it may write to, it gives up with an error: in a container, say, whose files belong to
root, run by a user without a home.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"


def find_room() -> None:
    """Name a temporary folder to numba, and to the processes that are started, where there is no other. Cheap."""
    here = Path(__file__).parent
    if VARIABLE in os.environ or os.access(here, os.W_OK) or _can_be_made(_of_the_user()):
        return
    import atexit
    import shutil
    import tempfile

    try:
        os.environ[VARIABLE] = room = tempfile.mkdtemp(prefix="gapless-compiled-")
    except OSError:
        return
    owner = os.getpid()
    atexit.register(lambda: shutil.rmtree(room, ignore_errors=True) if os.getpid() == owner else None)


def _of_the_user() -> Path:
    """The folder that numba takes beside the package's own."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user whom nobody knows
        return Path("/nowhere")


def _can_be_made(folder: Path) -> bool:
    """Whether a folder is there to be written to, or can be."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    return there.is_dir() and os.access(there, os.W_OK)
