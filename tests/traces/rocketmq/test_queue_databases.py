"""Consume queues in RocksDB: brokers' stores conform, faults are found where they lie, and the store is only read."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gapless import Report, check
from gapless.traces.sources.rocketmq.queues import rocksdb
from gapless.traces.sources.rocketmq.queues.queue_database import database_in
from tests.support.rocketmq import queue_databases
from tests.support.rocketmq.queue_databases import changed, end_key, folder_of, key, opened, value_of
from tests.support.rocketmq.recordings import RECORDINGS, copy_of, recording, recording_as_left

ENTRY_RULE = "queue/entry-points-at-its-message"
LEFT_OUT = "queue/no-entry-before-it-is-missing"
WITHOUT = "queue/every-message-has-its-entry"

RECORDED = {  # records, and messages that wait for their entries, as the lab's own client and reader counted them
    "rocksdb_lives_5.3.3": (1132, 0),
    "rocksdb_lives_5.5.0": (1120, 0),
    "rocksdb_killed_5.3.3": (680, 312),
    "rocksdb_killed_5.5.0": (682, 310),
    "rocksdb_expired_5.5.0": (647, 0),
}


def kept(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return the files of a folder, and their times."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_ctime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("name", RECORDED)
def test_queues_that_a_broker_keeps_in_a_database_conform(name: str) -> None:
    records, waiting = RECORDED[name]
    before = kept(recording(f"layouts/{name}"))
    report = check([recording_as_left(f"layouts/{name}")])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    (source,) = report.sources
    assert source.records == records
    assert report.coverage["queue.append"] - report.coverage["queue.index"] == waiting
    assert report.coverage["queue.acknowledge"] > 0
    assert any("a RocksDB database" in note for note in source.notes)
    assert kept(recording(f"layouts/{name}")) == before  # nothing is written into a store, not even a lock taken


def test_every_entry_is_read_as_another_reader_reads_it(tmp_path: Path) -> None:
    store = copy_of("layouts/rocksdb_expired_5.5.0", tmp_path)
    folder = database_in(store)
    assert folder is not None
    ours = rocksdb.copied(folder)
    read = {}
    with Path(ours.copy).open("rb") as slots:
        for queue, files in ours.queues.items():
            for file in files:
                data = os.pread(slots.fileno(), file.length, file.at)
                for at in range(0, file.length, 20):
                    fields = data[at : at + 8], data[at + 8 : at + 12], data[at + 12 : at + 20]
                    numbers = (int.from_bytes(field, "big", signed=True) for field in fields)
                    read[*queue, (file.base + at) // 20] = tuple(numbers)
    theirs = {
        (*queue, number): (position, size, tag)
        for queue, some in queue_databases.entries(store).items()
        for number, position, size, tag, _ in some
    }
    assert read == theirs
    assert min(number for *_, number in read) > 0 or len(read) > 600  # some have expired, and left gaps before them


@pytest.mark.parametrize("window", [1, 2, 7])
def test_windows_change_nothing(window: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = copy_of("layouts/rocksdb_lives_5.5.0", tmp_path)
    with opened(store) as (database, _):
        for number in (3, 4, 9, 30):
            del database[key("orders", 1, number)]
    folder = database_in(store)
    assert folder is not None
    whole = rocksdb.copied(folder)
    monkeypatch.setattr(rocksdb, "WINDOW", window)
    parts = rocksdb.copied(folder)
    assert parts.queues == whole.queues
    assert Path(parts.copy).read_bytes() == Path(whole.copy).read_bytes()
    assert len(whole.queues["orders", 1]) == 4


# -- faults ------------------------------------------------------------------------------------------------------------

TOPIC, QUEUE, NUMBER = "orders", 2, 41


def wrong(**more: int) -> Callable[[Path], None]:
    """A fault: something is added to a field of one entry."""

    def fault(store: Path) -> None:
        with opened(store) as (database, _):
            database[key(TOPIC, QUEUE, NUMBER)] = changed(value_of(database, key(TOPIC, QUEUE, NUMBER)), **more)

    return fault


def missing(store: Path) -> None:
    with opened(store) as (database, _):
        del database[key(TOPIC, QUEUE, NUMBER)]


def the_one_before_again(store: Path) -> None:
    with opened(store) as (database, _):
        database[key(TOPIC, QUEUE, NUMBER)] = database[key(TOPIC, QUEUE, NUMBER - 1)]


def those_from_here_on_missing(store: Path) -> None:
    with opened(store) as (database, _):
        database.delete_range(key(TOPIC, QUEUE, NUMBER), key(TOPIC, QUEUE + 1, 0))


FAULTS: dict[str, tuple[Callable[[Path], None], str, str]] = {  # the rule, and words of the message
    "wrong position": (wrong(position=8), ENTRY_RULE, "in the middle of the record"),
    "position of another queue": (wrong(position=-400), ENTRY_RULE, "points at"),
    "wrong size": (wrong(size=1), "queue/entry-has-the-size-of-its-message", "size"),
    "wrong tag": (wrong(tag=1), "queue/entry-has-the-tag-code-of-its-message", "tag"),
    "missing": (missing, LEFT_OUT, "entry 41 is missing"),
    "twice": (the_one_before_again, ENTRY_RULE, "orders/2 number 40"),
    "cut off": (those_from_here_on_missing, WITHOUT, "entry 41 is missing"),
}


@pytest.mark.parametrize("store", ["rocksdb_lives_5.3.3", "rocksdb_lives_5.5.0"])
@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_entry_is_found_where_it_lies(name: str, store: str, tmp_path: Path) -> None:
    fault, rule, words = FAULTS[name]
    damaged = copy_of(f"layouts/{store}", tmp_path)
    fault(damaged)
    report = check(damaged)
    (found,) = report.violations
    assert (report.verdict, found.rule, found.trace) == ("departs", rule, f"{TOPIC}/{QUEUE}")
    assert (found.where.file, found.where.offset) == (f"consumequeue/RocksDB:{TOPIC}/{QUEUE}", NUMBER)
    assert words in f"{found.message} {' '.join(found.story)}"
    assert len(found.story) <= 12


def test_entries_behind_a_queues_end_are_left_over_from_a_crash(tmp_path: Path) -> None:
    """A broker that cuts its log off leaves them: the next message's entry takes their key."""
    store = copy_of("layouts/rocksdb_lives_5.5.0", tmp_path)
    with opened(store) as (database, _):
        database[key(TOPIC, QUEUE, 120)] = database[key(TOPIC, QUEUE, 7)]
        database[key(TOPIC, QUEUE, 300)] = changed(value_of(database, key(TOPIC, QUEUE, 7)), position=10**9)
    report = check(store)
    assert (report.verdict, report.hazards) == ("conforms", [])


def test_entries_below_the_logs_start_may_be_there_or_not(tmp_path: Path) -> None:
    """They go when the database is compacted, which it is whenever it likes."""
    store = copy_of("layouts/rocksdb_expired_5.5.0", tmp_path)
    (first, position, *_), *_ = queue_databases.entries(store)[TOPIC, QUEUE]
    with opened(store) as (database, _):
        value = value_of(database, key(TOPIC, QUEUE, first))
        database[key(TOPIC, QUEUE, first - 1)] = changed(value, position=200_000 - position)
        database[key(TOPIC, QUEUE, first - 20)] = changed(value, position=100_000 - position)
    assert check(store).verdict == "conforms"
    with opened(store) as (database, _):
        database[key(TOPIC, QUEUE, first - 1)] = value
    (found,) = check(store).violations
    assert found.rule == "queue/message-of-the-old-entry-lay-below-the-logs-start"


# -- the table of queues ----------------------------------------------------------------------------------------------

QueueEnd = tuple[int, int]


def change_ends(store: Path, which: str, change: Callable[[int, int], QueueEnd | None]) -> None:
    """Change what the table says of one end of a queue: position and number, or nothing at all."""
    with opened(store) as (_, table):
        name = end_key(TOPIC, QUEUE, which)
        value = value_of(table, name)
        after = change(int.from_bytes(value[:8], "big"), int.from_bytes(value[8:], "big"))
        if after is None:
            del table[name]
        else:
            table[name] = b"".join(number.to_bytes(8, "big", signed=True) for number in after)


LAST = "queue/table-names-the-last-entry"
WRONG_TABLE: dict[str, tuple[str, Callable[[int, int], QueueEnd | None], str, str]] = {
    "last number too high": ("max", lambda p, n: (p, n + 1), LAST, "has number 116 for its last entry, which is 115"),
    "last number too low": ("max", lambda p, n: (p, n - 1), LAST, "has number 114 for its last entry, which is 115"),
    "last position": (
        "max", lambda p, n: (p + 1, n), "queue/table-knows-where-the-last-entry-points", "point at 707767",
    ),
    "nothing of the last": ("max", lambda *_: None, LAST, "the table knows nothing of it"),
    "first number too high": (
        "min", lambda p, n: (p, n + 1), "queue/table-hides-no-message", "number 50 for its first entry",
    ),
}  # fmt: skip
RIGHT_TABLE: dict[str, tuple[str, Callable[[int, int], QueueEnd | None]]] = {
    "the first was never requested": ("min", lambda *_: None),
    "not requested since messages expired": ("min", lambda p, n: (p - 100_000, n - 20)),
    "what is below the log's start is not believed": ("min", lambda p, n: (p - 100_000, n + 20)),
    "the log's start itself": ("min", lambda _, n: (262_144, n)),
}


@pytest.mark.parametrize("name", WRONG_TABLE)
def test_a_table_that_is_wrong_is_found(name: str, tmp_path: Path) -> None:
    which, change, rule, words = WRONG_TABLE[name]
    store = copy_of("layouts/rocksdb_expired_5.5.0", tmp_path)
    change_ends(store, which, change)
    (found,) = check(store).violations
    assert (found.rule, found.trace) == (rule, f"{TOPIC}/{QUEUE}")
    assert found.where.file == f"consumequeue/RocksDB:offset/{TOPIC}/{QUEUE}/{which}"
    assert words in found.message
    assert len(found.story) <= 12


@pytest.mark.parametrize("name", RIGHT_TABLE)
def test_a_table_that_lags_is_left_alone(name: str, tmp_path: Path) -> None:
    store = copy_of("layouts/rocksdb_expired_5.5.0", tmp_path)
    change_ends(store, *RIGHT_TABLE[name])
    report = check(store)
    assert (report.verdict, report.coverage["queue.tell_last"]) == ("conforms", 12)


def test_a_table_may_end_before_the_log_begins(tmp_path: Path) -> None:
    """Later entries were lost in memory at a kill, or before a copy, and the first log files expired."""
    store = copy_of("layouts/rocksdb_expired_5.5.0", tmp_path)
    known = queue_databases.entries(store)
    with opened(store) as (database, table):
        for name in list(database.keys()):
            del database[name]
        for (topic, queue), entries in known.items():
            name, last = end_key(topic, queue, "max"), entries[0][0] - 5
            if last < 0:
                del table[name]
            else:
                table[name] = (100_000).to_bytes(8, "big") + last.to_bytes(8, "big")
    dispatched(store, 200_000)
    (store / "abort").write_text("1")
    report = check(store)
    assert (report.verdict, report.violations) == ("inconclusive", [])
    dispatched(store, 300_000)
    assert LAST in {found.rule for found in check(store).violations}


def dispatched(store: Path, upto: int) -> None:
    with opened(store) as (_, table):
        name = end_key("CHECKPOINT_TOPIC", 0, "max")
        assert len(value_of(table, name)) == 8
        table[name] = upto.to_bytes(8, "big")


def test_where_dispatch_continues_tells_which_messages_may_wait(tmp_path: Path) -> None:
    store = copy_of("layouts/rocksdb_killed_5.5.0", tmp_path)
    dispatched(store, 300_000)
    report = check(store)
    assert report.verdict == "departs"
    assert {found.rule for found in report.violations} == {WITHOUT}
    dispatched(store, 100)
    assert check(store).verdict == "conforms"


def test_a_database_that_was_never_flushed_is_reported_of(tmp_path: Path) -> None:
    store = copy_of("layouts/rocksdb_killed_5.5.0", tmp_path)
    with opened(store) as (database, table):
        for one in (database, table):
            for name in list(one.keys()):
                del one[name]
    report = check(store)
    assert (report.verdict, report.violations) == ("inconclusive", [])
    (reason,) = report.sources[0].reasons
    assert "a broker keeps those for its database in memory" in reason


def test_dispatch_beyond_a_log_that_was_closed_is_not_decided(tmp_path: Path) -> None:
    store = copy_of("layouts/rocksdb_lives_5.5.0", tmp_path)
    dispatched(store, 10**7)
    report = check(store)
    assert report.verdict == "inconclusive"
    assert "dispatched up to 10,000,000, beyond the log's end" in report.sources[0].reasons[0]


def test_dispatch_beyond_a_log_that_was_not_closed_is_corrected_by_the_next_start(tmp_path: Path) -> None:
    store = copy_of("layouts/rocksdb_lives_5.5.0", tmp_path)
    dispatched(store, 10**7)
    (store / "abort").write_text("1")
    report = check(store)
    assert (report.verdict, report.violations) == ("conforms", [])
    assert any("beyond the log's end" in note for note in report.sources[0].notes)


# -- a database that cannot be read ------------------------------------------------------------------------------------


def refused(store: Path) -> str:
    (source,) = check(store).sources
    assert source.verdict == "unreadable"
    return source.reasons[0]


def largest_table(store: Path) -> Path:
    return max(folder_of(store).glob("*.sst"), key=lambda path: path.stat().st_size)


def test_a_flipped_byte_is_named_with_its_file(tmp_path: Path) -> None:
    store = copy_of("layouts/rocksdb_lives_5.5.0", tmp_path)
    table = largest_table(store)
    data = bytearray(table.read_bytes())
    data[len(data) // 3] ^= 1
    table.write_bytes(data)
    assert table.name in refused(store)
    assert "checksum mismatch" in refused(store)
    assert "copy the folder again" in refused(store)


def test_a_table_that_is_gone_is_named(tmp_path: Path) -> None:
    store = copy_of("layouts/rocksdb_lives_5.5.0", tmp_path)
    table = largest_table(store)
    table.unlink()
    assert table.name in refused(store)


def test_a_database_without_its_list_of_tables_is_refused(tmp_path: Path) -> None:
    store = copy_of("layouts/rocksdb_lives_5.5.0", tmp_path)
    for path in folder_of(store).glob("MANIFEST-*"):
        path.rename(path.with_name("MANIFEST-999999"))
    assert "CURRENT: names 'MANIFEST-" in refused(store)


def test_a_value_of_another_length_is_no_entry(tmp_path: Path) -> None:
    store = copy_of("layouts/rocksdb_lives_5.5.0", tmp_path)
    with opened(store) as (database, _):
        database[key(TOPIC, QUEUE, NUMBER)] = bytes(27)
    assert "entry 41 of orders/2 has 27 bytes, expected 28" in refused(store)


def test_without_the_library_the_verdict_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    report = check([recording("layouts/rocksdb_lives_5.5.0")])
    assert report.verdict == "inconclusive"
    assert any("pip install rocksdict" in reason for reason in report.sources[0].reasons)


# -- next to a running broker ------------------------------------------------------------------------------------------

RUNNING = """
import sys, fcntl, struct
from pathlib import Path
from tests.support.rocketmq.queue_databases import opened
store = Path(sys.argv[1])
lock = (store / "lock").open("r+b")
fcntl.fcntl(lock, fcntl.F_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0))
with opened(store):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Path]:
    """A copy of a store whose lock and database another process has open, like a running broker."""
    store = copy_of("layouts/rocksdb_killed_5.5.0", tmp_path)
    (store / "lock").write_bytes(b"lock")
    with subprocess.Popen(
        [sys.executable, "-c", RUNNING, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as broker:
        assert broker.stdout is not None
        assert broker.stdout.readline() == b"locked\n"
        yield store
        broker.kill()


def test_the_database_of_a_running_broker_is_read_without_touching_it(running: Path) -> None:
    before = kept(running)
    report = check(running)
    assert (report.verdict, report.sources[0].live) == ("conforms", True)
    assert report.coverage["queue.index"] == 372
    assert kept(running) == before


def test_what_is_wrong_next_to_a_running_broker_is_found_all_the_same(tmp_path: Path, running: Path) -> None:
    """And what another process changes meanwhile is not: the database is looked at again."""
    assert tmp_path in running.parents
    found: list[Report] = []
    copied = rocksdb.copied
    calls = []

    def wrong_at_first(folder: Path) -> object:
        database = copied(folder)
        calls.append(folder)
        data = bytearray(Path(database.copy).read_bytes())
        data[7] ^= 1
        Path(database.copy).write_bytes(data)
        return database

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rocksdb, "copied", wrong_at_first)
        found.append(check(running))
    assert found[0].verdict != "conforms"
    assert len(calls) > 1
    assert check(running).verdict == "conforms"


def test_a_table_that_is_merged_away_meanwhile_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = copy_of("layouts/rocksdb_lives_5.5.0", tmp_path)
    folder = folder_of(store)
    after = shutil.copytree(folder, tmp_path / "after")
    copied = rocksdb._copied
    calls = []

    def gone_at_first(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 1:
            shutil.rmtree(folder)
            folder.mkdir()
            (folder / "CURRENT").write_bytes((after / "CURRENT").read_bytes())
        elif not any(folder.glob("*.sst")):
            shutil.copytree(after, folder, dirs_exist_ok=True)
        return copied(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(rocksdb, "_copied", gone_at_first)

    def back_again(*arguments: Path) -> None:
        if calls and not any(folder.glob("*.sst")):
            shutil.copytree(after, folder, dirs_exist_ok=True)
        link(*arguments)

    link = rocksdb._link
    monkeypatch.setattr(rocksdb, "_link", back_again)
    assert check(store).verdict == "conforms"
    assert len(calls) == 2


def test_every_recording_of_a_layout_is_judged_somewhere() -> None:
    there = {path.name.removesuffix(".tar.xz") for path in (RECORDINGS / "layouts").glob("rocksdb_*.tar.xz")}
    assert there == RECORDED.keys()
