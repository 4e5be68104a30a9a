"""Checkpoints that a broker does not start with: nothing is accused by them, and nothing conforms next to them."""

import shutil
from pathlib import Path

import pytest

from gapless import check
from tests.support.command_line import ROOT

EPOCHS = "orders-0/leader-epoch-checkpoint"
DAMAGED = {
    "no version": "junk\n",
    "another version": "1\n1\n0 0\n",
    "a row of no numbers": "0\n1\nx y\n",
    "fewer rows than it says": "0\n5\n0 0\n",
    "more rows than it says": "0\n1\n0 0\ntrailing\n",
    "a number that no offset has": "0\n1\n0 9223372036854775808\n",
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory that conforms."""
    return Path(shutil.copytree(ROOT / "examples/kafka/whole", tmp_path / "n1"))


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("name", [EPOCHS, "recovery-point-offset-checkpoint", "replication-offset-checkpoint"])
def test_a_damaged_checkpoint_is_named_and_leaves_a_doubt(directory: Path, name: str, damage: str) -> None:
    (directory / name).write_text(DAMAGED[damage])
    report = check([directory], jobs=1)
    (source,) = report.sources
    assert (report.verdict, report.violations) == ("inconclusive", [])
    (reason,) = source.reasons
    assert name in reason
    assert "a broker does not start with it" in reason


def test_epochs_of_a_sound_checkpoint_are_judged(directory: Path) -> None:
    (directory / EPOCHS).write_text("0\n1\n5 0\n")
    (finding,) = check([directory], jobs=1).violations
    assert finding.rule == "partition/epoch-of-batches-does-not-go-back"


def test_the_first_epoch_moves_with_the_start_that_clients_ask_for(directory: Path) -> None:
    """A kill takes back the new start of a log, and not where its first epoch begins."""
    (directory / EPOCHS).write_text("0\n1\n0 7\n")
    assert not check([directory], jobs=1).violations
    shutil.rmtree(directory / "__cluster_metadata-0")  # as on the second disk of a broker: any topic may be compacted
    assert not check([directory], jobs=1).violations
