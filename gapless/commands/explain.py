"""`gapless explain`."""

from __future__ import annotations

from typing import Annotated

import typer

from gapless.commands.options import ClientOption, ConfigOption, OnePath, ProfileOption, SpecOption
from gapless.commands.terminal import failed, printing, progress_bar, telling


def explain(
    path: OnePath,
    trace: Annotated[
        str, typer.Option(help="commitlog, TOPIC/QUEUE, the key of a transaction, or tc0.", show_default=False)
    ],
    profile: ProfileOption = None,
    config: ConfigOption = None,
    client: ClientOption = None,
    spec: SpecOption = None,
) -> None:
    """Tell the shortest story of one trace: where it departs and why, or that it does not."""
    from gapless.traces.check import check
    from gapless.traces.problems import UsageError, shown
    from gapless.traces.report.text import explained

    name, own = profile and profile.value, spec or ()
    try:
        with telling(), progress_bar() as progress:
            report = check(
                [path], profile=name, config=config, client=client, trace=trace, specs=own, progress=progress
            )
    except UsageError as error:
        raise failed(str(error)) from None
    code, lines = explained(report, shown(trace))
    with printing(code):
        for line in lines:
            print(line)
    raise typer.Exit(code)
