"""Lawful losses of a broker: idle producers, a start that was moved, and records that a cleaner removed."""

from pathlib import Path

from gapless import check
from tests.support.kafka.directories import data_directory, offsets, snapshot
from tests.support.kafka.logs import Message, batch, marker

TIME = 1_700_000_000_000
OURS = {"producer": 7, "epoch": 0, "attributes": 0x10}
TWO = [Message(), Message()]


def rules(directory: Path) -> set[str]:
    """The rules that are broken."""
    return {finding.rule for finding in check(directory, jobs=1).violations}


def idle(directory: Path, before: int, during: int) -> Path:
    """Two transactions of a producer, with the epochs in the snapshots between and within them."""
    folder = directory / "orders-0"
    for path in folder.glob("0*"):
        path.unlink()
    logs = {
        0: batch(0, TWO, sequence=0, **OURS) + marker(2, commit=True),
        3: batch(3, TWO, sequence=2, **OURS),
        5: marker(5, commit=True) + batch(6, [Message()] * 3),
    }
    for base, data in logs.items():
        (folder / f"{base:020}.log").write_bytes(data)
    lines = {3: (1, 1, before, -1), 5: (3, 4, during, 3), 9: (3, 4, 0, -1)}
    for at, (sequence, last, coordinator, transaction) in lines.items():
        line = (7, 0, sequence, last, 1, TIME, coordinator, transaction)
        (folder / f"{at:020}.snapshot").write_bytes(snapshot(line))
    (folder / "leader-epoch-checkpoint").write_bytes(offsets("0 0"))
    return directory


def test_an_idle_producer_may_be_forgotten_before_its_next_transaction(tmp_path: Path) -> None:
    assert not rules(idle(data_directory(tmp_path / "n1"), 0, -1))


def test_a_producer_is_not_forgotten_behind_its_marker_and_known_all_the_same(tmp_path: Path) -> None:
    directory = idle(data_directory(tmp_path / "n1"), -1, 0)
    assert rules(directory) == {"producer/snapshot-has-the-epoch-of-the-coordinator"}


def test_an_index_may_name_records_that_were_cleaned(tmp_path: Path) -> None:
    directory = data_directory(tmp_path / "n1")
    (directory / "cleaner-offset-checkpoint").write_bytes(offsets("orders 0 5"))
    (directory / "orders-0" / f"{3:020}.log").write_bytes(marker(5, commit=False))
    assert not {rule for rule in rules(directory) if rule.startswith("aborted_index/")}
    (directory / "cleaner-offset-checkpoint").write_bytes(offsets("orders 0 3"))
    assert "aborted_index/entry-is-of-an-abort-that-has-none-yet" in rules(directory)
