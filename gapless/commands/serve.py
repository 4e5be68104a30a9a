"""`gapless serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gapless.commands.examples import epilog
from gapless.commands.options import output_file
from gapless.commands.terminal import failed
from gapless.commands.usage import Commands

serve = typer.Typer(
    cls=Commands,
    help="Run a server that clients connect to: so far, a transaction coordinator.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@serve.callback()
def _servers() -> None:
    """Keep the name of the server in the command line, though there is one alone."""


@serve.command(short_help="Run a transaction coordinator.", epilog=epilog("serve coordinator"))
def coordinator(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Directory of its log; made where it is missing.", show_default=False)
    ],
    most: Annotated[
        int, typer.Option("--max", metavar="N", min=0, help="Transactions that may be active at once; 0 is no limit.")
    ] = 0,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 is any that is free.")] = 0,
    keep: Annotated[int, typer.Option(metavar="N", min=1, help="Outcomes to remember, the newest ones.")] = 100_000,
    record: Annotated[
        Path | None, output_file("Write every step to this file when it ends, for gapless check.")
    ] = None,
) -> None:
    """Run a transaction coordinator, for tests of clients, until Ctrl-C or SIGTERM.

    It begins transactions, remembers their outcomes in DIR, and limits how many are active. The first line of output is
    its address, HOST:PORT. A Python program connects with gapless.coordinator.connect_client("HOST:PORT"). When --max
    transactions are active, it does not answer a request to begin, so that the client waits and does not ask again.
    It informs no participant of an outcome: a program that embeds gapless.coordinator does that. With --record, each
    step is written as an event, and gapless check judges the file.
    """
    from gapless import serving
    from gapless.impl.records.errors import StoreError

    try:
        serving.run_coordinator(folder, most, host, port, keep, record)
    except StoreError as error:
        raise failed(str(error)) from None
    except OSError as error:
        raise failed(f"{error.filename or f'{host}:{port}'}: {error.strerror or error}") from None
