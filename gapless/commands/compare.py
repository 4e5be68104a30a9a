"""`gapless compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from gapless.commands.options import ConfigOption, CopiedOption, JsonOption
from gapless.commands.outcome import sentence_of
from gapless.commands.terminal import failed, printing, progress_bar, telling, write


def compare(
    master: Annotated[
        str,
        typer.Argument(
            metavar="MASTER", help="The master's store directory, or a folder that holds it.", show_default=False
        ),
    ],
    slaves: Annotated[
        list[str],
        typer.Argument(metavar="SLAVE", help="Those of its slaves, or of other replicas.", show_default=False),
    ],
    config: ConfigOption = None,
    copied: CopiedOption = False,  # noqa: FBT002 - a flag is what it is
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Processes; default: chosen by input size.", show_default=False),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Compare replicas of one RocketMQ store with one another: logs, consume queues, epochs.

    Each is checked alone first. Then every byte that both logs have is compared, and every entry of their queues; of
    each, the first difference is reported. A slave may be shorter, may have expired less
    or more, and may end anywhere; what lies behind an end is not compared.
    """
    from gapless.traces.compare import compare as run
    from gapless.traces.evidence import Evidence
    from gapless.traces.problems import UsageError

    try:
        with telling(), progress_bar() as progress:
            comparison = run(master, slaves, Evidence.of(config, copied=copied), jobs=jobs, progress=progress)
    except UsageError as error:
        raise failed(str(error)) from None
    with printing(comparison.exit_code):
        if json:
            write(json, comparison.as_json())
        unread = [sentence_of(path, reason) for path, reason in comparison.unread()]
        for line in unread:
            typer.echo(f"gapless: {line}", err=True)
        if not unread and str(json) != "-":
            for line in comparison.lines():
                print(line)
    raise typer.Exit(comparison.exit_code)
