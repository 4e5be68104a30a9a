"""Joins what the parts of a partition have of its producers: the end of each with the head in the next part."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gapless.spec import catalog
from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import STEPS, Events, Ints
from gapless.traces.replay.exact import Departure
from gapless.traces.replay.kernels import ReplayResult, kernel
from gapless.traces.report.pictures.sequences import SequenceLine
from gapless.traces.sources.kafka.joining.history import PartHistory
from gapless.traces.sources.kafka.joining.producer_table import ROWS, ProducerTable
from gapless.traces.sources.kafka.joining.reporter import Reporter
from gapless.traces.sources.kafka.joining.sequences import sequence_line
from gapless.traces.sources.kafka.joining.states import state_of
from gapless.traces.sources.kafka.judging.part_results import PartResult
from gapless.traces.sources.kafka.judging.parts import NONE
from gapless.traces.sources.kafka.judging.producer_events import EXPIRED
from gapless.traces.sources.kafka.judging.producer_pieces import (
    CLAIMED,
    ProducerPieces,
    counts,
    offset_of,
    opened,
    unknown,
)

PRODUCER, STEP = SPECS["producer"], STEPS["producer"]
COORDINATOR = catalog.rule("producer/snapshot-has-the-epoch-of-the-coordinator").id


class ProducerJudge:
    """Judges all producers of one partition, part by part."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.table = ProducerTable(reporter.terms, reporter.options)

    def add(self, result: PartResult) -> None:
        """Adds the result of the next part."""
        piece, table, found = result.producers, self.table, self.reporter.found
        if result.part.is_first and self.reporter.terms.start > 0:
            self._open_from_snapshot(piece)
        self._expire_silent(result)
        begin = table.begin(piece.producers)
        self._open_new(piece)
        table.count(piece.producers, piece.lengths)
        heads = self._replayed(piece.heads, piece.head_starts, begin)
        agrees = (heads.bad_at < 0) & piece.guessed & (heads.state[ROWS] == piece.met[ROWS]).all(axis=0)
        found.cover("producer", piece.covered)
        self._count_anomalies(result, heads)
        smooth = agrees & ~np.isin(piece.producers, table.ended)
        smooth[list(piece.refused)] = False
        table.put(piece.producers[smooth], piece.ends[:, smooth])
        for number in np.flatnonzero(~smooth).tolist():
            if piece.producers[number] not in table.ended:
                self._again(result, number, begin[:, number], int(heads.bad_at[number]))

    def _replayed(self, events: Events, starts: Ints, begin: Ints) -> ReplayResult:
        """Replays events of some producers by the kernel, and counts those that are accepted."""
        of = kernel("producer", self.reporter.options.ignored)
        profile = self.reporter.options.profile
        replayed = of.replay(starts, events.action, events.args, begin, profile=profile)
        self.reporter.found.cover("producer", counts(PRODUCER, replayed.covered))
        return replayed

    def _count_anomalies(self, result: PartResult, heads: ReplayResult) -> None:
        piece, named = result.producers, {}
        for number, deviation in enumerate(PRODUCER.deviations):
            if heads.deviated[number]:
                event = int(heads.deviated_at[number])
                trace = int(piece.head_starts.searchsorted(event, side="right")) - 1
                name = self.trace(int(piece.producers[trace]))
                named[deviation.step.__name__] = int(heads.deviated[number]), name, offset_of(piece.heads, event)
        self.reporter.anomalies(result, "producer", named)
        tails = {name: (count, self.trace(who), offset) for name, (count, offset, who) in piece.deviated.items()}
        self.reporter.anomalies(result, "producer", tails)

    def trace(self, producer: int) -> str:
        """Returns the name of a producer's trace."""
        return f"{self.reporter.terms.name}/{producer}"

    # -- beginnings and ends -------------------------------------------------------------------------------------------

    def _open_from_snapshot(self, piece: ProducerPieces) -> None:
        """Begins with the producers of the snapshot at the log's start."""
        start, events, first = self.reporter.terms.start, piece.heads, piece.head_starts[:-1]
        snapped = (events.action[first] == PRODUCER.codes["snapshot"]) & (events.column("at")[first] == start)
        at = first[snapped]
        if not len(at):
            return
        claims = unknown(np.full(len(at), start)) | {"known": np.ones(len(at), np.int64)}
        claims |= {name: events.column(name)[at] for name in CLAIMED if name != "known"}
        self.table.put(piece.producers[snapped], opened(self.reporter.terms, claims, self.reporter.options, len(at)))
        self.reporter.found.cover("producer", {"open": len(at)})
        for row, producer in enumerate(piece.producers[snapped].tolist()):
            self._note_opened(producer, {name: int(values[row]) for name, values in claims.items()})

    def _open_new(self, piece: ProducerPieces) -> None:
        """Counts the beginnings of new producers, and keeps them if events are exported."""
        new = piece.producers[~self.table.find(piece.producers)[1]]
        self.reporter.found.cover("producer", {"open": len(new)})
        if self.reporter.joints is not None:
            claims = {name: int(values[0]) for name, values in unknown(np.array([self.reporter.terms.start])).items()}
            for producer in new.tolist():
                self._note_opened(producer, claims)

    def _note_opened(self, producer: int, claims: dict[str, int]) -> None:
        terms = self.reporter.terms
        event = STEP.open(**claims, compacted=int(terms.compacted), checked=int(terms.checked))
        self.reporter.joint("producer", self.trace(producer), claims["at"], event)

    def _expire_silent(self, result: PartResult) -> None:
        """Forgets producers that a snapshot lacks, and that wrote nothing before it in this part."""
        piece = result.producers
        for snapshot in piece.snapshots:
            wrote = piece.producers[piece.first < snapshot.offset]
            gone = np.setdiff1d(np.setdiff1d(self.table.known(), snapshot.producers), wrote)
            if not len(gone):
                continue
            event = STEP.expire(idle=EXPIRED, limit=EXPIRED)
            events, begin = Events.of(PRODUCER, [event] * len(gone)), self.table.begin(gone)
            replayed = self._replayed(events, np.arange(len(gone) + 1), begin)
            good = replayed.bad_at < 0
            self.table.put(gone[good], replayed.state[:, good])
            for producer in gone.tolist():
                self.reporter.joint("producer", self.trace(producer), snapshot.offset, event)
            for number in np.flatnonzero(~good).tolist():
                outcome = self.reporter.exact("producer", state_of("producer", begin[:, number]), [event])
                if outcome.departure:
                    self._departs(result, int(gone[number]), outcome.departure)

    # -- again ---------------------------------------------------------------------------------------------------------

    def _again(self, result: PartResult, number: int, begin: Ints, refused: int) -> None:
        """Judges a producer again, from the state that was really reached. `refused`: the event in its head, or -1."""
        found, piece = self.reporter.read(result).producers, result.producers
        producer = int(piece.producers[number])
        low, high = found.starts[number : number + 2].tolist()
        history = PartHistory(found.events, low, high, begin[:, None], self.reporter.options)
        replayed = history.replayed()
        counted = _counted(piece, number, refused, found.events.action[low:high])
        self.reporter.found.cover("producer", counts(PRODUCER, replayed.covered - counted))
        departure = None
        while replayed.bad_at[0] >= 0 and (departure := history.departure(replayed)):
            if not _was_forgotten(departure):
                break
            self._forget(producer, departure, history)
            replayed = history.replayed()
            self.reporter.found.cover("producer", counts(PRODUCER, replayed.covered))
        if replayed.bad_at[0] < 0:
            self.table.put(np.array([producer]), replayed.state)
        elif departure:
            picture = sequence_line(found.events, low, history.at - 1, high, departure)
            self._departs(result, producer, departure, picture)
        else:
            self.table.put(np.array([producer]), history.state)

    def _forget(self, producer: int, departure: Departure, history: PartHistory) -> None:
        """Forgets a producer before a transaction that a snapshot shows as its first; the snapshot is read again."""
        began = departure.event[1][PRODUCER.parameters["snapshot"].index("transaction")]
        self.reporter.joint("producer", self.trace(producer), began, STEP.expire(idle=EXPIRED, limit=EXPIRED))
        history.state[PRODUCER.scalars.index("coordinator")] = NONE
        history.at -= 1

    def _departs(
        self, result: PartResult, producer: int, departure: Departure, picture: SequenceLine | None = None
    ) -> None:
        self.table.end(np.array([producer]))
        self.reporter.departs(result.part, self.trace(producer), departure, picture)


def _was_forgotten(departure: Departure) -> bool:
    """True if a snapshot says that the transaction of a producer is the first since it was forgotten.

    The broker's memory of an idle producer goes unnoticed where it writes again before the next snapshot.
    """
    if departure.rule != COORDINATOR:
        return False
    snapshot = dict(zip(PRODUCER.parameters["snapshot"], departure.event[1], strict=True))
    return snapshot["coordinator"] == NONE and snapshot["transaction"] >= 0


def _counted(piece: ProducerPieces, number: int, refused: int, action: npt.NDArray[np.int8]) -> Ints:
    """Returns how many events of a producer were counted already, by action: those accepted of its head and its tail.

    `refused`: the event that was refused in its head, or -1 · `action`: of all its events in the part.
    """
    start, end = piece.head_starts[number : number + 2].tolist()
    head = action[: (end if refused < 0 else refused) - start]
    tail = action[end - start : piece.refused.get(number)] if piece.guessed[number] else action[:0]
    counted: Ints = np.bincount(np.concatenate([head, tail]), minlength=len(PRODUCER.actions))
    return counted
