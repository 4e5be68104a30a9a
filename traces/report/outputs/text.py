"""A report for a terminal or a pipe. The number of parts that do not fit is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from itertools import compress
from operator import not_

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from gapless.traces.report import wording
from gapless.traces.report.charts import BARS, Bar, blocks, clipped
from gapless.traces.report.sections import Section, SectionRow, advice, presentation, sections
from gapless.traces.report.values import EXIT_CODES, WORST, Finding, Report, VerdictName
from gapless.traces.report.wording import plural

# Without `verbose`: what lets verdict and story be seen without scrolling.
FEW_ROWS = 24  # of a long table, on a terminal
FEW_REASONS = 4
STORIES = 20
NOTES = 5
FULLY_SHOWN = 3  # rows with all their lines; of more, one line each
FEW_LINES = 24
FEW_OUTCOMES = 6

STYLES = {"conforms": "green", "departs": "red", "unreadable": "magenta", "inconclusive": "yellow"}
ADJECTIVES = {"conforms": "conforming", "departs": "departing"} | {v: v for v in ("inconclusive", "unreadable")}
LINE_STYLES = {"title": "bold", "departs": "bold red", "needs": "yellow", "again": "cyan"}
TONES = {"committed": "green", "rolled-back": "blue", "undecided": "yellow", "parked": "magenta", "other": ""}
ASCII = str.maketrans(
    {"→": "->", "·": "-", "×": "x", "…": "...", "–": "-", "’": "'"}
    | dict.fromkeys("█▉▊▋▌", "#")
    | dict.fromkeys("▍▎▏", "|")
)


def text(
    report: Report,
    console: Console,
    *,
    verbose: bool = False,
    outcome: str = "",
    known: Callable[[Finding], bool] = lambda _: False,
) -> None:
    """Tell the report on a terminal or into a pipe; the verdict is the last line, and the stories are next to it.

    `outcome`: what the check comes to, where that is not what the verdict says; it ends the last line. `verbose`:
    every queue, every note, every story and every rule that was not exercised. Without it, long tables are for
    terminals, for what conforms and for few rows. `known`: True for a finding that gets one line, without a story. No
    line is wrapped: the width changes nothing.
    """
    new = [not known(finding) for finding in report.violations]
    report = wording.cleaned(report)
    shown = sections(report)
    parts = (
        _sources(report, verbose=verbose),
        *(_table(report, s, verbose=verbose, terminal=console.is_terminal) for s in shown if s.detail),
        *(_rows(report, s, verbose=verbose, terminal=console.is_terminal) for s in shown if not s.detail),
        _not_exercised(report, verbose=verbose),
        _allowed(report, verbose=verbose),
        _hazards(report),
        _known(list(compress(report.violations, map(not_, new)))),
        _findings(report, list(compress(report.violations, new)), verbose=verbose),
        _advice(report),
    )
    for part in parts:
        if part:
            for line in (*part, Text()):
                _say(console, line)
    _say(
        console,
        Text.assemble(_verdict(report.verdict), f": {wording.sentence(report, shown)}{outcome and f'; {outcome}'}"),
    )


def as_text(report: Report, *, verbose: bool = False) -> str:
    """The report as a text without colours."""
    paper = StringIO()
    text(report, Console(file=paper, color_system=None, width=80), verbose=verbose)
    return paper.getvalue().rstrip()


def _say(console: Console, line: Text) -> None:
    try:
        line.plain.encode(console.encoding)
    except UnicodeEncodeError:
        line = Text(line.plain.translate(ASCII).encode("ascii", "backslashreplace").decode())
    console.print(line, soft_wrap=True, highlight=False)


def _verdict(verdict: VerdictName) -> tuple[str, str]:
    return verdict, f"bold {STYLES[verdict]}"


def _more(count: int, noun: str) -> list[Text]:
    """The number that is left out, if any is."""
    return [Text(f"and {plural(count, f'more {noun}')} (--verbose)")] if count else []


def _sources(report: Report, *, verbose: bool) -> list[Text]:
    lines = []
    without_reasons = _is_in_the_last_line(report)
    chosen, left_out = report.sources, Counter[VerdictName]()
    if not verbose and len(report.sources) > FEW_ROWS:
        wrong = [source for source in report.sources if source.verdict != "conforms"]
        wrong.sort(key=lambda source: WORST.index(source.verdict), reverse=True)
        chosen = wrong[:FEW_ROWS] or report.sources[:FULLY_SHOWN]
        left_out = Counter(source.verdict for source in report.sources)
        left_out.subtract(source.verdict for source in chosen)
    for source in chosen:
        shows = presentation(source.kind)
        about = [shows.label]
        if source.kind != "unknown":
            about += [plural(source.records, shows.unit), wording.size(source.bytes), wording.left(source)]
        line = Text.assemble((source.path, "bold"), f": {', '.join(filter(None, about))}: ", _verdict(source.verdict))
        notes = source.notes if verbose else source.notes[:NOTES]
        lines.append(line)
        if not without_reasons:
            lines += [Text(f"  reason: {reason}", STYLES[source.verdict]) for reason in source.reasons]
        lines += [Text(f"  note: {note}") for note in notes]
        lines += [Text("  ") + more for more in _more(len(source.notes) - len(notes), "note")]
    if more := left_out.total():
        parts = ", ".join(f"{count:,} {ADJECTIVES[verdict]}" for verdict, count in left_out.items() if count)
        lines.append(Text(f"and {plural(more, 'more input')}: {parts} (--verbose)"))
    return lines


def _is_in_the_last_line(report: Report) -> bool:
    """True if the last line has all that is known: the one reason why the only input was not read."""
    (source, *others) = report.sources
    reasons = source.reasons
    return not others and source.kind == "unknown" and len(reasons) == 1 and len(reasons[0]) <= wording.REASON


# -- what sources show ---------------------------------------------------------------------------------------------


def _table(report: Report, section: Section, *, verbose: bool, terminal: bool) -> list[Text]:
    """The table of a detail."""
    few = len(section.rows) <= FEW_ROWS and report.verdict == "conforms"
    if not (verbose or (terminal and few)):
        return []
    cells = [(row.head(report), *row.texts) for row in section.rows]
    widths = [max(map(cell_len, column)) for column in zip(section.header, *cells, strict=True)]
    shown = [Text(_aligned(section.header, widths), "bold")]
    for row, texts in zip(section.rows, cells, strict=True):
        shown.append(Text(_aligned(texts, widths)))
        if row.verdict:
            shown[0].plain = f"{_aligned(section.header, widths)}  verdict"
            shown[-1].append("  ").append(row.verdict, STYLES[row.verdict])
    return shown


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """A name and numbers in columns."""
    gaps = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
    return "  ".join([row[0] + gaps[0], *(gap + cell for cell, gap in zip(row[1:], gaps[1:], strict=True))])


def _rows(report: Report, section: Section, *, verbose: bool, terminal: bool) -> list[Text]:
    """A line for each row; where there are few, all that is known of them."""
    shown = section.rows if verbose else section.rows[:FEW_LINES]
    lines: list[Text] = []
    for row in shown:
        lines.append(Text.assemble((row.head(report), "bold"), f": {row.line}"))
        if verbose or len(section.rows) <= FULLY_SHOWN:
            lines += _outcomes(row, BARS if verbose else FEW_OUTCOMES, terminal=terminal)
            lines += [Text(f"  {line}") for line in row.lines]
    return lines + _more(len(section.rows) - len(shown), section.noun)


def _outcomes(row: SectionRow, most: int, *, terminal: bool) -> Iterator[Text]:
    """The charts that have colours, in columns; a pipe gets the same words without the bars."""
    for chart in row.charts:
        if chart.tones:
            yield from _bars(chart.folded(most), terminal=terminal)


def _bars(bars: Sequence[Bar], *, terminal: bool) -> Iterator[Text]:
    names = [clipped(bar.name, 40) for bar in bars]
    wide, far = max(map(cell_len, names), default=0), max((len(f"{bar.count:,}") for bar in bars), default=0)
    for name, bar in zip(names, bars, strict=True):
        gap = " " * (wide - cell_len(name))
        line = Text(f"  {name}{gap}  {bar.count:>{far},}  {bar.share:>6}")
        if terminal and bar.count:
            line.append(f"  {blocks(bar.length)}", TONES[bar.tone])
        yield line


# -- what was found ------------------------------------------------------------------------------------------------


def _not_exercised(report: Report, *, verbose: bool) -> list[Text]:
    groups = wording.unchecked(report.not_exercised)
    if not groups:
        return []
    count = plural(sum(group.total for group in groups), "rule or step", "rules or steps")
    if len(groups) > FEW_REASONS and not verbose:
        if len(report.sources) > 1:  # each gives reasons of its own for the same rules
            names = {name for group in groups for name in group.names}
            where = f"{plural(len(names), 'rule or step', 'rules or steps')} not checked in some inputs"
            return [Text(f"{where} (--verbose lists them)", "dim")]
        return [Text(f"{len(groups)} groups of rules were not checked (--verbose lists them)", "dim")]
    lines = [Text(f"{count} not checked:", "dim")]
    return lines + [Text(f"  {_group(group)}", "dim") for group in groups]


def _group(group: wording.CheckGap) -> str:
    """A reason, and the names of the rules and steps that it keeps from being checked."""
    names = ", ".join(group.names)
    return f"{names}: {group.reason}" if group.reason else names


def _allowed(report: Report, *, verbose: bool) -> list[Text]:
    """Deviations that the profile allowed, by kind, with the first of each; `verbose`: and its story."""
    if not report.anomalies:
        return []
    title = f"lawful under the {report.profile} profile, forbidden by the design; counted, not judged:"
    lines = [Text(title, "bold yellow")]
    for count, what, first in wording.allowed(report):
        at = f", first in {first.trace} at {_place(report, first)}" if first else ""
        lines.append(Text.assemble((f"  {count:,} × ", "yellow"), f"{what}{at}"))
        if verbose and first:
            lines += _story(first)
    return lines


def _hazards(report: Report) -> list[Text]:
    """Steps that the broker's next start will break, in the form of findings."""
    lines: list[Text] = []
    for number, finding in enumerate(report.hazards, 1):
        shown = list(_finding(f"h{number}", finding, _place(report, finding)))
        lines += [Text("hazard: sound now, and broken by the broker's next start", "bold yellow"), *shown[1:]]
    return lines


def _place(report: Report, finding: Finding) -> str:
    source = f"{finding.source}: " if len(report.sources) > 1 else ""
    return f"{source}{finding.where.file}+{finding.where.offset}"


def _known(found: Sequence[Finding]) -> list[Text]:
    """A line for each violation that a baseline knows."""
    return [Text.assemble(("known: ", "yellow"), f"{one.message} ({one.rule})") for one in found]


def _advice(report: Report) -> list[Text]:
    """The first steps for inputs that depart."""
    lines = [Text(f"  {line}") for line in advice(report)]
    return [Text("what to do now:", "bold"), *lines] if lines else []


def _findings(report: Report, found: Sequence[Finding], *, verbose: bool) -> list[Text]:
    shown = found if verbose else found[:STORIES]
    lines: list[Text] = []
    for number, finding in enumerate(shown, 1):
        lines += _finding(number, finding, _place(report, finding))
    if len(shown) < len(found):
        lines += [Text(), Text(f"{plural(len(found) - len(shown), 'more story', 'more stories')} (--verbose)")]
    return lines[1:]


def _finding(number: int | str, finding: Finding, place: str) -> Iterator[Text]:
    yield Text()
    yield Text.assemble((f"{number}. ", "bold red"), (finding.message, "bold"))
    yield Text(f"   {place} ({finding.rule})")
    if finding.count > 1:
        yield Text(f"   {finding.count:,} like this, in {wording.some(finding.traces) or finding.trace}")
    yield Text()
    yield from _story(finding)


def _story(finding: Finding) -> Iterable[Text]:
    for n, line in enumerate(wording.story_of(finding)):
        yield Text(f"     {line}".rstrip() if line.strip() else "", LINE_STYLES.get(wording.line_kind(n, line), ""))


def explained(report: Report, trace: str) -> tuple[int, list[str]]:
    """The output of `gapless explain` for one trace of one source, and its exit code.

    Its stories, or its life; that it is not there; and that another trace departs, which is no verdict on this one.
    """
    broken = [finding for finding in report.violations if finding.trace == trace]
    lines = [line for finding in broken for line in (*finding.story, "")]
    lines += [line for finding in report.hazards if finding.trace == trace for line in (*finding.story, "")]
    source, topic = report.sources[0], trace.rpartition("/")[0]
    shown = (*source.reasons, *(note for note in source.notes if topic and topic in note))
    lines += [f"{source.path}: {line}" for line in shown]
    others = report.verdict == "departs" and not broken
    if others or report.verdict == "conforms":
        lines += presentation(source.kind).conforms(report, trace)
    if others:
        lines += ["What departs is another trace: gapless check tells of it."]
    undecided = EXIT_CODES["inconclusive" if source.reasons else "conforms"]
    return (undecided if others and not report.interrupted else report.exit_code), lines
