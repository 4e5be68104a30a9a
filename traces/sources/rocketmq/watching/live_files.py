"""The files of a store that goes on, found as they are needed: nobody lists ten thousand queues every second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from gapless.traces.problems import Unreadable
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import (
    Queue,
    QueueFile,
    can_be_a_folder,
    files_in,
    log_files,
    log_folders,
)


class LiveQueues(Mapping[Queue, tuple[QueueFile, ...]]):
    """The files of every queue that was asked for, as they were when it was asked for first, or looked for again."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.known: dict[Queue, tuple[QueueFile, ...]] = {}

    def __getitem__(self, queue: Queue) -> tuple[QueueFile, ...]:
        """The files of a queue; none where it has no folder."""
        if queue not in self.known:
            self.look_again(queue)
        return self.known[queue]

    def __iter__(self) -> Iterator[Queue]:
        """The queues that were asked for."""
        return iter(self.known)

    def __len__(self) -> int:
        """How many were asked for."""
        return len(self.known)

    def look_again(self, queue: Queue) -> bool:
        """Look for the files of a queue, and say whether others are there than before."""
        there: tuple[QueueFile, ...] = ()
        if can_be_a_folder(queue[0]):
            try:
                there = files_in(f"{self.root}/consumequeue/{queue[0]}/{queue[1]}")
            except (FileNotFoundError, NotADirectoryError):
                there = ()
        changed = self.known.get(queue) != there
        self.known[queue] = there
        return changed


def going_on(store: StoreDirectory) -> StoreDirectory:
    """The store as somebody watches it: like that of a running broker, whose ends nobody judges. Raises Unreadable."""
    refuse_what_is_not_followed(store)
    followed = without_index(store)
    return replace(followed, live=True, clean=False, moment=None, watched=True, queues=LiveQueues(store.path))


def refuse_what_is_not_followed(store: StoreDirectory) -> None:
    """Raise Unreadable where queues are not read from files of theirs alone: such stores can be checked."""
    what = ""
    if store.dledger:
        what = f"its log lies in {store.dledger.name}, a DLedger log, whose last entries another leader may take back"
    elif store.database or store.twin:
        what = "its queues are in a RocksDB database, of which a running broker keeps the newest entries in memory"
    elif Path(store.path, "consumequeue_ext").is_dir():
        what = "entries of its queues have units in consumequeue_ext/, which are read as they are once"
    if what:
        raise Unreadable(f"{store.path}: {what}, and cannot be followed; check it now and then (gapless check)")


def without_index(store: StoreDirectory) -> StoreDirectory:
    """The store without its hash index, which comes behind the records that are taken one by one."""
    if store.index is None:
        return store
    said = "index/ is not judged while a store is followed: gapless check judges it"
    notes = store.notes if store.live else (*store.notes, said)
    return replace(store, index=None, notes=notes)


def with_log_files(store: StoreDirectory) -> StoreDirectory:
    """The store with the files that its log has now. Raises Unreadable, NothingThere."""
    folders = log_folders(Path(store.path), store.settings, [])
    files = log_files(folders, store.settings, [], {})
    return store if files == store.files else replace(store, files=files)
