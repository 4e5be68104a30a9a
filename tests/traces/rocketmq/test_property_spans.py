"""Spans of properties are those of the values that a broker reads, in Python and in native code."""

from __future__ import annotations

import struct

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from gapless.native import BYTES, I64, INTS, native
from gapless.traces.sources.rocketmq.columns.bytes import Bytes, Ints
from gapless.traces.sources.rocketmq.columns.property_spans import find_spans, names_of, spans_of
from gapless.traces.sources.rocketmq.columns.property_walk import ends_in, next_end
from gapless.traces.sources.rocketmq.log.records import MAGIC_V1, MAGIC_V2

NAMES = ("KEYS", "TAGS", "A", "UNIQ_KEY", "REAL_QID", "TIMER_DEL_UNIQKEY", "TIMER_DEL_UNIQKEZ")
PIECES = st.sampled_from((*NAMES, "KEY", "KEYS ", "x", "value of 17 bytes", "\x01", "\x02", "\0"))
TEXTS = st.lists(PIECES | st.just("\x01") | st.just("\x02"), max_size=30).map("".join)


def record(properties: bytes, *, v2: bool) -> bytes:
    """A record with these properties, a body of three bytes, and a topic of two."""
    head = struct.pack(">iIIiiqqiq8xq8xiqi", 0, MAGIC_V2 if v2 else MAGIC_V1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3)
    return head + b"abc" + (b"\0" * v2 + b"\x02to") + struct.pack(">H", len(properties)) + properties


def plainly(properties: bytes) -> list[bytes]:
    """The value of each name: a property has a name and a value."""
    pairs = [entry.partition(b"\x01") for entry in properties.split(b"\x02")]
    found = [(name, value) for name, _, value in pairs if name and value]
    last = dict(found)
    return [last.get(name.encode(), b"") for name in NAMES]


@given(texts=st.lists(TEXTS, min_size=1, max_size=4), v2=st.booleans())
@example(texts=["KEYS\x01a\x02KEYS\x01\x02", "KEYS\x01a", "\x01a\x02KEYS\x02A\x01a\x01b\x02A\x01c"], v2=False)
def test_spans_are_those_of_the_values_that_a_broker_reads(texts: list[str], *, v2: bool) -> None:
    encoded = [text.encode() for text in texts]
    records = [record(text, v2=v2) for text in encoded]
    data = np.frombuffer(b"".join(records), np.uint8)
    places = np.cumsum([0, *map(len, records[:-1])])
    names = names_of(*NAMES)
    by_python = spans_of(data, places, names)
    natively = np.empty_like(by_python)
    find_spans.compiled(data, places, names, natively)
    assert natively.tolist() == by_python.tolist()
    values = [[data[low:high].tobytes() for low, high in row.reshape(-1, 2)] for row in by_python]
    assert values == [plainly(text) for text in encoded]
    assert ((by_python[:, ::2] == 0) == (by_python[:, 1::2] == 0)).all()


@native(lambda *_: 1, kinds=(BYTES, I64, I64, INTS))
def walk(b: Bytes, low: int, high: int, found: Ints) -> int:
    """Writes the end of each property in `low:high`, and returns their number."""
    count = 0
    k = at = low
    ends = ends_in(b, at, high)
    while k < high:
        w, at, ends = next_end(b, k, at, ends, high)
        found[count] = w
        count += 1
        k = w + 1
    return count


@given(
    lengths=st.lists(st.integers(0, 140), max_size=8),
    before=st.integers(0, 3),
    behind=st.sampled_from((b"", b"\x02", bytes(63), b"\x02" * 64, b"x" + b"\x02" * 64, bytes(200))),
    closed=st.booleans(),
)
@example(lengths=[63, 63], before=0, behind=b"\x02" * 64, closed=False)
@example(lengths=[64], before=1, behind=b"", closed=True)
@example(lengths=[9, 9], before=0, behind=b"x" + b"\x02" * 64, closed=False)
@example(lengths=[127, 1], before=0, behind=bytes(63), closed=False)
def test_a_walk_stops_at_the_end_of_each_property(
    lengths: list[int], before: int, behind: bytes, *, closed: bool
) -> None:
    text = b"\x02".join(b"x" * length for length in lengths) + b"\x02" * closed
    data, low, high = np.frombuffer(bytes(before) + text + behind, np.uint8), before, before + len(text)
    expected = [place for place in range(low, high) if data[place] == 2]
    expected += [high] * (len(text) > 0 and not text.endswith(b"\x02"))
    for walked in (walk.compiled, walk.by_python):
        found = np.zeros(len(text) + 1, np.int64)
        assert found[: walked(data, low, high, found)].tolist() == expected
