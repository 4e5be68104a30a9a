"""Transactions of RocketMQ stores, read, judged and lived in plain Python: a second opinion beside the checker's.

This page follows `reference/rocketmq-semantics.md`, sections A, D, G and J, and imports nothing from gapless: where
the two disagree, one of them is wrong. The judge is cautious: it knows the codes TX1 to TX14, and whatever has a
lawful explanation it lets pass.
"""

import json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

from hypothesis import strategies as st

from tests.support.stores import (
    COMMITTED,
    PREPARED,
    ROLLED_BACK,
    SCHEDULE_TOPIC,
    Record,
    StoreBuilder,
    host,
    log_files,
    properties,
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
    """How far the check service says it is; None where it never moved that cursor."""

    half: int | None
    op: int | None


UNMOVED = Cursors(None, None)


class Counts(NamedTuple):
    """What the recordings' README counts."""

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
    """Messages that a commit made; whoever sends the commit bits himself has made no final."""
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
    """The broker.conf beside a store, if there is one."""
    file = store.parent / "broker.conf"
    lines = file.read_text().splitlines() if file.exists() else []
    return {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines) if value}


def client_log(store: Path) -> list[Line]:
    """What the clients asked and were answered, if a log of it lies beside the store."""
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
    """How often the half was put back; None where it says nothing of it."""
    counter = record.property_map.get(COUNTER)
    return None if counter is None else int(counter)


def birth_of(record: Record) -> tuple[str, int, bytes]:
    """What tells one transaction from another: sent again, a half has the same key and another time of birth."""
    return key_of(record), record.born_time, record.born_host


def content_of(record: Record, *without: str) -> tuple[object, ...]:
    """What a copy of a record has in common with it: the body, who sent it and when, and the properties."""
    names = {CHECKSUM, *without}
    pairs = {name: value for name, value in record.property_map.items() if name not in names}
    return record.body, record.born_time, record.born_host, record.store_host, tuple(sorted(pairs.items()))


# Judging


class Departure(NamedTuple):
    """What breaks which rule, and where: in the log, or in a file beside it with `position` -1."""

    rule: str
    position: int
    about: str  # the transaction or the half number


def departures(store: Path) -> list[Departure]:
    """All that cannot be explained lawfully; the codes are those of the reference, section G.3.

    SEND and PHANTOM are the rules that the client log adds: what was acknowledged is there as it was sent, and
    nothing is there that nobody sent.
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
        """How often ops name a half; those in other queues speak of other records (reference N6)."""
        return Counter(number for op in self.ops if op.record.queue == 0 for number in op.numbers)

    @cached_property
    def check_max(self) -> int | None:
        """After how many checks a half is parked, if the settings say it."""
        text = self.settings.get("transactionCheckMax")
        return None if text is None else int(text)

    @property
    def complete(self) -> bool:
        """Whether nothing of the log has expired."""
        return self.start == 0

    def covers(self, position: int) -> bool:
        """Whether what was acknowledged there must be there: a running broker's copy may end before it."""
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
    """Whether its parent is there, or may have expired; resumed by hand, it may be the copy of anything."""
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
    """SEND: what was acknowledged lies where the answer said, as it was sent."""
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
    body = (zlib.crc32(record.body) & 0x7FFFFFFF, len(record.body)) == (line["crc"], line["len"])
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
    """TX6 and TX14: as many finals of a half as commits that were asked for, and no fewer than were acknowledged."""
    commits = [line for line in known.lines if line["op"] == "end" and line["decision"] == "commit"]
    asked = Counter(line["phys"] for line in commits)
    answered = Counter(line["phys"] for line in commits if line["result"] == "ok")
    made = Counter(final.prepared_position for final in known.finals)
    for position in asked | made:
        due = answered[position] if known.clean and position >= known.start else 0
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


# Living


Version = Literal["5.5.0", "5.3.3", "4.9.7"]
Answer = Literal["ok", "unknown"]
BROKER = host("127.0.0.1", 10911)
CLIENT = host("127.0.0.1", 34567)


@dataclass
class TransactionBroker:
    """A broker's transactions, and its clients': what it appends, keeps in memory, answers and loses in a crash.

    `half_cursor` and `op_cursor` are what it knows, `saved` is what is in its file. Numbers in `waiting` are
    decided, and no op names them yet.
    """

    version: Version = "5.5.0"
    check_max: int = 3
    timeout: int = 1000  # ms
    op_size: int = 4096  # bytes
    sealed: bool = False  # whether records carry a property CRC
    builder: StoreBuilder = field(default_factory=StoreBuilder)
    halves: list[Record] = field(default_factory=list)  # by number
    ops: list[Op] = field(default_factory=list)  # by number
    waiting: list[int] = field(default_factory=list)
    half_cursor: int | None = None
    op_cursor: int | None = None
    saved: Cursors = UNMOVED
    finals: list[Record] = field(default_factory=list)
    parked: list[Record] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)  # the client log
    sent: int = 0  # how many keys were given

    # What clients ask

    def send(self, topic: str, queue: int = 0, body: bytes = b"plain", sys_flag: int = 0) -> Record:
        """A message without a transaction; the bits that name one may be sent all the same."""
        pairs = {"UNIQ_KEY": self._new_key(), "WAIT": "true", "TAGS": "plain"} | self._added()
        asked = self.now
        record = self._append(Record(topic, body, self._written(pairs), queue, sys_flag=sys_flag, **self._born()))
        self._tell("send", record, asked, "ok", topic=topic, queue=queue)
        return record

    def prepare(
        self,
        topic: str = "orders",
        queue: int = 0,
        body: bytes = b"prepared",
        *,
        key: str | None = None,
        flag: int = 0,
        reconsume_times: int = 0,
        immunity: int | None = None,  # s
        answer: Answer = "ok",
    ) -> Record:
        """A half; whoever heard no answer may send it again with the same key."""
        key = key or self._new_key()
        pairs = {"UNIQ_KEY": key, "TRAN_MSG": "true", "PGROUP": "PG_toy", "WAIT": "true", "KEYS": f"k{self.sent}"}
        pairs |= {} if immunity is None else {IMMUNITY: str(immunity)}
        pairs |= self._added() | ({} if self.version == "4.9.7" else {"__transactionId__": key})
        pairs |= {"REAL_TOPIC": topic, "REAL_QID": str(queue)}
        asked = self.now
        fresh = Record(HALF, body, self._written(pairs), flag=flag, reconsume_times=reconsume_times, **self._born())
        half = self._append(fresh)
        self._tell("half", half, asked, answer, topic=topic, queue=queue)
        return half

    def commit(self, half: Record, *, from_check: bool = False, answer: Answer = "ok") -> Record | None:
        """The final is in the user's queue, and an op is due; None if it came too late for an immune half."""
        asked = self.now
        if self._comes_too_late(half, from_check=from_check):
            self._tell_end(half, "commit", asked, "fail", from_check=from_check)
            return None
        pairs = pairs_of(half)
        if self.version == "5.5.0":
            pairs = {name: value for name, value in pairs.items() if name not in {"REAL_TOPIC", "REAL_QID"}}
        final = self._append(
            replace(
                half,
                topic=half.property_map["REAL_TOPIC"],
                queue=int(half.property_map["REAL_QID"]),
                sys_flag=half.sys_flag | COMMITTED,
                prepared_position=half.position,
                properties=self._written(pairs, again=True),
            )
        )
        self.finals.append(final)
        self._mark(half.number)
        self._tell_end(half, "commit", asked, answer, from_check=from_check)
        return final

    def roll_back(self, half: Record, *, from_check: bool = False, answer: Answer = "ok") -> None:
        """An op is due, and nothing else."""
        asked = self.now
        late = self._comes_too_late(half, from_check=from_check)
        if not late:
            self._mark(half.number)
        self._tell_end(half, "rollback", asked, "fail" if late else answer, from_check=from_check)

    def leave_open(self, half: Record) -> None:
        """The client does not know yet, and is not answered."""
        self._tell_end(half, "unknown", self.now, "none", from_check=True)

    def resume(self, record: Record) -> Record:
        """An operator has it checked again, from the beginning."""
        pairs = pairs_of(record) | {COUNTER: "0"}
        asked = self.now
        copy = replace(record, topic=HALF, queue=0, properties=self._written(pairs, again=True))
        half = self._append(copy)
        place = f"{BROKER.hex()}{record.position:016X}".upper()
        self._log("admin", asked, result="ok", code=0, request=323, ext={"topic": record.topic, "msgId": place})
        return half

    # What the broker does by itself

    def flush_ops(self) -> None:
        """Name what is decided, so many in one op that its body reaches its limit, and all in the end."""
        while self.waiting:
            body = b""
            while self.waiting and len(body) < self.op_size:
                body += f"{self.waiting.pop(0)},".encode()
            self._append_op(body)

    def put_back(self, half: Record) -> Record:
        """The half is appended again with its counter raised, and will be checked."""
        return self._renew(half, {})

    def put_back_immune(self, half: Record) -> Record:
        """The same for a half that is immune still: it says which version was the first."""
        return self._renew(half, {ORIGIN: half.property_map.get(ORIGIN, str(half.number)), "WAIT": "false"})

    def park(self, half: Record) -> Record:
        """Nobody decided it, and nobody will be asked any more."""
        record = self._append(replace(half, topic=PARK, properties=self._written(pairs_of(half), again=True)))
        self.parked.append(record)
        return record

    def check(self, *, asks: bool = True) -> list[Record]:
        """One round of the check service: what it put back, and asked the clients about (reference D.4)."""
        start, first = self.now, self.half_cursor or 0
        still_open, whose = self._needed_ops(first)
        done: set[int] = set()
        asked, number = [], first
        while number < len(self.halves):
            half = self.halves[number]
            if number in whose:
                self._settle(number, whose, still_open, done)
            elif (counter_of(half) or 0) >= self.check_max:
                self.park(half)
            elif half.store_time >= start:
                break
            elif self._is_immune(half, start):
                origin = half.property_map.get(ORIGIN)
                if origin is not None and int(origin) in whose:
                    done.add(whose.pop(int(origin)))
                else:
                    self.put_back_immune(half)
            elif IMMUNITY not in half.property_map and start - half.born_time <= self.timeout:
                break
            else:
                asked.append(self._put_back_and_ask(half, asks=asks))
            number += 1
        self._move_cursors(number, done | {op for op, numbers in still_open.items() if not numbers})
        return asked

    def wait(self, time: int) -> None:
        """Let `time` ms pass."""
        self.builder.now += time

    def save(self) -> None:
        """The cursors reach their file."""
        self.saved = Cursors(self.half_cursor, self.op_cursor)

    def crash(self) -> None:
        """What was in memory is lost: decisions without an op, and how far the cursors had come."""
        self.waiting.clear()
        self.half_cursor, self.op_cursor = self.saved

    def stop(self, *, flushes: bool = True) -> None:
        """A stop in order: one more round that asks nobody; decisions of the last seconds may get no op even so."""
        if flushes:
            self.flush_ops()
        self.waiting.clear()
        self.check(asks=False)
        self.save()

    def write(self, room: Path, *, clean: bool = True) -> Path:
        """Lay `store/` with its cursors, `broker.conf` and `client.ndjson` into `room`, and tell where the store is."""
        if clean:
            self.save()
        store = self.builder.write(room / "store", clean=clean)
        (store / "config" / "consumerOffset.json").write_text(self._cursors_as_written())
        conf = {"transactionCheckMax": self.check_max, "transactionOpMsgMaxSize": self.op_size}
        (room / "broker.conf").write_text("".join(f"{name}={value}\n" for name, value in conf.items()))
        lines = [json.dumps(line, separators=(",", ":")) + "\n" for line in self.lines]
        (room / "client.ndjson").write_text("".join(lines))
        return store

    def expire(self, files: int) -> None:
        """Leave out at most so many of the oldest log files: none that the cursors have not passed."""
        needed = [self.builder.records[-1].position] if self.builder.records else [self.builder.end]
        half, op = (cursor or 0 for cursor in self.saved)
        needed += [record.position for record in self.halves[half : half + 1]]
        needed += [found.record.position for found in self.ops[op : op + 1]]
        start = min(self.builder.log, default=0)
        self.builder.expired = max(min(files, (min(needed) - start) // self.builder.log_file_size), 0)

    # How it does so

    @property
    def now(self) -> int:
        """The clock of all, in ms."""
        return self.builder.now

    def _append(self, record: Record) -> Record:
        record = self.builder.append(record)
        if record.topic == HALF:
            assert record.number == len(self.halves)
            self.halves.append(record)
        return record

    def _append_op(self, body: bytes) -> None:
        written = self._written({"WAIT": "true", "TAGS": "d"})
        op = self._append(Record(OP, body, written, born_time=self.now, born_host=BROKER, store_host=BROKER))
        self.ops.append(Op(op, numbers_in(op)))

    def _mark(self, number: int) -> None:
        """Old brokers write an op for every decision, younger ones collect some."""
        if self.version == "4.9.7":
            self._append_op(str(number).encode())
        else:
            self.waiting.append(number)

    def _renew(self, half: Record, added: dict[str, str]) -> Record:
        pairs = pairs_of(half) | {COUNTER: str((counter_of(half) or 0) + 1)} | added
        return self._append(replace(half, flag=0, reconsume_times=0, properties=self._written(pairs, again=True)))

    def _put_back_and_ask(self, half: Record, *, asks: bool) -> Record:
        renewed = self.put_back(half)
        if asks:
            self._tell_check(renewed)
        return renewed

    def _needed_ops(self, first: int) -> tuple[dict[int, set[int]], dict[int, int]]:
        """The halves that each op decides and the round has not passed, and the last op that decides each half."""
        still_open: dict[int, set[int]] = {}
        whose: dict[int, int] = {}
        for op in self.ops[self.op_cursor or 0 :]:
            still_open[op.record.number] = {number for number in op.numbers if number >= first}
            whose |= dict.fromkeys(still_open[op.record.number], op.record.number)
        return still_open, whose

    def _settle(self, number: int, whose: dict[int, int], still_open: dict[int, set[int]], done: set[int]) -> None:
        op = whose.pop(number)
        still_open[op].discard(number)
        if not still_open[op]:
            done.add(op)

    def _is_immune(self, half: Record, now: int) -> bool:
        seconds = half.property_map.get(IMMUNITY)
        return seconds is not None and now - half.born_time <= int(seconds) * 1000

    def _move_cursors(self, number: int, done: set[int]) -> None:
        """An op is passed when all before it are; a cursor that never moved stays unwritten."""
        if number != (self.half_cursor or 0):
            self.half_cursor = number
        op = self.op_cursor or 0
        while op in done:
            op += 1
        if op != (self.op_cursor or 0):
            self.op_cursor = op

    def _comes_too_late(self, half: Record, *, from_check: bool) -> bool:
        """Younger brokers take no decision from a client whose half is immune no longer (reference D.2)."""
        seconds = half.property_map.get(IMMUNITY)
        if seconds is None or from_check or self.version == "4.9.7":
            return False
        return self.now - half.born_time > max(int(seconds) * 1000, self.timeout)

    def _new_key(self) -> str:
        self.sent += 1
        return f"7F0000010A{self.sent:022X}"

    def _added(self) -> dict[str, str]:
        """Properties that the broker adds."""
        region = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
        return {"CLUSTER": "toys"} | ({} if self.version == "4.9.7" else region)

    def _born(self) -> dict[str, Any]:
        return {"born_time": self.now, "born_host": CLIENT, "store_host": BROKER}

    def _written(self, pairs: dict[str, str], *, again: bool = False) -> bytes:
        """The property string; written again, the same properties come in another order (reference A.2)."""
        pairs = dict(reversed(pairs.items())) if again else pairs
        text = properties(pairs, sealed=self.sealed)
        return text.removesuffix(b"\x02") if self.version == "4.9.7" else text

    # The clients' log

    def _log(self, kind: str, asked: int, **what: Any) -> None:
        line = {"op": kind, "t0": float(asked), "t1": self.now + 0.5, "client": "c0"} | what
        self.lines.append(line)

    def _tell(self, kind: str, record: Record, asked: int, answer: Answer, *, topic: str, queue: int) -> None:
        found = {"result": answer} | ({"code": 0} if answer == "ok" else {}) | {"topic": topic, "queue": queue}
        crc = zlib.crc32(record.body) & 0x7FFFFFFF
        found |= {"key": f"n{self.sent}", "len": len(record.body), "crc": crc}
        found |= {"sysflag": PREPARED if kind == "half" else record.sys_flag, "uniq": key_of(record)}
        found |= {"qoff": record.number, "phys": record.position} if answer == "ok" else {}
        self._log(kind, asked, **found)

    def _tell_end(self, half: Record, decision: str, asked: int, answer: str, *, from_check: bool) -> None:
        codes: dict[str, Line] = {"ok": {"code": 0}, "fail": {"code": 604, "remark": "not set any response code"}}
        place = {"uniq": key_of(half), "half": half.number, "phys": half.position}
        self._log(
            "end", asked, result=answer, **codes.get(answer, {}), **place, decision=decision, from_check=from_check
        )

    def _tell_check(self, half: Record) -> None:
        found = half.property_map
        place = {"half": half.number, "phys": half.position, "uniq": key_of(half), "times": found[COUNTER]}
        where = {"topic": found["REAL_TOPIC"], "queue": int(found["REAL_QID"])}
        self.lines.append({"op": "check", "t0": self.now + 0.5, "client": "c0"} | place | where)

    def _cursors_as_written(self) -> str:
        """The offsets as fastjson writes them: keys that are integers stand without quotes."""
        named = {f"{OP}@{GROUP}": self.saved.op, f"{HALF}@{GROUP}": self.saved.half, "orders@GROUP_A": 17}
        gap = "" if self.version == "4.9.7" else "\n\t\t\t"
        rows = [f'\t\t"{name}":{{{gap}0:{at}\n\t\t}}' for name, at in named.items() if at is not None]
        return '{\n\t"offsetTable":{\n' + ",\n".join(rows) + "\n\t}\n}"


def pairs_of(record: Record) -> dict[str, str]:
    """The properties that a copy takes over: each record has a checksum of its own."""
    return {name: value for name, value in record.property_map.items() if name != CHECKSUM}


# Lawful lives of every kind

Deed = Callable[[TransactionBroker, int, int], None]
TOPICS = ("orders", "orders", "payments", "créances")


def _prepares(broker: TransactionBroker, one: int, two: int) -> None:
    broker.prepare(TOPICS[one % 4], two % 3, b"x" * (one % 90), flag=one % 7, reconsume_times=two % 2)


def _prepares_immune(broker: TransactionBroker, one: int, two: int) -> None:
    broker.prepare(TOPICS[one % 4], two % 3, b"y" * (one % 90), immunity=one % 4)


def _sends_again(broker: TransactionBroker, one: int, two: int) -> None:
    """The answer did not come, and the client sends the half again; both are in the log."""
    first = broker.prepare("orders", two % 3, b"again", answer="unknown")
    broker.wait(one % 50)
    second = broker.prepare("orders", two % 3, b"again", key=key_of(first))
    if two % 2:
        broker.commit(second)


def _sends(broker: TransactionBroker, one: int, two: int) -> None:
    broker.send(TOPICS[one % 4], two % 3, b"z" * (two % 90))


def _sends_raw_bits(broker: TransactionBroker, one: int, two: int) -> None:
    broker.send(TOPICS[one % 4], two % 3, b"raw", (PREPARED, COMMITTED, ROLLED_BACK)[one % 3])


def _commits(broker: TransactionBroker, one: int, two: int) -> None:
    """Any version of any half, decided or not."""
    if broker.halves:
        broker.commit(broker.halves[-1 - one % len(broker.halves)], answer=_answer(two))


def _rolls_back(broker: TransactionBroker, one: int, two: int) -> None:
    if broker.halves:
        broker.roll_back(broker.halves[-1 - one % len(broker.halves)], answer=_answer(two))


def _contradicts_itself(broker: TransactionBroker, one: int, two: int) -> None:
    _rolls_back(broker, one, two)
    _commits(broker, one, two)


def _answer(choice: int) -> Answer:
    return "unknown" if choice % 5 == 0 else "ok"


def _waits(broker: TransactionBroker, one: int, two: int) -> None:
    broker.wait(300 * (one % 12) + two % 7)


def _checks(broker: TransactionBroker, one: int, two: int) -> None:
    """A round; some of the clients that are asked decide, some do not know yet."""
    broker.wait(two % 2 * 1100)
    for nth, half in enumerate(broker.check()):
        match (one + nth) % 4:
            case 0:
                broker.commit(half, from_check=True)
            case 1:
                broker.roll_back(half, from_check=True)
            case 2:
                broker.leave_open(half)
            case _:
                pass


def _flushes_ops(broker: TransactionBroker, one: int, two: int) -> None:  # noqa: ARG001 - a deed like the others
    broker.flush_ops()


def _saves(broker: TransactionBroker, one: int, two: int) -> None:  # noqa: ARG001 - a deed like the others
    broker.save()


def _crashes(broker: TransactionBroker, one: int, two: int) -> None:  # noqa: ARG001 - a deed like the others
    broker.crash()


def _restarts(broker: TransactionBroker, one: int, two: int) -> None:  # noqa: ARG001 - a deed like the others
    broker.stop(flushes=bool(one % 2))


def _decides_what_is_parked(broker: TransactionBroker, one: int, two: int) -> None:
    """Parked is not decided: the last version can be committed still, or checked again."""
    if broker.parked:
        record = broker.parked[one % len(broker.parked)]
        if two % 2:
            broker.resume(record)
        else:
            broker.commit(next(half for half in reversed(broker.halves) if key_of(half) == key_of(record)))


TAME: tuple[Deed, ...] = (
    _prepares, _prepares, _prepares, _prepares, _commits, _commits, _rolls_back,
    _sends, _waits, _checks, _checks, _flushes_ops, _flushes_ops, _saves,
)  # fmt: skip
ODD: tuple[Deed, ...] = (
    _prepares_immune, _sends_again, _sends_raw_bits, _contradicts_itself,
    _decides_what_is_parked, _crashes, _restarts,
)  # fmt: skip
VERSIONS: tuple[Version, ...] = ("5.5.0", "5.3.3", "4.9.7")


def live(broker: TransactionBroker, deeds: Iterable[tuple[Deed, int, int]]) -> TransactionBroker:
    for deed, one, two in deeds:
        deed(broker, one, two)
        broker.wait(1)
    return broker


@st.composite
def brokers(draw: st.DrawFn) -> tuple[TransactionBroker, bool]:
    """Any lawful life, ready to be written, and whether it ended in order; its oldest log files may have expired."""
    broker = TransactionBroker(
        version=draw(st.sampled_from(VERSIONS)),
        check_max=draw(st.integers(1, 3)),
        op_size=draw(st.sampled_from((4096, 4096, 5))),
        sealed=draw(st.booleans()),
        builder=StoreBuilder(log_file_size=draw(st.sampled_from((2048, 16384))), queue_file_size=200),
    )
    broker.sealed &= broker.version != "4.9.7"
    choice = st.integers(0, 99)
    every = st.tuples(st.sampled_from(TAME + ODD), choice, choice)
    tame = st.tuples(st.sampled_from(TAME), choice, choice)
    least = draw(st.sampled_from((1, 20, 40)))
    live(broker, draw(st.lists(st.one_of(tame, every), min_size=least, max_size=least + 20)))
    clean = draw(st.booleans())
    if clean:
        broker.stop(flushes=draw(st.booleans()))
    else:
        broker.crash()
    broker.expire(draw(st.sampled_from((0, 0, 1, 2, 5, 10))))
    return broker, clean


def lived(seed: int, count: int = 150, *, odd: bool = True, version: Version = "5.5.0") -> TransactionBroker:
    """A busy life that is the same for the same seed; it ends in order, with some halves open."""
    choose = Random(seed)
    broker = TransactionBroker(version, builder=StoreBuilder(log_file_size=16384, queue_file_size=2000))
    deeds = TAME + ODD if odd else TAME
    live(broker, [(choose.choice(deeds), choose.randrange(100), choose.randrange(100)) for _ in range(count)])
    for number in range(6):
        broker.prepare("orders", number % 3, b"open to the end")
    broker.stop()
    return broker
