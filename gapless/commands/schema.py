"""`gapless schema`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from gapless.commands.options import SpecOption
from gapless.commands.specs import chosen
from gapless.commands.terminal import printing, write
from gapless.spec.catalog import SPECS


def _known(name: str) -> str:
    """The name of a schema, as it is. Raises typer.BadParameter for one that no source has."""
    from gapless.traces.schemas import SCHEMAS

    if name not in SCHEMAS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, SCHEMAS))}.")
    return name


def schema(
    what: Annotated[
        Literal["report", "events", "client"],  # for the help; a source of another package may have more
        typer.Argument(
            metavar="WHAT",
            parser=_known,
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
        write(Path("-"), json.dumps(SCHEMAS[what](specs), indent=1, ensure_ascii=False) + "\n")
