"""Settings are read as Java reads them, whoever reads them."""

from __future__ import annotations

import json
from pathlib import Path

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.traces.sources.rocketmq.store.settings import plain_properties, quoted, read_settings

TEXT = st.text(alphabet="ab=:#! \t\\\r\n\f.é\x00u1", max_size=30)


@given(st.lists(TEXT, max_size=4).map("\n".join))
def test_what_is_plain_is_read_as_the_library_reads_it(text: str) -> None:
    content = text.encode("latin-1")
    plain = plain_properties(content)
    assert plain is None or plain == dict(javaproperties.loads(content))


@pytest.mark.parametrize(
    ("content", "settings"),
    [
        (b"a=1\r\nb = 2 \n# c=3\n  ! d\n\n e.f =x=y:z\na=4", {"a": "4", "b": "2 ", "e.f": "x=y:z"}),
        (b"empty=\n", {"empty": ""}),
    ],
)
def test_most_files_are_plain(content: bytes, settings: dict[str, str], tmp_path: Path) -> None:
    assert plain_properties(content) == settings == dict(javaproperties.loads(content))
    (tmp_path / "broker.conf").write_bytes(content)
    assert read_settings(tmp_path / "broker.conf") == settings


@pytest.mark.parametrize("content", [b"a:1", b"a 1", b"a=1\\\n2", b"a=\\u0041", "a=é".encode("latin-1"), b"a", b"=1"])
def test_others_are_left_to_the_library(content: bytes, tmp_path: Path) -> None:
    assert plain_properties(content) is None
    (tmp_path / "broker.conf").write_bytes(content)
    assert read_settings(tmp_path / "broker.conf") == dict(javaproperties.loads(content))


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ('{"all":{"orders@billing":{0:5,1:-3,"2":7}}}', {"all": {"orders@billing": {"0": 5, "1": -3, "2": 7}}}),
        ('{ "a{0:1" : {\n 12 : [1,2] },"b,3:":{4:{5:6}}}', {"a{0:1": {"12": [1, 2]}, "b,3:": {"4": {"5": 6}}}),
        (r'{"a\"{0:1":{0:"\\"},1:"{2:3}"}', {'a"{0:1': {"0": "\\"}, "1": "{2:3}"}),
        ("{}", {}),
    ],
)  # fmt: skip
def test_keys_that_are_integers_are_quoted_and_texts_are_left_alone(text: str, content: dict[str, object]) -> None:
    """With and without a backslash, each of which is read in a way of its own."""
    assert json.loads(quoted(text)) == content


def test_a_zero_byte_stays_what_it_is() -> None:
    with pytest.raises(ValueError, match="control character"):
        json.loads(quoted('{"a\0":1}'))
