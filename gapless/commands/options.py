"""Arguments and options that several commands take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gapless.commands.terminal import refuse_output
from gapless.spec.catalog import PROFILES
from gapless.traces.options import Depth

Profile = StrEnum("Profile", list(PROFILES))  # type: ignore[misc] # its members are known where the specs are
PROFILE_NAMES = "|".join(PROFILES)

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Store directories, folders with a store/ or a Pulsar recording in it, Kafka data directories, or files "
        "of events (.parquet, .ndjson, .ndjson.gz, .ndjson.zst), folders and patterns of them, here or at s3://, "
        "hdfs://, abfs:// or gs://; - is standard input.",
        show_default=False,
    ),
]
OnePath = Annotated[
    str,
    typer.Argument(
        metavar="PATH",
        help="A store directory, a folder with a store/ or a Pulsar recording in it, a Kafka data directory, or a file "
        "of events.",
        show_default=False,
    ),
]
ProfileOption = Annotated[
    Profile | None,
    typer.Option(
        metavar=PROFILE_NAMES,
        help="Whose known deviations are anomalies rather than violations; default: the broker's that wrote it.",
        show_default=False,
    ),
]


def input_file(what: str) -> typer.models.OptionInfo:
    """An option that names a file to read."""
    found: typer.models.OptionInfo = typer.Option(
        metavar="FILE", help=what, exists=True, dir_okay=False, readable=True, show_default=False
    )
    return found


ConfigOption = Annotated[Path | None, input_file("The broker's broker.conf; default: the one next to the store.")]
ClientOption = Annotated[
    Path | None, input_file("Requests of clients and their answers; default: the client.ndjson next to the store.")
]
CopiedOption = Annotated[
    bool,
    typer.Option("--copied", help="Stores were copied file by file while their brokers ran (cp, rsync, tar)."),
]
TraceTopicOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TOPIC",
        help="A topic to which clients write message traces, besides the broker's own (repeatable).",
        show_default=False,
    ),
]
OnlyBrokerOption = Annotated[
    bool,
    typer.Option(
        "--only-broker", help="The clients of this broker have no other: all that their traces received must be here."
    ),
]
DepthOption = Annotated[
    Depth | None,
    typer.Option(
        metavar="shallow|deep",
        help="Read heads and checksums of batches alone, or records too, where a source can; default: by size.",
        show_default=False,
    ),
]
OnlyOption = Annotated[
    list[str] | None, typer.Option(metavar="RULE", help="Judge only this rule (repeatable).", show_default=False)
]
IgnoreOption = Annotated[
    list[str] | None, typer.Option(metavar="RULE", help="Let this rule be broken (repeatable).", show_default=False)
]
SpecOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SPEC",
        help="A file or a module with a spec of yours, to which events may belong (repeatable).",
        show_default=False,
    ),
]
KEY_VARIABLE = "GAPLESS_REDACT_KEY"
RedactOption = Annotated[
    bool,
    typer.Option(
        "--redact", help="Replace topics, groups, keys, hosts and client ids by keyed hashes in all that is written."
    ),
]
RedactKeyOption = Annotated[
    str | None,
    typer.Option(
        metavar="KEY",
        envvar=KEY_VARIABLE,
        help="The key of --redact: the same names have the same hashes; default: a new one each time.",
        show_default=False,
        show_envvar=True,
    ),
]


def _refuse_output(parameter: typer.CallbackParam, path: Path | None) -> Path | None:
    """Exit with 2 where the file cannot be written, before the command does any work."""
    if path is not None:
        refuse_output(path, max(parameter.opts, key=len))
    return path


def output_file(says: str) -> typer.models.OptionInfo:
    """Define an option that names a file to write, into a folder that exists."""
    found: typer.models.OptionInfo = typer.Option(
        metavar="FILE", help=says, callback=_refuse_output, show_default=False
    )
    return found


JsonOption = Annotated[Path | None, output_file("Write the result as JSON; - for standard output.")]
