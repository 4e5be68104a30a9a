"""Traces of Kafka's specs: of each spec one that keeps all rules, and for every rule one that breaks it.

The latter is the former up to an event that has other arguments, or that is there twice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from gapless.spec.catalog import END, SPECS, needs
from gapless.traces.judging.building import STEPS
from gapless.traces.replay.exact import Event, Outcome, named, replay

PARTITION, PRODUCER, INDEX = (STEPS[name] for name in ("partition", "producer", "aborted_index"))
BATCH = {
    "count": 2, "epoch": 0, "size": 90, "time": 5, "sound": 1, "whole": 1, "ordered": 1, "dated": 1,
}  # fmt: skip
LOG: list[Event] = [
    PARTITION.open(
        start=0, segment=0, offset=0, position=0, epoch=-1, since=0, newest=-1, timed=-1, compacted=0
    ),
    PARTITION.lead(epoch=0, since=0),
    PARTITION.append(first=0, last=1, position=0, **BATCH),
    PARTITION.index(offset=1, position=0, begins=0),
    PARTITION.index_time(time=5, offset=1),
    PARTITION.append(first=2, last=3, position=90, **{**BATCH, "time": 9}),
    PARTITION.index(offset=3, position=90, begins=2),
    PARTITION.index_time(time=9, offset=3),
    PARTITION.seal(),
    PARTITION.roll(segment=4, rest=0),
    PARTITION.save(at=4, sound=1),
    PARTITION.append(first=4, last=5, position=0, **BATCH),
    PARTITION.save(at=6, sound=1),
    PARTITION.flush(to=3),
    PARTITION.flush(to=6),
    PARTITION.raise_watermark(to=5, undecided=-1),
    PARTITION.delete(to=2),
    PARTITION.raise_watermark(to=6, undecided=-1),
    PARTITION.delete(to=3),
    PARTITION.clean(to=4, again=-1),
    PARTITION.clean(to=5, again=2),
    (END, ()),
]  # fmt: skip
SEEN = {"epoch": 3, "coordinator": 7, "time": 5}
ENTRY = {**SEEN, "sequence": 3, "offset": 3, "delta": 1, "transaction": 2}
LIFE: list[Event] = [
    PRODUCER.open(
        at=0, known=0, epoch=-1, sequence=-1, offset=-1, delta=0, time=-1, coordinator=-1, transaction=-1,
        compacted=0, checked=1,
    ),
    PRODUCER.append(epoch=3, sequence=0, first=0, last=0, transactional=1, time=5),
    PRODUCER.mark(epoch=3, offset=1, coordinator=7, time=5),
    PRODUCER.append(epoch=3, sequence=1, first=2, last=2, transactional=1, time=5),
    PRODUCER.append(epoch=3, sequence=2, first=3, last=4, transactional=1, time=5),
    PRODUCER.snapshot(at=5, **{**ENTRY, "offset": 4}),
    PRODUCER.mark(epoch=4, offset=5, coordinator=7, time=6),
    PRODUCER.append(epoch=4, sequence=0, first=6, last=6, transactional=0, time=7),
    PRODUCER.append(epoch=5, sequence=0, first=7, last=7, transactional=0, time=8),
    PRODUCER.expire(idle=9, limit=9),
    PRODUCER.append(epoch=5, sequence=0, first=8, last=8, transactional=0, time=9),
    PRODUCER.forget(start=9),
]  # fmt: skip
ABORTS: list[Event] = [
    INDEX.open(at=0),
    INDEX.abort(producer=7, first=0, last=2, stable=3),
    INDEX.enter(producer=7, first=0, last=2, stable=3),
    INDEX.abort(producer=8, first=4, last=5, stable=6),
    INDEX.enter(producer=8, first=4, last=5, stable=6),
    INDEX.close(),
]
KEEPING = {"partition": LOG, "producer": LIFE, "aborted_index": ABORTS}


class Break(NamedTuple):
    """A rule that is broken when the event number `at` of the keeping trace has other arguments.

    `again`: the event comes a second time, and that one has them · `before`: arguments of the event before it ·
    `without`: events that are left out.
    """

    rule: str
    at: int
    args: dict[str, int]
    again: bool = False
    without: tuple[int, ...] = ()
    before: dict[str, int] | None = None


BREAKS = {
    "partition": [
        Break("log-of-the-partition-is-not-open-yet", 0, {}, again=True),
        Break("segment-is-named-by-its-first-offset-or-one-before", 0, {"segment": 1}),
        Break("epoch-of-the-leader-goes-up", 1, {}, again=True),
        Break("epoch-begins-where-the-log-ends", 1, {"since": 1}),
        Break("batch-begins-where-the-one-before-it-ends", 5, {"position": 91}),
        Break("batch-has-room-for-its-head", 5, {"size": 60}),
        Break("batch-has-its-checksum", 5, {"sound": 0}),
        Break("offsets-follow-one-another", 5, {"first": 3}),
        Break("batch-takes-an-offset", 5, {"last": 1, "count": 0}),
        Break("offset-fits-its-segment", 5, {"last": 1 << 31}),
        Break("batch-has-a-record-for-each-offset", 5, {"count": 1}),
        Break("epoch-of-batches-does-not-go-back", 5, {"epoch": -1}),
        Break("batch-has-the-epoch-of-its-leader", 5, {"epoch": 1}),
        Break("records-end-where-their-batch-ends", 5, {"whole": 0}),
        Break("offsets-of-a-batch-go-up", 5, {"ordered": 0}),
        Break("time-of-a-batch-is-that-of-a-record", 5, {"dated": 0}),
        Break("index-entry-points-at-a-batch", 6, {"begins": -1}),
        Break("index-entry-points-at-its-offset-or-before-it", 6, {"begins": 4}),
        Break("index-entry-ends-a-batch", 6, {"offset": 2}),
        Break("index-entries-go-up", 6, {}, again=True),
        Break("positions-of-index-entries-go-up", 6, {"position": 0, "begins": 0}),
        Break("times-of-index-entries-go-up", 7, {}, again=True),
        Break("time-index-entry-names-an-offset-of-its-batch", 7, {"offset": 1}),
        Break("time-index-entry-has-the-time-of-its-batch", 7, {"time": 8}),
        Break("time-index-entry-names-the-first-batch-of-its-time", 7, {"time": 5}, without=(4, 6), before={"time": 5}),
        Break("last-time-index-entry-has-the-greatest-time", 8, {}, without=(7,)),
        Break("full-segment-is-whole-batches", 9, {"rest": 3}),
        Break("segment-is-named-by-the-offset-that-comes-next", 9, {"segment": 5}),
        Break("recovery-point-stays-within-the-log", 14, {"to": 7}),
        Break("recovery-point-goes-on", 14, {"to": 2}),
        Break("snapshot-has-its-checksum", 12, {"sound": 0}),
        Break("snapshot-lies-within-the-log", 12, {"at": 7}),
        Break("high-watermark-stays-within-the-log", 17, {"to": 7}),
        Break("high-watermark-goes-on", 17, {"to": 4}),
        Break("stable-offset-goes-on", 17, {"undecided": 4}),
        Break("log-start-goes-on", 18, {"to": 1}),
        Break("only-what-is-committed-is-deleted", 18, {"to": 7}),
        Break("cleaner-goes-on", 20, {"to": 3}),
        Break("cleaner-stays-below-the-stable-offset", 20, {"to": 7}),
        Break("cleaner-leaves-a-key-once", 20, {"again": 3}),
        Break("all-is-committed", 21, {}, without=(17,)),
        Break("all-is-on-disk", 21, {}, without=(14,)),
        Break("snapshot-is-at-the-end", 21, {}, without=(12,)),
    ],
    "producer": [
        Break("producer-is-not-open-yet", 0, {}, again=True),
        Break("snapshot-is-not-ahead-of-its-log", 5, {"offset": 5}),
        Break("transaction-of-a-snapshot-has-a-batch", 5, {"transaction": 5}),
        Break("epoch-of-a-producer-does-not-go-back", 8, {"epoch": 3}),
        Break("batch-is-in-the-transaction-that-is-open", 4, {"transactional": 0}),
        Break("transaction-has-one-epoch", 4, {"epoch": 4, "sequence": 0}),
        Break("new-producer-begins-at-sequence-0", 10, {"sequence": 4}),
        Break("new-epoch-begins-at-sequence-0", 8, {"sequence": 1}),
        Break("sequence-is-given-once", 4, {"sequence": 1}),
        Break("no-sequence-is-missing", 4, {"sequence": 3}),
        Break("marker-has-the-epoch-of-its-transaction-or-the-next", 6, {"epoch": 5}),
        Break("epoch-of-the-coordinator-does-not-go-back", 6, {"coordinator": 6}),
        Break("producer-of-a-snapshot-is-in-its-log", 5, {}, without=(1, 2, 3, 4)),
        Break("snapshot-is-not-behind-its-log", 5, {"offset": 2}),
        Break("snapshot-has-the-epoch-of-its-producer", 5, {"epoch": 4}),
        Break("snapshot-has-the-last-sequence", 5, {"sequence": 2}),
        Break("snapshot-has-the-last-batch", 5, {"delta": 0}),
        Break("snapshot-has-the-time-of-the-last-batch", 5, {"time": 4}),
        Break("snapshot-has-the-epoch-of-the-coordinator", 5, {"coordinator": 6}),
        Break("snapshot-has-the-transaction-that-is-open", 5, {"transaction": -1}),
        Break("producer-with-an-open-transaction-is-not-forgotten", 9, {}, without=(5, 6, 7, 8)),
        Break("producer-is-forgotten-when-its-time-has-come", 9, {"idle": 8}),
        Break("producer-with-records-in-the-log-is-not-forgotten", 11, {"start": 8}),
    ],
    "aborted_index": [
        Break("index-of-aborts-is-not-open-yet", 0, {}, again=True),
        Break("every-abort-is-in-the-index", 5, {}, without=(4,)),
        Break("entry-is-of-an-abort-that-has-none-yet", 4, {}, again=True),
        Break("entry-names-the-producer-of-its-abort", 4, {"producer": 7}),
        Break("entry-begins-where-its-transaction-begins", 4, {"first": 3}),
        Break("entry-has-the-stable-offset-of-its-abort", 4, {"stable": 5}),
    ],
}
ALL = [(spec, broken) for spec, breaks in BREAKS.items() for broken in breaks]


def changed(spec: str, event: Event, args: dict[str, int]) -> Event:
    """The event with other arguments."""
    if not args:
        return event
    made: Event = getattr(STEPS[spec], event[0])(**{**named(spec, event), **args})
    return made


def judged(spec: str, events: list[Event]) -> Outcome:
    """The outcome of a trace, by the rules without deviations."""
    return replay(spec, SPECS[spec].initial, events, profile="strict")


@pytest.mark.parametrize("spec", KEEPING)
def test_one_trace_keeps_every_rule_and_takes_every_step(spec: str) -> None:
    outcome = judged(spec, KEEPING[spec])
    assert outcome.departure is None
    unrecorded = {"crash", "truncate"} if spec == "partition" else set()
    assert {event[0] for event in KEEPING[spec]} == set(SPECS[spec].actions) - unrecorded


@pytest.mark.parametrize(("spec", "broken"), ALL, ids=[f"{spec}/{broken.rule}" for spec, broken in ALL])
def test_for_each_rule_a_trace_breaks_it_first(spec: str, broken: Break) -> None:
    trace = KEEPING[spec]
    before = [event for number, event in enumerate(trace[: broken.at]) if number not in broken.without]
    if broken.before is not None:
        before[-1] = changed(spec, before[-1], broken.before)
    if broken.again:
        before.append(trace[broken.at])
    departure = judged(spec, [*before, changed(spec, trace[broken.at], broken.args)]).departure
    assert departure is not None
    assert (departure.rule, departure.number) == (f"{spec}/{broken.rule}", len(before) + 1)


@pytest.mark.parametrize("spec", BREAKS)
def test_no_rule_is_left_out(spec: str) -> None:
    steps = SPECS[spec].actions.items()
    unrecorded: Any = {"crash": "what-was-flushed-survives", "truncate": "what-is-committed-stays"}
    stated = {need.rule for name, step in steps if name not in unrecorded for need in needs(step) if need.otherwise}
    assert stated == {broken.rule for broken in BREAKS[spec]}
