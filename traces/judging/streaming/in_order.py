"""Judgement of a file's traces in its order, piece by piece: memory contains open traces and waiting pieces.

A story that needs more than what is kept is made at the end, by reading those traces again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gapless.traces.events.schema import EventSchema
from gapless.traces.judging.batches import Batch, count
from gapless.traces.judging.columns import EventPack, Traces, unpacked
from gapless.traces.judging.judge import Judge
from gapless.traces.judging.streaming.open_traces import OpenTraces
from gapless.traces.judging.tallies import Tally
from gapless.traces.options import Options
from gapless.traces.replay.kernels import Ints, kernel

WAITING = 8 << 20  # bytes of packed events that wait until it pays to continue: some half a million events
REREAD = 4_000_000  # events that are read again at once, or one trace if it has more

Wanted = dict[str, pa.Array]  # type: ignore[type-arg]
"""Names of traces, by spec."""

Read = Callable[[Wanted], Iterable[EventPack]]
"""Reads all events of some traces again, with their rows counted from where their stretch begins."""


class InOrder:
    """Takes the pieces of a file, and judges them. `source`: the file's name in the verdict table."""

    def __init__(self, source: str, options: Options, events: EventSchema) -> None:
        self.source = source
        self.options = options
        self.events = events
        self.open: dict[str, OpenTraces] = {}
        self.verdicts: list[pa.RecordBatch] = []
        self.without_story = 0  # traces that were not read again for their stories
        self._first_rows: Ints = np.zeros(1, np.int64)
        self._waiting: list[EventPack] = []

    def take(self, parts: Sequence[EventPack], first_rows: Ints) -> None:
        """Take some stretches more. `first_rows`: where each begins in the file, from the first stretch on."""
        self._first_rows = first_rows
        self._waiting += parts
        if sum(len(part.events) for part in self._waiting) >= WAITING:
            self._go_on()

    def _go_on(self) -> None:
        waiting, self._waiting = self._waiting, []
        for traces in unpacked(waiting, self._first_rows, self.events):
            self._judge(traces)

    def take_all(self, pieces: Iterable[list[Traces]]) -> int:
        """Take a file piece by piece, and return how many events it has.

        Rows of a piece are counted from where it begins.
        """
        rows = [0]
        for every in pieces:
            rows.append(rows[-1] + self.take_piece(every, rows[-1]))
        self._first_rows = np.array(rows, np.int64)
        return rows[-1]

    def take_piece(self, every: Sequence[Traces], first_row: int) -> int:
        """Take the next piece, and return how many events it has.

        Its rows are counted from `first_row` of the file.
        """
        for traces in every:
            traces.row[:] += first_row
            self._judge(traces)
        return sum(len(traces.of) for traces in every)

    def _judge(self, traces: Traces) -> None:
        name = traces.spec.name
        if name not in self.open:
            self.open[name] = OpenTraces(traces.spec, self.options, int(traces.row.min()))
        self.open[name].take(traces)

    def finish(self, read: Read) -> dict[str, Tally]:
        """Return the tallies of all traces by spec, after reading some of them again."""
        tallies = self.so_far()
        todo = [(spec, place) for spec, one in self.open.items() for place in sorted(one.departing)]
        for some in _in_groups(todo, self.open):
            for spec, traces in self._again(some, read):
                self._replay_exactly(self.open[spec], tallies[spec], traces)
        self.without_story = 0
        first = {
            spec: {
                broken: one.late_stories[broken] for broken, _ in tallies[spec].clusters if broken in one.late_stories
            }
            for spec, one in self.open.items()
        }
        for spec, rules in first.items():
            for some in _in_groups([(spec, place) for place in sorted(set(rules.values()))], self.open):
                for _, traces in self._again(some, read):
                    self._improve_story(self.open[spec], tallies[spec], traces)
        return tallies

    def so_far(self) -> dict[str, Tally]:
        """Return the tallies without reading anything again."""
        self._go_on()
        tallies = {name: one.finished() for name, one in self.open.items()}
        self.without_story = sum(len(one.departing) for one in self.open.values())
        if self.options.listed:
            self.verdicts = [one.rows(self.source) for one in self.open.values()]
        return tallies

    def _again(self, some: Sequence[tuple[str, int]], read: Read) -> Iterator[tuple[str, Traces]]:
        """Yield all events of some traces, with these traces alone."""
        wanted = {
            spec: self.open[spec].names.take(pa.array([p for of, p in some if of == spec], pa.int64()))
            for spec in dict.fromkeys(spec for spec, _ in some)
        }
        for traces in unpacked(list(read(wanted)), self._first_rows, self.events):
            yield traces.spec.name, traces

    def _replay_exactly(self, one: OpenTraces, tally: Tally, traces: Traces) -> None:
        """Replay departing traces exactly, for counts and stories; what kernels counted is subtracted."""
        places = pc.index_in(traces.names, one.names).to_numpy()
        judge = Judge(self.source, replace(self.options, listed=False))
        judge.take(traces, np.ones(len(traces.names), np.bool_))
        replayed = judge.tallies[one.spec.name]
        tally.add(_of_stories(replayed), 0)
        for trace, place in enumerate(places.tolist()):
            low, high = traces.starts[trace : trace + 2].tolist()
            known = int((traces.row[traces.events(low, high)] < one.departing[place].since).sum())
            if known:
                batch = Batch(traces.only(trace, 0, known), np.zeros(1, np.int64))
                found = batch.replay(kernel(one.spec, self.options.ignored), self.options.profile)
                count(traces.only(trace, 0, known), tally, batch, found, -1)

    def _improve_story(self, one: OpenTraces, tally: Tally, traces: Traces) -> None:
        """Replace the story of the first trace that breaks a rule by one from its beginning."""
        for trace in range(len(traces.names)):
            alone = traces.only(trace, 0, int(traces.starts[trace + 1] - traces.starts[trace]))
            judge = Judge(self.source, replace(self.options, listed=False))
            judge.take(alone, np.ones(1, np.bool_))
            for signature, cluster in judge.tallies[one.spec.name].clusters.items():
                known = tally.clusters.get(signature)
                if known and known.first[0].at == cluster.first[0].at:
                    tally.clusters[signature] = replace(known, first=(cluster.first[0], *known.first[1:]))


def _in_groups(todo: Sequence[tuple[str, int]], known: dict[str, OpenTraces]) -> Iterator[list[tuple[str, int]]]:
    """Yield groups of traces that are read at once."""
    some: list[tuple[str, int]] = []
    events = 0
    for spec, place in todo:
        more = int(known[spec].known.events[place])
        if some and events + more > REREAD:
            yield some
            some, events = [], 0
        some.append((spec, place))
        events += more
    if some:
        yield some


def _of_stories(replayed: Tally) -> Tally:
    """Reduce a tally to what it adds about traces that are counted already."""
    return replace(
        replayed, asked=0, traces=0, inferred={}, recorded={}, doubtful={}, checked=set(), rested=0, unopened=None,
        falls=None,
    )  # fmt: skip
