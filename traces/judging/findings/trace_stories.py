"""The story of each trace that departs, as text, and the reason of each that is inconclusive: one for every trace.

A report has one story for all traces that break the same rule; a table has room for each. A story takes an exact replay
of its trace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gapless.traces.judging.batches import by_exact_replay
from gapless.traces.judging.columns import Traces
from gapless.traces.judging.findings.explaining import explained
from gapless.traces.judging.judge import Judge
from gapless.traces.judging.tallies import Suspect, Tally
from gapless.traces.options import Options
from gapless.traces.problems import shown
from gapless.traces.replay.exact import story
from gapless.traces.replay.possible_states import STATES

UNOPENED = "It does not begin with open, which states how a trace begins, mid-life or new: it was not judged."
BARE = "No step in it was surely taken: nothing was checked."
OVERRULED = "A kernel refuses its step at position {}, and the plain functions do not: please report this."


def text_of(suspect: Suspect, name: str, position_of: Callable[[int], int] | None = None) -> str:
    """Format the story of one trace. `position_of`: of a step's number in the trace."""
    departure, where = suspect.departure, None
    assert departure is not None  # noqa: S101 - for the type checker: it is explained
    if position_of is not None:

        def where(number: int) -> str:
            return f"position {position_of(number)}"

    title = f"{departure.spec} {shown(name)} departs at position {suspect.at.position}."
    return "\n".join(story(departure, title=title, also=suspect.also, where=where))


def reason_of(tally: Tally) -> str:
    """The reason why the one trace of a tally is inconclusive."""
    if tally.unopened:
        return UNOPENED
    if tally.unpromised:
        _, first = tally.unpromised
        return (
            f"At position {first.position} the environment breaks its promise: what the system does then is not judged."
        )
    if tally.given_up:
        _, first = tally.given_up
        return (
            f"So many outcomes are unknown that more than {STATES} states are possible after position "
            f"{first.position}: the rest was not judged."
        )
    return BARE


class TraceStories:
    """Makes the stories of whole traces."""

    def __init__(self, options: Options) -> None:
        self.options = replace(options, listed=False)

    def column(self, traces: Traces, verdicts: pa.RecordBatch) -> tuple[pa.RecordBatch, list[str | None]]:
        """Return the story or the reason of each trace that does not conform, by the traces' verdict rows.

        Where the plain functions do not refuse what a kernel refused, the verdict becomes inconclusive.
        """
        stories: list[str | None] = [None] * len(traces.names)
        others = pc.not_equal(verdicts.column("verdict"), pa.scalar("conforms"))
        exact = by_exact_replay(traces)
        for trace in np.flatnonzero(others.to_numpy(zero_copy_only=False)).tolist():
            row = verdicts.slice(trace, 1).to_pylist()[0]
            if row["verdict"] == "departs":
                suspect = self._suspect(traces, trace, row["position"], row["rule"], exact=bool(exact[trace]))
                if suspect is None:
                    verdicts = _inconclusive(verdicts, trace)
                    stories[trace] = OVERRULED.format(row["position"])
                else:
                    stories[trace] = self._text(traces, trace, suspect)
            else:
                stories[trace] = reason_of(self._alone(traces, trace))
        return verdicts, stories

    def _text(self, traces: Traces, trace: int, suspect: Suspect) -> str:
        positions = traces.position[traces.events(int(traces.starts[trace]), int(traces.starts[trace + 1]))]
        return text_of(suspect, traces.name(trace), lambda number: int(positions[number - 1]))

    def _suspect(self, traces: Traces, trace: int, position: int, rule: str, *, exact: bool) -> Suspect | None:
        """Explain the first departure of a trace; None if the plain functions do not have it there."""
        if exact:
            found = [cluster.first[0] for cluster in self._alone(traces, trace).clusters.values()]
            suspect = min(found, key=lambda one: one.at, default=None)
        else:
            events = traces.events(int(traces.starts[trace]), int(traces.starts[trace + 1]))
            at = int(np.searchsorted(traces.position[events], position))
            suspect = explained(traces, int(events[at]), self.options)
        if suspect is None or suspect.departure is None or suspect.departure.rule != rule:
            return None
        return suspect

    def _alone(self, traces: Traces, trace: int) -> Tally:
        """Judge one trace by itself."""
        judge = Judge("", self.options)
        judge.take(traces.only(trace, 0, int(traces.starts[trace + 1] - traces.starts[trace])), np.ones(1, np.bool_))
        return judge.tallies[traces.spec.name]


def _inconclusive(verdicts: pa.RecordBatch, trace: int) -> pa.RecordBatch:
    rows = verdicts.to_pylist()
    rows[trace] |= {"verdict": "inconclusive", "rule": None, "position": None}
    return pa.RecordBatch.from_pylist(rows, schema=verdicts.schema)
