"""The findings about one store, as data: departures, queues, the log's end, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import State
from gapless.traces.judging.building import Events
from gapless.traces.judging.findings.lateness import LateTask
from gapless.traces.replay.exact import Departure, Event, named
from gapless.traces.report.pictures.kinds import Picture
from gapless.traces.report.values import Moments, VerdictName
from gapless.traces.sources.remarks import Remarks
from gapless.traces.sources.rocketmq.blame.circumstances import circumstances
from gapless.traces.sources.rocketmq.blame.situation import NONE, Circumstance, Decision, DecisionCell, Situation, place
from gapless.traces.sources.rocketmq.clients.evidence import ClientEvidence
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import among
from gapless.traces.sources.rocketmq.log import scan
from gapless.traces.sources.rocketmq.queues.queue_database import QueueDatabase
from gapless.traces.sources.rocketmq.report_rows import ClientRow, TraceTopicRow
from gapless.traces.sources.rocketmq.segments.lifetime import Lifetime
from gapless.traces.sources.rocketmq.segments.results import Refusal, Slot, Subject, name_of
from gapless.traces.sources.rocketmq.segments.splits import Split
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.transactions.parameters import Totals

Truths: TypeAlias = "npt.NDArray[np.bool_]"
STORIES = 40  # departures of one kind that are reported; more are counted with them
Opened = TypeVar("Opened")


@dataclass(frozen=True)
class Breach:
    """A departure, and its log position."""

    trace: str
    position: int
    departure: Departure
    detail: str = ""  # what else a reader should know
    picture: Picture | None = None
    database: QueueDatabase | None = None  # the database with the entry, if files have it too

    @property
    def spec(self) -> str:
        """The spec whose step was refused."""
        return self.departure.spec

    @property
    def rule(self) -> str:
        """The id of the rule that is broken."""
        return self.departure.rule

    @property
    def action(self) -> str:
        """The step that was refused."""
        return self.departure.event[0]

    @property
    def arguments(self) -> dict[str, int]:
        """Its arguments."""
        return named(self.spec, self.departure.event)


@dataclass(frozen=True)
class Hazard:
    """A violation at the broker's next start: the step that it will take, and the number of wrong slots.

    `files`: the empty files that they lie in; none for old bytes.
    """

    breach: Breach
    slots: int
    files: tuple[int, ...] = ()


@dataclass(frozen=True)
class RefusedPiece:
    """A queue that a kernel refused: the segment, the state, and the reason. Not reported yet."""

    split: Split
    start: int
    state: State
    refusal: Refusal


@dataclass(slots=True)
class QueueProgress:
    """The state of a queue after the joined pieces: `first`, `indexed`, `end` and `blank` are the spec's."""

    first: int
    indexed: int
    end: int
    opened: int  # the number of its first message
    began: int  # log position of its first message
    last: int = 0  # log position of its last message
    behind: Slot = (0, 0, 0)  # slot `stop`, which lies behind the last piece
    stop: int = 0
    blank: int = 0
    messages: int = 0
    skipped: int = 0  # numbers that it passed over, for their messages may lie in damage of the log
    batches: int = 0  # of them inner batches, which have no entry in a simple consume queue
    damage_seen: int = 0  # damaged stretches of the log that its pieces may have jumped over
    restarted: bool = False  # a number 0 follows others: the topic may have been created again
    recreated_at: int = 0  # log position of the first message of the topic that was created again: no entry is older
    pending: tuple[Split, int] | None = None  # the segment in which its entries fall behind its messages
    breach: Breach | None = None
    suspect: RefusedPiece | None = None
    waits: bool = False  # the rest was not judged: an entry that a start writes is missing, or its state is unknown

    @property
    def departs(self) -> bool:
        """True if the queue was refused, reported or not."""
        return self.breach is not None or self.suspect is not None

    @property
    def ended(self) -> bool:
        """True if nothing more is judged of the queue."""
        return self.breach is not None or self.suspect is not None or self.waits


@dataclass
class TraceList:
    """Every transaction and op, if requested; `accepted` and `ops` as in `Judgement`.

    `refused`: name, rule (None where it cannot be decided), position, and events before it.
    """

    accepted: list[Ints] = field(default_factory=list)
    ops: list[Ints] = field(default_factory=list)
    refused: list[tuple[str, str | None, int | None, int]] = field(default_factory=list)

    def take_back(self, keys: Ints) -> None:
        """Removes transactions with these keys, which are judged again."""
        self.accepted = [some[:, ~among(some[0], keys)] for some in self.accepted]


class DeferredTrace(NamedTuple):
    """A trace with too many events to be kept."""

    spec: str
    trace: str
    events: Callable[[], Iterator[Events]]


@dataclass
class StoreFindings(Remarks):
    """All findings about one store."""

    store: StoreDirectory
    end: int  # the log's exclusive end
    evidence: ClientEvidence | None = None  # what the store's clients say
    exported: bool = False  # its events are wanted, so that `joints` are remembered
    records: int = 0
    breaches: list[Breach] = field(default_factory=list)
    echoes: list[Breach] = field(
        default_factory=list
    )  # not reported, because the missing part may be in damage of the log
    hazards: list[Hazard] = field(default_factory=list)
    feared: list[Breach] = field(default_factory=list)  # other steps to come that will depart: hazards
    feared_more: Counter[str] = field(default_factory=Counter)  # those that are only counted: by rule
    unreported: dict[str, int] = field(default_factory=dict)  # only counted: by rule
    departing: set[str] = field(default_factory=set)  # queues that were refused, reported or only counted
    unnamed: int = 0  # departures of queues that are counted without the name of the queue
    stories: Counter[str] = field(default_factory=Counter)  # departures by rule, reported or not: see `report`
    inconclusive: list[str] = field(default_factory=list)
    unread_file: str = ""  # why a file cannot be read on which the verdict depends: all else is judged
    notes: list[str] = field(default_factory=list)
    unwritten: list[str] = field(default_factory=list)  # what the broker writes at its next start, if it starts
    queues: dict[Subject, QueueProgress] = field(default_factory=dict)
    covered: dict[str, int] = field(default_factory=dict)  # accepted events by spec and action
    anomalies: dict[str, tuple[int, int, str]] = field(default_factory=dict)  # count, first position, its trace
    damage: list[tuple[int, int]] = field(default_factory=list)  # stretches of the log that are no record
    last_record: int = -1  # log position of the last record, in a DLedger log of its entry
    lived: Lifetime = field(default_factory=Lifetime)  # of its broker, by the times of the records
    overdue: list[tuple[LateTask, int]] = field(default_factory=list)  # the worst tasks, and where each lies in the log
    stepped_back: int = -1  # log position of the last record that is older than the one before it
    ends_in_the_past: bool = False  # the last record is older than another one
    joints: list[tuple[int, str, str, Sequence[Event]]] = field(default_factory=list)  # see `joint`
    unjudged: set[int] = field(default_factory=set)  # log positions of records whose transactions are not judged
    unread: dict[Subject, int] = field(default_factory=dict)  # from where in the log a queue's extension is not judged
    later: list[DeferredTrace] = field(
        default_factory=list
    )  # likewise, of traces that are made again when they are written
    tiered_index: list[str] = field(default_factory=list)  # traces of the files of the index of tiered storage
    client: ClientRow | None = None
    moments: Moments | None = None  # that its files look to be of
    testimony: TraceTopicRow | None = None
    life: list[str] = field(default_factory=list)  # of the one transaction that is wanted, a line for each step
    listed: TraceList = field(default_factory=TraceList)
    transactions: Totals = field(default_factory=Totals)
    counters: list[int] = field(default_factory=lambda: [0] * scan.COUNTERS)
    opened: dict[str, Any] = field(default_factory=dict)  # files of layouts, by a name: see `open`

    def open(self, name: str, opens: Callable[[], Opened]) -> Opened:
        """Returns the files of a layout, which are opened once: for its judge, for others, and to explain."""
        if name not in self.opened:
            self.opened[name] = opens()
        found: Opened = self.opened[name]
        return found

    @property
    def newest_waits(self) -> bool:
        """True if the newest message that belongs into a queue is not known to have its entry."""
        newest = max(self.queues.values(), key=lambda run: run.last, default=None)
        return newest is not None and (newest.departs or newest.indexed < newest.end)

    def verdict_of(self, queue: Subject) -> VerdictName:
        """The verdict on a queue: as its entries, and as the promises to its clients."""
        run = self.queues[queue]
        if run.departs or name_of(queue) in self.departing:
            return "departs"
        return "inconclusive" if run.waits or run.skipped or self.unnamed else "conforms"

    def report(self, trace: str, position: int, departure: Departure, detail: str = "") -> None:
        """Adds a departure, or only counts it after enough of its rule."""
        if departure.spec == "queue":
            self.departing.add(trace)
        if not self.is_over_limit(departure.rule):
            self.find(trace, position, departure, detail)

    def is_over_limit(self, rule: str) -> bool:
        """Counts a departure from a rule; True if enough were reported, so that it is only counted."""
        self.stories[rule] += 1
        enough = self.stories[rule] > STORIES
        if enough:
            self.count_only(rule)
        return enough

    def find(
        self,
        trace: str,
        position: int,
        departure: Departure,
        detail: str = "",
        picture: Picture | None = None,
        *,
        database: QueueDatabase | None = None,
    ) -> Breach:
        """Add a departure."""
        breach = Breach(trace, position, departure, detail, picture, database)
        self.breaches.append(breach)
        return breach

    def count_only(self, rule: str, count: int = 1) -> None:
        """Only counts departures, after enough of their rule were reported."""
        self.unreported[rule] = self.unreported.get(rule, 0) + count

    def cover(self, spec: str, accepted: Mapping[str, int]) -> None:
        """Count accepted events, by action."""
        for action, count in accepted.items():
            self.covered[f"{spec}.{action}"] = self.covered.get(f"{spec}.{action}", 0) + count

    def anomaly(self, name: str, count: int, position: int, trace: str) -> None:
        """Count anomalies; the first of a kind in the log is its exemplar."""
        before, first, its_trace = self.anomalies.get(name, (0, position, trace))
        first, its_trace = min((first, its_trace), (position, trace))
        self.anomalies[name] = (before + count, first, its_trace)

    def joint(self, position: int, spec: str, trace: str, events: Sequence[Event]) -> None:
        """Keeps events of a trace that no worker replayed: they belong between, before or behind the pieces."""
        if self.exported:
            self.joints.append((position, spec, trace, events))

    def cell(self, situation: Situation, more: Circumstance = NONE) -> DecisionCell:
        """Returns the cell of a situation that is about this store. `more`: circumstances of what was found."""
        return situation.cell(circumstances(self.store) | more)

    def accuses(self, situation: Situation, more: Circumstance = NONE) -> bool:
        """True if a situation accuses the broker of this store."""
        return self.cell(situation, more).decision is Decision.VIOLATION

    def blame(self, situation: Situation, more: Circumstance = NONE, /, **values: object) -> Decision:
        """Returns the decision about what was found, after adding its doubt or its note.

        `values`: for the sentence; if their `count` is 0, nothing is added.
        """
        cell = self.cell(situation, more)
        if values.get("count", 1) and cell.decision in (Decision.DOUBT, Decision.NOTE):
            tell = self.doubt if cell.decision is Decision.DOUBT else self.note
            tell(situation.sentence(cell, values))
        return cell.decision

    def caveat(self, situation: Situation, more: Circumstance = NONE, /, **values: object) -> str:
        """Returns what else may be the cause of a violation, or an empty text."""
        cell = self.cell(situation, more)
        return situation.sentence(cell, values) if cell.decision is Decision.VIOLATION else ""

    def accuses_where(self, situation: Situation, beyond: Truths) -> Truths:
        """Returns the mask of what accuses the broker; `beyond`: which of it lies beyond the log's end."""
        within, behind = (self.accuses(situation, place(beyond=one)) for one in (False, True))
        return np.where(beyond, behind, within)

    def blame_for(self, situation: Situation, positions: Ints, **values: object) -> None:
        """Adds the doubt or the note of what was found at these log positions, if there are any."""
        if len(positions):
            beyond = int(positions[0]) >= self.end
            self.blame(situation, place(beyond=beyond), count=len(positions), first=int(positions[0]), **values)

    def judges(self, situation: Situation, more: Circumstance = NONE, /, **values: object) -> bool:
        """True if something is judged; adds the note why not."""
        return self.blame(situation, more, **values) is Decision.VIOLATION
