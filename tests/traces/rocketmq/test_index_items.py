"""Items of a hash index compared with the keys of records: the fast path agrees with the item by item one."""

from __future__ import annotations

import numpy as np
import pytest

from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.layouts.hash_index import matching
from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import ITEM, Items
from gapless.traces.sources.rocketmq.layouts.hash_index.matching import ITEM_COLUMNS, ItemRange, MatchResult, room_for
from gapless.traces.sources.rocketmq.layouts.hash_index.record_keys import (
    HASH,
    KEY_ROWS,
    KIND,
    MAY,
    MUST,
    RECORD,
    UNSURE,
)

FIRST, BEGAN = 100, 1_000_000  # the number of the first item that is read, and since when times count
START, END = 5_000, 6_000  # positions of the segment
Segment = tuple[Ints, Ints, Ints]
"""Positions, times and keys of records."""


def segment(choice: np.random.Generator, records: int = 6) -> Segment:
    """Records with a key that must be found, or two, and perhaps one that need not be; or without any."""
    positions = START + np.sort(choice.choice(END - START, records, replace=False))
    keys = []
    for record in range(records):
        kinds = [MUST] * int(choice.integers(0, 3)) + [MAY] * int(choice.integers(0, 2))
        keys += [(record, int(choice.integers(0, 50)) + 50 * n, kind) for n, kind in enumerate(kinds)]
    made = np.zeros((KEY_ROWS, len(keys)), np.int64)
    made[[RECORD, HASH, KIND]] = np.array(keys, np.int64).reshape(-1, 3).T
    return positions, BEGAN + 1000 * np.arange(records), made


def items_of(records: Segment, *, tags: bool) -> Items:
    """Return a broker's items of records, between one of the record before and one of the record after."""
    positions, times, keys = records
    some = keys[:, (keys[KIND] == MUST) | tags]
    items = np.zeros(some.shape[1] + 2, ITEM)
    items["position"] = [START - 1, *positions[some[RECORD]], END]
    items["hash"][1:-1] = some[HASH]
    items["seconds"][1:-1] = (times[some[RECORD]] - BEGAN) // 1000
    return items


def at_once(records: Segment, items: Items) -> MatchResult | None:
    """Match all at once; None if any is wrong."""
    space = room_for(0, 0, 0)
    wanted = ItemRange(START, END, FIRST, BEGAN)
    return space if matching.match_in_order(*records, items.view(np.uint8), wanted, space.counts) else None


def one_by_one(records: Segment, items: Items) -> MatchResult:
    """Match item by item."""
    room, read = np.zeros((len(items), ITEM_COLUMNS), np.int64), items.view(np.uint8)
    count = matching.gather(read, FIRST, 0, (START, END, BEGAN), room, 0)
    space = room_for(len(records[0]), records[2].shape[1], 64)
    found = room[:count]
    matching.match(*records, found[np.argsort(found[:, matching.POSITION], kind="stable")], space)
    return space


@pytest.mark.parametrize("tags", [False, True])
def test_items_of_a_broker_are_seen_to_be_right(*, tags: bool) -> None:
    choice = np.random.default_rng(7)
    for _ in range(40):
        records = segment(choice)
        items = items_of(records, tags=tags)
        matched = at_once(records, items)
        assert matched is not None
        assert matched.counts.tolist() == one_by_one(records, items).counts.tolist()


def test_what_is_seen_to_be_right_is_right_one_by_one() -> None:
    """For every change: otherwise a missing key or a wrong item would be passed over."""
    choice, seen, refused = np.random.default_rng(11), 0, 0
    for _ in range(600):
        records = segment(choice)
        items = items_of(records, tags=bool(choice.integers(2)))
        at, other = choice.integers(len(items), size=2)
        match choice.integers(6):
            case 0:
                items["hash"][at] = items["hash"][other]
            case 1:
                items["seconds"][at] += choice.integers(-1, 2)
            case 2:
                items["position"][at] = items["position"][other]
            case 3:
                items = np.delete(items, at)
            case 4:
                items = np.insert(items, other, items[at])
            case _:
                records[2][KIND, records[2][KIND] == MAY] = choice.integers(3)
        matched, slowly = (
            at_once(records, np.ascontiguousarray(items)),
            one_by_one(records, np.ascontiguousarray(items)),
        )
        if matched is None:
            refused += 1
            continue
        seen += 1
        assert matched.counts.tolist() == slowly.counts.tolist()
    assert seen > 60 < refused


def test_a_key_without_a_hash_is_looked_at_by_itself() -> None:
    records = segment(np.random.default_rng(3))
    items = items_of(records, tags=True)
    records[2][KIND, 0], items["hash"][1] = UNSURE, 999
    assert at_once(records, items) is None
    assert one_by_one(records, items).counts[matching.C_ODDS] == 0


def test_an_item_behind_the_last_one_of_the_records_is_noticed() -> None:
    records = segment(np.random.default_rng(3))
    items = items_of(records, tags=True)
    more = np.insert(items, len(items) - 1, items[-2])
    more["hash"][-2] += 1
    assert at_once(records, more) is None
    assert one_by_one(records, more).counts[matching.C_ODDS] == 1
