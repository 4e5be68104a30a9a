"""The parameters by which rows of transactions are judged, and the results, which can be added."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.clients.decision_index import DecisionIndex, no_decisions
from gapless.traces.sources.rocketmq.clients.evidence import ClientEvidence
from gapless.traces.sources.rocketmq.columns.bytes import Ints, key_of
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.selection import selected_transaction
from gapless.traces.sources.rocketmq.store.settings import LARGEST_INT, number_set
from gapless.traces.sources.rocketmq.transactions.transaction_rows import COLUMNS

VisibleRows = tuple[Ints, npt.NDArray[np.bool_]]
"""The rows of one transaction of which consumers can read a half, and which of them tell of a rollback."""

NO_ROWS = np.zeros((COLUMNS, 0), np.int64)
NO_SETTLED = np.zeros((4, 0), np.int64)
KEPT_HOURS = 72  # fileReservedTime, unless settings say otherwise: it can only excuse


@dataclass(frozen=True)
class Terms:
    """The parameters outside of rows: constants of store and broker, and the options."""

    start: int
    half_cursor: int  # -1 where there is none
    op_cursor: int  # -1 without one, or if it cannot be compared with the half cursor
    max_checks: int  # 0 where it is not known
    max_size: int  # bytes of an op's body; 0 where it is not known
    aged_ms: int  # what is older is given up; below 0, everything is
    profile: str
    ignored: frozenset[str]
    client: DecisionIndex = field(default_factory=no_decisions, compare=False)
    witnessed: bool = False
    aged_perhaps: bool = False  # messages may have been kept for a shorter time, or for an unknown one
    restarted: bool = False  # the settings need not be those of all records
    listed: bool = False  # every transaction and op is wanted by itself
    only: int = 0  # the key of the one transaction that is wanted
    watched: bool = False  # the cursors are not known yet: what they may pass is remembered


def terms(store: StoreDirectory, options: Options, evidence: ClientEvidence | None = None) -> Terms:
    """Returns the parameters from the store, its settings and its clients; unknown ones assume nothing."""
    cursors = store.cursors
    still = cursors is not None and not store.of_moments
    hours = number_set(store.settings, "fileReservedTime", KEPT_HOURS, least=-LARGEST_INT)
    max_checks, max_size = (number_set(store.settings, f"transaction{name}") for name in ("CheckMax", "OpMsgMaxSize"))
    return Terms(
        start=store.start,
        half_cursor=cursors.half if still and cursors and cursors.half is not None else -1,
        op_cursor=cursors.op if still and cursors and cursors.op is not None and store.clean else -1,
        max_checks=max_checks,
        max_size=max_size,
        aged_ms=hours * 3_600_000,
        aged_perhaps=not (store.settings and store.settings_apply),
        restarted=bool(max_checks or max_size) and not store.settings_apply,
        profile=options.profile,
        ignored=options.ignored,
        client=evidence.decisions if evidence else no_decisions(),
        listed=options.listed,
        watched=store.watched,
        only=key_of(one) if (one := selected_transaction(options)) else 0,
        # Requests after the end of the client log are unknown, and traces do not have all.
        witnessed=evidence is not None and evidence.summary is not None and not store.of_moments,
    )


@dataclass
class Totals:
    """The counts of judged transactions and ops: two can be added, and one subtracted.

    `anomalies`: by deviation, the number, and of the trace that began first: its begin, the position of the anomaly,
    and its name.
    """

    covered: dict[str, dict[str, int]] = field(default_factory=dict)
    anomalies: dict[str, tuple[int, int, int, str]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)  # of rows, by kind, and of traces
    outcomes: dict[str, int] = field(default_factory=dict)
    decided_within: dict[int, int] = field(default_factory=dict)
    back_checks: dict[int, int] = field(default_factory=dict)
    batches: dict[int, int] = field(default_factory=dict)
    looked_at: int = -1  # the highest number of a half that the check service has surely looked at

    def add(self, other: Totals, sign: int = 1) -> None:
        """Adds the other's counts; or, with a negative sign, subtracts them."""
        for spec, actions in other.covered.items():
            add_counts(self.covered.setdefault(spec, {}), actions, sign)
        for name, new in other.anomalies.items():
            old = self.anomalies.get(name, (0, *new[1:]))
            self.anomalies[name] = (old[0] + sign * new[0], *min(old[1:], new[1:]))
        add_counts(self.numbers, other.numbers, sign)
        add_counts(self.outcomes, other.outcomes, sign)
        add_counts(self.decided_within, other.decided_within, sign)
        add_counts(self.back_checks, other.back_checks, sign)
        add_counts(self.batches, other.batches, sign)
        self.looked_at = max(self.looked_at, other.looked_at)


def add_counts(to: dict[Any, int], more: dict[Any, int], sign: int = 1) -> None:
    """Adds counts by name."""
    for key, count in more.items():
        to[key] = to.get(key, 0) + sign * count


@dataclass(frozen=True)
class Judgement:
    """The result of judging rows.

    `open`: rows of transactions that are not judged yet · `settled`: [4, halves], key, number, and positions of the
    first and the last row, of every half that is judged and forgotten · `refused`: rows of each refused transaction ·
    `passed`: rows of the unresolved halves that the half cursor passed · `bad_ops`: rows of refused ops, with their
    marks · `early_ops`: position, number and reach of needed ops that the op cursor passed · `listed`, if requested:
    key, first position and events of every accepted transaction, `listed_ops`: number, events and queue of every such
    op · `visible`: of each transaction of which consumers can read too much, by its key · `unpassed`, `unpassed_ops`,
    of a followed store: the halves and ops for `ops.pass_late_halves` and `ops.pass_late_ops` · `delayed`: numbers of
    halves among delayed messages.
    """

    totals: Totals
    open: Ints
    settled: Ints
    refused: list[Ints] = field(default_factory=list)
    passed: Ints = field(default_factory=lambda: NO_ROWS)
    bad_ops: list[Ints] = field(default_factory=list)
    more_bad_ops: dict[str, int] = field(default_factory=dict)  # those that are only counted, by rule
    early_ops: list[tuple[int, int, int]] = field(default_factory=list)
    listed: Ints = field(default_factory=lambda: np.zeros((3, 0), np.int64))
    listed_ops: Ints = field(default_factory=lambda: np.zeros((3, 0), np.int64))
    visible: dict[int, VisibleRows] = field(default_factory=dict)
    delayed: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    unpassed: Ints = field(default_factory=lambda: NO_SETTLED)
    unpassed_ops: Ints = field(default_factory=lambda: NO_SETTLED)
