"""The properties of a list of messages are those that `properties_bytes` makes, one by one."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.impl.records.errors import Refused
from gapless.impl.records.property_kernel import packed_properties
from gapless.impl.records.record import LONGEST_PROPERTIES, RESERVED, Messages, properties_bytes

TEXTS = st.one_of(
    st.text("abcABC_#", max_size=40),
    st.text(max_size=5),
    st.sampled_from((*RESERVED, "__CRC32", "x" * 31, "x" * 32, "y" * 255, "y" * 256)),
)
ANYTHING: st.SearchStrategy[Any] = st.one_of(TEXTS, st.integers(), st.none(), st.binary(max_size=3), st.lists(TEXTS))


def packed(properties: Any) -> Any:
    return packed_properties(properties, RESERVED, LONGEST_PROPERTIES)


def of_each(properties: list[Any]) -> list[bytes] | None:
    try:
        return [properties_bytes(each) for each in properties]
    except (Refused, AttributeError, TypeError):
        return None


@given(st.lists(st.dictionaries(TEXTS, TEXTS, max_size=20), max_size=40))
def test_texts_are_those_of_properties_bytes(properties: list[dict[str, str]]) -> None:
    expected = of_each(properties)
    found = packed(properties)
    if found is None:
        assert expected is None or not all(map(bytes.isascii, expected)), "plain texts are written at once"
    else:
        assert expected is not None
        assert found[0] == b"".join(expected)
        assert found[1].tolist() == [len(each) for each in expected]


@given(
    st.lists(
        st.one_of(st.dictionaries(ANYTHING.filter(lambda x: not isinstance(x, list)), ANYTHING), ANYTHING), max_size=9
    )
)
def test_what_is_no_text_is_refused_as_one_by_one(properties: list[Any]) -> None:
    if of_each(properties) is None:
        assert packed(properties) is None
        with pytest.raises(Refused):
            Messages.of_list([("orders", 0, b"", each) for each in properties])


def test_any_mapping_will_do() -> None:
    messages = Messages.of_list([("orders", 0, b"x", MappingProxyType({"TAGS": "é"})), ("orders", 0, b"y", {})])
    assert messages.properties.tobytes() == "TAGS\x01é\x02".encode()


def test_many_and_long_ones() -> None:
    for count in (15, 16, 70_000):
        found = packed([{"TAGS": "paid"}] * count)
        assert found is not None
        assert found[0] == b"TAGS\x01paid\x02" * count
    assert packed([{f"n{number}": "v" for number in range(16)}, {"k": "v" * 30_000}]) is not None
    assert packed([{"k": "v" * 32_766}]) is None
