"""A layout: a kind of file next to a store's log, whose traces are judged together with the log.

A layout is a folder and a line in `registry.py`. The line has the names that a report needs; the folder has the code,
in up to six modules, each of which is loaded when it is needed:

* `opening.py` has an `OpeningSide`, `OPENING`, of files that are opened with the store, for workers.
* `worker.py` has a `WorkerSide`, `WORKER`: it looks into a segment while its records are in memory.
* `judge.py` has a `JoinSide`, `LAYOUT`: it takes what workers found, segment by segment, and judges the layout's files
  once the end of the log is known.
* `follow.py` has a `LayoutFollower`, `FOLLOWER`, of files that are judged while a broker writes them; others are judged
  when it has stopped.
* `explain.py` has an `Explanation`, `EXPLANATION`, of what departs.
* `export.py` has a `LayoutExporter`, `EXPORTER`, of events that no judge keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from gapless.traces.judging.building import Events
    from gapless.traces.options import Options
    from gapless.traces.report.values import Where
    from gapless.traces.sources.rocketmq.columns.bytes import Ints
    from gapless.traces.sources.rocketmq.joining.findings import Breach, StoreFindings
    from gapless.traces.sources.rocketmq.segments.queue_events import QueueEvents
    from gapless.traces.sources.rocketmq.segments.results import Segment, Subject
    from gapless.traces.sources.rocketmq.segments.splits import Columns, Sought
    from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
    from gapless.traces.sources.rocketmq.store.files import LogFile


OF_THE_LOG, OF_QUEUES, OF_TABLES = 1, 2, 3
"""Ranks of findings: those in the log itself, at 0, may explain all others, and those of a low rank the higher ones."""


class SegmentView(NamedTuple):
    """A segment in the worker that has read it, from log position `start` to `end`; the next one overwrites it.

    `wrapped`: bytes of a header before each record · `entries`: the events of queues, with their entries.
    """

    store: StoreDirectory
    columns: Columns
    start: int
    end: int
    wrapped: int
    entries: QueueEvents


Opens = Callable[[Path, Mapping[str, str], Sequence["LogFile"]], Any]
"""Opens the files of a layout in a store, by its settings and the files of its log; None without any."""


@dataclass(frozen=True)
class OpeningSide:
    """The part of a layout that opens its files with the store.

    `opens`: raises Unreadable · `needs`: as of a `JoinSide` · `notes`: on the files, and on a running broker.
    """

    opens: Opens
    needs: frozenset[str]
    notes: Callable[[Any, bool], Iterable[str]]


@dataclass(frozen=True)
class WorkerSide:
    """The part of a layout that workers run.

    `sought`: what a scan must find for it in a store, if it was asked for · `prepare`: compiles what it needs for a
    store · `examine`: compares a segment with the layout's files; what it returns travels to the judge.
    """

    sought: Callable[[StoreDirectory, Options], Sequence[Sought]] = lambda _store, _options: ()
    prepare: Callable[[StoreDirectory, Options], None] = lambda _store, _options: None
    examine: Callable[[SegmentView, Options], Any] = lambda _view, _options: None


class ExportedEvents(NamedTuple):
    """Events of a layout for an export: by index the trace, and the position in the log, of each."""

    events: Events
    names: list[str]
    traces: Ints | None
    positions: Ints


class LayoutExporter:
    """Makes a layout's events again, segment by segment, for an export."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        self.judged = judged
        self.options = options

    def sought(self) -> Sequence[Sought]:
        """Returns what a scan must find for it."""
        return ()

    def of_segment(self, view: SegmentView) -> Iterable[ExportedEvents]:  # noqa: ARG002 - for those that have some
        """Returns the events of a segment."""
        return ()

    def at_end(self) -> Iterable[ExportedEvents]:
        """Returns the events that come behind those of the log."""
        return ()


class LayoutJudge:
    """Judges the files of a layout in one store."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        self.judged = judged
        self.options = options

    @property
    def store(self) -> StoreDirectory:
        """The store as it was opened last."""
        return self.judged.store

    def add(self, segment: Segment) -> None:
        """Adds what a worker found in a segment; they come in the order of the log."""

    def restore(self, known: Any) -> None:
        """Restores what was found before, when the log was shorter."""

    def settle(self) -> None:
        """Judges what is there, after the log and its queues were judged to their end."""
        raise NotImplementedError


@dataclass(frozen=True)
class JoinSide:
    """The part of a layout that judges."""

    judge: Callable[[StoreFindings, Options], LayoutJudge]  # is made for each store
    needs: frozenset[str] = frozenset()  # parts of a store: if a link in one leads nowhere, nothing is judged
    without_records: bool = False  # it is judged though the log has no record
    is_present: Callable[[StoreFindings, Options], bool] = lambda _judged, _options: False  # if it alone is asked for
    files: Callable[[StoreFindings], Sequence[str]] = lambda _judged: ()  # the names of those that are traces
    traces: Callable[[StoreFindings], int] = lambda _judged: 0  # how many were judged, as a report counts them
    not_exercised: Callable[[StoreFindings], Iterable[str]] = lambda _judged: ()  # what was not judged, and why


class LayoutFollower:
    """Follows the files of a layout while a broker writes them, behind the judgement of the log."""

    departed = False  # something departs that did not so before

    def __init__(self, options: Options, start: int, saved: Any = None) -> None:  # noqa: ARG002 - for those that need them
        """`start`: the log's begin · `saved`: a snapshot to continue from."""
        self.options = options

    def follow(self, store: StoreDirectory, reached: int, queues: Collection[Subject]) -> bool:
        """Takes in what is new, up to the log's judged end; True if there is more at once. Raises Unreadable.

        `queues`: those that are known by then.
        """
        raise NotImplementedError

    def snapshot(self) -> Any:
        """Returns all that was found as a value, to continue from it."""
        raise NotImplementedError

    def known(self, store: StoreDirectory, reached: int) -> Any:
        """Returns what the judge of `store` restores, whose log was judged up to `reached`; None for nothing.

        Raises Unreadable.
        """
        raise NotImplementedError

    def opens(self, *, running: bool) -> Opens | None:  # noqa: ARG002 - as above
        """Returns the way to open its files for the judge, if it is another one. `running`: a broker runs."""
        return None


@dataclass(frozen=True)
class Explanation:
    """The part of a layout that explains its departures."""

    place: Callable[[StoreFindings, Breach], Where | None]  # None if it is the place of its record
    message: Callable[[Breach], str]  # the violation in one sentence without its end
    context: Callable[[StoreFindings, Breach], list[str]] = lambda _judged, _found: []  # what else a reader should know
    subject: Callable[[Breach], str] | None = None  # what departs, if the line in the registry does not say it
    feared: tuple[str, Sequence[str]] = ("at the broker's next start", ())  # when a later step departs, and what then
    rank: int = OF_TABLES  # among findings


@dataclass(frozen=True)
class Layout:
    """A layout by its name, and the spec of its traces.

    `subject`: what such a trace is · `traces`: patterns of the first part of its name and of what follows the slash,
    where no user names it · `opens`, `works`, `follows`, `exports`: it has these parts · `package`: where its folder
    lies.
    """

    name: str
    spec: str
    subject: str = ""
    traces: tuple[str, str] | None = None
    opens: bool = False
    works: bool = False
    follows: bool = False
    exports: bool = False
    package: str = __package__

    @cached_property
    def opening(self) -> OpeningSide:
        """The part that opens files with the store."""
        found: OpeningSide = self._module("opening").OPENING
        return found

    @cached_property
    def worker(self) -> WorkerSide:
        """The part that workers run."""
        found: WorkerSide = self._module("worker").WORKER if self.works else WorkerSide()
        return found

    @cached_property
    def join(self) -> JoinSide:
        """The part that judges."""
        found: JoinSide = self._module("judge").LAYOUT
        return found

    @cached_property
    def explanation(self) -> Explanation:
        """The part that explains what departs."""
        found: Explanation = self._module("explain").EXPLANATION
        return found

    @property
    def follower(self) -> type[LayoutFollower]:
        """The part that follows its files."""
        found: type[LayoutFollower] = self._module("follow").FOLLOWER
        return found

    @property
    def exporter(self) -> type[LayoutExporter]:
        """The part that exports events."""
        found: type[LayoutExporter] = self._module("export").EXPORTER if self.exports else LayoutExporter
        return found

    def _module(self, name: str) -> Any:
        return import_module(f"{self.package}.{self.name}.{name}")


def covered(step: str) -> Callable[[StoreFindings, Options], bool]:
    """Returns `is_present` of a layout that is there if a step was accepted."""
    return lambda judged, _options: bool(judged.covered.get(step))


def without(step: str, text: str) -> Callable[[StoreFindings], Iterable[str]]:
    """Returns `not_exercised` of a layout of which there is nothing but a text if a step was not accepted."""
    return lambda judged: () if judged.covered.get(step) else (text,)
