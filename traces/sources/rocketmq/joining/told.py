"""Many short traces of one spec, told step by step in columns: replayed by a kernel, and told where it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import SPECS
from gapless.traces.judging import building
from gapless.traces.judging.building import Events
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, replay
from gapless.traces.replay.kernels import EXACT, Replayed, kernel
from gapless.traces.sources.rocketmq.joining.judged import STORIES, JudgedStore
from gapless.traces.sources.rocketmq.store.bytes import Ints

Column = npt.NDArray[Any]


@dataclass(frozen=True)
class OfStep:
    """Events of one step: the trace that each belongs to, where it stands there, the log position that it is about."""

    step: str
    traces: Ints
    ranks: Ints
    about: Ints
    args: Mapping[str, Column]

    def only(self, traces: Ints) -> OfStep:
        """The events of these traces."""
        mine = np.isin(self.traces, traces)
        args = {name: values[mine] for name, values in self.args.items()}
        return OfStep(self.step, self.traces[mine], self.ranks[mine], self.about[mine], args)


def judge_told(
    judged: JudgedStore, options: Options, of: str, told: list[OfStep], traces: Ints, name: Callable[[int], str]
) -> None:
    """Replay what is told of every trace, by the spec `of`; what a kernel refuses is told by the plain functions."""
    spec = SPECS[of]
    count = sum(len(some.traces) for some in told)
    events = Events.room(spec, count)
    every = np.concatenate([some.traces for some in told])
    order = np.lexsort((np.concatenate([some.ranks for some in told]), every))
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    about, begin = np.empty(count, np.int64), 0
    for some in told:
        mine = place[begin : begin + len(some.traces)]
        events.action[mine] = spec.codes[some.step]
        about[mine] = some.about
        for argument, values in some.args.items():
            events.column(argument)[mine] = values
        begin += len(some.traces)
    starts = np.append(every[order].searchsorted(traces), count).astype(np.int64)
    replayed = kernel(of, options.ignored).replay(
        starts, events.action, events.args, building.states(spec, len(traces)),
        origins=np.zeros(len(traces), np.int64), widths=np.zeros(len(traces), np.int64), profile=options.profile,
    )  # fmt: skip
    judged.cover(of, dict(zip(spec.actions, replayed.covered.tolist(), strict=True)))
    for n, deviation in enumerate(spec.deviations):
        if replayed.deviated[n]:
            first = int(replayed.deviated_at[n])
            trace = name(int(traces[int(starts.searchsorted(first, side="right")) - 1]))
            judged.anomaly(deviation.step.__name__, int(replayed.deviated[n]), int(about[first]), trace)
    for bad, departure in _departures(judged, options, of, replayed, starts, events):
        judged.tell(name(int(traces[bad])), int(about[int(replayed.bad_at[bad])]), departure)
    if judged.exported:
        for trace, low, high in zip(traces.tolist(), starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            judged.joint(judged.end, of, name(trace), [events.at(n) for n in range(low, high)])


def _departures(
    judged: JudgedStore, options: Options, of: str, replayed: Replayed, starts: Ints, events: Events
) -> Iterator[tuple[int, Departure]]:
    """What the plain functions refuse of the traces that a kernel refused. What would only be counted is not replayed.

    The departures are to be told as they come.
    """
    rules: dict[int, str] = {}  # why the kernel refuses, and the rule that this is
    for bad in np.flatnonzero(replayed.bad_at >= 0).tolist():
        why = int(replayed.bad_why[bad])
        if judged.stories[rules.get(why, "")] >= STORIES and judged.is_told_enough(rules[why]):
            continue
        of_it = [events.at(n) for n in range(int(starts[bad]), int(starts[bad + 1]))]
        outcome = replay(of, SPECS[of].initial, of_it, profile=options.profile, ignored=options.ignored)
        if outcome.departure:
            if why != EXACT:
                rules[why] = outcome.departure.rule
            yield bad, outcome.departure
