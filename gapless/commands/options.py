"""Arguments and options that several commands take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gapless.spec.catalog import PROFILES

Profile = StrEnum("Profile", list(PROFILES))  # type: ignore[misc] # its members are known where the specs are

Paths = Annotated[
    list[str],
    typer.Argument(
        help="Store directories, folders that hold a store/ or a Pulsar recording, or files of events (.parquet, "
        ".ndjson, .ndjson.gz, .ndjson.zst), folders and patterns of them, here or at s3://, hdfs://, abfs:// or gs://; "
        "- is standard input.",
        show_default=False,
    ),
]
OnePath = Annotated[
    str,
    typer.Argument(
        help="A store directory, a folder that holds a store/ or a Pulsar recording, or a file of events.",
        show_default=False,
    ),
]
ProfileOption = Annotated[
    Profile | None,
    typer.Option(
        help="Whose known deviations are anomalies rather than violations; default: the broker's that wrote it.",
        show_default=False,
    ),
]


def _file(what: str) -> typer.models.OptionInfo:
    """An option that names a file to read."""
    found: typer.models.OptionInfo = typer.Option(
        help=what, exists=True, dir_okay=False, readable=True, show_default=False
    )
    return found


ConfigOption = Annotated[Path | None, _file("The broker's broker.conf; default: the one beside the store.")]
ClientOption = Annotated[
    Path | None, _file("What clients asked and were answered; default: the client.ndjson beside the store.")
]
SpecOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A file or a module with a spec of yours, to which events may belong (repeatable).", show_default=False
    ),
]
RedactOption = Annotated[
    bool,
    typer.Option(
        "--redact", help="Replace topics, groups, keys, hosts and client ids by keyed hashes in all that is written."
    ),
]
RedactKeyOption = Annotated[
    str | None,
    typer.Option(
        envvar="GAPLESS_REDACT_KEY",
        help="The key of --redact: the same names have the same hashes; default: a new one each time.",
        show_default=False,
        show_envvar=True,
    ),
]
JsonOption = Annotated[
    Path | None, typer.Option(help="Write the result as JSON; - for standard output.", show_default=False)
]
