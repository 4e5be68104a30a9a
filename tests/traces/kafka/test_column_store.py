"""Columns that are laid down by bucket come back as they were added."""

import os
import random
import tempfile
from pathlib import Path

import numpy as np
import pytest

from gapless.traces.sources.kafka.log import column_store
from gapless.traces.sources.kafka.log.column_store import BUCKETS, ColumnStore


@pytest.mark.parametrize("most", [3, 40, 1 << 18])
def test_rows_come_back_by_bucket_in_the_order_in_which_they_were_added(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_store, "ROWS", most)
    chance, store = random.Random(most), ColumnStore({"number": 8, "small": 1}, "numbers")
    added = [(chance.randrange(BUCKETS), chance.randrange(-(1 << 62), 1 << 62), at % 100 - 50) for at in range(300)]
    for at in range(0, 300, 25):
        bucket, number, small = np.array(added[at : at + 25], np.int64).T
        store.add(bucket, [number, small])
    ranges = list(store.ranges(60))
    assert (len(ranges), ranges[0][0], ranges[-1][1]) == (5, 0, BUCKETS)
    for low, high in ranges:
        found = list(zip(*(column.tolist() for column in store.of(low, high)), strict=True))
        mine = [one for one in added if low <= one[0] < high]
        assert sorted(found) == sorted(one[1:] for one in mine)
        for bucket in {one[0] for one in mine}:
            of_it = [column.tolist() for column in store.of(bucket, bucket + 1)]
            assert list(zip(*of_it, strict=True)) == [one[1:] for one in mine if one[0] == bucket]


def test_a_full_disk_names_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    monkeypatch.setattr(column_store, "ROWS", 1)
    full = os.open("/dev/full", os.O_RDWR)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: os.fdopen(full, "r+b", buffering=0))
    store = ColumnStore({"number": 8}, "numbers")
    with pytest.raises(OSError, match="where numbers is laid down: name another folder with TMPDIR"):
        store.add(np.zeros(2, np.int64), [np.arange(2)])
