"""The part of a report about stores: their queues, their transactions, and promises to clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gapless.traces.report.charts import Chart, histogram, reached, span
from gapless.traces.report.glossary import Gloss
from gapless.traces.report.sections import Presentation, RowsByPart, Section, SectionRow, Tile, broken_traces, tile
from gapless.traces.report.values import Report
from gapless.traces.report.wording import figure, plural, size
from gapless.traces.sources.rocketmq.layouts import registry
from gapless.traces.sources.rocketmq.report_rows import ClientRow, QueueRow, TraceTopicRow, TransactionsRow

# -- sections ------------------------------------------------------------------------------------------------------

TONES = {"committed": "committed", "rolled back": "rolled-back", "undecided": "undecided", "parked": "parked"}
SELDOM = ("never", "once", "twice")  # put back so often: counted one by one, and all else together


def sections(parts: RowsByPart) -> list[Section]:
    """Returns the sections of stores in a report."""
    transactions = [row for row in parts["transactions"] if not row.empty]
    missing = any(row.missing for row in parts["queues"])
    return [
        Section(
            "transactions",
            "Transactions",
            "transactional store",
            [_transactions(row) for row in transactions],
            caption="what became of them, how long it took, how ops were batched",
            headings=", transactions, halves, put back, finals, ops, marks, parked, half cursor, op cursor",
            total=(sum(row.transactions for row in transactions), "transaction"),
        ),
        Section(
            "clients",
            "Promises to clients",
            "client log",
            [_client(row) for row in parts["clients"]],
            caption="and how much of it was compared with the store",
            headings="client log, lines, messages sent, acknowledged, expired since, never answered, decisions, "
            "back-checks",
            note="An acknowledged message must lie in the log where the answer says, unless it has expired since. What "
            "was never answered may lie there or not.",
        ),
        Section(
            "testimony",
            "Trace topics",
            "trace topic",
            [_testimony(row) for row in parts["testimony"]],
            caption="and how much of it was compared with the store",
            headings="trace topics, trace messages, not understood, messages promised, found in place, expired since, "
            "share of what clients wrote, commits asked, rollbacks asked, messages handed out, in this log",
            note="A message that a trace says was answered must lie in the log where the answer says, unless it has "
            "expired since. Clients discard traces when they have too many, so a missing trace accuses no broker.",
        ),
        Section("lag", "Queue lag", "store", list(_lags(parts["queues"])), caption="messages without an entry yet"),
        Section(
            "queues",
            "Queues",
            "queue",
            [_queue(row, missing=missing) for row in parts["queues"]],
            caption=plural(len(parts["queues"]), "row"),
            headings="queue, messages, first number, end, entries up to" + (", missing" if missing else ""),
            note="Missing: numbers whose messages may lie in damage of the log. They were not judged."
            if missing
            else "",
            detail=True,
        ),
    ]


def _lags(rows: Sequence[QueueRow]) -> Iterator[SectionRow]:
    """Yields the stores whose queues lag behind the log, with the number of messages, largest first."""
    behind: dict[str, list[tuple[str, int]]] = {}
    for row in rows:
        if row.end > row.indexed and row.verdict != "departs":  # the count of one that departs is unknown
            behind.setdefault(row.source, []).append((f"{row.topic}/{row.queue}", row.end - row.indexed))
    for source, queues in behind.items():
        queues.sort(key=lambda queue: (-queue[1], queue[0]))
        total, unit = sum(lag for _, lag in queues), ("message", "messages")
        lead = f"{plural(total, *unit)} without an entry yet, in {plural(len(queues), 'queue')}"
        chart = Chart("lag", "Queues", unit, "by the queue that has no entry for them", queues)
        yield SectionRow(source, line=lead, figures=(figure(total, *unit),), charts=(chart,))


def _queue(row: QueueRow, *, missing: bool) -> SectionRow:
    numbers = (row.messages, row.first, row.end, row.indexed, *([row.missing] if missing else []))
    return SectionRow(row.source, f"{row.topic}/{row.queue}", cells=numbers, verdict=row.verdict)


def _client(row: ClientRow) -> SectionRow:
    expired = f" ({row.expired:,} expired since)" if row.expired else ""
    sent = f"{plural(row.sends, 'message')} sent, {row.acknowledged:,} acknowledged{expired}"
    asked = f"{plural(row.decisions, 'decision')}, {plural(row.back_checks, 'back-check')}"
    numbers = (row.lines, row.sends, row.acknowledged, row.expired, row.unknown, row.decisions, row.back_checks)
    return SectionRow(row.source, row.path, f"{sent}, {row.unknown:,} never answered; {asked}", numbers)


def _testimony(row: TraceTopicRow) -> SectionRow:
    expired = f" ({row.expired:,} expired since)" if row.expired else ""
    share = f"{row.share:.1%}"
    lead = f"{plural(row.promised, 'message')} promised{expired}, {row.testified:,} found in place"
    asked = f"{plural(row.commits, 'commit')} and {plural(row.rollbacks, 'rollback')} asked for"
    handed = f"{plural(row.delivered, 'message')} handed out, {row.readable:,} of them in this log"
    line = f"{lead}: {share} of what clients wrote is testified; {asked}, {handed}"
    numbers = (
        row.messages, row.damaged + row.strange, row.promised, row.testified, row.expired, share, row.commits,
        row.rollbacks, row.delivered, row.readable,
    )  # fmt: skip
    return SectionRow(row.source, row.topics, line, numbers, lines=tuple(_unused(row)))


def _unused(row: TraceTopicRow) -> Iterator[str]:
    """Yields the trace contents that were not used, with the reason."""
    if row.damaged or row.strange:
        yield (
            f"not understood: {plural(row.damaged, 'trace message')}, and {row.strange:,} of "
            f"{plural(row.contexts, 'context')}"
        )
    if row.elsewhere:
        yield f"not used: {plural(row.elsewhere, 'message')} of another broker, or of this one under another address"
    if row.placeless:
        yield f"not used: {plural(row.placeless, 'message')} answered without a place"
    if row.doubtful:
        yield f"not used: {plural(row.doubtful, 'message')} taken, and not as safe as was asked for"
    if row.untimely:
        yield f"not used: {plural(row.untimely, 'message')} of an earlier log, as it seems"


def _transactions(row: TransactionsRow) -> SectionRow:
    pending, cursors = tuple(_pending(row)), (cursor(row.half_cursor, row.half_end), cursor(row.op_cursor, row.op_end))
    numbers = (row.transactions, row.halves, row.renewals, row.finals, row.ops, row.marks, row.parked)
    return SectionRow(
        row.source,
        line=", ".join(map(" ".join, pending)),
        cells=(*numbers, *cursors),
        lines=(*_spread(row), f"half cursor {cursors[0]}, op cursor {cursors[1]}"),
        figures=(
            *pending,
            (cursors[0], f"{'no ' * (row.half_cursor is None)}half cursor"),
            (cursors[1], f"{'no ' * (row.op_cursor is None)}op cursor"),
        ),
        charts=charts(row),
    )


def cursor(at: int | None, end: int | None) -> str:
    """Formats the position of a cursor: `1,131 of 1,205`."""
    return f"{'–' if at is None else f'{at:,}'} of {'?' if end is None else f'{end:,}'}"


def charts(row: TransactionsRow) -> tuple[Chart, ...]:
    """Returns four charts of a store's transactions; one without bars has nothing to count."""
    unit = ("transaction", "transactions")
    sizes = histogram(row.batches, "{:,}".format)
    return (
        Chart("outcomes", "Outcomes", unit, "by what became of it", [*row.outcomes.items()], TONES),
        Chart("time", "Time to decision", unit, "by the time that it took, up to", histogram(row.decided_within, span)),
        Chart("checks", "Back-checks", unit, "by how often its half was put back", histogram(row.back_checks)),
        Chart("batches", "Halves per op", ("op", "ops"), "by the halves named in one, up to", sizes),
    )


def _pending(row: TransactionsRow) -> Iterator[tuple[str, str]]:
    """Yields the records that a store keeps for transactions, as (number, kind)."""
    yield figure(row.transactions, "transaction")
    halves, noun = figure(row.halves, "half", "halves")
    yield halves, noun + (f" ({row.renewals:,} put back)" if row.renewals else "")
    yield figure(row.finals, "final")
    ops, noun = figure(row.ops, "op")
    yield ops, noun + (f" with {plural(row.marks, 'mark')}" if row.ops else "")
    if row.parked:
        yield f"{row.parked:,}", "parked"


def _spread(row: TransactionsRow) -> Iterator[str]:
    """Yields durations of decisions, counts of versions, and sizes of op batches."""
    if times := reached(row.decided_within):
        yield "decided: " + ", ".join(f"{part} within {span(bound)}" for part, bound in times)
    if often := ", ".join(_times(row.back_checks)):
        yield f"put back: {often}"
    if sizes := reached(row.batches):
        yield "halves per op: " + ", ".join(f"{part} at most {bound:,}" for part, bound in sizes)


def _times(counts: Mapping[int, int]) -> Iterator[str]:
    """Formats how often halves were put back: `700 never, 50 once, 40 twice, 6 up to 15 times`."""
    for times, word in enumerate(SELDOM):
        if counts.get(times):
            yield f"{counts[times]:,} {word}"
    if often := {times: count for times, count in counts.items() if times >= len(SELDOM) and count}:
        yield f"{sum(often.values()):,} up to {plural(max(often), 'time')}"


# -- one trace -----------------------------------------------------------------------------------------------------


def conforms(report: Report, trace: str) -> Iterator[str]:
    """Yields the lines of `gapless explain` for a trace without a departure, such as a queue."""
    queues: Sequence[QueueRow] = report.queues
    for row in queues:
        yield (
            f"{row.topic}/{row.queue} conforms: numbers from {row.first} up to, not including, {row.end}; "
            f"{plural(row.messages, 'message')} in the log; entries up to, not including, {row.indexed}."
        )
    source = report.sources[0]
    if not queues and trace.startswith("RMQ_SYS_TRANS_"):
        yield f"{trace} conforms."
    elif report.life:
        (outcome,) = report.transactions[0].outcomes or ("without a half",)
        yield from (f"transaction {trace} conforms: {outcome}.", "", *report.life)
    elif trace == "commitlog":
        yield f"commitlog conforms: {plural(source.records, 'record')} in {source.bytes:,} bytes of files."


KIND = "rocketmq-store"
PARTS = ("queues", "transactions", "clients", "testimony")
TERMS = (
    Gloss("back-check", "the broker asks a producer what became of its transaction", ("back-checks", "Back-checks")),
    Gloss("commit log", "the one log of a store: every message of every queue, in the order in which they came"),
    Gloss("cursor", "how far a reader is: what lies before it is done with", ("cursors",)),
    Gloss("end", "exclusive: the first number that is not there"),
    Gloss("entry", "what a queue holds of a message: its position in the log, its size, its tag", ("entries",)),
    Gloss("final", "the message that a commit writes, for consumers to see", ("finals",)),
    Gloss("half", "a message of a transaction that is not decided: no consumer sees it",
        ("halves", "Halves")),
    Gloss("lag", "messages that are in the log, and not yet in their queue"),
    Gloss("mark", "a half number in an op", ("marks",)),
    Gloss("op", "a record that names halves which are decided", ("ops",)),
    Gloss("parked", "set aside after its last back-check: an operator decides"),
    Gloss("put back", "written again with a raised counter, because its producer did not answer"),
    Gloss("undecided", "neither committed, nor rolled back, nor parked"),
)  # fmt: skip
FIXED = {
    **{layout.spec: layout.traces for layout in registry.LAYOUTS if layout.traces},
    "startup": ("start", r"(broker\.conf|commitlog|config|timerlog|timerwheel)(/\w+)?(\.json)?"),
}
"""What the layout calls traces of a spec: the folder, or what stands for one, and what follows."""
SUBJECTS = {
    **{layout.spec: layout.subject for layout in registry.LAYOUTS if layout.subject},
    "transaction": "transaction",
    "delivery": "message",
    "visibility": "transaction",
    "startup": "what a start reads,",
}
"""What a trace is, by its spec."""


def tiles(report: Report) -> Iterator[Tile]:
    """Messages, queues, and promises or transactions, on the first screen."""
    queues: Sequence[Any] = report.parts.get("queues", ())
    rows: Sequence[Any] = report.parts.get("transactions", ())
    yield _log_tile(report, queues)
    yield _queue_tile(report, queues)
    clients: Sequence[Any] = report.parts.get("clients", ())
    if sent := sum(row.acknowledged - row.expired for row in clients):
        lost = sum(finding.count for finding in report.violations if finding.rule in PROMISES)
        yield tile(sent, ("acknowledged message", "acknowledged messages"), lost, "lost or changed", "none lost")
    elif transactions := sum(row.transactions for row in rows):
        broken = sum(finding.count for finding in report.violations if finding.spec == "transaction")
        unjudged = sum(row.outcomes.get("not judged", 0) for row in rows)
        whole = f"{unjudged:,} not judged" if unjudged else "none broken"
        yield tile(transactions, ("transaction", "transactions"), broken, whole=whole)
    else:
        yield tile(
            report.counts.events,
            ("event checked", "events checked"),
            report.findings_total,
            "not allowed",
            "all allowed",
        )


def _log_tile(report: Report, queues: Sequence[Any]) -> Tile:
    """The messages in the log: the broken ones, the missing ones, and the bytes that are no record."""
    of_log = [finding for finding in report.violations if finding.spec == "log"]
    broken = sum(finding.count for finding in of_log if finding.rule not in GAPS)
    gaps = [mark.high - mark.low for mark in report.marks if mark.kind == "damage"]
    missing = sum(row.missing for row in queues)
    states = [f"{broken:,} broken"] * bool(broken) + [f"{missing:,} or more missing"] * bool(missing)
    states += [f"{size(sum(gaps))} without a record"] * bool(gaps)
    if not states and of_log:
        states = ["its end is missing"]
    noun = ("message in the log", "messages in the log")
    number, what, _, _ = tile(sum(source.records for source in report.sources), noun, 0)
    return Tile(number, what, ", ".join(states) or "none broken", bool(states))


def _queue_tile(report: Report, queues: Sequence[Any]) -> Tile:
    """The queues: those that depart, and those of which a part could not be judged, as the table of queues has them."""
    departing = sum(row.verdict == "departs" for row in queues)
    partly = sum(row.verdict == "inconclusive" for row in queues)
    named, state = broken_traces(finding for finding in report.violations if finding.spec == "queue")
    is_all = len(queues) == report.counts.queues and departing >= named
    broken, whole = max(departing, named), f"{partly:,} judged in part" if partly else "none broken"
    found = tile(report.counts.queues, ("queue", "queues"), broken, "broken" if is_all else state, whole)
    return found._replace(state=f"{found.state}, {partly:,} judged in part") if broken and partly else found


def advice(report: Report) -> Iterator[str]:
    """Yields what an operator does first with a store in which something departs."""
    paths = [source.path for source in report.sources if source.kind == KIND and source.verdict == "departs"]
    what = paths[0] if len(paths) == 1 else f"these {len(paths):,} stores"
    yield f"keep a copy of {what} before anything else"
    yield (
        "do not restart the broker before you have the copy and know the cause: "
        "its start cuts off a damaged log and writes queues again, and the evidence is gone"
    )
    yield "then read docs/operator.md#departs"


GAPS = (
    "log/record-begins-where-the-last-one-ends",
    "log/blank-begins-where-the-last-record-ends",
    "log/file-that-is-full-ends-in-a-blank",
    "log/what-was-flushed-is-still-in-the-log",
)
"""The rules that are broken where records of the log are gone."""
PROMISES = (
    "queue/message-that-was-acknowledged-is-in-the-log-where-the-answer-said",
    "queue/message-that-was-acknowledged-is-what-its-producer-sent",
    "transaction/commit-that-was-acknowledged-has-its-final",
)
PRESENTATION = Presentation(
    "RocketMQ store",
    "record",
    PARTS,
    sections,
    conforms,
    by_trace=False,
    terms=TERMS,
    fixed=FIXED,
    subjects=SUBJECTS,
    tiles=tiles,
    advice=advice,
)
