"""Turns departures of partitions and producers into findings of a report: place, sentence and story."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gapless.spec import catalog
from gapless.traces.judging.findings.timelines import timeline_of
from gapless.traces.options import Options
from gapless.traces.problems import pasted, shown
from gapless.traces.replay.exact import in_words, story
from gapless.traces.replay.notation import breach, values_text
from gapless.traces.report.values import Finding
from gapless.traces.report.wording import size
from gapless.traces.sources.kafka import PROFILE
from gapless.traces.sources.kafka.joining.findings import PlacedDeparture, WaitingTransaction
from gapless.traces.sources.kafka.judging.lost_snapshots import LostSnapshots

UNFINISHED = catalog.rule("kafka_transaction/every-decision-is-complete").id
NAMED = 5
"""Traces that one finding names."""
VALUES = 4
"""Values at hand that a sentence has; a story has all."""


def finding(path: Path, found: Sequence[PlacedDeparture], count: int, options: Options) -> Finding:
    """Describes all departures from one rule as one finding, with the story of the first."""
    first, departure = found[0], found[0].departure
    trace, where = shown(first.trace), first.where
    named = list(in_words(departure).items())[:VALUES]
    broken = breach(departure.event[0], departure.because)
    values = values_text(dict(named))
    how = f" --profile {options.profile}" if options.profile != PROFILE else ""
    how += f" --depth {options.depth}" if options.depth else ""
    lines = story(
        departure,
        title=f"{departure.spec} {trace} departs at {shown(where.file)}+{where.offset}, offset {first.offset:,}.",
        also=first.batch,
        again=_again(path, first, how),
    )
    return Finding(
        rule=departure.rule, severity="violation", spec=departure.spec, trace=trace, source=shown(path),
        position=first.offset, where=where,
        message=f"{trace}, offset {first.offset:,}: {broken}: {values}" if values else f"{trace}: {broken}",
        summary=f"{trace}, offset {first.offset:,}: {broken}",
        needs=departure.because, otherwise=departure.otherwise, here=departure.here, story=lines, count=count,
        traces=list(dict.fromkeys(shown(one.trace) for one in found))[:NAMED],
        picture=first.picture or timeline_of(departure),
    )  # fmt: skip


def hazard(path: Path, found: Sequence[WaitingTransaction | LostSnapshots]) -> Finding:
    """Describes the hazards of one rule as one finding, with the first of them."""
    first, broken = found[0], catalog.rule(found[0].rule)
    trace = shown(first.trace)
    what, otherwise, lines = _lost(first) if isinstance(first, LostSnapshots) else _waiting(first)
    message = f"{trace}, offset {first.offset:,}: {what}"
    story_of = [*lines, f"Again: gapless explain {pasted(str(path))} --trace {pasted(first.trace)}"]
    return Finding(
        rule=first.rule, severity="hazard", spec=broken.spec, trace=trace, source=shown(path), position=first.offset,
        where=first.where, message=message, summary=message, needs=broken.because, otherwise=otherwise, here={},
        story=story_of, count=len(found), traces=[shown(one.trace) for one in found][:NAMED],
    )  # fmt: skip


def _waiting(one: WaitingTransaction) -> tuple[str, str, list[str]]:
    """The sentence, the consequence and the story of a transaction that keeps readers waiting."""
    is_decided = one.rule == UNFINISHED
    what = "is decided, and not complete" if is_decided else "is open"
    otherwise = "readers of committed transactions wait until its markers are written"
    place = f"{shown(one.where.file)}+{one.where.offset}, offset {one.offset:,}"
    return f"the transaction {what} for {one.age // 1000:,} s", otherwise, [
        f"kafka_transaction {shown(one.trace)} waits at {place}.",
        "",
        f"The transaction {what} for {one.age // 1000:,} s, by the times of the rows behind it.",
        f"Consequence: {otherwise}.",
    ]  # fmt: skip


def _lost(one: LostSnapshots) -> tuple[str, str, list[str]]:
    """The same of a log that has lost its snapshots of producers."""
    otherwise = (
        "the next start takes the log for one without producers: a batch that is sent again is written twice, and an "
        "open transaction is read as if it were committed"
        if one.is_forgotten
        else f"the next start reads the whole log, {size(one.bytes)}, for what it knew of its producers"
    )
    return "no snapshot of its producers is left", otherwise, [
        f"partition {shown(one.trace)} has no snapshot at {shown(one.where.file)}, offset {one.offset:,}.",
        "",
        "A broker writes a snapshot of its producers when a segment begins, and none is left.",
        f"Consequence: {otherwise}.",
    ]  # fmt: skip


def _again(path: Path, found: PlacedDeparture, how: str) -> str:
    """The command that shows a departure again."""
    if found.client:
        return f"gapless check {pasted(str(path))} --client {pasted(found.client)}{how}"
    return f"gapless explain {pasted(str(path))} --trace {pasted(found.trace)}{how}"
