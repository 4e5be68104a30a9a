"""Faults in the transactions of a store, one at a time; `damage.py` does the same for logs.

Each function of `FAULTS` changes records where they lie, to others of the same size whose checksums are right, or
edits other files. So every rule of the log and of its queues still holds, and only transactions tell
that something is wrong. It says which record it changed, and where else a checker may rightly point.

Each function of `LEGAL` does something that looks like a fault and is none. Faults that only the clients' word
brings to light need a `client.ndjson` beside the store; the others are told apart best without one.
"""

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.rocketmq.damage import Bench, Pick, Spot
from tests.support.rocketmq.stores import COMMITTED, Record
from tests.support.rocketmq.transactions import (
    COUNTER,
    GROUP,
    HALF,
    OP,
    ORIGIN,
    Known,
    Line,
    birth_of,
    counter_of,
    cursor_file,
    key_of,
    numbers_in,
)

CLIENT_LOG = "client.ndjson"


class Span(NamedTuple):
    """A part of a file: `length` bytes from `offset` of `file`, a path relative to the store.

    The client log lies next to the store.
    """

    file: str
    offset: int
    length: int


@dataclass(frozen=True)
class TransactionFault:
    """One fault, the code of docs/rocketmq-transactions.md#invariants that it breaks, and its places.

    Any of `places` will do; the first of them is the one that was changed. `about` is the key of the transaction or the
    number of the half.
    """

    label: str
    rule: str
    places: tuple[Span, ...]
    about: str


@dataclass(frozen=True)
class Mark:
    """A half number in an op: the nth of its body."""

    file: str
    op: Record
    nth: int
    number: int


@dataclass(frozen=True)
class LoggedLine:
    """A line of the client log."""

    file: str
    nth: int
    line: Line


class TransactionBench(Bench):
    """A store with transactions laid open."""

    @cached_property
    def known(self) -> Known:
        """The transactions before the damage."""
        return Known(self.store)

    # What there is

    def spots_of(self, records: Iterable[Record]) -> list[Spot]:
        """Records and their places, to choose from."""
        return [self.spot(record) for record in records]

    def marks(self) -> list[Mark]:
        """Every half number in every op."""
        ops = [(self.spot(op.record).file, op) for op in self.known.ops if op.record.queue == 0]
        return [Mark(file, op.record, *named) for file, op in ops for named in enumerate(op.numbers)]

    def lines_of(self, *kinds: str, **what: Any) -> list[LoggedLine]:
        """The client's lines of some kinds that say `what`."""
        return [
            LoggedLine(CLIENT_LOG, nth, line)
            for nth, line in enumerate(self.known.lines)
            if line["op"] in kinds and what.items() <= line.items()
        ]

    def has_one_fate(self, half: Record) -> bool:
        """True if exactly one thing below the half cursor settles it."""
        origin = half.property_map.get(ORIGIN)
        fates = self.known.marked[half.number] + len(self.children(half)) + len(self.rests(half))
        fates += self.known.marked[int(origin)] if origin else 0
        return fates == 1 and half.number < (self.known.cursors.half or 0)

    def children(self, half: Record) -> list[Record]:
        """Return the records that it was put back as, on all branches."""
        same = [child for child in self.known.versions[key_of(half)] if birth_of(child) == birth_of(half)]
        later = [child for child in same if child.position > half.position]
        return [child for child in later if counter_of(child) == (counter_of(half) or 0) + 1]

    def rests(self, half: Record) -> list[Record]:
        """Return the records that it was parked as."""
        same = birth_of(half), counter_of(half)
        return [record for record in self.known.parked if (birth_of(record), counter_of(record)) == same]

    def finals(self, half: Record) -> list[Record]:
        """Return the records that it was committed as."""
        return [final for final in self.known.finals if final.prepared_position == half.position]

    def leaves(self) -> list[Record]:
        """Renewals that were neither put back again nor parked."""
        renewals = [half for half in self.known.halves if (counter_of(half) or 0) > 0]
        return [half for half in renewals if not self.children(half) and not self.rests(half)]

    def parents(self, half: Record) -> list[Record]:
        """Return the records that it may have been put back from."""
        counter = (counter_of(half) or 0) - 1
        return [parent for parent in self.known.before(half) if (counter_of(parent) or 0) == counter]

    # Where it lies

    def spans(self, *records: Record) -> tuple[Span, ...]:
        """Return the places of records."""
        return tuple(Span(spot.file, spot.offset, spot.length) for spot in self.spots_of(records))

    def span_at(self, position: int) -> Span:
        """One byte of the log, be there such a file or not."""
        offset = position % self.log_file_size
        return Span(f"commitlog/{position - offset:020}", offset, 1)

    @property
    def cursor_span(self) -> Span:
        """The file of the cursors."""
        return Span(str(self.cursor_file.relative_to(self.store)), 0, self.cursor_file.stat().st_size)

    @property
    def cursor_file(self) -> Path:
        """Wherever this broker keeps it."""
        file = cursor_file(self.store)
        assert file is not None, "this store has no cursors"
        return file

    @property
    def client_span(self) -> Span:
        """The client log."""
        return Span(CLIENT_LOG, 0, (self.store.parent / CLIENT_LOG).stat().st_size)

    # How to change it

    def turn(self, record: Record, **changes: Any) -> Record:
        """Make it another record of the same size, at the same place."""
        changed = replace(record, **changes)
        assert changed.size == record.size, "the records behind would move"
        self.lay(changed)
        return changed

    def name_instead(self, mark: Mark, number: int) -> None:
        """Let an op name another half."""
        names = mark.op.body.split(b",")
        names[mark.nth] = str(number).encode()
        self.turn(mark.op, body=b",".join(names))

    def set_cursor(self, topic: str, to: int) -> None:
        """Move a cursor in its file, however it is spelled there."""
        text = self.cursor_file.read_text()
        text, moved = re.subn(rf'("{topic}@{GROUP}"\s*:\s*\{{\s*"?0"?\s*:\s*)\d+', rf"\g<1>{to}", text)
        assert moved == 1, "this store has no such cursor"
        self.cursor_file.write_text(text)

    def write_lines(self, lines: Iterable[Line]) -> None:
        """Replace the client log's lines."""
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        (self.store.parent / CLIENT_LOG).write_text(text)

    def say_instead(self, *logged: LoggedLine, **what: Any) -> None:
        """Let some lines say something else."""
        lines = list(self.known.lines)
        for one in logged:
            lines[one.nth] = one.line | what
        self.write_lines(lines)

    def leave_unsaid(self, omitted: Sequence[LoggedLine]) -> None:
        """Let some lines be missing."""
        gone = {one.nth for one in omitted}
        self.write_lines(line for nth, line in enumerate(self.known.lines) if nth not in gone)

    def configure(self, **settings: int) -> None:
        """Give the broker other settings; without a value, none."""
        file = self.store.parent / "broker.conf"
        kept = [line for line in file.read_text().splitlines() if line.partition("=")[0] not in settings]
        file.write_text("\n".join([*kept, *(f"{name}={value}" for name, value in settings.items()), ""]))


def open_bench(store: Path, pick: Pick) -> tuple[TransactionBench, Known]:
    bench = TransactionBench(store, pick)
    return bench, bench.known


def with_property(record: Record, name: str, value: str) -> bytes:
    """Its properties with another value of the same length."""
    entry = rf"(?<![^\x02]){name}\x01[^\x02]*".encode()
    raw, found = re.subn(entry, lambda _: f"{name}\x01{value}".encode(), record.properties)
    assert found == 1, f"the record says nothing of {name}"
    return raw


def another(text: bytes, pick: Pick) -> bytes:
    """The same but for one letter."""
    at = pick.random.randrange(len(text))
    return text[:at] + (b"y" if text[at : at + 1] == b"x" else b"x") + text[at + 1 :]


def another_digit(text: str) -> str:
    """The same but for its last digit."""
    return f"{text[:-1]}{(int(text[-1]) + 1) % 10}"


# Faults of ops


def op_names_no_half(store: Path, pick: Pick) -> TransactionFault:
    """An op decides a half that was never prepared."""
    bench, known = open_bench(store, pick)
    end = known.halves[-1].number + 1
    mark = pick.of([mark for mark in bench.marks() if _highest(mark) >= end])
    bench.name_instead(mark, pick.random.randint(max(end, _lowest(mark)), _highest(mark)))
    return _of_mark("an op names a half that does not exist", bench, mark)


def op_names_a_later_half(store: Path, pick: Pick) -> TransactionFault:
    """An op decides a half that was prepared only after it."""
    bench, known = open_bench(store, pick)
    found = [(mark, _later(mark, known)) for mark in bench.marks()]
    later = {mark: halves for mark, halves in found if halves}
    mark = pick.of(list(later))
    bench.name_instead(mark, pick.random.choice(later[mark]))
    return _of_mark("an op names a half that lies behind it", bench, mark)


def mark_lost(store: Path, pick: Pick) -> TransactionFault:
    """An op names another half twice instead of this one, which the half cursor has passed undecided."""
    bench, known = open_bench(store, pick)
    found = [(mark, _marked_before(mark, known)) for mark in bench.marks()]
    others = {mark: halves for mark, halves in found if halves and _decides(mark, bench)}
    mark = pick.of(list(others))
    bench.name_instead(mark, pick.random.choice(others[mark]))
    half = known.numbered[mark.number]
    places = (*bench.spans(half, mark.op), bench.cursor_span)
    return TransactionFault("the only op entry of a half is gone", "TX9", places, key_of(half))


def ops_beyond_their_limit(store: Path, pick: Pick) -> TransactionFault:
    """Ops longer than the broker's setting allows."""
    bench, known = open_bench(store, pick)
    longest = [max(len(str(number)) + 1 for number in op.numbers) for op in known.ops]
    room = max(len(op.record.body) - most for op, most in zip(known.ops, longest, strict=True))
    bench.configure(transactionOpMsgMaxSize=max(room, 1))
    beyond = [op.record for op, most in zip(known.ops, longest, strict=True) if len(op.record.body) - most >= room > 0]
    op = pick.of(bench.spots_of(beyond)).record
    return TransactionFault("ops are longer than their limit", "TX2", bench.spans(*beyond), str(numbers_in(op)[0]))


def _of_mark(label: str, bench: TransactionBench, mark: Mark) -> TransactionFault:
    (number,) = [new for new, old in zip(*_before_and_after(bench, mark), strict=True) if new != old]
    return TransactionFault(label, "TX2", bench.spans(mark.op), str(number))


def _before_and_after(bench: TransactionBench, mark: Mark) -> tuple[tuple[int, ...], tuple[int, ...]]:
    changed = next(op for op in Known(bench.store).ops if op.record.position == mark.op.position)
    return changed.numbers, numbers_in(mark.op)


def _lowest(mark: Mark) -> int:
    """The smallest number with as many digits."""
    return int("1" + "0" * (len(str(mark.number)) - 1))


def _highest(mark: Mark) -> int:
    """The largest number with as many digits."""
    return int("9" * len(str(mark.number)))


def _later(mark: Mark, known: Known) -> range:
    """Numbers of halves behind the op that could stand in the place of the mark."""
    first = bisect_right(known.halves, mark.op.position, key=lambda half: half.position)
    if first == len(known.halves):
        return range(0)
    return range(max(known.halves[first].number, _lowest(mark)), min(known.halves[-1].number, _highest(mark)) + 1)


def _marked_before(mark: Mark, known: Known) -> list[int]:
    """Halves that the op could have named as well, and that are decided anyway."""
    numbers = set(numbers_in(mark.op)) - {mark.number}
    numbers |= {known.ops[0].numbers[0]} - {mark.number}
    return sorted(number for number in numbers if len(str(number)) == len(str(mark.number)))


def _decides(mark: Mark, bench: TransactionBench) -> bool:
    half = bench.known.numbered.get(mark.number)
    return half is not None and bench.has_one_fate(half) and not _is_origin(half, bench)


def _is_origin(half: Record, bench: TransactionBench) -> bool:
    """True if a later version depends on its mark."""
    return any(other.property_map.get(ORIGIN) == str(half.number) for other in bench.known.versions[key_of(half)])


# Faults of cursors


def half_cursor_past_an_undecided_half(store: Path, pick: Pick) -> TransactionFault:
    """The check service will never come back to this half."""
    bench, known = open_bench(store, pick)
    passed = known.cursors.half or 0
    waiting = [half for half in known.halves if half.number >= passed and _is_undecided(half, bench)]
    half = pick.of(bench.spots_of(waiting)).record
    bench.set_cursor(HALF, half.number + 1)
    skipped = [other for other in waiting if other.number <= half.number]
    places = (bench.cursor_span, *bench.spans(*skipped))
    return TransactionFault("the half cursor has passed an undecided half", "TX9", places, key_of(half))


def _is_undecided(half: Record, bench: TransactionBench) -> bool:
    origin = half.property_map.get(ORIGIN)
    marked = bench.known.marked[half.number] or (origin and bench.known.marked[int(origin)])
    return not marked and not bench.children(half) and not bench.rests(half)


def half_cursor_past_the_end(store: Path, pick: Pick) -> TransactionFault:
    """The next halves will never be checked."""
    bench, known = open_bench(store, pick)
    end = known.halves[-1].number + 1
    bench.set_cursor(HALF, end + pick.random.choice((1, 100)))
    return TransactionFault("the half cursor is past the end", "TX11", (bench.cursor_span,), f"half {end}")


def op_cursor_past_the_end(store: Path, pick: Pick) -> TransactionFault:
    """The next ops will never be read, and their halves be checked though they are decided."""
    bench, known = open_bench(store, pick)
    end = [op.record.number for op in known.ops if op.record.queue == 0][-1] + 1
    bench.set_cursor(OP, end + pick.random.choice((1, 100)))
    return TransactionFault("the op cursor is past the end", "TX11", (bench.cursor_span,), f"op {end}")


# Faults of finals


def final_of_another_body(store: Path, pick: Pick) -> TransactionFault:
    """A message whose body differs from the prepared one."""
    bench, known = open_bench(store, pick)
    final = pick.of(bench.spots_of(final for final in _judged(known) if final.body)).record
    bench.turn(final, body=another(final.body, pick))
    return _of_final("a final has another body than its half", bench, final)


def final_of_other_properties(store: Path, pick: Pick) -> TransactionFault:
    """A message whose key, tag or other properties differ from the prepared ones."""
    bench, known = open_bench(store, pick)
    final = pick.of(bench.spots_of(final for final in _judged(known) if "KEYS" in final.property_map)).record
    keys = another(final.property_map["KEYS"].encode(), pick).decode()
    bench.turn(final, properties=with_property(final, "KEYS", keys))
    return _of_final("a final has other properties than its half", bench, final)


def final_of_other_flags(store: Path, pick: Pick) -> TransactionFault:
    """The flag is the application's, and a half keeps it until it is put back."""
    bench, known = open_bench(store, pick)
    final = pick.of(bench.spots_of(_judged(known))).record
    bench.turn(final, flag=final.flag ^ 1 << pick.random.randrange(31))
    return _of_final("a final has another flag than its half", bench, final)


def final_in_another_queue(store: Path, pick: Pick) -> TransactionFault:
    """The half was meant for a queue that has nothing of it. Both say so themselves, for a final cannot be moved."""
    bench, known = open_bench(store, pick)
    final = pick.of(bench.spots_of(final for final in _judged(known) if _stands_alone(final, bench))).record
    half = known.at[final.prepared_position]
    queue = another_digit(half.property_map["REAL_QID"])
    bench.turn(half, properties=with_property(half, "REAL_QID", queue))
    for copy in bench.finals(half):
        if "REAL_QID" in copy.property_map:
            bench.turn(copy, properties=with_property(copy, "REAL_QID", queue))
    places = bench.spans(*bench.finals(half), half)
    return TransactionFault("a final is in another queue than its half was meant for", "TX3", places, key_of(final))


def _stands_alone(final: Record, bench: TransactionBench) -> bool:
    """True if its half has no other version that would show the fault."""
    return len(bench.known.versions[key_of(final)]) == 1


def final_of_no_half(store: Path, pick: Pick) -> TransactionFault:
    """A final names a message that was never prepared."""
    bench, known = open_bench(store, pick)
    others = [record for record in known.records if record.topic != HALF]
    final = pick.of(bench.spots_of(final for final in _judged(known) if final.position > others[0].position)).record
    other = pick.random.choice([record for record in others if record.position < final.position])
    return _name_instead(bench, final, other.position, "a final names a record that is no half")


def final_of_another_half(store: Path, pick: Pick) -> TransactionFault:
    """A final names the half of another transaction."""
    bench, known = open_bench(store, pick)
    final = pick.of(bench.spots_of(final for final in _judged(known) if _others(final, known))).record
    half = pick.random.choice(_others(final, known))
    return _name_instead(bench, final, half.position, "a final names another transaction's half")


def _others(final: Record, known: Known) -> list[Record]:
    """Halves of others; not the one at 0, for a copy that a broker makes of a final names that place, too."""
    halves = (half for half in known.halves if 0 < half.position < final.position)
    return [half for half in halves if key_of(half) != key_of(final)]


def final_of_a_later_half(store: Path, pick: Pick) -> TransactionFault:
    """A final names a half that was prepared only after it."""
    bench, known = open_bench(store, pick)
    last = known.halves[-1].position
    final = pick.of(bench.spots_of(final for final in _judged(known) if final.position < last)).record
    later = [half for half in known.halves if half.position > final.position]
    return _name_instead(bench, final, pick.random.choice(later).position, "a final names a half that lies behind it")


def final_of_a_place_inside_a_record(store: Path, pick: Pick) -> TransactionFault:
    """A final names a position at which no record begins."""
    bench, known = open_bench(store, pick)
    final = pick.of(bench.spots_of(_judged(known))).record
    inside = final.prepared_position + pick.random.randrange(1, known.at[final.prepared_position].size)
    return _name_instead(bench, final, inside, "a final names a place inside a record")


def _name_instead(bench: TransactionBench, final: Record, position: int, label: str) -> TransactionFault:
    bench.turn(final, prepared_position=position)
    return _of_final(label, bench, final)


def _judged(known: Known) -> list[Record]:
    """The finals whose half is still in the log."""
    return [final for final in known.finals if final.prepared_position in known.at]


def _of_final(label: str, bench: TransactionBench, final: Record) -> TransactionFault:
    return TransactionFault(label, "TX3", bench.spans(final), key_of(final))


# Faults of renewals and of parking


def counter_that_did_not_rise(store: Path, pick: Pick) -> TransactionFault:
    """A half was put back with the counter that it had; the version before it has no successor.

    Source: docs/rocketmq-transactions.md#counter-not-raised.
    """
    bench, _ = open_bench(store, pick)
    found = [half for half in bench.leaves() if (counter_of(half) or 0) > 1 and _carries_on(half, bench)]
    half = pick.of(bench.spots_of(found)).record
    (parent,) = bench.parents(half)
    _change_all(bench, half, COUNTER, str((counter_of(half) or 0) - 1))
    places = (*bench.spans(half, parent), bench.cursor_span)
    return TransactionFault("a half was put back and its counter did not rise", "TX9", places, key_of(half))


def _carries_on(half: Record, bench: TransactionBench) -> bool:
    """True if it alone settles the version before it."""
    parents = bench.parents(half)
    return len(parents) == 1 and bench.has_one_fate(parents[0])


def half_without_its_marker(store: Path, pick: Pick) -> TransactionFault:
    """A message among the halves without the mark of a half."""
    bench, known = open_bench(store, pick)
    first = [half for half in known.halves if counter_of(half) is None and half.property_map.get("TRAN_MSG") == "true"]
    half = pick.of(bench.spots_of(first)).record
    bench.turn(half, properties=with_property(half, "TRAN_MSG", "trve"))
    return TransactionFault("a half does not carry its marker", "TX1", bench.spans(half), key_of(half))


def renewal_without_parent(store: Path, pick: Pick) -> TransactionFault:
    """A half was put back from a version that never was."""
    bench, known = open_bench(store, pick)
    found = [half for half in bench.leaves() if known.complete and not _siblings(half, known)]
    half = pick.of(bench.spots_of(found)).record
    parents = bench.parents(half)
    _change_all(bench, half, COUNTER, str(pick.random.choice(((counter_of(half) or 0) + 1, 9))))
    places = (*bench.spans(half, *parents), bench.cursor_span)
    return TransactionFault("a half was put back from a version that does not exist", "TX7", places, key_of(half))


def _siblings(half: Record, known: Known) -> list[Record]:
    same = [other for other in known.versions[key_of(half)] if counter_of(other) == counter_of(half)]
    return [other for other in same if other != half]


def renewal_of_another_body(store: Path, pick: Pick) -> TransactionFault:
    """A renewal whose body differs from the prepared one."""
    bench, _ = open_bench(store, pick)
    found = [half for half in bench.leaves() if half.body and bench.parents(half)]
    half = pick.of(bench.spots_of(found)).record
    body = another(half.body, pick)
    for copy in (half, *bench.finals(half)):
        bench.turn(copy, body=body)
    places = (*bench.spans(half, *bench.parents(half)), bench.cursor_span)
    return TransactionFault("a half was put back with another body", "TX7", places, key_of(half))


def _change_all(bench: TransactionBench, half: Record, name: str, value: str) -> None:
    """Change a property of a half, and of what was committed of it."""
    for copy in (half, *bench.finals(half)):
        bench.turn(copy, properties=with_property(copy, name, value))


def parked_too_early(store: Path, pick: Pick) -> TransactionFault:
    """A half was parked though checks were left, and though it is not too old."""
    bench, known = open_bench(store, pick)
    rest = pick.of(bench.spots_of(rest for rest in known.parked if _has_an_earlier_version(rest, known))).record
    originals = [half for half in known.before(rest) if counter_of(half) == counter_of(rest)]
    bench.turn(rest, properties=with_property(rest, COUNTER, str((counter_of(rest) or 0) - 1)))
    bench.configure(fileReservedTime=72)
    places = (*bench.spans(rest, *originals), bench.cursor_span)
    return TransactionFault("a half is parked before its last check", "TX8", places, key_of(rest))


def _has_an_earlier_version(rest: Record, known: Known) -> bool:
    counter = counter_of(rest) or 0
    return counter > 1 and any(counter_of(half) == counter - 1 for half in known.before(rest))


def all_parked_too_early(store: Path, pick: Pick) -> TransactionFault:
    """All halves parked one check too early for the broker's setting."""
    bench, known = open_bench(store, pick)
    assert known.check_max is not None, "this store has no settings"
    bench.configure(transactionCheckMax=known.check_max + 1, fileReservedTime=72)
    rest = pick.of(bench.spots_of(known.parked)).record
    return TransactionFault(
        "halves are parked before their last check", "TX8", bench.spans(*known.parked), key_of(rest)
    )


def parked_that_equals_no_half(store: Path, pick: Pick) -> TransactionFault:
    """A parked message that equals no half."""
    bench, known = open_bench(store, pick)
    rest = pick.of(bench.spots_of(rest for rest in known.parked if rest.body and _originals(rest, known))).record
    bench.turn(rest, body=another(rest.body, pick))
    places = (*bench.spans(rest, *_originals(rest, known)), bench.cursor_span)
    return TransactionFault("a parked record equals no half", "TX8", places, key_of(rest))


def _originals(rest: Record, known: Known) -> list[Record]:
    return [half for half in known.before(rest) if counter_of(half) == counter_of(rest)]


# Faults that the clients' word brings to light


def acknowledged_message_replaced(store: Path, pick: Pick) -> TransactionFault:
    """A message that was never sent lies in the place of an acknowledged one."""
    bench, known = open_bench(store, pick)
    record = pick.of(_sent_plainly(bench)).record
    key = another(key_of(record).encode(), pick).decode()
    bench.turn(record, body=another(record.body, pick), properties=with_property(record, "UNIQ_KEY", key))
    assert not [other for other in known.records if key_of(other) == key]
    places = (*bench.spans(record), bench.client_span)
    return TransactionFault(
        "an acknowledged message is gone, a strange one in its place", "SEND", places, key_of(record)
    )


def acknowledged_beyond_the_end(store: Path, pick: Pick) -> TransactionFault:
    """A message was acknowledged, and the log ends before its place."""
    bench, _ = open_bench(store, pick)
    return _acknowledge(bench, bench.end + pick.random.choice((0, 1000)), "a message beyond the end")


def acknowledged_inside_a_record(store: Path, pick: Pick) -> TransactionFault:
    """A message was acknowledged, and at its place no record begins."""
    bench, known = open_bench(store, pick)
    record = pick.of(bench.spots_of(known.records)).record
    return _acknowledge(bench, record.position + record.size // 2, "a message inside a record")


def _acknowledge(bench: TransactionBench, position: int, what: str) -> TransactionFault:
    """Let a client say that one more message was sent."""
    logged = bench.pick.of(bench.lines_of("send", result="ok"))
    line = logged.line | {"phys": position, "uniq": "7F" * 16, "key": "never"}
    bench.write_lines([*bench.known.lines[: logged.nth + 1], line, *bench.known.lines[logged.nth + 1 :]])
    within = [record for record in bench.records if record.position <= position < record.end]
    places = (bench.client_span, bench.span_at(position), *bench.spans(*within))
    return TransactionFault(f"{what} was acknowledged", "SEND", places, line["uniq"])


def answered_with_another_number(store: Path, pick: Pick) -> TransactionFault:
    """The client log has another number than the message has in the queue."""
    bench, known = open_bench(store, pick)
    sent = [logged for logged in bench.lines_of("send", "half", result="ok") if logged.line["phys"] in known.at]
    logged = pick.of(sent)
    bench.say_instead(logged, qoff=logged.line["qoff"] + pick.random.choice((1, 1000)))
    places = (bench.client_span, *bench.spans(known.at[logged.line["phys"]]))
    return TransactionFault("a client was answered with another number", "SEND", places, logged.line["uniq"])


def body_not_as_sent(store: Path, pick: Pick) -> TransactionFault:
    """A message lies where it should, and is not what was sent."""
    bench, _ = open_bench(store, pick)
    record = pick.of(_sent_plainly(bench)).record
    bench.turn(record, body=another(record.body, pick))
    places = (*bench.spans(record), bench.client_span)
    return TransactionFault("a body is not as it was sent", "SEND", places, key_of(record))


def message_that_was_not_sent(store: Path, pick: Pick) -> TransactionFault:
    """A message is in the log, and no client knows of it."""
    bench, _ = open_bench(store, pick)
    record = pick.of(_sent_plainly(bench)).record
    bench.leave_unsaid(bench.lines_of("send", uniq=key_of(record)))
    return TransactionFault("a message is there that was never sent", "PHANTOM", bench.spans(record), key_of(record))


def _sent_plainly(bench: TransactionBench) -> list[Spot]:
    """Messages outside of transactions that were acknowledged once."""
    asked = Counter(logged.line["uniq"] for logged in bench.lines_of("send", "half"))
    acknowledged = {
        logged.line["phys"]: logged.line["uniq"] for logged in bench.lines_of("send", result="ok", sysflag=0)
    }
    once = {position for position, key in acknowledged.items() if asked[key] == 1}
    found = [record for record in bench.known.records if record.position in once]
    return [bench.spot(record) for record in found if record.body and "DELAY" not in record.property_map]


def final_lost(store: Path, pick: Pick) -> TransactionFault:
    """A commit was acknowledged, and what lies in its final's place is a message without a transaction."""
    bench, known = open_bench(store, pick)
    promised = Counter(logged.line["phys"] for logged in bench.lines_of("end", decision="commit", result="ok"))
    made = Counter(final.prepared_position for final in known.finals)
    due = [final for final in _judged(known) if made[final.prepared_position] == 1 <= promised[final.prepared_position]]
    final = pick.of(bench.spots_of(due)).record
    bench.turn(final, sys_flag=final.sys_flag & ~COMMITTED, prepared_position=0)
    places = (*bench.spans(final, known.at[final.prepared_position]), bench.client_span)
    return TransactionFault("an acknowledged commit has no final", "TX6", places, key_of(final))


def final_of_a_rolled_back_transaction(store: Path, pick: Pick) -> TransactionFault:
    """The client only ever asked to roll it back, and it has a final."""
    bench, known = open_bench(store, pick)
    final = pick.of(bench.spots_of(_judged(known))).record
    bench.say_instead(*bench.lines_of("end", uniq=key_of(final), decision="commit"), decision="rollback")
    return _of_unwanted("a transaction that was rolled back has a final", bench, final)


def unrequested_final(store: Path, pick: Pick) -> TransactionFault:
    """No client ever decided, and it has a final."""
    bench, known = open_bench(store, pick)
    final = pick.of(bench.spots_of(_judged(known))).record
    bench.leave_unsaid(bench.lines_of("end", uniq=key_of(final)))
    return _of_unwanted("a half without a commit has a final", bench, final)


def _of_unwanted(label: str, bench: TransactionBench, final: Record) -> TransactionFault:
    """Any version, final or op of the transaction may be named, for all are unwanted."""
    key = key_of(final)
    halves = bench.known.versions[key]
    numbers = {half.number for half in halves}
    marking = [op.record for op in bench.known.ops if numbers & {*op.numbers}]
    unwanted = [other for other in bench.known.finals if key_of(other) == key]
    return TransactionFault(label, "TX6", (*bench.spans(*unwanted, *halves, *marking), bench.client_span), key)


def back_check_of_no_version(store: Path, pick: Pick) -> TransactionFault:
    """A client was asked about a half that does not exist: no such number, or no such place."""
    bench, known = open_bench(store, pick)
    logged = pick.of([logged for logged in bench.lines_of("check") if logged.line["phys"] in known.at])
    what, by = pick.random.choice((("half", 100_000), ("half", 1), ("phys", 1), ("phys", 1 << 40)))
    wrong = logged.line[what] + by
    bench.say_instead(logged, **{what: wrong})
    places = (bench.client_span, bench.span_at(logged.line["phys"]), *bench.spans(known.at[logged.line["phys"]]))
    places += (bench.span_at(wrong),) if what == "phys" else bench.spans(*_numbered(wrong, known))
    return TransactionFault("a client was asked about a half that does not exist", "TX12", places, logged.line["uniq"])


def _numbered(number: int, known: Known) -> list[Record]:
    return [known.numbered[number]] if number in known.numbered else []


# What is legal


def cursors_missing(store: Path, pick: Pick) -> None:  # noqa: ARG001 - a change like the others
    """The broker died before it wrote them for the first time."""
    for file in (store / "config").glob("*onsumerOffset.json*"):
        file.unlink()


def cursors_never_moved(store: Path, pick: Pick) -> None:
    """There is such a file, and it does not speak of the check service."""
    TransactionBench(store, pick).cursor_file.write_text(
        '{\n\t"offsetTable":{\n\t\t"orders@A":{\n\t\t\t0:1\n\t\t}\n\t}\n}'
    )


def cursors_behind(store: Path, pick: Pick) -> None:
    """They are older than the log, both of them: as they were behind one of the ops."""
    bench, known = open_bench(store, pick)
    queue = [op for op in known.ops if op.record.queue == 0 and op.record.number < (known.cursors.op or 0)]
    kept = queue[: pick.random.randrange(len(queue))]
    first = known.halves[0].number
    half = max([number for op in kept for number in op.numbers], default=first - 1) + 1
    bench.set_cursor(OP, kept[-1].record.number + 1 if kept else queue[0].record.number)
    bench.set_cursor(HALF, min(max(half, first), known.cursors.half or 0))


def op_cursor_behind(store: Path, pick: Pick) -> None:
    """It waits for a half that two ops name, while the half cursor moves on."""
    bench, known = open_bench(store, pick)
    numbers = [op.record.number for op in known.ops if op.record.queue == 0]
    bench.set_cursor(OP, pick.random.choice(numbers))


def old_cursors_in_the_backup(store: Path, pick: Pick) -> None:
    """The file's last version but one is kept, and may say anything."""
    bench, _ = open_bench(store, pick)
    file = bench.cursor_file
    now = file.read_bytes()
    bench.set_cursor(HALF, 0)
    bench.set_cursor(OP, 99_999)
    file.with_name(file.name + ".bak").write_bytes(file.read_bytes())
    file.write_bytes(now)


def no_settings(store: Path, pick: Pick) -> None:  # noqa: ARG001 - a change like the others
    """Remove the broker's settings."""
    (store.parent / "broker.conf").unlink(missing_ok=True)


def no_limit_in_the_settings(store: Path, pick: Pick) -> None:  # noqa: ARG001 - a change like the others
    """Remove the number of checks from the settings: 15 is a default, and no evidence."""
    file = store.parent / "broker.conf"
    lines = [line for line in file.read_text().splitlines() if not line.startswith("transaction")]
    file.write_text("\n".join([*lines, ""]))


def metrics_gone_wrong(store: Path, pick: Pick) -> None:
    """Change the count of open halves: it may be negative, or older than the store.

    See docs/rocketmq-transactions.md#n25.
    """
    count = pick.random.choice((-3, 10**6))
    text = json.dumps({"transactionCount": {"orders": {"count": count, "timeStamp": 0}}})
    (store / "config" / "transactionMetrics").write_text(text)


def ops_in_another_order(store: Path, pick: Pick) -> None:
    """Decisions come as they come."""
    bench, known = open_bench(store, pick)
    for op in known.ops:
        names = op.record.body.rstrip(b",").split(b",")
        pick.random.shuffle(names)
        bench.turn(op.record, body=b",".join(names).ljust(len(op.record.body), b","))


def properties_in_another_order(store: Path, pick: Pick) -> None:
    """They come out of a hash map; the entry with the record's checksum stays the last."""
    bench, known = open_bench(store, pick)
    for record in (*known.halves, *known.finals, *known.parked):
        end = b"\x02" if record.properties.endswith(b"\x02") else b""
        pieces = record.properties.removesuffix(b"\x02").split(b"\x02")
        sealed = pieces[-1].startswith(b"__CRC32#")
        moved, last = (pieces[:-1], pieces[-1:]) if sealed else (pieces, [])
        pick.random.shuffle(moved)
        bench.turn(record, properties=b"\x02".join([*moved, *last]) + end)


def decisions_without_an_answer(store: Path, pick: Pick) -> None:
    """Oneway requests, as the Java client sends them, are never answered."""
    bench, _ = open_bench(store, pick)
    bench.say_instead(*bench.lines_of("end", result="ok"), result="unknown")


def sends_without_an_answer(store: Path, pick: Pick) -> None:
    """Some answers were lost on their way, and with them the places."""
    bench, known = open_bench(store, pick)
    place = {"phys", "qoff", "code"}
    forget = {logged.nth for logged in bench.lines_of("send", "half", result="ok") if pick.random.random() < 0.5}
    bench.write_lines(
        {name: logged for name, logged in line.items() if name not in place} | {"result": "unknown"}
        if nth in forget
        else line
        for nth, line in enumerate(known.lines)
    )


def sends_that_left_no_trace(store: Path, pick: Pick) -> None:
    """Add a refused send, and one of unknown outcome."""
    bench, known = open_bench(store, pick)
    logged = pick.of(bench.lines_of("send", result="ok"))
    asked = {name: value for name, value in logged.line.items() if name not in {"phys", "qoff", "code"}}
    refused = asked | {"uniq": "0F" * 16, "result": "fail", "code": 1, "remark": "busy"}
    bench.write_lines([*known.lines, refused, asked | {"uniq": "F0" * 16, "result": "unknown"}])


def decisions_that_had_no_effect(store: Path, pick: Pick) -> None:
    """Add refused commits, commits of unknown outcome, and commits without a half."""
    bench, known = open_bench(store, pick)
    half = pick.of(bench.spots_of(known.halves)).record
    place = {"uniq": key_of(half), "half": half.number, "phys": half.position}
    asked: Line = {"op": "end", "t0": 1.0, "t1": 2.0, "client": "c9", "decision": "commit", "from_check": False} | place
    wrong = asked | {"result": "fail", "code": 1, "remark": "not found", "half": half.number + 1}
    bench.write_lines([*known.lines, asked | {"result": "unknown"}, wrong, wrong | {"phys": half.position + 1}])


def lines_in_another_order(store: Path, pick: Pick) -> None:
    """A line is written when its outcome is known."""
    bench, known = open_bench(store, pick)
    bench.write_lines(pick.random.sample(known.lines, len(known.lines)))


def back_checks_that_never_arrived(store: Path, pick: Pick) -> None:
    """They are sent once, and to whom it may concern (docs/rocketmq-transactions.md#n9)."""
    bench, _ = open_bench(store, pick)
    bench.leave_unsaid(bench.lines_of("check"))


Fault = Callable[[Path, Pick], TransactionFault]
Change = Callable[[Path, Pick], None]

OP_FAULTS: tuple[Fault, ...] = (op_names_no_half, op_names_a_later_half, mark_lost)
BATCH_FAULTS: tuple[Fault, ...] = (ops_beyond_their_limit,)  # the same, and ops that name several halves
CURSOR_FAULTS: tuple[Fault, ...] = (half_cursor_past_the_end, op_cursor_past_the_end)
OPEN_FAULTS: tuple[Fault, ...] = (half_cursor_past_an_undecided_half,)  # they need undecided halves
FINAL_FAULTS: tuple[Fault, ...] = (
    final_of_another_body,
    final_of_other_properties,
    final_of_other_flags,
    final_in_another_queue,
    final_of_no_half,
    final_of_another_half,
    final_of_a_later_half,
    final_of_a_place_inside_a_record,
)
RENEWAL_FAULTS: tuple[Fault, ...] = (counter_that_did_not_rise, renewal_of_another_body)
ROOT_FAULTS: tuple[Fault, ...] = (renewal_without_parent,)  # they need a log that begins at 0
PARKING_FAULTS: tuple[Fault, ...] = (parked_too_early, parked_that_equals_no_half)
HALF_FAULTS: tuple[Fault, ...] = (half_without_its_marker,)
LIMIT_FAULTS: tuple[Fault, ...] = (all_parked_too_early,)  # they need a store that no broker was started on again
STORE_FAULTS = OP_FAULTS + CURSOR_FAULTS + FINAL_FAULTS + RENEWAL_FAULTS + PARKING_FAULTS + HALF_FAULTS
CLIENT_FAULTS: tuple[Fault, ...] = (
    acknowledged_message_replaced,
    acknowledged_beyond_the_end,
    acknowledged_inside_a_record,
    answered_with_another_number,
    body_not_as_sent,
    message_that_was_not_sent,
    final_lost,
    final_of_a_rolled_back_transaction,
    unrequested_final,
    back_check_of_no_version,
)
FAULTS = STORE_FAULTS + LIMIT_FAULTS + BATCH_FAULTS + OPEN_FAULTS + ROOT_FAULTS + CLIENT_FAULTS

LEGAL: tuple[Change, ...] = (
    cursors_missing,
    cursors_never_moved,
    cursors_behind,
    op_cursor_behind,
    old_cursors_in_the_backup,
    no_settings,
    no_limit_in_the_settings,
    metrics_gone_wrong,
    ops_in_another_order,
    properties_in_another_order,
)
LEGAL_WITH_CLIENTS: tuple[Change, ...] = (
    decisions_without_an_answer,
    sends_without_an_answer,
    sends_that_left_no_trace,
    decisions_that_had_no_effect,
    lines_in_another_order,
    back_checks_that_never_arrived,
)
