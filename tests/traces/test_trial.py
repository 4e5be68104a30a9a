"""A trial run of a native library ends, whatever a damaged file makes the library do."""

from pathlib import Path

import pytest

from gapless.traces.check import check
from gapless.traces.problems import Unreadable
from gapless.traces.processes import trial
from gapless.traces.sources.rocketmq.queues import rocksdb
from tests.support.rocketmq.recordings import copy_of
from tests.support.rocketmq.stores import read_log


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
    report = check(store)
    (source,) = report.sources
    assert (report.verdict, report.exit_code) == ("unreadable", 2)
    (reason,) = source.reasons
    assert str(manifest) in reason
    assert "the library that reads it does not end within 1 s of processor time" in reason
    assert source.records == len(read_log(store))  # all else was read
    assert report.coverage["queue.index"] > 0


def test_cursors_that_stand_in_another_table_are_not_missed(tmp_path: Path) -> None:
    store = copy_of("layouts/cursors_rocksdb_5.5.0", tmp_path)
    (store / "config/consumerOffsets/CURRENT").write_text("MANIFEST-000099\n")
    assert check(store).verdict == "unreadable"
    (store / "config/consumerOffset.json").write_text('{"offsetTable":{}}')
    (source,) = check(store).sources
    assert source.verdict == "conforms"
    assert any(note.endswith("cursors of consumer groups are not judged") for note in source.notes)


def test_a_list_of_tables_is_tried_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A check asks for its cursors, and so may another one in the same process: each would wait as long."""
    tried = []

    def refused(*_arguments: str, **_limits: int) -> str:
        tried.append(1)
        return "it hangs"

    monkeypatch.setattr(rocksdb, "trial", refused)
    folder = copy_of("layouts/cursors_rocksdb_5.5.0", tmp_path) / "config/consumerOffsets"
    for room in ("one", "other"):
        with pytest.raises(Unreadable, match="it hangs"):
            rocksdb.pairs(folder, tmp_path / room)
    assert len(tried) == 1


def test_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "MEMORY", 1 << 28)
    program = "import os\ntry: bytes(1 << 28)\nexcept MemoryError: os.abort()"
    assert trial.trial(program).endswith("crashes (SIGABRT)")
    assert trial.trial(program, memory=1 << 29) == ""


THREADS = """
import os, threading
ready = threading.Barrier(12)
def work():
    some = bytes(1 << 16)
    ready.wait()
threads = [threading.Thread(target=work) for _ in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmPeak"))
if peak > 600 << 10: os.abort()
"""


def test_threads_of_a_library_do_not_take_the_addresses_that_it_needs() -> None:
    """On a busy machine a sound database was refused, now and then."""
    assert trial.trial(THREADS) == ""
