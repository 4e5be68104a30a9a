"""The traces of many small files, read as one block and replayed as one batch.

Only what can be counted is decided here: files in which a kernel accepts every step, as one that the design has. All
others are left to a judge of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gapless.spec.catalog import END
from gapless.traces.events.encoded_batch import EncodedBatch
from gapless.traces.events.event import OUTCOMES, TAKEN, Ints
from gapless.traces.events.schema import EventSchema
from gapless.traces.judging.batches import Batch, asked_for, slices
from gapless.traces.judging.columns import Traces
from gapless.traces.judging.tallies import Tally
from gapless.traces.options import Options
from gapless.traces.replay.kernels import kernel
from gapless.traces.report.outputs import verdict_table

Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _OfSpec:
    """The traces of one spec in all files.

    `files`: int64 [traces], rising, the file of each · `chosen`: those that are judged · `begins`: int64 [files], the
    row of its file at which the spec is met first, -1 where it is not · `covered`, `inferred`: int64 [files, actions] ·
    `rested`: int64 [files].
    """

    traces: Traces
    files: Ints
    chosen: Truths
    begins: Ints
    covered: Ints
    inferred: Ints
    rested: Ints

    def tally(self, file: int) -> Tally:
        """The tally of one file, whose steps are all accepted."""
        low, high = np.searchsorted(self.files, [file, file + 1])
        traces = int(self.chosen[low:high].sum())
        tally = Tally(int(self.begins[file]), asked=traces, traces=traces, events=int(self.covered[file].sum()))
        actions = list(self.traces.spec.actions)
        tally.covered = _counts(actions, self.covered[file])
        tally.recorded = dict(tally.covered)
        tally.inferred = _counts(actions, self.inferred[file])
        tally.rested = int(self.rested[file])
        return tally

    def verdicts(self, file: int, source: str) -> pa.RecordBatch:
        """The rows of the verdict table for one file."""
        low, high = np.searchsorted(self.files, [file, file + 1])
        mine = low + np.flatnonzero(self.chosen[low:high])
        none = np.zeros(len(mine), np.int64)
        names, events = self.traces.names.take(pa.array(mine)), np.diff(self.traces.starts)[mine]
        return verdict_table.rows_of(source, self.traces.spec.name, names, none, none - 1, [], none, events)


def _counts(actions: list[str], counts: Ints) -> dict[str, int]:
    return {name: count for name, count in zip(actions, counts.tolist(), strict=True) if count}


class ManyFiles:
    """Files whose events were read as one batch; `begins`: int64 [files + 1], where those of each begin."""

    def __init__(self, of: EventSchema, options: Options, events: EncodedBatch, begins: Ints) -> None:
        self.options = options
        self.counted = np.ones(len(begins) - 1, np.bool_)  # the files that are decided here
        file = np.repeat(np.arange(len(self.counted)), np.diff(begins))
        if events.saw is not None:
            self.counted[file[events.saw.is_valid().to_numpy(zero_copy_only=False)]] = False
        self.counted[file[~TAKEN[events.outcome]]] = False
        self._specs = [self._judged(traces, files) for traces, files in _gathered(of, events, file, begins)]

    def tallies(self) -> list[dict[str, Tally] | None]:
        """The tallies of every file by spec; None if it must be judged by itself."""
        return [self._tallies(file) if counted else None for file, counted in enumerate(self.counted.tolist())]

    def _tallies(self, file: int) -> dict[str, Tally]:
        return {one.traces.spec.name: one.tally(file) for one in self._specs if one.begins[file] >= 0}

    def verdicts(self, file: int, source: str) -> list[pa.RecordBatch]:
        """The rows of the verdict table for a file that is decided here."""
        return [one.verdicts(file, source) for one in self._specs if one.begins[file] >= 0]

    def _judged(self, traces: Traces, files: Ints) -> _OfSpec:
        """Replay the traces of one spec, and count them."""
        spec, chosen = traces.spec, asked_for(traces, self.options)
        self._leave(files[traces.of[_falling(traces)]])
        if next(iter(spec.actions)) == "open":
            self._leave(files[chosen & (traces.action[traces.begins()] != spec.codes["open"])])
        chosen &= self.counted[files]
        for low, high in slices(traces.starts):
            batch = Batch(traces, low + np.flatnonzero(chosen[low:high]))
            found = batch.replay(kernel(spec, self.options.ignored), self.options.profile)
            strange = found.bad_why != 0
            if spec.deviations:
                strange |= found.deviant != 0
            self._leave(files[batch.traces[strange]])
        of_event, mine = files[traces.of], chosen[traces.of]
        begins = np.full(len(self.counted), -1, np.int64)
        begins[of_event[::-1]] = traces.row[::-1]
        inferred = traces.outcome == OUTCOMES.index("inferred")
        rests = np.unique(traces.of[mine & (traces.action == spec.codes.get(END, -1))])
        return _OfSpec(
            traces, files, chosen, begins,
            self._table(of_event[mine], traces.action[mine], len(spec.actions)),
            self._table(of_event[mine & inferred], traces.action[mine & inferred], len(spec.actions)),
            np.bincount(files[rests], minlength=len(self.counted)),
        )  # fmt: skip

    def _leave(self, files: Ints) -> None:
        self.counted[files] = False

    def _table(self, files: Ints, action: npt.NDArray[np.int8], actions: int) -> Ints:
        """Count the actions in every file."""
        size = len(self.counted) * actions
        found: Ints = np.bincount(files * actions + action, minlength=size).reshape(len(self.counted), actions)
        return found


def _falling(traces: Traces) -> Ints:
    """The events with a lower position than the one before them in their trace."""
    every = np.arange(len(traces.of)) if traces.order is None else traces.order
    position, of = traces.position[every], traces.of[every]
    return every[1 + np.flatnonzero((position[1:] < position[:-1]) & (of[1:] == of[:-1]))]


def _gathered(of: EventSchema, events: EncodedBatch, file: Ints, begins: Ints) -> list[tuple[Traces, Ints]]:
    """Gather the traces of each spec in the order of the files, with the file of each."""
    codes = of.steps_spec[events.step]
    specs, found = list(of.specs.values()), []
    for code in np.flatnonzero(np.bincount(codes)).tolist():
        spec, mine = specs[code], np.flatnonzero(codes == code)
        count = len(events.trace.dictionary)
        keys, first, place = np.unique(
            file[mine] * count + events.trace.indices.to_numpy()[mine], return_index=True, return_inverse=True
        )
        order = np.argsort(first)  # as they are met
        trace = np.empty(len(order), np.int32)
        trace[order] = np.arange(len(order), dtype=np.int32)
        keys, traces = keys[order], trace[place]
        starts = np.zeros(len(keys) + 1, np.int64)
        np.cumsum(np.bincount(traces, minlength=len(keys)), out=starts[1:])
        nothing = np.broadcast_to(np.int64(0), len(codes))
        first_step = of.steps.index((spec.name, next(iter(spec.actions))))
        of_spec = Traces(
            spec,
            events.trace.dictionary.take(pa.array(keys % count, pa.int64())),
            traces,
            None if (traces[1:] >= traces[:-1]).all() else np.argsort(traces, kind="stable"),
            starts,
            mine - begins[file[mine]],
            events.position[mine],
            (events.step[mine] - first_step).astype(np.int8),
            events.outcome[mine],
            [events.args.get(name, nothing)[mine] for name in spec.arguments],
            {},
        )
        found.append((of_spec, keys // count))
    return found
