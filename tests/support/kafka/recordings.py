"""Recordings of real Kafka brokers: data directories with what was done to them, unpacked once."""

import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.support import rooms

ARCHIVES = Path(__file__).parents[2] / "recordings" / "kafka"
NAMES = tuple(sorted(path.name.removesuffix(".tar.xz") for path in ARCHIVES.glob("*.tar.xz")))


@cache
def _room() -> Path:
    return rooms.room("kafka")


@cache
def recording(name: str) -> Path:
    """A recording, unpacked once; never change it."""
    with tarfile.open(ARCHIVES / f"{name}.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        archive.extractall(_room())  # noqa: S202 - our own archives
    return _room() / name


def defect(name: str, room: Path) -> Path:
    """A recording of a defect, unpacked into a folder."""
    with tarfile.open(ARCHIVES / "found" / f"{name}.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        archive.extractall(room)  # noqa: S202 - our own archives
    return room / name


@cache
def manifest(name: str) -> dict[str, Any]:
    """Return what was done, what is expected of each directory, and what Kafka's own tool counts in it.

    Tests are named after it: to unpack all recordings for that would write half a gigabyte in each worker.
    """
    with tarfile.open(ARCHIVES / f"{name}.tar.xz") as archive:
        file = archive.extractfile(next(one for one in archive if one.name == f"{name}/manifest.json"))
        assert file is not None
        found: dict[str, Any] = json.load(file)
    return found
