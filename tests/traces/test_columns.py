"""Column-wise reading equals pydantic's reading of every event: of plain lines, odd ones, and rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.spec.catalog import SPECS
from gapless.traces.events import reading, schema
from gapless.traces.events.lines import ndjson
from gapless.traces.events.lines.plain_lines import FEW, PlainLines, ValueKind
from gapless.traces.events.schema import Event
from gapless.traces.judging.batches import Batch
from gapless.traces.judging.columns import gathered, hashed, packed, unpacked
from tests.support.events import an_append, an_event, in_rows, in_rows_of, result_of

NEW = ["", "0", "1", "-", ".", "e", "E", "+", "n", "null", "true", '"', "'", "\\", "/", "{", "}", "[", "]", ",",
       ":", " ", "\t", "\r", "\n", "\0", "\x7f", "é", "\ufeff", "NaN", "9" * 19, "99", '"a":1,', ',"outcome":null',
       '"a"', "{}"]  # fmt: skip


def damaged(data: st.DataObject, text: bytes) -> bytes:
    """Bytes of which some are others, twice there, or lost."""
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, max(0, len(text) - 1)))
        gone = data.draw(st.integers(0, 2))
        new = data.draw(st.sampled_from(NEW).map(str.encode) | st.just(b"\xff") | st.just(text[at : at + 12]))
        text = text[:at] + new + text[at + gone :]
    return text


@given(data=st.data(), events=st.lists(an_event(), min_size=1, max_size=4))
def test_plain_lines_are_read_as_a_library_reads_them(data: st.DataObject, events: list[Event]) -> None:
    """A line that the kernel accepts is read as pydantic reads it; it may leave any line to that."""
    spaces = data.draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]))
    rows = [event.model_dump(exclude_defaults=data.draw(st.booleans())) for event in events]
    for row in rows:
        row["args"] = dict.fromkeys(data.draw(st.lists(st.sampled_from(schema.ARGUMENTS), max_size=2))) | row.get(
            "args", {}
        )
    text = "".join(f"{json.dumps(row, ensure_ascii=False, separators=spaces)}\n" for row in rows)
    lines = damaged(data, text.encode())
    lines = lines if lines.endswith(b"\n") else lines + b"\n"
    plain = schema.OURS.plain.read(lines, lines.count(b"\n"))
    found = None if plain is None else schema.OURS.of_plain(plain)
    if found is not None:
        assert in_rows(found) == in_rows_of(schema.OURS._by_line(lines.split(b"\n")[:-1]))
    elif lines == text.encode() and "\\" not in text and all(-(10**18) < n < 10**18 for n in _integers_in(rows)):
        raise AssertionError(lines)


@pytest.mark.parametrize("behind", ["", "}", '," t":1}'])
@pytest.mark.parametrize("sign", ["", "-"])
def test_an_integer_is_read_however_many_digits_it_has(sign: str, behind: str) -> None:
    """Eight of them are read together, where as many bytes are left."""
    lines = PlainLines({"n": ValueKind.INTEGER, " t": ValueKind.INTEGER})
    for digits in range(1, 22):
        for digit in "19":
            number = sign + digit * digits
            read = lines.read(f'{{"n":{number}{behind or "}"}\n'.encode(), 1)
            if digits > 18:
                assert read is None
            else:
                assert read is not None
                assert read.integers(0).tolist() == [int(number)]
        for odd in ("/", ":", "a", "é", ".", "\x10"):  # the first two are next to the digits
            assert lines.read(f'{{"n":{"7" * digits}{odd}}}\n'.encode(), 1) is None, odd


@pytest.mark.parametrize("behind", ["}", ',"n":1}'])
def test_a_text_is_read_however_long_it_is(behind: str) -> None:
    """Eight letters are looked at together, where as many bytes are left."""
    lines = PlainLines({"t": ValueKind.TEXT, "n": ValueKind.INTEGER, "a-name-of-20-letters": ValueKind.TEXT})
    for name, number in (("t", 0), ("a-name-of-20-letters", 2)):
        for length in range(40):
            for last in (" ", "!", "#", "[", "]", "\x7f", "é", "\x80"):
                text = "t" * length + last
                read = lines.read(f'{{"{name}":"{text}"{behind}\n'.encode(), 1)
                assert read is not None
                assert read.ascii == text.isascii()
                assert read.texts(number).dictionary.to_pylist() == [text]
            for odd in ("\x1f", "\\", "\n", "\t"):
                assert lines.read(f'{{"{name}":"{"t" * length}{odd}"{behind}\n'.encode(), 1) is None


def _integers_in(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _integers_in(part)


@pytest.mark.parametrize(
    "odd",
    [
        '"position":1.0', '"position":1e3', '"position":"1"', '"position":true', '"position":01', '"position":-0',
        '"position":1,"position":1', '"position":9223372036854775807', '"position":1,"pos\\u0069tion":2',
        '"position":1,"payload":null', '"position":+1', '"position":1,', '"position":NaN', '"position":0x1',
        '"position":1,"source":"\\u0061"', '"position":1,"saw":{"end":1.0}', '"position":1,"saw":{"end":{}}',
        '"position":1,"saw":[]', '"position":1,"args":[]', '"position":1}{', '"position":\n1',
    ],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_a_library(odd: str) -> None:
    line = json.dumps(an_append()).replace(" ", "").replace('"position":1,"act', f'{odd},"act').encode() + b"\n"
    assert line.count(odd.encode()) == 1
    assert schema.OURS.plain.read(line, line.count(b"\n")) is None
    assert result_of(lambda: in_rows(schema.OURS.coded_lines(line, line.count(b"\n")))) == result_of(
        lambda: in_rows_of(schema.OURS.from_block(line))
    )


@pytest.mark.parametrize(
    ("plain", "odd"),
    [
        ("T/0", "T\t/0"), ("T/0", "T\x01"), ("T/0", "T\n0"), ("T/0", "T\udcff0"), (',"trace"', '"trace"'),
        (',"trace"', ';"trace"'),
        (',"trace"', ' "trace"'), ("}}", "}"), ("}}", "}}}"), ("}}", "}},"), ("}}", "}} x"), ('{"source', '{,"source'),
        ('"tag":0', '"tag":0,'), ('"tag":0', '"tag"0'), ('"tag":0', '"tag":'), ('"tag":0', '"tag":nul'),
        ('"tag":0', '"tag":nulll'), ('"tag":0', '"tag":true'), ('"tag":0', '"tag":"0"'), ('"tag":0', '"tag":[0]'),
        ('"tag":0', '"tag":-'), ('"tag":0', '"tag":{}'), ('"trace"', "'trace'"), ('"trace":"T/0"', '"trace":T/0'),
        ('"trace":"T/0"', '"trace":0'), ('"trace":', '"trace"'), ('"tag":0', '"tag":0,"tag":null'),
    ],
)  # fmt: skip
def test_a_line_with_one_thing_that_is_not_plain_is_left_to_a_library(plain: str, odd: str) -> None:
    good = json.dumps(an_append()).replace(" ", "") + "\n"
    assert good.count(plain) == 1
    lines = good.encode() + good.replace(plain, odd).encode(errors="surrogateescape")
    read = schema.OURS.plain.read(lines, lines.count(b"\n"))
    assert read is None or not read.utf8()
    assert result_of(lambda: in_rows(schema.OURS.coded_lines(lines, lines.count(b"\n")))) == result_of(
        lambda: in_rows_of(schema.OURS.from_block(lines))
    )


def test_keys_that_lie_at_one_place_of_the_table_are_reported_apart() -> None:
    plain = PlainLines({"a": ValueKind.INTEGER, "b": ValueKind.INTEGER})
    assert plain.read(b'{"a":1,"b":2}\n', 1) is not None
    for other in range(33, 127):  # each of the 64 places is met
        if chr(other) not in 'ab"\\':
            assert plain.read(f'{{"{chr(other)}":1}}\n'.encode(), 1) is None


@given(names=st.lists(st.text("01", max_size=3), min_size=1, max_size=600))
def test_texts_are_numbered_as_they_come(names: list[str]) -> None:
    block = "".join(f'{{"a":"{name}"}}\n' for name in names).encode()
    read = PlainLines({"a": ValueKind.TEXT}).read(block, len(names))
    assert read is not None
    found = read.texts(0)
    assert found.dictionary_decode().to_pylist() == names
    assert found.dictionary.to_pylist() == list(dict.fromkeys(names))


def test_very_many_texts_are_numbered() -> None:
    names = [f"T/{number * 7 % 5000}" for number in range(10_000)]
    read = PlainLines({"a": ValueKind.TEXT}).read("".join(f'{{"a":"{name}"}}\n' for name in names).encode(), len(names))
    assert read is not None
    assert read.texts(0).dictionary_decode().to_pylist() == names


@pytest.mark.parametrize(
    "odd", ['"position":null', '"position":1,"saw":{"end":2,"end":1,"start":null}', '"position":1\r']
)
def test_what_is_plain_and_odd_is_the_same(odd: str) -> None:
    text = json.dumps(an_append()).replace(" ", "").replace('"position":1,"act', f'{odd},"act')
    line = (text.replace("\r", "") + "\r\n" if "\r" in odd else text + "\n").encode()
    assert schema.OURS.plain.read(line, 1) is not None
    assert result_of(lambda: in_rows(schema.OURS.coded_lines(line, 1))) == result_of(
        lambda: in_rows_of(schema.OURS.from_block(line))
    )


def test_a_large_file_is_read_as_a_small_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one odd line in each block, and without: by the kernel, and by the library."""
    path = tmp_path / "events.ndjson"
    monkeypatch.setattr(ndjson, "BLOCK", 2000)
    events = [Event(**an_append(position=at, trace=f"T/{at % 7}" + "\n" * (at % 30 == 29))) for at in range(100)]
    schema.write_events(path, events)
    read = {}
    for pays in (True, False):
        monkeypatch.setattr(PlainLines, "pays", lambda _size, pays=pays: pays)
        read[pays] = [row for coded in reading.coded(path) for row in in_rows(coded)]
    assert read[True] == read[False] == [row for batch in reading.read(path) for row in in_rows_of(batch)]
    assert len(read[True]) == 100


ODD_VALUES: dict[str, list[Any]] = {
    "source": [None],
    "spec": [None, "que", "log"],
    "trace": [None, "", "é"],
    "position": [None, -1],
    "action": [None, "index", "appendix", "account"],
    "outcome": [None, "failed", "refused"],
    "saw": [
        "{",
        "null",
        '{"end":1}',
        '{"end":1.0}',
        '{"end":null}',
        '{"clock":1}',
        '{"end":true}',
        '{"end":1,"end":2}',
    ],
}
ODD_TYPES: dict[str, pa.DataType] = {
    "source": pa.binary(), "trace": pa.large_string(), "position": pa.int8(), "spec": pa.int64(), "saw": pa.int64(),
    "outcome": pa.float64(), "args": pa.int64(),
}  # fmt: skip


@given(data=st.data(), events=st.lists(an_event(), max_size=5))
def test_events_in_codes_are_what_they_are_as_rows(data: st.DataObject, events: list[Event]) -> None:
    """Column-wise reading must agree with row-wise reading for every batch, also in its errors."""
    batch = schema.from_events(events)
    rows = batch.to_pylist()
    for name in data.draw(st.lists(st.sampled_from(sorted(ODD_VALUES)), max_size=2)) if rows else []:
        data.draw(st.sampled_from(rows))[name] = data.draw(st.sampled_from(ODD_VALUES[name]))
    for row in data.draw(st.lists(st.sampled_from(rows), max_size=1)) if rows else []:
        own = SPECS[row["spec"]].parameters[row["action"]] if (row["spec"], row["action"]) in schema.STEPS else ()
        name = data.draw(st.sampled_from(own or schema.ARGUMENTS) | st.sampled_from(schema.ARGUMENTS))
        row["args"][name] = data.draw(st.sampled_from([None, -1, 0, 1, 2]))
    columns = {
        name: pa.array([row[name] for row in rows], schema.SCHEMA.field(name).type) for name in batch.schema.names
    }
    for name in data.draw(
        st.lists(st.sampled_from(["source", "spec", "trace", "action", "outcome", "saw"]), unique=True)
    ):
        columns[name] = columns[name].dictionary_encode()
    for name in data.draw(st.lists(st.sampled_from(sorted(ODD_TYPES)), max_size=1)):
        columns[name] = pa.array([None] * len(rows), ODD_TYPES[name])
    for name in data.draw(st.lists(st.sampled_from(sorted(columns)), max_size=1)):
        del columns[name]
    given_up = pa.RecordBatch.from_pydict(columns)
    assert in_rows(result_of(lambda: schema.OURS.coded(given_up))) == in_rows_of(
        result_of(lambda: schema.sound(given_up))
    )


def test_kernels_are_given_columns_side_by_side(tmp_path: Path) -> None:
    """Native code is compiled again for arrays whose elements lie apart."""
    path = tmp_path / "events.parquet"
    schema.write_events(path, [Event(**an_append(position=at)) for at in range(5)])
    (read,) = gathered(reading.coded(path))
    hashes, every = hashed(read), np.ones(1, np.bool_)
    (travelled,) = unpacked(packed(read, hashes, every, 0, 1), np.zeros(2, np.int64))
    for traces in (read, travelled):
        batch = Batch(traces, np.zeros(1, np.int64))
        assert batch.action.flags.c_contiguous
        assert batch.args.flags.c_contiguous
        assert batch.action.tolist() == [SPECS["queue"].codes["append"]] * 5
        assert batch.args[SPECS["queue"].arguments.index("size")].tolist() == [340] * 5


@given(st.lists(st.sampled_from([0, 1, -1, 127, 128, -129, 2**15, 2**31, -(2**31) - 1, 2**62]), min_size=1, max_size=9))
def test_what_travels_arrives_whatever_its_size(values: list[int]) -> None:
    args = [an_append(position=row, trace=f"T/{row % 3}", args=an_append()["args"] | {"size": size, "tag": -size})
            for row, size in enumerate(values)]  # fmt: skip
    (read,) = gathered([schema.from_events([Event(**one) for one in args])])
    some = np.array([name != "T/1" for name in read.names.to_pylist()])
    (travelled,) = unpacked(packed(read, hashed(read), some, 0, 1), np.array([2**40]))
    mine = np.flatnonzero(some[read.of])
    assert travelled.row.tolist() == [2**40 + row for row in mine.tolist()]
    assert [travelled.name(of) for of in travelled.of.tolist()] == [read.name(of) for of in read.of[mine].tolist()]
    for there, here in zip([travelled.position, *travelled.args], [read.position, *read.args], strict=True):
        assert there.tolist() == here[mine].tolist()
        assert there.dtype == np.int64


def test_integers_travel_in_the_narrowest_type() -> None:
    events = [Event(**an_append(position=at)) for at in range(10_000)]
    (read,) = gathered([schema.from_events(events)])
    (part,) = packed(read, hashed(read), np.ones(1, np.bool_), 0, 1)
    assert len(part.events) < 16 * len(events)


def test_keys_may_come_in_another_order_in_every_line() -> None:
    """Keys are guessed from the line before; these have one length, and differ at their ends or their beginnings."""
    lines = PlainLines({"one": ValueKind.INTEGER, "onf": ValueKind.INTEGER, "tne": ValueKind.INTEGER})
    orders = [*permutations(("one", "onf", "tne")), *permutations(("one", "tne"))]
    written = [dict(zip(names, range(9 * row, 9 * row + 9), strict=False)) for row, names in enumerate(orders)]
    block = lines.read("".join(f"{json.dumps(line)}\n" for line in written).encode(), len(written))
    assert block is not None
    for name, row in lines.number.items():
        assert block.integers(row).tolist() == [line.get(str(name), 0) for line in written]


def test_there_is_room_for_the_keys_that_lines_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorder may write any of a hundred arguments; most write ten. What one block had, the next one begins with."""
    names = [f"n{number}" for number in range(3 * FEW)]
    lines = PlainLines(dict.fromkeys(names, ValueKind.INTEGER))
    rooms: list[int] = []
    room = lines.room

    def counted(*asked: int) -> Any:
        made = room(*asked)
        rooms.append(len(made.values))
        return made

    monkeypatch.setattr(lines, "room", counted)
    for few, expected in ((2, [FEW]), (2 * FEW, [FEW, 2 * FEW, 3 * FEW]), (2, [3 * FEW])):
        written = [{names[at]: at + 1, names[-1 - at]: -at} for at in range(few)]
        block = lines.read("".join(f"{json.dumps(line)}\n" for line in written).encode(), len(written))
        assert block is not None
        for name in names:
            number = lines.number[name]
            assert block.integers(number).tolist() == [line.get(name, 0) for line in written]
            assert block.has(number).tolist() == [name in line for line in written]
            assert block.is_met(number) == any(name in line for line in written)
        assert rooms[-len(expected) :] == expected


OTHERS = (
    '{"b":{"i":3},"a":1,"t":"x"}', '{"a":2,"b":{"i":null},"t":"of","truth":true}', '{"b":{},"a":5,"t":"","odd":"y"}',
    '{"t":"","odd":"y","a":-4}',
)  # fmt: skip


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), ("          ,  ", " :      ")])
@pytest.mark.parametrize("last", OTHERS)
def test_what_stood_between_values_is_not_taken_for_what_stands_there(last: str, separators: tuple[str, str]) -> None:
    """A line is read as the lines before it were, and differs from them by any one byte."""
    keys = {"a": ValueKind.INTEGER, "t": ValueKind.TEXT, "truth": ValueKind.TRUTH, "b": ValueKind.NESTED}
    lines = PlainLines(keys, {"b": ["i"]}, strange=True)
    before, line = (
        [json.dumps(json.loads(one), separators=separators) for one in many] for many in ((*OTHERS, *OTHERS), [last])
    )
    taken = 0
    for at, gone, new in product(range(len(line[0]) + 1), (0, 1), ("", *'{}[]",: \t\n1-natb')):
        every = "\n".join([*before, line[0][:at] + new + line[0][at + gone :], *before, ""])
        read = lines.read(every.encode(), every.count("\n"))
        if read is None:
            continue
        taken += 1
        pairs = [json.loads(one, object_pairs_hook=list, parse_float=str) for one in every.split("\n")[:-1]]
        written = [dict(one) for one in pairs]  # text that is no JSON would have raised, as floats and lists do
        assert all(len(one) == len(names) for one, names in zip(pairs, written, strict=True))
        assert read.integers(0).tolist() == [one.get("a") or 0 for one in written]
        inner = [dict(one.get("b") or ()).get("i") or 0 for one in written]
        assert read.integers(lines.number["i", "b"]).tolist() == inner
        assert read.integers(2).tolist() == [one.get("truth") or 0 for one in written]
        texts: Any = read.texts(1)
        assert texts.to_pylist() == [one.get("t") for one in written]
    assert taken > len(line[0])


@pytest.mark.parametrize("odd", ['{"a":1,"t":"x","a":1}', '{"b":{,"a":1,"t":"x"}}', '{"b":{}"a":1,"t":"x"}'])
def test_what_is_no_plain_line_is_none_among_others(odd: str) -> None:
    """The text between two of its values was that between values of other lines."""
    lines = PlainLines({"a": ValueKind.INTEGER, "t": ValueKind.TEXT, "b": ValueKind.NESTED}, {"b": ["i"]})
    both = '{"b":{},"a":1,"t":"x"}', '{"t":"x","a":1}'
    block = lines.read("\n".join([*both, *both, ""]).encode(), 4)
    assert block is not None
    assert block.integers(0).tolist() == [1] * 4
    for before in permutations(both):
        assert lines.read("\n".join([*before, odd, *before, ""]).encode(), 5) is None
