"""The segments on which reading is measured: they have as many records as is stated, and the lines say so."""

from pathlib import Path

import pytest

from benchmarks import kafka_logs
from benchmarks.kafka_logs import BATCH, CODECS, deep, measured, segment, shallow
from gapless.native import Native


@pytest.mark.parametrize("name", CODECS)
def test_segments_are_whole(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Native, "few", -1)
    monkeypatch.setattr(kafka_logs, "RUNS", 1)
    log = segment(tmp_path / name, 10 * BATCH, BATCH, CODECS[name])
    assert shallow(log)[1:] == deep(log)[1:] == (10 * BATCH, 10)
    assert "M records/s" in measured(log, CODECS[name])
    assert segment(tmp_path / name, 10 * BATCH, BATCH, CODECS[name]) == log
    log.write_bytes(log.read_bytes()[:-1] + b"\1")
    with pytest.raises(SystemExit, match="a checksum is another one"):
        shallow(log)
