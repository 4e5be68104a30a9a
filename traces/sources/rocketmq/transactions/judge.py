"""Transactions judged from their rows: by a worker for those that begin and end in its split, else where rows meet.

A transaction whose half is marked or parked, in every version, is *settled*: it is judged where its rows lie, and
forgotten. The rows of any other go on. `judge` is the same on both levels, and so the order of joining is free.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.spec.transaction import Phase
from gapless.traces.options import Options
from gapless.traces.replay.exact import Event
from gapless.traces.replay.kernels import Kernel, Replayed, kernel
from gapless.traces.sources.rocketmq.clients.evidence import Evidence
from gapless.traces.sources.rocketmq.store import scan
from gapless.traces.sources.rocketmq.store.layout import HALF_TOPIC, OP_TOPIC, Store
from gapless.traces.sources.rocketmq.store.scan import Ints
from gapless.traces.sources.rocketmq.transactions import lineage, rows
from gapless.traces.sources.rocketmq.transactions.rows import (
    COLUMNS,
    COUNT,
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
    SIZE,
    TIMES,
)  # fmt: skip

Flags = npt.NDArray[np.bool_]

OUTCOMES = {
    Phase.PREPARED: "undecided",
    Phase.COMMITTED: "committed",
    Phase.ROLLED_BACK: "rolled back",
    Phase.PARKED: "parked",
    Phase.ABSENT: "with an expired half",
}
NO_ROWS = np.zeros((COLUMNS, 0), np.int64)
NO_SETTLED = np.zeros((4, 0), np.int64)
NO_CLIENT = np.zeros((lineage.CLIENT_COLUMNS, 0), np.int64)
KEPT_HOURS = 72  # fileReservedTime, unless settings say otherwise: it can only excuse
BAD_OPS = 64  # refused ops of one split that are told one by one

CODES = (
    "ask_to_commit", "ask_to_roll_back", "prepare", "outlive", "check", "commit", "roll_back", "mark", "park",
    "acknowledge", "ask_back",
)  # fmt: skip
ARGUMENTS = ("number", "parent", "position", "times", "asked", "same", "half", "twice", "aged")


@dataclass(frozen=True)
class World:
    """What rows do not say: the store's and the broker's constants, and what was asked for."""

    start: int
    half_cursor: int  # -1 where there is none
    op_cursor: int  # -1 where there is none, or it cannot be held against the half cursor
    max_checks: int  # 0 where it is not known
    max_size: int  # bytes of an op's body; 0 where it is not known
    aged_ms: int
    profile: str
    ignored: frozenset[str]
    client: Ints = field(default_factory=lambda: NO_CLIENT, compare=False)
    witnessed: bool = False
    listed: bool = False  # every transaction and op is wanted by itself
    only: int = 0  # the key of the one transaction that is wanted


@dataclass
class Tally:
    """What judged transactions and ops come to, in numbers: two can be added, and one taken back.

    `anomalies`: by deviation, how many, and of the trace that began first: where it began, where the anomaly is, and
    its name.
    """

    covered: dict[str, dict[str, int]] = field(default_factory=dict)
    anomalies: dict[str, tuple[int, int, int, str]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)  # of rows, by kind, and of traces
    outcomes: dict[str, int] = field(default_factory=dict)
    decided_within: dict[int, int] = field(default_factory=dict)
    back_checks: dict[int, int] = field(default_factory=dict)
    batches: dict[int, int] = field(default_factory=dict)
    looked_at: int = -1  # the highest number of a half that the check service has surely looked at

    def add(self, other: Tally, sign: int = 1) -> None:
        """Count what the other counted; or, with a negative sign, take it back."""
        for spec, actions in other.covered.items():
            _add(self.covered.setdefault(spec, {}), actions, sign)
        for name, new in other.anomalies.items():
            old = self.anomalies.get(name, (0, *new[1:]))
            self.anomalies[name] = (old[0] + sign * new[0], *min(old[1:], new[1:]))
        _add(self.numbers, other.numbers, sign)
        _add(self.outcomes, other.outcomes, sign)
        _add(self.decided_within, other.decided_within, sign)
        _add(self.back_checks, other.back_checks, sign)
        _add(self.batches, other.batches, sign)
        self.looked_at = max(self.looked_at, other.looked_at)


def _add(to: dict[Any, int], more: dict[Any, int], sign: int) -> None:
    for key, count in more.items():
        to[key] = to.get(key, 0) + sign * count


@dataclass(frozen=True)
class Judgement:
    """What rows came to.

    `open`: rows of transactions that are not judged yet · `settled`: [4, halves], key, number, and positions of the
    first and the last row, of every half that is judged and forgotten · `refused`: rows of each transaction that was
    refused · `passed`: rows of the halves that the half cursor passed though they were not resolved · `bad_ops`: rows
    of refused ops, with their marks · `early_ops`: position, number and reach of ops that the op cursor passed though
    they were needed · `listed`, where that is wanted: key, first position and events of every transaction that was
    accepted, `listed_ops`: number, events and queue of every such op.
    """

    tally: Tally
    open: Ints
    settled: Ints
    refused: list[Ints] = field(default_factory=list)
    passed: Ints = field(default_factory=lambda: NO_ROWS)
    bad_ops: list[Ints] = field(default_factory=list)
    more_bad_ops: dict[str, int] = field(default_factory=dict)  # those that are not told, by need
    early_ops: list[tuple[int, int, int]] = field(default_factory=list)
    listed: Ints = field(default_factory=lambda: np.zeros((3, 0), np.int64))
    listed_ops: Ints = field(default_factory=lambda: np.zeros((3, 0), np.int64))


@dataclass(frozen=True)
class Lineages:
    """Transactions as events: `starts` bounds each one's. See `lineage.events_of`."""

    rows: Ints
    order: Ints
    bounds: Ints
    starts: Ints
    action: npt.NDArray[np.int8]
    args: Ints
    source: Ints
    resolved: Ints
    facts: Ints
    client: Ints

    def replay(self, of: Kernel, world: World, chosen: Flags | None = None) -> Replayed:
        """Replay all, or only the chosen ones, from the state that the world gives them."""
        starts, action, args, widths = self.starts, self.action, self.args, self.facts[lineage.VERSIONS]
        if chosen is not None:
            mine = np.repeat(chosen, np.diff(starts))
            lengths = np.diff(starts)[chosen]
            starts = np.zeros(len(lengths) + 1, np.int64)
            np.cumsum(lengths, out=starts[1:])
            events = np.flatnonzero(mine)
            action, args, widths = action[events], np.ascontiguousarray(args[:, events]), widths[chosen]
        known = {"start": world.start, "max_checks": world.max_checks, "witnessed": int(world.witnessed)}
        begin = [known.get(name, int(getattr(of.spec.initial, name))) for name in of.spec.scalars]
        state = np.repeat(np.array(begin, np.int64)[:, None], len(starts) - 1, axis=1)
        return of.replay(starts, action, args, state, widths=widths, profile=world.profile)

    def of(self, transaction: int) -> Ints:
        """The rows of one transaction."""
        return self.rows[:, self.order[self.bounds[transaction] : self.bounds[transaction + 1]]]

    def rows_of(self, chosen: Flags) -> Ints:
        """Which rows belong to the chosen transactions, in the order of the log."""
        mine = np.zeros(self.rows.shape[1], np.bool_)
        mine[self.order[np.repeat(chosen, np.diff(self.bounds))]] = True
        return np.flatnonzero(mine)


def lineages(of: Kernel, rows: Ints, world: World) -> Lineages:
    """The events of every transaction whose rows these are; marks without a key, and ops, are left out."""
    members = np.flatnonzero((rows[KIND] != OP) & ((rows[KIND] != MARK) | (rows[KEY] != 0)))
    order = members[np.argsort(rows[KEY, members], kind="stable")]
    keys = rows[KEY, order]
    first = np.ones(len(order), np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    bounds = np.append(np.flatnonzero(first), len(order))
    count = len(bounds) - 1
    said = world.client[lineage.CLIENT_KEY]
    lines = np.searchsorted(said, keys[first], side="right") - np.searchsorted(said, keys[first])
    room = 2 * len(order) + int(lines.sum())
    found = Lineages(
        rows, order, bounds,
        starts=np.zeros(count + 1, np.int64),
        action=np.zeros(room, np.int8),
        args=np.zeros((len(of.spec.arguments), room), np.int64),
        source=np.zeros(room, np.int64),
        resolved=np.zeros(rows.shape[1], np.int64),
        facts=np.zeros((lineage.FACTS, count), np.int64),
        client=world.client,
    )  # fmt: skip
    lineage.events_of(
        rows, order, bounds, world.client, world.start, world.aged_ms, codes_of(of, CODES), where_of(of, ARGUMENTS),
        found.starts, found.action, found.args, found.source, found.resolved, found.facts,
    )  # fmt: skip
    return found


def codes_of(of: Kernel, actions: tuple[str, ...]) -> Ints:
    """The codes of actions."""
    return np.array([of.spec.codes[name] for name in actions], np.int64)


def where_of(of: Kernel, arguments: tuple[str, ...]) -> Ints:
    """The rows of arguments."""
    return np.array([of.spec.arguments.index(name) for name in arguments], np.int64)


def judge(rows: Ints, world: World, *, last: bool) -> Judgement:
    """Judge every transaction that is settled; with `last`, all of them, for no row will come any more."""
    lineage.key_marks(rows)
    of = kernel("transaction", world.ignored)
    found = lineages(of, rows, world)
    replayed = found.replay(of, world)
    phase = replayed.state[of.spec.scalars.index("phase")]
    refused = replayed.bad_at >= 0
    settled = (
        ~refused
        & (found.facts[lineage.WHOLE] == 1)
        & (found.facts[lineage.DONE] == 1)
        & (phase != Phase.PREPARED)
        & (phase != Phase.ABSENT)
    )
    judged = np.ones_like(settled) if last else settled
    counted = replayed if judged.all() else _without(replayed, found.replay(of, world, ~judged), judged)
    tally = Tally()
    _count_transactions(tally, of, found, counted, phase, refused, judged, world)
    passed = _pass_halves(tally, found, judged, world)
    open_rows = _open_rows(found, judged, last=last)
    return Judgement(
        tally,
        open=np.ascontiguousarray(rows[:, open_rows]),
        settled=_settled(found, settled & judged),
        refused=[found.of(int(t)) for t in np.flatnonzero(refused & judged)],
        passed=passed,
        listed=_listed(found, judged & ~refused & world.listed),
    )


def _without(all_of_them: Replayed, others: Replayed, chosen: Flags) -> Replayed:
    """What the replay of the chosen transactions alone comes to, in numbers: the few others are counted off."""
    return replace(
        all_of_them,
        covered=all_of_them.covered - others.covered,
        deviated=all_of_them.deviated - others.deviated,
        deviant=all_of_them.deviant[chosen],
    )


def _listed(found: Lineages, chosen: Flags) -> Ints:
    """Key, first position and number of events of the chosen transactions."""
    first = found.order[found.bounds[:-1][chosen]]
    return np.stack([found.rows[KEY, first], found.rows[PLACE, first], np.diff(found.starts)[chosen]])


def _open_rows(found: Lineages, judged: Flags, *, last: bool) -> Ints:
    rows = found.rows
    stray = (rows[KIND] == MARK) & (rows[KEY] == 0)
    if not last:
        stray[found.rows_of(~judged)] = True
    return np.flatnonzero(stray)


def _settled(found: Lineages, settled: Flags) -> Ints:
    """Key, number, first and last position of every half of the settled transactions."""
    low, high = found.bounds[:-1][settled], found.bounds[1:][settled]
    first, last = found.rows[PLACE, found.order[low]], found.rows[PLACE, found.order[high - 1]]
    mine = np.repeat(settled, np.diff(found.bounds))
    rows = found.order[mine]
    lengths = high - low
    halves = found.rows[KIND, rows] == HALF
    return np.stack(
        [
            found.rows[KEY, rows],
            found.rows[NUMBER, rows],
            np.repeat(first, lengths),
            np.repeat(last, lengths),
        ]
    )[:, halves]


def _count_transactions(
    tally: Tally, of: Kernel, found: Lineages, replayed: Replayed, phase: Ints, refused: Flags, judged: Flags,
    known: World,
) -> None:  # fmt: skip
    tally.covered["transaction"] = _covered(of, replayed)
    owners = np.flatnonzero(judged)
    for number, deviation in enumerate(of.spec.deviations):
        if count := int(replayed.deviated[number]):
            mine = owners[(replayed.deviant >> number) & 1 == 1]
            tally.anomalies[deviation.step.__name__] = (count, *_exemplar(of, found, mine, number, known))
    rows = found.rows_of(judged)
    kinds = found.rows[KIND, rows]
    facts = found.facts[:, judged]
    tally.numbers |= {
        "transactions": int(judged.sum()),
        "halves": int((kinds == HALF).sum()),
        "finals": int((kinds == FINAL).sum()),
        "parked": int((kinds == PARKED).sum()),
        "renewals": int(((kinds == HALF) & (found.rows[TIMES, rows] > 0)).sum()),
        "finals of finals": int(facts[lineage.TWICE].sum()),
    }
    whole = judged & ~refused
    tally.outcomes = {OUTCOMES[Phase(p)]: int(c) for p, c in zip(*_counts(phase[whole]), strict=True)}
    if (judged & refused).any():
        tally.outcomes["departing"] = int((judged & refused).sum())
    took = facts[lineage.TOOK]
    tally.decided_within = _by_power_of_two(took[took >= 0])
    tally.back_checks = {int(v): int(c) for v, c in zip(*_counts(facts[lineage.PUT_BACK]), strict=True)}
    tally.looked_at = int(facts[lineage.LOOKED_AT].max(initial=-1))


def _exemplar(of: Kernel, found: Lineages, owners: Ints, number: int, known: World) -> tuple[int, int, str]:
    """Of transactions with one anomaly, the one that began first: where, where the anomaly is, and its name.

    That is the same one wherever the log is cut.
    """
    begins = found.rows[PLACE, found.order[found.bounds[owners]]]
    owner = int(owners[begins.argmin()])
    alone = np.zeros(len(found.bounds) - 1, np.bool_)
    alone[owner] = True
    at = int(found.starts[owner] + found.replay(of, known, alone).deviated_at[number])
    return int(begins.min()), _position(found, at), _key(found, owner)


def _covered(of: Kernel, replayed: Replayed) -> dict[str, int]:
    return {n: int(c) for n, c in zip(of.spec.actions, replayed.covered, strict=True) if c}


def _counts(values: Ints) -> tuple[Ints, Ints]:
    found, counts = np.unique(values, return_counts=True)
    return found, counts


def _by_power_of_two(values: Ints) -> dict[int, int]:
    """How many values there are up to 1, 2, 4 and so on."""
    bounds = 1 << np.ceil(np.log2(np.maximum(values, 1))).astype(np.int64)
    return {int(b): int(c) for b, c in zip(*_counts(bounds), strict=True)}


def _position(found: Lineages, event: int) -> int:
    """Where in the log an event took place; of what a client said, where the half lies that it names."""
    row = int(found.source[event])
    if row < 0:
        return int(found.client[lineage.CLIENT_POSITION, -1 - row])
    return int(found.rows[PLACE, row])


def _key(found: Lineages, transaction: int) -> str:
    """A name for a transaction that only its key is known of: where its first record lies. See `named`."""
    rows = found.of(transaction)
    named = rows[:, rows[KIND] != MARK]
    return f"@{int(named[PLACE, 0])}" if named.shape[1] else f"#{int(rows[NAMES, 0])}"


# -- cursors and ops -----------------------------------------------------------------------------------------------


def _pass_halves(tally: Tally, found: Lineages, judged: Flags, world: World) -> Ints:
    """Let the half cursor pass the halves of judged transactions. Returns the rows of those that it may not pass."""
    rows = found.rows
    mine = found.rows_of(judged)
    chosen = mine[(rows[KIND, mine] == HALF) & (rows[NUMBER, mine] < world.half_cursor)]
    if not len(chosen):
        return NO_ROWS
    of = kernel("checkpoint", world.ignored)
    starts = np.zeros(len(chosen) + 1, np.int64)
    action = np.zeros(3 * len(chosen), np.int8)
    args = np.zeros((len(of.spec.arguments), 3 * len(chosen)), np.int64)
    lineage.half_events(
        rows, chosen, found.resolved, codes_of(of, ("half", "resolve", "advance")), where_of(of, ("number", "to")),
        starts, action, args,
    )  # fmt: skip
    numbers = rows[NUMBER, chosen]
    state = np.array([_cursor_claim(name, numbers, 0) for name in of.spec.scalars], np.int64)
    replayed = of.replay(
        starts, action, args, state, origins=numbers, widths=np.ones_like(numbers), profile=world.profile
    )
    tally.covered["checkpoint"] = _covered(of, replayed)
    return np.ascontiguousarray(rows[:, chosen[replayed.bad_at >= 0]])


def _cursor_claim(name: str, halves: Ints | int, ops: Ints | int) -> Ints | int:
    """What a piece of `checkpoint` claims: everything before its first half and op is done with."""
    claims: dict[str, Any] = {"opened": 1, "half_end": halves, "half_cursor": halves, "op_end": ops, "op_cursor": ops}
    size = len(halves) if isinstance(halves, np.ndarray) else len(ops) if isinstance(ops, np.ndarray) else 1
    return np.broadcast_to(np.asarray(claims[name], np.int64), (size,))


def judge_ops(rows: Ints, world: World) -> Judgement:
    """Judge the ops among rows, each with its marks behind it: an op is whole wherever it is read."""
    ops = np.flatnonzero(rows[KIND] == OP)
    tally = Tally()
    if not len(ops):
        return Judgement(tally, NO_ROWS, NO_SETTLED)
    of = kernel("op_batch", world.ignored)
    counts = np.maximum(rows[COUNT, ops], 0)
    room = int(counts.sum()) + len(ops)
    starts, reach = np.zeros(len(ops) + 1, np.int64), np.zeros(len(ops), np.int64)
    action, args = np.zeros(room, np.int8), np.zeros((len(of.spec.arguments), room), np.int64)
    lineage.op_events(
        rows, ops, codes_of(of, ("enqueue", "write")),
        where_of(of, ("number", "length", "known", "count", "size", "last", "legible", "listed")),
        starts, action, args, reach,
    )  # fmt: skip
    known = {"opened": 1, "max_size": world.max_size}
    begin = [known.get(name, int(getattr(of.spec.initial, name))) for name in of.spec.scalars]
    state = np.repeat(np.array(begin, np.int64)[:, None], len(ops), axis=1)
    replayed = of.replay(starts, action, args, state, widths=counts, profile=world.profile)
    tally.covered["op_batch"] = _covered(of, replayed)
    _count_ops(tally, of, replayed, rows, ops, starts)
    tally.numbers |= {"ops": len(ops), "marks": int(counts.sum())}
    tally.batches = _by_power_of_two(counts)
    bad = np.flatnonzero(replayed.bad_at >= 0)
    return Judgement(
        tally,
        NO_ROWS,
        NO_SETTLED,
        bad_ops=[rows[:, ops[i] : ops[i] + 1 + counts[i]].copy() for i in bad[:BAD_OPS]],
        more_bad_ops=_by_need(of, replayed.bad_why[bad[BAD_OPS:]]),
        early_ops=_pass_ops(tally, rows, ops, reach, world),
        listed_ops=np.stack([rows[NUMBER, ops], counts + 1, rows[KEY, ops]])[:, (replayed.bad_at < 0) & world.listed],
    )


def _by_need(of: Kernel, reasons: Ints) -> dict[str, int]:
    found: dict[str, int] = {}
    for why in reasons[reasons > 0].tolist():
        because = of.reasons[why - 1].because
        found[because] = found.get(because, 0) + 1
    return found


def _count_ops(tally: Tally, of: Kernel, replayed: Replayed, rows: Ints, ops: Ints, starts: Ints) -> None:
    for number, deviation in enumerate(of.spec.deviations):
        if count := int(replayed.deviated[number]):
            op = int(np.searchsorted(starts, replayed.deviated_at[number], side="right")) - 1
            place = int(rows[PLACE, ops[op]])
            name = op_trace(int(rows[NUMBER, ops[op]]), int(rows[KEY, ops[op]]))
            tally.anomalies[deviation.step.__name__] = (count, place, place, name)


def op_trace(number: int, queue: int = 0) -> str:
    """The trace of one op: its batcher is not seen, so nothing is known of what else waited."""
    return f"{OP_TOPIC}/{queue}+{number}"


def _pass_ops(tally: Tally, rows: Ints, ops: Ints, reach: Ints, world: World) -> list[tuple[int, int, int]]:
    """Let the op cursor pass ops, where it can be held against the half cursor. Returns those that it may not pass."""
    mine = (rows[NUMBER, ops] < world.op_cursor) & (rows[KEY, ops] == 0)
    numbers, reach, places = rows[NUMBER, ops[mine]], reach[mine], rows[PLACE, ops[mine]]
    if not len(numbers) or world.half_cursor < 0:
        return []
    of = kernel("checkpoint", world.ignored)
    count = len(numbers)
    action = np.tile(codes_of(of, ("op", "consume_op", "advance_ops")), count).astype(np.int8)
    args = np.zeros((len(of.spec.arguments), 3 * count), np.int64)
    number, to, reached = where_of(of, ("number", "to", "reach"))
    args[number] = np.repeat(numbers, 3)
    args[reached, 0::3] = reach
    args[to, 2::3] = numbers + 1
    state = np.array([_cursor_claim(name, world.half_cursor, numbers) for name in of.spec.scalars], np.int64)
    starts = np.arange(0, 3 * count + 1, 3, dtype=np.int64)
    replayed = of.replay(
        starts, action, args, state, origins=numbers, widths=np.ones_like(numbers), profile=world.profile
    )
    _add(tally.covered.setdefault("checkpoint", {}), _covered(of, replayed), 1)
    for n, deviation in enumerate(of.spec.deviations):
        if replayed.deviated[n]:
            place = int(places[int(replayed.deviated_at[n]) // 3])
            tally.anomalies[deviation.step.__name__] = (int(replayed.deviated[n]), place, place, CURSORS)
    early = np.flatnonzero(replayed.bad_at >= 0)[:BAD_OPS]
    return list(zip(places[early].tolist(), numbers[early].tolist(), reach[early].tolist(), strict=True))


CURSORS = f"{HALF_TOPIC}/0"  # the trace of the check service's cursors


def world(store: Store, options: Options, evidence: Evidence | None = None) -> World:
    """What the store, its settings and its clients say beside its rows; what they do not say is not assumed."""
    cursors = store.cursors
    known = cursors is not None and not store.live
    hours = _setting(store, "fileReservedTime") or KEPT_HOURS
    return World(
        start=store.start,
        half_cursor=cursors.half if known and cursors and cursors.half is not None else -1,
        op_cursor=cursors.op if known and cursors and cursors.op is not None and store.clean else -1,
        max_checks=_setting(store, "transactionCheckMax"),
        max_size=_setting(store, "transactionOpMsgMaxSize"),
        aged_ms=hours * 3_600_000,
        profile=options.profile,
        ignored=options.ignored,
        client=evidence.said if evidence else NO_CLIENT,
        listed=options.listed,
        only=key_of(options.transaction) if options.transaction else 0,
        witnessed=evidence is not None and not store.live,  # what comes after the client log was read, nobody asked for
    )


def key_of(name: str) -> int:
    """The key of a transaction, by the name that its producer gave it."""
    data = np.frombuffer(os.fsencode(name), np.uint8)
    return int(scan.digests(data, np.array([0, len(data)], np.int64))[0])


def _setting(store: Store, name: str) -> int:
    """A setting that is a number, or 0 where nothing says it."""
    value = store.settings.get(name, "").strip()
    return int(value) if value.isdecimal() and len(value) < 10 else 0


def judge_steps(rows: Ints, store: Store, options: Options, evidence: Evidence | None) -> list[Judgement]:
    """Judge the rows of one segment: its ops, and the transactions that are settled in it."""
    if not options.wants_transactions or not rows.shape[1]:
        return []
    known = world(store, options, evidence)
    if known.only:
        mine = np.ascontiguousarray(rows[:, (rows[KIND] == MARK) | ((rows[KIND] != OP) & (rows[KEY] == known.only))])
        return [Judgement(Tally(), mine, NO_SETTLED)]
    return [judge_ops(rows, known), judge(np.ascontiguousarray(rows[:, rows[KIND] != OP]), known, last=False)]


def load_transaction_kernels(options: Options) -> None:
    """Compile all that judges transactions, or load it, by running it on nothing."""
    nothing = World(0, 1, 1, 0, 0, -1, options.profile, options.ignored)
    rows.find_rows(np.zeros(8, np.uint8), 0, NO_ROWS, 0, 0, 0, NO_ROWS.copy(), 0)
    judge(np.zeros((COLUMNS, 1), np.int64), nothing, last=True)
    op = np.zeros((COLUMNS, 1), np.int64)
    op[KIND] = OP
    judge_ops(op, nothing)


def events_of_one(of: Kernel, rows: Ints, known: World) -> tuple[list[Event], list[int]]:
    """One transaction as the exact replay takes it, from its opening on, and where in the log each event lies."""
    found = lineages(of, rows, known)
    halves = rows[:, rows[KIND] == HALF]
    events: list[Event] = [("open", (known.start, known.max_checks, int(known.witnessed)))]
    positions = [int(rows[PLACE, 0])]
    for at in range(int(found.starts[-1])):
        action = list(of.spec.actions)[found.action[at]]
        names = of.spec.parameters[action]
        values = {name: int(found.args[of.spec.arguments.index(name), at]) for name in names}
        for name in {"number", "parent"} & values.keys():
            values[name] = int(halves[NUMBER, values[name]]) if values[name] >= 0 else -1
        events.append((action, tuple(values.values())))
        positions.append(_position(found, at))
    return events, positions


def events_of_op(rows: Ints) -> list[Event]:
    """One op as the exact replay takes it: `rows` are its own and those of its marks."""
    op, marks = rows[:, 0], rows[:, 1:].T.tolist()
    entries: list[Event] = [("enqueue", (mark[NAMES], mark[SIZE], 1)) for mark in marks]
    last = marks[-1][SIZE] if marks else 0
    body = (len(marks), int(op[SIZE]), last, int(op[COUNT] >= 0), int(op[LIST]))
    return [*entries, ("write", body)]


def strays(rows: Ints) -> Iterator[tuple[int, int, int, int]]:
    """Marks whose half was not found: (position of the op, its number, its queue, the half's number)."""
    for row in rows.T[rows[KIND] == MARK].tolist() if rows.shape[1] else []:
        yield row[PLACE], row[NUMBER], row[TIMES], row[NAMES]
