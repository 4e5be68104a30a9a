"""Joins the transactions of all segments of a log, and compares the check service's cursors with them.

A segment brings the counts of transactions that began and ended in it, and the rows of the others. Rows are kept until
their transaction is settled, and then only its key is remembered, in a file: if a key comes back, with a repeated
commit for example, the transaction is read again, and judged as one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from gapless.spec.catalog import SPECS, rule
from gapless.traces.judging.building import STEPS
from gapless.traces.judging.findings.pictures import Axis, lived, swimlane_of
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, Event, Outcome, life, named, replay
from gapless.traces.report.pictures.kinds import Picture
from gapless.traces.report.wording import plural
from gapless.traces.sources.rocketmq.blame import transactions as situations
from gapless.traces.sources.rocketmq.blame.situation import Decision, switch
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.disk_blocks import Blocks, SettledHalves
from gapless.traces.sources.rocketmq.columns.lookup import among, distinct
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.joining.overdue_tasks import OverdueTasks
from gapless.traces.sources.rocketmq.queues.joined_queues import first_number
from gapless.traces.sources.rocketmq.segments import splits
from gapless.traces.sources.rocketmq.segments.results import Segment
from gapless.traces.sources.rocketmq.segments.splits import SplitReader
from gapless.traces.sources.rocketmq.segments.visible_records import mark_visible
from gapless.traces.sources.rocketmq.store.file_access import name_of_record
from gapless.traces.sources.rocketmq.store.names import HALVES, OP_TOPIC, OPS, TABLE_OP_TOPIC
from gapless.traces.sources.rocketmq.store.selection import includes_transactions
from gapless.traces.sources.rocketmq.transactions import lineage
from gapless.traces.sources.rocketmq.transactions.inconclusive_transactions import (
    UNASKED,
    UNDECIDED,
    DelayedHalves,
    may_lie_beyond,
    report_inconclusive,
)
from gapless.traces.sources.rocketmq.transactions.ops import (
    CURSORS,
    events_of_op,
    op_trace,
    pass_late_halves,
    pass_late_ops,
    strays,
)
from gapless.traces.sources.rocketmq.transactions.parameters import (
    NO_ROWS,
    Judgement,
    Totals,
    VisibleRows,
    add_counts,
    terms,
)
from gapless.traces.sources.rocketmq.transactions.replay_rows import OUTCOMES, judge, lineages
from gapless.traces.sources.rocketmq.transactions.transaction_rows import (
    BY_PLACE,
    COUNT,
    HALF,
    KEY,
    KIND,
    MARK,
    NAMES,
    NUMBER,
    PLACE,
)
from gapless.traces.sources.rocketmq.transactions.visible import fate, visible_events

ROWS_IN_MEMORY = 1 << 16  # rows that wait before the settled ones among them are forgotten
LINES = 200  # of a transaction's life that are reported
VISIBLE = rule("visibility/half-that-consumers-can-read-is-committed").id

CURSOR = STEPS["checkpoint"]
ECHOES = ("transaction", "checkpoint", "op_batch")  # specs that damage of the log makes depart


class TransactionJudge:
    """Judges the transactions of a store, segment by segment."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        self.judged = judged
        self.options = options
        self.terms = terms(judged.store, options, judged.evidence)
        self.totals = Totals()
        self.delayed = 0  # transactions whose halves were sent with a delay
        self.waiting: list[Ints] = []
        self.rows = 0
        self.limit = ROWS_IN_MEMORY
        self.settled = SettledHalves()
        self.refused: list[Ints] = []
        self.passed: list[Ints] = []
        self.bad_ops: list[Ints] = []
        self.early_ops: list[tuple[int, int, int]] = []
        self.visible: dict[int, VisibleRows] = {}
        self.numbers_delayed: set[int] = set()
        self.unpassed = Blocks()
        self.unpassed_ops = Blocks()

    def add(self, segment: Segment) -> None:
        """Adds one segment. Segments come in log order."""
        for judgement in segment.transactions:
            self._add(judgement)
        if self.rows > self.limit and not self.terms.only:
            self._add(judge(self._all(), self.terms, last=False))
            self.limit = max(ROWS_IN_MEMORY, 2 * self.rows)

    def _add(self, judgement: Judgement) -> None:
        self.totals.add(judgement.totals)
        if judgement.open.shape[1]:
            self.waiting.append(judgement.open)
        self.rows += judgement.open.shape[1]
        self.settled.add(judgement.settled)
        self.refused += judgement.refused
        if judgement.passed.shape[1]:
            self.passed.append(judgement.passed)
        self.bad_ops += judgement.bad_ops
        for broken, count in judgement.more_bad_ops.items():
            self.judged.count_only(broken, count)
        self.early_ops += judgement.early_ops
        self.visible |= judgement.visible
        self.numbers_delayed.update(judgement.delayed.tolist())
        self.unpassed.add(judgement.unpassed)
        self.unpassed_ops.add(judgement.unpassed_ops)
        if self.options.listed:
            self.judged.listed.accepted.append(judgement.listed)
            self.judged.listed.ops.append(judgement.listed_ops)

    def _all(self) -> Ints:
        """Returns all waiting rows in log order, and removes them."""
        rows = np.concatenate([NO_ROWS, *self.waiting], axis=1)
        self.waiting, self.rows = [], 0
        return np.ascontiguousarray(rows[:, np.argsort(rows[PLACE], kind="stable")])

    def forget_expired(self, start: int) -> None:
        """Forgets rows below the log's new start, which cannot be read again.

        Without that, a transaction could be judged without its first rows: a half without its op, or an op without its
        half. So the rows are dropped as if the log had always begun there.
        """
        self.waiting = [rows[:, rows[PLACE] >= start] for rows in self.waiting]
        self.rows = sum(rows.shape[1] for rows in self.waiting)
        self.settled.forget_before(start, 3)
        self.unpassed.forget_before(start, 2)
        self.unpassed_ops.forget_before(start, 2)

    # -- the end -------------------------------------------------------------------------------------------------

    def _pass_what_was_watched(self) -> None:
        """Lets the cursors pass the halves and ops that were judged before the cursors were known."""
        for halves in self.unpassed.blocks():
            totals = Totals()
            self.passed.append(pass_late_halves(totals, halves, self.terms))
            self.totals.add(totals)
        for ops in self.unpassed_ops.blocks():
            totals = Totals()
            self.early_ops += pass_late_ops(totals, ops, self.terms)
            self.totals.add(totals)

    def finish(self) -> None:
        """Judges the remaining transactions after the last segment, and the cursors."""
        if self.terms.only:
            self._finish_one(self._all())
            return
        self._pass_what_was_watched()
        rows = self._with_those_that_came_back(self._all())
        OverdueTasks(self.judged, self.options).judge_transactions(rows, self.terms.half_cursor)
        self._add(judge(rows, self.terms, last=True))
        judged, before = self.judged, len(self.judged.breaches)
        damaged = self._is_damaged()
        self._report()
        self._visible()
        self._strays(self._all())
        self._ops()
        self._passed()
        if self.options.trace is None and includes_transactions(self.options):
            self._ends()
        echoes = [found for found in judged.breaches[before:] if found.action != "acknowledge"]
        if damaged and echoes:
            judged.breaches = [found for found in judged.breaches if found not in echoes]
            judged.echoes = echoes
            judged.listed.refused = [(name, None, None, events) for name, _, _, events in judged.listed.refused]
            untold, sure = judged.unreported.items(), {found.rule for found in judged.breaches}
            judged.unreported = {r: count for r, count in untold if r in sure or r.partition("/")[0] not in ECHOES}
            self._forget_echoes()
            judged.blame(situations.ECHOES, switch(on=True), count=len({e.trace for e in echoes}))
        self._count()

    def _forget_echoes(self) -> None:
        """Counts transactions as not judged whose departures are only echoes of damage in the log."""
        left = sum(found.spec == "transaction" for found in self.judged.breaches)
        left += sum(count for rule, count in self.judged.unreported.items() if rule.startswith("transaction/"))
        if (echoes := self.totals.outcomes.get("departing", 0) - left) > 0:
            add_counts(self.totals.outcomes, {"departing": -echoes, "not judged": echoes})

    def _finish_one(self, rows: Ints) -> None:
        """Judges the one requested transaction, and describes its life."""
        numbers = rows[NUMBER, rows[KIND] == HALF]
        mine = rows[:, (rows[KIND] != MARK) | among(rows[NAMES], distinct(numbers))]
        if not mine.shape[1]:
            return
        mine = np.ascontiguousarray(mine)
        self._add(judge(mine, self.terms, last=True))
        self._report()
        self._visible()
        self._passed()
        self._count()
        events, _positions = lineages(mine, self.terms).events(0, self.terms)
        some = events[:LINES]
        self.judged.life = life("transaction", some, profile=self.options.profile, ignored=self.options.ignored)
        if len(some) < len(events):
            self.judged.life.append(f"     and {len(events) - len(some):,} more steps")

    def _count(self) -> None:
        judged = self.judged
        for spec, accepted in self.totals.covered.items():
            judged.cover(spec, accepted)
        for name, (count, _began, position, trace) in self.totals.anomalies.items():
            if count:
                judged.anomaly(name, count, position, self._named(trace))
        judged.transactions = self.totals

    def _is_damaged(self) -> bool:
        """True if records are missing or changed, so that evidence of a transaction may be lost."""
        queues = [self.judged.queues.get(subject) for subject in (HALVES, OPS)]
        lost = any(run and run.breach and run.breach.departure.event[0] == "append" for run in queues)
        return lost or any(found.spec == "log" for found in self.judged.breaches)

    def _with_those_that_came_back(self, rows: Ints) -> Ints:
        """Returns the rows, with those of settled transactions that continue: these are judged again."""
        back = self.settled.again(distinct(rows[KEY]), distinct(rows[NAMES, (rows[KIND] == MARK) & (rows[KEY] == 0)]))
        if not back.shape[1]:
            return rows
        keys, numbers = distinct(back[0]), distinct(back[1])
        found = [NO_ROWS]
        low, high = int(back[2].min()), int(back[3].max())
        spans = back[2:]
        for split in splits.splits(self.judged.store):
            begin, end = split.file.base + split.low, split.file.base + split.high
            if end <= low or high < begin or not ((spans[0] < end) & (begin <= spans[1])).any():
                continue
            for scanned in SplitReader(self.judged.store, split, steps=True).segments():
                mark_visible(self.judged.store, scanned.columns)
                steps = scanned.columns.steps
                steps = steps[:, steps[PLACE] < self.judged.end]
                of_mark = (steps[KIND] == MARK) & among(steps[NAMES], numbers)
                mine = (among(steps[KEY], keys) & (steps[KIND] != MARK)) | of_mark
                found.append(steps[:, mine].copy())
        again = np.concatenate(found, axis=1)
        self._take_back(again, back)
        merged = np.concatenate([rows, again], axis=1)
        order = np.lexsort(merged[[COUNT, KIND, PLACE]])
        merged = merged[:, order]
        first = np.ones(len(order), np.bool_)  # some of those that were read again also waited
        first[1:] = (merged[[COUNT, KIND, PLACE], 1:] != merged[[COUNT, KIND, PLACE], :-1]).any(axis=0)
        return np.ascontiguousarray(merged[:, first])

    def _take_back(self, rows: Ints, back: Ints) -> None:
        """Subtracts the counts of settled transactions, one by one."""
        lineage.key_marks(rows)
        self.judged.listed.take_back(distinct(back[0]))
        spans = back[[0, 2, 3]]  # key, first and last position
        spans = spans[:, np.lexsort([spans[1], spans[2] - spans[1], spans[0]])]  # by key, the narrowest first
        others = np.ones(spans.shape[1], np.bool_)
        others[1:] = (spans[:, 1:] != spans[:, :-1]).any(axis=0)
        spans = spans[:, others]  # those of one key enclose one another
        free = np.ones(rows.shape[1], np.bool_)
        while spans.shape[1]:
            first = np.ones(spans.shape[1], np.bool_)
            first[1:] = spans[0, 1:] != spans[0, :-1]
            keys, low, high = spans[:, first]
            at = np.minimum(np.searchsorted(keys, rows[KEY]), len(keys) - 1)
            mine = free & (keys[at] == rows[KEY]) & (low[at] <= rows[PLACE]) & (rows[PLACE] <= high[at])
            halves = back[1, among(back[2], np.sort(low)) & among(back[0], keys)]
            mine &= (rows[KIND] != MARK) | among(rows[NAMES], distinct(halves))
            free &= ~mine
            self.totals.add(judge(np.ascontiguousarray(rows[:, mine]), self.terms, last=False).totals, -1)
            spans = spans[:, ~first]  # a key that was settled several times, each by itself

    def _named(self, trace: str) -> str:
        return name_of_record(self.judged.store, int(trace[1:])) if trace.startswith("@") else trace

    # -- what departs ----------------------------------------------------------------------------------------------

    def _replay(self, spec: str, events: list[Event]) -> Outcome:
        return replay(spec, SPECS[spec].initial, events, profile=self.options.profile, ignored=self.options.ignored)

    def _report(self) -> None:
        """Replays exactly every transaction that a kernel refused."""
        unsure, delayed = Counter[str](), DelayedHalves(self.judged.store, self.terms.client)
        for rows in sorted(self.refused, key=lambda rows: int(rows[PLACE, 0])):
            events, positions = lineages(rows, self.terms).events(0, self.terms)
            outcome = self._replay("transaction", events)
            unheard = None
            while outcome.departure and may_lie_beyond(self.judged, outcome.departure.event):
                unheard, refused = outcome, outcome.departure.number - 1
                unsure[outcome.departure.event[0]] += 1
                del events[refused], positions[refused]
                outcome = self._replay("transaction", events)
            if outcome.departure is None:
                if unheard:
                    add_counts(self.totals.outcomes, {"departing": -1, OUTCOMES[outcome.state.phase]: 1})
                    self._list(rows, None, unheard)
                continue
            if delayed.concern(outcome.departure):
                self.delayed += 1
                self.judged.unjudged.update(rows[PLACE, rows[KIND] != MARK].tolist())
                add_counts(self.totals.outcomes, {"departing": -1, UNDECIDED: 1})
                self._list(rows, None, outcome)
                continue
            broken = outcome.departure.rule
            self._list(rows, broken, outcome, positions)
            position = positions[outcome.departure.number - 1]
            if broken == UNASKED:  # no record tells of a rollback
                number = named("transaction", outcome.departure.event)["number"]
                position = int(outcome.departure.state.positions[number])
            if not self.judged.is_over_limit(broken):
                self.judged.find(
                    self._name_of(rows),
                    position,
                    outcome.departure,
                    picture=self._life_of(outcome.departure, events, positions),
                )
        report_inconclusive(self.judged, unsure, self.delayed)

    def _visible(self) -> None:
        """Replays exactly the first transactions of which consumers can read too much, and counts the others."""
        for refused in sorted(self.visible.values(), key=lambda one: int(one[0][PLACE, 0])):
            if self.judged.is_over_limit(VISIBLE):
                continue
            for of, events, places in visible_events(*refused, distinct(refused[0][KEY, :1])).each():
                departure = self._replay("visibility", events).departure
                if departure:
                    position = places[departure.number - 1]
                    self.judged.find(self._name_of(of[0]), position, departure, fate(of))

    def _life_of(self, departure: Departure, events: Sequence[Event], positions: Sequence[int]) -> Picture | None:
        """Draws the transaction's life as a swimlane, on an axis of bytes of the log."""
        axis = Axis("byte of the log", lambda step: int(positions[step.number - 1]))
        return swimlane_of(departure, axis, lived(departure, events[: departure.number - 1], self.options))

    def _list(self, rows: Ints, broken: str | None, outcome: Outcome, positions: Sequence[int] = ()) -> None:
        """Lists a transaction that departs, or that cannot be decided."""
        if self.options.listed and outcome.departure:
            position = positions[outcome.departure.number - 1] if positions else None
            events = sum(outcome.covered.values()) - 1  # without its opening
            self.judged.listed.refused.append((self._name_of(rows), broken, position, events))

    def _name_of(self, rows: Ints) -> str:
        """Returns the transaction's name: the key that its producer gave it."""
        named = rows[:, rows[KIND] != MARK]
        return name_of_record(self.judged.store, int(named[PLACE, 0]))

    def _strays(self, rows: Ints) -> None:
        """Reports marks without a half: expired, or missing."""
        low, _end = self._half_numbers()
        expired = elsewhere = 0
        for position, op, queue, number in strays(rows):
            start, by_place = self.judged.store.start, number >= BY_PLACE
            if queue != 0:
                elsewhere += 1
            elif number - BY_PLACE < start if by_place else (number < low or low < 0) and start > 0:
                expired += 1
            elif self.totals.numbers.get("finals of finals") or self.delayed or number in self.numbers_delayed:
                elsewhere += 1
            else:
                self._stray(position, op, number % BY_PLACE, by_place=by_place)
        if expired:
            self.judged.note(
                f"halves that have expired with the log's first files are named by {plural(expired, 'mark')}"
            )
        if elsewhere:
            self.judged.note(
                f"{plural(elsewhere, 'mark')} may belong to finals that a producer ended a second time, or to delayed "
                "halves (docs/rocketmq-transactions.md#n6, #n26)"
            )

    def _stray(self, position: int, op: int, number: int, *, by_place: bool) -> None:
        steps = STEPS["op_batch"]
        entry = steps.enqueue(number=number, length=len(f"{number},"), known=0)
        events = [steps.open(max_size=0, interval=0), entry]
        departure = self._replay("op_batch", events).departure
        if departure:
            end = self._half_numbers()[1]
            detail = f"the halves of the log end at {end}" if end >= 0 and not by_place else ""
            topic = TABLE_OP_TOPIC if by_place else OP_TOPIC
            self.judged.report(op_trace(op, topic=topic), position, departure, detail)

    def _half_numbers(self) -> tuple[int, int]:
        """Returns the first number of a half in the log and their end, by the queue of halves; or -1."""
        run = self.judged.queues.get(HALVES)
        return (first_number(self.judged.store, HALVES, run), run.end) if run else (-1, -1)

    def _ops(self) -> None:
        """Replays exactly the ops that a kernel refused, and those that the op cursor passed too early."""
        for rows in self.bad_ops:
            trace = op_trace(int(rows[NUMBER, 0]), int(rows[KEY, 0]))
            self._report_refused(trace, int(rows[PLACE, 0]), "op_batch", events_of_op(rows, self.terms))
        for position, number, reach in self.early_ops:
            events = [
                CURSOR.open(half=self.terms.half_cursor, op=number),
                CURSOR.op(number=number, reach=reach),
                CURSOR.consume_op(number=number),
            ]
            self._report_refused(CURSORS, position, "checkpoint", events)

    def _report_refused(
        self, trace: str, position: int, spec: str, events: list[Event], detail: str = ""
    ) -> None:  # fmt: skip
        """Replays the refused traces of a kernel, and reports them."""
        departure = self._replay(spec, events).departure
        if departure:
            self.judged.report(trace, position, departure, detail)

    def _passed(self) -> None:
        """Judges halves that the half cursor passed before they were resolved."""
        rows = np.concatenate([NO_ROWS, *self.passed], axis=1)
        sure = self.judged.accuses(situations.PASSED_HALVES, switch(on=False))
        unsure = 0
        for number, position in sorted(zip(*rows[[NUMBER, PLACE]].tolist(), strict=True)):
            if not sure and number >= self.totals.looked_at:
                unsure += 1
                continue
            events = [CURSOR.open(half=number, op=0), CURSOR.half(number=number), CURSOR.advance(to=number + 1)]
            self._report_refused(CURSORS, position, "checkpoint", events, self._detail())
        cursor = self.terms.half_cursor
        self.judged.blame(situations.PASSED_HALVES, switch(on=False), count=unsure, cursor=cursor)

    def _detail(self) -> str:
        cursors = self.judged.store.cursors
        return f"the half cursor in {cursors.file} is {cursors.half}" if cursors else ""

    def _ends(self) -> None:
        """Compares each cursor with the end of its queue, if the log begins or continues with any of it."""
        cursors, store = self.judged.store.cursors, self.judged.store
        decision = self.judged.cell(situations.CURSOR_BEYOND).decision
        if cursors is None or decision is Decision.PASS or not self.judged.records:
            return
        for step, cursor, queue, end_name in (
            (CURSOR.advance, cursors.half, HALVES, "half"),
            (CURSOR.advance_ops, cursors.op, OPS, "op"),
        ):
            run = self.judged.queues.get(queue)
            if cursor is None or (run is None and store.start > 0) or (run and run.ended):
                continue
            end = run.end if run else 0
            begin = {"half": 0, "op": 0, end_name: min(cursor, end)}
            event = step(to=cursor)
            outcome = self._replay("checkpoint", [CURSOR.open(**begin), event])
            if outcome.departure is None:
                self.judged.cover("checkpoint", {event[0]: 1})
            elif self.judged.judges(situations.CURSOR_BEYOND, name=end_name, file=cursors.file, cursor=cursor, end=end):
                self.judged.find(CURSORS, self.judged.end, outcome.departure, f"{cursors.file} has it")
