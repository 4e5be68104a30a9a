r"""Finds properties of records, `NAME\x01VALUE\x02` one behind the other: begin and end of each value, in columns.

As brokers read them, a property has a name and a value, and the last of two with one name counts. Kernels that look at
every record of a check have the few names that they look for in their code, and walk as this one does
(`property_walk.py`): it takes some 35 ns a record, for any names. Source: docs/rocketmq.md#properties.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapless.native import BYTES, INTS, TABLE, WORDS, native, record
from gapless.native.swar import Words, are_same, word_of
from gapless.traces.sources.rocketmq.columns.bytes import Bytes, Ints, u32
from gapless.traces.sources.rocketmq.columns.property_walk import ends_in, next_end
from gapless.traces.sources.rocketmq.log.records import MAGIC_V2, parts
from gapless.traces.sources.rocketmq.store.names import REAL_TOPIC, UNIQ_KEY

DUE, CANCELLED = "TIMER_OUT_MS", "TIMER_DEL_UNIQKEY"


class PropertyNames(NamedTuple):
    """The names of properties that are looked for.

    `letters`, `bounds`: of all, one behind the other, and where each begins · `words`: the first eight bytes of each ·
    `of_byte`: a name that begins with a byte, or -1 · `others`: the next one that begins with the same, or -1
    """

    letters: Bytes
    bounds: Ints
    words: Words
    of_byte: Ints
    others: Ints


NAMES = record(PropertyNames, BYTES, INTS, WORDS, INTS, INTS)
"""The kind of names."""


def names_of(*names: str) -> PropertyNames:
    """Names as the kernel takes them."""
    encoded = [name.encode() for name in names]
    of_byte, others = np.full(256, -1, np.int64), np.full(len(names), -1, np.int64)
    for number, name in enumerate(encoded):
        others[number], of_byte[name[0]] = of_byte[name[0]], number
    letters, bounds = np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([0, *map(len, encoded)])
    words = np.array([int.from_bytes(name[:8], "little") for name in encoded], np.uint64)
    return PropertyNames(letters, bounds, words, of_byte, others)


MESSAGE = names_of(UNIQ_KEY, REAL_TOPIC, DUE, CANCELLED, "KEYS", "TAGS")
S_KEY, S_REAL, S_DUE, S_CANCELLED, S_WORDS, S_TAGS = range(0, 12, 2)
"""The properties of messages that are looked for, and the columns where their values begin; each end is in the next."""


def spans_of(b: Bytes, places: Ints, names: PropertyNames = MESSAGE, room: Ints | None = None) -> Ints:
    """Returns the spans of these properties in the records at `places` of `b`: int64 [records, 2 of each name].

    Begin and end are 0 where a record does not have the property. `room`: memory for them.
    """
    spans = np.empty((len(places), 2 * len(names.words)), np.int64) if room is None else room[: len(places)]
    find_spans(b, places, names, spans)
    return spans


@native(lambda _b, places, *_: len(places), kinds=(BYTES, INTS, NAMES, TABLE))
def find_spans(b: Bytes, places: Ints, names: PropertyNames, spans: Ints) -> None:
    """Writes the spans into `spans`."""
    spans[:] = 0
    for i in range(len(places)):
        r = parts(b, places[i], u32(b, places[i] + 4) == MAGIC_V2)
        k = at = r.low
        ends = ends_in(b, at, r.high)
        while k < r.high:
            w, at, ends = next_end(b, k, at, ends, r.high)
            n = names.of_byte[b[k]]
            while n >= 0:
                low, size = names.bounds[n], names.bounds[n + 1] - names.bounds[n]
                m = k + size
                is_name = m + 1 < w and b[m] == 1 and word_of(b, k, min(size, 8)) == names.words[n]
                if is_name and (size <= 8 or are_same(b, k, names.letters, low, size)):
                    spans[i, 2 * n], spans[i, 2 * n + 1] = m + 1, w
                n = names.others[n]
            k = w + 1


ENTRIES = (find_spans,)
"""All that is compiled of it."""
