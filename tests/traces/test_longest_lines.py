"""A line of one length is taken everywhere, or refused everywhere: wherever a block of its file ends."""

import json
from pathlib import Path

import pytest

from gapless.traces.check import check
from gapless.traces.events.lines.whole_lines import sound
from gapless.traces.problems import Unreadable
from gapless.traces.sources.pulsar import lines as recordings
from gapless.traces.sources.rocketmq.clients.requests import client_log
from tests.support.pulsar_recordings import copied

LONGEST = 1000
BEFORE = [0, 1, 2, 3, 5, 7, 9]  # lines of some 90 bytes


@pytest.mark.parametrize(
    ("block", "bytes_"),
    [
        (b"", 0),
        (b"1234", 0),
        (b"123\n", 4),
        (b"1234\n", 0),
        (b"1\n123\n1234\n1\n", 6),
        (b"1\n123\n12345678\n1\n", 6),
        (b"1\n123\n12", 6),
        (b"\n\n\n\n\n\n", 6),
    ],
)
def test_whole_lines_end_before_one_that_is_too_long_or_has_no_end(block: bytes, bytes_: int) -> None:
    assert sound(block, 4) == bytes_


def line_of(size: int, **fields: object) -> bytes:
    """A line of so many bytes, its newline one of them."""
    bare = len(json.dumps({**fields, "remark": ""}))
    return json.dumps({**fields, "remark": "x" * (size - bare - 1)}).encode() + b"\n"


@pytest.mark.parametrize("block", [1, 90, 400, 1000, 1001, 2500, 1 << 16])
@pytest.mark.parametrize("before", BEFORE)
def test_a_request_may_be_so_long_wherever_its_log_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int, block: int
) -> None:
    monkeypatch.setattr(client_log, "LONGEST", LONGEST)
    monkeypatch.setattr(client_log, "BLOCK", block)
    path = tmp_path / "client.ndjson"
    short = line_of(90, op="note")
    path.write_bytes(short * before + line_of(LONGEST, op="note") + short)
    assert client_log.read(path).lines == before + 2
    for size in (LONGEST + 1, LONGEST + 2, LONGEST + block, 2 * LONGEST + block):
        path.write_bytes(short * before + line_of(size, op="note") + short)
        with pytest.raises(Unreadable, match=f"line {before + 1}: longer than 1,000 bytes, expected one request"):
            client_log.read(path)


def test_a_line_before_one_that_is_too_long_is_reported_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_log, "LONGEST", LONGEST)
    path = tmp_path / "client.ndjson"
    path.write_bytes(b"{}\n" + line_of(LONGEST + 1, op="note"))
    for block in (1, 1 << 16):
        monkeypatch.setattr(client_log, "BLOCK", block)
        with pytest.raises(Unreadable, match="line 1: op is missing"):
            client_log.read(path)


@pytest.mark.parametrize("block", [1, 90, 400, 1000, 1001, 2500, 1 << 16])
def test_a_line_of_a_recording_may_be_so_long_wherever_it_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    folder = copied(tmp_path, "coord-limit")
    whole = (folder / "trace.ndjson").read_bytes().splitlines(keepends=True)
    longest = max(map(len, whole)) + 100
    monkeypatch.setattr(recordings, "LONGEST", longest)
    monkeypatch.setattr(recordings, "BLOCK", block)
    for before in BEFORE:
        head = {"n": 0, "t": json.loads(whole[before])["t"], "s": f"other{before}", "k": "mark"}
        whole[before:before] = [line_of(longest, **head)]
        path = folder / "trace.ndjson"
        path.write_bytes(b"".join(whole[:120]))
        assert recordings.read(path).count == 120
        whole[before] = line_of(longest + 1, **head)
        path.write_bytes(b"".join(whole))
        (source,) = check(folder).sources
        expected = f"line {before + 1}: has more than {longest:,} bytes, so it is no line of a recording"
        assert (source.verdict, expected in source.reasons[0]) == ("unreadable", True)
        del whole[before]
