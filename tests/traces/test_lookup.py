"""Values looked up among known ones: the short way and numpy's come to the same."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gapless.traces.sources.rocketmq.store.lookup import among, distinct

VALUES = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)).map(lambda values: np.array(values, np.int64))


@given(VALUES)
def test_distinct_values_rise(values: np.ndarray) -> None:
    assert distinct(values).tolist() == sorted(set(values.tolist()))


@given(VALUES, VALUES)
def test_among_known_values(values: np.ndarray, known: np.ndarray) -> None:
    assert among(values, distinct(known)).tolist() == [value in set(known.tolist()) for value in values.tolist()]
