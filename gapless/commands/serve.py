"""`gapless serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gapless.commands.examples import epilog
from gapless.commands.terminal import failed

serve = typer.Typer(
    help="Run what we implement, for others to connect to.", no_args_is_help=True, rich_markup_mode=None
)


@serve.callback()
def _kinds() -> None:
    """What can be run has a name of its own."""


@serve.command(short_help="Run a transaction coordinator.", epilog=epilog("serve coordinator"))
def coordinator(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Its directory; a new one is made.", show_default=False)
    ],
    most: Annotated[
        int, typer.Option("--max", metavar="N", min=0, help="Transactions that may be active at once; 0: no limit.")
    ] = 0,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0: any that is free.")] = 0,
    keep: Annotated[int, typer.Option(metavar="N", min=1, help="Outcomes that are remembered, the newest.")] = 100_000,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write every step to this file when it ends, for gapless check.", show_default=False
        ),
    ] = None,
) -> None:
    """Run a transaction coordinator until it is interrupted (SIGINT or SIGTERM).

    The first line of output is its address, HOST:PORT. Programs connect with `gapless.coordinator.connect_client`. At
    the limit, requests to begin are met with silence. Those who take part in a transaction are not told by this
    command: a program that embeds the coordinator tells them.
    """
    from gapless import serving
    from gapless.impl.records.errors import StoreError

    try:
        serving.run_coordinator(folder, most, host, port, keep, record)
    except StoreError as error:
        raise failed(str(error)) from None
    except OSError as error:
        raise failed(f"{error.filename or f'{host}:{port}'}: {error.strerror or error}") from None
