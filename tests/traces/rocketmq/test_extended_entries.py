"""Extended entries: addresses in place of tag codes, and the units that they lead to."""

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from gapless import check
from gapless.traces.report.values import Report
from tests.support.rocketmq.recordings import RECORDINGS, copy_of, recording, recording_as_left

RECORDED = [path.name.removesuffix(".tar.xz") for path in sorted((RECORDINGS / "layouts").glob("ext_*.tar.xz"))]
WHOLE, KILLED = "layouts/ext_first_5.5.0", "layouts/ext_killed_5.5.0"
ENTRY, UNIT = struct.Struct(">qiq"), struct.Struct(">hqqh")  # position, size, tag · size, tag, time, bitmap
FULL = 2048  # bytes of a file of the extension
QUEUE = "orders/0"
AT = 30  # the entry that is about to be damaged


def entries(store: Path, queue: str = QUEUE) -> list[tuple[int, int, int]]:
    """Read the entries of a queue without our code."""
    data = b"".join(file.read_bytes() for file in sorted((store / "consumequeue" / queue).iterdir()))
    slots = [ENTRY.unpack_from(data, at) for at in range(0, len(data), ENTRY.size)]
    return [slot for slot in slots if slot[1] > 0]


def place(store: Path, entry: int) -> tuple[Path, int]:
    """The file of the unit that an entry names, and where in it the unit lies."""
    at = entries(store)[entry][2] + 2**63
    return store / "consumequeue_ext" / QUEUE / f"{at - at % FULL:020d}", at % FULL


def rules(report: Report) -> list[str]:
    return [finding.rule for finding in report.findings if finding.severity == "violation"]


@pytest.mark.parametrize("name", RECORDED)
def test_what_brokers_left_conforms(name: str) -> None:
    store = recording(f"layouts/{name}")
    queues = [str(path.relative_to(store / "consumequeue")) for path in (store / "consumequeue").glob("*/*")]
    named = sum(tag <= -2147483649 for queue in queues for *_, tag in entries(store, queue))
    report = check([recording_as_left(f"layouts/{name}")])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    assert report.coverage["extension.find_unit"] == report.coverage["queue.index"] == named > 200
    files = list((store / "consumequeue_ext").glob("*/*/*"))
    assert report.coverage["extension.find_file"] == len(files)


def test_the_recordings_have_units_with_and_without_bitmaps_in_several_files() -> None:
    store = recording("layouts/ext_lives_5.5.0")
    sizes = set()
    for entry in range(len(entries(store))):
        file, at = place(store, entry)
        size, _, _, bitmap = UNIT.unpack_from(file.read_bytes(), at)
        assert size == UNIT.size + bitmap
        sizes.add(bitmap)
    assert sizes == {0, 14}
    assert len(list((store / "consumequeue_ext" / QUEUE).iterdir())) > 1


@pytest.mark.parametrize("whole", [0, 1])
def test_an_extension_that_was_copied_before_its_queue_is_no_violation(whole: int, tmp_path: Path) -> None:
    """Units after a missing one distinguish damage: `whole` of them are."""
    store = copy_of(KILLED, tmp_path)
    last = len(entries(store)) - 1
    for entry in range(last - 8, last + 1 - whole):
        file, at = place(store, entry)
        data = bytearray(file.read_bytes())
        size = UNIT.unpack_from(data, at)[0]
        data[at : at + size] = bytes(size)
        file.write_bytes(data)
    report = check(store, copied=True)
    assert report.verdict == ("inconclusive" if whole else "conforms")
    assert any("was copied before its queue" in note for note in report.sources[0].notes) == (not whole)
    assert check(store).verdict == "inconclusive"


# -- faults ------------------------------------------------------------------------------------------------------------

LEADS = "extension/entry-names-a-unit"
SIZE = "extension/unit-has-the-size-that-its-bitmap-makes"
TIME = "extension/unit-has-the-store-time-of-its-message"
Fault = Callable[[Path], tuple[Path, int]]
"""Damages a store, and says where that is to be found."""


def of_unit(which: int, more: int) -> Fault:
    """A field of the unit is another: 0 its size, 1 its tag code, 2 its time, 3 the size of its bitmap."""

    def fault(store: Path) -> tuple[Path, int]:
        file, at = place(store, AT)
        data = bytearray(file.read_bytes())
        fields = list(UNIT.unpack_from(data, at))
        fields[which] += more
        UNIT.pack_into(data, at, *fields)
        file.write_bytes(data)
        return file, at

    return fault


def zeroed(store: Path) -> tuple[Path, int]:
    file, at = place(store, AT)
    data = bytearray(file.read_bytes())
    data[at : at + UNIT.size] = bytes(UNIT.size)
    file.write_bytes(data)
    return file, at


def of_address(made: Callable[[list[tuple[int, int, int]]], int]) -> Fault:
    """The entry names another place."""

    def fault(store: Path) -> tuple[Path, int]:
        file = store / "consumequeue" / QUEUE / f"{0:020d}"
        data = bytearray(file.read_bytes())
        position, size, _ = ENTRY.unpack_from(data, AT * ENTRY.size)
        address = made(entries(store))
        ENTRY.pack_into(data, AT * ENTRY.size, position, size, address)
        file.write_bytes(data)
        there = sorted((store / "consumequeue_ext" / QUEUE).iterdir())
        base = max(int(one.name) for one in there if int(one.name) <= address + 2**63)
        return store / "consumequeue_ext" / QUEUE / f"{base:020d}", address + 2**63 - base

    return fault


def without_a_file(store: Path) -> tuple[Path, int]:
    file, at = place(store, 0)
    file.unlink()
    return file, at


def cut_short(store: Path) -> tuple[Path, int]:
    file, _ = place(store, 0)
    file.write_bytes(file.read_bytes()[:-100])
    return file, FULL - 100


FAULTS: dict[str, tuple[Fault, str]] = {
    "another tag code": (of_unit(1, 1), "queue/entry-has-the-tag-code-of-its-message"),
    "another time": (of_unit(2, -1), TIME),
    "a unit too long": (of_unit(0, 4), SIZE),
    "a bitmap too long": (of_unit(3, 1), SIZE),
    "a unit of zeros": (zeroed, LEADS),
    "a unit that ends a file": (of_unit(0, -40), LEADS),
    "the unit of a later message": (of_address(lambda slots: slots[AT + 9][2]), TIME),
    "behind all units": (of_address(lambda slots: slots[-1][2] + 3 * FULL), LEADS),
    "the last bytes of a file": (of_address(lambda _: FULL - 2 - 2**63), LEADS),
    "a file that is gone": (without_a_file, LEADS),
    "a file that was cut short": (cut_short, "extension/file-of-the-extension-has-its-full-length"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_at_its_place(fault: str, tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    damage, rule = FAULTS[fault]
    file, offset = damage(store)
    report = check([store.parent])
    assert report.verdict == "departs"
    found = next(finding for finding in report.findings if finding.rule == rule)
    assert (found.where.file, found.where.offset) == (str(file.relative_to(store)), offset)


def test_an_address_into_the_middle_of_a_unit_is_found(tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    of_address(lambda slots: slots[AT][2] + 2)(store)
    assert rules(check([store.parent]))


# -- what must be tolerated --------------------------------------------------------------------------------------------


def test_a_unit_that_no_entry_names_is_left_alone(tmp_path: Path) -> None:
    """A message that is dispatched again gets another unit, though it has its entry."""
    store = copy_of(WHOLE, tmp_path)
    file, at = place(store, len(entries(store)) - 1)
    data = bytearray(file.read_bytes())
    size, *_ = UNIT.unpack_from(data, at)
    data[at + size : at + size + UNIT.size] = UNIT.pack(UNIT.size, 5, 7, 0)
    file.write_bytes(data[:FULL])
    assert check([store.parent]).verdict == "conforms"


def test_a_unit_that_a_power_loss_took_is_no_violation(tmp_path: Path) -> None:
    store = copy_of(KILLED, tmp_path)
    zeroed(store)
    report = check([store.parent])
    assert not rules(report)
    assert report.verdict == "inconclusive"
    assert any("consumequeue_ext/" in reason for reason in report.sources[0].reasons)


def test_plain_entries_next_to_an_extension_are_judged_as_such(tmp_path: Path) -> None:
    """The setting was switched on, and nothing was sent since."""
    store = copy_of("layouts/index_first_5.5.0", tmp_path)
    shutil.copytree(recording(WHOLE) / "consumequeue_ext", store / "consumequeue_ext")
    report = check([store.parent])
    assert report.verdict == "conforms"
    assert not report.coverage["extension.find_unit"]
    assert any(line.startswith("extension:") for line in report.not_exercised)
