"""Transactions of RocketMQ stores, read and judged in plain Python: a second opinion on the checker's.

This page follows docs/rocketmq.md and docs/rocketmq-transactions.md, and imports nothing from gapless: where the two
disagree, one of them is wrong. The judge is cautious: it knows the codes TX1 to TX14, and accepts whatever has a legal
explanation.
"""

import json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.rocketmq.stores import (
    COMMITTED,
    SCHEDULE_TOPIC,
    Record,
    log_files,
    read_log,
)

HALF, OP, PARK = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC"
GROUP = "CID_RMQ_SYS_TRANS"
COUNTER, ORIGIN, IMMUNITY = "TRANSACTION_CHECK_TIMES", "TRAN_PREPARED_QUEUE_OFFSET", "CHECK_IMMUNITY_TIME_IN_SECONDS"
CHECKSUM = "__CRC32#"

Line = dict[str, Any]


# Reading


class Op(NamedTuple):
    """An op record, and the half numbers that it names."""

    record: Record
    numbers: tuple[int, ...]


class Cursors(NamedTuple):
    """The check service's own cursors; None if it never moved that cursor."""

    half: int | None
    op: int | None


UNMOVED = Cursors(None, None)


class Counts(NamedTuple):
    """Counts as in the recordings' README."""

    records: int
    halves: int
    renewals: int
    finals: int
    ops: int
    marks: int
    parked: int


def halves(store: Path) -> list[Record]:
    """Every version of every half that is still in the log."""
    return [record for record in read_log(store) if record.topic == HALF]


def finals(store: Path) -> list[Record]:
    """Return messages that a commit made; a client that sends the commit bits itself makes no final."""
    return [record for record in read_log(store) if is_final(record)]


def ops(store: Path) -> list[Op]:
    return [Op(record, numbers_in(record)) for record in read_log(store) if record.topic == OP]


def parked(store: Path) -> list[Record]:
    return [record for record in read_log(store) if record.topic == PARK]


def counts(store: Path) -> Counts:
    renewals = sum((counter_of(half) or 0) > 0 for half in halves(store))
    marks = sum(len(op.numbers) for op in ops(store))
    found = (len(halves(store)), renewals, len(finals(store)), len(ops(store)), marks, len(parked(store)))
    return Counts(len(read_log(store)), *found)


def cursors(store: Path) -> Cursors:
    """The cursors of the check service, wherever this broker keeps them."""
    file = cursor_file(store)
    table = read_fastjson(file.read_text())["offsetTable"] if file else {}
    half, op = (table.get(f"{topic}@{GROUP}", {}).get("0") for topic in (HALF, OP))
    return Cursors(half, op)


def cursor_file(store: Path) -> Path | None:
    """The file that holds them: with multi-dispatch queues it has another name."""
    names = ("lmqConsumerOffset.json", "consumerOffset.json")
    return next((store / "config" / name for name in names if (store / "config" / name).exists()), None)


def read_fastjson(text: str) -> Any:
    """JSON whose integer keys may stand without quotes, as fastjson writes them."""
    in_quotes_or_key = r'"(?:[^"\\]|\\.)*"|(?P<key>-?\d+)(?=\s*:)'
    return json.loads(re.sub(in_quotes_or_key, lambda found: f'"{found[0]}"' if found["key"] else found[0], text))


def settings_of(store: Path) -> dict[str, str]:
    """Read the broker.conf next to a store, if there is one."""
    file = store.parent / "broker.conf"
    lines = file.read_text().splitlines() if file.exists() else []
    return {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines) if value}


def client_log(store: Path) -> list[Line]:
    """Read the clients' requests and answers, if a log of them lies next to the store."""
    file = store.parent / "client.ndjson"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def is_final(record: Record) -> bool:
    return record.transaction == COMMITTED and record.property_map.get("TRAN_MSG") == "true"


def numbers_in(op: Record) -> tuple[int, ...]:
    return tuple(int(number) for number in op.body.decode().split(",") if number)


def key_of(record: Record) -> str:
    """The key that all versions of a transaction share."""
    return record.property_map.get("UNIQ_KEY", "")


def counter_of(record: Record) -> int | None:
    """Return how often the half was put back; None if it has no such property."""
    counter = record.property_map.get(COUNTER)
    return None if counter is None else int(counter)


def birth_of(record: Record) -> tuple[str, int, bytes]:
    """Return the identity of a transaction: sent again, a half has the same key and another time of birth."""
    return key_of(record), record.born_time, record.born_host


def content_of(record: Record, *without: str) -> tuple[object, ...]:
    """Return the fields that a copy of a record shares with it: body, sender, time, and properties."""
    names = {CHECKSUM, *without}
    pairs = {name: value for name, value in record.property_map.items() if name not in names}
    return record.body, record.born_time, record.born_host, record.store_host, tuple(sorted(pairs.items()))


# Judging


class Departure(NamedTuple):
    """A broken rule with its place: in the log, or in another file with `position` -1."""

    rule: str
    position: int
    about: str  # the transaction or the half number


def departures(store: Path) -> list[Departure]:
    """Return all that has no legal explanation; the codes are those of docs/rocketmq-transactions.md#invariants.

    SEND and PHANTOM are the rules that the client log adds: an acknowledged message is there as it was sent, and no
    message is there that was not sent.
    """
    known = Known(store)
    rules = (_halves, _ops, _finals, _renewals, _parked, _forgotten, _cursors)
    found = [departure for rule in rules for departure in rule(known)]
    if known.lines:
        promised = (_acknowledged, _phantoms, _decisions, _marks_asked_for, _back_checks)
        found += [departure for rule in promised for departure in rule(known)]
    return found


class Known:
    """A store laid open for the judge."""

    def __init__(self, store: Path) -> None:
        self.records = read_log(store)
        self.lines = client_log(store)
        self.cursors = cursors(store)
        self.clean = not (store / "abort").exists()
        self.start = min((int(file.name) for file in log_files(store)), default=0)
        self.halves = [record for record in self.records if record.topic == HALF]
        self.finals = [record for record in self.records if is_final(record)]
        self.ops = [Op(record, numbers_in(record)) for record in self.records if record.topic == OP]
        self.parked = [record for record in self.records if record.topic == PARK]
        self.settings = settings_of(store)

    @cached_property
    def at(self) -> dict[int, Record]:
        """Records by position."""
        return {record.position: record for record in self.records}

    @cached_property
    def numbered(self) -> dict[int, Record]:
        """Halves by number."""
        return {half.number: half for half in self.halves}

    @cached_property
    def versions(self) -> dict[str, list[Record]]:
        """Halves by key, eldest first."""
        found = defaultdict(list)
        for half in self.halves:
            found[key_of(half)].append(half)
        return found

    @cached_property
    def marked(self) -> Counter[int]:
        """Count how often ops name a half; those in other queues name other records.

        Source: docs/rocketmq-transactions.md#n6.
        """
        return Counter(number for op in self.ops if op.record.queue == 0 for number in op.numbers)

    @cached_property
    def check_max(self) -> int | None:
        """After how many checks a half is parked, if the settings say it."""
        text = self.settings.get("transactionCheckMax")
        return None if text is None else int(text)

    @property
    def complete(self) -> bool:
        """True if nothing of the log has expired."""
        return self.start == 0

    def covers(self, position: int) -> bool:
        """True if an acknowledged message must be there: a running broker's copy may end before it."""
        end = self.records[-1].end if self.records else self.start
        return self.start <= position and (self.clean or position < end)

    def before(self, record: Record) -> list[Record]:
        """The earlier versions of its transaction."""
        earlier = (half for half in self.versions[key_of(record)] if half.position < record.position)
        return [half for half in earlier if birth_of(half) == birth_of(record)]


def _halves(known: Known) -> Iterator[Departure]:
    """TX1: a half is a message put aside, with its way back."""
    for half in known.halves:
        found = half.property_map
        named = {"PGROUP", "REAL_TOPIC"} <= found.keys() and found.get("REAL_QID", "").isdecimal()
        aside = half.queue == half.transaction == half.prepared_position == 0
        if not (named and aside and found.get("TRAN_MSG") == "true"):
            yield Departure("TX1", half.position, key_of(half))


def _ops(known: Known) -> Iterator[Departure]:
    """TX2: an op names earlier halves, and is no longer than one number beyond its limit."""
    first = known.halves[0].number if known.halves else None
    limit = known.settings.get("transactionOpMsgMaxSize")
    for record, numbers in known.ops:
        longest = max((len(str(number)) + 1 for number in numbers), default=0)
        formed = re.fullmatch(rb"(\d+,)+|\d+", record.body) and record.property_map.get("TAGS") == "d"
        too_long = limit is not None and len(record.body) >= int(limit) + longest
        if not formed or too_long:
            yield Departure("TX2", record.position, "")
        for number in numbers if record.queue == 0 else ():
            half = known.numbered.get(number)
            expired = not known.complete and (first is None or number < first)
            if not expired and (half is None or half.position > record.position):
                yield Departure("TX2", record.position, str(number))


def _finals(known: Known) -> Iterator[Departure]:
    """TX3: a final is its half, in the queue that the half was meant for."""
    for final in known.finals:
        half = known.at.get(final.prepared_position)
        if known.start <= final.prepared_position and not (half and _is_final_of(final, half)):
            yield Departure("TX3", final.position, key_of(final))


def _is_final_of(final: Record, half: Record) -> bool:
    aims = ("REAL_TOPIC", "REAL_QID")
    aimed = final.topic, str(final.queue)
    same = content_of(final) in (content_of(half), content_of(half, *aims))
    flags = (final.flag, final.reconsume_times, final.sys_flag) == (
        half.flag, half.reconsume_times, half.sys_flag | COMMITTED,
    )  # fmt: skip
    at_its_place = aimed == tuple(half.property_map.get(name) for name in aims)
    return half.topic == HALF and half.position < final.position and same and flags and at_its_place


def _renewals(known: Known) -> Iterator[Departure]:
    """TX7: a half that was put back is the one before it, and its counter is one higher."""
    for half in known.halves:
        counter = counter_of(half)
        if counter is None:
            continue
        fresh = half.flag == half.reconsume_times == 0 or counter == 0
        allowed = known.check_max is None or counter <= known.check_max
        if not (fresh and allowed and _has_parent(half, counter, known)):
            yield Departure("TX7", half.position, key_of(half))


def _has_parent(half: Record, counter: int, known: Known) -> bool:
    """True if its parent is there, or may have expired; resumed by hand, it may be the copy of anything."""
    if counter == 0:
        copied = (record for record in known.records if record.position < half.position)
        return not known.complete or any(_is_copy(half, record) for record in copied)
    parents = [record for record in known.before(half) if (counter_of(record) or 0) == counter - 1]
    return (not known.complete and not parents) or any(_is_copy(half, parent) for parent in parents)


def _is_copy(copy: Record, original: Record) -> bool:
    volatile = (COUNTER, ORIGIN, "WAIT")
    return content_of(copy, *volatile) == content_of(original, *volatile)


def _parked(known: Known) -> Iterator[Departure]:
    """TX8: what is parked is the copy of a half, after its last check."""
    for record in known.parked:
        counter = counter_of(record) or 0
        originals = [half for half in known.before(record) if (counter_of(half) or 0) == counter]
        there = (not known.complete and not originals) or any(_is_copy(record, half) for half in originals)
        early = known.check_max is not None and counter < known.check_max
        if not there or early or record.queue != 0:
            yield Departure("TX8", record.position, key_of(record))


def _forgotten(known: Known) -> Iterator[Departure]:
    """TX9: below the half cursor, every half is decided, put back or parked."""
    children = {(birth_of(half), counter_of(half) or 0): half.position for half in known.halves}
    rests = {(birth_of(record), counter_of(record) or 0) for record in known.parked}
    for half in known.halves:
        birth, counter = birth_of(half), counter_of(half) or 0
        origin = half.property_map.get(ORIGIN)
        if (
            half.number < (known.cursors.half or 0)
            and not known.marked[half.number]
            and children.get((birth, counter + 1), -1) < half.position
            and (birth, counter) not in rests
            and not (origin is not None and known.marked[int(origin)])
        ):
            yield Departure("TX9", half.position, key_of(half))


def _cursors(known: Known) -> Iterator[Departure]:
    """TX11: a cursor ends where its queue ends; TX10: behind an op all of whose halves are behind the other."""
    half, op = (cursor or 0 for cursor in known.cursors)
    if known.halves and half > known.halves[-1].number + 1:
        yield Departure("TX11", -1, f"half {half}")
    queue = [op for op in known.ops if op.record.queue == 0]
    if queue and op > queue[-1].record.number + 1:
        yield Departure("TX11", -1, f"op {op}")
    immune = any(IMMUNITY in record.property_map for record in known.halves)
    if known.clean and not immune:
        passed = [max(one.numbers) for one in queue if one.record.number < op]
        if passed and max(passed) >= half:
            yield Departure("TX10", -1, f"half {max(passed)}")


# Judging with the clients' word


def _acknowledged(known: Known) -> Iterator[Departure]:
    """Yield breaches of SEND: an acknowledged message lies at the answered place, as it was sent."""
    for line in known.lines:
        if line["op"] in {"send", "half"} and line["result"] == "ok" and known.covers(line["phys"]):
            record = known.at.get(line["phys"])
            if record is None or not _is_what_was_sent(record, line):
                yield Departure("SEND", line["phys"], line["uniq"])
        if line["op"] == "batch" and line["result"] == "ok":
            for position, key in zip(line["phys"], line["uniqs"], strict=True):
                if known.covers(position) and (position not in known.at or key_of(known.at[position]) != key):
                    yield Departure("SEND", position, key)


def _is_what_was_sent(record: Record, line: Line) -> bool:
    body = (zlib.crc32(record.body) & 0x7FFFFFFF, len(record.body)) == (line["crc"] & 0x7FFFFFFF, line["len"])
    found = record.property_map
    sent_to = (record.topic, str(record.queue))
    if record.topic in {HALF, SCHEDULE_TOPIC}:
        sent_to = (found.get("REAL_TOPIC", ""), found.get("REAL_QID", ""))
    there = sent_to in ((line["topic"], str(line["queue"])), (HALF, "0"))  # a delayed half comes to be one later
    return body and there and record.number == line["qoff"] and key_of(record) == line["uniq"]


def _phantoms(known: Known) -> Iterator[Departure]:
    """PHANTOM: whatever carries a client's key was sent by one; brokers give keys to messages of their own topics."""
    keys = {line["uniq"] for line in known.lines if line["op"] in {"send", "half"}}
    keys |= {key for line in known.lines if line["op"] == "batch" for key in line["uniqs"]}
    for record in known.records:
        if key_of(record) and key_of(record) not in keys and not record.topic.startswith("rmq_sys_"):
            yield Departure("PHANTOM", record.position, key_of(record))


def _decisions(known: Known) -> Iterator[Departure]:
    """TX6 and TX14: no more finals of a half than commits that were asked for, and one where one was acknowledged.

    RocketMQ writes one for every commit that it acknowledges. A broker that knows of the first needs no second, and
    consumers do not, either.
    """
    commits = [line for line in known.lines if line["op"] == "end" and line["decision"] == "commit"]
    asked = Counter(line["phys"] for line in commits)
    answered = Counter(line["phys"] for line in commits if line["result"] == "ok")
    made = Counter(final.prepared_position for final in known.finals)
    for position in asked | made:
        due = min(answered[position], 1) if known.clean and position >= known.start else 0
        if not due <= made[position] <= asked[position]:
            half = known.at.get(position)
            yield Departure("TX6", position, key_of(half) if half else "")


def _marks_asked_for(known: Known) -> Iterator[Departure]:
    """TX5: a half is named by no more ops than decisions were asked for."""
    asked = Counter(line["half"] for line in known.lines if line["op"] == "end" and line["decision"] != "unknown")
    for number, count in known.marked.items():
        if count > asked[number]:
            half = known.numbered.get(number)
            yield Departure("TX5", half.position if half else -1, str(number))


def _back_checks(known: Known) -> Iterator[Departure]:
    """TX12: a client was asked about a version that was put back."""
    for line in known.lines:
        if line["op"] == "check" and line["phys"] >= known.start:
            half = known.numbered.get(line["half"])
            named = half and (half.position, key_of(half)) == (line["phys"], line["uniq"])
            if half is None or not named or not counter_of(half):
                yield Departure("TX12", line["phys"], line["uniq"])
