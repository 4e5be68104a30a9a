"""One cell: a base store, one damage, and the outcome of a start on it. `cells.csv` has all that were measured."""

from __future__ import annotations

import csv
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

FILE = Path(__file__).parent / "cells.csv"
REFUSES, LOSES, REPAIRS, STARTS = "refuses", "loses", "repairs", "starts"
SOUND, BROKEN, ABSENT, AS_IT_IS = "sound", "broken", "absent", "-"
NOTHING_LOST = "nothing is lost"

Row = TypeVar("Row")


@dataclass(frozen=True)
class Cell:
    """One damage: `file` is a path in the store, in which FIRST, MIDDLE and LAST stand for files of a folder.

    `backup`: the state of FILE.bak: sound, broken, absent, or `-` as the base has it. Of `broker.conf`, `damage` is a
    setting.
    """

    line: str
    base: str
    ending: str
    file: str
    damage: str
    backup: str = AS_IT_IS


@dataclass(frozen=True)
class Outcome:
    """The start: its class, the exit code and exception of a broker that refused, and what another one lost.

    `remedy` is what was done to the damaged store before one more start, `after` how that went.
    """

    result: str
    exit: str = ""
    exception: str = ""
    lost: str = ""
    remedy: str = ""
    after: str = ""


COLUMNS = [field.name for kind in (Cell, Outcome) for field in fields(kind)]


def read(file: Path = FILE) -> dict[Cell, Outcome]:
    """All measured cells, in the order of the file."""
    if not file.exists():
        return {}
    with file.open(newline="") as lines:
        return {_part(Cell, row): _part(Outcome, row) for row in csv.DictReader(lines)}


def write(cells: dict[Cell, Outcome], file: Path = FILE) -> None:
    """Write all cells."""
    with file.open("w", newline="") as out:
        rows = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        rows.writeheader()
        rows.writerows(asdict(cell) | asdict(outcome) for cell, outcome in cells.items())


def _part(kind: type[Row], row: dict[str, str]) -> Row:
    given: dict[str, Any] = {field.name: row[field.name] for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**given)
