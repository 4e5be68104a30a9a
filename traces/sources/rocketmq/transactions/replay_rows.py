"""Transactions judged from their rows: by a worker for those that begin and end in its split, else where rows meet.

A transaction whose half is marked or parked, in every version, is *settled*: it is judged where its rows lie, and
forgotten. The rows of any other go on. `judge` is the same on both levels, and so the order of joining is free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gapless.native import handed
from gapless.spec.transaction import Phase
from gapless.traces.judging import building
from gapless.traces.judging.building import STEPS, Events
from gapless.traces.options import Options
from gapless.traces.replay.exact import Event, named
from gapless.traces.replay.kernels import Kernel, ReplayResult, kernel
from gapless.traces.sources.rocketmq.clients.decision_index import CLIENT_POSITION
from gapless.traces.sources.rocketmq.clients.evidence import ClientEvidence
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import among
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.selection import includes_transactions
from gapless.traces.sources.rocketmq.transactions import lineage
from gapless.traces.sources.rocketmq.transactions.ops import by_power_of_two, counted, covered, judge_ops, pass_halves
from gapless.traces.sources.rocketmq.transactions.parameters import (
    NO_ROWS,
    NO_SETTLED,
    Judgement,
    Terms,
    Totals,
    terms,
)
from gapless.traces.sources.rocketmq.transactions.transaction_rows import (
    BY_PLACE,
    COPY,
    FINAL,
    HALF,
    KEY,
    KIND,
    LIST,
    MARK,
    NAMES,
    NUMBER,
    OP,
    PARKED,
    PLACE,
    SHOWN,
    TIMES,
)
from gapless.traces.sources.rocketmq.transactions.visible import VisibleTotals, judge_visible, visible_keys

Flags = npt.NDArray[np.bool_]

OUTCOMES = {
    Phase.PREPARED: "undecided",
    Phase.COMMITTED: "committed",
    Phase.ROLLED_BACK: "rolled back",
    Phase.PARKED: "parked",
    Phase.ABSENT: "with an expired half",
}


def judge_steps(
    rows: Ints, store: StoreDirectory, options: Options, evidence: ClientEvidence | None
) -> list[Judgement]:
    """Judge the rows of one segment: its ops, and the transactions that are settled in it."""
    if not includes_transactions(options) or not rows.shape[1]:
        return []
    given = terms(store, options, evidence)
    if given.only:
        wanted = (rows[KIND] == MARK) | ((rows[KIND] != OP) & (rows[KEY] == given.only))
        return [Judgement(Totals(), np.ascontiguousarray(rows[:, wanted]), NO_SETTLED)]
    delayed = Judgement(Totals(), NO_ROWS, NO_SETTLED, delayed=rows[NUMBER, (rows[KIND] == COPY) & (rows[LIST] != 0)])
    rows_of_others = np.ascontiguousarray(rows[:, rows[KIND] != OP])
    return [judge_ops(rows, given), judge(rows_of_others, given, last=False), delayed]


def judge(rows: Ints, given: Terms, *, last: bool) -> Judgement:
    """Judge every transaction that is settled; with `last`, all of them, for no row will come any more."""
    lineage.key_marks(rows)
    lives = lineages(rows, given)
    replayed = lives.replay(given)
    phase = replayed.state[lives.of.spec.scalars.index("phase")]
    refused = replayed.bad_at >= 0
    whole = (lives.facts[lineage.WHOLE] == 1) & (lives.facts[lineage.DONE] == 1)
    settled = ~refused & whole & (phase != Phase.PREPARED) & (phase != Phase.ABSENT)
    judged = np.ones_like(settled) if last else settled
    counts = replayed if judged.all() else _without(replayed, lives.replay(given, ~judged), judged)
    totals = Totals()
    _count_deviations(totals, lives, counts, judged, given)
    _count_outcomes(totals, lives, phase, refused, judged)
    keys = _visible(lives, judged, last=last)
    visible = judge_visible(rows, lives.rolled_back, keys, given) if len(keys) else VisibleTotals()
    totals.covered["visibility"] = visible.covered
    totals.anomalies |= visible.anomalies
    mine = lives.rows_of(judged)
    halves = mine[rows[KIND, mine] == HALF]
    return Judgement(
        totals,
        open=np.ascontiguousarray(rows[:, _open_rows(lives, judged, last=last)]),
        settled=_settled(lives, settled & judged),
        refused=[lives.of_transaction(int(t)) for t in np.flatnonzero(refused & judged)],
        passed=pass_halves(totals, rows, halves, lives.resolved[0], given),
        unpassed=np.stack([*rows[[KEY, NUMBER, PLACE]][:, halves], lives.resolved[0][halves]])
        if given.watched
        else NO_SETTLED,
        listed=_listed(lives, judged & ~refused & given.listed),
        visible=visible.refused,
    )


def _visible(lives: Lineages, judged: Flags, *, last: bool) -> Ints:
    """The keys of judged transactions of which consumers can read a half; with `last`, of all of them."""
    keys = visible_keys(lives.rows)
    return keys if last or not len(keys) else keys[among(keys, lives.keys[judged])]


def _without(all_of_them: ReplayResult, others: ReplayResult, chosen: Flags) -> ReplayResult:
    """Returns the counts of the chosen transactions' replay alone, by subtracting the few others."""
    return replace(
        all_of_them,
        covered=all_of_them.covered - others.covered,
        deviated=all_of_them.deviated - others.deviated,
        deviant=all_of_them.deviant[chosen],
    )


def _listed(lives: Lineages, chosen: Flags) -> Ints:
    """Key, first position and number of events of the chosen transactions."""
    first = lives.order[lives.bounds[:-1][chosen]]
    return np.stack([lives.rows[KEY, first], lives.rows[PLACE, first], np.diff(lives.starts)[chosen]])


def _open_rows(lives: Lineages, judged: Flags, *, last: bool) -> Ints:
    """Returns the rows to keep: marks of other halves, and the transactions that are not judged."""
    stays_open = (lives.rows[KIND] == MARK) & (lives.rows[KEY] == 0)
    if not last:
        stays_open[lives.rows_of(~judged)] = True
        (copies,) = np.nonzero((lives.rows[KIND] == COPY) & (lives.rows[SHOWN] > 0))
        stays_open[copies[~among(lives.rows[KEY, copies], lives.keys[judged])]] = True
    return np.flatnonzero(stays_open)


def _settled(lives: Lineages, settled: Flags) -> Ints:
    """Key, number, first and last position of every half of the settled transactions, with copies of it."""
    first, last = (
        lives.rows[PLACE, lives.order[lives.bounds[:-1]]],
        lives.rows[PLACE, lives.order[lives.bounds[1:] - 1]],
    )
    (copies,) = np.nonzero(lives.rows[KIND] == COPY)
    copies = copies[among(lives.rows[KEY, copies], lives.keys)]
    whose, places = lives.keys.searchsorted(lives.rows[KEY, copies]), lives.rows[PLACE, copies]
    np.minimum.at(first, whose, places)
    np.maximum.at(last, whose, places)
    lengths = np.diff(lives.bounds)
    spans = np.repeat(first, lengths), np.repeat(last, lengths)
    chosen = np.repeat(settled, lengths) & (lives.rows[KIND, lives.order] == HALF)
    halves = lives.order[chosen]
    return np.stack([lives.rows[KEY, halves], lives.rows[NUMBER, halves], spans[0][chosen], spans[1][chosen]])


def _count_deviations(totals: Totals, lives: Lineages, replayed: ReplayResult, judged: Flags, given: Terms) -> None:
    totals.covered["transaction"] = covered(lives.of, replayed)
    owners = np.flatnonzero(judged)
    for number, deviation in enumerate(lives.of.spec.deviations):
        if count := int(replayed.deviated[number]):
            deviant = owners[(replayed.deviant >> number) & 1 == 1]
            totals.anomalies[deviation.step.__name__] = (count, *_exemplar(lives, deviant, number, given))


def _exemplar(lives: Lineages, deviant: Ints, number: int, given: Terms) -> tuple[int, int, str]:
    """Returns position, anomaly's position and name of the first of the transactions with one deviation.

    It is the same one for any split of the log.
    """
    begins = lives.rows[PLACE, lives.order[lives.bounds[deviant]]]
    first = int(deviant[begins.argmin()])
    alone = np.zeros(len(lives.bounds) - 1, np.bool_)
    alone[first] = True
    at = int(lives.starts[first] + lives.replay(given, alone).deviated_at[number])
    rows = lives.of_transaction(first)
    keyed = rows[:, rows[KIND] != MARK]  # only its key is known: its name is the position of its first record
    name = f"@{int(keyed[PLACE, 0])}" if keyed.shape[1] else f"#{int(rows[NAMES, 0])}"
    return int(begins.min()), lives.position(at), name


def _count_outcomes(totals: Totals, lives: Lineages, phase: Ints, refused: Flags, judged: Flags) -> None:
    rows = lives.rows_of(judged)
    kinds, facts = lives.rows[KIND, rows], lives.facts[:, judged]
    totals.numbers |= {
        "transactions": int(judged.sum()),
        "halves": int((kinds == HALF).sum()),
        "finals": int((kinds == FINAL).sum()),
        "parked": int((kinds == PARKED).sum()),
        "renewals": int(((kinds == HALF) & (lives.rows[TIMES, rows] > 0)).sum()),
        "finals of finals": int(facts[lineage.TWICE].sum()),
    }
    totals.outcomes = {OUTCOMES[Phase(p)]: count for p, count in counted(phase[judged & ~refused]).items()}
    if (judged & refused).any():
        totals.outcomes["departing"] = int((judged & refused).sum())
    took = facts[lineage.TOOK]
    totals.decided_within = by_power_of_two(took[took >= 0])
    totals.back_checks = counted(facts[lineage.PUT_BACK])
    totals.looked_at = int(facts[lineage.LOOKED_AT].max(initial=-1))


# -- as events -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Lineages:
    """Transactions as events, all as in `LineageWork`."""

    of: Kernel
    rows: Ints
    order: Ints
    bounds: Ints
    starts: Ints
    columns: Events
    source: Ints
    resolved: Ints
    facts: Ints
    client: Ints

    def replay(self, given: Terms, chosen: Flags | None = None) -> ReplayResult:
        """Replay all, or only the chosen ones, from the state that they begin in."""
        starts, action, args = self.starts, self.columns.action, self.columns.args
        widths = self.facts[lineage.VERSIONS]
        if chosen is not None:
            events = np.flatnonzero(np.repeat(chosen, np.diff(starts)))
            starts = np.concatenate([[0], np.cumsum(np.diff(starts)[chosen])])
            action, args, widths = action[events], np.ascontiguousarray(args[:, events]), widths[chosen]
        state = building.states(
            self.of.spec, len(starts) - 1,
            start=given.start, max_checks=given.max_checks, witnessed=int(given.witnessed),
            restarted=int(given.restarted),
        )  # fmt: skip
        return self.of.replay(starts, action, args, state, widths=widths, profile=given.profile)

    def of_transaction(self, transaction: int) -> Ints:
        """The rows of one transaction."""
        return self.rows[:, self.order[self.bounds[transaction] : self.bounds[transaction + 1]]]

    def rows_of(self, chosen: Flags) -> Ints:
        """Returns the rows of the chosen transactions, in the order of the log."""
        belongs = np.zeros(self.rows.shape[1], np.bool_)
        belongs[self.order[np.repeat(chosen, np.diff(self.bounds))]] = True
        return np.flatnonzero(belongs)

    @property
    def keys(self) -> Ints:
        """The key of each transaction; they rise."""
        keys: Ints = self.rows[KEY, self.order[self.bounds[:-1]]]
        return keys

    @property
    def rolled_back(self) -> Flags:
        """Returns the mask of rows that tell of a rollback."""
        mask = np.zeros(self.rows.shape[1], np.bool_)
        count = int(self.starts[-1])
        mask[self.source[:count][self.columns.action[:count] == self.of.spec.codes["roll_back"]]] = True
        return mask

    def position(self, event: int) -> int:
        """Returns the log position of an event; for a client's event, that of the half that it names."""
        row = int(self.source[event])
        return int(self.client[CLIENT_POSITION, -1 - row] if row < 0 else self.rows[PLACE, row])

    def events(self, transaction: int, given: Terms) -> tuple[list[Event], list[int]]:
        """Returns one transaction in the form for exact replay, from its opening on, with all positions."""
        steps, rows = STEPS["transaction"], self.of_transaction(transaction)
        numbers = rows[NUMBER, rows[KIND] == HALF] % BY_PLACE
        events = [steps.open(start=given.start, max_checks=given.max_checks, witnessed=given.witnessed)]
        positions = [int(rows[PLACE, 0])]
        if given.restarted:
            events.append(steps.restart())
            positions.append(positions[0])
        for at in range(int(self.starts[transaction]), int(self.starts[transaction + 1])):
            event = self.columns.at(at)
            values = named("transaction", event)
            for name in {"number", "parent"} & values.keys():  # kernels know a version by its place, see `lineage`
                values[name] = int(numbers[values[name]]) if values[name] >= 0 else -1
            events.append(getattr(steps, event[0])(**values))
            positions.append(self.position(at))
        return events, positions


def lineages(rows: Ints, given: Terms) -> Lineages:
    """The events of every transaction whose rows these are; marks without a key, and ops, are left out."""
    of = kernel("transaction", given.ignored)
    members = np.flatnonzero((rows[KIND] != OP) & (rows[KIND] != COPY) & ((rows[KIND] != MARK) | (rows[KEY] != 0)))
    order = members[np.argsort(rows[KEY, members], kind="stable")]
    keys = rows[KEY, order]
    first = np.ones(len(order), np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    bounds = np.append(np.flatnonzero(first), len(order))
    count = len(bounds) - 1
    lines = given.client.by_key.of(keys[first])
    room = 2 * len(order) + int((lines[1] - lines[0]).sum())
    columns = Events.room(of.spec, room)
    halves, decided, marked, named = np.empty((4, len(order) + 1), np.int64)
    later, shelved = np.full((2, lineage.SLOTS), -1, np.int64)
    work = lineage.LineageWork(
        handed(rows), order, bounds, given.client.rows, lines, given.start, given.aged_ms, given.aged_perhaps,
        starts=np.zeros(count + 1, np.int64),
        action=columns.action,
        args=columns.args,
        source=np.zeros(room, np.int64),
        resolved=np.zeros((2, rows.shape[1]), np.int64),
        facts=np.zeros((lineage.FACTS, count), np.int64),
        halves=halves, decided=decided, marked=marked, named=named,
        later=later, shelved=shelved,
        codes=building.codes(of.spec, lineage.TransactionCodes),
        into=building.rows(of.spec, lineage.TransactionArguments),
    )  # fmt: skip
    lineage.events_of(work)
    return Lineages(of, rows, order, bounds, work.starts, columns, work.source, work.resolved, work.facts, work.client)
