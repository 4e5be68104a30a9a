"""Joins the segments of a store's log, and finds its end.

Workers report segments in log order, each replayed from the state that it claims. Here every end is compared with the
next claim; if they differ, exact replay decides, from the state that was really reached.

The log ends at the first place where no record follows, unless there is something beyond that cannot be old bytes
(docs/design.md#messy-stores): a later file with a record, or records that the queues name. Old bytes, left by an
earlier truncation, may look like good records; they are older than later writes, and are recognised by that.
"""

from __future__ import annotations

from dataclasses import replace

from gapless.spec.catalog import SPECS, STRICT, State
from gapless.traces.judging.building import STEPS
from gapless.traces.options import Options
from gapless.traces.replay.exact import Event, named, replay
from gapless.traces.sources.rocketmq.blame import log as situations
from gapless.traces.sources.rocketmq.blame.situation import switch
from gapless.traces.sources.rocketmq.blame.store import LINK
from gapless.traces.sources.rocketmq.clients.evidence import ClientEvidence
from gapless.traces.sources.rocketmq.clients.promises import Promises
from gapless.traces.sources.rocketmq.joining.copy_evidence import copy_evidence
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.joining.overdue_tasks import lived_on
from gapless.traces.sources.rocketmq.layouts import registry
from gapless.traces.sources.rocketmq.log import records, scan
from gapless.traces.sources.rocketmq.log.checksums import ChecksumJudge
from gapless.traces.sources.rocketmq.queues.joined_queues import QueueJudge
from gapless.traces.sources.rocketmq.queues.queue_ends import QueueEnds
from gapless.traces.sources.rocketmq.segments import tasks
from gapless.traces.sources.rocketmq.segments.results import Refusal, Segment, SplitResult
from gapless.traces.sources.rocketmq.segments.splits import Split
from gapless.traces.sources.rocketmq.startup.next_start import judge_next_start
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.links import DEPENDS
from gapless.traces.sources.rocketmq.store.selection import COMMIT_LOG
from gapless.traces.sources.rocketmq.transactions.joined_transactions import TransactionJudge

LOG = STEPS["log"]
Pending = tuple[Split, Segment]


class StoreJudge:
    """Joins results in log order, and then judges what needs the whole log."""

    def __init__(
        self, store: StoreDirectory, options: Options, evidence: ClientEvidence | None = None, *, exported: bool = False
    ) -> None:
        self.store = store
        self.options = options
        self.evidence = evidence
        self.judged = StoreFindings(store, end=store.start, evidence=evidence, exported=exported)
        self.judged.blame(situations.LEFT_OUT, count=store.left_out, base=store.start)
        self.broken = {link.part for link in store.broken}
        for link in store.broken:
            if link.sentence != store.no_queues:
                depends = link.part in DEPENDS and (link.needed or link.database)
                self.judged.blame(LINK, switch(on=depends), link=link.sentence)
        self.queues = QueueJudge(self.judged, options)
        self.transactions = TransactionJudge(self.judged, options)
        self.promises = Promises(self.judged, options)
        self.layouts = {layout.name: layout.join.judge(self.judged, options) for layout in registry.LAYOUTS}
        self.checksums = ChecksumJudge(self.judged, lambda event, more: self._step(event, self.reached, detail=more))
        self.log: State = SPECS["log"].initial
        self.pending: list[Pending] = []  # behind a gap: old bytes or not?
        self.uncounted: list[tuple[int, int]] = []  # where violations are not counted, behind very many others
        self.invalid_at = -1  # where a worker found no record, so that asking again would not help
        self.last_file = self.last_file_with_a_record()
        self._step(LOG.open(position=store.start, file_size=store.file_size), store.start)

    # -- joining ---------------------------------------------------------------------------------------------------

    def add(self, result: SplitResult) -> None:
        """Adds one split's result. Results must come in log order."""
        split, base = result.split, result.split.file.base
        begins = result.segments[0].start if result.segments else -1
        inside = base + split.low <= self.reached < base + split.high
        if not split.exact and inside and begins != self.reached != self.invalid_at:
            # The search for a first record was led astray, or passed a damaged one: begin where the last one ended.
            again = replace(split, low=self.reached - base, exact=True)
            result = tasks.judge(self.store, again, self.options, self.evidence)
        for at, value in enumerate(result.counters):
            self.judged.counters[at] += int(value)
        for segment in result.segments:
            if segment.end > self.reached:  # otherwise it is a forgery in the body of the record before it
                self._segment(split, segment)
        if result.stop == scan.INVALID:
            self.invalid_at = result.at
        if result.unread >= 0:
            self.uncounted.append((result.unread, base + split.high))

    @property
    def reached(self) -> int:
        """The expected begin of the next segment, behind the pending ones."""
        return self.pending[-1][1].end if self.pending else int(self.log.end)

    def _segment(self, split: Split, segment: Segment) -> None:
        if segment.start == self.reached and not self.pending:
            self._accept(split, segment)
            return
        self.pending.append((split, segment))
        if self.log.base < self.last_file or self._is_evidence(segment):
            for pending in self.pending:
                self._accept(*pending)
            self.pending.clear()

    def _is_evidence(self, segment: Segment) -> bool:
        """True if the segment's records cannot be old bytes: those are older than later writes."""
        if segment.opened < self.log.clock or self._has_no_times:
            return False
        known = self.store.checkpoint
        flushed = known is not None and self.log.newest <= segment.opened <= known.log
        return flushed or segment.pieces.indexed > 0

    @property
    def _has_no_times(self) -> bool:
        """True if the last record has no store time (docs/rocketmq.md#thrown-away): nothing is older then."""
        return self.judged.records > 0 and not self.log.clock

    def last_file_with_a_record(self) -> int:
        """The base of the last file that begins with a record that names its own position."""
        for file in reversed(self.store.files):
            if file_access.begins(file, 0):
                return file.base
        return self.store.start

    def _accept(self, split: Split, segment: Segment) -> None:
        """Accepts the segment as part of the log."""
        missing = ""
        if segment.start > self.log.end:
            self._damaged(int(self.log.end), segment.start)
            missing = self.judged.caveat(situations.GAP)
        base = split.file.base
        older = segment.records > 0 and segment.opened < self.log.clock
        self.judged.stepped_back = max(self.judged.stepped_back, segment.stepped_back, segment.start if older else -1)
        if segment.last >= 0:  # in a DLedger log, that of the message, behind the header of its entry
            self.judged.last_record = max(self.judged.last_record, segment.last - split.file.wrapped)
        if not (
            segment.refused and segment.refused[0].event == segment.first_event
        ):  # then the refusal is reported below
            self._step(segment.first_event, segment.start, again=True, detail=missing)
        self.log = replace(
            self.log,
            base=segment.end if segment.end == base + self.store.file_size else base,
            end=segment.end,
            clock=segment.clock if segment.records else self.log.clock,
            newest=max(self.log.newest, segment.newest),
        )
        self.judged.records += segment.records
        self.judged.lived = self.judged.lived.followed_by(segment.lived)
        for refusal in segment.refused:
            self._refused(base, refusal)
        for rule, count in segment.refused_more.items():
            self.judged.count_only(rule, count)
        if segment.unjudged >= 0:
            self.uncounted.append((segment.unjudged, segment.end))
        for spec in SPECS:
            self.judged.cover(spec, segment.covered.get(spec, {}))
        for name, anomaly in segment.anomalies.items():
            self.judged.anomaly(name, *anomaly)
        self.checksums.add(segment)
        self.queues.add(split, segment)
        self.transactions.add(segment)
        self.promises.add(segment)
        for layout in self.layouts.values():
            layout.add(segment)

    def _damaged(self, low: int, high: int) -> None:
        """Handles an unreadable stretch `low:high` behind which the log continues."""
        self.judged.damage.append((low, high))
        file_end = self.log.base + self.store.file_size
        if all(file.base != self.log.base for file in self.store.files):
            return  # the file itself is missing: the next record tells that nothing leads up to it
        if high < file_end:
            known = file_access.header_of(self.store, low).known
            self._step(self._broken(low, high - low, self.log.clock, known=known), low)
            self.log = replace(self.log, end=high)
        elif low < file_end:  # nothing of this file is left behind `low`, not even its blank
            header = file_access.header_of(self.store, low)
            marked = header.magic == records.MAGIC_BLANK
            detail = self.judged.caveat(situations.FILE_ENDS_EARLY)
            size = header.size if marked else file_end - low
            self._step(LOG.roll(position=low, size=size, marked=marked), low, detail=detail)
            self.log = replace(self.log, base=file_end, end=file_end)

    def _broken(self, position: int, size: int, time: int, *, known: bool) -> Event:
        """Returns the event of a record whose parts do not fit."""
        return LOG.append(
            position=position, size=size, claimed=position, known=known, fits=0, intact=1, sealed=1, time=time
        )

    def _step(self, event: Event, position: int, *, again: bool = False, detail: str = "") -> bool:
        """Replays one log event from the state that was really reached; True if it was accepted.

        `again`: a worker has counted it already · `detail` is added to a refusal.
        """
        if not again:
            self.judged.joint(position, "log", COMMIT_LOG, [event])
        outcome = replay("log", self.log, [event], profile=self.options.profile, ignored=self.options.ignored)
        if outcome.departure:
            self.judged.find(COMMIT_LOG, position, outcome.departure, detail)
            return False
        for name, count in outcome.deviations.items():
            self.judged.anomaly(name, count, position, COMMIT_LOG)
        self.log = outcome.state
        return True

    def _refused(self, base: int, refusal: Refusal) -> None:
        """Replays exactly a log event that a worker's kernel refused."""
        state = type(self.log)(**tasks.claim_log(self.store, base, refusal.event))
        outcome = replay("log", state, [refusal.event], profile=self.options.profile, ignored=self.options.ignored)
        if outcome.departure:
            self.judged.find(COMMIT_LOG, named("log", refusal.event)["position"], outcome.departure)

    # -- the end of the log ----------------------------------------------------------------------------------------

    def finish(self) -> StoreFindings:
        """Finds the log's end after the last result, and judges every queue by it."""
        judged = self.judged
        if self.pending:
            self._old_bytes(sum(segment.records for _, segment in self.pending))
            self.pending.clear()
        self.checksums.finish()
        judged.end = int(self.log.end)
        for low, high in self.uncounted:
            if low <= judged.end:  # old bytes lie behind it
                judged.note(
                    f"so much is damaged before {low:,} that the log is not judged from there to {high:,}: there may "
                    "be more violations than are counted"
                )
        judged.ends_in_the_past = self.log.clock < self.log.newest
        judge_next_start(judged, self.options)
        if judged.records:
            torn = self._torn_at_the_end()
            if torn:
                self._step(torn, judged.end)
            ends = QueueEnds(judged, self.options, self.queues)
            ends.finish()
            if not torn and not self.store.live:
                self._beyond_the_end(sorted(ends.beyond))
            judged.moments = copy_evidence(judged, later=len(ends.beyond), earlier=ends.earlier)
            judged.lived = lived_on(judged)
            self.transactions.finish()
            self.promises.finish()
        self._settle_layouts()
        return judged

    def _settle_layouts(self) -> None:
        """Judges all layouts but those with a broken link, or of nothing where the log has no record."""
        for layout in registry.LAYOUTS:
            if (self.judged.records or layout.join.without_records) and self.broken.isdisjoint(layout.join.needs):
                self.layouts[layout.name].settle()

    def _old_bytes(self, count: int) -> None:
        """Notes records behind the log's end. Brokers leave them after a truncation; the strict design wants zeros."""
        situation = situations.OLD_BYTES_OR_DAMAGE if self._has_no_times else situations.OLD_BYTES
        self.judged.blame(situation, switch(on=self.options.profile == STRICT), count=count, end=self.log.end)

    def _torn_at_the_end(self) -> Event | None:
        """Finds a torn record behind the last one, if it accuses: it names its place, and is older than the stop."""
        at, known = self.judged.end, self.store.checkpoint
        header = file_access.header_of(self.store, at)
        if known is None or not header.known or header.claimed != at:
            return None
        if self._has_no_times:
            self.judged.blame(situations.TORN_WITHOUT_TIME, position=at)
            return None
        younger = switch(on=header.time > known.log)
        if header.time < self.log.clock or not self.judged.accuses(situations.TORN_AT_THE_END, younger):
            return None
        return self._broken(at, header.size, header.time, known=True)

    def _beyond_the_end(self, beyond: list[tuple[int, str]]) -> None:
        """Weighs signs of records beyond the end: entries that name them, and a checkpoint that is newer than all.

        Each alone may be wrong, an old entry or a damaged checkpoint. Together, or on a store that was never
        truncated, they accuse.
        """
        judged, known, named = self.judged, self.store.checkpoint, switch(on=bool(beyond))
        newer = known is not None and known.log > self.log.newest
        accused = newer and known and judged.judges(situations.CHECKPOINT_AHEAD, named, time=known.log)
        if known and (accused or not newer):
            detail = judged.caveat(situations.CHECKPOINT_AHEAD, named)
            taken = self._step(LOG.checkpoint(time=known.log), judged.end, detail=detail)
            judged.cover("log", {"checkpoint": int(taken)})
        if beyond and not accused:
            self._named_beyond_the_end(*beyond[0], others=len(beyond) - 1)

    def _named_beyond_the_end(self, position: int, trace: str, others: int) -> None:
        """Judges entries that name records beyond the end of the log: it lost them, or the entries are old bytes."""
        what = f"{trace} and {others} more queue{'s' * (others > 1)} have" if others else f"{trace} has"
        end, situation = self.judged.end, situations.NAMED_BEYOND
        if self.judged.judges(situation, queues=what, position=position, end=end):
            self._step(LOG.refer(position=position), end, detail=self.judged.caveat(situation, queue=trace))
