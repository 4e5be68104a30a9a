"""Temporary files of a check: a full disk is reported with the folder and the remedy."""

from __future__ import annotations

import io
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gapless import check
from gapless.traces.problems import laid_down
from gapless.traces.sources.event_files.source import spooled
from gapless.traces.sources.rocketmq.columns.disk_blocks import SharedFile
from tests.support.rocketmq.recordings import recording

WAY_OUT = f"in {tempfile.gettempdir()}, where .* is laid down: name another folder with TMPDIR"
ROOM = 100  # bytes
STORE = "layouts/rocksdb_lives_5.5.0"


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


@pytest.fixture
def rooms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The working folder and the one for temporary files. The recording is unpacked elsewhere."""
    recording(STORE)
    found = [tmp_path / "here", tmp_path / "temporary"]
    for room in found:
        room.mkdir()
    monkeypatch.chdir(found[0])
    monkeypatch.setattr(tempfile, "tempdir", str(found[1]))
    monkeypatch.setenv("TMPDIR", str(found[1]))
    return found


@pytest.mark.parametrize("end", ["a verdict", "an error", "Ctrl-C"])
def test_a_check_leaves_nothing(rooms: list[Path], end: str) -> None:
    """Its copies of a database and of what waits are gone when it returns, whatever ended it."""
    store = recording(STORE)

    def press_ctrl_c(_done: int, _all: int) -> None:
        raise KeyboardInterrupt

    before = sorted(path for path in store.rglob("*"))
    match end:
        case "Ctrl-C":
            assert check([store], progress=press_ctrl_c).interrupted
        case "an error":
            assert check([rooms[0] / "nothing.ndjson"]).verdict == "unreadable"
        case _:
            assert check([store]).verdict == "conforms"
    assert [list(room.iterdir()) for room in rooms] == [[], []]
    assert sorted(path for path in store.rglob("*")) == before
