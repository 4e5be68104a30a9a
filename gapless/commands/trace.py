"""`gapless trace`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gapless.commands.options import ConfigOption, DepthOption, OnePath, SpecOption, output_file
from gapless.commands.terminal import failed, progress_bar


def trace(
    path: OnePath,
    out: Annotated[Path, output_file("A file that ends in .parquet or .ndjson.")],
    config: ConfigOption = None,
    depth: DepthOption = None,
    spec: SpecOption = None,
) -> None:
    """Write the events of a store, a recording or a file of events, to query or to check them elsewhere."""
    from gapless.traces.check import options_of
    from gapless.traces.evidence import Evidence
    from gapless.traces.export import export
    from gapless.traces.problems import NothingThere, Unreadable, UsageError, shown
    from gapless.traces.report.values import INTERRUPTED
    from gapless.traces.report.wording import plural

    try:
        with progress_bar() as progress:
            events = export(
                path, out, options_of(depth=depth, specs=spec or ()), Evidence.of(config), progress=progress
            )
    except (UsageError, Unreadable) as error:
        raise failed(str(error)) from None
    except NothingThere as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(3) from None
    except KeyboardInterrupt:
        typer.echo(f"gapless: {shown(path)}: interrupted; nothing was written", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except OSError as error:
        raise failed(f"{shown(error.filename or path)}: {error.strerror or error}") from None
    print(f"{plural(events, 'event')} in {out}")
