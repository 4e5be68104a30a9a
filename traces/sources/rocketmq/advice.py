"""Advice about paths around a RocketMQ store: a broker's home, its settings, its logs, a store without its log."""

from __future__ import annotations

import re
from pathlib import Path

from gapless.traces.problems import Unreadable, pasted, shown
from gapless.traces.sources.rocketmq.store.directory import store_folder
from gapless.traces.sources.rocketmq.store.settings import read_settings

SETTINGS = ("conf/broker.conf", "broker.conf", "conf/broker.properties")
ROOT = "storePathRootDir"
DEFAULT = "store"  # in the home of the broker's user
HOME = ("bin/mqbroker", "bin/mqnamesrv", "bin/mqadmin", "conf/2m-2s-async")
QUEUES = ("consumequeue", "batchconsumequeue")
OF_A_BROKER = frozenset({ROOT, "brokerName", "brokerClusterName", "namesrvAddr", "storePathCommitLog"})
LOGS = ("broker.log", "store.log", "broker_default.log", "namesrv.log", "rocketmq_client.log", "storeerror.log")
LOG_FILE = re.compile("[0-9]{20}")


def advice(path: Path) -> str:
    """The part of RocketMQ that a path is, and the path of the store; empty where it looks like none."""
    if path.is_file():
        return _of_file(path)
    if found := next((path / name for name in SETTINGS if (path / name).is_file()), None):
        return _of_settings(found, f"no store, but its {found.relative_to(path)}")
    if any((path / name).exists() for name in HOME):
        return f"a RocketMQ home, whose store lies elsewhere: {_default()}"
    if any((path / name).is_file() for name in LOGS):
        return f"the broker's logs of text, not its store: {_default()}"
    return _of_parts(path)


def _of_parts(path: Path) -> str:
    if path.name in QUEUES or any((path / name).is_dir() for name in QUEUES):
        return "a part of a RocketMQ store: its commitlog/ is needed, too; copy the whole store, and name its folder"
    if any(LOG_FILE.fullmatch(found.name) for found in path.iterdir()):
        return (
            "files of a commit log or of a queue without their store: they belong into STORE/commitlog/ or "
            "STORE/consumequeue/TOPIC/QUEUE/; copy the whole store, and name its folder"
        )
    return ""


def _of_file(path: Path) -> str:
    if path.suffix in (".conf", ".properties") and not OF_A_BROKER.isdisjoint(_settings(path)):
        return _of_settings(path, "settings, not a store: it")
    if LOG_FILE.fullmatch(path.name):
        return "a single file of a commit log or of a queue: copy the whole store directory, and name that"
    if path.name in LOGS:
        return f"a log of text that a broker wrote, not its store: {_default()}"
    return ""


def _settings(path: Path) -> dict[str, str]:
    try:
        return read_settings(path)
    except Unreadable:
        return {}


def _of_settings(path: Path, what: str) -> str:
    """The store that settings name."""
    root = _settings(path).get(ROOT, "").strip()
    if not root:
        return f"{what} names no {ROOT}: {_default()}"
    store = store_folder(Path(root)) if Path(root).is_dir() else None
    if store is None:
        return f"{what} says {ROOT}={shown(root)}, and no store is there on this machine: copy it, and name the copy"
    return f"{what} says {ROOT}={shown(root)}; try: gapless check {pasted(store)}"


def _default() -> str:
    """The store of a broker whose settings name none."""
    home = Path.home() / DEFAULT
    there = f"there is {home}" if home.is_dir() and store_folder(home) else "there is none in yours"
    return f"a broker writes to the {ROOT} of its settings, else to {DEFAULT}/ in the home of its user ({there})"
