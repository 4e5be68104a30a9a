"""Watching of a recording while a broker writes to it: findings at once, reports now and then.

The loop decides when; the source (`sources/following.py`) decides what is judged, and how. The verdict at the end is
that of a check.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gapless.native import expecting
from gapless.native.objects.object_code import compiling_seconds
from gapless.traces.check import InputCheck, reported
from gapless.traces.evidence import NO_EVIDENCE, Evidence
from gapless.traces.inputs import Input
from gapless.traces.options import EVERYTHING, Options
from gapless.traces.problems import NothingThere, Unreadable, UsageError, pasted, shown
from gapless.traces.processes.timeouts import OutOfTime
from gapless.traces.report.parts import Parts
from gapless.traces.report.values import Finding, Report
from gapless.traces.sources.following import (
    FollowingSource,
    FollowPlace,
    FollowProgress,
    LocationChange,
    LogGauge,
    RecordingFollower,
    ReportedKeys,
    SavedState,
)
from gapless.traces.sources.registry import following, knows, recognised
from gapless.traces.sources.surroundings import refusal

EVERY = 0.5  # seconds between two looks
SAVED = 30.0  # seconds after which the place is kept again
REPORTED = 60.0  # seconds after which the whole report is made again, where anything is new
FIRST = 1.0  # seconds after which it is made for the first time, and again when the present is reached
SHARE = 40  # a report is made after this many times as long as the last one took: so it takes 2.5 % of a core at most
MOST = 1000  # findings that are kept, in case that what they were found in vanishes
TROUBLED = 10.0  # seconds that a store may be unreadable before it is reopened


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
        evidence: Evidence = NO_EVIDENCE,
        options: Options = EVERYTHING,
        *,
        state: str | os.PathLike[str] | None = None,
        version: str = "",
        every: float = EVERY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open nothing yet: `path` is a store directory, or a folder that contains a `store/`, and may not exist yet.

        `evidence`, `options`: as of a check · `state`: the file that keeps the place; only the same `version` of
        gapless reads it. Raises UsageError.
        """
        self.path, self.listeners, self.every, self.clock = Path(path), listeners, every, clock
        self.evidence, self.asked = evidence, options
        self._choose_source()
        if not knows(self.source, self.path) and self._is_of_another_kind():
            raise UsageError(f"{shown(path)}: {_refusal(self.path)}")
        self.state = Path(state) if state else None
        self.version = version
        kept = self._kept(self.state) if self.state else None
        self.checkpoint: FollowPlace | None = kept.checkpoint if kept else None
        self.reported: ReportedKeys = set(kept.reported) if kept else set()
        self.status = WatchStatus(self.measure, findings=Counter(rule for rule, _trace, _position in self.reported))
        self.follower: RecordingFollower | None = None
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
        self.settled, self.behind_since = -1, self.began

    def _choose_source(self) -> None:
        """Choose by what is there; as long as there is nothing, ours is chosen, and another one may still come."""
        self.source: FollowingSource = following(self.path)
        self.options = replace(self.asked, profile=self.asked.profile or self.source.profile)
        self.gauge: LogGauge = self.source.gauge(self.path)

    def _is_of_another_kind(self) -> bool:
        """True for a file, and for a recording that is not followed: no store will come there."""
        with suppress(OSError):
            return self.path.is_file() or (self.path.is_dir() and recognised(self.path) is not None)
        return False

    def _kept(self, state: Path) -> SavedState | None:
        return self.source.read_state(state, self._named, self.options, self.version)

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
        if once and self.source.recognise(self.path) is None:
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
            before = follower.progress()
            with expecting(before.records_ahead if self.last else 0):  # the first report waits for no compiler
                more = follower.round()
        except LocationChange as other:
            self.listeners.on_message(str(other))
            self._close()
            return True
        except (NothingThere, Unreadable, OSError) as problem:
            self._troubled(problem)
            return False
        progress = follower.progress()
        self._well(follower, progress)
        if progress.position != before.position or self.status.running:
            self.rested = False
        self.dirty |= progress.position != before.position
        self.status.bytes += max(0, progress.position - before.position)
        self.caught_up = not more
        self._say(follower)
        self._count(progress)
        self.lost = self.lost or follower.lost
        now = self.clock()
        since = now - self.reported_at
        if follower.departed and not more:
            self._find(follower.report_early())
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
        reached = self.checkpoint.position if self.checkpoint else None
        begin = reached if status.position is None else status.position
        gauge = self.gauge
        end = gauge.end(begin or 0)
        if end is None:
            return
        if begin is None:
            begin = gauge.start()
        status.lag_bytes = 0 if end <= self.settled else max(0, end - begin)
        status.lag_seconds = max(0.0, self.clock() - self.behind_since) if status.lag_bytes else 0.0

    def _open(self) -> RecordingFollower:
        if (found := self.source.recognise(self.path)) is None and self.checkpoint is None:
            self._choose_source()
            found = self.source.recognise(self.path)
        if found is None:
            what = self.source.presentation.label
            raise NoStoreYet(f"{shown(self.path)}: waiting for a {what} there: {self._why_none()}")
        follower = self.source.follow(self.path, found, self.options, self.evidence, self.checkpoint, self.clock)
        follower.reported = self.reported
        self.follower = follower
        at = f"{found}: watched from {follower.reached:,} on"
        self.listeners.on_message(at if self.checkpoint is None else f"{at}, where it was left")
        self.gauge = self.source.gauge(self.path, follower)
        self.status.up, self.status.running, self.status.left = True, follower.is_running(), follower.left
        self._count(follower.progress())
        self.lost = self.lost or follower.lost
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

    def _well(self, follower: RecordingFollower, progress: FollowProgress) -> None:
        self.trouble, self.status.up = "", True
        self.unreadable = self.waits = False
        if progress.rounds % 10 == 1:
            self.status.running = follower.is_running()

    def _say(self, follower: RecordingFollower) -> None:
        while follower.says:
            self.listeners.on_message(follower.says.popleft())

    def _count(self, progress: FollowProgress) -> None:
        status = self.status
        status.records, status.queues, status.position = progress.records, progress.queues, progress.position
        status.lag_bytes = progress.lag
        self.settled, self.behind_since = progress.settled, progress.behind_since
        status.lag_seconds = max(0.0, self.clock() - progress.behind_since) if progress.lag else 0.0
        status.entries_position = progress.entries
        status.entries_lag_bytes = max(0, progress.position - progress.entries)
        if status.restarts != progress.restarts:
            self.reported_up_to_date = False  # judged again: the next report is made as soon as all is
        status.restarts = progress.restarts
        status.rounds, status.looked_again = progress.rounds, progress.looked_again

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

    def _reported(self, judged: Any) -> Report:
        check = InputCheck(Input(self.path, self.path, self.source), self.options)
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

    def _write(self, state: Path, place: FollowPlace) -> None:
        """Save the place in a file; an error is reported once, and the next save tries again."""
        try:
            self.source.write_state(
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


def _refusal(path: Path) -> str:
    """The reason why a path is no recording that is followed, with the command that was typed."""
    if (known := recognised(path)) is not None:
        kind = known[0].presentation.label
        return f"a recording that is not followed while it is written ({kind}): gapless check {pasted(path)} judges it"
    return refusal(path).replace("gapless check ", "gapless watch ")
