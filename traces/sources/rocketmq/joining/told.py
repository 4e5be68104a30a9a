"""Many short traces of one spec, told step by step in columns: replayed by a kernel, and told where it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import SPECS, Spec
from gapless.traces.judging import building
from gapless.traces.judging.building import Events
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, replay
from gapless.traces.replay.kernels import EXACT, Replayed, kernel
from gapless.traces.sources.rocketmq.joining.judged import STORIES, JudgedStore
from gapless.traces.sources.rocketmq.store.bytes import Ints

Column = npt.NDArray[Any]
AT_ONCE = 1 << 16  # events that are replayed together, unless one trace has more: they stay near the processor


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
    every = np.concatenate([some.traces for some in told])
    order = np.lexsort((np.concatenate([some.ranks for some in told]), every))
    starts = np.append(every[order].searchsorted(traces), len(every)).astype(np.int64)
    rules: dict[int, str] = {}
    deviated: dict[str, tuple[int, int, str]] = {}  # how often, and of the first the position and the trace
    begin = 0
    judged.cover(of, dict.fromkeys(spec.actions, 0))
    while begin < len(traces):
        end = max(begin + 1, int(starts.searchsorted(starts[begin] + AT_ONCE, side="right")) - 1)
        events, about = _events(spec, told, order[starts[begin] : starts[end]])
        own = starts[begin : end + 1] - starts[begin]
        replayed = kernel(of, options.ignored).replay(
            own, events.action, events.args, building.states(spec, end - begin),
            origins=np.zeros(end - begin, np.int64), widths=np.zeros(end - begin, np.int64), profile=options.profile,
        )  # fmt: skip
        judged.cover(of, dict(zip(spec.actions, replayed.covered.tolist(), strict=True)))
        for n, deviation in enumerate(spec.deviations):
            if replayed.deviated[n]:
                at = int(replayed.deviated_at[n])
                mine = name(int(traces[begin + int(own.searchsorted(at, side="right")) - 1]))
                count, first, where = deviated.get(deviation.step.__name__, (0, int(about[at]), mine))
                deviated[deviation.step.__name__] = count + int(replayed.deviated[n]), first, where
        for bad, departure in _departures(judged, options, of, replayed, own, events, rules):
            judged.tell(name(int(traces[begin + bad])), int(about[int(replayed.bad_at[bad])]), departure)
        if judged.exported:
            for trace, low, high in zip(traces[begin:end].tolist(), own[:-1].tolist(), own[1:].tolist(), strict=True):
                judged.joint(judged.end, of, name(trace), [events.at(n) for n in range(low, high)])
        begin = end
    for step, (count, first, where) in deviated.items():
        judged.anomaly(step, count, first, where)


def _events(spec: Spec, told: Sequence[OfStep], chosen: Ints) -> tuple[Events, Ints]:
    """Some of the events, each chosen by its number among all that are told; and what each is about."""
    events, about, begin = Events.room(spec, len(chosen)), np.empty(len(chosen), np.int64), 0
    for some in told:
        (mine,) = np.nonzero((chosen >= begin) & (chosen < begin + len(some.traces)))
        of_some = chosen[mine] - begin
        events.action[mine] = spec.codes[some.step]
        about[mine] = some.about[of_some]
        for argument, values in some.args.items():
            events.column(argument)[mine] = values[of_some]
        begin += len(some.traces)
    return events, about


def _departures(
    judged: JudgedStore,
    options: Options,
    of: str,
    replayed: Replayed,
    starts: Ints,
    events: Events,
    rules: dict[int, str],
) -> Iterator[tuple[int, Departure]]:
    """What the plain functions refuse of the traces that a kernel refused. What would only be counted is not replayed.

    The departures are to be told as they come. `rules`: why the kernel refuses, and the rule that this is.
    """
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
