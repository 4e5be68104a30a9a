"""The outcome of a check for a program: baseline, exit code, annotations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import typer

from gapless.commands.terminal import failed, refuse_output, write

if TYPE_CHECKING:
    from gapless.traces.report.threshold import By, Threshold
    from gapless.traces.report.values import Report, SourceRow

SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable in which GitHub Actions names the file of a step's summary."""


def what_fails(word: str) -> str:
    """A word of `--fail-on`. Raises typer.BadParameter for another."""
    from gapless.traces.report.threshold import FAIL_ON, Threshold

    try:
        Threshold.of([word])
    except ValueError:
        names = ", ".join(map(repr, FAIL_ON))
        raise typer.BadParameter(f"{word!r} is not one of {names}.") from None
    return word


def refuse_what_names(*, redact: bool, key: str | None, verdicts: object, baseline: Path | None) -> None:
    """Exit with 2 where names are to be left out, and something asked for needs them."""
    if redact and verdicts:
        raise failed("--redact: the table of --verdicts names every trace; leave out one of them")
    if redact and baseline and not key:
        raise failed("--redact: a baseline knows findings by their names; give --redact-key, the same each time")


def without_names(report: Report, *, redact: bool, key: str | None) -> Report:
    """The report; if so asked, with keyed hashes instead of names, under this key or a random one."""
    from gapless.traces.report.redaction import redacted

    return redacted(report, key or random_key()) if redact else report


def random_key() -> str:
    """Make a random key, and say that it is not kept."""
    from gapless.traces.report.redaction import new_key

    typer.echo("gapless: names of this run cannot be found again; give --redact-key to keep the mapping", err=True)
    return new_key()


class BaselineBy(StrEnum):
    """The parts by which a baseline knows a finding."""

    rule = "rule"
    trace = "trace"
    place = "place"


def threshold_of(
    baseline: Path | None, also: Sequence[str], *, update: bool, by: BaselineBy | None = None
) -> Threshold:
    """Make the threshold above which the check fails. Exits with 2 if the baseline cannot be read."""
    from gapless.traces.problems import UsageError
    from gapless.traces.report.threshold import Threshold, read_baseline

    if update and baseline is None:
        raise failed("--update-baseline: there is no --baseline FILE to update")
    if update and baseline is not None:
        refuse_output(baseline, "--baseline")
    if by is not None and baseline is None:
        raise failed("--baseline-by: there is no --baseline FILE, whose findings it is about")
    asked: By | None = None if by is None else by.value
    try:
        known: dict[str, int] = {}
        if baseline is None or update:
            kind = asked or _by_of(baseline)
        else:
            known, kind = read_baseline(baseline, asked)
    except UsageError as error:
        raise failed(str(error)) from None
    return Threshold.of(also, known, kind)


def _by_of(baseline: Path | None) -> By:
    """The parts by which a baseline that is written again knows a finding: those of the file, if it is one."""
    from gapless.traces.problems import UsageError
    from gapless.traces.report.threshold import read_baseline

    try:
        return "place" if baseline is None else read_baseline(baseline)[1]
    except UsageError:
        return "place"


def update(baseline: Path, report: Report, threshold: Threshold) -> Threshold:
    """Write the baseline from what was found: all is known then. Exits with 2 if it cannot be written."""
    from gapless.traces.report.threshold import baseline_of

    if unread := [source.path for source in report.sources if not _was_read(source)]:
        raise failed(f"{baseline}: not written, for {unread[0]} was not read to its end")
    now = baseline_of(report, threshold)
    write(baseline, now.as_json())
    return replace(threshold, known={one.fingerprint: one.count for one in now.findings})


def unreadable(report: Report) -> list[str]:
    """A sentence for each source, if none of them could be read; nothing if any was."""
    if any(source.verdict != "unreadable" for source in report.sources):
        return []
    return [sentence_of(source.path, reason) for source in report.sources for reason in source.reasons]


def sentence_of(path: str, reason: str) -> str:
    """A reason with its path in front, unless it names a file itself."""
    from gapless.traces.problems import SIDE_FILES

    named = (f"{path}/", f"{path}:", f"{path},", *(f"{kind} " for kind in SIDE_FILES))
    return reason if reason.startswith(named) else f"{path}: {reason}"


def _was_read(source: SourceRow) -> bool:
    """True if all of a source was read, so that a finding that is missing is gone."""
    return source.verdict != "unreadable" and not any(reason.startswith("interrupted") for reason in source.reasons)


def tell_github(report: Report, threshold: Threshold, out: TextIO) -> None:
    """Print the annotations, and add to the step's summary, if GitHub says where. Exits with 2 where it cannot."""
    from gapless.traces.report.outputs.github import commands, summary

    out.write(commands(report, threshold))
    if path := os.environ.get(SUMMARY):
        try:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(summary(report, threshold))
        except OSError as error:
            raise failed(
                f"{path}: cannot be written ({error.strerror}), expected the file of a step's summary"
            ) from None
