"""A report in words: `text` for a terminal or a pipe, `html` as one page that needs nothing beside it.

Nothing is judged here: all that is told stands in a `Report`. What does not fit is counted, and said to be left out.
Names come from stores and may hold anything. They are shown, never obeyed: by a terminal, by rich or by a browser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any, Literal, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import escape
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from gapless.traces.report.charts import BARS, Bar, Chart, blocks, charts, clipped, outcomes, reached, span
from gapless.traces.report.values import (
    Client,
    Coordinator,
    Finding,
    Mark,
    QueueRow,
    Report,
    Source,
    Transactions,
    VerdictName,
)

Item = TypeVar("Item")

KINDS = {
    "rocketmq-store": "RocketMQ store",
    "pulsar-recording": "Pulsar recording",
    "event-trace": "event trace",
    "unknown": "not recognised",
}
RECORDS = {"pulsar-recording": "line", "event-trace": "event"}  # of what is read of a source; of a store, records
TRACED = ("pulsar-recording", "event-trace")  # kinds that are judged trace by trace
WORSE_FIRST: tuple[VerdictName, ...] = ("departs", "unreadable", "inconclusive", "conforms")

# On a terminal, and without `verbose`: what lets verdict and story be seen without scrolling.
FEW_QUEUES = 24
FEW_REASONS = 4
STORIES = 20
NOTES = 5
FEW_STORES = 3  # of which all that is known of their transactions is told; of others, one line
FEW_LINES = 24
FEW_OUTCOMES = 6
SELDOM = ("never", "once", "twice")  # put back so often: counted one by one, and all else together

# On a page: its parts stay below these, in rows and in bytes as HTML, so that all of it stays below 1 MB.
PAGE_TEXT = 1000  # characters of one line or name
PAGE_STORIES, PAGE_STORY_BYTES = 200, 260_000
PAGE_FINDINGS, PAGE_FINDING_BYTES = 150, 100_000
PAGE_QUEUES, PAGE_QUEUE_BYTES = 800, 230_000
PAGE_SOURCES, PAGE_SOURCE_BYTES = 200, 60_000
PAGE_LINES, PAGE_LINE_BYTES = 200, 30_000  # of every short list
PAGE_PICTURES, PAGE_PICTURE_BYTES = 8, 80_000
PAGE_CHARTED, PAGE_CHART_BYTES = 4, 60_000  # stores whose transactions are drawn
PAGE_STORES, PAGE_STORE_BYTES = 100, 30_000  # and those of which there are numbers only
PAGE_CLIENTS, PAGE_CLIENT_BYTES = 50, 20_000


# -- words that text and page share --------------------------------------------------------------------------------


def sentence(report: Report) -> str:
    """How much was checked, and how, in one sentence."""
    counts = report.counts
    how = f"{report.profile} profile" + ("" if report.engine == "local" else f", {report.engine} engine")
    stores = [source for source in report.sources if source.kind not in TRACED]
    judged = [plural(sum(s.records for s in stores), "record"), plural(queues_of(report), "queue")]
    if not stores:
        judged = [plural(counts.traces, "trace")]
    if decided := sum(told.transactions for told in report.transactions):
        judged.append(plural(decided, "transaction"))
    done = ", ".join([*judged, plural(counts.events, "event")])
    return f"{violations(report)}{done} checked in {duration(report.seconds)} ({how})"


def violations(report: Report) -> str:
    """How many violations there are, as the beginning of a sentence; nothing where there are none."""
    told = len(report.violations)
    total = max(report.findings_total, told)
    if not total:
        return ""
    stories = f" in {plural(told, 'story', 'stories')}" if told != total else ""
    return f"{plural(total, 'violation')}{stories}; "


def queues_of(report: Report) -> int:
    """How many queues were judged; the rows of the table may be fewer."""
    return max(len(report.queues), report.counts.queues)


def plural(count: int, one: str, many: str = "") -> str:
    """`1 record`, `4,897 records`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def size(count: int) -> str:
    """Bytes as a person reads them: `4.0 MiB`."""
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:,.1f} {unit}" if count >= 1024 else plural(count, "byte")


def duration(seconds: float) -> str:
    """Seconds as a person reads them."""
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:,.0f} s"


def left(source: Source) -> str:
    """How the broker left its store."""
    return {True: "clean", False: "unclean", None: ""}[source.clean]


def by_reason(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Rules that are not exercised for the same reason, put together: (rules, reason)."""
    groups: dict[str, list[str]] = {}
    for line in lines:
        rule, _, reason = line.partition(": ")
        groups.setdefault(reason, []).append(rule)
    return [(", ".join(rules), reason) for reason, rules in groups.items()]


def gave_away(report: Report) -> list[tuple[int, str, Finding | None]]:
    """What the profile gave away: how often, what, and the first of them if it is told."""
    told = {finding.needs: finding for finding in reversed(anomalies(report))}
    names = [(count, name.replace("_", " ")) for name, count in report.anomalies.items()]
    return [(count, told[what].message if what in told else what, told.get(what)) for count, what in names]


def anomalies(report: Report) -> list[Finding]:
    """The findings that make no verdict."""
    return [finding for finding in report.findings if finding.severity == "anomaly"]


def with_transactions(report: Report) -> list[Transactions]:
    """The stores that hold anything of a transaction; those of which more can be wrong are not at the end."""
    verdicts = {source.path: WORSE_FIRST.index(source.verdict) for source in report.sources}
    told = [t for t in report.transactions if t.transactions or t.halves or t.finals or t.ops or t.parked]
    return sorted(told, key=lambda t: verdicts.get(t.source, len(WORSE_FIRST)))


def cursor(at: int | None, end: int) -> str:
    """How far a cursor is: `1,131 of 1,205`."""
    return f"– of {end:,}" if at is None else f"{at:,} of {end:,}"


def story_of(finding: Finding) -> list[str]:
    """The story; of a violation that has none, all that is known."""
    if finding.story or finding.severity == "anomaly":
        return finding.story
    here = ", ".join(f"{name}={value}" for name, value in finding.here.items())
    return [f"Needs: {finding.needs}.", *([f"Here: {here}."] if here else []), f"Otherwise {finding.otherwise}."]


LineKind = Literal["title", "step", "refused", "needs", "again", ""]


def line_kind(number: int, line: str) -> LineKind:
    """What a line of a story is, so that the eye finds the step that was refused."""
    if re.match(r"\s+\d+\. ", line):
        return "refused" if line.endswith(" refused") else "step"
    if line.startswith("Again: "):
        return "again"
    if re.match(r"\w+ needs: ", line):
        return "needs"
    return "title" if number == 0 and " departs at " in line else ""


def queues_worse_first(report: Report) -> list[QueueRow]:
    """The table of queues; what departs is not at its end."""
    return sorted(report.queues, key=lambda row: WORSE_FIRST.index(row.verdict))


def cleaned(report: Report, longest: int = 1 << 30) -> Report:
    """The report with control characters escaped in every text, wherever it comes from, and long ones cut."""
    return Report.model_validate(_cleaned(report.model_dump(by_alias=True), longest))


def _cleaned(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return clipped(value if value.isprintable() else "".join(map(_shown, value)), longest)
    if isinstance(value, dict):
        return {_cleaned(key, 1 << 30): _cleaned(item, longest) for key, item in value.items()}
    return [_cleaned(item, longest) for item in value] if isinstance(value, list) else value


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


# -- text ----------------------------------------------------------------------------------------------------------

STYLES = {"conforms": "green", "departs": "red", "unreadable": "magenta", "inconclusive": "yellow"}
LINE_STYLES = {"title": "bold", "refused": "bold red", "needs": "yellow", "again": "cyan"}
TONES = {"committed": "green", "rolled-back": "blue", "undecided": "yellow", "parked": "magenta", "other": ""}
ASCII = str.maketrans(
    {"→": "->", "·": "-", "×": "x", "…": "...", "–": "-", "’": "'"}
    | dict.fromkeys("█▉▊▋▌", "#")
    | dict.fromkeys("▍▎▏", "|")
)


def text(report: Report, console: Console, *, verbose: bool = False) -> None:
    """Tell the report on a terminal or into a pipe; the verdict is the last line, and the stories are next to it.

    `verbose`: every queue, every note, every story and every rule that was not exercised. Without it, the table of
    queues is for terminals, for what conforms and for few queues. No line is wrapped: the width changes nothing.
    """
    report = cleaned(report)
    parts = (
        _sources(report, verbose=verbose),
        _queues(report, verbose=verbose, terminal=console.is_terminal),
        _transactions(report, verbose=verbose, terminal=console.is_terminal),
        _clients(report, verbose=verbose),
        _coordinators(report, verbose=verbose),
        _not_exercised(report, verbose=verbose),
        _given_away(report, verbose=verbose),
        _findings(report, verbose=verbose),
    )
    for part in parts:
        if part:
            for line in (*part, Text()):
                _say(console, line)
    _say(console, Text.assemble(_verdict(report.verdict), f": {sentence(report)}"))


def _say(console: Console, line: Text) -> None:
    try:
        line.plain.encode(console.encoding)
    except UnicodeEncodeError:
        line = Text(line.plain.translate(ASCII).encode("ascii", "backslashreplace").decode())
    console.print(line, soft_wrap=True, highlight=False)


def _verdict(verdict: VerdictName) -> tuple[str, str]:
    return verdict, f"bold {STYLES[verdict]}"


def _sources(report: Report, *, verbose: bool) -> list[Text]:
    lines = []
    for source in report.sources:
        about = [KINDS[source.kind]]
        if source.kind != "unknown":
            what = RECORDS.get(source.kind, "record")
            about += [plural(source.records, what), size(source.bytes), left(source)]
        line = Text.assemble((source.path, "bold"), f": {', '.join(filter(None, about))}: ", _verdict(source.verdict))
        notes = source.notes if verbose else source.notes[:NOTES]
        lines.append(line)
        lines += [Text(f"  reason: {reason}", STYLES[source.verdict]) for reason in source.reasons]
        lines += [Text(f"  note: {note}") for note in notes]
        if len(notes) < len(source.notes):
            lines.append(Text(f"  and {plural(len(source.notes) - len(notes), 'more note')} (--verbose)"))
    return lines


def _queues(report: Report, *, verbose: bool, terminal: bool) -> list[Text]:
    few = len(report.queues) <= FEW_QUEUES and report.verdict == "conforms"
    if not report.queues or not (verbose or (terminal and few)):
        return []
    queues = queues_worse_first(report)
    heads = ("queue", "messages", "first", "end", "entries")
    rows = [(f"{q.topic}/{q.queue}", f"{q.messages:,}", f"{q.first:,}", f"{q.end:,}", f"{q.indexed:,}") for q in queues]
    if len(report.sources) > 1:
        rows = [(f"{q.source}: {row[0]}", *row[1:]) for q, row in zip(queues, rows, strict=True)]
    widths = [max(map(cell_len, column)) for column in zip(heads, *rows, strict=True)]
    told = [Text(f"{_aligned(heads, widths)}verdict", "bold")]
    return told + [
        Text.assemble(_aligned(row, widths), (q.verdict, STYLES[q.verdict]))
        for q, row in zip(queues, rows, strict=True)
    ]


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """A name and numbers in columns."""
    gaps = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
    numbers = [f"{gap}{cell}  " for cell, gap in zip(row[1:], gaps[1:], strict=True)]
    return "".join([row[0], gaps[0], "  ", *numbers])


def _transactions(report: Report, *, verbose: bool, terminal: bool) -> list[Text]:
    """A few lines for each store; where there are many stores, one."""
    stores = with_transactions(report)
    told = stores if verbose else stores[:FEW_LINES]
    lines: list[Text] = []
    for store in told:
        lines.append(Text.assemble((store.source, "bold"), f": {', '.join(_held(store))}"))
        if verbose or len(stores) <= FEW_STORES:
            lines += _outcomes(outcomes(store, BARS if verbose else FEW_OUTCOMES), terminal=terminal)
            lines += [Text(f"  {line}") for line in _spread(store)]
    if len(told) < len(stores):
        lines.append(Text(f"and transactions of {plural(len(stores) - len(told), 'more store')} (--verbose)"))
    return lines


def _held(store: Transactions) -> Iterator[str]:
    """What lies in a store for the sake of transactions."""
    yield plural(store.transactions, "transaction")
    yield plural(store.halves, "half", "halves") + (f" ({store.renewals:,} put back)" if store.renewals else "")
    yield plural(store.finals, "final")
    yield f"{plural(store.ops, 'op')} with {plural(store.marks, 'mark')}" if store.ops else plural(0, "op")
    if store.parked:
        yield f"{store.parked:,} parked"


def _outcomes(bars: Sequence[Bar], *, terminal: bool) -> list[Text]:
    """Outcomes in columns; a pipe gets the same words without the bars."""
    names = [clipped(bar.name, 40) for bar in bars]
    wide, far = max(map(cell_len, names), default=0), max((len(f"{bar.count:,}") for bar in bars), default=0)
    lines = []
    for name, bar in zip(names, bars, strict=True):
        gap = " " * (wide - cell_len(name))
        line = Text(f"  {name}{gap}  {bar.count:>{far},}  {bar.share:>6}")
        if terminal and bar.count:
            line.append(f"  {blocks(bar.length)}", TONES[bar.tone])
        lines.append(line)
    return lines


def _spread(store: Transactions) -> Iterator[str]:
    """How long decisions took, how often halves were put back, how ops were batched, how far the cursors are."""
    if times := reached(store.decided_within):
        yield "decided: " + ", ".join(f"{part} within {span(bound)}" for part, bound in times)
    if often := ", ".join(_times(store.back_checks)):
        yield f"put back: {often}"
    if named := reached(store.batches):
        yield "halves per op: " + ", ".join(f"{part} at most {bound:,}" for part, bound in named)
    yield f"half cursor {cursor(store.half_cursor, store.half_end)}, op cursor {cursor(store.op_cursor, store.op_end)}"


def _times(counts: dict[int, int]) -> Iterator[str]:
    """How many were put back how often: `700 never, 50 once, 40 twice, 6 up to 15 times`."""
    for times, word in enumerate(SELDOM):
        if counts.get(times):
            yield f"{counts[times]:,} {word}"
    if often := {times: count for times, count in counts.items() if times >= len(SELDOM) and count}:
        yield f"{sum(often.values()):,} up to {plural(max(often), 'time')}"


def _coordinators(report: Report, *, verbose: bool) -> list[Text]:
    """What recorded coordinators did, a line for each."""
    told = report.coordinators if verbose else report.coordinators[:FEW_LINES]
    lines = [Text(coordinated(one, alone=len(report.sources) == 1)) for one in told]
    if len(told) < len(report.coordinators):
        lines.append(Text(f"and {plural(len(report.coordinators) - len(told), 'more coordinator')} (--verbose)"))
    return lines


def coordinated(one: Coordinator, *, alone: bool) -> str:
    """What a coordinator did, in one sentence."""
    whose = one.trace if alone else f"{one.source}: {one.trace}"
    return (
        f"{whose}: loaded {plural(one.loads, 'time')}; {plural(one.begun, 'transaction')} began, at most "
        f"{one.most_active:,} active at once; {plural(one.ignored, 'request')} ignored at the limit; "
        f"{one.committed:,} committed, {one.aborted:,} aborted, {one.timed_out:,} of them by the clock; "
        f"{plural(one.rejected, 'record')} rejected"
    )


def _clients(report: Report, *, verbose: bool) -> list[Text]:
    """What clients were promised, a line for each of their logs."""
    told = report.clients if verbose else report.clients[:FEW_LINES]
    lines = [Text.assemble((_log_of(report, log), "bold"), f": {'; '.join(_promised(log))}") for log in told]
    if len(told) < len(report.clients):
        lines.append(Text(f"and {plural(len(report.clients) - len(told), 'more client log')} (--verbose)"))
    return lines


def _log_of(report: Report, log: Client) -> str:
    return f"{log.source}: {log.path}" if len(report.sources) > 1 else log.path


def _promised(log: Client) -> Iterator[str]:
    expired = f" ({log.expired:,} expired since)" if log.expired else ""
    sent = f"{plural(log.sends, 'message')} sent, {log.acknowledged:,} acknowledged{expired}"
    yield f"{sent}, {log.unknown:,} never answered"
    yield f"{plural(log.decisions, 'decision')}, {plural(log.back_checks, 'back-check')}"


def _not_exercised(report: Report, *, verbose: bool) -> list[Text]:
    groups = by_reason(report.not_exercised)
    if not groups:
        return []
    count = plural(len(report.not_exercised), "rule or step", "rules or steps")
    if len(groups) > FEW_REASONS and not verbose:
        return [Text(f"{count} not exercised (--verbose lists them)", "dim")]
    lines = [Text(f"{count} not exercised:", "dim")]
    return lines + [Text(f"  {rules}: {reason}" if reason else f"  {rules}", "dim") for rules, reason in groups]


def _given_away(report: Report, *, verbose: bool) -> list[Text]:
    """What the profile gave away, by kind, with the first of each; `verbose`: and its story."""
    if not report.anomalies:
        return []
    lines = [Text(f"the {report.profile} profile gave away, counted and not judged:", "bold yellow")]
    for count, what, first in gave_away(report):
        lines.append(Text.assemble((f"  {count:,} × ", "yellow"), f"{what}{_first(report, first) if first else ''}"))
        if verbose and first:
            lines += _story(first)
    return lines


def _first(report: Report, first: Finding) -> str:
    at = f"{first.source}: " if len(report.sources) > 1 else ""
    return f", first in {first.trace} at {at}{first.where.file}+{first.where.offset}"


def _findings(report: Report, *, verbose: bool) -> list[Text]:
    found = report.violations
    told = found if verbose else found[:STORIES]
    lines: list[Text] = []
    for number, finding in enumerate(told, 1):
        lines += _finding(number, finding, several=len(report.sources) > 1)
    if len(told) < len(found):
        lines += [Text(), Text(f"{plural(len(found) - len(told), 'more story', 'more stories')} (--verbose)")]
    return lines[1:]


def _finding(number: int, finding: Finding, *, several: bool) -> Iterator[Text]:
    yield Text()
    yield Text.assemble((f"{number}. ", "bold red"), (finding.message, "bold"))
    at = f"{finding.source}: " if several else ""
    yield Text(f"   {at}{finding.where.file}+{finding.where.offset} ({finding.rule})")
    if finding.count > 1:
        yield Text(f"   {finding.count:,} like this, in {some(finding.traces) or finding.trace}")
    yield Text()
    yield from _story(finding)


def _story(finding: Finding) -> Iterator[Text]:
    for n, line in enumerate(story_of(finding)):
        yield Text(f"     {line}".rstrip() if line.strip() else "", LINE_STYLES.get(line_kind(n, line), ""))


def some(names: Sequence[str]) -> str:
    """The first few names of a cluster."""
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


# -- the page ------------------------------------------------------------------------------------------------------

MEANINGS = {
    "conforms": "Everything that was checked is as it must be.",
    "departs": "The broker broke its contract. Each finding below tells how.",
    "unreadable": "This cannot be judged: it is neither a pass nor an accusation.",
    "inconclusive": "Nothing, or not enough, was checked: this is not a pass.",
}
SIGNS = {"conforms": "✓", "departs": "✗", "unreadable": "!", "inconclusive": "?"}


def html(report: Report) -> str:
    """The report as one page, for a browser or a printer: no script, and nothing to load. Below 1 MB."""
    report = cleaned(report, PAGE_TEXT)
    found = list(enumerate(report.violations, 1))
    told = fitting(found, lambda f: _story_cost(f[1]), PAGE_STORIES, PAGE_STORY_BYTES)
    listed = fitting(found[len(told) :], lambda f: _brief_cost(_brief(f[1])), PAGE_FINDINGS, PAGE_FINDING_BYTES)
    sources = fitting(_sources_worse_first(report), _source_cost, PAGE_SOURCES, PAGE_SOURCE_BYTES)
    queues = fitting(queues_worse_first(report), _queue_cost, PAGE_QUEUES, PAGE_QUEUE_BYTES)
    reasons = by_reason(report.not_exercised)
    unheard = fitting(reasons, lambda r: cost(60, *r), PAGE_LINES, PAGE_LINE_BYTES)
    away = fitting(list(enumerate(gave_away(report), 1)), lambda a: _away_cost(*a[1]), PAGE_LINES, PAGE_LINE_BYTES)
    tales = [(n, first) for n, (_, _, first) in away if first and first.story]
    fit = fitting(tales, lambda t: sum(cost(35, line) for line in t[1].story), PAGE_LINES, PAGE_LINE_BYTES)
    clients = fitting(report.clients, _client_cost, PAGE_CLIENTS, PAGE_CLIENT_BYTES)
    covered = fitting(list(report.coverage.items()), lambda c: cost(100, c[0]), PAGE_LINES, PAGE_LINE_BYTES)
    linked = {f"finding-{n}" for n, _ in (*told, *listed)} | {f"anomaly-{n}" for n, _ in away}
    pictures = fitting(_pictures(report, linked), Picture.cost, PAGE_PICTURES, PAGE_PICTURE_BYTES)
    because = [reason for s in report.sources if s.verdict == report.verdict for reason in s.reasons]
    return _template().render(
        report=report,
        sentence=sentence(report),
        meaning=MEANINGS[report.verdict],
        because=_short(because, 3),
        numbers=_numbers(report),
        sources=sources,
        pictures=pictures,
        kinds={kind for picture in pictures for kind in picture.kinds},
        together=max((picture.together for picture in pictures), default=1),
        drawable=len(_drawable(report)),
        frame=FRAME,
        found=len(found),
        told=told,
        listed=[(n, _brief(finding)) for n, finding in listed],
        away=away,
        tales=len(tales),
        told_away={n for n, _ in fit},
        **_stores(report),
        clients=clients,
        coordinators=[coordinated(one, alone=len(report.sources) == 1) for one in report.coordinators[:PAGE_CLIENTS]],
        queues=queues,
        unheard=unheard,
        unheard_count=len(reasons),
        covered=covered,
    )


@cache
def _template() -> Template:
    loader = PackageLoader("gapless.traces.report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"plural": plural, "size": size, "left": left, "some": some, "story": story_of}
    environment.filters |= {"figures": _figures, "cursor": cursor, "count": "{:,}".format}
    environment.globals |= {"SIGNS": SIGNS, "KINDS": KINDS, "line_kind": line_kind}
    return environment.get_template("report.html.j2")


def _stores(report: Report) -> dict[str, Any]:
    """All stores with transactions; the first few with their charts, and others in numbers."""
    stores = with_transactions(report)
    drawn = [(store, charts(store)) for store in stores[:PAGE_CHARTED]]
    charted = fitting(drawn, lambda s: _charts_cost(*s), PAGE_CHARTED, PAGE_CHART_BYTES)
    counted = fitting(stores[len(charted) :], _store_cost, PAGE_STORES, PAGE_STORE_BYTES)
    return {"stores": stores, "charted": charted, "counted": counted}


def fitting(items: Sequence[Item], taking: Callable[[Item], int], rows: int, room: int) -> list[Item]:
    """As many of the first items as there is room for."""
    kept: list[Item] = []
    for item in items[:rows]:
        room -= taking(item)
        if room < 0:
            break
        kept.append(item)
    return kept


def cost(markup: int, *said: str) -> int:
    """The bytes that an item takes on the page, at most: the markup around it, and what it says, escaped."""
    return markup + sum(len(escape(text).encode()) for text in said)


def _story_cost(finding: Finding) -> int:
    return _brief_cost(finding) + sum(cost(35, line) for line in story_of(finding))


def _brief_cost(finding: Finding) -> int:
    where = finding.where
    return cost(450, finding.message, finding.rule, finding.trace, *finding.traces, finding.source, where.file)


def _away_cost(_: int, what: str, first: Finding | None) -> int:
    return cost(150, what) + (cost(200, first.source, first.trace, first.where.file) if first else 0)


def _charts_cost(store: Transactions, pictures: Sequence[Chart]) -> int:
    """Key figures, and four pictures; a bar is described beside it, and once more for those who do not see it."""
    bars = [bar for chart in pictures for bar in chart.bars]
    return cost(3000, store.source) + sum(cost(240, bar.label, bar.said, bar.name, bar.said) for bar in bars)


def _store_cost(store: Transactions) -> int:
    return cost(250, store.source, *(what + number for number, what in _figures(store)))


def _client_cost(log: Client) -> int:
    counts = (log.lines, log.sends, log.acknowledged, log.unknown, log.expired, log.decisions, log.back_checks)
    return cost(300, log.source, log.path, *(f"{count:,}" for count in counts))


def _source_cost(source: Source) -> int:
    return cost(400, source.path) + sum(cost(40, line) for line in (*source.reasons, *source.notes))


def _queue_cost(row: QueueRow) -> int:
    numbers = (row.messages, row.first, row.end, row.indexed)
    return cost(250, row.topic, row.source, *(f"{number:,}" for number in numbers))


def _sources_worse_first(report: Report) -> list[Source]:
    """The sources; their notes do not fill the page."""
    return [
        source.model_copy(update={"reasons": _short(source.reasons, 10), "notes": _short(source.notes, 10)})
        for source in sorted(report.sources, key=lambda source: WORSE_FIRST.index(source.verdict))
    ]


def _short(lines: list[str], most: int) -> list[str]:
    more = [f"and {len(lines) - most:,} more"] if len(lines) > most else []
    return [clipped(line, 500) for line in lines[:most]] + more


def _brief(finding: Finding) -> Finding:
    """A finding without its story."""
    return finding.model_copy(
        update={"message": clipped(finding.message, 300), "story": [], "otherwise": "", "here": {}}
    )


def _numbers(report: Report) -> list[tuple[str, str]]:
    """The numbers at the top of the page, as (number, what it counts)."""
    total = max(report.findings_total, len(report.violations))
    decided = sum(told.transactions for told in report.transactions)
    return [
        _figure(sum(s.records for s in report.sources), "record"),
        _figure(queues_of(report), "queue"),
        *([_figure(decided, "transaction")] if decided else []),
        _figure(report.counts.events, "event checked", "events checked"),
        _figure(total, "violation"),
        _figure(sum(report.anomalies.values()), "anomaly", "anomalies"),
        (size(sum(s.bytes for s in report.sources)), "read"),
        (duration(report.seconds), "taken"),
    ]


def _figures(store: Transactions) -> list[tuple[str, str]]:
    """The numbers above the charts of a store, as (number, what it counts)."""
    halves, what = _figure(store.halves, "half", "halves")
    ops, and_marks = _figure(store.ops, "op")
    return [
        _figure(store.transactions, "transaction"),
        (halves, f"{what}, {store.renewals:,} of them put back"),
        _figure(store.finals, "final"),
        (ops, f"{and_marks} with {plural(store.marks, 'mark')}"),
        (f"{store.parked:,}", "parked"),
        (cursor(store.half_cursor, store.half_end), f"{'no ' * (store.half_cursor is None)}half cursor"),
        (cursor(store.op_cursor, store.op_end), f"{'no ' * (store.op_cursor is None)}op cursor"),
    ]


def _figure(count: int, one: str, many: str = "") -> tuple[str, str]:
    number, _, what = plural(count, one, many).partition(" ")
    return number, what


# -- the picture of a log ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """Where things stand on a picture, in its own units: pins above the row of files, words below."""

    width: int = 1000
    height: int = 136
    left: int = 8
    right: int = 992
    pin: int = 14  # middle of the pins
    top: int = 44
    bottom: int = 88


FRAME = Frame()
BOXES = 40  # files beyond that share a box
BOX_GAP = 8  # closer boxes become one, and so on: a picture has a few hundred shapes at most
STRETCH_GAP = 3
PIN_GAP = 16


@dataclass(frozen=True)
class Box:
    """A log file, or several that follow one another."""

    x: float
    width: float
    files: int
    label: str
    title: str


@dataclass(frozen=True)
class Stretch:
    """Bytes that are not like the others: damaged, or not read."""

    x: float
    width: float
    kind: str
    title: str


@dataclass(frozen=True)
class Pin:
    """A finding, or several side by side, from `low` to `high`."""

    x: float
    low: int
    high: int
    width: float
    label: str
    href: str
    title: str
    severity: str


@dataclass(frozen=True)
class Picture:
    """One log as shapes: the template only draws them."""

    source: str
    low: int
    high: int
    more: int  # bytes of the files that are not drawn, for nothing is in them
    boxes: list[Box]
    records: float  # where the records end
    end: int
    stretches: list[Stretch]
    stems: list[int]
    pins: list[Pin]
    kinds: set[str]  # what the legend has to explain

    def cost(self) -> int:
        """The bytes that it takes on the page, at most."""
        said = [b.title for b in self.boxes] + [s.title for s in self.stretches] + [p.title for p in self.pins]
        return 3000 + len(self.source) * 5 + 20 * len(self.stems) + sum(450 + len(escape(t).encode()) for t in said)

    @property
    def together(self) -> int:
        """How many files share a box, at most."""
        return max(box.files for box in self.boxes)


def _drawable(report: Report) -> list[str]:
    """The sources of which there is a picture; those with findings first."""
    extents = {mark.source for mark in report.marks if mark.kind in ("file", "log") and mark.high > mark.low}
    wanted = {finding.source for finding in report.findings}
    paths = dict.fromkeys(source.path for source in report.sources if source.path in extents)
    return sorted(paths, key=lambda path: path not in wanted)


def _pictures(report: Report, linked: set[str]) -> list[Picture]:
    marks: dict[str, list[Mark]] = {}
    for mark in report.marks:
        marks.setdefault(mark.source, []).append(mark)
    found = [(f"finding-{n}", str(n), f) for n, f in enumerate(report.violations, 1)]
    found += [(f"anomaly-{n}", f"a{n}", f) for n, (_, _, f) in enumerate(gave_away(report), 1) if f]
    pictures = []
    for source in _drawable(report)[:PAGE_PICTURES]:
        mine = [(f"#{a}" if a in linked else "#findings", n, f) for a, n, f in found if f.source == source]
        pictures.append(_picture(source, marks[source], mine))
    return pictures


def _picture(source: str, marks: list[Mark], found: list[tuple[str, str, Finding]]) -> Picture:
    files = sorted((m for m in marks if m.kind == "file" and m.high > m.low), key=lambda m: m.low)
    logs = [m for m in marks if m.kind == "log"]
    files = files or [m for m in logs if m.high > m.low]
    low, high = min(m.low for m in files), max(m.high for m in files)
    end = max((m.high for m in logs), default=low)
    others = [m for m in marks if m.kind in ("damage", "unread")]
    reached = [end, *(min(m.high, high) for m in others), *(min(f.position, high) for _, _, f in found)]
    drawn = _drawn(low, high, max(reached))

    def at(position: int) -> float:
        share = (min(max(position, low), drawn) - low) / (drawn - low)
        return round(FRAME.left + share * (FRAME.right - FRAME.left), 1)

    stems = [at(f.position) for _, _, f in found]
    return Picture(
        source=source,
        low=low,
        high=drawn,
        more=high - drawn,
        boxes=_boxes([m for m in files if m.low < drawn], at),
        records=at(end),
        end=end,
        stretches=[s for kind in ("unread", "damage") for s in _stretches(kind, others, at)],
        stems=sorted(set(map(round, stems))),
        pins=_pins(sorted(zip(stems, found, strict=True), key=lambda pin: pin[0])),
        kinds={m.kind for m in others} | {f.severity for _, _, f in found},
    )


def _drawn(low: int, high: int, reached: int) -> int:
    """Where the picture ends: a file of a gibibyte with a few records in it would show nothing."""
    used = reached - low
    return low + used * 5 // 4 if 0 < used * 8 < (high - low) * 5 and used >= 4 else high


def _boxes(files: list[Mark], at: Callable[[int], float]) -> list[Box]:
    together = -(-len(files) // BOXES)
    groups: list[list[Mark]] = []
    for file in files:
        apart = groups and at(file.low) - at(groups[-1][-1].high) > BOX_GAP
        if not groups or apart or len(groups[-1]) >= together:
            groups.append([])
        groups[-1].append(file)
    return [_box(group, at) for group in groups]


def _box(files: list[Mark], at: Callable[[int], float]) -> Box:
    x, end = at(files[0].low), at(files[-1].high)
    names = [clipped(file.label.rpartition("/")[2], 30) for file in (files[0], files[-1])]
    count = plural(len(files), "file")
    title = names[0] if len(files) == 1 else f"{count}: {names[0]} to {names[1]}"
    label = names[0] if len(files) == 1 else count
    width = round(end - x, 1)
    fits = len(label) * 6.1 + 8 <= width
    held = sum(file.high - file.low for file in files)
    return Box(x, width, len(files), label if fits else "", f"{title} ({size(held)})")


def _stretches(kind: str, marks: list[Mark], at: Callable[[int], float]) -> list[Stretch]:
    groups: list[list[Mark]] = []
    for mark in sorted((m for m in marks if m.kind == kind), key=lambda m: m.low):
        if groups and at(mark.low) - at(groups[-1][-1].high) <= STRETCH_GAP:
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return [_stretch(kind, group, at) for group in groups]


def _stretch(kind: str, marks: list[Mark], at: Callable[[int], float]) -> Stretch:
    low, high = marks[0].low, max(m.high for m in marks)
    what = clipped(marks[0].label, 80) if len(marks) == 1 else f"{len(marks):,} stretches"
    x, end = at(low), at(high)
    return Stretch(x, max(round(end - x, 1), 3), kind, f"{what}: {low:,} to {high:,} ({size(high - low)})")


def _pins(found: list[tuple[float, tuple[str, str, Finding]]]) -> list[Pin]:
    """A pin for each finding; where they would cover one another, one for several."""
    groups = [list(group) for _, group in groupby(found, key=lambda pin: pin[0] // PIN_GAP)]
    pins = [_pin(group) for group in groups]
    n = 0
    while n < len(pins) - 1:
        if _touch(pins[n], pins[n + 1]):
            groups[n : n + 2] = [groups[n] + groups[n + 1]]
            pins[n : n + 2] = [_pin(groups[n])]
            n = max(n - 1, 0)  # it has grown, and may touch the one before it
        else:
            n += 1
    return pins


def _touch(one: Pin, other: Pin) -> bool:
    return other.x - other.width / 2 < one.x + one.width / 2 + 2


def _pin(group: list[tuple[float, tuple[str, str, Finding]]]) -> Pin:
    label = _pin_label([number for _, (_, number, _) in group])
    width = 14 + 7.5 * len(label)
    low, high = round(group[0][0]), round(group[-1][0])
    x = min(max((low + high) / 2, FRAME.left + width / 2), FRAME.right - width / 2)
    lines = [f"{number}. {clipped(f.message, 160)}" for _, (_, number, f) in group[:5]]
    lines += [f"and {len(group) - 5:,} more"] if len(group) > 5 else []
    href = next((href for _, (href, _, _) in group if href != "#findings"), "#findings")
    severity = "violation" if any(f.severity == "violation" for _, (_, _, f) in group) else "anomaly"
    return Pin(x, low, high, width, label, href, "\n".join(lines), severity)


def _pin_label(names: list[str]) -> str:
    """The numbers of findings on one pin: `3`, `3–7`, `3 +2`, `3–7, a1`."""
    parts = []
    for letter in ("", "a"):
        numbers = sorted(int(name.removeprefix("a")) for name in names if name.startswith("a") == bool(letter))
        if numbers:
            more = "" if len(numbers) == 1 else f" +{len(numbers) - 1}"
            if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
                more = f"–{numbers[-1]}"
            parts.append(f"{letter}{numbers[0]}{more}")
    return ", ".join(parts)
