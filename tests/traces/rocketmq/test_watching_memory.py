"""A store is watched for weeks: what is save in memory does not grow with what was judged and forgotten."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from benchmarks import bigstore
from gapless.traces.options import Options
from gapless.traces.sources.following import SavedState
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.disk_blocks import Blocks
from gapless.traces.sources.rocketmq.joining.checkpoint import REMEMBERED, Checkpoint, restore, save
from gapless.traces.sources.rocketmq.joining.log import StoreJudge
from gapless.traces.sources.rocketmq.layouts.half_table.judge import HalfCheckpoint
from gapless.traces.sources.rocketmq.layouts.half_table.records import TableHalves
from gapless.traces.sources.rocketmq.store.opening import open_store
from gapless.traces.sources.rocketmq.watching.state_file import read_state, write_state
from gapless.traces.sources.rocketmq.watching.watch_checkpoint import WatchCheckpoint
from tests.support.night import NIGHT
from tests.support.rocketmq.recordings import recording
from tests.support.rocketmq.watched import Clock, Heard, watch


def a_judge() -> StoreJudge:
    """Make a judge without data."""
    return StoreJudge(open_store(recording("lmq")), Options())


def halves(count: int, first: int = 1) -> Ints:
    """Halves that are settled: key, number, and positions of the first and the last row."""
    return np.arange(first, first + count) + np.zeros((4, 1), np.int64)


def columns_of(known: Checkpoint) -> list[int]:
    """Count the halves in files."""
    return [blocks.columns for blocks in known.remembered]


def test_saved_states_have_no_settled_halves() -> None:
    """Each half took 32 bytes in both saved states of a watch, and as much again for a report."""
    judge = a_judge()
    before = save(judge)
    tracemalloc.start()
    try:
        for _ in range(10):
            for name in REMEMBERED:
                getattr(judge.transactions, name).add(halves(10_000))
        places = [save(judge) for _ in range(3)]
        known, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert columns_of(places[0]) == [100_000] * 3
    assert known < 1 << 20
    assert {len(place.content) for place in places} == {len(before.content)}


def test_who_goes_back_knows_what_was_known_then() -> None:
    """Both go on from there, and neither knows of what the other adds."""
    judge, other = a_judge(), a_judge()
    judge.transactions.settled.add(halves(5))
    place = save(judge)
    judge.transactions.settled.add(halves(3, first=100))
    restore(other, place)
    other.transactions.settled.add(halves(2, first=200))
    for whose, keys in ((judge, [1, 2, 3, 4, 5, 100, 101, 102]), (other, [1, 2, 3, 4, 5, 200, 201])):
        blocks = list(whose.transactions.settled.blocks())
        assert [int(key) for block in blocks for key in block[0]] == keys
        assert len(blocks) == 2  # what is settled twice is known by its block
    assert columns_of(place) == [5, 0, 0]
    other.transactions.settled.forget_before(4, 3)
    assert [block[0].tolist() for block in other.transactions.settled.blocks()] == [[4, 5], [200, 201]]
    assert columns_of(place) == [5, 0, 0]


def test_a_file_of_a_state_holds_it_too(tmp_path: Path) -> None:
    judge = a_judge()
    judge.transactions.settled.add(halves(5))
    judge.transactions.settled.add(halves(7, first=50))
    judge.transactions.unpassed_ops.add(halves(2))
    table = HalfCheckpoint(TableHalves(), 7)
    table.records.add(np.arange(21).reshape(7, 3))
    place = WatchCheckpoint(save(judge), None, others={"half_table": table})
    write_state(tmp_path / "state", SavedState("store", "strict", frozenset(), place, frozenset()), "1")
    found = read_state(tmp_path / "state", "store", "strict", frozenset(), "1")
    assert found is not None
    assert found.checkpoint.known.content == place.known.content
    followed = found.checkpoint.others["half_table"]
    assert followed.reached == 7
    read, written = (*found.checkpoint.known.remembered, followed.records), (*place.known.remembered, table.records)
    for one, other in zip(read, written, strict=True):
        assert type(one) is type(other)
        assert [block.tolist() for block in one.blocks()] == [block.tolist() for block in other.blocks()]


@pytest.mark.parametrize("damage", [b"", b"\xff" * 8, b"\x7f" * 8, b"\1" + bytes(7) + b"\xff" * 7 + b"\x0f", bytes(9)])
def test_blocks_that_are_damaged_are_refused(damage: bytes, tmp_path: Path) -> None:
    """Damaged sizes of blocks would allocate all memory."""
    (tmp_path / "blocks").write_bytes(damage)
    with (tmp_path / "blocks").open("rb") as file:
        if damage == bytes(9):
            assert Blocks.read(file, 9).columns == 0
        else:
            with pytest.raises((ValueError, OverflowError)):
                Blocks.read(file, len(damage))


@pytest.mark.skipif(not NIGHT, reason="a million records")
def test_memory_stays_where_it_is_while_a_store_grows(tmp_path: Path) -> None:
    """Places are save and reports made all the while: what is in memory after a third is all that there ever is."""
    bigstore.make(tmp_path / "store", bigstore.Shape(records=1_500_000, transactions=300_000, file_size=1 << 28))
    clock, heard = Clock(), Heard()
    watched = watch(tmp_path / "store", heard, clock)
    tracemalloc.start()
    known: list[int] = []
    try:
        while watched.look():
            clock.now += 10
            if watched.status.records > 500_000:
                known.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert watched.status.records == 1_500_000
    assert not heard.found
    third = len(known) // 3
    assert max(known[-third:]) < max(known[:third]) + (4 << 20)  # with places in memory it was 16 MB more
