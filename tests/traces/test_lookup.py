"""Values looked up among known ones: the short way and numpy's come to the same."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.traces.sources.rocketmq.columns import lookup
from gapless.traces.sources.rocketmq.columns.lookup import KeyGroups, among, distinct, numbered
from gapless.traces.sources.rocketmq.layouts.compaction import next_with_key
from gapless.traces.sources.rocketmq.layouts.compaction.next_with_key import NextWithKey

VALUES = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)).map(lambda values: np.array(values, np.int64))


@given(VALUES)
def test_distinct_values_rise(values: np.ndarray) -> None:
    assert distinct(values).tolist() == sorted(set(values.tolist()))


@given(VALUES, VALUES)
def test_among_known_values(values: np.ndarray, known: np.ndarray) -> None:
    assert among(values, distinct(known)).tolist() == [value in set(known.tolist()) for value in values.tolist()]


ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 1)))


@pytest.mark.parametrize("secret", [0x9E3779B97F4A7C15, 0])
@given(rows=ROWS)
def test_rows_have_a_number_of_their_own_unless_they_are_alike(secret: int, rows: list[tuple[int, int]]) -> None:
    """With a secret of 0 all rows are looked up in one place: then their columns alone tell them apart."""
    columns = np.array(rows, np.int64).reshape(-1, 2).T.copy()
    with patch.object(lookup, "secret", lambda: np.uint64(secret)):
        found = numbered(tuple(columns)).tolist()
    assert sorted(set(found)) == list(range(len(set(rows))))
    assert len(set(zip(rows, found, strict=True))) == len(set(rows))


@given(st.lists(st.integers(0, 20) | st.integers(-(2**63), 2**63 - 1)), st.integers(1, 9))
def test_the_next_message_of_a_key_is_the_oldest_of_those_behind(keys: list[int], at_once: int) -> None:
    """Asked for from the newest on, some at a time; of few rows the table grows at every other key."""
    found: list[int] = []
    with patch.object(next_with_key, "FIRST_ROWS", 2):
        later = NextWithKey()
        for end in range(len(keys), 0, -at_once):
            low = max(0, end - at_once)
            found[:0] = later.of(np.array(keys[low:end], np.int64), np.arange(low, end)).tolist()
    behind = [[n for n in range(i + 1, len(keys)) if keys[n] == keys[i]] for i in range(len(keys))]
    assert found == [min(numbers, default=-1) for numbers in behind]


@pytest.mark.parametrize("secret", [0x9E3779B97F4A7C15, 0])
@given(keys=VALUES, sought=VALUES)
def test_rows_of_a_key_lie_together(secret: int, keys: np.ndarray, sought: np.ndarray) -> None:
    with patch.object(lookup, "secret", lambda: np.uint64(secret)):
        groups = KeyGroups(keys)
    order, spans = groups.order.tolist(), groups.of(sought)
    assert sorted(order) == list(range(len(keys)))
    for key, low, high in zip(sought.tolist(), *spans.tolist(), strict=True):
        assert order[low:high] == np.flatnonzero(keys == key).tolist()
