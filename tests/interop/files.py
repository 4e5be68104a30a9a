"""The contents of a store's files before a broker opened it, and the check that they are unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.support.rocketmq.stores import ENTRY, Queue

UNUSED = bytes(ENTRY.size)


@dataclass(frozen=True)
class Contents:
    """Every file by its path in the store."""

    files: dict[str, bytes]

    @classmethod
    def of(cls, store: Path) -> Contents:
        """Read the current contents."""
        files = sorted(path for path in store.rglob("*") if path.is_file())
        return cls({str(path.relative_to(store)): path.read_bytes() for path in files})

    def folder(self, name: str) -> bytes:
        """The files of a folder, one after another: a log or a queue that begins at 0."""
        return b"".join(data for path, data in self.files.items() if path.rpartition("/")[0] == name)

    def end_of(self, position: int) -> int:
        """Return the end of the record at this position."""
        log = self.folder("commitlog")
        return position + int.from_bytes(log[position : position + 4], "big")


def overwritten(before: Contents, after: Contents, end: int, queues: list[Queue]) -> list[str]:
    """Compare files with earlier contents: the log before `end`, and every entry that existed."""
    was, now = before.folder("commitlog")[:end], after.folder("commitlog")[:end]
    lines = [] if was == now else [f"commitlog: the byte at {_first_difference(was, now)} is not what it was"]
    for topic, queue in queues:
        name = f"consumequeue/{topic}/{queue}"
        was, now = before.folder(name), after.folder(name)
        for at in range(0, len(was), ENTRY.size):
            entry = was[at : at + ENTRY.size]
            if entry not in (UNUSED, now[at : at + ENTRY.size]):
                lines.append(f"{name}: entry {at // ENTRY.size} is not what it was")
                break
    return lines


def _first_difference(was: bytes, now: bytes) -> int:
    return next((at for at, (old, new) in enumerate(zip(was, now, strict=False)) if old != new), len(now))


def changes(before: Contents, after: Contents) -> str:
    """The files that are new, gone and changed: of many in one folder, their number."""
    was, now = before.files, after.files
    kinds = {
        "new": [path for path in now if path not in was],
        "gone": [path for path in was if path not in now],
        "changed": [path for path in was.keys() & now.keys() if was[path] != now[path]],
    }
    return "; ".join(f"{kind}: {_by_folder(paths)}" for kind, paths in kinds.items() if paths)


def _by_folder(paths: list[str]) -> str:
    folders: dict[str, list[str]] = {}
    for path in sorted(paths):
        folders.setdefault(path.partition("/")[0] if "/" in path else "", []).append(path)
    alone = folders.pop("", [])
    return ", ".join([*alone, *(f"{name}/ ({len(found)})" for name, found in folders.items())])
