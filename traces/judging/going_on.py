"""Traces that go on: what is known of each after the events so far, to be kept until more of them come.

No event is kept, but the states that are possible, which are as large as their spec makes them, and the verdict as it
stands. It is the verdict that the judge of whole traces gives, which the tests hold it to. There is no story.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from gapless.traces.judging.columns import Traces
from gapless.traces.options import Options
from gapless.traces.problems import Unreadable, shown
from gapless.traces.replay.exact import replay
from gapless.traces.replay.possible_states import Departs, Replay, Taken, TooMany, Unpromised
from gapless.traces.report.values import VerdictName
from gapless.traces.report.verdict_table import SCHEMA


@dataclass
class GoingOn:
    """One trace, and what is known of it. `replayed` is None once no event can change the verdict."""

    spec: str
    trace: str
    replayed: Replay | None
    last: int | None = None  # the position of its last event
    events: int = 0
    verdict: VerdictName = "inconclusive"
    rule: str | None = None  # that is broken
    position: int | None = None  # of the event that is refused

    def take(self, taken: Taken) -> None:
        """Go on by one event. Raises Unreadable where it stands before the last one."""
        if self.last is not None and taken.position < self.last:
            raise Unreadable(
                f"position {taken.position} of {shown(self.trace)} is lower than the one before, {self.last}: expected "
                "the events of a trace in the order in which they took effect, also from one file to the next"
            )
        self.last = taken.position
        self.events += 1
        if self.replayed is not None:
            self._judge(self.replayed, taken)

    def _judge(self, replayed: Replay, taken: Taken) -> None:
        begins = next(iter(replayed.spec.actions))
        if self.events == 1 and begins == "open" and taken.event[0] != begins:
            self._end("inconclusive")
            return
        try:
            replayed.take(taken)
        except Departs as departs:
            self._end("departs")
            self.rule, self.position = _rule(replayed, departs), taken.position
        except (TooMany, Unpromised):
            self._end("inconclusive")
        else:
            self.verdict = "conforms" if replayed.covered else "inconclusive"

    def _end(self, verdict: VerdictName) -> None:
        self.verdict, self.replayed = verdict, None

    def rest(self) -> None:
        """Forget what only a story needs."""
        if self.replayed is not None:
            self.replayed.worlds = [world._replace(deviated=None, undone=None) for world in self.replayed.worlds]


def _rule(replayed: Replay, departs: Departs) -> str:
    """The id of the rule that is broken."""
    spec, options = replayed.spec, replayed.options
    if departs.rule is not None:
        return f"{spec.name}/{departs.rule}"
    again = replay(
        spec, departs.world.state, [departs.taken.event], profile=options.profile, ignored=options.ignored
    ).departure
    assert again is not None  # noqa: S101 - the same function refused it a moment ago
    return again.rule


@dataclass
class Going:
    """All traces that are kept in one place, by spec and name; pickled one by one, for few of them go on at a time."""

    traces: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def take(self, some: Iterable[Traces], options: Options) -> list[GoingOn]:
        """Go on by events of several traces, and say which these are. Raises Unreadable."""
        changed = []
        for traces in some:
            for number in range(len(traces.names)):
                key = traces.spec.name, traces.name(number)
                known = self.traces.get(key)
                one = GoingOn(*key, Replay(traces.spec, options)) if known is None else _unpickled(known)
                for taken in traces.taken(number):
                    one.take(taken)
                one.rest()
                self.traces[key] = pickle.dumps(one)
                changed.append(one)
        return changed

    def each(self) -> Iterator[GoingOn]:
        """One trace after the other."""
        return map(_unpickled, self.traces.values())


def _unpickled(trace: bytes) -> GoingOn:
    one: GoingOn = pickle.loads(trace)  # noqa: S301 - what `take` made
    return one


def rows(source: str, some: Iterable[GoingOn]) -> pa.RecordBatch:
    """Traces as rows of the verdict table."""
    names = ("spec", "trace", "verdict", "rule", "position", "events")
    found = [{"source": source} | {name: getattr(one, name) for name in names} for one in some]
    return pa.RecordBatch.from_pylist(found, schema=SCHEMA)
