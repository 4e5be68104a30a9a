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
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import Record

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


# -- files next to a store, and files that are named ---------------------------------------------------------------


def store_of_one_message(folder: Path) -> Path:
    builder = StoreBuilder()
    builder.append(Record("orders", body=b"one"))
    return builder.write(folder / "store")


def test_settings_next_to_a_store_that_cannot_be_read_do_not_stop_its_check(tmp_path: Path) -> None:
    """The rules that need them are not checked; named by an option, they are refused."""
    store = store_of_one_message(tmp_path)
    config = tmp_path / "broker.conf"
    config.write_text('{"sources": [1]}')
    report = check(store)
    assert report.verdict == "conforms"
    (note,) = [note for note in report.sources[0].notes if "broker.conf" in note]
    assert note == (
        "broker.conf next to the store is not used, so rules that need settings are not checked: no setting in it "
        "that a broker knows: is this the broker.conf?"
    )
    assert check(store, config=config).verdict == "unreadable"


def test_a_client_log_next_to_a_store_that_cannot_be_read_leaves_its_check_inconclusive(tmp_path: Path) -> None:
    """Its evidence is missing; named by an option, it is refused."""
    store = store_of_one_message(tmp_path)
    client = tmp_path / "client.ndjson"
    client.write_text("none\n")
    report = check(store)
    (reason,) = report.sources[0].reasons
    assert (report.verdict, report.sources[0].records) == ("inconclusive", 1)
    assert reason.startswith(
        "client.ndjson next to the store is not used, so what clients were promised is not checked: line 1: not JSON"
    )
    assert check(store, client=client).verdict == "unreadable"


def test_settings_are_counted_and_another_length_of_log_files_is_noted(tmp_path: Path) -> None:
    config = tmp_path / "other.conf"
    config.write_text("brokerName=a\nmappedFileSizeCommitLog=1073741824\n")
    (counted, size) = check(recording("normal"), config=config).sources[0].notes[:2]
    assert counted == f"settings from {config} (2 read)"
    assert size == "settings say mappedFileSizeCommitLog=1073741824, and the log's files have 1048576 bytes"
