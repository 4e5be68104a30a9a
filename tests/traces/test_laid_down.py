"""Temporary files of a check: a full disk is reported with the folder and the remedy."""

from __future__ import annotations

import io
import resource
import tempfile
from collections.abc import Iterator

import pytest

from gapless.traces.problems import laid_down
from gapless.traces.sources.event_files.source import spooled
from gapless.traces.sources.rocketmq.joining.disk_blocks import SharedFile

WAY_OUT = f"in {tempfile.gettempdir()}, where .* is laid down: name another folder with TMPDIR"
ROOM = 100  # bytes


@pytest.fixture
def _no_room() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("_no_room")
def test_standard_input_without_room() -> None:
    assert spooled(io.BytesIO(b"x" * ROOM)).stat().st_size == ROOM
    with pytest.raises(OSError, match=WAY_OUT):
        spooled(io.BytesIO(b"x" * (ROOM + 1)))


@pytest.mark.usefixtures("_no_room")
def test_what_waits_without_room() -> None:
    file = SharedFile()
    file.add(b"x" * ROOM)
    with pytest.raises(OSError, match=WAY_OUT):
        file.add(b"x")
    assert file.size == ROOM


def test_what_is_wrong_otherwise_is_reported_as_it_is() -> None:
    with pytest.raises(OSError, match=r"^no such thing$"), laid_down("something"):
        raise OSError("no such thing")
