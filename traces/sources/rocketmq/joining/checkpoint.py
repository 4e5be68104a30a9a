"""Saves the judgement of a log up to a position as bytes, and restores it.

The end of a log is judged on a copy, so the judgement itself never ends. Data that grows with the log is in files that
copies share: memory does not grow with it.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from gapless.traces.sources.rocketmq.clients.promises import PromiseCheckpoint
from gapless.traces.sources.rocketmq.columns.disk_blocks import Blocks, SettledHalves
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.joining.log import StoreJudge
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.transactions.parameters import terms

FIXED = frozenset({"store", "evidence", "exported", "opened"})  # what a judgement was begun with
OF_THE_LOG = ("log", "pending", "invalid_at")
OF_TRANSACTIONS = (
    *("totals", "waiting", "rows", "limit", "refused", "passed", "bad_ops", "early_ops", "visible", "numbers_delayed"),
)
REMEMBERED: dict[str, type[Blocks]] = {"settled": SettledHalves, "unpassed": Blocks, "unpassed_ops": Blocks}
"""What is known of transactions and lies in files, by name."""


@dataclass(frozen=True)
class Checkpoint:
    """The state of a judgement up to the position `reached`. `remembered`: its files, named by `REMEMBERED`.

    `promises`: of trace messages, if there are any · `layouts`: of those that were followed, by name.
    """

    reached: int
    content: bytes
    remembered: tuple[Blocks, ...]
    promises: PromiseCheckpoint | None = None
    layouts: Mapping[str, Any] = field(default_factory=dict)


def save(judge: StoreJudge) -> Checkpoint:
    """Saves the state of a judge."""
    judged = {one.name: getattr(judge.judged, one.name) for one in fields(StoreFindings) if one.name not in FIXED}
    log = {name: getattr(judge, name) for name in OF_THE_LOG}
    transactions = {name: getattr(judge.transactions, name) for name in OF_TRANSACTIONS}
    checksums = judge.checksums.before, judge.checksums.open
    content = pickle.dumps((judged, log, checksums, judge.queues.waiting, transactions), pickle.HIGHEST_PROTOCOL)
    remembered = tuple(getattr(judge.transactions, name).copy() for name in REMEMBERED)
    return Checkpoint(judge.reached, content, remembered)


def restore(judge: StoreJudge, before: Checkpoint) -> None:
    """Sets a new judge to the saved state."""
    judged, log, checksums, waiting, transactions = pickle.loads(before.content)  # noqa: S301 - what `save` wrote
    judge.checksums.before, judge.checksums.open = checksums
    for name, value in judged.items():
        setattr(judge.judged, name, value)
    for name, value in log.items():
        setattr(judge, name, value)
    for run in judge.judged.queues.values():
        run.stop = -1  # what lies behind its entries may have been written since: it is read again where it matters
    judge.queues.waiting = waiting
    for name, value in transactions.items():
        setattr(judge.transactions, name, value)
    for name, blocks in zip(REMEMBERED, before.remembered, strict=True):
        setattr(judge.transactions, name, blocks.copy())
    for name, known in before.layouts.items():
        judge.layouts[name].restore(known)
    if before.promises:
        judge.promises.restore(before.promises)
    if judge.store.start > 0:
        judge.transactions.forget_expired(judge.store.start)


def renew(judge: StoreJudge, store: StoreDirectory) -> None:
    """Gives the judge a grown store of which it has judged the beginning."""
    if store.start > judge.store.start:
        judge.transactions.forget_expired(store.start)
    judge.store = judge.judged.store = judge.queues.store = store
    judge.last_file = judge.last_file_with_a_record()
    judge.queues.forget_reads()
    judge.transactions.terms = terms(store, judge.options, judge.evidence)
