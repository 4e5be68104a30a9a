"""Events survive a file unchanged, and a file of another format is reported in one sentence."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from pydantic import ValidationError

from gapless.spec.catalog import SPECS
from gapless.traces.events import compressed, reading, schema
from gapless.traces.events import parquet as event_parquet
from gapless.traces.events.event import NAME, NoEvent
from gapless.traces.events.files import codec_of
from gapless.traces.events.lines import ndjson
from gapless.traces.events.schema import Event
from gapless.traces.judging.columns import gathered
from gapless.traces.problems import Unreadable
from tests.support.events import an_append, an_event, result_of
from tests.support.night import NIGHT

SUFFIXES = (".ndjson", ".parquet", ".ndjson.gz", ".ndjson.zst")
EVERY_FORM = pytest.mark.parametrize("suffix", SUFFIXES)


EVENTS = st.lists(an_event(), max_size=12)


def table(batches: Iterator[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches, schema.SCHEMA)


# -- there and back ------------------------------------------------------------------------------------------------


@settings(max_examples=max(4, settings().max_examples // 2))
@given(events=EVENTS, cuts=st.lists(st.integers(0, 12), max_size=3))
def test_events_and_columns_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event], cuts: list[int]
) -> None:
    """In every form, by whichever way they were written; and what one form holds becomes the other."""
    folder = tmp_path_factory.mktemp("events")
    bounds = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
    whole = schema.from_events(events)
    batches = [whole.slice(low, high - low) for low, high in pairwise(bounds)]
    assert list(schema.to_events(whole)) == events
    for suffix in SUFFIXES:
        path = folder / f"columns{suffix}"
        assert schema.write(path, batches) == len(events)
        assert table(reading.read(path)) == pa.Table.from_batches([whole])
    assert schema.write_events(folder / "one.ndjson", events) == len(events)
    assert list(reading.read_events(folder / "one.ndjson")) == events
    schema.write(folder / "two.parquet", reading.read(folder / "one.ndjson"))
    schema.write(folder / "three.ndjson", reading.read(folder / "two.parquet"))
    assert (folder / "three.ndjson").read_bytes() == (folder / "one.ndjson").read_bytes()


def test_kernel_columns_become_events() -> None:
    spec = SPECS["queue"]
    args = np.arange(3 * len(spec.arguments), dtype=np.int64).reshape(-1, 3)
    action = np.array([spec.codes[name] for name in ("open", "rebuild", "settle")], np.int8)
    batch = schema.from_columns(
        "queue", source="a", traces=["T/0", "T/\udcff"], trace=np.array([1, 0, 0]), position=np.arange(3),
        action=action, args=args,
    )  # fmt: skip
    row = {name: args[at].tolist() for at, name in enumerate(spec.arguments)}
    expected: list[tuple[str, str, dict[str, int]]] = [
        ("T/\\udcff", "open", {"number": row["number"][0], "start": row["start"][0]}),
        ("T/0", "rebuild", {}),
        ("T/0", "settle", {"upto": row["upto"][2]}),
    ]
    assert list(schema.to_events(batch)) == [
        Event(source="a", spec="queue", trace=trace, position=at, action=name, args=values)
        for at, (trace, name, values) in enumerate(expected)
    ]


def test_a_line_leaves_out_what_is_null_or_usual(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    schema.write_events(path, [Event(**an_append(trace="tópico\n\u2028/0", outcome="ok", saw=None))])
    header, line, nothing = path.read_text(encoding="utf-8").split("\n")
    assert json.loads(header) == {"schema": "gapless-events", "version": 1}
    assert json.loads(line) == an_append(trace="tópico\n\u2028/0")
    assert nothing == ""


@EVERY_FORM
def test_memory_is_bounded_by_row_groups_and_blocks(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_parquet, "ROWS", 8)
    monkeypatch.setattr(ndjson, "BLOCK", 500)
    path = tmp_path / f"events{suffix}"
    events = [Event(**an_append(position=at)) for at in range(50)]
    schema.write(path, (schema.from_events(group) for group in (events[:1], events[1:30], [], events[30:])))
    assert max(batch.num_rows for batch in reading.read(path)) <= 8
    assert list(reading.read_events(path)) == events
    if suffix == ".parquet":
        groups = parquet.ParquetFile(path).metadata
        assert [groups.row_group(at).num_rows for at in range(groups.num_row_groups)] == [8] * 6 + [2]


@pytest.mark.parametrize("ahead", [False, True])
def test_what_is_read_ahead_is_what_would_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, ahead: bool
) -> None:
    monkeypatch.setattr(event_parquet, "ROWS", 8)
    path, threads = tmp_path / "events.parquet", threading.active_count()
    schema.write_events(path, [Event(**an_append(position=at, trace=f"{at}")) for at in range(50)])

    def positions(sound: Callable[[pa.RecordBatch], list[int]]) -> Iterator[list[int]]:
        with path.open("rb") as file:
            yield from event_parquet.read(path, file, 1, None, sound, ahead=ahead)

    def of(batch: pa.RecordBatch) -> list[int]:
        found: list[int] = batch.column("position").to_numpy().tolist()
        if refused in found:
            raise NoEvent(found.index(refused), "refused")
        return found

    refused = -1
    assert [*chain(*positions(of))] == list(range(8, 50))
    assert next(positions(of)) == list(range(8, 16))  # and no more are requested
    refused = 43
    with pytest.raises(NoEvent) as wrong:
        list(positions(of))
    assert (wrong.value.row, threading.active_count()) == (43, threads)


def test_the_next_batch_is_read_while_one_is_in_use() -> None:
    is_read = threading.Event()

    def batches() -> Iterator[Any]:
        yield "one"
        is_read.set()
        yield "two"

    ahead: Iterator[Any] = event_parquet._ahead(batches())
    assert next(ahead) == "one"
    assert is_read.wait(10)
    assert list(ahead) == ["two"]


@pytest.mark.parametrize(("traces", "groups"), [(1, [32, 18]), (4, [32, 8, 8, 2]), (5, [8] * 6 + [2])])
def test_few_traces_lie_in_large_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, traces: int, groups: list[int]
) -> None:
    monkeypatch.setattr(event_parquet, "ROWS", 8)
    monkeypatch.setattr(event_parquet, "LONG", 8)
    path = tmp_path / "events.parquet"
    events = [Event(**an_append(position=at, trace=f"{at % traces}")) for at in range(50)]
    schema.write_events(path, events)
    footer = parquet.ParquetFile(path).metadata
    assert [footer.row_group(at).num_rows for at in range(footer.num_row_groups)] == groups
    assert max(batch.num_rows for batch in reading.read(path)) <= 8
    assert list(reading.read_events(path)) == events


@pytest.mark.parametrize(("traces", "most"), [(1, 32), (4, 32), (5, 8), (50, 8)])
def test_events_of_many_traces_are_not_kept_for_larger_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, traces: int, most: int
) -> None:
    """They took four times the memory, and were written in the same row groups."""
    monkeypatch.setattr(event_parquet, "ROWS", 8)
    monkeypatch.setattr(event_parquet, "LONG", 8)
    written: list[int] = []
    are_few = event_parquet._are_few

    def seen(names: pa.ChunkedArray[Any]) -> bool:
        written.append(len(names))
        return are_few(names)

    monkeypatch.setattr(event_parquet, "_are_few", seen)
    events = [Event(**an_append(position=at, trace=f"{at % traces}")) for at in range(64)]
    schema.write(tmp_path / "events.parquet", (schema.from_events(events[at : at + 8]) for at in range(0, 64, 8)))
    assert written == [most] * (64 // most)


def test_stretches_of_parquet_are_bounded_by_events_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_parquet, "ROWS", 8)
    path = tmp_path / "events.parquet"
    schema.write_events(path, [Event(**an_append(position=at)) for at in range(50)])
    assert len(reading.stretches(path, 1 << 30)) == 1
    monkeypatch.setattr(event_parquet, "MOST", 10)
    stretches = reading.stretches(path, 1 << 30)
    assert [sum(map(len, reading.coded(path, stretch))) for stretch in stretches] == [16, 16, 16, 2]
    assert len(stretches) > len(reading.stretches(path, 1)) / 2 > 3


@EVERY_FORM
def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"events{suffix}"
    schema.write_events(path, [Event(**an_append())])
    before = path.read_bytes()

    def breaking() -> Iterator[Event]:
        yield Event(**an_append(position=2))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        schema.write_events(path, breaking())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_written_that_could_not_be_read(tmp_path: Path) -> None:
    batch = schema.from_events([Event(**an_append()), Event(**an_append())])
    outcomes = pa.array(["ok", "perhaps"])
    strange = batch.set_column(batch.schema.get_field_index("outcome"), "outcome", outcomes)
    with pytest.raises(ValueError, match="event 3: outcome is 'perhaps', expected ok"):
        schema.write(tmp_path / "events.parquet", [batch, strange])
    assert not list(tmp_path.iterdir())


# -- what is no event ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"spec": "queues"}, "spec is 'queues', expected aborted_index, broker, "),
        ({"action": "appendix"}, "action is 'appendix', expected a step of queue: open, "),
        ({"args": {"number": 1}}, "args of append are number, expected number, count, position, size, tag"),
        ({"args": an_append()["args"] | {"start": 3}}, "args of append are number, count, position, size, tag, start,"),
        ({"args": an_append()["args"] | {"size": "340"}}, "args.size of append is '340', expected a whole number"),
        ({"args": an_append()["args"] | {"size": 340.0}}, "args.size of append is 340.0, expected a whole number"),
        (
            {"args": an_append()["args"] | {"size": 2**63}},
            "args.size of append is 9223372036854775808,",
        ),
        ({"args": 5}, "args is 5, expected an object"),
        ({"action": "account", "args": {"number": 1, "sent": 7}}, "args.sent of account is 7, expected 1 or 0"),
        ({"action": "account", "args": {"number": 1, "sent": -1}}, "args.sent of account is -1, expected 1 or 0"),
        ({"position": None}, "missing: position"),
        ({"position": True}, "position is true, expected a whole number"),
        (
            {"action": "account", "args": {"number": 1, "sent": "yes"}},
            "args.sent of account is 'yes', expected",
        ),
        ({"saw": {"end": "x"}}, "saw.end of append is 'x', expected a whole number"),
        ({"position": -(2**63) - 1}, "position is -9223372036854775809, expected at least"),
        ({"outcome": "failed"}, "outcome is 'failed', expected ok, refused, unknown or inferred"),
        ({"saw": {"end": 1, "positions": 2}}, "saw names positions, expected fields of queue: start, first, indexed"),
        ({"payload": "secret"}, "unknown field payload, expected source, spec, trace"),
        ({"trace": "\ud800"}, "not JSON"),
    ],
)
def test_what_is_no_event_is_reported_on_its_line(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    given_up = an_append(**changed)
    with pytest.raises(ValidationError):
        Event.model_validate(given_up)
    path = tmp_path / "events.ndjson"
    path.write_text("\n".join(map(json.dumps, [ndjson.HEADER, an_append(), an_append(), given_up])) + "\n")
    with pytest.raises(Unreadable) as raised:
        list(reading.read(path))
    assert result_of(lambda: list(reading.coded(path))) == (Unreadable, str(raised.value))
    assert str(raised.value).startswith(f"{path}, line 4: ")
    assert words in str(raised.value)
    assert str(raised.value).endswith("(gapless schema events describes an event)")


def test_null_is_the_same_as_left_out() -> None:
    nulls = dict.fromkeys(schema.ARGUMENTS)
    wide = an_append(outcome=None, saw={"end": None}) | {"args": nulls | an_append()["args"]}
    assert Event.model_validate(wide) == Event(**an_append(saw={}))


def test_truth_is_a_number(tmp_path: Path) -> None:
    """Languages that tell the two apart write true and false; in NDJSON and Parquet they are 1 and 0."""
    asked = {"action": "account", "args": {"number": 1, "sent": 1}}
    events, truth = an_append(**asked, saw={"end": 1}), an_append(**asked, saw={"end": True})
    truth = truth | {"args": {"number": 1, "sent": True}}
    assert Event.model_validate(truth) == Event(**events)
    path = tmp_path / "events.ndjson"
    path.write_text("\n".join(map(json.dumps, [ndjson.HEADER, events, truth, events | {"args": truth["args"]}])) + "\n")
    (first, second, third) = (event for batch in reading.read(path) for event in schema.to_events(batch))
    assert first == second == third
    column = pa.array([{"number": 1, "sent": True}], pa.struct([("number", pa.int64()), ("sent", pa.bool_())]))
    batch = schema.from_events([Event(**events)])
    with_truth = pa.RecordBatch.from_arrays(
        [column if name == "args" else batch.column(name) for name in batch.schema.names], names=batch.schema.names
    )
    assert schema.sound(with_truth).equals(batch)


HEADER_LINE = json.dumps(ndjson.HEADER)
LINE = json.dumps(an_append())
TWICE = [
    LINE.replace("{", '{"position": 1, ', 1),
    LINE.replace('"args": {', '"args": {"position": 0, '),
    LINE[:-1] + ', "saw": {"position": 1, "position": 2}}',
]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: the file is empty, expected {"),
        ("\0" * 4096, "line 1: it begins " + r"\x00" * 60 + "…, and no newline ends it, expected {"),
        ("[" * 100_000, "line 1: it begins " + "[" * 60 + "…, and no newline ends it, expected {"),
        (LINE + "\n", f"line 1: it begins {LINE[:60]}…, expected {{"),
        (HEADER_LINE, f"line 1: it begins {HEADER_LINE}, and no newline ends it, expected {{"),
        ("\ufeff" + HEADER_LINE + "\n", "line 1: it begins with a byte order mark; write it as UTF-8 without one"),
        (HEADER_LINE.replace("1", "2") + "\n", "of version 2, expected 1"),
        ('{"schema":"gapless-events"}\n', "of version unknown, expected 1"),
        (f"{HEADER_LINE}\n{LINE}\n{LINE[:50]}", "line 3: the last line is cut off"),
        (f"{HEADER_LINE}\n{LINE}\n{LINE[:50]}\n", "line 3: not JSON"),
        (f"{HEADER_LINE}\n{LINE}\n\n{LINE}\n", "line 3: not JSON"),
        (f"{HEADER_LINE}\n{LINE} {LINE}\n", "line 2: not JSON"),
        (f"{HEADER_LINE}\n{LINE}\n[]\n", "line 3: this is [], expected an object"),
        (f"{HEADER_LINE}\n{'[' * 100_000}\n", "line 2: not JSON"),
        (f"{HEADER_LINE}\n{LINE.replace('17', 'NaN')}\n", "line 2: not JSON (expected value at column"),
        (f"{HEADER_LINE}\n{LINE.replace('17', '9' * 5000)}\n", "line 2: "),
        (
            f"{HEADER_LINE}\n{LINE.replace('17', '17.0')}\n",
            "line 2: args.number of append is ",
        ),
        (f"{HEADER_LINE}\n{LINE.replace('T/0', chr(27) + '[31m')}\n", "line 2: not JSON"),
        (f"{HEADER_LINE}\n{'x' * (ndjson.LONGEST - 1)}\n", "line 2: not JSON"),
        (f"{HEADER_LINE}\n{'x' * ndjson.LONGEST}\n", "line 2: the line has more than"),
        (f"{HEADER_LINE}\n[]\n{'x' * ndjson.LONGEST}\n", "line 2: this is [], expected an object"),
        (f"{HEADER_LINE}\n{LINE}\n{'x' * (ndjson.LONGEST + ndjson.BLOCK)}\n{LINE}\n", "line 3: the line has more than"),
    ],
)
def test_damaged_lines_are_unreadable(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "events.ndjson"
    path.write_text(text)
    with pytest.raises(Unreadable) as raised:
        list(reading.read(path))
    assert result_of(lambda: list(reading.coded(path))) == (Unreadable, str(raised.value))
    assert words in str(raised.value)
    assert str(path) in str(raised.value)
    assert str(raised.value).isprintable()


def events_in_stretches(path: Path, size: int) -> int:
    return sum(len(some) for stretch in reading.stretches(path, size) for some in reading.coded(path, stretch))


@pytest.mark.parametrize("suffix", [".ndjson", ".ndjson.gz", ".ndjson.zst"])
@pytest.mark.parametrize("more", [0, 1, 2100, 9000])
def test_how_a_file_is_cut_does_not_say_whether_a_line_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, more: int
) -> None:
    monkeypatch.setattr(ndjson, "LONGEST", 1000)
    longest = LINE.replace("T/0", "T" * (999 - len(LINE) + 3 + more))
    path = tmp_path / f"events{suffix}"
    for before in range(12):
        with path.open("wb") as file, compressed.compressed(file, codec_of(path)) as out:
            out.write("".join(f"{line}\n" for line in (HEADER_LINE, *[LINE] * before, longest, LINE)).encode())
        for block, size in ((1001, 300), (2000, 700), (3333, 1 << 30)):
            monkeypatch.setattr(ndjson, "BLOCK", block)
            whole = result_of(lambda: sum(map(len, reading.coded(path))))
            parts = result_of(partial(events_in_stretches, path, size))
            problem = f"{path}, line {before + 2}: the line has more than 1,000 bytes, so it is no event"
            assert whole == parts
            assert whole[1].startswith(problem) if more else whole == before + 2


@pytest.mark.parametrize("line", TWICE)
def test_of_two_keys_none_is_taken(tmp_path: Path, line: str) -> None:
    """Some readers take the first and some the last: what they check is not the same."""
    path = tmp_path / "events.ndjson"
    expected = "line 3: not JSON (the key 'position' stands there twice)"
    path.write_text(f"{HEADER_LINE}\n{LINE}\n{line}\n")
    with pytest.raises(Unreadable, match=re.escape(expected)):
        list(reading.read(path))
    assert result_of(lambda: list(reading.coded(path)))[1].startswith(f"{path}, {expected}")
    for read in (schema.OURS.coded_lines, schema.OURS.coded_one_by_one):  # the first of which is for large files
        with pytest.raises(NoEvent, match="stands there twice"):
            read(f"{line}\n".encode(), 1)
    path.write_text(HEADER_LINE.replace("{", '{"version": 2, ') + "\n")
    with pytest.raises(Unreadable, match="line 1: it begins"):
        list(reading.read(path))


def test_of_two_columns_none_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    table = pa.table(columns_of())
    for names, twice in (([*table.column_names, "trace"], "trace"), ([*table.column_names, "args"], "args")):
        columns = [*table.columns, table.column(twice)]
        as_parquet(path, pa.Table.from_arrays(columns, names), OURS)
        with pytest.raises(Unreadable, match=f"column {twice} stands there twice"):
            list(reading.read(path))
        assert "stands there twice" in result_of(lambda: list(reading.coded(path)))[1]
    args = pa.array([an_append()["args"]] * 3)
    fields = [args.field(at) for at in range(args.type.num_fields)]
    names = [field.name for field in args.type]
    as_parquet(path, columns_of(args=pa.StructArray.from_arrays([*fields, fields[0]], [*names, names[0]])), OURS)
    with pytest.raises(Unreadable, match=f"column args.{names[0]} stands there twice"):
        list(reading.read(path))


def test_text_may_be_views(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    as_parquet(path, columns_of(trace=pa.array(["T/0"] * 3, pa.string_view())), OURS)
    assert [event.trace for event in reading.read_events(path)] == ["T/0"] * 3
    assert sum(len(one.step) for one in reading.coded(path)) == 3


@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_text_need_not_lie_in_dictionaries(encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pyarrow makes no dictionaries of these. Where a file changes to them, earlier rows are not repeated."""
    path, count = tmp_path / "events.parquet", 9
    rows = pa.table(columns_of(count) | {"position": pa.array(range(count))}).replace_schema_metadata(OURS)
    parquet.write_table(rows, path, use_dictionary=False, column_encoding={"trace": encoding}, row_group_size=2)
    monkeypatch.setattr(event_parquet, "ROWS", 4)
    assert [event.position for event in reading.read_events(path)] == list(range(count))
    whole = parquet.ParquetFile(path)

    class Torn:
        def iter_batches(self, *_: object, **__: object) -> Iterator[pa.RecordBatch]:
            yield from rows.to_batches(5)[:1]
            raise OSError

    batches = event_parquet._batches(Torn(), lambda: whole, list(range(5)), None)  # type: ignore[arg-type]
    assert [row for batch in batches for row in batch.column("position").to_pylist()] == list(range(count))


def test_a_reader_without_memory_accuses_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.parquet"
    as_parquet(path, columns_of(), OURS)

    def too_much(*_: object, **__: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    monkeypatch.setattr(event_parquet, "_batches", too_much)
    with pytest.raises(Unreadable, match=r"cannot be read \(not enough memory: malloc of size 64 failed\)$"):
        list(reading.read(path))


def test_where_no_thread_may_be_started_nothing_is_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = table(iter([schema.from_events([Event(**an_append())] * 3)])).to_batches(1)

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert list(event_parquet._ahead(iter(batches))) == batches


def test_metadata_need_not_stand_in_a_schema_of_arrow(tmp_path: Path) -> None:
    """Polars leaves such a schema, and the metadata next to it."""
    path, rows = tmp_path / "events.parquet", pa.table(columns_of())
    with parquet.ParquetWriter(path, rows.schema) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(OURS | {f"{NAME}-profile": "rocketmq"})
    assert len(list(reading.read_events(path))) == 3
    with path.open("rb") as file:
        assert event_parquet.origin(path, file).profile == "rocketmq"


def test_bytes_that_are_no_text_are_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    path.write_bytes(f"{HEADER_LINE}\n{LINE}\n".encode().replace(b"T/0", b"T\xff0"))
    with pytest.raises(Unreadable, match="line 2: not JSON"):
        list(reading.read(path))


@given(data=st.data(), events=st.lists(an_event(), min_size=1, max_size=4))
def test_lines_read_at_once_are_what_they_are_one_by_one(data: st.DataObject, events: list[Event]) -> None:
    """Columns are checked as columns, one event by pydantic; whatever passes the one is what passes the other."""
    lines = [json.dumps(event.model_dump(exclude_defaults=True), ensure_ascii=False) for event in events]
    text = "".join(f"{line}\n" for line in lines)
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        new = data.draw(
            st.sampled_from(["", "0", "1", "-", ".", "e", "n", '"', "\\", "{", "}", ",", ":", "\n", " ", "é"])
        )
        text = text[:at] + new + text[at + 1 :]
    damaged = text.encode().split(b"\n")[:-1]
    at_once = schema.OURS._at_once(damaged)
    if at_once is not None:
        assert at_once == schema.OURS._by_line(damaged)


def test_a_dictionary_may_have_a_name_twice_and_unused_names() -> None:
    names = pa.array(["unused", "T/1", "T/0", "T/0"])
    trace = pa.DictionaryArray.from_arrays(pa.array([2, 1, 3], pa.int8()), names)
    batch = pa.RecordBatch.from_pydict(columns_of(trace=trace))
    (traces,) = gathered([batch])
    assert (traces.names.to_pylist(), traces.of.tolist()) == (["T/0", "T/1"], [0, 1, 0])
    assert traces.events(0, 3).tolist() == [0, 2, 1]


def as_parquet(path: Path, columns: dict[str, Any] | pa.Table, metadata: dict[str, str] | None) -> None:
    """A Parquet file as others write it."""
    written = columns if isinstance(columns, pa.Table) else pa.table(columns)
    parquet.write_table(written.replace_schema_metadata(metadata), path)


def columns_of(count: int = 3, **changed: Any) -> dict[str, Any]:
    """The columns of a few events, with other types than ours where Parquet's writers differ."""
    batch = schema.from_events([Event(**an_append())] * count)
    columns: dict[str, Any] = {name: batch.column(name) for name in batch.schema.names}
    columns["args"] = pa.array([an_append()["args"]] * count)
    return columns | changed


def with_nulls(name: str, kind: pa.DataType) -> pa.Array[Any]:
    """The arguments of a few events, and one more that is null in all of them."""
    args = an_append()["args"]
    return pa.array([args] * 3, pa.struct([*((each, pa.int64()) for each in args), (name, kind)]))


OURS = {NAME: "1"}


def test_arguments_that_no_event_of_a_stretch_has_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    appended, opened = an_append(), an_append(spec="log", action="open", args={"position": 0, "file_size": 1})
    table = pa.Table.from_batches([schema.from_events([Event(**appended), Event(**opened)])])
    parquet.write_table(table.replace_schema_metadata(OURS), path, row_group_size=1)

    def read(low: int, high: int | None) -> list[str]:
        with path.open("rb") as file:
            batch, *_ = event_parquet.read(path, file, low, high, lambda batch: batch, spared=schema.OURS.leaves)
        return sorted(field.name for field in batch.schema.field("args").type)

    assert (read(0, 1), read(1, 2)) == (sorted(appended["args"]), sorted(opened["args"]))
    assert read(0, None) == sorted({*appended["args"], *opened["args"]})
    assert list(reading.read_events(path)) == [Event(**appended), Event(**opened)]


def test_a_damaged_footer_ends_no_process_that_reads_statistics(tmp_path: Path) -> None:
    """Such a file is reported; arrow would crash the process if only the column were read."""
    path = tmp_path / "events.parquet"
    schema.write_events(path, [Event(**an_append())])
    asked = f"""
from pathlib import Path
from gapless.traces.events import reading
path = Path({str(path)!r})
(stretch,) = reading.stretches(path, 1 << 30)
print(reading.spans(path, stretch, frozenset(["position", "args.parent"])))
"""

    def ran() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)

    assert ran().stdout == "{'position': (1, 1)}\n"
    whole = path.read_bytes()
    named = b"%\x02\x18\x06parent"  # of the footer: the column may be null, and what it is called
    assert whole.count(named) == 1
    path.write_bytes(whole.replace(named, b"%\x55" + named[2:]))
    found = ran()
    assert (found.returncode, found.stderr.splitlines()[-1][:39]) == (
        1,
        "gapless.traces.problems.Unreadable: " + str(path)[:3],
    )


def test_a_file_that_is_another_one_by_now_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    for count in (3, 4):
        as_parquet(path, columns_of(count), OURS)
        assert len(list(reading.read_events(path))) == count


def test_columns_of_other_widths_are_welcome(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    narrow = pa.struct([(name, pa.int32()) for name in an_append()["args"]])
    columns = columns_of(
        spec=pa.array(["queue"] * 3).dictionary_encode(),
        trace=pa.array(["T/0"] * 3, pa.large_string()),
        position=pa.array([1] * 3, pa.uint16()),
        args=pa.array([an_append()["args"]] * 3, narrow),
        outcome=pa.nulls(3),
    )
    del columns["saw"]
    as_parquet(path, columns, OURS)
    assert list(reading.read_events(path)) == [Event(**an_append())] * 3


@pytest.mark.parametrize(
    ("columns", "metadata", "words"),
    [
        (columns_of(), None, "does not say gapless-events = 1"),
        (columns_of(), {NAME: "2"}, "of version 2, expected 1"),
        (columns_of(position=pa.array([1.0, 2.0, 3.0])), OURS, "column position is double, expected int64"),
        (columns_of(position=pa.array([1, 2, 2**64 - 1], pa.uint64())), OURS, "18446744073709551615"),
        (columns_of(args=pa.array([{"number": "1"}] * 3)), OURS, "column args.number is string, expected int64"),
        (
            columns_of(
                action=pa.array(["account"] * 3),
                args=pa.array([{"number": 1, "sent": sent} for sent in (1, 0, 2)]),
            ),
            OURS,
            "row 2: args.sent of account is 2, expected 1 or 0",
        ),
        (columns_of(args=pa.array([{"numbers": 1}] * 3)), OURS, "there is a column args.numbers, expected"),
        (
            columns_of(args=with_nulls("numbers", pa.int64())),
            OURS,
            "there is a column args.numbers, expected",
        ),
        (columns_of(args=with_nulls("upto", pa.string())), OURS, "column args.upto is string, expected int64"),
        (columns_of(args=pa.array([1, 2, 3])), OURS, "column args is int64, expected a struct"),
        (columns_of(payload=pa.array(["a", "b", "c"])), OURS, "there is a column payload, expected"),
        (
            columns_of(spec=pa.array(["queue", "queue", "que"])),
            OURS,
            "row 2: spec is 'que', expected aborted_index, broker, ",
        ),
        (columns_of(trace=pa.array(["T/0", None, "T/0"])), OURS, "row 1: missing: trace"),
        (columns_of(action=pa.array(["append", "open", "append"])), OURS, "row 1: args of open are "),
        (columns_of(saw=pa.array([None, None, "{"])), OURS, "row 2: saw: not JSON"),
        (columns_of(saw=pa.array([None, "null", None])), OURS, "row 1: "),
        (
            columns_of(saw=pa.array(['{"end":1.5}', None, None])),
            OURS,
            "row 0: saw.end of append is ",
        ),
        (
            columns_of(saw=pa.array(['{"clock":1}', None, None])),
            OURS,
            "row 0: saw names clock, expected fields of queue",
        ),
    ],
)
def test_parquet_files_of_others_are_unreadable(
    tmp_path: Path, columns: dict[str, Any], metadata: dict[str, str] | None, words: str
) -> None:
    path = tmp_path / "events.parquet"
    as_parquet(path, columns, metadata)
    with pytest.raises(Unreadable) as raised:
        list(reading.read(path))
    assert result_of(lambda: list(reading.coded(path))) == (Unreadable, str(raised.value))
    assert words in str(raised.value)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[:0],
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:-1],
        lambda whole: bytes(len(whole)),
        lambda whole: HEADER_LINE.encode() + whole,
    ],
    ids=["empty", "cut in half", "cut by a byte", "zeros", "shifted"],
)
def test_damaged_parquet_files_are_unreadable(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "events.parquet"
    schema.write_events(path, [Event(**an_append())])
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(Unreadable, match="expected a Parquet file of gapless-events"):
        list(reading.read(path))


@pytest.mark.parametrize("suffix", [".ndjson.gz", ".ndjson.zst"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[:0],
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:-1],
        lambda whole: bytes(len(whole)),
        lambda whole: whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 1]) + whole[len(whole) // 2 + 1 :],
        lambda _whole: f"{HEADER_LINE}\n{LINE}\n".encode(),
    ],
    ids=["empty", "cut in half", "cut by a byte", "zeros", "a flipped bit", "not compressed"],
)
def test_damaged_compressed_files_are_unreadable(tmp_path: Path, suffix: str, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / f"events{suffix}"
    schema.write_events(path, [Event(**an_append(position=at, trace=f"T/{at * at}")) for at in range(500)])
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(Unreadable):
        list(reading.read(path))


@pytest.mark.parametrize("suffix", [".ndjson.gz", ".ndjson.zst"])
def test_a_wrong_line_of_a_compressed_file_is_reported(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ndjson, "BLOCK", 500)
    monkeypatch.setattr(compressed, "AT_ONCE", 70)
    path = tmp_path / f"events{suffix}"
    lines = [HEADER_LINE, *[LINE] * 50, LINE.replace("17", "17.0"), LINE]
    with path.open("wb") as file, compressed.compressed(file, codec_of(path)) as out:
        out.write("".join(f"{line}\n" for line in lines).encode())
    for read in (reading.read, reading.coded):
        with pytest.raises(Unreadable, match=r"line 52: args\.number of append is .*, expected a whole number"):
            list(read(path))
    (stretch,) = reading.stretches(path, 100)
    assert (stretch.first, stretch.last, stretch.bytes) == (True, True, path.stat().st_size)


def test_no_changed_byte_changes_an_event_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    events = [Event(**an_append(position=at, trace=f"T/{at}", saw={"end": at})) for at in range(20)]
    schema.write_events(path, events)
    whole = path.read_bytes()
    for at in range(0, len(whole), 7 if NIGHT else 97):
        changed = bytearray(whole)
        changed[at] ^= 1 << at % 8
        path.write_bytes(changed)
        try:
            assert list(reading.read_events(path)) == events
        except Unreadable:
            continue


def test_changed_values_of_parquet_are_reported_by_the_checksums_of_their_pages(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    events = [Event(**an_append(position=at * at % 997, trace=f"T/{at * at % 89}")) for at in range(500)]
    schema.write_events(path, events)
    whole = path.read_bytes()
    group = parquet.read_metadata(path).row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    for chunk in (chunk for chunk in chunks if chunk.path_in_schema in {"position", "trace"}):
        last = chunk.data_page_offset + chunk.total_compressed_size - 1
        for at in range(last - 40, last):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
            with pytest.raises(Unreadable, match="CRC"):
                list(reading.coded(path))


@pytest.mark.parametrize("name", ["events", "events.json", "events.csv"])
def test_the_name_says_the_form(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unreadable, match=r"named \.ndjson or \.parquet"):
        schema.write_events(tmp_path / name, [])
    assert not list(tmp_path.iterdir())
    with pytest.raises(Unreadable, match="named"):
        list(reading.read(tmp_path / name))


@EVERY_FORM
def test_what_cannot_be_opened_is_unreadable(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(Unreadable, match="No such file"):
        list(reading.read(tmp_path / f"none{suffix}"))
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(Unreadable, match="Is a directory"):
        list(reading.read(tmp_path / f"folder{suffix}"))
