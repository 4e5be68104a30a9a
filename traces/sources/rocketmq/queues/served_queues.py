"""The queues that consumers are served from, in files or in a database, and what of them can be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from gapless.traces.sources.rocketmq.queues.batch_queues import BatchQueues
from gapless.traces.sources.rocketmq.queues.queue_database import QueueDatabase, database_in, why_unreadable
from gapless.traces.sources.rocketmq.store import links
from gapless.traces.sources.rocketmq.store.files import LogFile, Queue, QueueFile, QueueFiles, queue_files
from gapless.traces.sources.rocketmq.store.links import BrokenLink, broken_links
from gapless.traces.sources.rocketmq.store.names import LIGHT
from gapless.traces.sources.rocketmq.store.settings import is_on
from gapless.traces.sources.rocketmq.store.snapshot import reached


class ServedQueues(NamedTuple):
    """The places from which a store's queues are read.

    `files`: of queues that are read from files · `database`: read in place of files · `twin`: a database with the same
    entries as the files · `lights`: light queues are read from that · `why_none`: the reason if no queue can be read ·
    `broken`: links in the store without a target · `unread`: one of these leaves all queues unread.
    """

    files: QueueFiles
    database: QueueDatabase | None
    twin: QueueDatabase | None
    why_none: str
    broken: tuple[BrokenLink, ...]
    unread: bool
    lights: bool = False

    @property
    def queues(self) -> QueueFiles:
        """Every readable queue, with its files or their substitutes."""
        return queues_of(self.files, self.database, self.twin if self.lights else None)


def queues_of(files: QueueFiles, database: QueueDatabase | None, lights: QueueDatabase | None) -> QueueFiles:
    """Returns the queues of `database`, or those of files, with the light ones of `lights`."""
    if database or lights is None:
        return database.queues if database else files
    plain = {queue: there for queue, there in files.items() if not is_light(queue)}
    return {**plain, **{queue: there for queue, there in lights.queues.items() if is_light(queue)}}


def is_light(queue: Queue) -> bool:
    """True if a queue shares its records with other queues."""
    return queue[0].startswith(LIGHT)


def shares_records(queues: QueueFiles, settings: Mapping[str, str]) -> bool:
    """True if names of light queues are those of queues that share records: by their files, or else the settings.

    A light queue has the id 0; a plain one of such a name has as many ids as its topic.
    """
    ids = {queue for topic, queue in queues if topic.startswith(LIGHT)}
    return not settings or ids == {0} or is_on(settings, "enableLmq")


def served_queues(
    path: Path, settings: Mapping[str, str], notes: list[str], strays: list[str], *, copies: bool
) -> ServedQueues:
    """Looks for the queues of the store in folder `path`. Raises Unreadable.

    `strays`: as of `queue_files` · `copies`: as of `open_store`.
    """
    among_queues: list[str] = []
    files = queue_files(path / "consumequeue", among_queues, strays)
    broken = broken_links(path, among_queues, alone=bool(files), database=database_in(path))
    if broken:
        files = {queue: there for queue, there in files.items() if not links.is_behind(broken, *queue)}
    files_count = bool(files and settings) and not _reads_database(settings)  # whatever the database holds
    for link in broken:
        if link.part in links.QUEUES and not link.queues and not (link.database and files_count):
            return ServedQueues({}, None, None, link.sentence, broken, unread=True)
    if any(link.database for link in broken):
        broken = tuple(link._replace(needed=not link.database) for link in broken)
        return ServedQueues(files, None, None, "", broken, unread=False)
    behind = any(link.queues for link in broken)
    database, twin, why_none = _databases(path, settings, notes, files, behind=behind, copies=copies)
    if database:  # files of queues are not used
        broken = tuple(link._replace(needed=not link.queues) for link in broken)
    lights = twin is not None and _lights_in_database(settings, files)
    served = {} if database or why_none else files
    return ServedQueues(served, database, twin, why_none, broken, unread=False, lights=lights)


def opener(
    root: str, database: QueueDatabase | None, batches: BatchQueues | None, lights: QueueDatabase | None = None
) -> Callable[[Queue, QueueFile], LogFile]:
    """Returns the function that opens one file of a queue. `lights`: the source of light queues."""
    batched = batches.queues if batches else {}

    def opened(queue: Queue, file: QueueFile) -> LogFile:
        path = f"{root}/consumequeue/{queue[0]}/{queue[1]}/{file.base:020d}"
        if batches and queue in batched:
            path = batches.copy
        elif database:
            path = database.copy
        elif lights and is_light(queue):
            path = lights.copy
        return LogFile(path, file.base, file.length, file.at)

    return opened


def _databases(
    path: Path, settings: Mapping[str, str], notes: list[str], files: QueueFiles, *, behind: bool, copies: bool
) -> tuple[QueueDatabase | None, QueueDatabase | None, str]:
    """Finds the queues in a database, alone or next to files, and the reason if no queue can be read.

    `files`: those in the store · `behind`: others lie behind links without a target.
    """
    folder, plain = database_in(path), path / "consumequeue"
    if folder is None:
        return None, None, "" if plain.is_dir() and any(plain.iterdir()) else "there are no consume queues"
    in_files = plain.is_dir() and any(topic.is_dir() for topic in plain.iterdir())
    missing = why_unreadable(folder)
    if in_files and settings and not _reads_database(settings):
        twice = is_on(settings, "rocksdbCQDoubleWriteEnable")
        if missing or not twice:
            why = missing or "the broker does not write it any more"
            notes.append(f"{folder.name}/ holds queues in RocksDB too, which are not judged: {why}")
        return None, None if missing or not twice else copied_queues(folder, copies=copies), ""
    if missing:
        return None, None, missing
    database = copied_queues(folder, copies=copies)
    if in_files and not settings:
        if reached(files, opener(str(path), None, None)) >= database.dispatched:
            return None, database, ""
        if behind:
            return None, None, (
                f"queues lie in files and in {folder.name}/, a RocksDB database, and the files do not show which of "
                "them the broker reads; a broker.conf says it (--config)"
            )  # fmt: skip
    notes.append(f"entries are read from {folder.name}/, a RocksDB database")
    if in_files:
        notes.append("consumequeue/ holds files of queues too, which are not judged: the broker does not read them")
    return database, None, ""


def _reads_database(settings: Mapping[str, str]) -> bool:
    """True if consumers are served from the database, by the settings."""
    twice = is_on(settings, "rocksdbCQDoubleWriteEnable")
    served = settings.get("combineCQPreferCQType", "") if twice else settings.get("storeType", "")
    return served.strip().lower() == "defaultrocksdb"


def _lights_in_database(settings: Mapping[str, str], files: QueueFiles) -> bool:
    """True if the light queues of a broker that writes queues twice are in its database alone.

    Source: docs/rocketmq.md#written-twice.
    """
    return is_on(settings, "combineCQUseRocksdbForLmq") if settings else not any(map(is_light, files))


def copied_queues(folder: Path, *, copies: bool = True) -> QueueDatabase:
    """The queues of a database; without `copies`, it is named alone. Raises Unreadable."""
    from gapless.traces.sources.rocketmq.queues import rocksdb  # noqa: PLC0415 - it takes a library that may be missing

    return rocksdb.copied(folder) if copies else rocksdb.named(folder)
