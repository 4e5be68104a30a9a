"""The result of the check of data directories: findings, rows and numbers for the report, and what was not judged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gapless.spec import catalog
from gapless.traces.judging.findings.teller import anomaly
from gapless.traces.options import Depth, Options
from gapless.traces.problems import shown
from gapless.traces.report.parts import Parts
from gapless.traces.report.values import Finding, VerdictName
from gapless.traces.sources.kafka.files.names import OFFSETS_TOPIC, TRANSACTION_TOPIC
from gapless.traces.sources.kafka.joining.findings import NAMED, LogFindings, PartitionSummary, PlacedDeparture
from gapless.traces.sources.kafka.joining.tails import NEXT_TO_THE_LOG
from gapless.traces.sources.kafka.log_marks import marks
from gapless.traces.sources.kafka.report import PartitionRow
from gapless.traces.sources.kafka.selection import ALL, is_joined
from gapless.traces.sources.kafka.transactions.traces import JudgedTraces
from gapless.traces.suggestions import did_you_mean, first_of

TRANSACTION, GROUPS, CLIENT = "kafka_transaction", "group_offsets", "partition_client"
SPECS_JUDGED = ("partition", "producer", "aborted_index", TRANSACTION, GROUPS)
OF_RECORDS = frozenset(
    catalog.rule(f"partition/{name}").id
    for name in (
        "records-end-where-their-batch-ends", "offsets-of-a-batch-go-up", "time-of-a-batch-is-that-of-a-record",
        "cleaner-leaves-a-key-once",
    )
)  # fmt: skip
"""The rules that only a check that reads records can judge."""
DEPTH_NOTES: dict[Depth, str] = {
    "shallow": "heads of batches and checksums were read, and no record (--depth shallow)",
    "deep": "every record was read (--depth deep)",
}


class InputFacts(NamedTuple):
    """An input that was checked. `is_whole`: its brokers stopped in order · `names`: its partitions, if none fits."""

    path: Path
    options: Options
    bytes: int
    is_whole: bool
    names: tuple[str, ...]
    depth: Depth


def summary(check: InputFacts, found: LogFindings, ids: JudgedTraces, *, interrupted: bool = False) -> Parts:
    """Returns the part of the report about the data directories of a check."""
    findings = _findings(check.path, found, check.options)
    return Parts(
        bytes=check.bytes,
        records=found.records,
        clean=check.is_whole,
        reasons=[] if interrupted else [*_vacuous(check, found, ids), *found.inconclusive],
        notes=[DEPTH_NOTES[check.depth], *found.notes],
        depth=check.depth,
        unread=OF_RECORDS if check.depth == "shallow" else frozenset(),
        findings=findings,
        events={spec: _events(found, spec) for spec in (*SPECS_JUDGED, *_of_clients(found))},
        traces=len(found.partitions) + found.producers + len(ids.names),
        coverage=dict(found.covered),
        not_exercised=list(_not_exercised(check, found, ids)),
        anomalies={name: count for (_, name), (count, *_) in found.anomalies.items()},
        rows={"partitions": _rows(check.path, found)},
        marks=marks(shown(check.path), found.partitions, findings),
    )


def _of_clients(found: LogFindings) -> list[str]:
    """The spec of answers to clients, if there are any."""
    return [CLIENT] if _events(found, CLIENT) else []


def _events(found: LogFindings, spec: str) -> int:
    return sum(count for name, count in found.covered.items() if name.startswith(f"{spec}."))


def _vacuous(check: InputFacts, found: LogFindings, ids: JudgedTraces) -> Iterator[str]:
    """Yields the reason if nothing was checked."""
    asked = check.options.trace or check.options.topic
    if not found.partitions and asked is not None:
        names = [shown(name) for name in check.names]
        yield f"no partition {shown(asked)} in it{did_you_mean(asked, names)}: there are {first_of(names, 8)}"
    elif asked is not None and not found.producers and any(one.producer != ALL for one in found.partitions):
        yield f"no batch of producer {shown(asked)} in it: gapless check --verdicts DIR lists the producers"
    elif asked is not None and is_joined(asked) and asked not in ids.names:
        names = [shown(name) for name in ids.names]
        meant = did_you_mean(asked, names)
        yield f"no transactional id and no group {shown(asked)} in it{meant}: there are {first_of(names, 8)}"
    elif not found.batches:
        yield "no batch in any log: nothing was checked"


def _findings(path: Path, found: LogFindings, options: Options) -> list[Finding]:
    """Returns one finding for all departures from one rule, and one for each kind of anomaly."""
    from gapless.traces.sources.kafka import explain  # noqa: PLC0415 - most inputs need none

    clusters: dict[str, list[PlacedDeparture]] = {}
    for one in sorted(found.breaches, key=lambda one: (_rank(one), one.partition, one.offset)):
        clusters.setdefault(one.departure.rule, []).append(one)
    findings = [
        explain.finding(path, group, len(group) + found.unreported[broken], options)
        for broken, group in clusters.items()
    ]
    for rule in sorted({one.rule for one in found.hazards}):
        findings += [explain.hazard(path, [one for one in found.hazards if one.rule == rule])]
    for (spec, name), (count, trace, offset, where) in sorted(found.anomalies.items()):
        findings.append(anomaly(spec, name, count, source=path, trace=trace, position=offset, where=where))
    return findings


def _rank(one: PlacedDeparture) -> int:
    """The rank of a departure among others: what may explain others comes first."""
    if one.departure.spec in (TRANSACTION, GROUPS, CLIENT):
        return 5
    if one.departure.spec == "aborted_index":
        return 4
    if one.departure.spec == "producer":
        return 3 if one.departure.event[0] == "snapshot" else 2
    return 1 if one.departure.event[0] in NEXT_TO_THE_LOG else 0


def _rows(path: Path, found: LogFindings) -> list[PartitionRow]:
    rows = sorted(found.partitions, key=lambda one: (not one.departs, -one.records, one.name))[:NAMED]
    return [
        PartitionRow(
            source=shown(path), partition=shown(one.name), segments=one.segments, start=one.start, end=one.end,
            stable=one.stable if one.stable >= 0 else None, batches=one.batches, records=one.records,
            producers=one.producers, verdict=_verdict(one),
        )
        for one in sorted(rows, key=lambda one: one.name)
    ]  # fmt: skip


def _verdict(one: PartitionSummary) -> VerdictName:
    return "departs" if one.departs else "inconclusive" if one.doubts else "conforms"


def _not_exercised(check: InputFacts, found: LogFindings, ids: JudgedTraces) -> Iterator[str]:
    """Yields what was not judged, and which evidence would be needed."""
    yield from found.not_exercised
    if check.depth == "shallow":
        for rule in sorted(OF_RECORDS):
            yield f"{rule}: records were not read: --depth deep reads them"
    if not any(one.spec == TRANSACTION for one in ids.traces):
        yield f"{TRANSACTION}: no row of {TRANSACTION_TOPIC} was read: decisions and their markers were not judged"
    answers = any(found.covered.get(f"{TRANSACTION}.{action}") for action in ("acknowledge", "received"))
    if not answers and not _of_clients(found):
        yield "answers to clients: --client FILE compares them with the logs (docs/kafka-clients.md)"
    if not any(one.spec == GROUPS for one in ids.traces):
        yield f"{GROUPS}: no group committed an offset, or {OFFSETS_TOPIC} was not read"
    if "aborted_index.open" not in found.covered:
        yield "aborted_index: no records were aborted, but in topics that may be compacted"
    for spec, action in (
        ("partition", "crash"),
        ("partition", "truncate"),
        ("producer", "forget"),
        (TRANSACTION, "crash"),
    ):
        yield f"{spec}.{action}: a data directory does not show this step: only a broker that records its steps does"
    if not check.is_whole:
        yield "partition.end: the broker did not stop in order"
