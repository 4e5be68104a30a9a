"""Files say their own length: a setting that contradicts them makes no violation, and hides none."""

import shutil
from pathlib import Path

import pytest

from gapless import Report, check
from tests.support.rocketmq.recordings import copy_of, recording
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import Record

SIZE, MESSAGES = 400, 50  # bytes of a queue's file, which has room for 20 entries; and messages of each queue
LENGTH, MISSING = "queue/file-of-the-consume-queue-has-its-full-length", "queue/every-message-has-its-entry"
NOT_THEIRS = ["200", "800", "407", "0", "-1", "400k", str(2**31 - 1), "9" * 40]


def laid(folder: Path, queues: int = 3, messages: int = MESSAGES) -> Path:
    """A store of some queues whose files are full but for the last."""
    builder = StoreBuilder(queue_file_size=SIZE, log_file_size=1 << 16)
    for _ in range(messages):
        for queue in range(queues):
            builder.append(Record("orders", queue=queue, body=b"message"))
    return builder.write(folder / "store")


def checked(store: Path, **settings: str) -> Report:
    """A check with settings in a broker.conf next to the store."""
    lines = "".join(f"{name}={value}\n" for name, value in settings.items())
    (store.parent / "broker.conf").write_text(f"brokerName=a\n{lines}")
    return check(store, jobs=1)


def cut(store: Path, queue: int, base: int, length: int) -> str:
    """Cut a file of a queue, and return its place."""
    place = f"consumequeue/orders/{queue}/{base:020}"
    with (store / place).open("r+b") as file:
        file.truncate(length)
    return place


@pytest.mark.parametrize("size", NOT_THEIRS)
@pytest.mark.parametrize(("queues", "messages"), [(3, 50), (3, 5), (1, 50), (1, 5)])
def test_a_setting_that_no_file_has_is_no_violation(queues: int, messages: int, size: str, tmp_path: Path) -> None:
    report = checked(laid(tmp_path, queues, messages), mappedFileSizeConsumeQueue=size)
    assert (report.verdict, report.violations) == ("conforms", [])
    assert report.coverage["queue.find_file"] == queues * -(-messages // 20)


@pytest.mark.parametrize("size", NOT_THEIRS)
def test_a_setting_that_the_log_has_not_is_no_violation(size: str, tmp_path: Path) -> None:
    report = checked(laid(tmp_path), mappedFileSizeCommitLog=size)
    assert (report.verdict, report.violations) == ("conforms", [])


@pytest.mark.parametrize("size", ["400", *NOT_THEIRS])
@pytest.mark.parametrize(("queue", "base", "length"), [(0, 0, 200), (1, 400, 380), (2, 800, 200), (2, 800, 393)])
def test_a_file_that_was_cut_is_found_under_any_setting(
    queue: int, base: int, length: int, size: str, tmp_path: Path
) -> None:
    store = laid(tmp_path)
    place = cut(store, queue, base, length)
    found = checked(store, mappedFileSizeConsumeQueue=size).violations[0]
    assert (found.rule, found.where.file, found.where.offset) == (LENGTH, place, length)
    assert f"a file of {length} bytes, " in found.message


def test_most_files_may_be_cut_where_a_setting_says_what_one_has(tmp_path: Path) -> None:
    store = laid(tmp_path, messages=5)
    places = [cut(store, queue, 0, 200) for queue in (0, 1)]
    (found,) = checked(store, mappedFileSizeConsumeQueue="400").violations
    assert (found.rule, found.count, found.where.file) == (LENGTH, 2, places[0])


@pytest.mark.parametrize("size", ["400", "100", "200"])
def test_of_one_file_alone_the_length_is_unknown(size: str, tmp_path: Path) -> None:
    """A file that was cut looks like one of another setting: what counts is that all entries are there."""
    store = laid(tmp_path, queues=1, messages=5)
    cut(store, 0, 0, 100)
    assert checked(store, mappedFileSizeConsumeQueue=size).verdict == "conforms"
    cut(store, 0, 0, 80)
    assert [found.rule for found in checked(store, mappedFileSizeConsumeQueue=size).violations] == [MISSING]
    cut(store, 0, 0, 75)
    (found,) = checked(store, mappedFileSizeConsumeQueue=size).violations
    assert found.rule == LENGTH
    assert "a file of 75 bytes, no whole number of entries" in found.message


@pytest.mark.parametrize(("size", "verdict"), [("800", "conforms"), ("400", "inconclusive"), ("600", "inconclusive")])
def test_a_setting_that_was_changed_while_the_broker_ran_holds_for_files_made_since(
    size: str, verdict: str, tmp_path: Path
) -> None:
    """The broker writes its settings back then. Queues that it creates later have files of the new length."""
    store = laid(tmp_path)
    place = store / "consumequeue/orders/2"
    entries = b"".join(file.read_bytes() for file in sorted(place.iterdir()))
    shutil.rmtree(place)
    place.mkdir()
    for base in (0, 800):
        (place / f"{base:020}").write_bytes(entries[base : base + 800].ljust(800, b"\0"))
    assert checked(store, mappedFileSizeConsumeQueue=size).verdict == "conforms", "its names say it"
    alone = laid(tmp_path / "alone", messages=15)
    cut(alone, 2, 0, 800)
    assert [found.rule for found in checked(alone, mappedFileSizeConsumeQueue="400").violations] == [LENGTH]
    report = checked(alone, mappedFileSizeConsumeQueue=size, rocketmqHome="/opt/rocketmq")
    assert (report.verdict, report.violations) == (verdict, [])
    assert [reason for reason in report.sources[0].reasons if "orders/2 of 800 bytes" in reason] == (
        report.sources[0].reasons if verdict == "inconclusive" else []
    )


OTHERS = {
    ("index_first_5.5.0", "maxHashSlotNum"): ("20", "80", "47", "4k"),
    ("index_first_5.5.0", "maxIndexNum"): ("150", "600", "307", "4k"),
    ("ext_first_5.5.0", "mappedFileSizeConsumeQueueExt"): ("1024", "4096", "2055", "4k"),
    ("batchcq_lives_5.5.0", "mapperFileSizeBatchConsumeQueue"): ("4600", "18400", "9207", "4k"),
    ("timer_precise_5.5.0", "mappedFileSizeTimerLog"): ("2048", "8192", "4103", "4k"),
    ("timer_precise_5.5.0", "timerPrecisionMs"): ("50", "200", "107", "4k"),
    ("lmq_lives_5.5.0", "enableLmq"): ("false", "no"),
    ("lmq_lives_5.5.0", "enableMultiDispatch"): ("false",),
}


@pytest.mark.parametrize(("name", "setting", "value"), [(*one, value) for one in OTHERS for value in OTHERS[one]])
def test_a_setting_that_contradicts_other_files_is_no_violation(
    name: str, setting: str, value: str, tmp_path: Path
) -> None:
    store = recording(f"layouts/{name}")
    config = tmp_path / "broker.conf"
    config.write_text(f"{(store.parent / 'broker.conf').read_text()}\n{setting}={value}\n")
    report = check(store, config=config, jobs=1)
    assert not report.violations
    assert report.verdict in ("conforms", "inconclusive")


def test_the_cursors_are_shown_without_an_end_where_the_queue_of_halves_departs(tmp_path: Path) -> None:
    store = copy_of("lmq", tmp_path)
    (half, *_) = sorted((store / "consumequeue/RMQ_SYS_TRANS_HALF_TOPIC/0").iterdir())
    half.write_bytes(half.read_bytes()[:-20])
    report = check(store, jobs=1)
    assert LENGTH in [found.rule for found in report.violations]
    (row,) = report.transactions
    assert row.half_end is None
    assert f"half cursor {row.half_cursor:,} of ?, " in str(report)


@pytest.mark.parametrize("version", ["4.9.7", "5.3.3", "5.5.0"])
def test_a_setting_that_a_running_broker_was_given_holds_for_its_later_queues(version: str) -> None:
    report = check(recording(f"reports/resized_queue_files_{version}").parent, jobs=1)
    assert (report.verdict, report.violations) == ("conforms", [])
    named, other = sorted(report.hazards, key=lambda hazard: hazard.rule, reverse=True)
    assert (named.rule, other.rule) == (
        "startup/settings-have-the-length-of-the-files",
        "startup/mapped-file-has-its-full-length",
    )
    assert (other.where.file, other.where.offset) == (f"consumequeue/late/0/{0:020}", 4000)
    assert "Remedy: move consumequeue/ away: the start writes all queues again" in " ".join(other.story)


def test_a_doubled_setting_leaves_a_sound_store_without_a_violation() -> None:
    report = check(recording("reports/queue_file_size_setting_doubled"), jobs=1)
    assert (report.verdict, report.violations) == ("conforms", [])
    assert "half cursor 2 of 3, op cursor 1 of 1" in str(report)
