"""`gapless serve`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from gapless.commands.examples import epilog
from gapless.commands.options import input_file, output_file
from gapless.commands.terminal import failed
from gapless.commands.usage import Commands

serve = typer.Typer(
    cls=Commands,
    help="Run a server that clients connect to: so far, a transaction coordinator.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


VARIABLE = "GAPLESS_COORDINATOR_SECRET"
"""The environment variable with the shared secret: in a command line, every user of the machine could read it."""


@serve.callback()
def _servers() -> None:
    """Keep the name of the server in the command line, though there is one alone."""


FolderArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="Directory of its log; made where it is missing.", show_default=False)
]
MostOption = Annotated[
    int, typer.Option("--max", metavar="N", min=0, help="Transactions that may be active at once; 0 is no limit.")
]
HostOption = Annotated[
    str,
    typer.Option(metavar="ADDRESS", help="The address to listen on; beyond the loopback with a secret or TLS alone."),
]
PortOption = Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 is any that is free.")]
KeepOption = Annotated[int, typer.Option(metavar="N", min=1, help="Outcomes to remember, the newest ones.")]
MaxLifeOption = Annotated[
    float,
    typer.Option(
        metavar="SECONDS", min=0.001, max=86400 * 366, help="How long a client may let a transaction be open."
    ),
]
SecretFileOption = Annotated[
    Path | None,
    input_file(f"Clients must know the secret in this file; without it: the one in ${VARIABLE}, if any."),
]
TlsCertOption = Annotated[
    Path | None, input_file("Encrypt by TLS, with the certificate in this file (PEM), and the key, if it is there.")
]
TlsKeyOption = Annotated[Path | None, input_file("The key of the certificate (PEM, without a password).")]
TlsCaOption = Annotated[
    Path | None, input_file("Clients must have a certificate of one of the authorities in this file (PEM).")
]
RecordOption = Annotated[Path | None, output_file("Write every step to this file when it ends, for gapless check.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", help="Log a line for each connection and decision to standard error.")
]


@serve.command(short_help="Run a transaction coordinator.", epilog=epilog("serve coordinator"))
def coordinator(
    folder: FolderArgument,
    most: MostOption = 0,
    host: HostOption = "127.0.0.1",
    port: PortOption = 0,
    keep: KeepOption = 100_000,
    max_life: MaxLifeOption = 900.0,
    secret_file: SecretFileOption = None,
    tls_cert: TlsCertOption = None,
    tls_key: TlsKeyOption = None,
    tls_ca: TlsCaOption = None,
    record: RecordOption = None,
    verbose: VerboseOption = False,  # noqa: FBT002 - a flag is what it is
) -> None:
    """Run a transaction coordinator, for tests of clients, until Ctrl-C or SIGTERM.

    It begins transactions, remembers their outcomes in DIR, and limits how many are active. The first line of output is
    its address, HOST:PORT. A Python program connects with gapless.coordinator.connect_client("HOST:PORT"). When --max
    transactions are active, it does not answer a request to begin, so that the client waits and does not ask again.
    It informs no participant of an outcome: a program that embeds gapless.coordinator does that. With --record, each
    step is written as an event, and gapless check judges the file.

    A transaction is ended by the client that began it, or by its time. Other machines connect where --host names an
    address of theirs, and clients show a shared secret, or TLS is used; docs/coordinator.md says what that protects.
    """
    from gapless import serving
    from gapless.impl.coordinator.connections.access import check_secret, read_secret
    from gapless.impl.coordinator.values import CoordinatorSettings
    from gapless.impl.records.errors import StoreError

    try:
        secret = None
        if secret_file is not None:
            secret = read_secret(secret_file)
        elif VARIABLE in os.environ:
            secret = check_secret(os.fsencode(os.environ[VARIABLE]), f"${VARIABLE}")
        tls = serving.tls_context(tls_cert, tls_key, tls_ca)
        place = serving.Place(host, port, secret, tls)
        serving.run_coordinator(
            folder, CoordinatorSettings(most, keep, max_life=max_life), place, record, verbose=verbose
        )
    except StoreError as error:
        raise failed(str(error)) from None
    except OSError as error:
        raise failed(f"{error.filename or f'{host}:{port}'}: {error.strerror or error}") from None
