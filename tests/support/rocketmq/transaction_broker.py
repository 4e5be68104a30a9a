"""A broker and its clients in plain Python: any lawful course of transactions, with the store and log it leaves."""

import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, Literal

from hypothesis import strategies as st

from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import COMMITTED, PREPARED, ROLLED_BACK, Record, host, properties
from tests.support.rocketmq.transactions import (
    CHECKSUM,
    COUNTER,
    GROUP,
    HALF,
    IMMUNITY,
    OP,
    ORIGIN,
    PARK,
    UNMOVED,
    Cursors,
    Line,
    Op,
    counter_of,
    key_of,
    numbers_in,
)

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
        """Write a half; a producer without an answer may send it again with the same key."""
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
        """Park an undecided half, which is never asked about again."""
        record = self._append(replace(half, topic=PARK, properties=self._written(pairs_of(half), again=True)))
        self.parked.append(record)
        return record

    def check(self, *, asks: bool = True) -> list[Record]:
        """One round of the check service: what it put back, and asked the clients about.

        Source: docs/rocketmq-transactions.md#check.
        """
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
        """Lose the memory: decisions without an op, and the progress of the cursors."""
        self.waiting.clear()
        self.half_cursor, self.op_cursor = self.saved

    def stop(self, *, flushes: bool = True) -> None:
        """Stop in order: one more round without back-checks; decisions of the last seconds may get no op."""
        if flushes:
            self.flush_ops()
        self.waiting.clear()
        self.check(asks=False)
        self.save()

    def write(self, room: Path, *, clean: bool = True) -> Path:
        """Write `store/` with its cursors, `broker.conf` and `client.ndjson` into `room`; return the store."""
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
        """Return the halves that each op decides, not yet passed by the round, and the last op of each half."""
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
        """Younger brokers take no decision from a client whose half is immune no longer.

        Source: docs/rocketmq-transactions.md#end-immunity.
        """
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
        """The property string; written again, the same properties come in another order.

        Source: docs/rocketmq.md#properties.
        """
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
