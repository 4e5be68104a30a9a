"""The time that dates a report: of the newest file, found without a walk through thousands of queues."""

import os
from pathlib import Path

from gapless.traces.files.file_times import newest_change


def test_the_newest_file_of_a_folder_and_its_subfolders_counts(tmp_path: Path) -> None:
    for number, name in enumerate(("checkpoint", "commitlog/0", "consumequeue/orders/0")):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
        os.utime(file, (1000 + number, 1000 + number))
    assert newest_change(tmp_path) == 1001  # queues lie deeper
    assert newest_change(tmp_path / "checkpoint") == 1000


def test_an_input_without_files_has_no_time(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert newest_change(tmp_path) is None
    assert newest_change(tmp_path / "missing") is None
