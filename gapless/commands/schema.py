"""`gapless schema`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gapless.commands.options import SpecOption
from gapless.commands.specs import chosen
from gapless.commands.terminal import printing, write
from gapless.spec.catalog import SPECS


class SchemaName(StrEnum):
    """The names of the schemas."""

    report = "report"
    events = "events"
    client = "client"


def schema(
    what: Annotated[
        SchemaName,
        typer.Argument(
            metavar="WHAT",
            help="report: what check --json writes; events: a line of a file of events; client: of a client log.",
            show_default=False,
        ),
    ],
    spec: SpecOption = None,
) -> None:
    """Print a JSON Schema (draft 2020-12): of the report, of a line of events, of a line of a client log.

    With --spec, events may belong to specs of yours, too.
    """
    from gapless.traces.schemas import SCHEMAS

    specs = {**SPECS, **{one.name: one for one in (chosen(spec) if spec else ())}}
    with printing(0):
        write(Path("-"), json.dumps(SCHEMAS[what.value](specs), indent=1, ensure_ascii=False) + "\n")
