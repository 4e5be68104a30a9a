"""The stores that benchmarks are run on are what a broker leaves: a second opinion says so, and so does the checker."""

from pathlib import Path

import pytest

from benchmarks import bigstore
from benchmarks.bigstore import Shape
from gapless import check
from tests.support.rocketmq import transactions

SHAPE = Shape(12_000, file_size=2**20, transactions=3_000)
NOT_IN_STORES = "a store does not show this step"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with transactions and a client log, which a check finds by its name."""
    folder = tmp_path_factory.mktemp("big") / "lab"
    bigstore.make_with_clients(folder, SHAPE)
    (folder / bigstore.CLIENT_LOG).rename(folder / "client.ndjson")
    return folder


def test_a_second_opinion_finds_nothing_wrong(folder: Path) -> None:
    assert transactions.departures(folder / "store") == []


def test_everything_happens_in_it_and_is_checked(folder: Path) -> None:
    counts = transactions.counts(folder / "store")
    report = check(folder, jobs=1)

    assert report.verdict == "conforms"
    assert (counts.records, counts.halves - counts.renewals) == (12_000, 3_000)
    assert all(counts)
    assert not [line for line in report.not_exercised if "transaction" in line and NOT_IN_STORES not in line]


def test_ops_are_full_but_for_the_last(folder: Path) -> None:
    sizes = [len(op.record.body) for op in transactions.ops(folder / "store")]

    assert len(sizes) > 2
    assert all(bigstore.OP_SIZE <= size < bigstore.OP_SIZE + 8 for size in sizes[:-1])


def test_the_cursors_move(folder: Path) -> None:
    half, op = transactions.cursors(folder / "store")

    assert half is not None
    assert op is not None
    assert half > 1_000
    assert op > 0


def test_a_plain_reader_reads_it_back(folder: Path) -> None:
    assert bigstore.verify(folder / "store", every=7).files > 1


def test_the_same_seed_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    bigstore.make_with_clients(tmp_path / "again", SHAPE)

    for path in (folder / "store").rglob("*"):
        again = tmp_path / "again" / path.relative_to(folder)
        assert path.is_dir() or path.read_bytes() == again.read_bytes()
    assert (folder / "client.ndjson").read_bytes() == (tmp_path / "again" / bigstore.CLIENT_LOG).read_bytes()


def test_too_many_transactions_for_the_records_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least four times as many records"):
        bigstore.make(tmp_path / "store", Shape(100, transactions=26))
