"""A list of messages becomes the same columns as in plain Python, or it is refused."""

from __future__ import annotations

import enum
import sys
import threading
from array import array
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.impl.records.errors import Refused
from gapless.impl.records.list_kernel import columns_of
from gapless.impl.records.record import LONGEST_PROPERTIES, RESERVED, Messages, properties_bytes


class Text(str):
    """Text that may have ways of its own."""

    __slots__ = ()


class Lane(enum.IntEnum):
    """Queues by name."""

    FAST = 1


def often(usual: st.SearchStrategy[Any], *odd: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw the usual value, and now and then another."""
    return st.integers(0, 60).flatmap(lambda chance: st.one_of(*odd) if chance == 60 else usual)


TEXTS = st.one_of(st.text("abcABC_#é", min_size=1, max_size=40), st.text(min_size=1, max_size=3))
ODD_TEXTS = st.one_of(
    st.text("ab\0\1\2", max_size=3),
    st.sampled_from((*RESERVED, "__CRC32", "x" * LONGEST_PROPERTIES, "x" * 20_000, "\ud800", Text("sub"))),
    st.sampled_from((None, 1, b"bytes", ["text"])),
)
ODD_TEXTS_THAT_HASH = ODD_TEXTS.filter(lambda text: not isinstance(text, list))
PAIRS = often(TEXTS, ODD_TEXTS)
PROPERTIES = often(
    st.dictionaries(often(TEXTS, ODD_TEXTS_THAT_HASH), PAIRS, max_size=5),
    st.sampled_from((None, 5, "TAGS", MappingProxyType({"TAGS": "a"}), MappingProxyType({}), [("TAGS", "a")])),
)
BODIES = often(
    st.binary(max_size=300),
    st.builds(bytearray, st.binary(max_size=9)),
    st.builds(memoryview, st.binary(max_size=9)),
    st.sampled_from((None, "text", 7)),
    st.builds(lambda: memoryview(array("i", [1, 2]))),  # two numbers, eight bytes
    st.builds(lambda: memoryview(b"abcdef")[::2]),
    st.builds(lambda: np.arange(6)),
)
TOPICS = often(st.sampled_from(("orders", "payments", "a/b", "é", "")), ODD_TEXTS)
QUEUES = often(
    st.integers(0, 3),
    st.sampled_from((-1, 1 << 31, (1 << 63) - 1, 1 << 63, -(1 << 70), True, Lane.FAST, 1.0, np.int64(2))),
    st.sampled_from((None, "1", [])),
)
MESSAGES = st.tuples(TOPICS, QUEUES, BODIES, PROPERTIES)
ROWS = often(
    MESSAGES,
    st.sampled_from(((), ("orders", 0, b""), ("orders", 0, b"", {}, 5), "four", 7, None)),
    MESSAGES.map(list),
)


def plain(rows: list[Any]) -> tuple[list[tuple[Any, Any]], list[int], list[bytes], list[bytes]] | None:
    """Queues, where each message's is among them, bodies and properties; None for what is to be refused."""
    queues: dict[tuple[Any, Any], int] = {}
    index, bodies, extras = [], [], []
    try:
        for topic, queue, body, properties in rows:
            index.append(queues.setdefault((topic, queue), len(queues)))
            bodies.append(memoryview(body).tobytes())
            extras.append(properties_bytes(properties))
    except (TypeError, ValueError, AttributeError, Refused):
        return None
    return list(queues), index, bodies, extras


def is_usual(row: Any) -> bool:
    """True if its types are read natively, and it may be appended."""
    kinds = (str, int, bytes, dict)
    return (
        type(row) is tuple
        and [type(part) for part in row] == list(kinds)
        and 0 <= row[1] < 1 << 63
        and "\ud800" not in row[0]
        and all(type(text) is str for pair in row[3].items() for text in pair)
    )


def cut(texts: Any, ends: Any) -> list[bytes]:
    return [texts[low:high].tobytes() for low, high in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]


def require_same(rows: list[Any]) -> None:
    """Natively or not, the columns are those that plain Python makes."""
    expected = plain(rows)
    is_native = columns_of(tuple(rows), RESERVED, LONGEST_PROPERTIES) is not None
    assert is_native == (expected is not None and all(map(is_usual, rows)))
    if expected is None:
        with pytest.raises(Refused):
            Messages.of_list(rows)
        return
    found = Messages.of_list(rows)
    assert found.property_ends is not None
    assert (list(found.queues), found.queue_index.tolist()) == expected[:2]
    assert (cut(found.bodies, found.body_ends), cut(found.properties, found.property_ends)) == expected[2:]


@given(st.lists(ROWS, max_size=30), st.integers(1, 40))
def test_columns_are_those_of_each(rows: list[Any], times: int) -> None:
    require_same(rows * times)


MESSAGE = ("orders", 0, b"body", {"k": "v"})
ODD_QUEUES: list[Any] = [-1, 1 << 63, -(1 << 70), True, Lane.FAST, 1.0, np.int64(2), None, "1", []]
ODD_ROWS: dict[str, Any] = {
    "nothing": (),
    "a part missing": MESSAGE[:3],
    "a part more": (*MESSAGE, 5),
    "a list": list(MESSAGE),
    "a text": "four",
    "None": None,
    **{f"topic {topic!r}": (topic, *MESSAGE[1:]) for topic in (None, 5, b"orders", ["orders"], "\ud800", Text("sub"))},
    **{f"queue {queue!r}": ("orders", queue, b"", {}) for queue in ODD_QUEUES},
    **{
        f"a body, {type(body).__name__} {number}": ("orders", 0, body, {})
        for number, body in enumerate((None, "text", 7, bytearray(b"xyz"), memoryview(b"abcdef")[::2], np.arange(6)))
    },
    "a body of two wide numbers": ("orders", 0, memoryview(array("i", [1, 2])), {}),
    **{
        f"properties {given!r:.40}": ("orders", 0, b"", given)
        for given in (
            *(None, 5, "TAGS", [("TAGS", "a")], MappingProxyType({"TAGS": "a"}), {"k": ""}, {"": "v"}),
            *({"k": f"a{separator}"} for separator in "\0\1\2"), *({f"{separator}a": "v"} for separator in "\0\1\2"),
            *({name: "v"} for name in RESERVED), {"k": None}, {5: "v"}, {"k": "\ud800"}, {"\ud800": "v"},
            {"k": Text("v")}, {Text("k"): "v"}, {"k": "v" * LONGEST_PROPERTIES}, {"k": "v", "l": "v" * 32_765},
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD_ROWS.values(), ids=ODD_ROWS)
def test_one_that_is_odd(odd: Any) -> None:
    assert columns_of((MESSAGE, odd, MESSAGE), RESERVED, LONGEST_PROPERTIES) is None
    require_same([odd])
    require_same([MESSAGE, odd, MESSAGE])


USUAL_ROWS = {
    "as it is": MESSAGE,
    "no text": ("", 0, b"", {}),
    "a large number": ("orders", (1 << 63) - 1, b"", {}),
    "not ASCII": ("é" * 99, 0, b"", {"é\U0001f600": "\u4e2d\u6587"}),
    "a reserved name as a value": ("orders", 0, b"", {"k": RESERVED[0], "__CRC32": "v", "x" * len(RESERVED[0]): "v"}),
    "many properties": ("orders", 0, b"", {f"n{number}": "v" for number in range(500)}),
}


@pytest.mark.parametrize("usual", USUAL_ROWS.values(), ids=USUAL_ROWS)
def test_one_that_is_usual(usual: Any) -> None:
    assert columns_of((MESSAGE, usual, MESSAGE), RESERVED, LONGEST_PROPERTIES) is not None
    require_same([MESSAGE, usual, MESSAGE])


def test_topics_that_are_equal_and_not_the_same() -> None:
    names = ["".join(["or", "ders", str(number % 3)]) for number in range(600)]
    messages = Messages.of_list([(name, number % 7, b"", {}) for number, name in enumerate(names)])
    assert len(messages.queues) == 21
    assert [messages.queues[at] for at in messages.queue_index] == [(name, n % 7) for n, name in enumerate(names)]


def test_many_queues_and_long_texts() -> None:
    rows = [
        (f"topic{number // 4}", number * 2**32, b"x" * (number % 9000), {"k": "v" * (1 + number * 6)})
        for number in range(5000)
    ]
    assert columns_of(tuple(rows), RESERVED, LONGEST_PROPERTIES) is not None
    require_same(rows)


@pytest.mark.parametrize(("size", "is_taken"), [(LONGEST_PROPERTIES - 3, True), (LONGEST_PROPERTIES - 2, False)])
def test_the_longest_properties(size: int, is_taken: bool) -> None:  # noqa: FBT001
    rows = (("orders", 0, b"", {"k": "v" * size}),)
    assert (columns_of(rows, RESERVED, LONGEST_PROPERTIES) is not None) == is_taken


@pytest.mark.parametrize("queues", [1, 3])
def test_many_topics_in_one_table(queues: int) -> None:
    require_same([(f"t{number}", number % queues, b"", {}) for number in range(6000)] * 2)


def test_nothing_is_kept_and_no_error_is_left() -> None:
    """The arguments of the kernel are unchanged, even if it gave up; a pending error would be raised anywhere."""
    topic, body, value = f"{id(RESERVED)}", bytes(range(200)), f"{id(TEXTS)}"
    for last in ("usual", "\ud800"):
        for queue in (1, 1 << 80):
            rows = [(topic, 300, body, {"k": value})] * 50 + [(last, queue, body, {last: value})]
            before = [sys.getrefcount(one) for one in (topic, body, value, rows)]
            for _ in range(10):
                columns_of(tuple(rows), RESERVED, LONGEST_PROPERTIES)
            assert before == [sys.getrefcount(one) for one in (topic, body, value, rows)]


def test_a_list_that_is_changed_meanwhile() -> None:
    """Each call gives messages that were in the list, whole."""
    rows, is_over = [("orders", 0, b"old", {"k": "old"})] * 2000, threading.Event()

    def change() -> None:
        while not is_over.is_set():
            for at in range(0, len(rows), 7):
                rows[at] = (f"new{at}", at, b"%d" % at, {"k": str(at)})
            rows[:] = [("orders", 0, b"old", {"k": "old"})] * 2000

    writer = threading.Thread(target=change)
    writer.start()
    try:
        for _ in range(200):
            found = Messages.of_list(rows)
            assert found.property_ends is not None
            extras = cut(found.properties, found.property_ends)
            for body, extra in zip(cut(found.bodies, found.body_ends), extras, strict=True):
                assert extra == b"k\x01%b\x02" % body
    finally:
        is_over.set()
        writer.join()


def test_columns_of_a_list_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Messages.of_list([("orders", 0, b"x", {})]).bodies[0] = 0
