"""Compares a slave with its master: logs, queues and epochs, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gapless.traces.problems import Unreadable, shown
from gapless.traces.report.values import VerdictName, worst
from gapless.traces.report.wording import plural, some
from gapless.traces.sources.rocketmq.replicas.epochs import compare_epochs
from gapless.traces.sources.rocketmq.replicas.logs import LogComparison, compare_logs
from gapless.traces.sources.rocketmq.replicas.queues import QueueComparison, compare_queues
from gapless.traces.sources.rocketmq.replicas.side import Side
from gapless.traces.sources.rocketmq.replicas.values import PairRow
from gapless.traces.sources.rocketmq.store.file_access import entry_at


class _Epochs(NamedTuple):
    note: str
    undecided: str
    at: int | None  # from here on logs may differ lawfully
    broken: str = ""  # why a file of epochs cannot be read: then a fork for good may be lawful, wherever it begins


def compare_pair(master: Side, slave: Side, name: str) -> PairRow:
    """Compares a slave with a master. Raises Unreadable."""
    logs = compare_logs(master, slave)
    epochs = _epochs(master, slave)
    forked = logs.fork is not None and logs.fork.again is None
    queues = _queues_up_to(logs.fork.position if logs.fork and forked else logs.high, master, slave)
    reasons = [reason for reason in (epochs.undecided, epochs.broken) if reason]
    lawful = logs.fork is not None and epochs.at is not None and logs.fork.position >= epochs.at
    lawful = lawful or (forked and bool(epochs.broken))
    if logs.low >= logs.high:
        reasons.append(
            f"nothing in common to compare: the master's log reaches from {master.start:,} to {master.end:,}, the "
            f"slave's from {slave.start:,} to {slave.end:,}"
        )
    reasons += [
        f"queues were not compared: of the {side.role}, {side.store.no_queues}"
        for side in (master, slave)
        if side.store.no_queues
    ]
    alone = list(_alone(master, slave, queues))
    reasons += _missing(alone)
    uncommitted = _uncommitted(master, slave, logs.fork.position) if logs.fork else ""
    reasons += [uncommitted] if uncommitted else []
    lawful = lawful or bool(uncommitted)
    verdicts: list[VerdictName] = ["inconclusive" if reasons else "conforms"]
    if epochs.broken:
        verdicts.append("unreadable")
    if (logs.fork is not None and not lawful) or queues.apart:
        verdicts.append("departs")
    return PairRow(
        slave=name,
        verdict=worst(verdicts),
        low=logs.low,
        high=logs.high,
        gaps=logs.gaps,
        fork=logs.fork,
        queues=queues.queues,
        entries=queues.entries,
        apart=queues.apart,
        epochs=epochs.note,
        reasons=reasons,
        notes=_notes(master, slave, logs, alone),
    )


def _epochs(master: Side, slave: Side) -> _Epochs:
    """Compares the files of epochs; an unreadable one does not prevent comparing logs and queues."""
    try:
        return _Epochs(*compare_epochs(master, slave))
    except Unreadable as error:
        return _Epochs("", "", None, str(error))


def _uncommitted(master: Side, slave: Side, position: int) -> str:
    """The reason if logs may lawfully differ at `position`: it is not known to be committed in both.

    The next DLedger leader replaces entries that one leader wrote alone.
    """
    for side in (master, slave):
        dledger = side.store.dledger
        entry = entry_at(side.store, position)
        if dledger and entry and (dledger.last_committed is None or dledger.last_committed < entry.number):
            return (
                f"the logs part at entry {entry.number:,}, which the {side.role} is not known to have committed "
                f"({dledger.committed}): what a leader wrote alone, the next one replaces"
            )
    return ""


def _queues_up_to(high: int, master: Side, slave: Side) -> QueueComparison:
    """Queues are compared as far as the logs agree: behind a fork, each has the entries of its own messages."""
    return compare_queues(master._replace(end=min(high, master.end)), slave._replace(end=min(high, slave.end)))


class _UnmatchedQueue(NamedTuple):
    """Queues that one side has alone. `lacking`: the other's log has their messages, without entries."""

    side: Side
    other: Side
    lacking: list[str]
    rest: list[str]


def _alone(master: Side, slave: Side, queues: QueueComparison) -> Iterator[_UnmatchedQueue]:
    """Yields the queues that only one side has, if both have queues at all."""
    if master.store.no_queues or slave.store.no_queues:
        return
    for side, other, names in zip((master, slave), (slave, master), queues.only, strict=True):
        waiting = {f"{topic}/{queue}" for topic, queue in other.waiting}
        lacking = [name for name in names if shown(name) in waiting]
        yield _UnmatchedQueue(side, other, lacking, [name for name in names if name not in lacking])


def _missing(alone: Sequence[_UnmatchedQueue]) -> list[str]:
    """Returns the doubts about queues of one side, if the other's log has their messages.

    Source: docs/rocketmq.md#recovery-unclean.
    """
    return [
        f"{plural(len(names), 'queue')} at the {side.role} alone, though the {other.role}'s log has messages of "
        f"{'them' if len(names) > 1 else 'it'}: {some(names)}. The {other.role} was not stopped in order: its next "
        "start builds entries again from the log file at its checkpoint on, and not those of older files"
        for side, other, names, _ in alone
        if names
    ]


def _notes(master: Side, slave: Side, logs: LogComparison, alone: Sequence[_UnmatchedQueue]) -> list[str]:
    """Returns notes about lawful differences."""
    lines = []
    if slave.end > master.end:
        lines.append(
            f"the slave's log is {plural(slave.end - master.end, 'byte')} longer: it was copied later, or the master "
            "lost what it had sent"
        )
    if logs.gaps:
        missing = sum(gap.high - gap.low for gap in logs.gaps)
        lines.append(f"{plural(missing, 'byte')} in between were not compared: one of both has no file there")
    if logs.blanks:
        lines.append(f"{plural(logs.blanks, 'blank')} at the end of files differ in bytes that are never read")
    sizes = master.store.file_size, slave.store.file_size
    if sizes[0] != sizes[1]:
        lines.append(f"log files have {sizes[0]:,} bytes at the master, {sizes[1]:,} at the slave")
    if batched := sorted({*master.store.batched, *slave.store.batched}):
        named = some([f"{topic}/{queue}" for topic, queue in batched])
        lines.append(f"{plural(len(batched), 'batch queue')} not compared: {named}")
    lines += [
        f"{plural(len(names), 'queue')} at the {side.role} alone: {some(names)}" for side, _, _, names in alone if names
    ]
    return lines
