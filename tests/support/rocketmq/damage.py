"""One labelled fault at a time, planted in a store that is whole otherwise.

Each function of `FAULTS` takes a copy of a store, does one thing to it, repairs all that would follow from it
(lengths, checksums, the numbers and entries behind), and says where a checker should look. Each function of
`LEGAL` does something that looks like damage and is not: a checker that accuses it is wrong.

A fault of the log may show in its queues too, for example if an unreadable record has an entry. `echoes`
names the families of rules that may speak up as well; without echoes one finding says it all.
"""

import shutil
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Literal, Protocol, TypeVar

from tests.support.rocketmq.stores import (
    BLANK,
    PRE_BLANK,
    SCHEDULE_TOPIC,
    Entry,
    Queue,
    Record,
    Slot,
    decode,
    encode,
    entries_of,
    log_files,
    queue_files,
    queues_of,
    read_checkpoint,
    read_log,
    read_slots,
    seal,
)

Family = Literal["log", "queue"]
Place = Literal["first", "last", "file start", "file end", "any"]

SYSTEM_TOPICS = ("RMQ_SYS_", "rmq_sys_", "TRANS_CHECK_", "SCHEDULE_", "%LMQ%")
HOUR = 3_600_000  # ms


@dataclass(frozen=True)
class Where:
    """One change and its place: `length` bytes from `offset` of `file`, a path relative to the store."""

    label: str
    family: Family
    file: str
    offset: int
    length: int
    echoes: frozenset[Family] = frozenset()


class InFile(Protocol):
    """Something that can be damaged, in a file."""

    @property
    def file(self) -> str:
        """The path relative to the store."""


Candidate = TypeVar("Candidate", bound=InFile)


@dataclass(frozen=True)
class Spot:
    """Bytes of a log file: a record, a blank or a whole file, and the record before or in it."""

    file: str
    offset: int
    length: int
    record: Record


class Pick:
    """Chooses where to strike: at the first or last candidate, at one next to a file's edge, or anywhere."""

    def __init__(self, place: Place, seed: str) -> None:
        self.place = place
        self.random = Random(seed)

    def of(self, candidates: Sequence[Candidate]) -> Candidate:
        """One of the candidates, which lie in order; where there is no edge between files, any."""
        assert candidates, "this store has no place for the fault"
        if self.place == "first":
            return candidates[0]
        if self.place == "last":
            return candidates[-1]
        pairs = [(one, two) for one, two in pairwise(candidates) if one.file != two.file]
        if self.place == "any" or not pairs:
            return self.random.choice(candidates)
        end, start = self.random.choice(pairs)
        return start if self.place == "file start" else end


class Bench:
    """A store laid open: what it holds, where that lies, and the tools to change it."""

    def __init__(self, store: Path, pick: Pick) -> None:
        self.store = store
        self.pick = pick
        self.log_file_size = log_files(store)[0].stat().st_size

    @cached_property
    def records(self) -> list[Record]:
        """The log before the damage."""
        return read_log(self.store)

    @cached_property
    def end(self) -> int:
        """Exclusive end of the records."""
        return self.records[-1].end

    @cached_property
    def flushed(self) -> int:
        """Exclusive end of what the checkpoint calls safe: after a clean stop all of the log."""
        safe = read_checkpoint(self.store)
        return next((record.position for record in self.records if record.store_time > safe), self.end)

    def spots(self) -> list[Spot]:
        """The records that must be there, each with its place."""
        return [self.spot(record) for record in self.records if record.position < self.flushed]

    def spot(self, record: Record) -> Spot:
        """Return the place of a record."""
        return self.at(record.position, record.size, record)

    def at(self, position: int, length: int, record: Record) -> Spot:
        """Return the place of some bytes of the log."""
        offset = position % self.log_file_size
        return Spot(f"commitlog/{position - offset:020}", offset, length, record)

    def user_queue(self, *, of_several: bool = False) -> list[Slot]:
        """The entries of some queue of a user's topic; nothing else in the store depends on its numbers.

        `of_several`: the topic has another queue, so that one without files is no topic that was deleted.
        """
        queues = [queue for queue in queues_of(self.store) if not queue[0].startswith(SYSTEM_TOPICS)]
        topics = Counter(topic for topic, _ in queues)
        queues = [queue for queue in queues if topics[queue[0]] > of_several]
        return self.pick.random.choice([slots for slots in map(self.slots, queues) if len(slots) > 4])

    def slots(self, queue: Queue) -> list[Slot]:
        """The entries of a queue whose messages are in the log and safe."""
        start = self.records[0].position
        slots = read_slots(self.store, queue)
        return [slot for slot in slots if start <= slot.entry.position < self.flushed]

    def queued_from(self, slot: Slot) -> list[Spot]:
        """The records of the queue of `slot`, from its message on."""
        return [
            self.spot(record)
            for record in self.records
            if (record.topic, record.queue) == slot.queue
            and record.is_queued
            and record.position >= slot.entry.position
        ]

    def overwrite(self, file: str, offset: int, data: bytes) -> None:
        """Put `data` into a file in place of what is there."""
        with (self.store / file).open("r+b") as opened:
            opened.seek(offset)
            opened.write(data)

    def change(self, spot: Spot, at: int, data: bytes) -> None:
        """Put `data` into a record, `at` bytes from its start; a property CRC stays right."""
        raw = encode(spot.record)
        self.overwrite(spot.file, spot.offset, seal(raw[:at] + data + raw[at + len(data) :]))

    def lay(self, record: Record) -> None:
        """Lay a record at its position."""
        spot = self.spot(record)
        self.overwrite(spot.file, spot.offset, encode(record))

    def fill(self, slot: Slot, entries: Sequence[bytes]) -> None:
        """Lay `entries` into a queue from `slot` on; slots behind are emptied, and files added if needed."""
        directory, files = (self.store / slot.file).parent, queue_files(self.store, slot.queue)
        file_size, first = files[0].stat().st_size, int(files[0].name)
        kept = b"".join(file.read_bytes() for file in files)[: slot.number * 20 - first]
        data = kept + b"".join(entries)
        whole = max(len(files) * file_size, -(-len(data) // file_size) * file_size)
        data = data.ljust(whole, b"\0")
        for begin in range(0, whole, file_size):
            (directory / f"{first + begin:020}").write_bytes(data[begin : begin + file_size])

    def behind(self, slot: Slot) -> list[bytes]:
        """All entries of the queue from `slot` on, as bytes."""
        slots = read_slots(self.store, slot.queue)
        return [later.entry.encode() for later in slots if later.number >= slot.number]

    def next_place(self, slot: Slot) -> tuple[str, int]:
        """The file and offset of the slot behind `slot`, which may be in a file of its own."""
        directory, _, base = slot.file.rpartition("/")
        size = (self.store / slot.file).stat().st_size
        if slot.offset + 20 < size:
            return slot.file, slot.offset + 20
        return f"{directory}/{int(base) + size:020}", 0


# Faults of a consume queue


def entry_removed(store: Path, pick: Pick) -> Where:
    """The entry is gone, and all later ones have moved up one slot."""
    bench = Bench(store, pick)
    slot = pick.of(bench.user_queue())
    bench.fill(slot, bench.behind(slot)[1:])
    return in_queue("an entry is missing, later ones moved up", slot)


def entry_zeroed(store: Path, pick: Pick) -> Where:
    """The slot of an entry is empty."""
    bench = Bench(store, pick)
    slot = pick.of(bench.user_queue())
    bench.overwrite(slot.file, slot.offset, bytes(20))
    return in_queue("an entry is zeroed", slot)


def entry_repeated(store: Path, pick: Pick) -> Where:
    """The entry stands there twice, and all later ones have moved down one slot."""
    bench = Bench(store, pick)
    slot = pick.of(bench.user_queue())
    file, offset = bench.next_place(slot)
    bench.fill(slot, [slot.entry.encode(), *bench.behind(slot)])
    return Where("an entry is repeated", "queue", file, offset, 20)


def entries_swapped(store: Path, pick: Pick) -> Where:
    """Two entries stand in each other's slots."""
    bench = Bench(store, pick)
    slot = pick.of(bench.user_queue()[:-1])
    first, second, *later = bench.behind(slot)
    bench.fill(slot, [second, first, *later])
    return in_queue("an entry is swapped with its neighbour", slot)


def entry_of_wrong_size(store: Path, pick: Pick) -> Where:
    """The entry gives another size than its message has."""
    bench = Bench(store, pick)
    slot = pick.of(bench.user_queue())
    size = slot.entry.size + pick.random.choice((-1, 1, 64))
    return _exchange(bench, slot, replace(slot.entry, size=size), "an entry has the wrong size")


def entry_of_wrong_tag(store: Path, pick: Pick) -> Where:
    """The entry has the code of another tag."""
    bench = Bench(store, pick)
    slot = pick.of(bench.user_queue())
    tag_code = slot.entry.tag_code ^ (1 << pick.random.randrange(31))
    return _exchange(bench, slot, replace(slot.entry, tag_code=tag_code), "an entry has the wrong tag code")


def entry_into_the_middle(store: Path, pick: Pick) -> Where:
    """The entry points into its message instead of at its beginning."""
    bench = Bench(store, pick)
    slot = pick.of(bench.user_queue())
    position = slot.entry.position + pick.random.randrange(1, slot.entry.size)
    return _exchange(bench, slot, replace(slot.entry, position=position), "an entry points into a record")


def entry_past_the_end(store: Path, pick: Pick) -> Where:
    """The entry points where no record has been written yet."""
    bench = Bench(store, pick)
    slot = pick.of(bench.user_queue())
    position = bench.end + pick.random.choice((0, 1000, 1 << 40))
    return _exchange(bench, slot, replace(slot.entry, position=position), "an entry points past the end")


def entry_of_another_queue(store: Path, pick: Pick) -> Where:
    """The entry is, in every part, that of a message in another queue."""
    bench = Bench(store, pick)
    slot = pick.of(bench.user_queue())
    entries = [found for record in bench.records for found in entries_of(record)]
    other = pick.random.choice([entry for queue, _, entry in entries if queue != slot.queue and entry != slot.entry])
    return _exchange(bench, slot, other, "an entry points at another queue's message")


def queue_emptied_from_here(store: Path, pick: Pick) -> Where:
    """The queue ends early, though its files have their length."""
    bench = Bench(store, pick)
    slot = pick.of(bench.user_queue())
    bench.fill(slot, [])
    return in_queue("a queue ends early", slot)


def queue_file_cut_short(store: Path, pick: Pick) -> Where:
    """A file of the queue ends early, perhaps in the middle of an entry."""
    bench = Bench(store, pick)
    slot = pick.of(bench.user_queue())
    with (store / slot.file).open("r+b") as opened:
        opened.truncate(slot.offset + pick.random.choice((0, 0, 7)))
    return in_queue("a queue file is cut short", slot)


def queue_file_missing(store: Path, pick: Pick) -> Where:
    """One file of a queue is gone: the first, one in the middle, the last or the only one; others tell that it was."""
    bench = Bench(store, pick)
    slot = pick.of(bench.user_queue(of_several=True))
    (store / slot.file).unlink()
    return Where("a queue file is missing", "queue", slot.file, 0, slot.offset + 20)


def queue_missing(store: Path, pick: Pick) -> Where:
    """The directory of a queue is gone with all its files."""
    slot = Bench(store, pick).user_queue(of_several=True)[0]
    shutil.rmtree((store / slot.file).parent)
    return Where("a queue is missing", "queue", slot.file, 0, slot.offset + 20)


def _exchange(bench: Bench, slot: Slot, entry: Entry, label: str) -> Where:
    bench.overwrite(slot.file, slot.offset, entry.encode())
    return in_queue(label, slot)


def in_queue(label: str, slot: Slot) -> Where:
    """The place of one entry, and of the fault that only its queue has."""
    return Where(label, "queue", slot.file, slot.offset, 20)


# Faults of the log


def body_flipped(store: Path, pick: Pick) -> Where:
    """One bit of a body is not as it was sent."""
    bench = Bench(store, pick)
    spot = pick.of([spot for spot in bench.spots() if spot.record.body])
    body_at = parts(spot.record)["body"][0]
    at = body_at + pick.random.randrange(len(spot.record.body))
    flipped = encode(spot.record)[at] ^ 1 << pick.random.randrange(8)
    bench.change(spot, at, bytes([flipped]))
    return in_log("a body byte is flipped", spot)


def wrong_position(store: Path, pick: Pick) -> Where:
    """A record names another position than the one where it lies."""
    bench = Bench(store, pick)
    spot = pick.of(bench.spots())
    position = spot.record.position + pick.random.choice((-1, 1, 8, bench.log_file_size))
    bench.change(spot, 28, position.to_bytes(8, "big", signed=True))
    return in_log("a record names the wrong position", spot)


def number_repeated(store: Path, pick: Pick) -> Where:
    """A record has the number of the one before it, and dispatch, which had that number, passed it over."""
    bench = Bench(store, pick)
    slots = bench.user_queue()
    slot = pick.of(slots[2:])
    bench.fill(slot, bench.behind(slot)[1:])
    for spot in bench.queued_from(slot):
        bench.lay(replace(spot.record, number=spot.record.number - 1))
    return _misnumbered("a queue number is repeated", bench, slot)


def number_left_out(store: Path, pick: Pick) -> Where:
    """The numbers of a queue jump over one, and its slot is empty."""
    bench = Bench(store, pick)
    slot = pick.of(bench.user_queue()[1:])
    return _leave_out(bench, slot, bytes(20), "a queue number is left out")


def numbers_start_late(store: Path, pick: Pick) -> Where:
    """A queue begins with number 1, though its log begins at 0."""
    bench = Bench(store, pick)
    slot = bench.user_queue()[0]
    assert slot.number == 0, "this store has no place for the fault"
    return _leave_out(bench, slot, PRE_BLANK, "the first queue number is left out")


def _leave_out(bench: Bench, slot: Slot, empty: bytes, label: str) -> Where:
    bench.fill(slot, [empty, *bench.behind(slot)])
    for spot in bench.queued_from(slot):
        bench.lay(replace(spot.record, number=spot.record.number + 1))
    return _misnumbered(label, bench, slot)


def _misnumbered(label: str, bench: Bench, slot: Slot) -> Where:
    """Numbers are the business of queues, and this one lies in the log."""
    spot = bench.queued_from(slot)[0]
    return Where(label, "queue", spot.file, spot.offset, spot.length)


def wrong_size(store: Path, pick: Pick) -> Where:
    """A record gives another size than its parts add up to."""
    bench = Bench(store, pick)
    spot = pick.of(bench.spots())
    size = pick.random.choice((spot.length + 1, spot.length - 1, 8, 0, -1, 0x7FFFFFFF))
    bench.change(spot, 0, size.to_bytes(4, "big", signed=True))
    return in_log("a record has the wrong size", spot, echoes=True)


def wrong_magic(store: Path, pick: Pick) -> Where:
    """A record carries a magic number that is not its own: none, an unknown one, or that of a blank."""
    bench = Bench(store, pick)
    spot = pick.of(bench.spots())
    magic = pick.random.choice((0, 0xDAA320A8, BLANK))
    bench.change(spot, 4, magic.to_bytes(4, "big"))
    return in_log("a record has the wrong magic number", spot, echoes=True)


def record_torn(store: Path, pick: Pick) -> Where:
    """A record in the middle of the log is half written: zeros from somewhere to its end."""
    bench = Bench(store, pick)
    spot = pick.of(bench.spots()[:-1])
    cuts = [cut for cut in (8, 40, *_edges(spot.record)) if _is_torn(spot.record, cut)]
    cut = pick.random.choice(cuts)
    bench.overwrite(spot.file, spot.offset, encode(spot.record)[:cut].ljust(spot.length, b"\0"))
    return in_log("a record in the middle is torn", spot, echoes=True)


def blank_zeroed(store: Path, pick: Pick) -> Where:
    """A full file ends in zeros instead of a blank."""
    bench = Bench(store, pick)
    spot = pick.of(_blanks(bench))
    bench.overwrite(spot.file, spot.offset, bytes(spot.length))
    return in_log("a blank is zeroed", spot)


def blank_overwritten(store: Path, pick: Pick) -> Where:
    """A full file ends in bytes that mean nothing."""
    bench = Bench(store, pick)
    spot = pick.of(_blanks(bench))
    bench.overwrite(spot.file, spot.offset, pick.random.randbytes(spot.length))
    return in_log("a blank is overwritten", spot)


def blank_of_wrong_size(store: Path, pick: Pick) -> Where:
    """The blank does not reach the end of its file."""
    bench = Bench(store, pick)
    spot = pick.of(_blanks(bench))
    bench.overwrite(spot.file, spot.offset, struct.pack(">iI", spot.length - 1, BLANK))
    return in_log("a blank has the wrong size", spot)


def _blanks(bench: Bench) -> list[Spot]:
    """The blanks behind which a record must lie."""
    return [
        bench.at(before.record.end, after.record.position - before.record.end, before.record)
        for before, after in pairwise(bench.spots())
        if before.file != after.file
    ]


def log_file_missing(store: Path, pick: Pick) -> Where:
    """One log file is gone, and there are some before and behind it."""
    bench = Bench(store, pick)
    files = sorted({spot.file for spot in bench.spots()})
    spot = pick.of([Spot(file, 0, bench.log_file_size, bench.records[0]) for file in files[1:-1]])
    (store / spot.file).unlink()
    return in_log("a log file is missing", spot, echoes=True)


def tail_lost(store: Path, pick: Pick) -> Where:
    """The last records of a log that was closed in order are zeros; checkpoint and queues know of them."""
    bench = Bench(store, pick)
    newest = bench.records[-pick.random.choice((1, 2, 10))].store_time
    lost = [record for record in bench.records if record.store_time >= newest]
    for record in lost:
        spot = bench.spot(record)
        bench.overwrite(spot.file, spot.offset, bytes(spot.length))
    return in_log("the tail of a clean log is lost", bench.spot(lost[0]), echoes=True)


def in_log(label: str, spot: Spot, *, echoes: bool = False) -> Where:
    """The place of a fault of the log, which may show in its queues too."""
    also: frozenset[Family] = frozenset({"queue"}) if echoes else frozenset()
    return Where(label, "log", spot.file, spot.offset, spot.length, also)


def parts(record: Record) -> dict[str, tuple[int, int]]:
    """Return the beginnings and ends of a record's parts, in bytes from its start."""
    body = 72 + len(record.born_host) + len(record.store_host)
    topic = body + len(record.body)
    property_string = record.size - len(record.properties)
    return {
        "header": (0, body),
        "body": (body, topic),
        "topic": (topic, property_string - 2),
        "properties": (property_string, record.size),
    }


def _edges(record: Record) -> list[int]:
    """Return the boundaries between the parts of a record."""
    return [begin for begin, _ in parts(record).values()]


def _is_torn(record: Record, cut: int) -> bool:
    """True if the record, zeros from `cut` on, differs from a whole one by more than its properties."""
    raw = encode(record)[:cut].ljust(record.size, b"\0")
    return cut < parts(record)["properties"][0] - 2 and decode(raw, 0, record.position) is None


# What is legal


def tail_torn_in_header(store: Path, pick: Pick) -> None:
    """The last record of a broker that was killed has half a header."""
    _tear_tail(Bench(store, pick), "header")


def tail_torn_in_body(store: Path, pick: Pick) -> None:
    """The last record of a broker that was killed ends in its body."""
    _tear_tail(Bench(store, pick), "body")


def tail_torn_in_topic(store: Path, pick: Pick) -> None:
    """The last record of a broker that was killed ends in its topic."""
    _tear_tail(Bench(store, pick), "topic")


def tail_torn_in_properties(store: Path, pick: Pick) -> None:
    """The last record of a broker that was killed ends in its properties: sizes and body are right."""
    _tear_tail(Bench(store, pick), "properties")


def tail_with_a_hole_in_its_body(store: Path, pick: Pick) -> None:
    """Lose the page with the body of the last record, as after a power loss."""
    bench = Bench(store, pick)
    _kill(bench)
    spot = bench.spot(bench.records[-1])
    begin, end = parts(spot.record)["body"]
    bench.overwrite(spot.file, spot.offset + begin, bytes(end - begin))


def _tear_tail(bench: Bench, part: str) -> None:
    _kill(bench)
    spot = bench.spot(bench.records[-1])
    begin, end = parts(spot.record)[part]
    cut = bench.pick.random.randrange(begin, max(end, begin + 1))
    bench.overwrite(spot.file, spot.offset, encode(spot.record)[:cut].ljust(spot.length, b"\0"))


def _kill(bench: Bench) -> None:
    """Make it the store of a broker that was killed: `abort` is there, the last message has no entry yet."""
    (bench.store / "abort").write_text("4711")
    flushed = bench.records[len(bench.records) // 2].store_time
    bench.overwrite("checkpoint", 0, struct.pack(">qq", flushed, flushed))
    for queue, number, _ in entries_of(bench.records[-1]):
        for slot in read_slots(bench.store, queue):
            if slot.number == number:
                bench.overwrite(slot.file, slot.offset, bytes(20))


def clock_stepped_back(store: Path, pick: Pick) -> None:
    """Somewhere in the log the clock was set back by an hour."""
    bench = Bench(store, pick)
    for spot in bench.spots()[pick.random.randrange(1, len(bench.records)) :]:
        record = replace(spot.record, store_time=spot.record.store_time - HOUR)
        bench.lay(record)
        if record.topic == SCHEDULE_TOPIC:
            ((queue, number, entry),) = entries_of(record)
            (slot,) = (slot for slot in read_slots(store, queue) if slot.number == number)
            bench.overwrite(slot.file, slot.offset, entry.encode())
    time = read_checkpoint(store) - HOUR
    bench.overwrite("checkpoint", 0, struct.pack(">qq", time, time))


def stale_bytes(store: Path, pick: Pick) -> None:
    """Behind the end lie bytes of a record that recovery once dropped."""
    bench = Bench(store, pick)
    spot = bench.at(bench.end, 0, bench.records[-1])
    raw = encode(pick.random.choice(bench.records))[20 : bench.log_file_size - spot.offset]
    bench.overwrite(spot.file, spot.offset, raw)


def stale_record(store: Path, pick: Pick) -> None:
    """Behind the end lies a whole record that recovery once dropped: a new one ended just where it begins."""
    bench = Bench(store, pick)
    room = bench.log_file_size - bench.end % bench.log_file_size - 8
    fitting = [record for record in bench.records if record.is_queued and record.size <= room]
    dropped = pick.random.choice(fitting)
    queue = [slot.number for slot in read_slots(store, (dropped.topic, dropped.queue))]
    time = bench.records[-1].store_time - 1
    stale = replace(dropped, position=bench.end, number=queue[-1] + 1, store_time=time)
    bench.lay(stale)


def next_file_allocated(store: Path, pick: Pick) -> None:
    """The next log file is there, all zeros."""
    bench = Bench(store, pick)
    last = int(log_files(store)[-1].name)
    (store / "commitlog" / f"{last + bench.log_file_size:020}").write_bytes(bytes(bench.log_file_size))


def oldest_files_deleted(store: Path, pick: Pick) -> None:
    """Expire the oldest log files; the consume queues still have the entries of their messages."""
    for file in _files_to_expire(store, pick):
        file.unlink()


def oldest_files_deleted_with_their_queue_files(store: Path, pick: Pick) -> None:
    """Expire the oldest log files, and the queue files without younger entries."""
    expired = _files_to_expire(store, pick)
    start = int(log_files(store)[len(expired)].name)
    for queue in queues_of(store):
        slots = read_slots(store, queue)
        kept = {slot.file for slot in slots if slot.entry.position >= start}
        for file in queue_files(store, queue)[:-1]:
            if str(file.relative_to(store)) not in kept:
                file.unlink()
    for file in expired:
        file.unlink()


def _files_to_expire(store: Path, pick: Pick) -> list[Path]:
    """Some of the oldest log files, but never one that is being written."""
    written = Bench(store, pick).records[-1].position
    full = [file for file in log_files(store) if int(file.name) <= written][:-1]
    assert full, "this store has no log file to expire"
    return full[: pick.random.randrange(1, len(full) + 1)]


# What the next start breaks, in a store that is sound


def empty_files_behind(store: Path, pick: Pick) -> Where:
    """Three files of zeros behind the last one of a queue: a start looks for the end in these alone."""
    queue = Bench(store, pick).user_queue()[-1].queue
    return _with_empty_files(store, read_slots(store, queue)[-1], 3)


def empty_file_behind_a_full_one(store: Path, pick: Pick) -> Where:
    """A file of zeros behind a full one of a queue."""
    bench = Bench(store, pick)
    last = [slots[-1] for queue in queues_of(store) if (slots := bench.slots(queue))]
    full = [slot for slot in last if slot.offset + 20 == (store / slot.file).stat().st_size]
    return _with_empty_files(store, pick.of(full), 1)


def _with_empty_files(store: Path, slot: Slot, many: int) -> Where:
    last = queue_files(store, slot.queue)[-1]
    size = last.stat().st_size
    for at in range(1, many + 1):
        (last.parent / f"{int(last.name) + at * size:020}").write_bytes(bytes(size))
    file, offset = slot.file, slot.offset + 20
    if offset == size:
        file, offset = str((last.parent / f"{int(last.name) + size:020}").relative_to(store)), 0
    return Where("empty files behind a queue's end", "queue", file, offset, 20)


def empty_file_behind_one_with_room(store: Path, pick: Pick) -> None:
    """A file of zeros behind the last one of a queue, which has room: a start deletes it."""
    bench = Bench(store, pick)
    last = [slots[-1] for queue in queues_of(store) if (slots := bench.slots(queue))]
    roomy = [slot for slot in last if slot.offset + 20 < (store / slot.file).stat().st_size]
    _with_empty_files(store, pick.of([slot for slot in roomy if len(queue_files(store, slot.queue)) > 1] or roomy), 1)


Fault = Callable[[Path, Pick], Where]
Change = Callable[[Path, Pick], None]

WRONG_ENTRIES: tuple[Fault, ...] = (
    entry_removed,
    entry_repeated,
    entries_swapped,
    entry_of_wrong_size,
    entry_of_wrong_tag,
    entry_into_the_middle,
    entry_past_the_end,
    entry_of_another_queue,
)
MISSING_ENTRIES: tuple[Fault, ...] = (  # of a clean store: after a crash the broker builds them again
    entry_zeroed,
    queue_emptied_from_here,
    queue_file_cut_short,
    queue_file_missing,
    queue_missing,
)
QUEUE_FAULTS = WRONG_ENTRIES + MISSING_ENTRIES
RECORD_FAULTS: tuple[Fault, ...] = (
    body_flipped,
    wrong_position,
    number_repeated,
    number_left_out,
    wrong_size,
    wrong_magic,
    record_torn,
)
FILE_FAULTS: tuple[Fault, ...] = (  # they need several log files
    blank_zeroed,
    blank_overwritten,
    blank_of_wrong_size,
    log_file_missing,
)
CLEAN_FAULTS: tuple[Fault, ...] = (numbers_start_late, tail_lost)  # they need a clean log that begins at 0
FAULTS = QUEUE_FAULTS + RECORD_FAULTS + FILE_FAULTS + CLEAN_FAULTS

LEGAL: tuple[Change, ...] = (
    tail_torn_in_header,
    tail_torn_in_body,
    tail_torn_in_topic,
    tail_torn_in_properties,
    tail_with_a_hole_in_its_body,
    clock_stepped_back,
    stale_bytes,
    stale_record,
    next_file_allocated,
)
LEGAL_WITH_FILES: tuple[Change, ...] = (  # they need several log files
    oldest_files_deleted,
    oldest_files_deleted_with_their_queue_files,
)


def name_of(value: object) -> str:
    """Return the name of a case in the list of tests."""
    return getattr(value, "__name__", str(value).replace(" ", "-"))
