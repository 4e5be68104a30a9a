"""Broken stores, and folders that are none, get a clear message and exit code: no traceback, no pass."""

import json
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from shutil import which

import pytest

from gapless import check
from tests.support.command_line import gapless, gapless_process
from tests.support.night import by_day
from tests.support.rocketmq.any_damage import mutate
from tests.support.rocketmq.damage import Pick, entry_zeroed, wrong_magic
from tests.support.rocketmq.recordings import recording
from tests.support.rocketmq.store_builder import StoreBuilder, varied
from tests.support.rocketmq.stores import Record, log_files, queue_files, read_log

CONFORMS, DEPARTS, UNREADABLE, INCONCLUSIVE = range(4)
POWERLESS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")  # a root whom permissions bind

TERMINAL = "\x1b]0;owned\x07\x1b[31mred"  # sets a terminal's title and colour
HTML = "<img src=x onerror=alert(1)>&quot;"


# Folders that are no store, or one that cannot be judged. Each function makes one and returns the path to check.


def no_such_path(room: Path) -> Path:
    """A name that nothing has."""
    return room / "nothing"


def a_text_file(room: Path) -> Path:
    """A file of words."""
    (room / "notes.txt").write_text("This is no store.\n")
    return room / "notes.txt"


def a_directory_of_something_else(room: Path) -> Path:
    """A directory that no broker made."""
    (room / "notes.txt").write_text("This is no store.\n")
    return room


def an_empty_directory(room: Path) -> Path:
    """A directory with nothing in it."""
    return room


def an_empty_log(room: Path) -> Path:
    """A store whose broker never got a message, nor made a file for one."""
    return StoreBuilder().write(room / "store")


def only_zeros(room: Path) -> Path:
    """A log file that was made and never written."""
    return StoreBuilder(log={0: bytearray(16384)}).write(room / "store")


def garbage(room: Path) -> Path:
    """A log file of random bytes."""
    (room / "commitlog").mkdir()
    (room / "commitlog" / f"{0:020}").write_bytes(random.Random(1).randbytes(16384))
    return room


def a_log_file_too_short(room: Path) -> Path:
    """One of several log files has lost its end."""
    store = varied().write(room / "store")
    cut(log_files(store)[2], -100)
    return store


def a_log_file_too_long(room: Path) -> Path:
    """One of several log files has bytes too many."""
    store = varied().write(room / "store")
    cut(log_files(store)[1], 100)
    return store


def truncated_cursors(room: Path) -> Path:
    """The consumers' cursors end in the middle."""
    store = varied(count=20).write(room / "store")
    (store / "config" / "consumerOffset.json").write_text('{"offsetTable":{"orders@group":{0:5,1')
    return store


def cut(file: Path, by: int) -> None:
    """Make a file longer or shorter."""
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size + by)


BAD_INPUT: tuple[tuple[Callable[[Path], Path], int], ...] = (
    (no_such_path, UNREADABLE),
    (a_text_file, UNREADABLE),
    (a_directory_of_something_else, UNREADABLE),
    (an_empty_directory, INCONCLUSIVE),
    (an_empty_log, INCONCLUSIVE),
    (only_zeros, INCONCLUSIVE),
    (garbage, UNREADABLE),
    (a_log_file_too_short, UNREADABLE),
    (a_log_file_too_long, UNREADABLE),
    (truncated_cursors, UNREADABLE),
)
EACH_BAD_INPUT = pytest.mark.parametrize(("make", "code"), BAD_INPUT, ids=[make.__name__ for make, _ in BAD_INPUT])


@EACH_BAD_INPUT
def test_bad_input_has_its_exit_code(make: Callable[[Path], Path], code: int, tmp_path: Path) -> None:
    report = check([make(tmp_path)])
    assert report.exit_code == code, report.verdict
    assert not report.findings


@EACH_BAD_INPUT
def test_bad_input_gets_a_clear_word(make: Callable[[Path], Path], code: int, tmp_path: Path) -> None:
    path = make(tmp_path)
    ran = gapless("check", path)
    output = ran.stdout + ran.stderr
    assert ran.exit_code == code, output
    assert path.name in re.sub(r"\s", "", output), "it says which path it means"


def test_one_bad_path_among_good_ones_is_not_overlooked(tmp_path: Path) -> None:
    good = varied(count=50).write(tmp_path / "good")
    assert check([good]).exit_code == CONFORMS
    assert check([good, tmp_path / "nothing"]).exit_code == UNREADABLE
    damaged = shutil.copytree(good, tmp_path / "damaged")
    entry_zeroed(damaged, Pick("any", "1"))
    assert check([damaged, good, tmp_path / "nothing"]).exit_code == DEPARTS


@pytest.mark.parametrize(
    "arguments", [("check",), ("check", "--no-such-option", "."), ("check", ".", "--profile", "no-such")]
)
def test_a_wrong_call_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    ran = gapless(*arguments)
    assert ran.exit_code == UNREADABLE


@pytest.mark.parametrize("closed", by_day(["commitlog", f"commitlog/{0:020}", "consumequeue"]))
def test_no_permission_is_unreadable(closed: str, tmp_path: Path) -> None:
    store = varied(count=50).write(tmp_path / "store")
    (store / closed).chmod(0)
    if os.geteuid() == 0 and which("setpriv") is None:
        pytest.skip("root may read everything")
    ran = gapless_process("check", store, within=POWERLESS if os.geteuid() == 0 else ())
    (store / closed).chmod(0o700)
    assert ran.returncode == UNREADABLE, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stdout + ran.stderr


@pytest.mark.parametrize("reads", [0, 1, 3])
def test_a_file_that_shrinks_while_it_is_read(reads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some reads, the file ends."""
    store = varied().write(tmp_path / "store")
    left = [reads]
    whole_pread, whole_preadv = os.pread, os.preadv

    def shrunk() -> bool:
        left[0] -= 1
        return left[0] < 0

    def pread(file: int, count: int, offset: int) -> bytes:
        return b"" if shrunk() else whole_pread(file, count, offset)

    def preadv(file: int, buffers: list[bytearray], offset: int, flags: int = 0) -> int:
        return 0 if shrunk() else whole_preadv(file, buffers, offset, flags)

    monkeypatch.setattr(os, "pread", pread)
    monkeypatch.setattr(os, "preadv", preadv)
    report = check([store], jobs=1)
    assert left[0] < 0, "the store was read in another way than this test knows"
    assert report.exit_code in {UNREADABLE, INCONCLUSIVE}, report.verdict


def test_a_store_without_checkpoint_and_config_is_judged_by_what_there_is(tmp_path: Path) -> None:
    whole = varied(count=50).write(tmp_path / "whole")
    damaged = shutil.copytree(whole, tmp_path / "damaged")
    entry_zeroed(damaged, Pick("first", "1"))
    for store, code in ((whole, CONFORMS), (damaged, DEPARTS)):
        shutil.rmtree(store / "config")
        (store / "checkpoint").unlink()
        assert check([store]).exit_code == code


@pytest.mark.parametrize("length", [0, 7, 5000])
def test_a_checkpoint_of_another_length_is_no_violation(length: int, tmp_path: Path) -> None:
    store = varied(count=50).write(tmp_path / "store")
    (store / "checkpoint").write_bytes(b"\x7f" * length)
    assert check([store]).exit_code != DEPARTS


# Strange names


@pytest.mark.parametrize("topic", [TERMINAL, HTML], ids=["terminal", "html"])
def test_a_name_neither_drives_a_terminal_nor_a_page(topic: str, tmp_path: Path) -> None:
    builder = StoreBuilder()
    for number in range(9):
        builder.append(Record(topic, body=b"x", properties=f"KEYS\x01{topic}-{number}\x02".encode()))
    whole = builder.write(tmp_path / "whole")
    assert check([whole]).exit_code == CONFORMS
    damaged = shutil.copytree(whole, tmp_path / "damaged")
    entry_zeroed(damaged, Pick("any", "1"))
    page, data = tmp_path / "report.html", tmp_path / "report.json"
    ran = gapless("check", damaged, "--report", page, "--json", data)
    output = ran.stdout + ran.stderr
    assert ran.exit_code == DEPARTS, output
    assert "\x1b" not in output
    assert "\x07" not in output
    assert "\x1b" not in page.read_text()
    assert "<img src=x" not in page.read_text()
    assert json.loads(data.read_text())["verdict"] == "departs"


@pytest.mark.parametrize("topic", ["a\0b", "\0", "a/b", "/", "../..", "..", ".", "", "x" * 256])
def test_a_name_that_no_file_can_have_is_no_crash(topic: str, tmp_path: Path) -> None:
    builder = StoreBuilder()
    for _ in range(3):
        builder.append(Record(topic, body=b"x"), dispatched=False)
        builder.append(Record("orders", body=b"x"))
    report = check([builder.write(tmp_path / "store")])
    assert report.exit_code in {DEPARTS, UNREADABLE, INCONCLUSIVE}


def test_names_that_no_broker_gives_are_passed_over(tmp_path: Path) -> None:
    store = varied(count=50).write(tmp_path / "store")
    for directory in ("consumequeue/orders/x", "consumequeue/orders/-1", f"consumequeue/orders/{10**30}"):
        (store / directory).mkdir()
    for file in ("commitlog/x", "commitlog/12", "consumequeue/x", "consumequeue/orders/0/x"):
        (store / file).write_bytes(b"not ours")
    (store / "consumequeue" / os.fsdecode(b"\xff\xfe")).mkdir()
    (store / "consumequeue" / "loop").symlink_to(store / "consumequeue")
    ran = gapless("check", store)
    assert ran.exit_code in {CONFORMS, UNREADABLE}, ran.stdout + ran.stderr


def test_a_position_that_no_log_reaches_is_no_crash(tmp_path: Path) -> None:
    """The last file name that twenty digits allow is beyond every number of eight bytes."""
    store = varied(count=50).write(tmp_path / "store")
    shutil.copy(log_files(store)[0], store / "commitlog" / ("9" * 20))
    shutil.copy(queue_files(store, ("orders", 0))[0], store / "consumequeue/orders/0" / ("9" * 20))
    ran = gapless("check", store)
    assert ran.exit_code in {DEPARTS, UNREADABLE}, ran.stdout + ran.stderr


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_queue_below_zero_is_no_crash(which: int, tmp_path: Path) -> None:
    """The sign of a record's queue flips: no folder has such a name, and the record is damaged."""
    store = varied(count=50).write(tmp_path / "store")
    record = [record for record in read_log(store) if record.topic == "orders"][which]
    file, at = divmod(record.position, log_files(store)[0].stat().st_size)
    with log_files(store)[file].open("r+b") as log:
        log.seek(at + 12)
        log.write(b"\x80")
    ran = gapless("check", store)
    assert ran.exit_code == DEPARTS, ran.stdout + ran.stderr
    assert f"commitlog/{record.position - at:020d}" in ran.stdout


# Any damage


FUZZ = int(os.environ.get("GAPLESS_FUZZ", "150"))
SMALL = 60  # records


@pytest.fixture(scope="module")
def small_stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Stores to mutate: clean and killed ones, with every kind of record."""
    room = tmp_path_factory.mktemp("small")
    return [varied(seed, SMALL).write(room / str(seed), clean=seed % 2 == 0) for seed in range(4)]


def test_no_mutation_brings_the_checker_down(small_stores: list[Path], tmp_path: Path) -> None:
    for seed in range(FUZZ):
        choose = random.Random(seed)
        store = shutil.copytree(choose.choice(small_stores), tmp_path / "store")
        done = [mutate(store, choose) for _ in range(choose.choice((1, 1, 2, 5)))]
        try:
            report = check([store], jobs=1)
        except BaseException:
            print(f"seed {seed}: {done}")  # noqa: T201 - pytest shows it with the traceback
            raise
        assert report.exit_code in {CONFORMS, DEPARTS, UNREADABLE, INCONCLUSIVE}, f"seed {seed}: {done}"
        json.loads(report.model_dump_json())
        shutil.rmtree(store, ignore_errors=True)


def test_a_damaged_store_tells_its_story_on_the_command_line(tmp_path: Path) -> None:
    store = varied(count=100).write(tmp_path / "store")
    where = wrong_magic(store, Pick("any", "3"))
    ran = gapless("check", store)
    assert ran.exit_code == DEPARTS, ran.stdout + ran.stderr
    assert where.file in ran.stdout


@pytest.mark.parametrize("name", ["checkpoint", "lock", "abort", "config/topics.json", "commitlog/x", "consumequeue/x"])
def test_a_pipe_in_a_store_does_not_hang(name: str, tmp_path: Path) -> None:
    store = varied(count=50).write(tmp_path / "store")
    (store / name).unlink(missing_ok=True)
    os.mkfifo(store / name)
    assert check([store]).exit_code in {CONFORMS, UNREADABLE}


@pytest.mark.parametrize("text", ["[" * 100_000, '{"topicConfigTable":{"ord', "", "[]"])
def test_a_broken_topic_table_is_what_the_next_start_does_without(text: str, tmp_path: Path) -> None:
    store = varied(count=50).write(tmp_path / "store")
    topics = store / "config/topics.json"
    whole = topics.read_text()
    topics.write_text(text, encoding="utf-8")
    report = check([store])
    assert report.exit_code == CONFORMS
    assert [found.rule for found in report.hazards] == ["startup/config-file-without-content-has-a-backup"]
    (store / "config/topics.json.bak").write_text(whole)
    report = check([store])
    assert not report.hazards
    assert any("topics.json.bak is used" in note for note in report.sources[0].notes)


def test_a_broken_file_that_no_start_reads_is_not_needed(tmp_path: Path) -> None:
    store = varied(count=50).write(tmp_path / "store")
    (store / "config/notes.json").write_text("{", encoding="utf-8")
    report = check([store])
    assert any("config/notes.json is broken, and not needed" in note for note in report.sources[0].notes)
    assert not report.hazards


def test_what_is_not_there_is_read_from_its_older_version(tmp_path: Path) -> None:
    """A broker killed during a write leaves the older version, and reads that when it starts."""
    copied = shutil.copytree(recording("normal"), tmp_path / "store")
    whole = check([recording("normal")])
    for name in ("topics.json", "consumerOffset.json", "delayOffset.json"):
        file = copied / "config" / name
        if file.exists():
            file.replace(file.with_name(f"{name}.bak"))
    report = check([copied])
    notes = report.sources[0].notes
    assert "config/consumerOffset.json is not there: consumerOffset.json.bak is used, as the broker would do" in notes
    assert "config/topics.json is not there: topics.json.bak is used, as the broker would do" in notes
    assert report.exit_code == CONFORMS
    advanced = [one.coverage["checkpoint.advance"] for one in (whole, report)]
    assert advanced[0] == advanced[1] > 0, "the half cursor is compared with the log"
    (copied / "config/consumerOffset.json.bak").write_text("{")
    assert any("there is no consumerOffset.json" in note for note in check([copied]).sources[0].notes)


LINKED = {  # a file or a folder of a store, and what is not judged where it is a link that leads nowhere
    "consumequeue/orders/0/00000000000000000000": "entries of orders/0 are not judged",
    "consumequeue/orders/0": "entries of orders/0 are not judged",
    "consumequeue/orders": "entries of orders are not judged",
    "consumequeue": "entries of queues are not judged",
    "config/consumerOffset.json": "what only that file tells is not judged",
    "config/topics.json": "what only that file tells is not judged",
    "checkpoint": "what only that file tells is not judged",
    "abort": "whether the broker stopped in order is not judged",
    "index/20261124194400123": "the hash index is not judged",
    "timerlog/00000000000000000000": "the timer wheel is not judged",
    "compaction/compactionLog/kv/0/00000000000000000000": "what compacted topics keep is not judged",
}


@pytest.mark.parametrize("name", LINKED)
def test_a_link_that_leads_nowhere_is_named_and_all_else_is_judged(name: str, tmp_path: Path) -> None:
    """A disk may not be mounted where a copy lies. Its files are neither blamed nor taken to conform."""
    store = varied(count=50).write(tmp_path / "store")
    records = check([store]).sources[0].records
    linked(store, name)
    report = check([store])
    assert report.verdict == "inconclusive", report.model_dump_json(indent=1)
    assert any(
        f"{name} is a link to /nowhere, which is not there: {LINKED[name]}" in r for r in report.sources[0].reasons
    )
    assert report.sources[0].records == records


@pytest.mark.parametrize("name", ["orders/0/00000000000000000000", "orders/0", "orders"])
def test_a_link_in_one_queue_leaves_all_others_judged(name: str, tmp_path: Path) -> None:
    """An entry of another queue that points elsewhere departs; without it, nothing does."""
    store = varied(count=50).write(tmp_path / "store")
    before = {f"{row.topic}/{row.queue}": row.indexed - row.first for row in check([store]).queues}
    linked(store, f"consumequeue/{name}")
    report = check([store])
    assert not report.violations
    after = {f"{row.topic}/{row.queue}": row.indexed - row.first for row in report.queues}
    behind = {trace for trace in before if trace in name or trace.startswith(f"{name}/")}
    assert behind
    assert after == {trace: 0 if trace in behind else entries for trace, entries in before.items()}
    other = next(path for path in sorted((store / "consumequeue").glob("*/*/*")) if "orders" not in str(path))
    data = bytearray(other.read_bytes())
    data[7] ^= 1
    other.write_bytes(data)
    assert check([store]).verdict == "departs"


def linked(store: Path, name: str) -> None:
    """In place of what lies there, a link that leads nowhere."""
    shutil.rmtree(store / name) if (store / name).is_dir() else (store / name).unlink(missing_ok=True)
    (store / name).parent.mkdir(parents=True, exist_ok=True)
    (store / name).symlink_to("/nowhere")


def test_a_link_in_place_of_a_file_of_the_log_is_unreadable_and_an_unneeded_one_is_reported(tmp_path: Path) -> None:
    store = varied(count=50).write(tmp_path / "store")
    linked(store, "lock")
    report = check([store])
    assert report.exit_code == CONFORMS
    assert "lock is a link to /nowhere, which is not there" in report.sources[0].notes
    (last,) = [path.name for path in (store / "commitlog").iterdir()][-1:]
    linked(store, f"commitlog/{last}")
    report = check([store])
    assert report.exit_code == UNREADABLE
    assert "a link to /nowhere, which is not there, and all depends on the log" in report.sources[0].reasons[0]


def test_broken_cursors_are_read_from_their_older_version(tmp_path: Path) -> None:
    copied = shutil.copytree(recording("normal"), tmp_path / "store")
    cursors = copied / "config/consumerOffset.json"
    older = copied / "config/consumerOffset.json.bak"
    older.write_text(cursors.read_text())
    cursors.write_text('{"offsetTable":{"orders@group":{0:5,1')
    whole, report = check([recording("normal")]), check([copied])
    assert report.exit_code == CONFORMS
    assert any("consumerOffset.json.bak is used" in note for note in report.sources[0].notes)
    advanced = [one.coverage["checkpoint.advance"] for one in (whole, report)]
    assert advanced[0] == advanced[1] > 0, "the half cursor is compared with the log"
    assert report.coverage["checkpoint.advance_ops"] == 0, "two cursors of a running broker need not agree"
    older.write_text("{")
    assert check([copied]).exit_code == UNREADABLE
