"""The index of a DLedger log: every entry has its unit of 32 bytes, which says where it lies."""

import os
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from gapless import check
from gapless.traces.report.values import Report
from gapless.traces.sources.rocketmq.layouts.dledger_index import judge as dledger_index
from gapless.traces.sources.rocketmq.layouts.dledger_index.units import EntryColumns, entries_between
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from tests.support.command_line import gapless
from tests.support.night import by_day
from tests.support.rocketmq.recordings import RECORDINGS, recording, recording_as_left

RECORDED = [path.name.removesuffix(".tar.xz") for path in sorted((RECORDINGS / "layouts").glob("dledger_*.tar.xz"))]
WHOLE, KILLED = "dledger_lives_5.5.0", "dledger_killed_5.3.3"
UNIT = struct.Struct(">iqiqq")  # magic, position, size, index, term
AT, LAST = 400, {WHOLE: 1000, KILLED: 521}  # the entry whose unit is about to be damaged, and the last one


def index_of(store: Path) -> Path:
    (file,) = store.glob("dledger-*/index/*")
    return file


def damaged(tmp_path: Path, name: str = WHOLE) -> Path:
    """A copy to damage; the index takes 160 MiB, and nothing is in most of it."""
    subprocess.run(["cp", "-a", "--sparse=always", recording(f"layouts/{name}"), tmp_path], check=True)  # noqa: S607
    return tmp_path / "store"


def write(store: Path, at: int, data: bytes) -> None:
    with index_of(store).open("r+b") as file:
        file.seek(at)
        file.write(data)


def unit(store: Path, number: int) -> list[int]:
    with index_of(store).open("rb") as file:
        file.seek(number * UNIT.size)
        return list(UNIT.unpack(file.read(UNIT.size)))


def rules(report: Report) -> list[str]:
    return [finding.rule for finding in report.findings if finding.severity == "violation"]


@pytest.mark.parametrize("name", RECORDED)
def test_every_entry_has_its_unit(name: str) -> None:
    """Read without our code: units point at headers that have their index and their size."""
    store = recording(f"layouts/{name}")
    files = {int(file.name): file.read_bytes() for file in store.glob("dledger-*/data/*")}
    number = 0
    while (found := unit(store, number))[0] == 1:
        base = found[1] - found[1] % 65536
        magic, size, index, term, position = struct.unpack_from(">iiqqq", files[base], found[1] - base)
        assert found == [magic, position, size, index, term]
        number += 1
    report = check([recording_as_left(f"layouts/{name}")])
    assert report.coverage["dledger_index.find_unit"] == report.coverage["log.append"] == number > 300
    assert not [finding for finding in report.findings if finding.spec == "dledger_index"]


Fault = Callable[[Path], None]


def of_unit(field: int, value: Callable[[int], int]) -> Fault:
    def fault(store: Path) -> None:
        values = unit(store, AT)
        values[field] = value(values[field])
        write(store, AT * UNIT.size, UNIT.pack(*values))

    return fault


def blank(store: Path) -> None:
    write(store, AT * UNIT.size, bytes(UNIT.size))


def of_the_next(store: Path) -> None:
    write(store, AT * UNIT.size, UNIT.pack(*unit(store, AT + 1)))


FAULTS: dict[str, tuple[Fault, str]] = {
    "no unit": (blank, "dledger-entry-has-its-unit"),
    "another magic number": (of_unit(0, lambda _: 2), "dledger-entry-has-its-unit"),
    "the unit of the next entry": (of_the_next, "dledger-unit-has-the-index-of-its-entry"),
    "another index": (of_unit(3, lambda n: n ^ 1 << 40), "dledger-unit-has-the-index-of-its-entry"),
    "another place": (of_unit(1, lambda n: n + 48), "dledger-unit-points-at-its-entry"),
    "a place far away": (of_unit(1, lambda _: -(2**62)), "dledger-unit-points-at-its-entry"),
    "another size": (of_unit(2, lambda n: n - 1), "dledger-unit-has-the-size-of-its-entry"),
    "another term": (of_unit(4, lambda n: n + 1), "dledger-unit-has-the-term-of-its-entry"),
}


@pytest.mark.parametrize("whole", [True, False])
def test_entries_are_read_again_from_where_a_worker_found_no_unit(
    whole: bool,  # noqa: FBT001 - of each, one
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An entry with its unit is not read a second time, and is counted the same."""
    asked = []

    def between(store: StoreDirectory, begin: int, end: int) -> Iterator[EntryColumns]:
        asked.append((begin, end))
        return entries_between(store, begin, end)

    monkeypatch.setattr(dledger_index, "entries_between", between)
    store = recording(f"layouts/{WHOLE}") if whole else damaged(tmp_path)
    place = unit(store, AT)[1]
    if not whole:
        blank(store)
    report = check([store.parent], jobs=1)
    ((begin, end),) = asked
    assert begin == end if whole else 0 < begin <= place
    assert report.coverage["dledger_index.find_unit"] == (LAST[WHOLE] + 1 if whole else AT)


@pytest.mark.parametrize(
    ("fault", "name"), [*((fault, WHOLE) for fault in FAULTS), ("no unit", KILLED), ("another place", KILLED)]
)
def test_a_fault_is_found_at_its_place(fault: str, name: str, tmp_path: Path) -> None:
    damage, rule = FAULTS[fault]
    store = damaged(tmp_path, name)
    damage(store)
    report = check([store.parent], trace="dledger-n0/index")
    (found,) = report.violations
    assert (report.verdict, found.rule, found.trace) == ("departs", f"dledger_index/{rule}", "dledger-n0/index")
    assert (found.where.file, found.where.offset) == (f"dledger-n0/index/{0:020d}", AT * UNIT.size)
    assert found.message.startswith(f"dledger-n0/index: the unit of entry {AT} ")


def test_the_last_unit_may_be_missing_where_the_broker_was_killed(tmp_path: Path) -> None:
    for name, lacking, verdict in ((KILLED, 1, "conforms"), (KILLED, 30, "conforms"), (WHOLE, 1, "departs")):
        room = tmp_path / f"{name}{lacking}"
        room.mkdir()
        store = damaged(room, name)
        first = LAST[name] + 1 - lacking
        write(store, first * UNIT.size, bytes(lacking * UNIT.size))
        report = check([store.parent])
        assert report.verdict == verdict, report.model_dump_json(indent=1)
        if verdict == "conforms":
            expected = f"entry from {first} on has no" if lacking == 1 else f"{lacking} entries from {first} on have no"
            assert any(expected in note for note in report.sources[0].notes)
        else:
            (found,) = report.violations
            assert (found.where.offset, found.rule) == (first * UNIT.size, "dledger_index/dledger-entry-has-its-unit")


def test_a_unit_that_a_truncation_left_behind_is_the_last_ones_after_a_kill(tmp_path: Path) -> None:
    """The entry was rewritten, in another term, and its unit was not yet."""
    store = damaged(tmp_path, KILLED)
    values = unit(store, LAST[KILLED])
    write(store, LAST[KILLED] * UNIT.size, UNIT.pack(1, values[1] - 9, values[2], values[3], values[4] + 1))
    assert check([store.parent]).verdict == "conforms"


def test_units_behind_the_last_entry_are_of_no_account(tmp_path: Path) -> None:
    store = damaged(tmp_path)
    write(store, (LAST[WHOLE] + 1) * UNIT.size, UNIT.pack(1, 5, 6, 7, 8) * 9)
    assert check([store.parent]).verdict == "conforms"


def test_units_that_no_start_writes_again_are_not_excused_by_a_kill(tmp_path: Path) -> None:
    """A start holds the last three files of entries against the index."""
    store = damaged(tmp_path, KILLED)
    write(store, 0, bytes((LAST[KILLED] + 1) * UNIT.size))
    report = check([store.parent])
    assert report.verdict == "inconclusive"
    assert "522 entries from 0 on have no units of theirs, further back than" in report.sources[0].reasons[0]


def test_without_a_file_it_is_undecided(tmp_path: Path) -> None:
    store = damaged(tmp_path)
    folder = index_of(store).parent
    index_of(store).unlink()
    report = check([store.parent])
    assert report.verdict == "inconclusive"
    assert report.sources[0].reasons == ["dledger-n0/index/ has no file: whether entries have their units is not known"]
    folder.rmdir()  # then it is evidence that is not there, which changes no verdict
    report = check([store.parent])
    assert report.verdict == "conforms"
    assert "dledger-n0/index/ is not judged: it is not there" in report.sources[0].notes


def test_a_log_that_departs_is_reported_alone(tmp_path: Path) -> None:
    store = damaged(tmp_path)
    file = sorted(store.glob("dledger-*/data/*"))[2]
    data = bytearray(file.read_bytes())
    data[3000:3400] = bytes(400)
    file.write_bytes(data)
    blank(store)
    report = check([store.parent])
    assert all(not rule.startswith("dledger_index/") for rule in rules(report))
    assert any("dledger-n0/index/ is not judged: the log that it is of departs" in n for n in report.sources[0].notes)


def test_a_departure_is_explained(tmp_path: Path) -> None:
    store = damaged(tmp_path)
    blank(store)
    output = gapless("explain", str(store.parent), "--trace", "dledger-n0/index").stdout
    assert f"the index of entries dledger-n0/index departs at dledger-n0/index/{0:020d}+{AT * UNIT.size}." in output


@pytest.mark.parametrize("seed", by_day(range(20), 1 / 10))
def test_damage_at_random_is_a_verdict_and_no_traceback(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    name = random.choice([WHOLE, KILLED])
    store = damaged(tmp_path, name)
    for _ in range(3):
        size = random.choice((1, 8, 32, 700))
        write(store, random.randrange(LAST[name] * UNIT.size), random.choice((bytes(size), random.randbytes(size))))
    if random.random() < 0.3:
        with index_of(store).open("r+b") as file:
            file.truncate(random.randrange(LAST[name] * UNIT.size))
    report = check([store.parent])
    assert report.verdict in {"conforms", "departs", "inconclusive"}
    assert all(rule.startswith("dledger_index/") for rule in rules(report))


@pytest.mark.parametrize(
    ("made", "rule", "length"),
    [
        (lambda index: os.truncate(index / f"{0:020d}", 1 << 20), "have-one-length", 1 << 20),
        (lambda index: (index / f"{5 << 25:020d}").touch(), "have-one-length", 0),
        (lambda index: (index / "README").write_text("hm"), "are-called-by-numbers", 0),
        (lambda index: (index / "kept").mkdir(), "are-called-by-numbers", 0),
    ],
)
def test_what_the_next_start_stumbles_over_is_a_hazard(
    made: Callable[[Path], None], rule: str, length: int, tmp_path: Path
) -> None:
    """A broker does not start where a file of the index has another length, or no number."""
    store = damaged(tmp_path)
    index = index_of(store).parent
    before = {path.name for path in index.iterdir()}
    made(index)
    (new,) = {path.name for path in index.iterdir()} - before or {f"{0:020d}"}
    hazards = check([store]).hazards
    assert [(found.rule, found.where.file, found.where.offset) for found in hazards] == [
        (f"dledger_index/dledger-index-files-{rule}", f"dledger-n0/index/{new}", length)
    ]
    assert "the index of entries dledger-n0/index will depart at the broker's next start" in hazards[0].story[0]
