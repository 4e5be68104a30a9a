"""Queues of topics with `queue.type=BatchCQ`: entries that stand for several numbers each, in files of their own."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from gapless import check
from gapless.traces.sources.rocketmq.queues.batch_queues import batch_queues
from tests.support.rocketmq.recordings import RECORDINGS, copy_of, recording_as_left

RECORDED = {  # records, and among them inner batches, as another reader counts them
    "batchcq_lives_5.3.3": (1160, 94),
    "batchcq_lives_5.5.0": (1160, 94),
    "batchcq_killed_5.3.3": (750, 75),
    "batchcq_killed_5.5.0": (750, 75),
}
UNIT = struct.Struct(">qiqqqhii")  # position, size, tag, store time, first number, how many, compacted, reserved
PLACE = "batchconsumequeue/inner/0"
PLAIN, BATCH = 0, 1  # units of inner/0: of one message, and of the inner batch behind it


def test_every_recording_is_judged_here() -> None:
    there = {path.name.removesuffix(".tar.xz") for path in (RECORDINGS / "layouts").glob("batchcq_*.tar.xz")}
    assert there == RECORDED.keys()


def units_of(store: Path, place: str = PLACE) -> list[tuple[int, ...]]:
    """Read the entries of a queue without our code."""
    data = b"".join(file.read_bytes() for file in sorted((store / place).iterdir()))
    units = [UNIT.unpack_from(data, at) for at in range(0, len(data) - UNIT.size + 1, UNIT.size)]
    return [unit for unit in units if unit[1] > 0]


@pytest.mark.parametrize("name", RECORDED)
def test_batch_queues_conform(name: str) -> None:
    records, batches = RECORDED[name]
    report = check([recording_as_left(f"layouts/{name}")])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    assert report.sources[0].records == records
    covered = report.coverage
    assert covered["queue.index_batch"] == batches
    waits = [
        note for note in report.sources[0].notes if "wait for their entries" in note or "waits for its entry" in note
    ]
    waiting = sum(int(note.split()[0]) for note in waits)
    assert covered["queue.append"] - covered["queue.index"] - batches == waiting
    assert covered["queue.acknowledge"] > records - 10


def test_the_recordings_have_batches_of_several_messages(tmp_path: Path) -> None:
    units = units_of(copy_of("layouts/batchcq_lives_5.5.0", tmp_path))
    assert sum(count > 1 for *_, count, _compacted, _reserved in units) > 10
    assert [units[at][5] > 1 for at in (PLAIN, BATCH)] == [False, True]


def test_slots_are_those_that_another_reader_finds(tmp_path: Path) -> None:
    store = copy_of("layouts/batchcq_lives_5.3.3", tmp_path)
    found = batch_queues(store, 0)
    assert found is not None
    slots = Path(found.copy).read_bytes()
    for (topic, queue), (file,) in found.queues.items():
        expected = b""
        for position, size, tag, _, number, count, *_ in units_of(store, f"batchconsumequeue/{topic}/{queue}"):
            assert file.base // 20 + len(expected) // 20 == number
            expected += struct.pack(">qiq", position, size, tag) + struct.pack(">qiq", count, -1, 0) * (count - 1)
        assert slots[file.at : file.at + file.length] == expected


# -- faults ------------------------------------------------------------------------------------------------------------


def change(
    at: int, made: Callable[[list[tuple[int, ...]]], dict[int, tuple[int, ...] | None]]
) -> Callable[[Path], int]:
    """A fault: units of the first file are others, or gone. Returns the unit that it is about."""

    def fault(store: Path) -> int:
        file = store / PLACE / f"{0:020}"
        data = bytearray(file.read_bytes())
        units = [UNIT.unpack_from(data, place) for place in range(0, len(data), UNIT.size)]
        for unit, fields in made(units).items():
            data[unit * UNIT.size : (unit + 1) * UNIT.size] = UNIT.pack(*fields) if fields else bytes(UNIT.size)
        file.write_bytes(data)
        return at

    return fault


def field(unit: int, which: int, more: int) -> Callable[[Path], int]:
    return change(unit, lambda units: {unit: tuple(v + more * (at == which) for at, v in enumerate(units[unit]))})


ENDS = "queue/entry-ends-where-its-batch-ends"
LEFT_OUT = "queue/no-entry-before-it-is-missing"
FAULTS: dict[str, tuple[Callable[[Path], int], str]] = {
    "position of a message": (field(PLAIN, 0, 8), "queue/entry-points-at-its-message"),
    "position of a batch": (field(BATCH, 0, -8), "queue/entry-points-at-its-message"),
    "size of a message": (field(PLAIN, 1, 1), "queue/entry-has-the-size-of-its-message"),
    "size of a batch": (field(BATCH, 1, -1), "queue/entry-has-the-size-of-its-message"),
    "tag of a message": (field(PLAIN, 2, 1), "queue/entry-has-the-tag-code-of-its-message"),
    "tag of a batch": (field(BATCH, 2, 1), "queue/entry-has-the-tag-code-of-its-message"),
    "a message counted as two": (field(PLAIN, 5, 1), ENDS),
    "a batch with one too many": (field(BATCH, 5, 1), ENDS),
    "a batch with one too few": (field(BATCH, 5, -1), ENDS),
    "a batch counted as one": (change(BATCH, lambda u: {BATCH: (*u[BATCH][:5], 1, -1, 0)}), ENDS),
    "a message without its entry": (change(PLAIN, lambda _: {PLAIN: None}), LEFT_OUT),
    "a batch without its entry": (change(BATCH, lambda _: {BATCH: None}), LEFT_OUT),
    "the first number of a batch": (field(BATCH, 4, 1), LEFT_OUT),
    "an entry twice": (change(12, lambda u: {12: u[11]}), LEFT_OUT),
    "two that changed places": (
        change(11, lambda u: {11: u[12], 12: u[11]}), "queue/entry-comes-behind-those-before-it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("store", ["batchcq_lives_5.3.3", "batchcq_lives_5.5.0"])
def test_a_wrong_entry_is_found_where_it_lies(name: str, store: str, tmp_path: Path) -> None:
    fault, rule = FAULTS[name]
    damaged = copy_of(f"layouts/{store}", tmp_path)
    unit = fault(damaged)
    (found,) = check(damaged).violations
    assert (found.rule, found.trace) == (rule, "inner/0")
    assert found.where.file == f"{PLACE}/{0:020}"
    near = (unit, unit + 1) if rule == LEFT_OUT else (unit,)  # what is missing is missing before the next
    assert found.where.offset in [UNIT.size * at for at in near]
    assert len(found.story) <= 12


def test_a_file_that_was_cut_off_is_found(tmp_path: Path) -> None:
    store = copy_of("layouts/batchcq_lives_5.5.0", tmp_path)
    file = max((store / PLACE).iterdir())
    file.write_bytes(file.read_bytes()[: -UNIT.size])
    (found,) = check(store).violations
    assert found.rule == "queue/file-of-the-consume-queue-has-its-full-length"
    assert found.where.file == f"{PLACE}/{file.name}"


@pytest.mark.parametrize("which", [3, 6, 7])
def test_unpromised_fields_are_not_judged(which: int, tmp_path: Path) -> None:
    store = copy_of("layouts/batchcq_lives_5.5.0", tmp_path)
    field(BATCH, which, 1)(store)
    assert check(store).verdict == "conforms"


def test_old_entries_behind_the_last_one_are_left_over_from_a_crash(tmp_path: Path) -> None:
    store = copy_of("layouts/batchcq_killed_5.5.0", tmp_path)
    file = max((store / PLACE).iterdir())
    data, units = bytearray(file.read_bytes()), units_of(store)
    end = len(units) * UNIT.size - int(file.name)
    for place, unit in ((0, units[-3]), (1, units[5]), (2, (10**9, *units[7][1:4], 10**6, *units[7][5:]))):
        at = end + place * UNIT.size
        data[at : at + UNIT.size] = UNIT.pack(*unit)
    file.write_bytes(data)
    report = check(store)
    assert (report.verdict, report.violations) == ("conforms", [])


def test_entries_that_the_next_start_writes_are_waited_for(tmp_path: Path) -> None:
    store = copy_of("layouts/batchcq_killed_5.5.0", tmp_path)
    file = max((store / PLACE).iterdir())
    units = units_of(store)
    end = len(units) * UNIT.size - int(file.name)
    data = bytearray(file.read_bytes())
    data[end - UNIT.size : end] = bytes(UNIT.size)
    file.write_bytes(data)
    report = check(store)
    assert report.violations == []
    assert "waits for its entry" in " ".join((*report.sources[0].notes, *report.sources[0].reasons))
    (store / "abort").unlink()
    (found,) = check(store).violations
    assert (found.rule, found.trace) == ("queue/every-message-has-its-entry", "inner/0")
