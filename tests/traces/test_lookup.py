"""Values looked up among known ones: the short way and numpy's come to the same."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.traces.sources.rocketmq.store import lookup
from gapless.traces.sources.rocketmq.store.lookup import among, distinct, numbered

VALUES = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)).map(lambda values: np.array(values, np.int64))


@given(VALUES)
def test_distinct_values_rise(values: np.ndarray) -> None:
    assert distinct(values).tolist() == sorted(set(values.tolist()))


@given(VALUES, VALUES)
def test_among_known_values(values: np.ndarray, known: np.ndarray) -> None:
    assert among(values, distinct(known)).tolist() == [value in set(known.tolist()) for value in values.tolist()]


ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 1)))


@pytest.mark.parametrize("factor", [int(lookup._GOLDEN), 0])
@given(rows=ROWS)
def test_rows_have_a_number_of_their_own_unless_they_are_alike(factor: int, rows: list[tuple[int, int]]) -> None:
    """A factor of 0 makes one word of all rows: then their columns alone tell them apart."""
    columns = np.array(rows, np.int64).reshape(-1, 2).T.copy()
    with patch.object(lookup, "_GOLDEN", np.uint64(factor)):
        found = numbered(tuple(columns)).tolist()
    assert sorted(set(found)) == list(range(len(set(rows))))
    assert len(set(zip(rows, found, strict=True))) == len(set(rows))
