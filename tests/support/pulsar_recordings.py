"""Recordings of Pulsar coordinators, as plain lines: read, changed and written again without gapless."""

import json
import shutil
import tarfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from tests.support import rooms

ARCHIVES = Path(__file__).parents[1] / "recordings" / "pulsar"
NAMES = tuple(sorted(path.name.removesuffix(".tar.xz") for path in ARCHIVES.glob("*.tar.xz")))
BROKEN = ("broker-restart-batch", "coord-recover-nofence")
CLEAN = tuple(name for name in NAMES if name not in BROKEN)

REPORTS = ARCHIVES.parent / "reports"  # recordings that show the fault of a public report

Line = dict[str, Any]


@cache
def _room() -> Path:
    return rooms.room("pulsar")


@cache
def recording(name: str) -> Path:
    """A recording, unpacked once; never change it."""
    with tarfile.open((ARCHIVES if name in NAMES else REPORTS) / f"{name}.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        archive.extractall(_room())  # noqa: S202 - our own archives
    return _room() / name


@cache
def manifest(name: str) -> Line:
    """Return the counts of the lab's own reader."""
    found: Line = json.loads((recording(name) / "manifest.json").read_text(encoding="utf-8"))
    return found


@cache
def _text(name: str) -> bytes:
    return (recording(name) / "trace.ndjson").read_bytes()


def lines_of(name: str) -> list[Line]:
    """Every line of a recording, to be changed at will."""
    return [orjson.loads(line) for line in _text(name).splitlines()]


def written(folder: Path, lines: Iterable[Line], *, numbered: bool = True) -> Path:
    """Write a recording of these lines; `numbered` numbers each source again, so that no line seems lost."""
    count: dict[str, int] = {}
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "trace.ndjson").open("wb") as file:
        for line in lines:
            number = count[line["s"]] = count.get(line["s"], -1) + 1
            first = {"n": number if numbered else line["n"], "t": line["t"], "s": line["s"], "k": line["k"]}
            file.write(orjson.dumps(first | line | first) + b"\n")
    return folder


def changed(folder: Path, name: str, change: Callable[[list[Line]], list[Line] | None]) -> Path:
    """Write a recording after `change`, its lines numbered again."""
    lines = lines_of(name)
    return written(folder, change(lines) or lines)


def copied(folder: Path, name: str) -> Path:
    """A copy of a recording, to be damaged."""
    return Path(shutil.copytree(recording(name), folder / name))
