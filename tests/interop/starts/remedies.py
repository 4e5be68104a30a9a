"""Remedies for what keeps a broker from starting, or lets it lose something; each takes a damaged store."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from tests.interop.starts.cells import Cell
from tests.interop.starts.damage import SETTINGS, find
from tests.support.rocketmq.stores import SCHEDULE_TOPIC


@dataclass(frozen=True)
class DamagedStore:
    """A damaged store, the base that it is a copy of, and the damage."""

    store: Path
    base: Path
    cell: Cell

    @property
    def sound(self) -> Path:
        """The file or folder in the base."""
        return find(self.base, self.cell.file)

    @property
    def damaged(self) -> Path:
        """The same in the damaged store, where it may be missing."""
        return self.store / self.sound.relative_to(self.base)

    @property
    def backup(self) -> Path:
        """Its backup."""
        return self.store / f"{self.cell.file}.bak"


Remedy = Callable[[DamagedStore], None]


def remedy_of(cell: Cell) -> tuple[str, Remedy]:
    """Return what to do, in words and as a function; the first line of the table that fits."""
    text = f"{cell.file} {cell.damage} {cell.backup}"
    return next((says, remedy) for pattern, says, remedy in REMEDIES if fnmatch(text, pattern))


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _delete_planted(hurt: DamagedStore) -> None:
    for path in list(hurt.damaged.iterdir()):
        if not (hurt.sound / path.name).exists():
            _delete(path)


def _delete_damaged(hurt: DamagedStore) -> None:
    _delete(hurt.damaged)


def _deleting(*names: str) -> Remedy:
    def delete(hurt: DamagedStore) -> None:
        for name in names:
            _delete(hurt.store / name)

    return delete


def _take_backup(hurt: DamagedStore) -> None:
    shutil.copyfile(hurt.backup, hurt.store / hurt.cell.file)


def _delete_both(hurt: DamagedStore) -> None:
    _delete(hurt.store / hurt.cell.file)
    _delete(hurt.backup)


def _write_topics(hurt: DamagedStore) -> None:
    """Every topic that has queues, with their number; of the topic of delayed messages, a broker knows it itself."""
    table = {}
    for topic in sorted(path for path in (hurt.store / "consumequeue").iterdir() if path.is_dir()):
        if topic.name == SCHEDULE_TOPIC:
            continue
        queues = 1 + max(int(queue.name) for queue in topic.iterdir())
        table[topic.name] = {"topicName": topic.name, "readQueueNums": queues, "writeQueueNums": queues, "perm": 6}
    _delete_both(hurt)
    (hurt.store / hurt.cell.file).write_text(json.dumps({"topicConfigTable": table}))


def _right_length(hurt: DamagedStore) -> None:
    with hurt.damaged.open("r+b") as opened:
        opened.truncate(hurt.sound.stat().st_size)


def _put_back(hurt: DamagedStore) -> None:
    _delete(hurt.damaged)
    if hurt.sound.is_dir():
        shutil.copytree(hurt.sound, hurt.damaged)
    else:
        hurt.damaged.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(hurt.sound, hurt.damaged)


def _put_setting_back(_: DamagedStore) -> None:
    """Nothing to do here: a broker gets the settings of the base."""


REMEDIES: tuple[tuple[str, str, Remedy], ...] = (
    (f"{SETTINGS} *", "put the setting back", _put_setting_back),
    ("* stray*", "delete it", _delete_planted),
    ("* *-ahead *", "delete it", _delete_planted),
    ("config/topics.json * sound", "copy the .bak over it", _take_backup),
    (
        "config/topics.json *",
        "write it again, with each topic of consumequeue/ and the number of its queues",
        _write_topics,
    ),
    ("config/timercheck missing *", "put back a copy", _put_back),
    ("config/timercheck *", "delete it", _delete_damaged),
    ("config *", "put back a copy", _put_back),
    ("config/* missing absent", "put back a copy", _put_back),
    ("config/* empty absent", "put back a copy", _put_back),
    ("config/* sound", "copy the .bak over it", _take_backup),
    ("config/* *", "delete it and its .bak", _delete_both),
    ("timerwheel *", "delete it", _delete_damaged),
    (
        "timerlog* *",
        "delete timerwheel, timerlog/ and config/timercheck",
        _deleting("timerwheel", "timerlog", "config/timercheck"),
    ),
    ("consumequeue* *", "delete consumequeue/", _deleting("consumequeue")),
    ("index* *", "delete index/", _deleting("index")),
    ("checkpoint *", "delete it", _delete_damaged),
    ("lock *", "delete it", _delete_damaged),
    ("abort *", "delete it", _delete_damaged),
    ("commitlog/* extended *", "cut it to its length", _right_length),
    ("commitlog/* truncated *", "fill it with zeros to its length", _right_length),
    ("*", "put back a copy", _put_back),
)
"""Patterns over file, damage and backup; words; function."""
