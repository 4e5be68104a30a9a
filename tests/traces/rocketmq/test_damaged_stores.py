"""Each kind of damage is found and named where it lies, and what only looks like damage is left alone."""

import shutil
import struct
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings

from gapless import Report, check
from gapless.traces.sources.rocketmq.segments import tasks
from tests.support.night import NIGHT, by_day
from tests.support.rocketmq.damage import (
    CLEAN_FAULTS,
    FAULTS,
    FILE_FAULTS,
    LEGAL,
    LEGAL_WITH_FILES,
    QUEUE_FAULTS,
    RECORD_FAULTS,
    WRONG_ENTRIES,
    Bench,
    Change,
    Fault,
    Pick,
    Place,
    Where,
    clock_stepped_back,
    name_of,
    queue_emptied_from_here,
    queue_missing,
)
from tests.support.rocketmq.recordings import COUNTS, copy_of, recording, varied_store
from tests.support.rocketmq.store_builder import StoreBuilder, builders, varied
from tests.support.rocketmq.stores import PREPARED, Entry, Record, read_log

PLACES: tuple[Place, ...] = ("first", "last", "file start", "file end", "any")
LONGEST_STORY = 25  # lines

# Every fault at every place of a small store of our own, and at some places of stores that brokers wrote.
CASES = (
    *product(FAULTS, ("varied 1",), PLACES),
    *product(FAULTS, ("varied 2",), PLACES[-1:]),
    *product(QUEUE_FAULTS, ("midlife",), PLACES),
    *product(QUEUE_FAULTS, ("pop_retry", "lmq", "odd_clients"), PLACES[-1:]),
    *product(WRONG_ENTRIES, ("unclean",), PLACES[-1:]),
    *product(RECORD_FAULTS, ("pop_retry", "odd_clients"), PLACES[:2]),
    *product(RECORD_FAULTS, ("midlife",), PLACES),
    *product(RECORD_FAULTS, ("lmq", "unclean", "concurrent"), PLACES[-1:]),
    *product(FILE_FAULTS, ("midlife",), PLACES),
    *product(FILE_FAULTS, ("normal", "kill9"), PLACES[-1:]),
    *product(CLEAN_FAULTS, ("pop_retry", "lmq", "v4", "normal_533"), PLACES[-1:]),
)


@pytest.mark.parametrize(("fault", "store", "place"), by_day(CASES, 1 / 8), ids=name_of)
def test_damage_is_found_where_it_lies(fault: Fault, store: str, place: Place, tmp_path: Path) -> None:
    damaged = copy_of(store, tmp_path)
    where = fault(damaged, Pick(place, f"{fault.__name__} in {store}"))
    report = check([damaged])
    assert (report.verdict, report.exit_code) == ("departs", 1), where
    violations = [finding for finding in report.findings if finding.severity == "violation"]
    placed = [finding for finding in violations if names(finding.where.file, finding.where.offset, where)]
    assert placed, f"{where}, but found {[(finding.rule, finding.where) for finding in violations]}"
    assert any(finding.spec == where.family for finding in placed), where
    elsewhere = [finding for finding in violations if finding not in placed]
    assert {finding.spec for finding in elsewhere} <= where.echoes, where
    if not where.echoes:
        assert len(violations) == 1, [(finding.rule, finding.where) for finding in violations]
    for finding in violations:
        assert 0 < len(finding.story) <= LONGEST_STORY
        assert finding.message
        assert finding.needs


def names(file: str | None, offset: int | None, where: Where) -> bool:
    """True if a finding's place lies in the damaged place."""
    return file == where.file and offset is not None and where.offset <= offset < where.offset + where.length


@pytest.mark.parametrize(("fault", "place"), by_day([*product(FAULTS, PLACES)], 1 / 3), ids=name_of)
def test_damage_is_planted_where_it_says(fault: Fault, place: Place, tmp_path: Path) -> None:
    """Otherwise the test above demands the impossible."""
    damaged = copy_of("varied 3", tmp_path)
    where = fault(damaged, Pick(place, fault.__name__))
    assert bytes_at(damaged, where) != bytes_at(varied_store(3), where)


def bytes_at(store: Path, where: Where) -> bytes:
    """Return the bytes at a place; nothing if there is no such file."""
    file = store / where.file
    return file.read_bytes()[where.offset : where.offset + where.length] if file.exists() else b""


# What is whole


@pytest.mark.parametrize("store", COUNTS)
def test_a_recording_conforms(store: str) -> None:
    report = check([recording(store)])
    assert (report.verdict, report.exit_code) == ("conforms", 0), shown(report)
    assert report.sources[0].records == COUNTS[store][0]
    assert report.sources[0].clean == (store != "unclean")


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(builder=builders())
def test_no_valid_store_is_accused(builder: StoreBuilder) -> None:
    """If it has nothing that can be judged, such as inner batches alone, it need not conform."""
    with TemporaryDirectory() as room:
        report = check([builder.write(Path(room) / "store")])
    assert report.verdict in {"conforms", "inconclusive"}, shown(report)


def test_a_store_of_thousands_of_queues_conforms(tmp_path: Path) -> None:
    builder = StoreBuilder(log_file_size=1 << 20, queue_file_size=20)
    for queue in range(3000):
        builder.append(Record("orders", queue=queue, body=b"one of many"))
    report = check([builder.write(tmp_path / "store", preallocated=True)])
    assert report.verdict == "conforms", shown(report)
    assert report.sources[0].records == 3000


# What is legal


@pytest.mark.parametrize(
    ("change", "store"),
    by_day(
        [
            *product(LEGAL, ("varied 4", "varied 5", "pop_retry", "odd_clients", "midlife", "unclean")),
            *product(LEGAL_WITH_FILES, ("varied 4", "varied 5", "normal", "midlife")),
        ],
        1 / 3,
    ),
    ids=name_of,
)
def test_what_is_legal_is_not_accused(change: Change, store: str, tmp_path: Path) -> None:
    changed = copy_of(store, tmp_path)
    change(changed, Pick("any", f"{change.__name__} in {store}"))
    assert_not_accused(check([changed]))


def test_a_clock_that_steps_back_is_noted(tmp_path: Path) -> None:
    store = copy_of("varied 6", tmp_path)
    clock_stepped_back(store, Pick("any", "any time"))
    report = check([store])
    assert_not_accused(report)
    assert any("clock" in f"{finding.rule} {finding.message}" for finding in report.findings)


@pytest.mark.parametrize("queue_file_size", [20, 200, 6000])
@pytest.mark.parametrize("counts", [(30, 30), (30, 2), (2, 30), (40, 1, 40), (1, 1, 1)])
def test_a_topic_recreated_is_noted(counts: tuple[int, ...], queue_file_size: int, tmp_path: Path) -> None:
    builder = StoreBuilder(log_file_size=2048, queue_file_size=queue_file_size)
    for count in counts:
        builder.delete_topic("orders")
        for _ in range(count):
            builder.append(Record("orders", body=b"again"))
            builder.append(Record("payments", body=b"as ever"))
    report = check([builder.write(tmp_path / "store")])
    assert_not_accused(report)
    assert any("anew" in f"{finding.rule} {finding.message}" for finding in report.findings)


def test_messages_of_a_deleted_topic_need_no_entries(tmp_path: Path) -> None:
    builder = varied(10, count=60)
    builder.delete_topic("orders")
    report = check([builder.write(tmp_path / "store")])
    assert_not_accused(report)


def test_the_crash_of_a_broker_at_any_byte_is_legal(tmp_path: Path) -> None:
    """Here the torn record is the first of a file, or stands behind others."""
    torn = Record("orders", body=b"never finished", properties=b"TAGS\x01a\x02")
    for written in range(0, torn.size, 3 if NIGHT else 9):
        builder = varied(7, count=40 + written)
        builder.tear(torn, written)
        store = builder.write(tmp_path / f"store-{written}", clean=False, preallocated=bool(written % 2))
        assert_not_accused(check([store]))


def test_the_last_messages_before_a_crash_need_no_entries(tmp_path: Path) -> None:
    builder = varied(8, count=60)
    builder.now += 10_000
    for _ in range(3):
        builder.append(Record("orders", body=b"not dispatched"), dispatched=False)
    assert_not_accused(check([builder.write(tmp_path / "store", clean=False)]))


@pytest.mark.parametrize("fault", [queue_emptied_from_here, queue_missing])
def test_after_a_crash_queues_are_built_again(fault: Fault, tmp_path: Path) -> None:
    """The broker would rebuild them: its checkpoint of the queues is older than its whole log."""
    store = copy_of("unclean", tmp_path)
    fault(store, Pick("any", fault.__name__))
    report = check([store])
    assert report.verdict in {"conforms", "inconclusive"}, shown(report)


def test_the_last_messages_of_a_clean_log_need_entries(tmp_path: Path) -> None:
    builder = varied(8, count=60)
    lost = builder.append(Record("orders", body=b"not dispatched"), dispatched=False)
    report = check([builder.write(tmp_path / "store")])
    assert report.verdict == "departs"
    (violation,) = (finding for finding in report.findings if finding.severity == "violation")
    assert violation.trace == "orders/0"
    assert violation.here
    assert lost.number > 0


def test_a_log_that_starts_late_may_start_at_any_number(tmp_path: Path) -> None:
    builder = StoreBuilder(end=1 << 20, numbers={("orders", 0): 17, ("orders", 1): 30})
    for number in range(40):
        builder.append(Record("orders", queue=number % 2, body=b"late"))
    report = check([builder.write(tmp_path / "store")])
    assert report.verdict == "conforms", shown(report)


def test_records_outside_of_queues_are_not_missed(tmp_path: Path) -> None:
    builder = StoreBuilder()
    for number in range(20):
        builder.append(Record("orders", sys_flag=PREPARED if number % 2 else 0, body=b"half of them"))
    report = check([builder.write(tmp_path / "store")])
    assert report.verdict == "conforms", shown(report)


@pytest.mark.parametrize("seed", by_day(range(30)))
def test_any_flipped_bit_of_an_entry_is_found(seed: int, tmp_path: Path) -> None:
    store = copy_of("varied 9", tmp_path)
    bench = Bench(store, Pick("any", str(seed)))
    slot = bench.pick.of(bench.user_queue())
    flip(store / slot.file, slot.offset * 8 + bench.pick.random.randrange(160))
    report = check([store])
    (violation,) = (finding for finding in report.findings if finding.severity == "violation")
    assert (violation.where.file, violation.where.offset) == (slot.file, slot.offset)


@pytest.mark.parametrize("seed", by_day(range(30)))
def test_any_flipped_bit_of_a_sealed_record_is_found(seed: int, tmp_path: Path) -> None:
    """The property CRC covers all that lies before it, be it known to the checker or not; its digits count too."""
    store = copy_of("varied 9", tmp_path)
    bench = Bench(store, Pick("any", str(seed)))
    spot = bench.pick.of([spot for spot in bench.spots() if "__CRC32#" in spot.record.property_map])
    digits = range(spot.length - 11, spot.length - 1)
    byte = bench.pick.random.choice((bench.pick.random.randrange(spot.length - 20), *digits[::5]))
    flip(store / spot.file, (spot.offset + byte) * 8 + bench.pick.random.randrange(8))
    report = check([store])
    places = [(finding.where.file, finding.where.offset) for finding in report.findings]
    assert report.verdict == "departs"
    assert any(file == spot.file and 0 <= offset - spot.offset < spot.length for file, offset in places)


@pytest.mark.parametrize("slot", [3, 5])
@pytest.mark.parametrize("entry", [Entry(1, 0, 0), Entry(1 << 40, 0, 0), Entry(0, 0, 7), Entry(-1, -1, 0)])
def test_bytes_in_an_unused_slot_are_no_violation(entry: Entry, slot: int, tmp_path: Path) -> None:
    """A slot without a size is none that a broker reads (docs/rocketmq.md#entry)."""
    builder = StoreBuilder()
    for _ in range(3):
        builder.append(Record("orders", body=b"three of them"))
    builder.queues["orders", 0][slot] = entry
    assert_not_accused(check([builder.write(tmp_path / "store")]))


@pytest.mark.parametrize("appended", [1, 30])
def test_old_slots_of_a_truncated_queue_are_no_violation(appended: int, tmp_path: Path) -> None:
    """Recovery moves the end of a queue back, and leaves the slots behind it as they were.

    Source: docs/rocketmq.md#truncation, #cq1.
    """
    builder = StoreBuilder()
    for number in range(20):
        builder.append(Record("orders", queue=number % 2, body=b"an old message"))
    old = {queue: dict(entries) for queue, entries in builder.queues.items()}
    builder.truncate(6)
    for _ in range(appended):
        builder.append(Record("payments", body=b"a new message"))
    for queue, entries in old.items():
        builder.queues[queue] = entries | builder.queues[queue]
    report = check([builder.write(tmp_path / "store")])
    assert report.verdict in {"conforms", "inconclusive"}, shown(report)


def flip(file: Path, bit: int) -> None:
    """Turn one bit of a file over."""
    data = bytearray(file.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    file.write_bytes(data)


def test_an_entry_beyond_the_last_message_is_not(tmp_path: Path) -> None:
    """Three messages, four entries: the fourth sends consumers to a message that does not exist."""
    builder = StoreBuilder()
    for _ in range(3):
        builder.append(Record("orders", body=b"three of them"))
    builder.queues["orders", 0][3] = builder.queues["orders", 0][2]
    report = check([builder.write(tmp_path / "store")])
    (violation,) = (finding for finding in report.findings if finding.severity == "violation")
    assert (violation.where.file, violation.where.offset) == (f"consumequeue/orders/0/{0:020}", 60)


def assert_not_accused(report: Report) -> None:
    """Nothing departs, and all that was there could be judged."""
    assert not [finding for finding in report.findings if finding.severity == "violation"], shown(report)
    left_open = [reason for source in report.sources for reason in source.reasons]
    if left_open and all(" undecided halves lie below the half cursor" in reason for reason in left_open):
        assert not report.sources[0].clean  # a tear that took an op with it: no crash of a broker alone does that
        return
    assert (report.verdict, report.exit_code) == ("conforms", 0), shown(report)


def shown(report: Report) -> str:
    """Format a report, for a test that did not expect it."""
    return report.model_dump_json(indent=1)[:4000]


# Found by strangers


BLANK_SLOT = struct.pack(">qiq", 0, 0x7FFFFFFF, 0)


@pytest.mark.parametrize("place", ["first", "any", "last"])
def test_a_blank_slot_behind_an_entry_is_found(place: Place, tmp_path: Path) -> None:
    """Blanks fill a queue's first file up to its first entry, and stand nowhere else."""
    store = copy_of("varied 1", tmp_path)
    slot = Pick(place, "blank").of(Bench(store, Pick(place, "blank")).user_queue()[1:])
    with (store / slot.file).open("r+b") as file:
        file.seek(slot.offset)
        file.write(BLANK_SLOT)
    report = check([store])
    (violation,) = report.violations
    assert (violation.where.file, violation.where.offset) == (slot.file, slot.offset)


def test_a_queue_of_nothing_but_blanks_is_found(tmp_path: Path) -> None:
    store = copy_of("normal", tmp_path)
    for file in (store / "consumequeue").glob("*/*/*"):
        file.write_bytes(BLANK_SLOT * (file.stat().st_size // 20))
    (violation,) = check([store]).violations
    assert violation.rule == "queue/entry-follows-the-blank-slots"


def test_entries_of_a_queue_without_messages_leave_it_open(tmp_path: Path) -> None:
    store = copy_of("normal", tmp_path)
    shutil.copytree(store / "consumequeue/orders/1", store / "consumequeue/orders/9")
    report = check([store])
    assert (report.verdict, report.exit_code) == ("inconclusive", 3)
    assert "orders/9" in report.sources[0].reasons[0]


def test_a_record_torn_in_its_properties_is_found_where_it_lies(tmp_path: Path) -> None:
    """The body's checksum holds, and so do all lengths; a list of properties ends in no zero."""
    builder = StoreBuilder()
    records = [builder.append(Record("orders", body=b"whole", properties=b"KEYS\x01k\x02")) for _ in range(9)]
    store = builder.write(tmp_path / "store")
    torn = records[4]
    with (store / "commitlog" / f"{0:020}").open("r+b") as file:
        file.seek(torn.end - 3)
        file.write(bytes(3))
    (violation,) = check([store]).violations
    assert (violation.spec, violation.position) == ("log", torn.position)


def test_the_entry_that_has_been_missing_for_long_names_its_message(tmp_path: Path) -> None:
    """Its message lies some splits before the place where the queue is refused."""
    store = copy_of("midlife", tmp_path)
    whole = check([store], jobs=1)
    (store / "consumequeue/orders/3").rename(tmp_path / "gone")
    (violation,) = check([store]).violations
    row = next(row for row in whole.queues if (row.topic, row.queue) == ("orders", 3))
    first = row.first
    lost = next(r for r in read_log(store) if (r.topic, r.queue, r.number) == ("orders", 3, first))
    assert violation.position == lost.position
    extent = f"all {row.end - first:,} entries"
    why = f"are missing: its folder is not there; the first message lies at {lost.position}"
    assert (violation.message, violation.summary) == (f"orders/3: {extent} {why}", f"{extent} of orders/3 {why}")


def test_damage_in_a_queue_recreated_is_found_where_it_lies(tmp_path: Path) -> None:
    """And not taken for a queue that never was: the numbers are lawful, one entry is not."""
    builder = StoreBuilder(log_file_size=2048)
    for count in (30, 20):
        builder.delete_topic("orders")
        for _ in range(count):
            builder.append(Record("orders", body=b"again"))
    store = builder.write(tmp_path / "store")
    queue = store / "consumequeue/orders/0" / f"{0:020}"
    data = bytearray(queue.read_bytes())
    data[7 * 20 + 11] ^= 1  # the size in entry 7
    queue.write_bytes(data)
    report = check([store])
    (violation,) = report.violations
    assert violation.rule == "queue/entry-has-the-size-of-its-message"
    assert (violation.where.file, violation.where.offset) == (f"consumequeue/orders/0/{0:020}", 140)


def test_a_checkpoint_alone_is_no_violation(tmp_path: Path) -> None:
    """It may be damaged as well: no entry names a record beyond the log's end."""
    store = copy_of("normal", tmp_path)
    data = bytearray((store / "checkpoint").read_bytes())
    data[1] ^= 1
    (store / "checkpoint").write_bytes(data)
    report = check([store])
    assert (report.verdict, report.exit_code) == ("inconclusive", 3)
    assert "the checkpoint is damaged" in report.sources[0].reasons[0]


def test_a_segment_without_any_message_of_a_queue_can_be_read_again(tmp_path: Path) -> None:
    """Some log files have only records outside of all queues, and a queue was recreated around them."""
    builder = StoreBuilder(log_file_size=1024)
    for _ in range(2):
        for _ in range(30):
            builder.append(Record("orders", body=bytes(100), sys_flag=PREPARED))
        builder.delete_topic("orders")
        for _ in range(6):
            builder.append(Record("orders", body=b"again"))
    assert_not_accused(check([builder.write(tmp_path / "store")]))


def _with_damage(folder: Path, at: int, flipped: int) -> Path:
    """A store of 300 records: in 100 of them, the byte at this place is another."""
    builder = StoreBuilder(log_file_size=1 << 20)
    for number in range(300):
        builder.append(Record("orders", body=b"message %03d" % number))
    store = builder.write(folder / "store")
    (log,) = (store / "commitlog").iterdir()
    data = bytearray(log.read_bytes())
    for record in builder.records[10:210:2]:
        data[record.position + at] ^= flipped
    log.write_bytes(data)
    return store


def test_every_damaged_body_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those behind the 64th were neither counted nor mentioned: the report had *64 violations found*."""
    store = _with_damage(tmp_path, 90, 1)
    report = check(store, jobs=1)
    assert [(found.rule, found.count) for found in report.findings] == [("log/body-has-its-checksum", 100)]
    assert report.sources[0].notes == []
    monkeypatch.setattr(tasks, "MOST_COUNTED", 8)
    report = check(store, jobs=1)
    assert report.findings_total == 64 + 8
    (note,) = report.sources[0].notes
    assert note.endswith("there may be more violations than are counted")


def test_where_damage_ends_the_reading_the_report_says_so(tmp_path: Path) -> None:
    report = check(_with_damage(tmp_path, 4, 255), jobs=1)
    assert report.findings_total == 65
    (note,) = report.sources[0].notes
    assert note.endswith("there may be more violations than are counted")
