"""A trial run of a native library ends, whatever a damaged file makes the library do."""

from pathlib import Path

import pytest

from gapless.traces import trial
from gapless.traces.check import check
from tests.support.rocketmq.recordings import copy_of


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("pass", ""),
        ("raise ValueError", ""),
        ("while True: pass", "does not end within 1 s of processor time"),
        ("import os; os.abort()", r"crashes (SIGABRT)"),
        ("import time; time.sleep(600)", "does not end within 2 s"),
    ],
)
def test_a_program_that_does_not_end_by_itself_is_ended(
    monkeypatch: pytest.MonkeyPatch, program: str, reason: str
) -> None:
    monkeypatch.setattr(trial, "CPU", 1)
    if "sleep" in program:
        monkeypatch.setattr(trial, "SLOWER", 2)
    found = trial.trial(program)
    assert found == "" if not reason else found.endswith(reason), found


def test_a_list_of_tables_that_makes_the_library_loop_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two bytes in a MANIFEST: the check never ended, and no signal reached it."""
    monkeypatch.setattr(trial, "CPU", 1)
    store = copy_of("layouts/rocksdb_lives_5.5.0", tmp_path)
    manifest = store / "config/consumerOffsets/MANIFEST-000019"
    data = manifest.read_bytes()
    manifest.write_bytes(data[:620] + b'""' + data[620:])
    (source,) = check(store).sources
    (note,) = [note for note in source.notes if str(manifest) in note]
    assert "the library that reads it does not end within 1 s of processor time" in note
    assert note.endswith("cursors of consumer groups are not judged")
