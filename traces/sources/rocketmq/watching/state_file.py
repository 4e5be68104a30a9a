"""The file in which a follower saves its checkpoint between two runs: complete, or absent."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from gapless.traces.problems import UsageError, shown
from gapless.traces.sources.following import SavedState
from gapless.traces.sources.rocketmq.columns.disk_blocks import AT_ONCE, Blocks

FORM = 10
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


class _StatePickler(pickle.Pickler):
    """Pickles a state but for its blocks, which may be large: they are collected in `blocks`."""

    def __init__(self, out: IO[bytes]) -> None:
        super().__init__(out, pickle.HIGHEST_PROTOCOL)
        self.blocks: list[Blocks] = []

    def persistent_id(self, obj: object) -> int | None:
        """Overrides `Pickler`: the number of the blocks; None for all else."""
        if not isinstance(obj, Blocks):
            return None
        self.blocks.append(obj)
        return len(self.blocks) - 1


class _StateUnpickler(pickle.Unpickler):
    """Reads what `_StatePickler` wrote, with blocks that were read before."""

    def __init__(self, content: IO[bytes], blocks: Sequence[Blocks]) -> None:
        super().__init__(content)
        self.blocks = blocks

    def persistent_load(self, pid: int) -> Blocks:
        """Overrides `Unpickler`."""
        return self.blocks[pid]


def _write(out: IO[bytes], kept: SavedState, version: str) -> None:
    """Writes all that `_read` reads, and the head before it: the kinds of blocks, the blocks, and the state."""
    out.write(_head(version) + b"\n")
    state = io.BytesIO()
    pickler = _StatePickler(state)
    pickler.dump(kept)
    pickle.dump([type(blocks) for blocks in pickler.blocks], out, pickle.HIGHEST_PROTOCOL)
    for blocks in pickler.blocks:
        blocks.write(out)
    out.write(state.getbuffer())
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
    kinds = pickle.load(content)  # noqa: S301 - what we wrote, in a file of the user's
    found = _StateUnpickler(content, [kind.read(content, size) for kind in kinds]).load()
    if not isinstance(found, SavedState):
        raise TypeError(type(found))
    return found
