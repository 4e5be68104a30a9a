"""Follows a store: each round adds the new part of its log to the judgement as one more split.

A record is added once all its entries are written, or will never be: a broker appends first, and builds queues later.
What a kernel refuses is read again, for it may have been half written. What only the end of a log shows, such as
missing entries and cursors, is judged on a copy, by `parts`: the code is that of a check.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import starmap
from pathlib import Path
from typing import Any

from gapless.traces.engines.local import Local
from gapless.traces.options import Options
from gapless.traces.problems import Gone, NothingThere, Unreadable, shown
from gapless.traces.processes.timeouts import deadline_deferred
from gapless.traces.replay.exact import named
from gapless.traces.report.parts import Parts
from gapless.traces.report.values import Finding
from gapless.traces.sources.following import FollowProgress, LocationChange, ReportedKeys
from gapless.traces.sources.rocketmq import PROFILE
from gapless.traces.sources.rocketmq.check import StoreCheck
from gapless.traces.sources.rocketmq.clients.follow import TraceFollower
from gapless.traces.sources.rocketmq.clients.trace_topic_evidence import with_trace_topics
from gapless.traces.sources.rocketmq.explanations import finding as explain
from gapless.traces.sources.rocketmq.joining.checkpoint import Checkpoint, renew, restore, save
from gapless.traces.sources.rocketmq.joining.findings import Breach, RefusedPiece, StoreFindings
from gapless.traces.sources.rocketmq.joining.log import StoreJudge
from gapless.traces.sources.rocketmq.layouts import registry
from gapless.traces.sources.rocketmq.layouts.layout import LayoutFollower
from gapless.traces.sources.rocketmq.queues.joined_queues import MISSING
from gapless.traces.sources.rocketmq.segments import tasks
from gapless.traces.sources.rocketmq.segments.results import Piece, SplitResult, Subject
from gapless.traces.sources.rocketmq.segments.splits import SPLIT, Split
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory, is_locked
from gapless.traces.sources.rocketmq.store.opening import open_store
from gapless.traces.sources.rocketmq.summary import summary
from gapless.traces.sources.rocketmq.watching.breaches import departures, queue_breaches
from gapless.traces.sources.rocketmq.watching.deletions import forget_deleted, is_recreated
from gapless.traces.sources.rocketmq.watching.entries import Block, SeenEntries, read
from gapless.traces.sources.rocketmq.watching.listing import FileListing, file_named_by, log_sizes
from gapless.traces.sources.rocketmq.watching.live_files import LiveQueues, as_live, layout_of, with_log_files
from gapless.traces.sources.rocketmq.watching.readiness import (
    PATIENCE,
    Entries,
    EntriesInFiles,
    refusals,
    refused_last,
    subjects_refused,
)
from gapless.traces.sources.rocketmq.watching.tail import Anchor, Stretch, Tail, anchor, log_folders, written_up_to
from gapless.traces.sources.rocketmq.watching.watch_checkpoint import Numbers, WatchCheckpoint

LOOK_AGAIN = 0.2  # seconds after which what was refused is read again
SHORTLY = 0.05  # seconds after which an entry that is another one is read again
SOON = 2.0  # seconds after which what cannot be read counts as written
FILES_AGAIN = 10.0  # seconds between two looks at which files the log has
OTHERS = 2.0  # seconds between two looks at the parts next to log and queues
BETWEEN = 0.25  # seconds between two looks at entries that were judged, where more of the log waits
MUCH = 4 << 20  # bytes of the log after which they are not waited for
SAVEPOINTS = 2  # that are kept, to go back to where the log is cut off
AGAIN = 3  # times that the store is opened again where files go away while it is read
LINES = 1000  # things to say that wait to be read
TRACES = "traces"  # names the follower of trace topics among those of layouts


class Follower:
    """One store that is followed."""

    judges_entries = True
    follows_others = True

    def __init__(
        self,
        path: Path,
        folder: Path,
        options: Options,
        config: Path | None = None,
        checkpoint: WatchCheckpoint | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`checkpoint`: of an earlier run, to continue from. Raises Unreadable, NothingThere."""
        self.path, self.folder, self.config, self.options = path, folder, config, options
        self.clock = clock
        self.numbers = Numbers(behind_since=clock())
        self.says: deque[str] = deque(maxlen=LINES)
        self.reported: ReportedKeys = set()
        self.tail, self.seen = Tail(), SeenEntries(clock)
        self.gone: dict[tuple[Subject, int], float] = {}  # entries that are zeros now: since when
        self.unread: tuple[int, float] = (-1, 0.0)  # where no record can be read, and since when
        self.files_at = self.news_at = clock()
        self.savepoints: list[WatchCheckpoint] = []
        self.departed = False  # something departs that was not reported yet
        self.lost, self.written = "", -1  # the first file that vanished; where the log ended when it grew last
        self.listing, self.sizes = FileListing(), dict[str, int]()
        self.layout = layout_of(folder)
        self.store = self._opened()
        self.entries: Entries = self._entries()
        self.judge = self._judge()
        if checkpoint is not None and self._go_on(checkpoint):
            self.listing = checkpoint.listing.copy()
            self._look_for_losses()
        self.numbers.lag = written_up_to(self.store, self.reached) - self.reached

    # -- opening -----------------------------------------------------------------------------------------------------

    def _opened(self) -> StoreDirectory:
        return as_live(open_store(self.folder, self.config, bare=True))

    def _entries(self) -> Entries:
        queues = self.store.queues
        assert isinstance(queues, LiveQueues)  # noqa: S101 - `as_live` made them
        return EntriesInFiles(queues, self.options, self.clock)

    def _judge(self, saved: Mapping[str, Any] | None = None) -> StoreJudge:
        """Begins a judgement. `saved`: of layouts and traces."""
        self.anchor: Anchor | None = None
        self.others = _followers(self.options, self.store.start, saved or {})
        # Layouts and traces: time and position of the last look, time of the next. Entries: last look.
        self.others_at, self.others_from, self.others_rest, self.entries_at = -OTHERS, 0, 0.0, -BETWEEN
        return StoreJudge(self.store, self.options)

    def _go_on(self, checkpoint: WatchCheckpoint) -> bool:
        """Continues from a checkpoint, if the log still has its anchor."""
        if self.judges_entries and not checkpoint.entries:
            return False
        below = checkpoint.known.reached < self.store.start
        if below or (checkpoint.anchor is not None and not checkpoint.anchor.holds(self.store)):
            self.says.append(
                "the log is not the one that was followed, or was cut off below the position that was reached: it is "
                "judged from its beginning"
                if not below
                else "the log's first files expired before they were read: it is judged from its beginning, "
                f"{self.store.start:,}"
            )
            return False
        self.judge = self._judge(checkpoint.others)
        restore(self.judge, checkpoint.known)
        renew(self.judge, self.store)
        self.anchor = checkpoint.anchor
        self.savepoints = [checkpoint]
        return True

    # -- rounds ------------------------------------------------------------------------------------------------------

    @property
    def reached(self) -> int:
        """The log position up to which all is judged."""
        return self.judge.reached

    @property
    def indexed(self) -> int:
        """The log position up to which entries are judged."""
        return self.reached

    @property
    def front(self) -> Follower:
        """The follower that is furthest in the log: another one if entries come late."""
        return self

    @property
    def left(self) -> tuple[str, ...]:
        """Names of the parts that wait for the end, or for a check."""
        both = self.layout.database and isinstance(self.store.queues, LiveQueues)
        return ("queues in RocksDB next to those in files",) if both else ()

    def progress(self) -> FollowProgress:
        """Implements `RecordingFollower`: records are those of the front."""
        front, found = self.front, self.front.judge.judged
        return front.numbers.progress(found.records, len(found.queues), front.store.start, front.reached, self.indexed)

    def close(self) -> None:
        """Closes all files."""

    def round(self) -> bool:
        """Judges new records; True if there are more at once. Raises Unreadable, NothingThere."""
        self.numbers.rounds += 1
        try:
            more = self._round()
            with deadline_deferred():
                return self._follow_others() or more
        except (Gone, FileNotFoundError):
            self.entries.forget()
            self._look_at_files()
            return False

    def _round(self) -> bool:
        sizes = log_sizes(log_folders(self.store))
        if sizes != self.sizes or self.clock() - self.files_at > FILES_AGAIN:
            self._look_at_files()
            self.sizes = sizes
        self._look_for_losses(self.clock())
        self._check_same_log()
        written = written_up_to(self.store, self.reached)
        stretch = self._new()
        if stretch is None:
            self.numbers.lag, self.numbers.behind_since, self.numbers.settled = 0, self.clock(), written
            self._look_at_entries()
            return False
        end = max(written, stretch.end) if stretch.more else stretch.end
        if end != self.written:  # otherwise it waits for entries
            self.written, self.news_at = end, self.clock()
        self.numbers.lag = end - self.reached
        result = self._judged(stretch.split)
        if result is not None and not stretch.more and (last := refused_last(result)) >= 0:
            result = self._before(stretch.split, last)
        taken = result is not None
        if result is not None:
            self._add(result)
            if stretch.more:
                self.tail.most = min(2 * self.tail.most, SPLIT)
            self.numbers.lag = max(0, end - self.reached)
            if not self.numbers.lag and not stretch.more:
                self.numbers.behind_since = self.clock()
        if not stretch.more or self.clock() - self.entries_at >= BETWEEN:
            self._look_at_entries()
        return stretch.more and taken

    def _follow_others(self, *, at_once: bool = False) -> bool:
        """Follows layouts and traces up to the judged end of the log; True if there is more at once.

        Not in each round, because each time has a fixed cost, and not before log and queues had as much time as it
        took.
        """
        begin = self.clock()
        due = begin - self.others_at >= OTHERS or self.reached - self.others_from >= MUCH
        if not self.follows_others or not (at_once or (due and begin >= self.others_rest)):
            return False
        more = False
        for other in self.others.values():
            more |= other.follow(self.store, self.reached, self.judge.judged.queues)
            self.departed |= other.departed
            other.departed = False
        if not more:
            self.others_at, self.others_from = self.clock(), self.reached
        self.others_rest = 2 * self.clock() - begin
        return more

    def _look_at_files(self) -> None:
        self.files_at = self.clock()
        store = with_log_files(self.store)
        if store is not self.store:
            self.store = store
            renew(self.judge, store)
        if self.reached < store.start:
            self._restart("the log's first files expired before they were read")

    def _log_still_holds(self) -> bool:
        return self.anchor is None or self.anchor.holds(self.store)

    def _check_same_log(self) -> None:
        if self.layout != layout_of(self.folder):
            raise LocationChange(f"{self.store.path}: its log or its queues have moved; it is opened again")
        if self._log_still_holds():
            return
        self._look_at_files()
        if self._log_still_holds():
            return
        self.seen.forget_all()
        for saved in reversed(self.savepoints):
            if saved.known.reached >= self.store.start and saved.anchor and saved.anchor.holds(self.store):
                self.numbers.gone_back += 1
                before = self.reached
                self._go_on(saved)
                self.says.append(
                    f"the log was cut off below {before:,}, as a broker does when it starts after a crash: judged "
                    f"again from {saved.known.reached:,} on"
                )
                return
        self._begin_again("the log is another one, or was cut off below where it was known")

    def _restart(self, why: str) -> None:
        self.numbers.restarts += 1
        self.savepoints = []
        self.seen.forget_all()
        self.listing = FileListing()
        self.judge = self._judge()
        self.says.append(f"{why}: judged from {self.store.start:,} on, and all before is forgotten")

    def _look_for_losses(self, now: float = math.inf) -> None:
        """Begins again if files that were judged are gone, or shorter. `now`: as of `missing_file`."""
        queues = self.judge.judged.queues if isinstance(self.store.queues, LiveQueues) else {}
        if lost := self.listing.missing_file(self.store, self.reached, queues, now):
            self._begin_again(f"{lost} is gone, or shorter than it was", lost)
        self.departed |= self.listing.take_deletions()

    def _begin_again(self, why: str, lost: str = "") -> None:
        self.lost = self.lost or lost
        self.store = self._opened()
        self.entries = self._entries()
        self._restart(why)

    def _new(self) -> Stretch | None:
        """Returns the new part of the log, as far as its entries are known."""
        at, reach = self.reached, self.entries.reach()
        found = self._found(at) if at < reach else None
        return found.below(reach) if found else None

    def _found(self, at: int) -> Stretch | None:
        found = self.tail.stretch(self.store, at)
        if found is None and self.tail.file_is_full(self.store, at):
            self._look_at_files()
            found = self.tail.stretch(self.store, at)
        if found is not None or not self.tail.is_written(self.store, at):
            return found
        if self.unread[0] != at:
            self.unread = at, self.clock()
        if self.clock() - self.unread[1] < SOON:
            return None
        return self.tail.beyond(self.store, at)

    # -- one stretch -------------------------------------------------------------------------------------------------

    def _judged(self, split: Split) -> SplitResult | None:
        """Judges the stretch as far as its entries are present, refusals twice; None if it has to wait."""
        result = self.entries.judged(self.store, split)
        if result is None or not refusals(result):
            return result
        for _ in range(3):
            before = refusals(result)
            self.numbers.looked_again += 1
            time.sleep(LOOK_AGAIN)
            for subject in subjects_refused(result):
                self.entries.look_again(subject)
            result = self.entries.judged(self.store, split)
            if result is None or refusals(result) == before:
                break
        return result

    def _before(self, split: Split, position: int) -> SplitResult | None:
        """The stretch without its last record, which is half written, or torn: a broker that starts would drop it."""
        high = position - split.file.base
        return self.entries.judged(self.store, replace(split, high=high)) if high > split.low else None

    def _add(self, result: SplitResult) -> None:
        with deadline_deferred():  # or what is known would be no place to go on from
            self._join(result)

    def _join(self, result: SplitResult) -> None:
        before = departures(self.judge, result)
        if isinstance(self.store.queues, LiveQueues):
            for subject in forget_deleted(self.store, self.judge.judged.queues, result):
                self.seen.forget(subject)
        self.judge.add(result)
        if isinstance(self.store.queues, LiveQueues):
            self.seen.add(self.store, result)
        last = max((segment.last for segment in result.segments), default=-1)
        if last >= 0:
            self.anchor = anchor(self.store, last)
        self.departed |= departures(self.judge, result) > before or bool(refusals(result))

    # -- entries that change -----------------------------------------------------------------------------------------

    def _look_at_entries(self) -> None:
        self.entries_at = self.clock()
        if changed := self.seen.changed(self.store):
            self._look_at_files()  # those that have expired take their entries with them
        for block in changed:
            if block.last < self.store.start:
                continue
            if self.entries.look_again(block.subject) and not any(read(self.store, block)):
                self.seen.forget(block.subject)  # its topic was deleted
                continue
            time.sleep(SHORTLY)
            if self.seen.is_changed(self.store, block):
                self._judge_again(block)

    def _judge_again(self, block: Block) -> None:
        """Judges the messages of a block again, after its entries changed between two readings."""
        low = block.first - block.file.base
        split = Split(block.file, low, block.last - block.file.base + 1, exact=True)
        run = self.judge.judged.queues.get(block.subject)
        result = tasks.judge(self.store, split, self.options)
        for segment in result.segments:
            for piece in starmap(Piece, segment.pieces.each()):
                if piece.subject != block.subject or piece.refusal is None or run is None or run.ended:
                    continue
                event = piece.refusal.event
                if event[0].startswith("index") and is_recreated(
                    self.store, self.entries, block.subject, named("queue", event)["number"], self.reached
                ):
                    self.seen.forget(block.subject)
                    return
                if piece.refusal.rule == MISSING and not self._is_gone_for_long(block):
                    return
                state = self.judge.queues.state(run, first=piece.number, indexed=piece.number, end=piece.number)
                run.suspect = RefusedPiece(split, segment.start, state, piece.refusal)
                self.departed = True
                self.seen.forget(block.subject)
                return

    def _is_gone_for_long(self, block: Block) -> bool:
        """True if entries are zeros for longer than a starting broker needs to write them again."""
        return self.clock() - self.gone.setdefault((block.subject, block.low), self.clock()) > PATIENCE

    # -- what it comes to --------------------------------------------------------------------------------------------

    def checkpoint(self) -> WatchCheckpoint:
        """Saves a checkpoint, to continue from it."""
        others = {name: other.snapshot() for name, other in self.others.items()}
        known = save(self.judge), self.anchor, self.judges_entries
        checkpoint = WatchCheckpoint(*known, others, self.listing.copy())
        self.savepoints = [*self.savepoints, checkpoint][-SAVEPOINTS:]
        return checkpoint

    def is_running(self) -> bool:
        """True if a broker has locked the store."""
        return is_locked(self.folder / "lock")

    def whole(self, *, last: bool = False) -> StoreFindings:
        """Returns the findings of a check of the whole store as it is now. Raises Unreadable.

        While a broker writes, or may start again, the unjudged part is left out, unless this is the `last` time.
        """
        if last:
            with suppress(NothingThere, Unreadable):  # to open it says so
                self._look_at_files()
                self._look_for_losses()
        for left in range(AGAIN, -1, -1):  # a broker that stops takes away the file that it had made in advance
            try:
                return self._whole(last=last)
            except (Gone, FileNotFoundError) as gone:
                if left == 1:  # what is known depends on a file that is not there any more
                    lost = file_named_by(gone)
                    self._begin_again(f"{lost} is gone", lost)
                if not left or (left == 1 and not last):
                    raise
        raise AssertionError

    def _whole(self, *, last: bool) -> StoreFindings:
        while self._follow_others(at_once=True):
            pass
        ends = last or self.is_at_rest()
        again = ends and bool(self.judge.queues.waiting)  # what was left open because the broker ran is decided now
        if again:
            store = open_store(self.folder, self.config)
        else:
            running = not ends or self.is_running()
            ways = {name: way for name, other in self.others.items() if (way := other.opens(running=running))}
            store = open_store(self.folder, self.config, bare=not ends, opens=ways)
            store = store if ends else self._so_far(store)
        known, source = None if again else self._known_of(store), shown(str(self.path))
        clients = with_trace_topics(store, None, source) if known is None else None
        if known and (reported := self.others[TRACES].known(store, self.reached)):
            clients, known = reported[0].of_source(source), replace(known, promises=reported[1])
        return StoreCheck(self.path, store, self.options, clients, before=known).whole(Local(jobs=1))

    def _known_of(self, store: StoreDirectory) -> Checkpoint | None:
        """Returns the checkpoint from which a check of `store` may continue, if any."""
        if not store.start <= self.reached <= store.limit:
            return None
        layouts = {name: other.known(store, self.reached) for name, other in self.others.items() if name != TRACES}
        return replace(save(self.judge), layouts={name: known for name, known in layouts.items() if known is not None})

    def _so_far(self, store: StoreDirectory) -> StoreDirectory:
        """The store as far as it was followed, for a report."""
        return replace(store, live=True, clean=False, moment=None, twin=None, limit=self.reached)

    def is_at_rest(self) -> bool:
        """True if no broker runs and nothing was written for some time."""
        return not self.is_running() and self.clock() - self.front.news_at > PATIENCE

    def parts(self, judged: StoreFindings) -> Parts:
        """The same, for a report."""
        return summary(self.path, judged, self.options)

    def report_early(self) -> Iterator[Finding]:
        """Yields the departures of the log and of queues at once; `report` adds those of the log's end.

        A queue that starts again at 0, or that has an entry for an unread part, may be of a topic that was created
        again.
        """
        yield from self._report(queue_breaches(self.judge, self.options))

    def report(self, judged: StoreFindings) -> Iterator[Finding]:
        """Yields the departures that were not reported before."""
        self.departed = False
        yield from self._report(judged.breaches, judged)

    def _report(self, breaches: list[Breach], judged: StoreFindings | None = None) -> Iterator[Finding]:
        how = f" --profile {self.options.profile}" if self.options.profile != PROFILE else ""
        for found in sorted(breaches, key=lambda f: (f.position, f.trace)):
            key = found.rule, found.trace, found.position
            if key not in self.reported:
                self.reported.add(key)
                known = judged or self.judge.judged
                yield explain.finding(known, found, source=str(self.path), how=how, count=1, traces=[found.trace])


def _followers(options: Options, start: int, saved: Mapping[str, Any]) -> dict[str, LayoutFollower]:
    """Returns the followers of trace topics, and of all layouts that have one."""
    kinds = {layout.name: layout.follower for layout in registry.LAYOUTS if layout.follows}
    return {name: kind(options, start, saved.get(name)) for name, kind in ({TRACES: TraceFollower} | kinds).items()}
