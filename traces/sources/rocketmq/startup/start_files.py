"""Surveys what the broker's next start will read and map, without judging it: files, folders and settings.

Source: docs/rocketmq.md#start, docs/next-start.md#how.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gapless.spec.startup import ConfigFile
from gapless.traces.judging.building import STEPS
from gapless.traces.problems import Unreadable
from gapless.traces.replay.exact import Event
from gapless.traces.sources.rocketmq.layouts.timer_wheel.files import SLOTS, SNAPSHOTS, TURN
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import ENTRY, TWENTY_DIGITS, Queue, QueueFile, QueueFiles, born_with
from gapless.traces.sources.rocketmq.store.group_cursors import level_cursors
from gapless.traces.sources.rocketmq.store.names import (
    HALF_TOPIC,
    SCHEDULE_TOPIC,
    TIMER_LOG,
    TIMER_WHEEL,
    is_made_by_broker,
)
from gapless.traces.sources.rocketmq.store.settings import (
    DELAY_LEVELS,
    OF_5,
    READ_AT_START,
    is_on,
    number_set,
    read_json,
    rewritten,
)
from gapless.traces.sources.rocketmq.store.topics import CURSOR_FILES

START = STEPS["startup"]
VERSIONS = {40_907: "4.9.7", 50_303: "5.3.3", 50_500: "5.5.0"}  # those that were started on damaged stores
IN_A_DATABASE = ("topics.json", "consumerOffset.json", "subscriptionGroup.json")  # with queues in RocksDB
AT_A_STOP = (*CURSOR_FILES, "delayOffset.json")  # written by a broker that stops in order
LEVELS = "messageDelayLevel"
LOG_SIZE, QUEUE_SIZE, TIMER_SIZE = "mappedFileSizeCommitLog", "mappedFileSizeConsumeQueue", "mappedFileSizeTimerLog"


class StartItem(NamedTuple):
    """One thing that a start reads: the step, and where it lies.

    `file`: relative to the store · `offset`: where the start fails, if it does · `since`: the first version that reads
    it · `setting`: the name of the setting that it depends on, if it is about one
    """

    event: Event
    file: str
    offset: int = 0
    since: int = 0
    setting: str = ""

    @property
    def trace(self) -> str:
        """The name of the trace."""
        return f"start/broker.conf/{self.setting}" if self.setting else f"start/{self.file}"


def versions_of(store: StoreDirectory) -> Mapping[int, str]:
    """The versions that may start next; no older one than what wrote the store."""
    return {number: name for number, name in VERSIONS.items() if not store.modern or number >= OF_5}


def start_items(store: StoreDirectory, strays: Iterable[str]) -> Iterator[StartItem]:
    """Yields everything that the next start reads. `strays`: files in folders of queues that are not called by numbers.

    Files of the log and of queues that have a length of their own are judged elsewhere.
    """
    yield from _configuration(store)
    yield from _log(store)
    yield from _queues(store, strays)
    yield from _timers(store)


def _configuration(store: StoreDirectory) -> Iterator[StartItem]:
    folder = Path(store.path, "config")
    lights, database = store.setting("enableLmq"), store.database is not None
    for name, since in READ_AT_START.items():
        unread = (name == CURSOR_FILES[not lights]) if store.settings else False
        if unread or (name in IN_A_DATABASE and database) or (name == "timermetrics" and not _has_timers(store)):
            continue
        file, backup = folder / name, folder / f"{name}.bak"
        contents = content_of(file), content_of(backup)
        fallen_back = contents[0] == ConfigFile.ABSENT != contents[1]
        broken = f"config/{name}.bak" if fallen_back else f"config/{name}"
        event = START.read_config(file=contents[0], backup=contents[1], needed=_is_needed(store, name))
        yield StartItem(event, broken, since=since)


def _is_needed(store: StoreDirectory, name: str) -> bool:
    """True if queues show that a configuration file was there."""
    if name == "topics.json":
        return any(files and not is_made_by_broker(topic, store.settings) for (topic, _), files in _plain(store))
    config = Path(store.path, "config")
    written = any(other != name and (config / other).is_file() for other in AT_A_STOP)
    if not store.clean or not written or name not in AT_A_STOP:
        return False
    if (
        name in CURSOR_FILES
        and not store.settings
        and any((config / other).is_file() for other in CURSOR_FILES if other != name)
    ):
        return False  # which of the two the broker reads is not known
    of_queue = HALF_TOPIC if name in CURSOR_FILES else SCHEDULE_TOPIC
    return any(files and topic == of_queue for (topic, _), files in _plain(store))


def _plain(store: StoreDirectory) -> Iterable[tuple[Queue, Sequence[QueueFile]]]:
    return () if store.database else store.queues.items()


def level_items(store: StoreDirectory, ends: Mapping[Queue, tuple[int, int]]) -> Iterator[StartItem]:
    """Yields the delay levels whose messages wait, if settings are known. `ends`: of queues."""
    levels = len(store.settings.get(LEVELS, DELAY_LEVELS).split())
    if not store.settings:
        return
    reached = {cursor.queue: cursor.to for cursor in level_cursors(store, [])}
    for (topic, queue), (first, end) in sorted(ends.items()):
        begin = max(reached.get(queue, 0), first)
        if topic == SCHEDULE_TOPIC and begin < end:
            at = begin * ENTRY
            file = next((file for file in store.queues.get((topic, queue), ()) if file.base + file.length > at), None)
            where = f"consumequeue/{topic}/{queue}/{file.base:020d}" if file else f"consumequeue/{topic}/{queue}"
            event = START.read_levels(level=queue + 1, levels=levels)
            yield StartItem(event, where, max(at - file.base, 0) if file else 0, setting=f"{LEVELS}/{queue + 1}")


def content_of(path: Path) -> ConfigFile:
    """Returns what a configuration file has."""
    if not path.is_file():
        return ConfigFile.ABSENT
    if path.stat().st_size == 0:
        return ConfigFile.EMPTY
    try:
        read_json(path)
    except Unreadable:
        return ConfigFile.BROKEN
    return ConfigFile.WHOLE


def _log(store: StoreDirectory) -> Iterator[StartItem]:
    """The folders of the log that are no DLedger log, as one."""
    dledger = store.dledger.data if store.dledger else None
    folders = {Path(file.path).parent for file in store.files} | {Path(store.path, "commitlog")}
    paths = sorted(
        (path for folder in folders if folder != dledger and folder.is_dir() for path in folder.iterdir()),
        key=lambda path: path.name,
    )
    lengths = Counter(file.length for file in store.files if Path(file.path).parent != dledger)
    full = lengths.most_common(1)[0][0] if lengths else 0
    yield from _mapped(store, paths, full)
    first = next((file for file in store.files if file.length == full), None)
    if first:
        yield from _compared(store, LOG_SIZE, full, number_set(store.settings, LOG_SIZE), _within(store, first.path))


def _queues(store: StoreDirectory, strays: Iterable[str]) -> Iterator[StartItem]:
    """Files in folders of queues: those that do not belong there, and an empty last one."""
    if store.database or store.no_queues:
        return
    plain = {queue: files for queue, files in store.queues.items() if queue not in store.batched}
    lengths = Counter(file.length for files in plain.values() for file in files if file.length)
    full = max(lengths, key=lambda length: (lengths[length], length), default=0)
    if not full:
        return
    root = Path(store.path, "consumequeue")
    folders = {Path(path).parent for path in strays}
    folders |= {root / topic / str(queue) for (topic, queue), files in plain.items() if files and not files[-1].length}
    for folder in sorted(folders):
        if folder.parent.parent == root:
            yield from _mapped(store, sorted(folder.iterdir(), key=lambda path: path.name), full)
    (topic, queue), files = next(
        (queue, files) for queue, files in sorted(plain.items()) if any(file.length == full for file in files)
    )
    first = next(file for file in files if file.length == full)
    wanted = -(-number_set(store.settings, QUEUE_SIZE) // ENTRY) * ENTRY
    yield from _compared(store, QUEUE_SIZE, full, wanted, f"consumequeue/{topic}/{queue}/{first.base:020d}")
    if len(lengths) > 1:
        yield from _of_other_lengths(store, plain, full)


def _of_other_lengths(store: StoreDirectory, queues: QueueFiles, full: int) -> Iterator[StartItem]:
    """Yields one whole file of each other length: no setting fits all of them.

    The names of a queue's files tell their length; or the broker wrote its settings back, and may have had another.
    """
    found = {full}
    for (topic, queue), files in sorted(queues.items()):
        length = born_with(files, files[0].length if files and rewritten(store.settings) else full)
        file = next((file for file in files if file.length == length), None)
        if file and length not in found and length % ENTRY == 0:
            found.add(length)
            event = START.map_file(folder=False, numbered=True, last=file is files[-1], length=length, full=full)
            yield StartItem(event, f"consumequeue/{topic}/{queue}/{file.base:020d}", length)


def _timers(store: StoreDirectory) -> Iterator[StartItem]:
    if not _has_timers(store):
        return
    wheel = Path(store.path, TIMER_WHEEL)
    if wheel.is_file() and not store.setting(SNAPSHOTS):
        length, full = wheel.stat().st_size, SLOTS * TURN.itemsize
        yield StartItem(START.read_wheel(length=length, full=full), TIMER_WHEEL, offset=min(length, full), since=OF_5)
    folder = Path(store.path, TIMER_LOG)
    paths = sorted(folder.iterdir(), key=lambda path: path.name) if folder.is_dir() else []
    lengths = Counter(path.stat().st_size for path in paths if path.is_file() and TWENTY_DIGITS.fullmatch(path.name))
    full = max(lengths, key=lambda length: (lengths[length], length), default=0)
    if full:
        yield from _mapped(store, paths, full, since=OF_5)
        first = next(path for path in paths if path.stat().st_size == full)
        wanted = number_set(store.settings, TIMER_SIZE)
        yield from _compared(store, TIMER_SIZE, full, wanted, _within(store, str(first)), since=OF_5)


def _has_timers(store: StoreDirectory) -> bool:
    return is_on(store.settings, "timerWheelEnable", otherwise=True)


def _mapped(store: StoreDirectory, paths: list[Path], full: int, since: int = 0) -> Iterator[StartItem]:
    """Yields what does not belong into a folder of files, and one of those that do; `paths` by their names."""
    whole = False
    for path in paths:
        numbered, folder = TWENTY_DIGITS.fullmatch(path.name) is not None, path.is_dir()
        try:
            length = path.stat().st_size
        except OSError:  # a link without a target is judged elsewhere; or it is gone
            continue
        last = path is paths[-1]
        if numbered and not folder and (whole or length != full) and (length or not last or store.of_moments):
            continue  # one of many alike, or of a wrong length, which is judged where its bytes are
        whole = whole or (numbered and not folder and length == full)
        event = START.map_file(folder=folder, numbered=numbered, last=last, length=length, full=full)
        yield StartItem(event, _within(store, str(path)), since=since)


def _compared(
    store: StoreDirectory, setting: str, length: int, wanted: int, file: str, since: int = 0
) -> Iterator[StartItem]:
    """Yields the length of files next to what a setting says, if it says anything."""
    if wanted and setting in store.settings:
        yield StartItem(START.compare_length(length=length, full=wanted), file, length, since, setting)


def _within(store: StoreDirectory, path: str) -> str:
    """A path relative to the store, if it lies there."""
    return str(Path(path).relative_to(store.path)) if Path(path).is_relative_to(store.path) else path
