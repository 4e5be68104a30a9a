"""`gapless explain`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gapless.commands.options import (
    ClientOption,
    ConfigOption,
    CopiedOption,
    DepthOption,
    OnePath,
    OnlyBrokerOption,
    ProfileOption,
    RedactKeyOption,
    RedactOption,
    SpecOption,
    TraceTopicOption,
    output_file,
)
from gapless.commands.outcome import random_key, unreadable
from gapless.commands.terminal import failed, printing, progress_bar, telling, write

if TYPE_CHECKING:
    from gapless.traces.evidence import Evidence
    from gapless.traces.options import Options
    from gapless.traces.report.redaction import Redactor
    from gapless.traces.report.values import Report


NAMES = "commitlog, TOPIC/QUEUE, the key of a transaction, or tc0"
"""The traces of a store."""


def explain(
    path: OnePath,
    trace: Annotated[
        str | None,
        typer.Option(metavar="TRACE", help=f"{NAMES}.", show_default=False),
    ] = None,
    profile: ProfileOption = None,
    config: ConfigOption = None,
    client: ClientOption = None,
    copied: CopiedOption = False,  # noqa: FBT002 - a flag is what it is
    trace_topic: TraceTopicOption = None,
    only_broker: OnlyBrokerOption = False,  # noqa: FBT002 - a flag is what it is
    depth: DepthOption = None,
    spec: SpecOption = None,
    save: Annotated[Path | None, output_file("Write the first violation as a .story file, which pytest runs.")] = None,
    redact: RedactOption = False,  # noqa: FBT002 - a flag is what it is
    redact_key: RedactKeyOption = None,
) -> None:
    """Print the shortest story of one trace: where it departs and why, or that it does not."""
    from gapless.traces.check import checked, options_of
    from gapless.traces.events.files import is_event_file
    from gapless.traces.evidence import Evidence
    from gapless.traces.files.remote import path_of
    from gapless.traces.problems import UsageError, shown
    from gapless.traces.report.outputs.text import explained

    own = spec or ()
    if trace is not None and not trace.strip():
        raise failed(f"--trace is empty: expected {NAMES}")
    if trace is None and (redact or not is_event_file(path_of(path))):
        raise failed(f"--trace TRACE is missing: {NAMES}")
    trace = trace or ""  # no trace has this name: the report lists those that are there
    if save is not None and save.suffix != ".story":
        raise failed(f"--save {save}: expected a file that ends in .story")
    evidence = Evidence.of(config, client, copied=copied, trace_topics=trace_topic or (), only_broker=only_broker)
    try:
        with telling(), progress_bar() as progress:
            options = options_of(profile=profile and profile.value, trace=trace, depth=depth, specs=own)
            report = checked(path, evidence, options, progress=progress)
    except UsageError as error:
        raise failed(str(error)) from None
    names = _names(report, shown(trace), redact_key) if redact else None
    if not trace:
        source = report.sources[0]
        raise failed(f"{source.path}: {'; '.join(source.reasons)}")
    code, lines = explained(names.report(), names.name(shown(trace))) if names else explained(report, shown(trace))
    unread = unreadable(names.report() if names else report)
    with printing(code):
        for line in unread:
            typer.echo(f"gapless: {line}", err=True)
        for line in () if unread else lines:
            print(line)
    if save is not None:
        _save(save, path_of(path), trace, report, options, evidence, names)
    raise typer.Exit(code)


def _names(report: Report, trace: str, key: str | None) -> Redactor:
    """Make hashes of the names in a report, and of the trace that was asked for."""
    from gapless.traces.report.redaction import Redactor

    return Redactor(report, key or random_key(), [trace])


def _save(
    save: Path,
    path: Path,
    trace: str,
    report: Report,
    options: Options,
    evidence: Evidence,
    names: Redactor | None,
) -> None:
    """Write the story of what was found first; say so, or why there is none. Exits with 2 if it cannot be written."""
    from gapless.traces.problems import NothingThere, Unreadable, UsageError, shown
    from gapless.traces.stories.saving import saved_story
    from gapless.traces.stories.shortening import NotATale

    found = [finding for finding in report.violations if finding.trace == shown(trace)]
    if not found:
        unread = report.verdict == "unreadable"
        raise failed(f"{save}: not written, for {shown(trace)} {'cannot be read' if unread else 'does not depart'}")
    judged = replace(options, profile=report.profile, trace=None)
    try:
        text = saved_story(path, trace, found[0], judged, evidence, folder=save.parent)
    except (UsageError, Unreadable, NothingThere, NotATale) as error:
        raise failed(f"{save}: not written: {error}") from None
    except OSError as error:
        raise failed(f"{save}: not written ({error.strerror})") from None
    write(save, "\n".join(map(names.line_of_file, text.split("\n"))) if names else text)
    print(f"story: {save}")
