"""Producers of a part of a segment, judged by its worker as far as the part alone shows.

The state of a producer before the part is not known here. So the first few events of each, its *head*, travel to the
judge of the whole partition: they lead to a state that does not depend on what was before. From there on, the *tail*
is replayed here, and the judge compares the states in which head and tail meet.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapless.spec.catalog import SPECS, Spec
from gapless.traces.judging import building
from gapless.traces.judging.building import Events, Ints
from gapless.traces.options import Options
from gapless.traces.replay.kernels import Kernel, kernel
from gapless.traces.sources.kafka.files.snapshots import ProducerSnapshot
from gapless.traces.sources.kafka.judging.parts import NONE, PartitionTerms
from gapless.traces.sources.kafka.judging.producer_events import ProducerEvents
from gapless.traces.sources.kafka.log.tables import Flags

CLAIMED = ("known", "epoch", "sequence", "offset", "delta", "time", "coordinator", "transaction")
"""The fields in which head and tail of a producer must agree."""


class SnapshotNames(NamedTuple):
    """The producers in one snapshot, by id, in order."""

    offset: int
    producers: Ints


class ProducerPieces(NamedTuple):
    """The producers of a part. Columns have one place for each producer, in the order of their ids.

    `first`: the offset of its first event · `lengths`: the number of its events · `heads`, `head_starts`: the events at
    its begin · `met`: int64 [scalars, producers], the state behind them, if the worker guessed right · `guessed`: false
    where it did not · `ends`: the state at the end · `refused`: by producer the number of the event in its piece that a
    kernel refused in its tail · `covered`: accepted events of tails, by action · `deviated`: anomalies in tails, by
    name: count, offset, producer.
    """

    producers: Ints
    first: Ints
    lengths: Ints
    heads: Events
    head_starts: Ints
    met: Ints
    guessed: Flags
    ends: Ints
    refused: dict[int, int]
    covered: dict[str, int]
    deviated: dict[str, tuple[int, int, int]]
    snapshots: tuple[SnapshotNames, ...]


def judge_producers(
    terms: PartitionTerms, found: ProducerEvents, snapshots: list[ProducerSnapshot], options: Options
) -> ProducerPieces:
    """Judge the tails of all producers of a part, and gather their heads."""
    of, count = kernel("producer", options.ignored), len(found.producers)
    ends = found.starts[:-1] + _head_lengths(found)
    heads, head_starts = _gathered(found.events, found.starts[:-1], ends)
    begun = opened(terms, _guesses(found), options, count)
    met = of.replay(head_starts, heads.action, heads.args, begun, profile=options.profile)
    guessed = met.bad_at < 0
    ends = np.where(guessed, ends, found.starts[1:])
    replayed = of.replay(
        _interleaved(found.starts, ends), found.events.action, found.events.args,
        _interleaved(begun, met.state)[:, :-1], profile=options.profile,
    )  # fmt: skip
    bad_at = replayed.bad_at[1::2]
    bad = np.flatnonzero((bad_at >= 0) & guessed)
    return ProducerPieces(
        producers=found.producers,
        first=found.offset[found.starts[:-1]],
        lengths=np.diff(found.starts),
        heads=heads,
        head_starts=head_starts,
        met=met.state,
        guessed=guessed,
        ends=replayed.state[:, 1::2],
        refused={int(n): int(bad_at[n] - found.starts[n]) for n in bad},
        covered=counts(of.spec, replayed.covered - met.covered),
        deviated=_deviations(of, replayed.deviated - met.deviated, replayed.deviated_at, found),
        snapshots=tuple(SnapshotNames(one.offset, np.sort(one.producer)) for one in snapshots),
    )


def _interleaved(one: Ints, other: Ints) -> Ints:
    """Columns of two tables in turns; the last one of the first, if it has more, is the last."""
    both = np.zeros((*one.shape[:-1], 2 * other.shape[-1] + 1), np.int64)
    both[..., : 2 * one.shape[-1] : 2] = one
    both[..., 1 : 2 * other.shape[-1] : 2] = other
    return both


def counts(spec: Spec, covered: Ints) -> dict[str, int]:
    """Return how many events of each action were accepted."""
    return {name: int(count) for name, count in zip(spec.actions, covered, strict=True) if count}


def opened(terms: PartitionTerms, claims: dict[str, Ints], options: Options, count: int) -> Ints:
    """Return the states of producers behind `open`, with these columns of arguments."""
    spec = SPECS["producer"]
    events = Events.room(spec, count)
    events.action[:] = spec.codes["open"]
    for name, values in claims.items():
        events.column(name)[:] = values
    events.column("compacted")[:] = terms.compacted
    events.column("checked")[:] = terms.checked
    begin = building.states(spec, count)
    starts = np.arange(count + 1, dtype=np.int64)
    return kernel(spec, options.ignored).replay(
        starts, events.action, events.args, begin, profile=options.profile
    ).state  # fmt: skip


def unknown(at: Ints) -> dict[str, Ints]:
    """Return the arguments of `open` for producers of which nothing is known at these offsets."""
    none, zeros = np.full(len(at), NONE), np.zeros(len(at), np.int64)
    return dict.fromkeys(CLAIMED, none) | {"known": zeros, "delta": zeros, "at": at}


def _guesses(found: ProducerEvents) -> dict[str, Ints]:
    """The state before each producer's first event, if that is lawful: the one that makes it so."""
    first, events = found.starts[:-1], found.events
    codes, claims = events.spec.codes, unknown(found.offset[first])
    action = events.action[first]
    sequence = events.column("sequence")[first]
    follows = (action == codes["append"]) & (sequence > 0)
    snapped = action == codes["snapshot"]
    claims["known"] = (follows | snapped).astype(np.int64)
    claims["epoch"] = np.where(follows | snapped, events.column("epoch")[first], NONE)
    claims["sequence"] = np.where(follows, sequence - 1, np.where(snapped, sequence, NONE))
    claims["offset"] = np.where(follows, events.column("first")[first] - 1, NONE)
    for name in ("offset", "delta", "time", "coordinator", "transaction"):
        claims[name] = np.where(snapped, events.column(name)[first], claims[name])
    return claims


def _head_lengths(found: ProducerEvents) -> Ints:
    """The number of events of each producer up to one behind which nothing earlier matters.

    That is a snapshot, a batch outside of transactions, or a marker behind a batch.
    """
    events, starts = found.events, found.starts
    codes = events.spec.codes
    appends = events.action == codes["append"]
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(appends)])[:-1]
    traces = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    has_batch = before > before[starts[:-1]][traces] if len(before) else appends
    closes = (events.action == codes["snapshot"]) | (appends & (events.column("transactional") == 0))
    closes |= (events.action == codes["mark"]) & has_batch
    (at,) = np.nonzero(closes)
    at = np.append(at, len(events.action))
    head_ends = np.minimum(at[at.searchsorted(starts[:-1])] + 1, starts[1:])
    lengths: Ints = head_ends - starts[:-1]
    return lengths


def _gathered(events: Events, low: Ints, high: Ints) -> tuple[Events, Ints]:
    """Return the events `low:high` of each trace, one trace behind the other, and where each begins."""
    lengths = high - low
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    at = np.arange(int(starts[-1])) + np.repeat(low - starts[:-1], lengths)
    return Events(events.spec, events.action[at], np.ascontiguousarray(events.args[:, at])), starts


def _deviations(of: Kernel, deviated: Ints, at: Ints, found: ProducerEvents) -> dict[str, tuple[int, int, int]]:
    """Return by name of a deviation its count, the offset of the first event, and its producer."""
    named = {}
    for number, deviation in enumerate(of.spec.deviations):
        if deviated[number]:
            event = int(at[number])
            trace = int(found.starts.searchsorted(event, side="right")) - 1
            producer = int(found.producers[trace])
            named[deviation.step.__name__] = int(deviated[number]), offset_of(found.events, event), producer
    return named


def offset_of(events: Events, event: int) -> int:
    """Return the offset of the batch, marker or snapshot that an event is about."""
    action, args = events.at(event)
    named = dict(zip(events.spec.parameters[action], args, strict=True))
    name = next((name for name in ("first", "at", "offset") if name in named), "")
    return named[name] if name else NONE
