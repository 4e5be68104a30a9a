"""Finds the messages of a tiered log that items of its index point to, in any order.

Source: docs/rocketmq-tiered.md#index.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gapless.native import by_python
from gapless.traces.sources.rocketmq.columns.bytes import Bytes, Ints, java_hash
from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import Items
from gapless.traces.sources.rocketmq.layouts.hash_index.matching import OWNED, TIMELY
from gapless.traces.sources.rocketmq.layouts.hash_index.record_keys import (
    HASH,
    KEY_ROWS,
    KIND,
    RECORD,
    UNSURE,
    find_index_keys,
)
from gapless.traces.sources.rocketmq.layouts.joined_keys import BODY, compaction_keys
from gapless.traces.sources.rocketmq.log.records import SMALLEST, SYS_BORN_V6
from gapless.traces.sources.rocketmq.store.files import LogFile, Maps, Queue

# Where in a record numbers lie, and how many bytes each has.
QUEUE_ID, CLAIMED, FLAGS, TIME = (12, 4), (28, 8), (36, 4), (56, 8)
LONGER = 12  # bytes by which the time lies further behind where the sender has IPv6


def odd_items(queue: Queue, files: Sequence[LogFile], items: Items, began: int) -> npt.NDArray[np.int8]:
    """Returns the bits `matching` has for each item of a queue: is it owned, is it timely.

    It is owned if a message of its size is in its place, names that place, and has a key of its hash. `files`: of the
    tiered log · `began`: the time in ms from which its own counts.
    """
    bits, maps = np.zeros(len(items), np.int8), Maps()
    positions, sizes, hashes = (items[name].astype(np.int64) for name in ("position", "size", "hash"))
    for file in files:
        (some,) = np.nonzero(file.holds(positions, sizes) & (sizes >= SMALLEST))
        if not len(some):
            continue
        whole = compaction_keys([file], positions[some], sizes[some], maps)[BODY] >= 0
        some, data = some[whole], maps.of(file)
        places = positions[some] - file.base
        right = _number(data, places, *CLAIMED) == positions[some]
        right &= _number(data, places, *QUEUE_ID) == queue[1]
        some, places = some[right], places[right]
        owned = _have(data, places, hashes[some]) | _may_be_of_no_word(queue[0], hashes[some])
        late = np.where(_number(data, places, *FLAGS) & SYS_BORN_V6 != 0, LONGER, 0)
        since = _number(data, places + late, *TIME) - began
        seconds = np.where(since < 0, -(-since // 1000), since // 1000)  # as Java divides
        timely = seconds == items["seconds"][some]
        bits[some] = np.where(owned, OWNED, 0) | np.where(timely | ~owned, TIMELY, 0)
    return bits


def _number(data: Bytes, places: Ints, offset: int, width: int) -> Ints:
    """Reads a number of each record, big-endian and signed."""
    taken = data[places[:, None] + np.arange(offset, offset + width)]
    found: Ints = np.ascontiguousarray(taken).view(f">i{width}").reshape(-1).astype(np.int64)
    return found


def _have(data: Bytes, places: Ints, hashes: Ints) -> npt.NDArray[np.bool_]:
    """Returns the mask of records that have a key with this hash, or one with an unknown hash."""
    room, filled = 4 * len(places) + 1, -1
    keys = np.zeros((KEY_ROWS, 0), np.int64)
    while filled < 0:
        keys = np.zeros((KEY_ROWS, room), np.int64)
        filled = int(find_index_keys(data, places, 0, keys, 0))
        room *= 4
    keys = keys[:, :filled]
    fits = (keys[HASH] == hashes[keys[RECORD]]) | (keys[KIND] == UNSURE)
    have = np.zeros(len(places), np.bool_)
    have[keys[RECORD][fits]] = True
    return have


def _may_be_of_no_word(topic: str, hashes: Ints) -> npt.NDArray[np.bool_]:
    """Returns the mask of hashes that may be of an empty word; unknown if a topic's name is no UTF-8."""
    text = np.frombuffer(os.fsencode(f"{topic}#"), np.uint8)
    found, known = by_python(java_hash)(text, 0, len(text))
    same: npt.NDArray[np.bool_] = hashes == abs(int(found))
    return same | (not known)
