"""Does a check agree with real brokers? Each store of `tests/interop/starts/cells.csv` is damaged again, and checked.

Where a broker did not start, or served otherwise than from the whole store, a check has a hazard, or another
verdict than *conforms*; elsewhere it has neither.
"""

import os
import shutil
from pathlib import Path

import pytest

from gapless import check
from tests.interop.starts import cells, damage
from tests.interop.starts.cells import LOSES, REFUSES, Cell
from tests.support.night import by_day
from tests.support.rocketmq.recordings import recording_as_left

LARGE = "timerwheel"  # 38 MB of zeros, which need no copy
MEASURED = cells.read()
TRIED = by_day([cell for cell in MEASURED if cell.base == "files"], share=1 / 10)

NEVER_WAS = "a store that never had one looks the same"
A_FOLDER = "a folder in the place of a mark comes of no accident"
UNSEEN = {
    ("config/subscriptionGroup.json", "missing", "absent"): NEVER_WAS,
    ("config/consumerFilter.json", "missing", "absent"): NEVER_WAS,
    ("config/timercheck", "missing", "-"): NEVER_WAS,
    ("commitlog/FIRST", "missing", "-"): "a file that a broker deletes for its age is gone, too",
    ("lock", "folder", "-"): A_FOLDER,
    ("abort", "folder", "-"): A_FOLDER,
    ("broker.conf", "maxHashSlotNum=200", "-"): "files of the index are read by their own length",
    ("broker.conf", "maxHashSlotNum=50", "-"): "files of the index are read by their own length",
}
"""File, damage and backup, by which a broker loses something without a word of a check; and the reason."""
NO_LOSS = {
    ("timerwheel", "nul", "-"): "the wheel is wrong, and made again",
    ("checkpoint", "foreign", "-"): "what was flushed is unknown",
    ("consumequeue", "missing", "-"): "all queues are written again; until then they are not there",
    ("consumequeue/orders/0", "missing", "-"): "after a kill two lines write the queue again, and one does not",
}
"""The same, where a check has a word about a damage that a broker repairs."""


def damaged(cell: Cell, folder: Path) -> Path:
    """A copy of the base store with its settings, damaged as the cell says."""

    def copy(source: str, target: str) -> None:
        (os.link if Path(source).name == LARGE != cell.file else shutil.copyfile)(source, target)

    base = recording_as_left(f"starts/{cell.base}_{cell.line}_{cell.ending}")
    shutil.copytree(base, folder, copy_function=copy)
    damage.damage(folder / "store", cell)
    settings = dict(line.split("=", 1) for line in (folder / "broker.conf").read_text().splitlines())
    changed = {name: str(value).replace("STORE/", "") for name, value in damage.settings(cell).items()}
    lines = (f"{name}={value}\n" for name, value in (settings | changed).items())
    (folder / "broker.conf").write_text("".join(lines))
    return folder


@pytest.mark.parametrize("cell", TRIED, ids=lambda cell: " ".join(vars(cell).values()))
def test_a_check_warns_where_a_broker_fails(cell: Cell, tmp_path: Path) -> None:
    report = check([damaged(cell, tmp_path / "damaged")])
    warned = bool(report.hazards) or report.verdict != "conforms"
    fails = MEASURED[cell].result in (REFUSES, LOSES)
    excused = (cell.file, cell.damage, cell.backup) in (UNSEEN if fails else NO_LOSS)
    found = (MEASURED[cell], report.verdict, [finding.message for finding in report.findings])
    assert warned == (fails is not excused), ("excused, but not needed any more" if excused else "", found)
