"""The result of a judged store: findings, rows and numbers for the report, and unjudged parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gapless.spec.catalog import SPECS, rule
from gapless.traces.judging.findings.lateness import OVERDUE, overdue_rows, with_amount
from gapless.traces.judging.findings.teller import anomaly
from gapless.traces.options import Options
from gapless.traces.problems import pasted, shown
from gapless.traces.report.parts import Parts
from gapless.traces.report.values import Finding, Mark, OverdueRow, Where
from gapless.traces.report.wording import plural
from gapless.traces.sources.rocketmq import PROFILE
from gapless.traces.sources.rocketmq.absent_traces import absent_queue, absent_topic, absent_transaction
from gapless.traces.sources.rocketmq.clients.promises import OF_CLIENTS
from gapless.traces.sources.rocketmq.joining.findings import Breach, QueueProgress, StoreFindings
from gapless.traces.sources.rocketmq.layouts import registry
from gapless.traces.sources.rocketmq.log import scan
from gapless.traces.sources.rocketmq.report_rows import QueueRow, TransactionsRow
from gapless.traces.sources.rocketmq.segments import splits
from gapless.traces.sources.rocketmq.startup.next_start import is_start_refused
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import ENTRY, FARTHEST
from gapless.traces.sources.rocketmq.store.names import HALVES, OP_TOPIC, OPS
from gapless.traces.sources.rocketmq.store.selection import COMMIT_LOG, includes_transactions, selected_transaction
from gapless.traces.sources.rocketmq.store.settings import owner

QUEUE_ROWS = 2000  # rows of the per-queue table; the widest first beyond that
TRACES = 5  # traces named in a cluster of findings


def summary(path: Path, judged: StoreFindings, options: Options, *, interrupted: bool = False) -> Parts:
    """Returns the part of the report about the store at `path`."""
    store, source = judged.store, shown(path)
    findings = _findings(path, judged, options)
    parts = Parts(
        bytes=store.bytes,
        records=judged.records,
        clean=store.clean,
        owner=owner(store.settings),
        live=store.live,
        moments=judged.moments,
        reasons=[] if interrupted else [*_vacuous(judged, options), *judged.inconclusive],
        notes=[*store.notes, *judged.notes, *_unwritten(judged)],
        findings=findings,
        events={spec: _events(judged, spec) for spec in SPECS},
        traces=_traces(judged),
        coverage=judged.covered,
        not_exercised=_not_exercised(judged),
        anomalies={name: count for name, (count, _, _) in judged.anomalies.items()},
        rows={
            "queues": _queue_rows(judged, source),
            "transactions": _transactions(judged, source),
            "clients": [judged.client] if judged.client else [],
            "testimony": [judged.testimony] if judged.testimony else [],
            OverdueRow.part: overdue_rows(source, [task for task, _ in judged.overdue]),
        },
        life=judged.life,
        queues=len(judged.queues),
        marks=_marks(judged, source, findings),
    )
    if not interrupted and not judged.records and not parts.violations and _is_garbage(store):
        parts.unreadable = "the log files contain no record of a RocketMQ commit log"
    parts.unreadable = parts.unreadable or judged.unread_file
    return parts


def _unwritten(judged: StoreFindings) -> Iterator[str]:
    """Yields a note for what is missing and will be written; it will not be where the start fails."""
    if not judged.unwritten:
        return
    from gapless.traces.sources.rocketmq.explanations import hazard as explain_hazard  # noqa: PLC0415 - of few stores

    stops = is_start_refused(judged) or any(found.action == "start" for found in judged.feared)
    how = "the broker writes what is missing at its next start"
    if stops or explain_hazard.may_fail(judged):
        how = "a start writes what is missing, unless it fails: see the hazards"
    yield from (f"{what}; {how}" for what in judged.unwritten)


def _findings(path: Path, judged: StoreFindings, options: Options) -> list[Finding]:
    """Returns one finding for all departures from one rule, and one for every permitted deviation."""
    if not (judged.breaches or judged.hazards or judged.feared or judged.anomalies):
        return []
    from gapless.traces.sources.rocketmq.explanations import finding as explain  # noqa: PLC0415 - most stores need none
    from gapless.traces.sources.rocketmq.explanations import log as explain_log  # noqa: PLC0415 - as before
    from gapless.traces.sources.rocketmq.explanations.causes import with_causes_first  # noqa: PLC0415 - as before

    store = judged.store
    clusters: dict[str, list[Breach]] = {}
    for found in sorted(judged.breaches, key=lambda f: (f.position, f.trace)):
        clusters.setdefault(found.rule, []).append(found)
    how = f" --profile {options.profile}" if options.profile != PROFILE else ""
    how += " --only-broker" * store.only_broker
    how += "".join(f" --trace-topic {pasted(topic)}" for topic in store.trace_topics)
    findings = [
        explain.finding(
            judged, group[0], source=str(path), how=how,
            count=len(group) + judged.unreported.get(broken, 0),
            traces=list(dict.fromkeys(f.trace for f in group))[:TRACES],
            also=list(explain_log.others(store, group, TRACES)) if group[0].spec == "log" else (),
        )
        for broken, group in clusters.items()
    ]  # fmt: skip
    findings = with_causes_first(findings)
    for alike in ([one for one in judged.hazards if not one.files], [one for one in judged.hazards if one.files]):
        named = [hazard.breach.trace for hazard in alike]
        if named:
            first, traces = alike[0], named[:TRACES]
            findings.append(explain.hazard(judged, first, source=str(path), how=how, count=len(named), traces=traces))
    by_rule: dict[str, list[Breach]] = {}
    for found in judged.feared:
        by_rule.setdefault(found.rule, []).append(found)
    findings += [explain.feared(judged, some, source=str(path), how=how) for some in by_rule.values()]
    for name, (count, position, trace) in sorted(judged.anomalies.items()):
        spec = next(spec.name for spec in SPECS.values() for d in spec.deviations if d.step.__name__ == name)
        file, offset = judged.store.log_file_at(position)
        where = Where(file=file, offset=offset)
        counted = anomaly(spec, name, count, source=path, trace=trace, position=position, where=where)
        findings.append(_of_the_worst(path, judged, counted) if counted.rule == OVERDUE else counted)
    return findings


def _of_the_worst(path: Path, judged: StoreFindings, finding: Finding) -> Finding:
    """Returns the finding of all overdue tasks, at the place of the worst."""
    rows = overdue_rows(shown(path), [task for task, _ in judged.overdue])
    position = next(place for task, place in judged.overdue if shown(task.trace) == rows[0].trace)
    file, offset = judged.store.log_file_at(position)
    moved = {"position": position, "where": Where(file=file, offset=offset)}
    return with_amount(finding.model_copy(update=moved), rows)


def _traces(judged: StoreFindings) -> int:
    """The log, every queue, every transaction and op, and the cursors if there are any."""
    numbers = judged.transactions.numbers
    cursors = any(name.startswith("checkpoint.") for name in judged.covered)
    layouts = sum(layout.join.traces(judged) for layout in registry.LAYOUTS)
    return 1 + layouts + len(judged.queues) + numbers.get("transactions", 0) + numbers.get("ops", 0) + cursors


def _transactions(judged: StoreFindings, source: str) -> list[TransactionsRow]:
    tally, cursors = judged.transactions, judged.store.cursors
    numbers = tally.numbers
    if not any(numbers.values()):
        return []
    halves, ops = judged.queues.get(HALVES), judged.queues.get(OPS)

    def kept(counts: dict[Any, int]) -> dict[Any, int]:
        return {key: count for key, count in sorted(counts.items()) if count}

    return [
        TransactionsRow(
            source=source,
            **{name: numbers.get(name, 0) for name in NUMBERS},
            outcomes={name: tally.outcomes[name] for name in BECAME if tally.outcomes.get(name)},
            decided_within=kept(tally.decided_within),
            back_checks=kept(tally.back_checks),
            batches=kept(tally.batches),
            half_cursor=cursors.half if cursors else None,
            half_end=_known_end(halves),
            op_cursor=cursors.op if cursors else None,
            op_end=_known_end(ops),
        )
    ]


def _known_end(run: QueueProgress | None) -> int | None:
    """Returns the exclusive end of a queue's numbers; None if it departs, for then it was not followed to its end."""
    if run is None:
        return 0
    return None if run.departs else run.end


BECAME = ("committed", "rolled back", "parked", "undecided", "departing", "not judged", "with an expired half")
NUMBERS = ("transactions", "halves", "renewals", "finals", "ops", "marks", "parked")


def _events(judged: StoreFindings, spec: str) -> int:
    return sum(count for name, count in judged.covered.items() if name.startswith(f"{spec}."))


def _vacuous(judged: StoreFindings, options: Options) -> Iterator[str]:
    """Yields the reasons if nothing, or not enough, was checked. Vacuity is not conformance."""
    if absent := _absent(judged, options):
        yield absent
    elif options.trace == COMMIT_LOG or _is_file(judged, options):
        return
    elif judged.store.no_queues:
        yield f"{judged.store.no_queues}: whether every message has its entry was not checked"
    elif not any(judged.covered.get(f"queue.{step}") for step in ("index", "index_batch")) and not all(
        run.batches or (judged.store.live and subject in judged.store.batched) for subject, run in judged.queues.items()
    ):
        in_memory = judged.store.database and not judged.store.clean
        why = ", and a broker keeps those for its database in memory until it writes them all at once" * bool(in_memory)
        yield f"no consume-queue entry was found for any message{why}: entries were not checked"


def _absent(judged: StoreFindings, options: Options) -> str:
    """Describes the requested trace if the log lacks it, or returns an empty text."""
    if not judged.records:
        return "no record in the log: nothing was checked"
    if options.topic is not None and not judged.queues:
        return absent_topic(judged, options.topic)
    if selected_transaction(options) is not None:
        return "" if judged.transactions.numbers.get("transactions") else absent_transaction(judged, options)
    elsewhere = any(layout.join.is_present(judged, options) for layout in registry.LAYOUTS)
    elsewhere = elsewhere or any(found.trace == options.trace for found in (*judged.breaches, *judged.feared))
    if options.trace in (None, COMMIT_LOG) or judged.queues or elsewhere or _is_file(judged, options):
        return ""
    if not includes_transactions(options):
        return absent_queue(judged, str(options.trace))
    return "" if _has_op(judged.store, str(options.trace)) else f"no op {options.trace} in the log"


def _is_file(judged: StoreFindings, options: Options) -> bool:
    """True if a file was requested that is a trace, and exists."""
    return any(options.trace in layout.join.files(judged) for layout in registry.LAYOUTS)


def _has_op(store: StoreDirectory, trace: str) -> bool:
    """True if there is an op of this name; ops of other queues are not looked up."""
    place, plus, number = trace.partition("+")
    if not plus or place != f"{OP_TOPIC}/0":
        return True
    if not number.isdecimal() or int(number) >= FARTHEST // ENTRY:
        return False
    slot = file_access.read_slot(store, OP_TOPIC, 0, int(number))
    record = file_access.record_at(store, slot[0]) if any(slot) else None
    return record is not None and (record.topic, record.number) == (OP_TOPIC, int(number))


def _is_garbage(store: StoreDirectory) -> bool:
    """True if the log has bytes that are no record: zeros are nothing, other bytes are not RocketMQ's."""
    for split in splits.splits(store):
        window = file_access.FileWindow(split.file)
        window.read(split.low, split.high)
        if window.data[: window.have].any():
            return True
    return False


def _not_exercised(judged: StoreFindings) -> list[str]:
    """Rules without evidence, and what would exercise them."""
    store, found = judged.store, []
    if not judged.counters[scan.C_SEALED]:
        found.append(
            f"{rule('log/record-has-the-checksum-that-its-properties-carry').id}: no record carries such a checksum"
        )
    if judged.counters[scan.C_SCHEDULED]:
        found.append(
            "delays of single levels: any start may change them, so delivery times are judged by whole seconds"
        )
    if judged.counters[scan.C_UNSURE]:
        messages = plural(judged.counters[scan.C_UNSURE], "message")
        found.append(
            f"tag codes of {messages}: tags are not UTF-8, or run into the next property (docs/rocketmq.md#properties)"
        )
    found += [f"{plural(judged.counters[at], *of)}: {why}" for at, of, why in NOT_JUDGED if judged.counters[at]]
    found += _of_layouts_not_exercised(judged)
    if store.checkpoint is None:
        found.append(f"{rule('log/what-was-flushed-is-still-in-the-log').id}: there is no checkpoint file")
    if not store.clean:
        what = "is still running" if store.live else "was running" if store.copied else "did not stop in order"
        found.append(f"{rule('queue/every-message-has-its-entry').id}: not up to the log's end, for the broker {what}")
    if store.queue_file_size == 0 and not store.database:
        name = rule("queue/file-of-the-consume-queue-has-its-full-length").id
        found.append(f"{name}: the length is unknown: no two files have the same")
    found += _promises_not_exercised(judged)
    found += _transactions_not_exercised(judged)
    for spec, action in (
        ("log", "flush"),
        ("log", "acknowledge"),
        ("log", "crash"),
        ("queue", "expire"),
        ("queue", "rebuild"),
        ("transaction", "crash"),
        ("checkpoint", "flush"),
        ("checkpoint", "save"),
        ("checkpoint", "crash"),
        ("op_batch", "name"),
        ("op_batch", "tick"),
        ("op_batch", "stop"),
        ("op_batch", "crash"),
    ):
        found.append(f"{spec}.{action}: a store does not show this step: only a broker that records its steps does")
    return found


NOT_JUDGED = (  # records that only the rules of the log are about
    (
        scan.C_OUTSIDE,
        ("message of type prepared or rolled back", "messages of type prepared or rolled back"),
        "not judged: they have no number, and consumers never see them (docs/rocketmq.md#raw-flags)",
    ),
    (
        scan.C_NO_FINAL,
        (
            "message with the flags of a final and without its half",
            "messages with the flags of a final and without its half",
        ),
        "not judged as finals: a client set the flags, or a broker copied them (docs/rocketmq.md#raw-flags)",
    ),
)


def _of_layouts_not_exercised(judged: StoreFindings) -> Iterator[str]:
    """Yields the unjudged parts of queues that are not plain files."""
    store = judged.store
    if without := sum(run.batches for run in judged.queues.values()):
        which = plural(without, "inner batch", "inner batches")
        yield f"{which}: not judged against an entry, for their queue is none of batchconsumequeue/"
    if store.database or store.twin or store.batched:
        yield "store times in entries of databases and of batch queues: gapless does not look at them"
    yield from (text for layout in registry.LAYOUTS for text in layout.join.not_exercised(judged))


def _promises_not_exercised(judged: StoreFindings) -> Iterator[str]:
    """Yields unknown parts of the promises to clients."""
    sent, clients = rule("queue/client-sent-the-message").id, judged.evidence
    if judged.client is None:
        for name in (sent,) if judged.testimony and judged.testimony.promised else (*ACKNOWLEDGED, sent):
            yield f"{name}: no client log: add --client"
    elif clients is not None and not clients.complete:
        yield f"{sent}: the client log has messages without their keys: record all keys"


ACKNOWLEDGED = (
    rule("queue/message-that-was-acknowledged-is-in-the-log-where-the-answer-said").id,
    rule("queue/message-that-was-acknowledged-is-what-its-producer-sent").id,
)


def _transactions_not_exercised(judged: StoreFindings) -> Iterator[str]:
    """Yields unknown parts of transactions, and the evidence that would add them."""
    store, numbers = judged.store, judged.transactions.numbers
    if not numbers.get("transactions"):
        yield "transaction, checkpoint, op_batch: no transaction in the log, or not selected"
        return
    if not store.settings.get("transactionCheckMax"):
        name = rule("transaction/all-checks-are-spent").id
        yield f"{name}: transactionCheckMax is unknown: add --config broker.conf"
    if not store.settings.get("transactionOpMsgMaxSize"):
        name = rule("op_batch/body-ends-with-the-entry-that-fills-it").id
        yield f"{name}: transactionOpMsgMaxSize is unknown: add --config broker.conf"
    for name in OF_CLIENTS if judged.client is None else ():
        yield f"{name}: no client log: add --client"
    if store.cursors is None or store.cursors.half is None or store.of_moments:
        name = rule("checkpoint/half-cursor-passes-no-undecided-half").id
        cursors = f"{name}, checkpoint.advance, checkpoint.advance_ops"
        yield f"{cursors}: the progress of the check service is unknown: config/consumerOffset.json has it"
    elif not store.clean:
        name = rule("checkpoint/half-cursor-has-passed-all-that-the-op-names").id
        yield f"{name}: the two cursors are written one after the other; those of a broker that stopped in order agree"
    if judged.covered.get("transaction.roll_back") and judged.client is None:
        yield "transaction.roll_back: no client log: add --client"


def _queue_rows(judged: StoreFindings, source: str) -> list[QueueRow]:
    rows = sorted(judged.queues.items(), key=lambda item: (-item[1].messages, item[0]))[:QUEUE_ROWS]
    return [
        QueueRow(
            source=source, topic=shown(topic), queue=queue, messages=run.messages, first=run.first, end=run.end,
            indexed=run.indexed, missing=run.skipped, verdict=judged.verdict_of((topic, queue)),
            end_is_known=not run.departs,
        )
        for (topic, queue), run in sorted(rows)
    ]  # fmt: skip


def _marks(judged: StoreFindings, source: str, findings: list[Finding]) -> list[Mark]:
    """The picture of the log: its files, how far records reach, damaged stretches, and every finding's place."""
    store = judged.store
    marks = [
        Mark(source=source, low=f.base, high=f.base + f.length, kind="file", label=f"commitlog/{f.base:020d}")
        for f in store.files
    ]
    marks.append(
        Mark(source=source, low=store.start, high=judged.end, kind="log", label=plural(judged.records, "record"))
    )
    marks += [Mark(source=source, low=a, high=b, kind="damage", label="no record") for a, b in judged.damage[:200]]
    marks += [
        Mark(source=source, low=f.position, high=f.position, kind="finding", label=f"{f.trace}: {f.needs}")
        for f in findings
    ]
    return marks
