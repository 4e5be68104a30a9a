"""Columns become objects natively: the same as by Python, each of them with one reference."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

from gapless.impl.records import columns
from gapless.impl.records.columns import MessageColumns
from gapless.impl.records.object_kernel import objects_of
from gapless.impl.records.record import Record
from gapless.native.language import by_python

TAGS = ["new", "bé", ""]
WANTED = [(1, 0, b"x", 7, b"rest", "new"), (-2, 5, b"", 8, b"0r", "bé"), (1 << 62, 9, b"yzz", 9, b"", "")]


@pytest.fixture(autouse=True)
def _collecting() -> Iterator[None]:
    """The collector runs at every object."""
    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    yield
    gc.set_threshold(*before)


def arguments() -> tuple[Any, ...]:
    """Three messages, as the kernel takes them."""
    numbers, positions, bodies, times, rests, _ = zip(*WANTED, strict=True)
    texts = (part for of in (bodies, rests) for part in (np.frombuffer(b"".join(of), np.uint8), _ends(of)))
    return id(Record), id(TAGS), np.array(numbers), np.array(positions), np.array(times), *texts


def _ends(texts: tuple[bytes, ...]) -> Any:
    return np.cumsum([0, *map(len, texts)])


@pytest.mark.parametrize("reading", [objects_of, by_python(objects_of)], ids=["native", "python"])
def test_columns_become_objects(reading: Any) -> None:
    found = reading(*arguments())
    assert [tuple(each) for each in found] == WANTED
    assert {type(each) for each in found} == {Record}
    assert all(gc.is_tracked(each) for each in found)


def test_every_object_goes_with_its_last_reference() -> None:
    before = sys.getrefcount(TAGS[1])
    found = objects_of(*arguments())
    record = found[2]
    counts = [sys.getrefcount(found), sys.getrefcount(record.body), sys.getrefcount(record.number)]
    within = sys.getrefcount(record), sys.getrefcount(TAGS[1])
    assert counts == [2, 2, 2]  # one more than there are, for the question
    assert within == (3, before + 1)
    del found
    after = sys.getrefcount(TAGS[1])
    assert after == before


def test_where_memory_runs_out_reading_says_so() -> None:
    made = MessageColumns.joined([])
    assert made.records() == []
    with mock.patch.object(columns, "objects_of", return_value=b""), pytest.raises(MemoryError):
        made.records()
