"""Records without a checksum of themselves, where others carry one: a setting that was changed, or damage.

A broker decides in each of its lives for all records (docs/rocketmq.md#property-crc). A store of ours says so itself.
"""

import shutil
import struct
from pathlib import Path

import pytest

from gapless import Report, check
from gapless.store import Settings, Store
from tests.support.rocketmq.checksum_damage import CHANGES, changed, renamed, taken_away
from tests.support.rocketmq.recordings import copy_of, recording
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import SEAL, Record, log_files, read_log

PROMISED = "log/record-carries-the-checksum-that-its-store-promises"
AS_OTHERS = "log/record-carries-a-checksum-as-others-of-its-life-do"
WRONG = "log/record-has-the-checksum-that-its-properties-carry"

SWITCHED = ("layouts/checksums_switched_5.5.0", "layouts/checksums_switched_5.3.3")  # with them, without, with, without
BOUNDARIES = 3  # of lives with checksums and without


def violations(report: Report) -> list[tuple[str, str | None, int | None]]:
    return [(one.rule, one.where.file, one.where.offset) for one in report.findings if one.severity == "violation"]


def lost(report: Report) -> int:
    """The number of records that depart for their checksum; none does for anything else."""
    found = [one for one in report.findings if one.severity == "violation"]
    assert {one.rule for one in found} <= {PROMISED, AS_OTHERS, WRONG}
    return sum(one.count for one in found)


def change_some(store: Path, begin: int) -> None:
    """Change every third record, from number `begin` on, each in its own way."""
    records = read_log(store)
    for n, change in enumerate(CHANGES):
        changed(store, begin + 3 * n, change, records)


# Our own store


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of our own, in which every record carries a checksum."""
    path = tmp_path_factory.mktemp("own") / "store"
    with Store.open(path, Settings(file_size=1 << 14, queue_file_size=2000)) as store:
        for k in range(100):
            store.append("orders", 0, b"body %d" % k, properties={"KEYS": f"order-{k}"})
        store.wait_for("orders", 0, 99)
    return path


def test_a_record_of_our_own_store_that_lost_its_checksum_is_found(own: Path, tmp_path: Path) -> None:
    store = shutil.copytree(own, tmp_path / "store")
    change_some(store, 50)
    for profile in ("strict", "rocketmq"):
        assert lost(check([store], profile=profile)) == len(CHANGES)


def test_the_story_names_the_record_and_what_was_expected(own: Path, tmp_path: Path) -> None:
    store = shutil.copytree(own, tmp_path / "store")
    file, at = changed(store, 70, renamed)
    report = check([store])
    (found,) = report.findings
    text = "\n".join(found.story)
    assert f"departs at {file}+{at}" in text
    assert "message orders/0 number 70, key order-7~" in found.message
    assert "carries no checksum of itself" in found.message
    assert 'omit breaks the rule "the record carries a checksum where its store says that all do".' in text
    assert "Consequence: consumers receive other properties than the producer sent." in text


def test_checksums_that_a_store_of_ours_begins_or_ends_to_write_are_no_damage(tmp_path: Path) -> None:
    """It begins a new life within a millisecond, so no pause tells."""
    path = tmp_path / "store"
    for life, checksums in enumerate((False, True, False, True)):
        kept = Settings(file_size=1 << 14, queue_file_size=2000, checksums=checksums, change=life > 0)
        with Store.open(path, kept) as store:
            for k in range(5):
                store.append("orders", 0, b"body %d" % k, properties={"KEYS": f"order-{k}"})
    assert check([path], profile="strict").verdict == "conforms"
    where = changed(path, -1, taken_away)
    assert violations(check([path])) == [(PROMISED, *where)]


def test_the_word_of_a_store_does_not_count_once_a_broker_has_written(own: Path, tmp_path: Path) -> None:
    store = shutil.copytree(own, tmp_path / "store")
    checkpoint = bytearray((store / "checkpoint").read_bytes())
    checkpoint[:8] = struct.pack(">q", int.from_bytes(checkpoint[:8], "big") - 1)
    (store / "checkpoint").write_bytes(checkpoint)
    changed(store, 70, taken_away)
    report = check([store])
    assert report.verdict == "inconclusive"
    assert any("properties were changed" in reason for reason in report.sources[0].reasons)


# Stores of brokers


@pytest.mark.parametrize("name", SWITCHED)
@pytest.mark.parametrize("settings", [True, False])
def test_a_setting_that_is_switched_between_lives_is_no_damage(name: str, settings: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """Lives without checksums write messages again with the checksum of their first record."""
    store = copy_of(name, tmp_path)
    if not settings:
        (store.parent / "broker.conf").unlink()
    report = check([store])
    assert report.verdict == "conforms"
    assert report.coverage["log.omit"] == BOUNDARIES


def test_the_recordings_have_copied_checksums() -> None:
    """Otherwise the test above shows less than it says."""
    for name in SWITCHED:
        records = read_log(recording(name))
        assert any(SEAL[:9] in record.properties[:-20] for record in records)
        assert {record.properties[-20:-11] == SEAL[:9] for record in records} == {True, False}


def test_a_record_that_lost_its_checksum_among_others_of_its_life_is_found(tmp_path: Path) -> None:
    store = copy_of(SWITCHED[0], tmp_path)
    change_some(store, 300)
    assert lost(check([store])) == len(CHANGES)


@pytest.mark.parametrize("which", [1, 150, 299])
def test_in_the_first_life_of_a_broker_no_pause_excuses_a_record(which: int, tmp_path: Path) -> None:
    builder = StoreBuilder(seals=True)
    for k in range(300):
        builder.now += 60_000
        builder.append(Record("orders", body=b"slow %d" % k, properties=b"KEYS\x01order 1234567890\x02"))
    store = builder.write(tmp_path / "store")
    assert check([store], profile="strict").verdict == "conforms"
    where = changed(store, which, taken_away)
    assert violations(check([store], profile="strict")) == [(AS_OTHERS, *where)]


def slow_lives(lives: tuple[tuple[bool, int], ...]) -> StoreBuilder:
    """A broker that gets a message a minute, in lives with checksums or without, of so many messages."""
    builder = StoreBuilder()
    for seals, count in lives:
        builder.restart(seals=seals)
        for _ in range(count):
            builder.now += 60_000
            builder.append(Record("orders", body=b"slow", properties=b"KEYS\x01order 1234567890\x02"))
    return builder


@pytest.mark.parametrize(
    ("lives", "verdict"),
    [
        (((True, 9), (False, 9), (True, 9)), "conforms"),
        (((False, 9), (True, 9), (False, 9)), "conforms"),
        (((True, 9), (False, 1), (True, 9)), "inconclusive"),
        (((False, 2), (True, 9)), "inconclusive"),
        (((True, 9), (False, 2)), "inconclusive"),
    ],
)
def test_a_few_records_far_from_others_may_be_a_life_or_damage(
    lives: tuple[tuple[bool, int], ...], verdict: str, tmp_path: Path
) -> None:
    report = check([slow_lives(lives).write(tmp_path / "store")], profile="strict")
    assert report.verdict == verdict
    assert not report.findings


def test_settings_explain_the_last_records(tmp_path: Path) -> None:
    store = slow_lives(((True, 9), (False, 2))).write(tmp_path / "store")
    (tmp_path / "broker.conf").write_text("enabledAppendPropCRC=false\n")
    assert check([store]).verdict == "conforms"
    (tmp_path / "broker.conf").write_text("enabledAppendPropCRC=true\n")
    assert check([store]).verdict == "inconclusive"


def test_a_broker_that_starts_on_one_record_looks_like_one_in_its_first_life(tmp_path: Path) -> None:
    """Its checkpoint says 0, where that record begins."""
    builder = StoreBuilder()
    builder.append(Record("orders", body=b"without"))
    builder.restart(seals=True)
    for _ in range(9):
        builder.append(Record("orders", body=b"with"))
    assert builder.recovered == 0
    report = check([builder.write(tmp_path / "store")])
    assert (report.verdict, report.findings) == ("inconclusive", [])


def test_of_several_brokers_no_clock_says_which_life_a_record_is_of(tmp_path: Path) -> None:
    store = copy_of(SWITCHED[0], tmp_path)
    changed(store, 300, taken_away)
    with (store.parent / "broker.conf").open("a") as settings:
        settings.write("brokerRole=SLAVE\n")
    report = check([store])
    assert (report.verdict, violations(report)) == ("inconclusive", [])


def test_a_copied_checksum_at_the_end_is_none_of_its_record(tmp_path: Path) -> None:
    """A life without checksums keeps the property where a message has it, at times as the last one."""
    builder = slow_lives(((True, 9),))
    builder.restart(seals=False)
    for body in (b"before", b"and", b"copied", b"behind"):
        copied = SEAL.replace(b"0000000000", b"0123456789") if body == b"copied" else b"KEYS\x01order\x02"
        builder.append(Record("orders", body=body, properties=copied))
    store = builder.write(tmp_path / "store")
    file = log_files(store)[-1]
    file.write_bytes(_with_number(file.read_bytes(), b"9876543210"))
    assert check([store]).verdict == "conforms"


def _with_number(data: bytes, digits: bytes) -> bytes:
    """The file with these digits in the checksum of one record: a builder writes the right ones."""
    at = data.index(SEAL[:9], data.index(b"copied")) + 9
    return data[:at] + digits + data[at + 10 :]


def test_many_records_that_lost_their_checksums_are_reported_once_for_each_stretch(tmp_path: Path) -> None:
    store = copy_of(SWITCHED[0], tmp_path)
    for which in (100, 101, 102, 104, 300):
        changed(store, which, taken_away)
    report = check([store], profile="strict")
    (found,) = [one for one in report.findings if one.spec == "log"]
    assert (found.rule, found.count) == (AS_OTHERS, 4)  # the first and the last of three, and two alone
    assert "and the 2 records behind it" in found.message
