"""Finds the files of a growing store on demand: to list ten thousand queues every second is too slow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from gapless.traces.sources.rocketmq.log.dledger import has_dledger
from gapless.traces.sources.rocketmq.log.dledger_entries import ENTRY_HEADER
from gapless.traces.sources.rocketmq.queues.batch_queues import has_batch_queues
from gapless.traces.sources.rocketmq.queues.queue_database import database_in
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import (
    FARTHEST,
    Queue,
    QueueFile,
    can_be_a_folder,
    files_in,
    log_files,
    log_folders,
)


class LiveQueues(Mapping[Queue, tuple[QueueFile, ...]]):
    """Maps each requested queue to its files, as they were when it was last looked for."""

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
        """The number of requested queues."""
        return len(self.known)

    def look_again(self, queue: Queue) -> bool:
        """Looks for the files of a queue again; True if they changed."""
        there: tuple[QueueFile, ...] = ()
        if can_be_a_folder(queue[0]):
            try:
                there = files_in(f"{self.root}/consumequeue/{queue[0]}/{queue[1]}")
            except (FileNotFoundError, NotADirectoryError):
                there = ()
        changed = self.known.get(queue) != there
        self.known[queue] = there
        return changed


class StorePlan(NamedTuple):
    """The location of a store's log and queues, on which its follower depends."""

    dledger: bool  # the log continues in a DLedger log
    database: bool  # a database is there
    files: bool  # and so do files of queues; only matters with a database
    units: bool  # tag codes of entries may be addresses of units in consumequeue_ext/
    batches: bool  # there are batch queues


def layout_of(folder: Path) -> StorePlan:
    """Returns the present location of a store's log and queues."""
    database, plain = database_in(folder), folder / "consumequeue"
    files = database is not None and plain.is_dir() and any(topic.is_dir() for topic in plain.iterdir())
    units = (folder / "consumequeue_ext").is_dir()
    return StorePlan(has_dledger(folder), database is not None, files, units, has_batch_queues(folder))


def as_live(store: StoreDirectory) -> StoreDirectory:
    """Returns the store as one of a running broker, whose ends are not judged."""
    return replace(
        store,
        live=True,
        clean=False,
        moment=None,
        limit=FARTHEST,
        twin=None,
        watched=True,
        queues=LiveQueues(store.path),
    )


def with_log_files(store: StoreDirectory) -> StoreDirectory:
    """The store with the files that its log has now. Raises Unreadable, NothingThere."""
    before = store.dledger is not None
    folders, wrapped = log_folders(Path(store.path), store.settings, [], before_dledger=before), {}
    if store.dledger:
        folders, wrapped = [*folders, store.dledger.data], {store.dledger.data: ENTRY_HEADER}
    files = log_files(folders, store.settings, [], wrapped)
    return store if files == store.files else replace(store, files=files)
