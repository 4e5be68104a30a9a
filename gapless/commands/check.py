"""`gapless check`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from gapless.commands.options import (
    ClientOption,
    ConfigOption,
    CopiedOption,
    DepthOption,
    IgnoreOption,
    OnlyBrokerOption,
    OnlyOption,
    Paths,
    ProfileOption,
    RedactKeyOption,
    RedactOption,
    SpecOption,
    TraceTopicOption,
    output_file,
)
from gapless.commands.outcome import (
    BaselineBy,
    refuse_what_names,
    tell_github,
    threshold_of,
    unreadable,
    update,
    what_fails,
    without_names,
)
from gapless.commands.terminal import ENGINE_FAILED, Terminal, failed, printing, progress_bar, telling, write
from gapless.traces.engines import EngineName
from gapless.traces.report.formats import FORMATS, Format


def with_formats(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for every output format, instead of its `**files`."""
    signature = inspect.signature(command, eval_str=True)
    own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    formats = [
        inspect.Parameter(
            form.option,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[Path | None, output_file(form.help)],
        )
        for form in FORMATS
    ]
    command.__signature__ = signature.replace(parameters=[*own, *formats])  # type: ignore[attr-defined]
    return command


@with_formats
def check(
    paths: Paths,
    profile: ProfileOption = None,
    config: ConfigOption = None,
    client: ClientOption = None,
    copied: CopiedOption = False,  # noqa: FBT002 - a flag is what it is
    trace_topic: TraceTopicOption = None,
    only_broker: OnlyBrokerOption = False,  # noqa: FBT002 - a flag is what it is
    spec: SpecOption = None,
    topic: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Judge only this topic's queues.", show_default=False)
    ] = None,
    depth: DepthOption = None,
    only: OnlyOption = None,
    ignore: IgnoreOption = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Processes, or Spark tasks at a time; default: chosen by input size.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[EngineName, typer.Option(help="Who does the work; auto is local.")] = "auto",
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="The Spark cluster; default: as Spark is set, or local[*].", show_default=False
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="A setting of Spark, before all others (repeatable).", show_default=False
        ),
    ] = None,
    verdicts: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Make a directory of Parquet files, here or at s3://…: the verdict of every trace.",
            show_default=False,
        ),
    ] = None,
    verdicts_mode: Annotated[
        Literal["error", "overwrite"],
        typer.Option(metavar="error|overwrite", help="What becomes of a table that is there already."),
    ] = "error",
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="hazard|anomaly|overdue=60s",
            help="Exit with 1 for these, too, and for what is overdue by so long (repeatable).",
            parser=what_fails,
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file of findings that are known: only others fail.",
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    baseline_by: Annotated[
        BaselineBy | None,
        typer.Option(
            metavar="rule|trace|place",
            help="How a baseline knows a finding: by rule and trace if each run records a new file; default: by place.",
            show_default=False,
        ),
    ] = None,
    update_baseline: Annotated[  # noqa: FBT002 - a flag is what it is
        bool, typer.Option("--update-baseline", help="Write what is found into the baseline's file: it is known now.")
    ] = False,
    github: Annotated[  # noqa: FBT002 - as above
        bool, typer.Option("--github", help="Print annotations of GitHub Actions, and write the step's summary.")
    ] = False,
    redact: RedactOption = False,  # noqa: FBT002 - as above
    redact_key: RedactKeyOption = None,
    verbose: Annotated[  # noqa: FBT002 - a flag is what it is
        bool, typer.Option("--verbose", "-v", help="Show every queue and rule.")
    ] = False,
    **files: Path | None,
) -> None:
    """Check that every message is in its queue, once, in order, intact, and every transaction decided."""
    from gapless.traces.check import checked, options_of
    from gapless.traces.engines.spark.settings import parsed
    from gapless.traces.evidence import Evidence
    from gapless.traces.problems import EngineFailure, UsageError
    from gapless.traces.report.outputs.text import text

    refuse_what_names(redact=redact, key=redact_key, verdicts=verdicts, baseline=baseline)
    threshold = threshold_of(baseline, fail_on or (), update=update_baseline, by=baseline_by)
    try:
        with telling(), progress_bar() as progress:
            report = checked(
                paths,
                Evidence.of(config, client, copied=copied, trace_topics=trace_topic or (), only_broker=only_broker),
                options_of(
                    profile=profile and profile.value,
                    topic=topic,
                    depth=depth,
                    only=only or (),
                    ignore=ignore or (),
                    specs=spec or (),
                ),
                jobs=jobs,
                engine=engine,
                master=master,
                conf=parsed(conf or ()),
                verdicts=verdicts,
                verdicts_mode=verdicts_mode,
                progress=progress,
            )
    except UsageError as error:
        raise failed(str(error)) from None
    except EngineFailure as failure:
        raise failed(f"{failure}; nothing was judged", ENGINE_FAILED) from None
    report = without_names(report, redact=redact, key=redact_key)
    if baseline is not None and update_baseline:
        threshold = update(baseline, report, threshold)
    code = threshold.exit_code(report)
    wanted = [(form, path) for form in FORMATS if (path := files[form.option])]
    with printing(code):
        for form, path in wanted:
            write(path, form.written(report, threshold))
        if github:
            tell_github(report, threshold, sys.stderr if Path("-") in files.values() else sys.stdout)
        if lines := unreadable(report) or (threshold.sentences(report) if Path("-") in files.values() else []):
            for line in lines:
                typer.echo(f"gapless: {line}", err=True)
        elif Path("-") not in files.values():
            text(
                report,
                Terminal(highlight=False, soft_wrap=True),
                verbose=verbose,
                outcome=threshold.outcome(report),
                known=threshold.is_known,
            )
        if Path("-") not in files.values():
            _name_files(wanted, None if report.interrupted else verdicts)
    raise typer.Exit(code)


def _name_files(wanted: Sequence[tuple[Format, Path]], verdicts: str | None) -> None:
    """Print the paths of what was written."""
    for form, path in wanted:
        if form.announced:
            print(f"{form.option}: {path}")
    if verdicts:
        print(f"verdicts: {verdicts}")
