"""Native code reads no byte beyond those that there are, whatever a damaged store says: it would end the process.

By day Python runs it, on bytes that say where they end. At night it is compiled with bounds that are checked.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest

from gapless import check
from gapless.native import Native
from gapless.native.objects.object_code import CHECKED
from gapless.traces.replay.kernels import Loop
from gapless.traces.sources.rocketmq.layouts.copied_records import differences
from gapless.traces.sources.rocketmq.layouts.joined_keys import compaction_keys
from gapless.traces.sources.rocketmq.log import records
from gapless.traces.sources.rocketmq.store.file_access import names_of_records
from gapless.traces.sources.rocketmq.store.files import LogFile, Maps
from gapless.traces.sources.rocketmq.store.opening import open_store
from tests.support.night import NIGHT, by_day
from tests.support.rocketmq.any_damage import mutate
from tests.support.rocketmq.bounded_bytes import bound
from tests.support.rocketmq.recordings import RECORDINGS, copy_of, recording, varied_store
from tests.support.rocketmq.stores import log_files

LAYOUTS = sorted(f"layouts/{path.name.partition('.tar')[0]}" for path in (RECORDINGS / "layouts").glob("*.tar.xz"))
DAMAGES = int(os.environ.get("GAPLESS_FUZZ", "40"))


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes say where they end."""
    bound(monkeypatch)


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(
    ("position", "size"),
    [(4095, 1), (4090, 6), (4000, 97), (2**63 - 10, 100), (2**62, 2**62 + 5), (-8, 100), (-(2**63), 2**31), (0, -1)],
)
def test_places_that_anybody_claims_are_not_read_beyond_a_file(position: int, size: int, tmp_path: Path) -> None:
    """The sum of two large numbers is a small one: such a place seemed to lie in the file, and the process ended."""
    (tmp_path / "0").write_bytes(bytes(4096))
    file, places, sizes = LogFile(str(tmp_path / "0"), 0, 4096), np.array([position]), np.array([size])
    maps = Maps()
    assert compaction_keys([file], places, sizes, maps).tolist() == [[-1], [-1]]
    assert differences([file], places, [file], np.array([0]), sizes, maps).tolist() == [-1]
    assert differences([file], np.array([0]), [file], places, sizes, maps).tolist() == [-1]


@pytest.mark.usefixtures("bounded")
def test_names_are_not_read_where_no_record_is_any_more(tmp_path: Path) -> None:
    """A broker that starts cuts off its log, perhaps before those are named that were found in it."""
    store = open_store(copy_of("varied 1", tmp_path))
    (log, *_), length = log_files(Path(store.path)), store.files[0].length
    places = np.array([0, 100, length - 90, length - 1])
    log.write_bytes(b"\xda\xa3\x20\xa7" * (length // 4))
    assert list(names_of_records(store, places)) == [f"@{place}" for place in places]
    log.write_bytes(b"")
    assert list(names_of_records(store, places)) == [f"@{place}" for place in places]


def test_a_file_that_is_looked_at_again_has_the_bytes_that_it_has_now(tmp_path: Path) -> None:
    """No byte beyond the end of a shortened file is read; and of more files than are kept, each is found."""
    maps = Maps()
    files = [LogFile(str(tmp_path / str(number)), 0, 4096) for number in range(2 * Maps.MOST)]
    for number, file in enumerate(files):
        Path(file.path).write_bytes(bytes([number]) * 4096)
    assert all(maps.of(file)[-1] == number for number, file in enumerate(files))
    assert list(maps.kept) == [file.path for file in files[-Maps.MOST :]]
    first = maps.of(files[-1])
    assert maps.of(files[-1]) is first
    os.truncate(files[-1].path, 100)
    assert len(maps.of(files[-1])) == 100
    assert len(maps.of(files[0])) == 4096


@pytest.mark.usefixtures("bounded")
def test_who_reads_beyond_is_found() -> None:
    """These tests can fail: a record claims to reach beyond its bytes."""
    is_of_the_second_kind = False
    with pytest.raises(IndexError, match="byte 84:88 of 50"):
        records.length_of(np.zeros(50, np.uint8), 0, 200, is_of_the_second_kind)


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("seed", by_day(range(16)))
def test_no_damage_is_read_beyond(seed: int, tmp_path: Path) -> None:
    damaged(varied_store(1 + seed % 2), tmp_path, Random(seed), 12 if NIGHT else 3)


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("name", by_day(LAYOUTS, 1 / 40))
def test_nor_is_that_of_any_layout(name: str, tmp_path: Path) -> None:
    damaged(recording(name), tmp_path, Random(name), 10 if NIGHT else 1)


def damaged(store: Path, room: Path, choose: Random, times: int) -> None:
    """Damage a fresh copy of a store so many times, and judge it."""
    for _ in range(times):
        copy = shutil.copytree(store, room / "store")
        done = [mutate(copy, choose) for _ in range(choose.choice((1, 1, 2)))]
        try:
            assert check([copy], jobs=1).verdict
        except BaseException:
            print(f"{store}: {done}")  # noqa: T201 - pytest shows it with the traceback
            raise
        shutil.rmtree(copy, ignore_errors=True)  # all of it may have been deleted


@pytest.mark.skipif(not NIGHT, reason="all kernels are compiled again, which takes some minutes")
def test_machine_code_that_checks_its_bounds_finds_none_left() -> None:
    """Compiled like this in a process of its own: every layout, damaged."""
    script = f"from {__name__} import every_layout; every_layout()"
    subprocess.run([sys.executable, "-c", script], env=os.environ | {CHECKED: "1"}, check=True)


def every_layout() -> None:
    """Damage every layout, and let all that judges it be compiled."""
    Native.few, Loop.few = -1, 0
    for name in [*LAYOUTS, "normal", "lmq", "odd_clients"]:
        damaged(recording(name), recording(name).parent / "damaged", Random(name), DAMAGES)
