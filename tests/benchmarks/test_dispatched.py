"""The events that checking is measured on, and the peers: they say the same of what is whole and of what is not."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from benchmarks import dispatched
from gapless import check
from tests.support.night import NIGHT

EVENTS = 7_000  # two groups of each queue
NEEDS = "pip install duckdb orjson polars pyspark"
SLOW = [peer for peer in dispatched.PEERS if peer.package == "pyspark"]


@pytest.mark.parametrize("suffix", dispatched.SUFFIXES)
def test_what_is_made_conforms_and_is_as_many_as_is_stated(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"events{suffix}"
    assert dispatched.make(path, EVENTS) == dispatched.count(EVENTS)
    report = check([path])
    assert (report.verdict, report.counts.events) == ("conforms", dispatched.count(EVENTS))


@pytest.mark.parametrize(
    "peer",
    [peer for peer in dispatched.PEERS if NIGHT or peer not in SLOW],
    ids=lambda peer: f"{peer.name} {peer.suffix}",
)
@pytest.mark.parametrize("fault", [None, "write", "take"])
def test_peers_judge(
    peer: dispatched.Peer, fault: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a write, the commit position passes a gap; without a take, a worker writes what it never took."""
    if peer not in dispatched.THERE:
        pytest.skip(NEEDS)
    path = tmp_path / f"events{peer.suffix}"
    dispatched.make(path, EVENTS)
    if fault is not None:
        _drop(path, fault)
    peer.judge(str(path), *peer.arguments)
    counts = json.loads(capsys.readouterr().out)
    assert counts["records"] == dispatched.count(EVENTS) - (fault is not None)
    assert counts["verdict"] == ("conforms" if fault is None or "reading" in peer.name else "departs")


def _drop(path: Path, action: str) -> None:
    """The event in the middle of those of an action is missing."""
    if path.suffix == ".ndjson":
        lines = path.read_bytes().splitlines(keepends=True)
        found = [at for at, line in enumerate(lines) if f'"action":"{action}"'.encode() in line]
        del lines[found[len(found) // 2]]
        path.write_bytes(b"".join(lines))
        return
    table = parquet.read_table(path)
    found = [at for at, name in enumerate(table["action"].to_pylist()) if name == action]
    at = found[len(found) // 2]
    parquet.write_table(pa.concat_tables([table.slice(0, at), table.slice(at + 1)]), path)
