"""The file in which a follower saves its checkpoint between two runs: complete, or absent."""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import IO

from gapless.traces.problems import UsageError, shown
from gapless.traces.sources.following import SavedState
from gapless.traces.sources.rocketmq.columns.disk_blocks import AT_ONCE, TableHalves
from gapless.traces.sources.rocketmq.joining.checkpoint import REMEMBERED

FORM = 9
"""Raised with each change of the saved state, because `joining/checkpoint.py` pickles our classes."""
HEAD = b"gapless watch "
LONGEST_HEAD = 200  # bytes
DIGEST = 16  # bytes at the end, of all that lies before them


def _head(version: str) -> bytes:
    return HEAD + f"{FORM} {version}".encode()


def write_state(file: Path, kept: SavedState, version: str) -> None:
    """Keep it: whole, and safely on disk, or as it was before. `version`: of gapless. Raises OSError."""
    file = file.resolve()
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "w+b") as out:
            _write(out, kept, version)
        Path(name).replace(file)
    except BaseException:  # on a full disk, each try would leave one more
        Path(name).unlink(missing_ok=True)
        raise


def _write(out: IO[bytes], kept: SavedState, version: str) -> None:
    """All that `_read` reads, and the head before it."""
    out.write(_head(version) + b"\n")
    known, halves = kept.checkpoint.known, kept.checkpoint.halves
    for blocks in (*known.remembered, halves.records if halves else TableHalves()):
        blocks.write(out)
    without = replace(halves, records=TableHalves()) if halves else None
    checkpoint = replace(kept.checkpoint, known=replace(known, remembered=()), halves=without)
    pickle.dump(replace(kept, checkpoint=checkpoint), out, pickle.HIGHEST_PROTOCOL)
    out.write(_digest(out, out.tell()))
    out.flush()
    os.fsync(out.fileno())


def read_state(file: Path, store: str, profile: str, ignored: frozenset[str], version: str) -> SavedState | None:
    """Reads the saved state of a store; None without a file. Raises UsageError if it is damaged or another's."""
    if not file.exists():
        return None
    remedy = "name another file, or delete this one: the store is then judged from its beginning"
    if not file.is_file():
        raise UsageError(f"{file}: is no regular file; {remedy}")
    try:
        with file.open("rb") as content:
            refusal = _refusal(content.readline(LONGEST_HEAD).removesuffix(b"\n"), version)
            found = None if refusal else _read(content)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror})") from None
    except Exception as error:  # noqa: BLE001 - damaged bytes make pickle raise whatever they like
        raise UsageError(f"{file}: is damaged ({type(error).__name__}); {remedy}") from None
    if found is None:
        raise UsageError(f"{file}: {refusal}; {remedy}")
    if found.store != store:
        raise UsageError(f"{file}: is of {shown(found.store)}, not of {shown(store)}; {remedy}")
    if (found.profile, found.ignored) != (profile, ignored):
        raise UsageError(f"{file}: was judged by other rules (profile {found.profile}); {remedy}")
    return found


def _refusal(head: bytes, version: str) -> str:
    """The reason to refuse a file with this first line, or an empty text."""
    if not head.startswith(HEAD):
        return "is no state of gapless watch"
    if head == _head(version):
        return ""
    kept, ours = (shown(one.removeprefix(HEAD).decode(errors="replace")) for one in (head, _head(version)))
    return f"kept by another version of gapless ({kept}, this is {ours})"


def _digest(content: IO[bytes], size: int) -> bytes:
    """A digest of the first bytes of a file, which is left where it was."""
    at, found = content.tell(), hashlib.blake2b(digest_size=DIGEST)
    content.seek(0)
    while size > 0 and (some := content.read(min(size, AT_ONCE))):
        found.update(some)
        size -= len(some)
    content.seek(at)
    return found.digest()


def _read(content: IO[bytes]) -> SavedState:
    """Reads the content that `_write` wrote behind the head. Raises ValueError for any other."""
    at, size = content.tell(), os.fstat(content.fileno()).st_size - DIGEST
    content.seek(max(size, 0))
    if content.read() != _digest(content, size):
        raise ValueError("other bytes than were written")
    content.seek(at)
    remembered = tuple(kind.read(content, size) for kind in REMEMBERED.values())
    records = TableHalves.read(content, size)
    found = pickle.load(content)  # noqa: S301 - what we wrote, in a file of the user's
    if not isinstance(found, SavedState):
        raise TypeError(type(found))
    checkpoint = found.checkpoint
    halves = replace(checkpoint.halves, records=records) if checkpoint.halves else None
    return replace(
        found, checkpoint=replace(checkpoint, known=replace(checkpoint.known, remembered=remembered), halves=halves)
    )
