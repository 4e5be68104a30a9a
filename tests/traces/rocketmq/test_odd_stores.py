"""Stores that brokers wrote in settings and situations that are not everyday: each is judged right, and says why."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gapless import Report, check
from gapless.traces.sources.rocketmq.store import opening, topics
from tests.support.command_line import gapless
from tests.support.rocketmq.recordings import RECORDINGS, copy_of, recording_as_left
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import Record, log_files

SKIPPED = "queue/entry-points-at-its-message"
MISSING = "queue/every-message-has-its-entry"
LEFT_OUT = "queue/no-entry-before-it-is-missing"
NUMBERS = "queue/numbers-of-a-queue-follow-one-another"
ANSWERED = "queue/message-that-was-acknowledged-is-in-the-log-where-the-answer-said"
BEYOND = "beyond the log's end"

DELETED = ("inconclusive", "no queue folder: it was deleted and created again and got no message since, or its", "")
IN_ROCKSDB = ("conforms", "entries are read from consumequeue/, a RocksDB database", "")
SWITCHED = ("departs", "consumequeue/ holds files of queues too", LEFT_OUT)
OTHER_QUEUES = ("conforms", "", "")
OTHER_LIMITS = ("conforms", "", "")
IN_DLEDGER = ("conforms", "", "")
A_HOLE = ("inconclusive", "legal after a power loss", "")
SOUND = ("conforms", "", "")

EXPECTED = {  # verdict, what a note or a reason says, the rule that is broken
    "topic_purged": DELETED,
    "topics_gone_4.8.0": DELETED,
    "topics_gone_4.9.7": DELETED,
    "topics_gone_5.3.3": DELETED,
    "topics_gone_5.5.0": DELETED,
    "slave_topic_made_anew": ("departs", "", SKIPPED),
    "rocksdb_queues": IN_ROCKSDB,
    "rocksdb_fresh_5.3.3": IN_ROCKSDB,
    "rocksdb_switched_5.3.3": SWITCHED,
    "rocksdb_switched_5.5.0": SWITCHED,
    "batch_queue_plain_messages": OTHER_QUEUES,
    "batchcq_5.3.3": OTHER_QUEUES,
    "settings_lowered": OTHER_LIMITS,
    "settings_lowered_4.9.7": OTHER_LIMITS,
    "settings_lowered_5.5.0": OTHER_LIMITS,
    "kept_0_hours_5.5.0": OTHER_LIMITS,
    "extended_twins_5.3.3": (
        "conforms",
        "the same in consumequeue/, a RocksDB database, as in the files: 156 entries",
        "",
    ),
    "delayed_twins_5.3.3": (
        "conforms",
        "the same in consumequeue/, a RocksDB database, as in the files: 24 entries",
        "",
    ),
    "compacted_rocksdb_5.5.0": ("departs", "", "compaction/newest-message-of-its-key-is-kept"),
    "thrown_away_5.3.3": ("departs", "", ANSWERED),
    "thrown_away_5.5.0": ("departs", "", ANSWERED),
    "no_times_5.5.0": (
        "inconclusive",
        "31 records behind the log's end at 1948, whose last record has no store time",
        "",
    ),
    "dledger_moved_4.9.7": IN_DLEDGER,
    "dledger_moved_5.3.3": IN_DLEDGER,
    "hole_before_4.9.7": A_HOLE,
    "hole_before_5.5.0": A_HOLE,
    "hole_after_4.9.7": A_HOLE,
    "hole_after_5.5.0": ("inconclusive", "the log ended at 24,480 when the broker started last", ""),
    "no_maps_5.5.0": ("unreadable", "cut it off (truncate -s 50000)", ""),
    "client_batch_4.8.0": SOUND,
    "client_batch_4.9.7": SOUND,
    "client_batch_5.5.0": SOUND,
    "delayed_half_5.3.3": (
        "inconclusive",
        "with a half, or with the number of one, sent with a delay cannot be judged",
        "",
    ),
    "delays_recovered_4.9.7": ("departs", "", "queue/entry-has-the-tag-code-of-its-message"),
    "dledger_cut_5.3.3": ("departs", "", SKIPPED),
    "pool_killed_5.3.3": ("inconclusive", "a broker with transientStorePoolEnable is killed", ""),
    "topics_torn_before_5.5.0": ("conforms", "topics.json.bak is used", ""),
    **dict.fromkeys(("delayed_lives_4.9.7", "delayed_lives_5.3.3", "delayed_lives_5.5.0"), SOUND),
    "skipped_first_before_4.9.7": ("departs", "", MISSING),
    "skipped_first_before_5.3.3": ("departs", "", MISSING),
    "skipped_first_before_5.5.0": ("departs", "", MISSING),
    "skipped_first_4.9.7": SOUND,
    "skipped_first_5.3.3": ("departs", "", SKIPPED),
    "skipped_first_5.5.0": ("departs", "", SKIPPED),
    "ghosts_before_4.9.7": ("inconclusive", BEYOND, ""),
    "ghosts_before_5.3.3": ("inconclusive", BEYOND, ""),
    "ghosts_before_5.5.0": ("inconclusive", BEYOND, ""),
    "ghosts_after_4.9.7": ("departs", "", NUMBERS),
    "ghosts_after_5.3.3": ("departs", "", NUMBERS),
    "ghosts_after_5.5.0": ("departs", "", NUMBERS),
    "foreign_slot_before_4.9.7": SOUND,
    "foreign_slot_before_5.3.3": SOUND,
    "foreign_slot_before_5.5.0": SOUND,
    "foreign_slot_after_clean_4.9.7": ("departs", "", NUMBERS),
    "foreign_slot_after_clean_5.3.3": ("departs", "", NUMBERS),
    "foreign_slot_after_clean_5.5.0": ("departs", "", NUMBERS),
    "slot_over_end_before_4.9.7": SOUND,
    "slot_over_end_after_clean_4.9.7": ("departs", "", MISSING),
}


def checked(name: str) -> Report:
    """Check an odd store, with the settings and the client log next to it."""
    return check(recording_as_left(f"odd/{name}"))


def test_every_odd_store_is_expected_to_be_something() -> None:
    assert {path.name.removesuffix(".tar.xz") for path in (RECORDINGS / "odd").glob("*.tar.xz")} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_an_odd_store_is_judged_right(name: str) -> None:
    verdict, words, rule = EXPECTED[name]
    report = checked(name)
    assert report.verdict == verdict, (report.sources[0].reasons, [found.message for found in report.violations])
    assert {found.rule for found in report.violations} >= ({rule} if rule else set())
    (source,) = report.sources
    assert any(words in line for line in (*source.reasons, *source.notes))


def test_a_compacted_topic_of_a_broker_that_compacts_nothing_is_reported_of(tmp_path: Path) -> None:
    """It departs in a first life, with its settings; if compaction may have been switched off, it is undecided."""
    store = copy_of("odd/compacted_rocksdb_5.5.0", tmp_path)
    (found,) = check(store).violations
    assert (found.trace, found.rule) == ("compact/0", "compaction/newest-message-of-its-key-is-kept")
    assert "keeps queues in RocksDB: no consumer receives any of its messages" in found.message
    settings = store.parent / "broker.conf"
    settings.rename(tmp_path / "elsewhere.conf")
    report = check(store)
    assert (report.verdict, report.violations) == ("inconclusive", [])
    assert "compaction-rocksdb" in report.sources[0].reasons[0]
    off = (tmp_path / "elsewhere.conf").read_text() + "enableCompaction=false\n"
    settings.write_text(off)
    assert check(store).verdict == "conforms"


def test_a_log_that_was_written_without_maps_is_sound_once_its_files_are_cut_off(tmp_path: Path) -> None:
    """A broker of 5.5.0 starts on it then, and not before."""
    store = copy_of("odd/no_maps_5.5.0", tmp_path, client=True)
    with log_files(store)[0].open("r+b") as full:
        full.truncate(50_000)
    assert check(store.parent).verdict == "conforms"


# -- topics that were deleted, or whose queues are lost --------------------------------------------------------------


def test_a_topic_without_queues_is_deleted_only_if_the_broker_knows_it_no_more(tmp_path: Path) -> None:
    store = copy_of("odd/topic_purged", tmp_path)
    saved = store / "config/topics.json"

    def reasons() -> list[str]:
        return check(store).sources[0].reasons

    (reason,) = reasons()
    assert reason == (
        "purge is in config/topics.json, has 40 messages in the log and no queue folder: it was deleted and created "
        "again and got no message since, or its queues are lost"
    )
    saved.with_suffix(".json.bak").write_bytes(saved.read_bytes())
    known = saved.read_text()
    saved.write_text("torn")
    (reason,) = reasons()
    assert reason.startswith("purge is in config/topics.json.bak, has 40 messages")
    saved.write_text(known.replace('"purge"', '"purged"'))
    report = check(store)
    assert (report.verdict, report.sources[0].reasons) == ("conforms", [])
    assert any(
        "6 queues have messages in the log and no file: their topics" in note for note in report.sources[0].notes
    )


def test_the_saved_topics_may_be_in_a_database() -> None:
    names, place = topics.names_and_place(recording_as_left("odd/rocksdb_fresh_5.3.3") / "store/config")
    assert ("orders" in names, "purge" in names, place) == (True, False, "config/topics/")


# -- logs that a start threw away --------------------------------------------------------------------------------------


def test_an_index_is_not_accused_of_records_that_are_gone() -> None:
    """Its files, and their headers, tell of records that others lie on: the checkpoint says nothing of their end."""
    report = checked("thrown_away_5.5.0")
    assert not [found.rule for found in report.violations if found.rule.startswith("hash_index/")]
    assert sum("at no record that has its key" in reason for reason in report.sources[0].reasons) == 5


@pytest.mark.parametrize("which", [0, 3, 6])
def test_a_damaged_record_of_a_log_without_times_is_not_passed_over(which: int, tmp_path: Path) -> None:
    store = shutil.copytree(recording_as_left("odd/no_times_5.5.0"), tmp_path / "damaged")
    (log,) = (store / "store" / "commitlog").iterdir()
    data, at = bytearray(log.read_bytes()), 0
    for _ in range(which):
        at += int.from_bytes(data[at : at + 4], "big")
    data[at + 4] ^= 1
    log.write_bytes(data)
    assert check(store).verdict != "conforms"


# -- messages that are kept for no time --------------------------------------------------------------------------------


@pytest.mark.parametrize(("hours", "for_their_age"), [("0", 34), ("-1", 34), ("72", 33), ("", 33)])
def test_halves_are_set_aside_for_their_age_when_messages_were_kept_for_no_time(
    hours: str, for_their_age: int, tmp_path: Path
) -> None:
    """`fileReservedTime` was 0 in the first life, and 72 in the second one, whose settings are at hand."""
    store = shutil.copytree(recording_as_left("odd/kept_0_hours_5.5.0"), tmp_path / "kept")
    set_to = f"fileReservedTime={hours}\n" if hours else ""
    config = store / "broker.conf"
    config.write_text(config.read_text().replace("fileReservedTime=72\n", set_to))
    report = check(store)
    (aged,) = [count for name, count in report.anomalies.items() if "age" in name]
    assert (report.verdict, aged) == ("conforms", for_their_age)


def test_a_counter_that_no_check_left_is_not_excused_by_age(tmp_path: Path) -> None:
    store = shutil.copytree(recording_as_left("odd/kept_0_hours_5.5.0"), tmp_path / "kept")
    (file,) = log_files(store / "store")
    parked, _, counter = (file.read_bytes().partition(b"TRANS_CHECK_MAX_TIME_TOPIC")[part] for part in range(3))
    once, thrice = (b"TRANSACTION_CHECK_TIMES\x01" + times for times in (b"1", b"3"))
    assert once in counter
    file.write_bytes(parked + b"TRANS_CHECK_MAX_TIME_TOPIC" + counter.replace(once, thrice, 1))
    (found,) = check(store).violations
    assert (found.rule, found.count) == ("transaction/half-is-set-aside-as-it-was", 1)


# -- what is foretold --------------------------------------------------------------------------------------------------

FORETOLD = {  # what the next start breaks, and the store after it: queue, the next message's number
    "ghosts_before": ("ghosts_after", {"orders/0": 17, "orders/3": 16}),
    "foreign_slot_before": ("foreign_slot_after_clean", {"orders/1": 4}),
}


@pytest.mark.parametrize("version", ["4.9.7", "5.3.3", "5.5.0"])
@pytest.mark.parametrize("before", FORETOLD)
def test_what_the_next_start_breaks_is_foretold_and_comes_true(before: str, version: str) -> None:
    after, numbers = FORETOLD[before]
    (hazard,) = checked(f"{before}_{version}").hazards
    assert (hazard.traces, hazard.count) == (list(numbers), len(numbers))
    queue = hazard.trace
    assert f"the next message of the queue gets number {numbers[queue]}" in " ".join(hazard.story)
    (found,) = checked(f"{after}_{version}").violations
    assert (found.rule, found.traces) == (NUMBERS, list(numbers))
    assert found.here["number"] == numbers[found.trace]


def test_a_slot_that_reaches_beyond_the_log_is_foretold() -> None:
    """On 4.9.7 dispatch then begins behind the log's end, and the next message is lost to its queue."""
    (hazard,) = checked("slot_over_end_before_4.9.7").hazards
    assert hazard.trace == "orders/6"
    assert {found.rule for found in checked("slot_over_end_after_clean_4.9.7").violations} == {MISSING, NUMBERS}


def test_a_hazard_changes_no_verdict_and_stands_in_every_form(tmp_path: Path) -> None:
    store, page, data = (
        recording_as_left("odd/foreign_slot_before_5.5.0"),
        tmp_path / "page.html",
        tmp_path / "data.json",
    )
    ran = gapless("check", store, "--report", page, "--json", data)
    assert ran.exit_code == 0
    assert "hazard: sound now, and broken by the broker's next start" in ran.stdout
    (finding,) = [found for found in json.loads(data.read_text())["findings"] if found["severity"] == "hazard"]
    assert json.loads(data.read_text())["findings_total"] == 0
    for line in filter(None, finding["story"]):
        assert line in ran.stdout
    assert "sound now, and broken by the broker's next start" in page.read_text()
    assert gapless("explain", store, "--trace", "orders/1").stdout.startswith(
        "queue orders/1 will depart at the broker's"
    )


def test_slots_behind_the_end_that_no_start_takes_are_no_hazard(tmp_path: Path) -> None:
    """A slot that points at the log's end or behind it is not taken, nor what lies behind a slot of zeros."""
    folder = tmp_path / "store"
    shutil.copytree(recording_as_left("odd/skipped_first_4.9.7") / "store", folder)
    end = check(folder).marks[-1].high if check(folder).marks[-1].kind == "log" else 0
    end = end or next(mark.high for mark in check(folder).marks if mark.kind == "log")
    (queue,) = (folder / "consumequeue/orders/0").iterdir()
    slots = bytearray(queue.read_bytes())
    good = bytes(slots[:20])
    for at, data in ((13, bytes(20)), (14, good)):
        slots[20 * at : 20 * at + 20] = data
    queue.write_bytes(slots)
    assert not check(folder).hazards
    slots[20 * 13 : 20 * 14] = good
    queue.write_bytes(slots)
    (hazard,) = check(folder).hazards
    assert "slots 13 to 14" in hazard.message
    slots[20 * 14 : 20 * 15] = end.to_bytes(8, "big") + good[8:]
    queue.write_bytes(slots)
    (hazard,) = check(folder).hazards
    assert "in slot 13" in hazard.message


# -- stories that name a cause -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["5.3.3", "5.5.0"])
def test_a_message_that_a_clean_start_skipped_is_reported_with_its_cause(version: str) -> None:
    (found,) = checked(f"skipped_first_{version}").violations
    story = " ".join(found.story)
    assert "Message 7 has no entry, and those behind it stand a slot too early" in story
    assert "skips the first record without an entry (docs/rocketmq.md#recovery-clean)" in story


def test_a_story_about_a_topic_recreated_lists_the_causes_that_fit() -> None:
    (found,) = checked("slave_topic_made_anew").violations
    assert "Its numbers start at 0 again with the message at 32360." in found.story
    first, second = [line for line in found.story if line.startswith("Cause ")]
    assert first.startswith("Cause 1 of 2 that fit: this is a slave, which keeps its queue when its master's topic is ")
    assert second.startswith("Cause 2 of 2 that fit: a slave was made a master while it ran, ")


def test_a_queue_whose_entries_are_kept_had_its_numbers_given_again() -> None:
    """A deletion of its topic would have taken them; a slave of 4.9.7 that became a master counts from 0."""
    (found,) = check(recording_as_left("reports/slave_promoted_while_running_4.9.7"), jobs=1).violations
    assert (found.rule, found.count, found.position) == (NUMBERS, 1, 11358)
    assert (found.here["number"], found.here["end"]) == (0, 50)
    assert "Entry 50, behind those of the messages before it, points at it." in found.story
    first, second = [line for line in found.story if line.startswith("Cause ")]
    assert "a slave was made a master while it ran, and counted from 0" in first
    assert "this is a slave" in second
    assert not any("The topic was deleted" in line for line in found.story)


# -- where the log lies ------------------------------------------------------------------------------------------------


def parted(folder: Path, separator: str) -> tuple[Path, str]:
    """A store whose log lies in two folders outside of it, and the setting that says so."""
    shutil.copytree(recording_as_left("midlife") / "store", folder / "store")
    rooms = [folder / "disk1" / "log", folder / "disk2" / "log"]
    for room in rooms:
        room.mkdir(parents=True)
    for at, file in enumerate(log_files(folder / "store")):
        file.rename(rooms[at % 2] / file.name)
    (folder / "store/commitlog").rmdir()
    return folder / "store", separator.join(map(str, rooms))


@pytest.mark.parametrize("separator", [",", ":"])
def test_a_log_in_several_folders_is_read_from_all_of_them(separator: str, tmp_path: Path) -> None:
    store, paths = parted(tmp_path, separator)
    again = f"readOnlyCommitLogStorePaths={tmp_path / 'disk1' / 'log'}"  # a path that gets no new file is named twice
    settings = (recording_as_left("midlife") / "broker.conf").read_text()
    (tmp_path / "broker.conf").write_text(f"{settings}\nstorePathCommitLog={paths}\n{again}\n")
    whole, report = check(recording_as_left("midlife") / "store"), check(store)
    assert (
        (report.verdict, report.counts.events)
        == (whole.verdict, whole.counts.events)
        == ("conforms", whole.counts.events)
    )
    assert any(str(tmp_path / "disk2" / "log") in note for note in report.sources[0].notes)
    shutil.rmtree(tmp_path / "disk2")
    (refused,) = check(store).sources
    assert refused.verdict == "unreadable"
    assert "disk2/log: no such directory, and broker.conf says that files of the log lie there" in refused.reasons[0]


def test_a_log_elsewhere_needs_a_setting(tmp_path: Path) -> None:
    store, paths = parted(tmp_path, ",")
    (refused,) = check(store).sources
    assert refused.verdict == "unreadable"
    assert "there is no commitlog/ in it; if the log lies elsewhere, a broker.conf" in refused.reasons[0]
    (tmp_path / "other.conf").write_text(f"storePathCommitLog={paths}\n")
    assert check(store, config=tmp_path / "other.conf").verdict == "conforms"


def test_a_log_that_continues_in_another_folder_is_one_log(tmp_path: Path) -> None:
    """A broker's own: files alternate, and later the first folder is only read."""
    store = copy_of("layouts/paths_5.5.0", tmp_path)
    folders = [sorted(int(file.name) for file in (store / name).iterdir()) for name in ("commitlog", "commitlog2")]
    assert folders[0][-1] > folders[1][0] > folders[0][0]
    report = check(store.parent)
    assert (report.verdict, report.sources[0].records) == ("conforms", 569), report.model_dump_json(indent=1)
    damaged = store / "commitlog2" / f"{folders[1][3]:020d}"
    data = bytearray(damaged.read_bytes())
    data[4] ^= 1  # the magic number of its first record
    damaged.write_bytes(data)
    assert any(
        (found.where.file, found.where.offset) == (f"commitlog2/{damaged.name}", 0)
        for found in check(store.parent).findings
        if found.rule.startswith("log/")
    )


def test_a_copy_is_read_where_it_is_whatever_its_settings_say_of_another_machine(tmp_path: Path) -> None:
    shutil.copytree(recording_as_left("odd/topic_purged"), tmp_path / "copy")
    config = tmp_path / "copy/broker.conf"
    config.write_text(f"{config.read_text()}\nstorePathCommitLog=/nowhere/store/commitlog\n")
    assert check(tmp_path / "copy").sources[0].records == 130
    other = tmp_path / "other"
    shutil.copytree(recording_as_left("normal") / "store/commitlog", other)
    config.write_text(f"{config.read_text()}\nstorePathCommitLog={other}\n")
    report = check(tmp_path / "copy")
    assert (report.verdict, report.sources[0].records) == ("inconclusive", 130)
    assert any("commitlog/ in the store is read, not" in note for note in report.sources[0].notes)


def test_settings_are_read_as_java_reads_them(tmp_path: Path) -> None:
    shutil.copytree(recording_as_left("odd/client_batch_5.5.0"), tmp_path / "copy")
    config = tmp_path / "copy/broker.conf"
    config.write_bytes("# é and ü\nbrokerName=caf\xe9\n".encode("latin-1") + config.read_bytes())
    assert check(tmp_path / "copy").verdict == "conforms"


# -- while a broker writes ---------------------------------------------------------------------------------------------

LOCKED = """
import fcntl, struct, sys
file = open(sys.argv[1], "r+b")
fcntl.fcntl(file, fcntl.F_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0))
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Path]:
    """A copy of a store whose lock another process has, like a running broker."""
    store = shutil.copytree(recording_as_left("unclean") / "store", tmp_path / "store")
    (store / "lock").write_bytes(b"lock")
    with subprocess.Popen(
        [sys.executable, "-c", LOCKED, str(store / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as broker:
        assert broker.stdout is not None
        assert broker.stdout.readline() == b"locked\n"
        yield store
        broker.kill()


def queue_of(store: Path, queue: str) -> Path:
    return next((store / "consumequeue" / queue).iterdir())


def test_what_comes_while_a_store_is_read_is_left_out(running: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the opening and the reading, a whole log file and entries for it come; without them, all fits."""
    whole = check(running)
    assert (whole.verdict, whole.sources[0].live) == ("conforms", True)
    (note,) = [note for note in whole.sources[0].notes if note.startswith("a broker is running on this store")]
    assert re.search(r"its state is judged as of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$", note)
    last = [file for file in log_files(running) if any(file.read_bytes())][-1]
    slots = queue_of(running, "orders/1")
    came, entries = last.read_bytes(), slots.read_bytes()
    last.write_bytes(bytes(len(came)))  # not written yet
    slots.write_bytes(entries[: len(entries) // 40 * 20].ljust(len(entries), b"\0"))

    def comes_then(*arguments: Any, **more: Any) -> Any:
        opened = open_it(*arguments, **more)
        last.write_bytes(came)
        slots.write_bytes(entries)
        return opened

    open_it = opening.open_store
    monkeypatch.setattr("gapless.traces.sources.rocketmq.check.open_store", comes_then)
    report = check(running)
    assert (report.verdict, report.violations) == ("conforms", [])
    assert report.sources[0].records < whole.sources[0].records


def test_a_queue_that_is_deleted_while_it_is_read_is_no_violation(
    running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deleted_then(*arguments: Any, **more: Any) -> Any:
        opened = open_it(*arguments, **more)
        shutil.rmtree(running / "consumequeue/orders")
        recreated = running / "consumequeue/orders/1"
        recreated.mkdir(parents=True)
        entry = (10**9).to_bytes(8, "big") + (99).to_bytes(4, "big") + bytes(8)
        (recreated / f"{0:020}").write_bytes(entry.ljust(20000, b"\0"))
        return opened

    open_it = opening.open_store
    monkeypatch.setattr("gapless.traces.sources.rocketmq.check.open_store", deleted_then)
    report = check(running)
    assert report.violations == []
    assert "orders/1 was deleted, or created again, while it was read: check again" in report.sources[0].reasons


def test_damage_of_a_store_that_is_written_to_is_found_all_the_same(running: Path) -> None:
    slots = queue_of(running, "orders/1")
    data = bytearray(slots.read_bytes())
    data[200:208] = (int.from_bytes(data[200:208], "big") + 8).to_bytes(8, "big")
    slots.write_bytes(data)
    (found,) = check(running).violations
    assert (found.rule, found.trace) == ("queue/entry-points-at-its-message", "orders/1")


def test_a_log_whose_oldest_file_is_deleted_meanwhile_is_opened_again(
    running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []

    def expired_then(*arguments: Any, **more: Any) -> Any:
        opened = open_it(*arguments, **more)
        calls.append(opened)
        if len(calls) == 1:
            log_files(running)[0].unlink()
        return opened

    open_it = opening.open_store
    monkeypatch.setattr("gapless.traces.sources.rocketmq.check.open_store", expired_then)
    report = check(running)
    assert len(calls) == 2
    assert report.verdict != "unreadable", report.sources[0].reasons
    assert any("the log begins at" in note for note in report.sources[0].notes)


# -- topics deleted under traffic --------------------------------------------------------------------------------------


def lives(*firsts: int, jump: int = 0) -> StoreBuilder:
    """Delete and recreate a topic again and again, with the first number of each life; in the last, one may jump."""
    builder = StoreBuilder()
    for first in firsts:
        builder.delete_topic("orders")
        builder.numbers["orders", 0] = first
        for _ in range(4):
            builder.append(Record("orders", body=b"x"))
    builder.numbers["orders", 0] += jump
    builder.append(Record("orders", body=b"x"))
    return builder


def test_a_life_that_is_gone_and_counted_oddly_is_no_accusation(tmp_path: Path) -> None:
    report = check(lives(0, 1, 0).write(tmp_path / "store"))
    assert (report.verdict, report.violations) == ("inconclusive", [])
    (reason,) = report.sources[0].reasons
    assert "has number 1 where 4 comes next; its topic was created again behind it" in reason
    assert check(lives(0, 0, 0).write(tmp_path / "three")).verdict == "conforms"


def test_a_life_that_is_counted_oddly_and_still_read_is_one(tmp_path: Path) -> None:
    (found,) = check(lives(0, 0, jump=2).write(tmp_path / "store")).violations
    assert found.rule == NUMBERS


def test_a_log_that_continues_in_dledger_is_judged_without_what_lay_before(tmp_path: Path) -> None:
    store = copy_of("odd/dledger_moved_5.3.3", tmp_path)
    whole = check([store])
    shutil.rmtree(store / "commitlog")
    report = check([store])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    assert report.coverage["log.append"] < whole.coverage["log.append"] == 31
    assert any(note.startswith("the log begins at 1,048,576") for note in report.sources[0].notes)


def with_settings(settings: str, tmp_path: Path) -> Path:
    """The store whose broker had a pool, and was killed, and more settings behind its own."""
    store = copy_of("odd/pool_killed_5.3.3", tmp_path)
    shutil.copy(recording_as_left("odd/pool_killed_5.3.3") / "client.ndjson", store.parent)
    config = store.parent / "broker.conf"
    config.write_text(f"{config.read_text()}{settings}\n")
    return store.parent


@pytest.mark.parametrize("setting", ["transientStorePoolEnable=false", "brokerRole=SLAVE"])
def test_a_kill_takes_what_was_answered_only_where_a_pool_holds_it_first(setting: str, tmp_path: Path) -> None:
    report = check([with_settings(setting, tmp_path)])
    assert [found.rule for found in report.violations] == [ANSWERED]


@pytest.mark.parametrize("settings", ["flushDiskType=SYNC_FLUSH", "brokerRole=SLAVE\nenableControllerMode=true"])
def test_from_version_5_on_a_pool_is_there_whatever_flushes_and_with_a_controller(
    settings: str, tmp_path: Path
) -> None:
    """For those before it there is none."""
    store = with_settings(settings, tmp_path)
    assert check([store]).verdict == "inconclusive"
    topics = store / "store" / "config" / "topics.json"
    table = json.loads(topics.read_text())
    del table["dataVersion"]["stateVersion"]
    topics.write_text(json.dumps(table))
    assert [found.rule for found in check([store]).violations] == [ANSWERED]


def test_without_maps_there_is_no_pool_where_a_broker_knows_that_setting(tmp_path: Path) -> None:
    """One of 5.5 or later, which writes down how far its queues are on disk."""
    store = with_settings("writeWithoutMmap=true", tmp_path)
    assert check([store]).verdict == "inconclusive"
    with (store / "store" / "checkpoint").open("r+b") as file:
        file.seek(40)
        file.write((1).to_bytes(8, "big"))
    assert [found.rule for found in check([store]).violations] == [ANSWERED]
    without = with_settings("", tmp_path / "mapped")
    shutil.copy(store / "store" / "checkpoint", without / "store" / "checkpoint")
    assert check([without]).verdict == "inconclusive"


def test_a_way_to_flush_that_the_broker_did_not_read_excuses_what_a_pool_took(tmp_path: Path) -> None:
    """It has no such way in small letters, and takes ASYNC_FLUSH."""
    assert check([with_settings("flushDiskType=sync_flush\nbrokerRole=slave", tmp_path)]).verdict == "inconclusive"
