"""Replays many short traces of one spec in batches, and reports each refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import SPECS, Spec
from gapless.traces.judging import building
from gapless.traces.judging.building import Events
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, replay
from gapless.traces.replay.kernels import EXACT, ReplayResult, kernel
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.joining.findings import STORIES, StoreFindings
from gapless.traces.sources.rocketmq.store.file_access import Space

Column = npt.NDArray[Any]
Deviated = dict[str, tuple[int, int, str]]
"""How often each deviation was seen, and of the first the position and the trace."""
AT_ONCE = 1 << 16  # events that are replayed together, unless one trace has more: they stay near the processor


@dataclass(frozen=True)
class StepEvents:
    """Events of one step: the trace, the place in it, and the log position of each."""

    step: str
    traces: Ints
    ranks: Ints
    about: Ints
    args: Mapping[str, Column]

    def only(self, traces: Ints) -> StepEvents:
        """Selects the events of these traces."""
        mine = np.isin(self.traces, traces)
        args = {name: values[mine] for name, values in self.args.items()}
        return StepEvents(self.step, self.traces[mine], self.ranks[mine], self.about[mine], args)


class TraceBatch(NamedTuple):
    """Traces that are replayed together: the begin of each one's events, and the log position of each event."""

    traces: Ints
    starts: Ints
    events: Events
    about: Ints


def replay_batch(
    judged: StoreFindings, options: Options, of: str, steps: list[StepEvents], traces: Ints, name: Callable[[int], str]
) -> None:
    """Replays all traces by the spec `of` with a kernel; its refusals are explained by exact replay."""
    replay_parts(judged, options, of, [(steps, traces)], name)


def replay_parts(
    judged: StoreFindings,
    options: Options,
    of: str,
    parts: Iterable[tuple[list[StepEvents], Ints]],
    name: Callable[[int], str],
) -> None:
    """Replays parts one after the other: the events of some traces, and the numbers of these, rising."""
    deviated: Deviated = {}
    judged.cover(of, dict.fromkeys(SPECS[of].actions, 0))
    rules: dict[int, str] = {}
    space = Space()
    for steps, traces in parts:
        placed, starts = _placed(steps, traces)
        for begin, end in _batches(starts):
            some = _trace_batch(SPECS[of], placed, traces[begin:end], starts[begin : end + 1], space)
            _judge(judged, options, of, some, name, rules, deviated)
    for step, (count, first, where) in deviated.items():
        judged.anomaly(step, count, first, where)


class StepPlaces(NamedTuple):
    """Events of one step, and the place of each in its batch, which is ordered by trace."""

    some: StepEvents
    places: Ints
    in_order: bool  # True if their traces rise, so that those of a range are adjacent

    def of(self, first: int, last: int, low: int, high: int) -> Ints | slice:
        """Selects the events of the traces from `first` to `last`, with places in `low:high`."""
        if self.in_order:
            traces = self.some.traces
            return slice(int(traces.searchsorted(first)), int(traces.searchsorted(last, side="right")))
        return np.flatnonzero((low <= self.places) & (self.places < high))


def _placed(steps: list[StepEvents], traces: Ints) -> tuple[list[StepPlaces], Ints]:
    """Returns the events of each step with their places, and the begin of each trace's events."""
    every = np.concatenate([some.traces for some in steps])
    order = np.lexsort((np.concatenate([some.ranks for some in steps]), every))
    starts = np.append(every[order].searchsorted(traces), len(every)).astype(np.int64)
    places, begin, found = np.empty(len(order), np.int64), 0, []
    places[order] = np.arange(len(order))
    for some in steps:
        end = begin + len(some.traces)
        found.append(StepPlaces(some, places[begin:end], bool((some.traces[1:] >= some.traces[:-1]).all())))
        begin = end
    return found, starts


def _batches(starts: Ints) -> Iterator[tuple[int, int]]:
    """Yields ranges of traces with as many events as are replayed together."""
    begin, traces = 0, len(starts) - 1
    while begin < traces:
        end = max(begin + 1, int(starts.searchsorted(starts[begin] + AT_ONCE, side="right")) - 1)
        yield begin, end
        begin = end


def _judge(
    judged: StoreFindings,
    options: Options,
    of: str,
    some: TraceBatch,
    name: Callable[[int], str],
    rules: dict[int, str],
    deviated: Deviated,
) -> None:
    """Replays one batch. `rules`, `deviated`: filled by all batches."""
    spec, traces, starts, events = SPECS[of], some.traces, some.starts, some.events
    replayed = kernel(of, options.ignored).replay(
        starts, events.action, events.args, building.states(spec, len(traces)),
        origins=np.zeros(len(traces), np.int64), widths=np.zeros(len(traces), np.int64), profile=options.profile,
    )  # fmt: skip
    judged.cover(of, dict(zip(spec.actions, replayed.covered.tolist(), strict=True)))
    for n, deviation in enumerate(spec.deviations):
        if replayed.deviated[n]:
            at = int(replayed.deviated_at[n])
            mine = name(int(traces[int(starts.searchsorted(at, side="right")) - 1]))
            count, first, where = deviated.get(deviation.step.__name__, (0, int(some.about[at]), mine))
            deviated[deviation.step.__name__] = count + int(replayed.deviated[n]), first, where
    for bad, departure in _departures(judged, options, of, replayed, starts, events, rules):
        judged.report(name(int(traces[bad])), int(some.about[int(replayed.bad_at[bad])]), departure)
    if judged.exported:
        for trace, low, high in zip(traces.tolist(), starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            judged.joint(judged.end, of, name(trace), [events.at(n) for n in range(low, high)])


def _trace_batch(
    spec: Spec, placed: Sequence[StepPlaces], traces: Ints, starts: Ints, space: Space
) -> TraceBatch:  # fmt: skip
    """Builds the batch of some traces, none of them empty; it overwrites the batch before.

    `starts`: the begin of each trace's events among all.
    """
    low, high = int(starts[0]), int(starts[-1])
    args: Ints = space.array("batch", (len(spec.arguments), high - low), np.int64)
    events, about = Events(spec, np.empty(high - low, np.int8), args), np.empty(high - low, np.int64)
    args.fill(0)  # of an event, those that its step does not have
    for one in placed:
        some, mine = one.some, one.of(int(traces[0]), int(traces[-1]), low, high)
        at = one.places[mine] - low
        events.action[at] = spec.codes[some.step]
        about[at] = some.about[mine]
        for argument, values in some.args.items():
            events.column(argument)[at] = values[mine]
    return TraceBatch(traces, starts - low, events, about)


def _departures(
    judged: StoreFindings,
    options: Options,
    of: str,
    replayed: ReplayResult,
    starts: Ints,
    events: Events,
    rules: dict[int, str],
) -> Iterator[tuple[int, Departure]]:
    """Replays the traces that a kernel refused exactly, except those that would only be counted.

    Each departure must be reported before the next is asked for. `rules`: the rule for each reason of the kernel.
    """
    for bad in np.flatnonzero(replayed.bad_at >= 0).tolist():
        why = int(replayed.bad_why[bad])
        if judged.stories[rules.get(why, "")] >= STORIES and judged.is_over_limit(rules[why]):
            continue
        of_it = [events.at(n) for n in range(int(starts[bad]), int(starts[bad + 1]))]
        outcome = replay(of, SPECS[of].initial, of_it, profile=options.profile, ignored=options.ignored)
        if outcome.departure:
            if why != EXACT:
                rules[why] = outcome.departure.rule
            yield bad, outcome.departure
