"""The cache of object code on disk: whole files or none, of this user's alone, compiled by one process for all."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

NAME = "gapless"
FOLDER = "GAPLESS_CACHE"  # names another folder than the user's
PATIENCE = 120.0  # seconds that a process waits for another one to compile: many times what the longest takes
ASKED_EVERY = 0.02  # seconds
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH

Head = dict[str, Any]


@cache
def cache_folder() -> Path:
    """The folder in which object code is kept.

    It is in the user's cache folder, where that belongs to this user and no other user can write to it: what lies there
    is executed. Otherwise it is a folder of this process alone, which goes with it.
    """
    named = os.environ.get(FOLDER)
    folder = Path(named) if named else user_folder() / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if is_ours(folder) and (named or is_ours(folder.parent)):
            with tempfile.TemporaryFile(dir=folder):
                return folder
    except OSError:
        pass
    return _private_folder()


def shown_folder() -> str:
    """The folder of object code for messages: in the user's cache folder, or where the environment names one."""
    kept, home = cache_folder(), os.path.expanduser("~")  # noqa: PTH111 - Path.home() may raise
    folder = str(user_folder() if kept.parent == user_folder() else kept)
    return f"~{folder.removeprefix(home)}" if home != "/" and folder.startswith(f"{home}/") else folder


def user_folder() -> Path:
    """The package's folder in the user's cache folder, as the XDG Base Directory Specification has it."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / NAME
    except RuntimeError:  # a user without a home
        return Path(os.devnull) / NAME  # where no folder can be, not even root's


def _private_folder() -> Path:
    import atexit  # noqa: PLC0415 - rare
    import shutil  # noqa: PLC0415 - rare

    folder, owner = Path(tempfile.mkdtemp(prefix="gapless-compiled-")), os.getpid()
    os.environ[FOLDER] = str(folder)  # for the processes that this one starts
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    return folder


def is_ours(path: Path) -> bool:
    """True if a file or folder belongs to this user, and no other user may write to it."""
    return _is_ours(path.lstat())


def _is_ours(known: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):
        return True
    return known.st_uid == os.getuid() and not known.st_mode & WRITABLE_BY_OTHERS and not stat.S_ISLNK(known.st_mode)


@cache
def files() -> frozenset[str]:
    """The names of the files that are kept."""
    try:
        return frozenset(file.name for file in cache_folder().iterdir())
    except OSError:
        return frozenset()


def read(path: Path) -> tuple[Head, bytes] | None:
    """The content that was kept, if it is whole and this user's own: it is going to be run."""
    try:
        with open(path, "rb", opener=_own) as file:
            if not _is_ours(os.fstat(file.fileno())):
                return None
            found = content_of(file.read())
    except OSError:
        return None
    if found is not None:
        _USED[path.name] = None
    return found


def content_of(file: bytes) -> tuple[Head, bytes] | None:
    """The content of a file, if it is whole."""
    line, _, content = file.partition(b"\n")
    try:
        head: Head = json.loads(line)
        is_whole = head["digest"] == hashlib.sha256(content).hexdigest()
    except (ValueError, KeyError, TypeError):
        return None
    return (head, content) if is_whole else None


_USED: dict[str, None] = {}


def used() -> list[str]:
    """The names of the files that this process has read, or made."""
    return list(_USED)


def _own(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def keep(path: Path, head: Head, content: bytes) -> None:
    """Keep content behind a line of JSON, whole or not at all. Where neither can be, it is made again."""
    line = json.dumps({**head, "digest": hashlib.sha256(content).hexdigest()})
    with suppress(OSError):
        write_whole(path, line.encode() + b"\n" + content)
        _USED[path.name] = None
    files.cache_clear()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all. Raises OSError."""
    file = tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False)  # noqa: SIM115 - closed below
    try:
        with file:
            file.write(content)
        Path(file.name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(file.name).unlink()
        raise


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """A block in which no other process makes the file at `path`, as far as that can be had.

    A lock goes with the process that holds it. A process that has waited for long, or finds that nothing can be locked
    there, compiles as if alone.
    """
    lock = path.with_suffix(".lock")
    try:
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError:  # a folder that cannot be written to
        yield
        return
    try:
        _lock(descriptor)
        yield
    finally:
        with suppress(OSError):  # a process that waits with this file still open finds what was kept
            lock.unlink()
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Wait until the lock is ours, and no longer than our patience lasts."""
    try:
        import fcntl  # noqa: PLC0415 - where files are locked otherwise, each process compiles
    except ImportError:
        return
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(ASKED_EVERY)
        except OSError:  # a file system without locks
            return
        else:
            return
