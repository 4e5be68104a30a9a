"""Events of several kinds are put in order by their keys, and in groups if they have some."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import Ints
from gapless.traces.sources.kafka.judging import event_order
from gapless.traces.sources.kafka.judging.event_order import EventOrder

NEAR, FAR = st.integers(0, 9), st.integers(0, 1 << 40)
BLOCK = st.sampled_from([NEAR, FAR]).flatmap(lambda keys: st.lists(st.tuples(keys, st.integers(-2, 1 << 40) | NEAR)))
ACTIONS = {"mark": ("epoch", "offset", "coordinator", "time"), "expire": ("idle", "limit")}


@pytest.mark.parametrize("many", [0, event_order.MANY], ids=["native", "by numpy"])
@pytest.mark.parametrize("is_grouped", [False, True])
@given(marks=BLOCK, expires=BLOCK, are_sorted=st.booleans())
def test_events_come_in_order(
    many: int, marks: list[tuple[int, int]], expires: list[tuple[int, int]], *, is_grouped: bool, are_sorted: bool
) -> None:
    blocks = {name: sorted(block) if are_sorted else block for name, block in (("mark", marks), ("expire", expires))}
    order, groups, expected, number = EventOrder(SPECS["producer"]), [], [], 0
    for action, block in blocks.items():
        numbers = np.arange(number, number + len(block))
        order.add(action, _column(block, 0), **dict.fromkeys(ACTIONS[action], numbers))
        groups += [_column(block, 1)] if block else []
        expected += [(group, key, one, action) for one, (key, group) in zip(numbers.tolist(), block, strict=True)]
        number += len(block)
    expected.sort(key=lambda event: event[:2] if is_grouped else event[1])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(event_order, "MANY", many)
        events, keys, found = order.events(groups if is_grouped else None)
    assert keys.tolist() == [key for _, key, _, _ in expected]
    assert found.tolist() == [group if is_grouped else key for group, key, _, _ in expected]
    for at, (_, _, one, action) in enumerate(expected):
        assert events.at(at) == (action, (one,) * len(ACTIONS[action]))


def test_arguments_are_those_of_the_step() -> None:
    with pytest.raises(TypeError, match="expire takes idle, limit; given: idle"):
        EventOrder(SPECS["producer"]).add("expire", np.zeros(1, np.int64), idle=0)


def _column(block: list[tuple[int, int]], place: int) -> Ints:
    return np.array([one[place] for one in block], np.int64)
