"""Settings are parsed as Java parses them."""

from __future__ import annotations

import json
from pathlib import Path

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless import check
from gapless.traces.sources.rocketmq.store.settings import (
    is_on,
    is_slave,
    number_set,
    plain_properties,
    quoted,
    read_settings,
)
from tests.support.rocketmq.recordings import copy_of, recording

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


@pytest.mark.parametrize(
    ("value", "found"),
    [
        *(("0", 0), ("48", 48), ("2147483647", 2**31 - 1), ("0000000000000000012", 12), ("+48", 48), ("-0", 0)),
        *((value, 7) for value in ("", " ", "48 ", "-1", "2147483648", "9" * 5000, "72h", "1e3", "²", "12²")),
        *((value, 7) for value in ("+", "-", "--1", "+-1")),
    ],
    ids=range(20),
)
def test_a_number_is_one_that_java_reads_as_32_bits(value: str, found: int) -> None:
    assert number_set({"fileReservedTime": value}, "fileReservedTime", 7) == found
    assert number_set({}, "fileReservedTime", 7) == 7


def test_a_limit_that_the_broker_did_not_read_is_no_violation(tmp_path: Path) -> None:
    """The recorded halves were checked more than once."""
    (tmp_path / "broker.conf").write_text("transactionCheckMax=1\n")
    found = check([recording("normal")], config=tmp_path / "broker.conf", jobs=1, engine="local")
    assert [one.rule for one in found.violations] == ["transaction/check-is-left"]
    (tmp_path / "broker.conf").write_text("transactionCheckMax=1 \n")
    assert check([recording("normal")], config=tmp_path / "broker.conf", jobs=1, engine="local").verdict == "conforms"


def test_a_number_may_be_below_zero_where_that_means_something() -> None:
    assert number_set({"fileReservedTime": "-1"}, "fileReservedTime", 7, least=-5) == -1
    assert number_set({"fileReservedTime": "-6"}, "fileReservedTime", 7, least=-5) == 7


@pytest.mark.parametrize("value", ["true", "TRUE", "tRuE"])
def test_a_switch_is_on_in_letters_of_any_size(value: str) -> None:
    assert is_on({"enableLmq": value}, "enableLmq")


@pytest.mark.parametrize("value", ["false", "no", "yes", "1", "on", "", "true ", "true\u0000"])
def test_a_switch_is_off_where_anything_else_is_written(value: str) -> None:
    assert not is_on({"messageIndexEnable": value}, "messageIndexEnable", otherwise=True)


def test_an_unset_switch_is_as_the_broker_has_it() -> None:
    assert [is_on({}, "messageIndexEnable", otherwise=one) for one in (True, False)] == [True, False]


def test_a_slave_is_one_by_its_role_or_its_number() -> None:
    slaves: list[dict[str, str]] = [{"brokerRole": "SLAVE "}, {"brokerId": "2"}, {"brokerId": "-1"}]
    masters: list[dict[str, str]] = [
        {},
        {"brokerRole": "slave"},
        {"brokerId": "0"},
        {"brokerId": "2 "},
        {"brokerRole": "SYNC_MASTER"},
    ]
    assert all(map(is_slave, slaves))
    assert not any(map(is_slave, masters))


@pytest.mark.parametrize(("value", "verdict"), [("no", "conforms"), ("1", "conforms"), ("TRUE", "departs")])
def test_a_switch_of_the_index_in_odd_letters_is_read_as_the_broker_reads_it(
    value: str, verdict: str, tmp_path: Path
) -> None:
    store = copy_of("layouts/index_first_5.5.0", tmp_path)
    max((store / "index").iterdir()).unlink()  # the keys of the last records are nowhere now
    with (store.parent / "broker.conf").open("a") as config:
        config.write(f"messageIndexEnable={value}\n")
    assert check([store]).verdict == verdict


def test_a_time_may_be_longer() -> None:
    times = [number_set({"a": value}, "a", 7, most=2**62) for value in (str(2**31), str(2**62), str(2**63), "9" * 20)]
    assert times == [2**31, 2**62, 7, 7]


def test_a_zero_byte_stays_what_it_is() -> None:
    with pytest.raises(ValueError, match="control character"):
        json.loads(quoted('{"a\0":1}'))
