"""The data directories on which checks are measured conform, and have as many records as is stated."""

import json
from pathlib import Path

import pytest

from benchmarks import __main__ as bench
from benchmarks import kafka_directories
from benchmarks.kafka_directories import SHAPES, check, made, rows
from gapless.traces.options import Depth


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("depth", ["shallow", "deep"])
def test_directories_are_whole(
    shape: str, depth: Depth, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    each, codec = SHAPES[shape]
    monkeypatch.setattr(kafka_directories, "SEGMENT", 60_000)
    folder = made(tmp_path, 40 * each, each, codec)
    assert made(tmp_path, 40 * each, each, codec) == folder
    assert len(list(folder.glob("*/*.log"))) > 1 or each == 1
    check(str(folder), 1, depth)
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["records"]) == ("conforms", 40 * each)


def test_kafkas_own_tool_is_left_out_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KAFKA_JARS", raising=False)
    names = [bench.Row(*row).name for row in rows(tmp_path, 326)]
    assert len(names) == 4 * len(SHAPES)
    assert not any("DumpLogSegments" in name for name in names)
    assert "DumpLogSegments is not measured: KAFKA_JARS names no folder of jars" in capsys.readouterr().err
