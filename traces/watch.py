"""Watching of a store while a broker writes to it: findings at once, reports now and then.

The loop decides when; the source (`sources/rocketmq/watching/`) decides what is judged, and how. The verdict at the end
is that of a check.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gapless.native import expecting
from gapless.native.object_code import compiling_seconds
from gapless.spec.catalog import PROFILES
from gapless.traces.check import InputCheck, ignored_rules, no_such_profile, reported
from gapless.traces.inputs import Input
from gapless.traces.options import Options
from gapless.traces.problems import NothingThere, Unreadable, UsageError, shown
from gapless.traces.report.parts import Parts
from gapless.traces.report.values import Finding, Report
from gapless.traces.sources.registry import sources
from gapless.traces.sources.rocketmq import PROFILE
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.source import SOURCE
from gapless.traces.sources.rocketmq.store.directory import store_folder
from gapless.traces.sources.rocketmq.watching.factory import make_follower
from gapless.traces.sources.rocketmq.watching.follower import Follower
from gapless.traces.sources.rocketmq.watching.state_file import SavedState, read_state, write_state
from gapless.traces.sources.rocketmq.watching.tail import log_end, log_folders, log_folders_in, log_start
from gapless.traces.sources.rocketmq.watching.watch_checkpoint import LayoutChange, WatchCheckpoint
from gapless.traces.sources.surroundings import refusal
from gapless.traces.timeouts import OutOfTime

EVERY = 0.5  # seconds between two looks
SAVED = 30.0  # seconds after which the place is kept again
REPORTED = 60.0  # seconds after which the whole report is made again, where anything is new
FIRST = 1.0  # seconds after which it is made for the first time, and again when the present is reached
SHARE = 40  # a report is made after this many times as long as the last one took: so it takes 2.5 % of a core at most
MOST = 1000  # findings that are kept, in case that what they were found in vanishes
TROUBLED = 10.0  # seconds that a store may be unreadable before it is reopened

sources()  # a report has rows of theirs


class NoStoreYet(NothingThere):
    """The store is not there, and may be made later."""


@dataclass
class WatchStatus:
    """The numbers of a watch at any moment, for metrics: other threads read them. None: not known yet."""

    measure: Callable[[], None] = lambda: None  # measures the lag again: the broker writes meanwhile
    up: bool | None = None  # the store is there, and can be read
    running: bool | None = None  # a broker holds its lock
    records: int = 0
    position: int | None = None  # log position up to which all is judged
    bytes: int = 0  # that were judged since the start of this process
    lag_bytes: int | None = None
    lag_seconds: float | None = None
    entries_position: int | None = None  # log position up to which entries are judged, too
    entries_lag_bytes: int | None = None
    left: tuple[str, ...] = ()  # what is not judged as it is written
    queues: int = 0
    findings: Counter[str] = field(default_factory=Counter)
    anomalies: dict[str, int] = field(default_factory=dict)  # of the last report
    overdue: float | None = None  # seconds that the worst task of the last report is late
    undecided: int = 0  # reasons of the last report why not everything could be judged
    restarts: int = 0  # times that it went back, or began again
    reports: int = 0
    rounds: int = 0
    looked_again: int = 0

    @property
    def conforms(self) -> bool | None:
        """True if nothing departs so far; None as long as nothing is judged."""
        return not self.findings if self.records or self.findings else None


@dataclass
class Listeners:
    """Callbacks of a watch: each sentence, each departure with its story, and each report of the whole."""

    on_message: Callable[[str], None]
    on_finding: Callable[[Finding], None]
    on_report: Callable[[Report], None] = lambda _report: None


class StoreWatch:
    """The watch of one store."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        listeners: Listeners,
        *,
        profile: str | None = None,
        config: str | os.PathLike[str] | None = None,
        only: Sequence[str] = (),
        ignore: Sequence[str] = (),
        state: str | os.PathLike[str] | None = None,
        version: str = "",
        every: float = EVERY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open nothing yet: `path` is a store directory, or a folder that contains a `store/`, and may not exist yet.

        `state`: the file that keeps the place; only the same `version` of gapless reads it · the others as of `check`.
        Raises UsageError.
        """
        if profile is not None and profile not in PROFILES:
            raise UsageError(no_such_profile(profile))
        if Path(path).exists() and not Path(path).is_dir():
            raise UsageError(f"{shown(path)}: {_refusal(Path(path))}")
        self.path, self.listeners, self.every, self.clock = Path(path), listeners, every, clock
        self.config = Path(config) if config else None
        self.options = Options(profile=profile or PROFILE, ignored=ignored_rules(only, ignore))
        self.state = Path(state) if state else None
        self.version = version
        kept = self._kept(self.state) if self.state else None
        self.checkpoint: WatchCheckpoint | None = kept.checkpoint if kept else None
        self.reported = set(kept.reported) if kept else set()
        self.status = WatchStatus(self.measure, findings=Counter(rule for rule, _trace, _position in self.reported))
        self.follower: Follower | None = None
        self.trouble = self.unkept = ""
        self.unreadable = self.waits = False  # what the trouble is
        self.trouble_since = 0.0
        self.began = self.saved = self.reported_at = self.clock()
        self.took = self.kept_in = 0.0
        self.compiled = compiling_seconds()
        self.last: Report | None = None
        self.findings: dict[tuple[str, str, int], Finding] = {}  # that were reported since the start, the first `MOST`
        self.lost = ""  # a file that vanished
        self.dirty, self.rested = True, False  # the last report was made of a store at rest
        self.caught_up = self.reported_up_to_date = False
        self.log: list[Path] = []  # folders
        self.settled, self.behind_since = -1, self.began

    def _kept(self, state: Path) -> SavedState | None:
        return read_state(state, self._named, self.options.profile, self.options.ignored, self.version)

    @property
    def _named(self) -> str:
        return str(self.path.absolute())

    # -- the loop ----------------------------------------------------------------------------------------------------

    def run(self, waits: Callable[[float], bool], *, once: bool = False) -> Report:
        """Watch until `waits(seconds)` returns True, and return the last report.

        `once`: until the present is reached. Time may be up for the end, too: then the report is the one before. Raises
        UsageError if the place cannot be saved at the end, and if there is no store to go through `once`.
        """
        idle = 0
        if once and store_folder(self.path) is None:
            raise UsageError(f"{shown(self.path)}: {self._why_none()}")
        try:
            while True:
                more = self.look()
                if once:
                    idle = 0 if more or self._is_behind() else idle + 1
                    if idle > 1:
                        return self.end()
                if waits(0.0 if more else self.every):
                    break
        except OutOfTime:
            self.keep()
            return self._stands("ended while it was reading")
        self.keep()
        try:
            return self.end()
        except OutOfTime:
            return self._stands("ended before its last report was made")

    def _stands(self, why: str) -> Report:
        """Keep the report before: there was no time for another."""
        self.listeners.on_message(f"{why}: the report before stands" if self.last else why)
        self.trouble = self.trouble or "it ended before its first report was made"
        return self.last or self._reported(None)

    def _is_behind(self) -> bool:
        return self.follower is not None and bool(self.status.running and self.status.lag_bytes)

    def look(self) -> bool:
        """Run one round and act on it; True if there is more to read at once."""
        try:
            follower = self.follower or self._open()
            before = follower.front.reached
            with expecting(_records_ahead(follower) if self.last else 0):  # the first report waits for no compiler
                more = follower.round()
        except LayoutChange as other:
            self.listeners.on_message(str(other))
            self._close()
            return True
        except (NothingThere, Unreadable, OSError) as problem:
            self._troubled(problem)
            return False
        self._well(follower)
        if follower.front.reached != before or self.status.running:
            self.rested = False
        self.dirty |= follower.front.reached != before
        self.status.bytes += max(0, follower.front.reached - before)
        self.caught_up = not more
        self._say(follower)
        self._count(follower)
        now = self.clock()
        since = now - self.reported_at
        if follower.departed and not more:
            self._find(follower.report_queues())
        departs = follower.departed and (not more or since > SAVED)
        rests = not (more or self.rested or self.status.running) and follower.is_at_rest()
        if departs or rests or (self.dirty and since > self._pause):
            self._report()
        if self.dirty and now - self.saved > max(SAVED, SHARE * self.kept_in):
            self.keep()
        return more

    @property
    def _pause(self) -> float:
        """Seconds until the next report: fewer until the first one, and until one covers all that is written."""
        soon = not self.reported_up_to_date and (self.caught_up or self.last is None)
        return max(FIRST if soon and self.status.records else REPORTED, SHARE * self.took)

    def measure(self) -> None:
        """Measure the lag against the broker now; metrics call this in another thread."""
        status = self.status
        if not self.log:
            self.log = log_folders_in(self.path)
        reached = self.checkpoint.known.reached if self.checkpoint else None
        begin = reached if status.position is None else status.position
        end = log_end(self.log, begin or 0)
        if end is None:
            return
        if begin is None:
            begin = log_start(self.log)
        status.lag_bytes = 0 if end <= self.settled else max(0, end - begin)
        status.lag_seconds = max(0.0, self.clock() - self.behind_since) if status.lag_bytes else 0.0

    def _open(self) -> Follower:
        folder = store_folder(self.path)
        if folder is None:
            raise NoStoreYet(f"{shown(self.path)}: waiting for a RocketMQ store there: {self._why_none()}")
        follower = make_follower(self.path, folder, self.options, self.config, self.checkpoint, self.clock)
        follower.reported = self.reported
        self.follower = follower
        at = f"{follower.store.path}: watched from {follower.reached:,} on"
        self.listeners.on_message(at if self.checkpoint is None else f"{at}, where it was left")
        self.log = log_folders(follower.front.store)
        self.status.up, self.status.running, self.status.left = True, follower.is_running(), follower.left
        self._count(follower)
        for what in follower.left:
            self.listeners.on_message(f"not judged as it is written, but at the end: {what}")
        return follower

    def _why_none(self) -> str:
        if self.path.is_dir() and not any(self.path.iterdir()):
            return "the directory is empty"
        return _refusal(self.path)

    def _close(self) -> None:
        """Close the store; the next look opens it again."""
        if self.follower is not None:
            self.checkpoint = self.follower.checkpoint()
            self.follower.close()
            self.follower = None

    def _troubled(self, problem: Exception) -> None:
        """Report a read error once, and try again; reopen the store if it lasts."""
        now = self.clock()
        self.status.up = False
        self.waits = isinstance(problem, NoStoreYet)
        self.unreadable = isinstance(problem, Unreadable | OSError)
        if not self.trouble:
            self.trouble_since = now
        if str(problem) != self.trouble:
            self.trouble = str(problem)
            again = "" if self.waits else "; tried again"
            self.listeners.on_message(f"{problem}{again}")
        if now - self.trouble_since > TROUBLED:
            self._close()

    def _well(self, follower: Follower) -> None:
        self.trouble, self.status.up = "", True
        self.unreadable = self.waits = False
        if follower.numbers.rounds % 10 == 1:
            self.status.running = follower.is_running()

    def _say(self, follower: Follower) -> None:
        while follower.says:
            self.listeners.on_message(follower.says.popleft().text)

    def _count(self, follower: Follower) -> None:
        front, status = follower.front, self.status
        numbers, judge = front.numbers, front.judge
        status.records, status.position = judge.judged.records, front.reached
        status.queues = len(judge.judged.queues)
        status.lag_bytes = numbers.lag
        self.settled, self.behind_since = numbers.settled, numbers.behind_since
        status.lag_seconds = max(0.0, follower.clock() - numbers.behind_since) if numbers.lag else 0.0
        status.entries_position = follower.indexed
        status.entries_lag_bytes = max(0, front.reached - follower.indexed)
        if status.restarts != (restarts := numbers.gone_back + numbers.restarts):
            self.reported_up_to_date = False  # judged again: the next report is made as soon as all is
        status.restarts = restarts
        self.lost = self.lost or follower.lost
        status.rounds, status.looked_again = numbers.rounds, numbers.looked_again

    # -- what it comes to --------------------------------------------------------------------------------------------

    def _report(self, *, last: bool = False) -> Report | None:
        """Judge the whole, as a check would now; report new findings, and the report."""
        follower = self.follower
        began = self.clock()
        self.rested = follower is not None and follower.is_at_rest()
        try:
            judged = follower.whole(last=last) if follower else None
        except (NothingThere, Unreadable, OSError) as problem:
            self._troubled(problem)
            return None
        finally:
            self.reported_at = self.clock()
            self.took = self.reported_at - began
        if follower and judged:
            self.lost = self.lost or follower.lost
            self._say(follower)
            self._find(follower.report(judged))
        report = self._reported(judged)
        self.status.undecided = sum(len(source.reasons) for source in report.sources)
        self.status.anomalies = dict(report.anomalies)
        self.status.overdue = max((row.late for row in report.overdue), default=0) / 1000
        self.status.reports += 1
        self.last = report
        self.reported_up_to_date |= self.caught_up
        self.listeners.on_report(report)
        self.dirty = False
        return report

    def _find(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self.status.findings[finding.rule] += 1
            if len(self.findings) < MOST:
                self.findings[finding.rule, finding.trace, finding.position] = finding
            self.listeners.on_finding(finding)

    def _reported(self, judged: StoreFindings | None) -> Report:
        check = InputCheck(Input(self.path, self.path, SOURCE), self.options, None)
        if judged is None or self.follower is None:
            why = self.trouble or "nothing was read"
            if self.waits and self.last is None:
                why = "no store came while it was watched"
            check.kind = check.kind if self.findings else "unknown"
            check.parts = Parts(unreadable=why) if self.unreadable else Parts(reasons=[why])
            check.parts.findings = list(self.findings.values())
        else:
            check.parts = self.follower.parts(judged)
            if self.lost and self.findings and not check.parts.violations:
                check.parts.reasons.append(f"{self.lost} is gone: the findings from before that stay")
                check.parts.findings = [*self.findings.values(), *check.parts.findings]
        compiling = compiling_seconds() - self.compiled
        return reported([check], "local", self.clock() - self.began).model_copy(update={"compiling": compiling})

    def keep(self) -> None:
        """Save the place in memory, and in the state's file."""
        self.saved = began = self.clock()
        if self.follower is None:
            return
        place = self.follower.checkpoint()
        if self.state is not None:
            self._write(self.state, place)
        self.kept_in = self.clock() - began

    def _write(self, state: Path, place: WatchCheckpoint) -> None:
        """Save the place in a file; an error is reported once, and the next save tries again."""
        try:
            write_state(
                state,
                SavedState(self._named, self.options.profile, self.options.ignored, place, frozenset(self.reported)),
                self.version,
            )
        except OSError as error:
            trouble = f"{state}: cannot be written ({error.strerror}); tried again"
            if trouble != self.unkept:
                self.listeners.on_message(trouble)
            self.unkept = trouble
        else:
            self.unkept = ""

    def end(self) -> Report:
        """End the watch: the last report, and the place. Raises UsageError if that cannot be saved."""
        report = self._report(last=True)
        self.keep()
        if self.unkept:
            raise UsageError(self.unkept.removesuffix("; tried again"))
        return report or self._reported(None)


def _records_ahead(follower: Follower) -> int:
    """Estimate the records that are written and not judged yet."""
    front = follower.front
    return front.numbers.lag * front.judge.judged.records // max(front.reached - front.store.start, 1)


def _refusal(path: Path) -> str:
    """The reason why a path is no recording, with the command that was typed."""
    return refusal(path).replace("gapless check ", "gapless watch ")
