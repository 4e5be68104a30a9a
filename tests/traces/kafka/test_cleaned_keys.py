"""A key is left once where the cleaner was: in logs that are made for it, and of which the point may be another's."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from gapless import Report, check
from gapless.traces.sources.kafka.joining.places import KEPT_ONCE
from gapless.traces.sources.kafka.judging import key_judge
from gapless.traces.sources.kafka.log import records
from gapless.traces.sources.kafka.log.keys import KeyCollector, RecordKeys
from tests.support.kafka.directories import METADATA, offsets, setting
from tests.support.kafka.logs import GZIP, Message, batch, marker

CLEANED = [[b"a", b"b"], [b"c", b"d"], [b"e", b"a"]]
"""Keys of batches below the cleaner's point but for the last record, which is above it."""
COMPACT = setting(2, "orders", "cleanup.policy", "compact")


def directory(path: Path, keys: list[list[bytes]], cleaned: int, *, codec: int = 0, start: int = 0) -> Path:
    """A directory with one partition of a compacted topic: these keys, batch by batch."""
    folder, metadata = path / "orders-0", path / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    metadata.mkdir()
    (path / "meta.properties").write_text("node.id=3\ncluster.id=abc\n")
    (path / ".kafka_cleanshutdown").write_text("{}")
    (metadata / f"{0:020}.log").write_bytes(batch(0, [*METADATA, COMPACT]))
    log, end = b"", 0
    for some in keys:
        log += batch(end, [Message(key=key) for key in some], codec=codec)
        end += len(some)
    (folder / f"{0:020}.log").write_bytes(log)
    (path / "cleaner-offset-checkpoint").write_bytes(offsets(f"orders 0 {cleaned}"))
    (path / "log-start-offset-checkpoint").write_bytes(offsets(*([f"orders 0 {start}"] if start else [])))
    return path


def judged(path: Path) -> Report:
    """Return the report on a directory, by this process alone."""
    return check(path, jobs=1)


@pytest.mark.parametrize("codec", [0, GZIP])
@pytest.mark.parametrize(("cleaned", "expected"), [(5, "conforms"), (6, "departs")])
def test_a_key_may_come_again_from_the_cleaners_point_on(
    cleaned: int, expected: str, codec: int, tmp_path: Path
) -> None:
    report = judged(directory(tmp_path / "d", CLEANED, cleaned, codec=codec))
    assert report.verdict == expected
    assert [(one.rule, one.position) for one in report.violations] == [(KEPT_ONCE, 0)] * (expected == "departs")


@pytest.mark.parametrize(("start", "expected"), [(0, "departs"), (1, "conforms")])
def test_below_the_start_of_the_log_nothing_is_cleaned(start: int, expected: str, tmp_path: Path) -> None:
    path = directory(tmp_path / "d", CLEANED, 6, start=start)
    assert judged(path).verdict == expected
    (path / ".kafka_cleanshutdown").unlink()
    assert judged(path).verdict == ("inconclusive" if expected == "departs" else expected)


@pytest.mark.parametrize(
    "lost", [".kafka_cleanshutdown", "__cluster_metadata-0/00000000000000000000.log"], ids=["stop", "policy"]
)
def test_a_point_that_may_be_anothers_accuses_no_broker(lost: str, tmp_path: Path) -> None:
    path = directory(tmp_path / "d", CLEANED, 6)
    (path / lost).unlink()
    report = judged(path)
    assert (report.verdict, report.violations) == ("inconclusive", [])
    assert "the records at 0 and 5 have one key" in report.sources[0].reasons[0]


def test_a_topic_that_is_no_longer_compacted_keeps_what_it_has(tmp_path: Path) -> None:
    path = directory(tmp_path / "d", CLEANED, 6)
    turned = setting(2, "orders", "cleanup.policy", "delete")
    (path / "__cluster_metadata-0" / f"{0:020}.log").write_bytes(batch(0, [*METADATA, COMPACT, turned]))
    assert judged(path).verdict == "inconclusive"


def test_a_setting_may_come_before_its_topic(tmp_path: Path) -> None:
    """Controllers before 3.4 write them so."""
    path = directory(tmp_path / "d", CLEANED, 6)
    (path / "__cluster_metadata-0" / f"{0:020}.log").write_bytes(batch(0, [METADATA[0], COMPACT, *METADATA[1:3]]))
    assert judged(path).verdict == "departs"


def test_markers_and_records_without_a_key_have_none_in_common(tmp_path: Path) -> None:
    path = directory(tmp_path / "d", [[b"a"]], 5)
    log = path / "orders-0" / f"{0:020}.log"
    plain = batch(3, [Message(), Message()])
    log.write_bytes(log.read_bytes() + marker(1, commit=True) + marker(2, commit=True) + plain)
    assert judged(path).verdict == "conforms"


@pytest.fixture
def one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """All keys have one hash."""
    whole = KeyCollector.add
    monkeypatch.setattr(KeyCollector, "add", lambda of, hashes, *others: whole(of, np.zeros_like(hashes), *others))


@pytest.mark.usefixtures("one_hash")
def test_keys_of_one_hash_are_compared_by_their_bytes(tmp_path: Path) -> None:
    report = judged(directory(tmp_path / "d", CLEANED, 5))
    assert report.verdict == "conforms"
    assert any(line.startswith(f"{KEPT_ONCE}: orders-0: not all keys were compared") for line in report.not_exercised)


@pytest.mark.usefixtures("one_hash")
def test_a_key_is_found_among_others_of_its_hash(tmp_path: Path) -> None:
    report = judged(directory(tmp_path / "d", [[b"b", b"a", b"a", b"c"]], 4))
    assert [(one.rule, one.position) for one in report.violations] == [(KEPT_ONCE, 1)]


def test_of_more_keys_than_are_kept_some_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_judge, "MOST", 4)
    judge, numbers = key_judge.KeyJudge(), count()
    made: Iterator[int] = iter(numbers)
    for _ in range(5):
        some = np.array([next(made) for _ in range(4)], np.int64)
        judge.add(None, RecordKeys(some, some))  # type: ignore[arg-type] # no key is read
    assert (judge.zeros, judge.is_whole) == (3, False)
    assert judge.repeated() is None


def test_a_count_that_cannot_be_is_not_unpacked_into_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(records, "MOST", 3)
    report = judged(directory(tmp_path / "d", CLEANED, 5))
    assert report.verdict == "conforms"
    assert any("not all keys were compared" in line for line in report.not_exercised)
