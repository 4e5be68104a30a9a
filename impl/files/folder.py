"""Other files in a store's folder than log and queues, as a broker of version 4.3 to 5.x writes them.

`lock`, `abort` (there while a writer runs, and after it crashed), `config/topics.json` (docs/rocketmq.md#files,
#config). Here it is read and written; what follows from it is decided in `core.py`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from gapless.impl.environment.operating_system import Disk
from gapless.impl.files.checkpoint import CHECKPOINT
from gapless.impl.files.queues import FOLDER, LIGHT, names_of_queues
from gapless.impl.files.segments import asked
from gapless.impl.records.errors import InUse, NotAStore, StoreError, WrongFileSize
from gapless.impl.records.record import BLANK, ENTRY_BYTES, FIXED

LOG = "commitlog"
ABORT = "abort"
TOPICS = "config/topics.json"
UNSAID_QUEUES = 16  # that a broker takes a topic to have where its table has the topic and no number

LOG_FILE = 1 << 30  # bytes, where neither the settings nor the files say
QUEUE_FILE = 300_000 * ENTRY_BYTES

OTHER_LAYOUTS = {
    "batchconsumequeue": "batch consume queues",
    "consumequeue_ext": "extended consume-queue entries",
    "consumequeue_rocksdb": "consume queues in RocksDB",
}


def require_a_store(disk: Disk) -> None:
    """The folder is empty, or a store of a layout that is written here. Raises NotAStore; nothing was touched."""
    folders, files = asked(lambda: disk.folders(""), "."), set(asked(lambda: disk.names(""), ".")) - {"lock"}
    for folder in folders:
        if folder in OTHER_LAYOUTS and (disk.folders(folder) or disk.names(folder)):
            raise NotAStore(f"{folder}: {OTHER_LAYOUTS[folder]} are not written here; choose a store without them")
        if folder.startswith("dledger"):
            raise NotAStore(f"{folder}: a DLedger log is not written here; choose a store with a plain commit log")
    if (folders or files) and LOG not in folders and ABORT not in files and CHECKPOINT not in files:
        raise NotAStore(f"{(folders + sorted(files))[0]}: expected a store, or an empty folder; choose another folder")


def lock(disk: Disk) -> None:
    """Keep other writers out. Raises InUse, StoreError."""
    try:
        asked(disk.lock, "lock")
    except StoreError as error:
        if isinstance(error.__cause__, BlockingIOError):
            raise InUse(
                f"lock: {error.__cause__.strerror}; stop the broker or the program that writes to the store"
            ) from error
        raise


def file_sizes(
    disk: Disk, log: int | None, queue: int | None, *, usual: tuple[int, int] = (LOG_FILE, QUEUE_FILE)
) -> tuple[int, int]:
    """Bytes of every log file and queue file: as the files are, or as the settings say where there are none yet.

    `usual`: where neither says any. Raises WrongFileSize where the two disagree.
    """
    queues = (_lengths(disk, f"{FOLDER}/{topic}/{number}") for topic, number in names_of_queues(disk))
    sizes = _agreed(_lengths(disk, LOG), log, usual[0]), _agreed(next(filter(None, queues), {}), queue, usual[1])
    if sizes[0] <= FIXED + BLANK:
        raise WrongFileSize(
            f"log files of {sizes[0]} bytes have no room for a record; expected more than {FIXED + BLANK}"
        )
    if sizes[1] % ENTRY_BYTES:
        raise WrongFileSize(f"queue files of {sizes[1]} bytes, expected a multiple of {ENTRY_BYTES}")
    return sizes


def _lengths(disk: Disk, folder: str) -> dict[str, int]:
    listed = asked(lambda: disk.names(folder), folder)
    return {f"{folder}/{name}": length for name, length in sorted(listed.items()) if length and name[0] != "."}


def _agreed(found: dict[str, int], wanted: int | None, default: int) -> int:
    for path, length in found.items():
        if wanted not in (None, length):
            raise WrongFileSize(
                f"{path}: {length} bytes, and the settings say {wanted}; leave them out, or say {length}"
            )
        return length
    return default if wanted is None else wanted


def mark_running(disk: Disk) -> None:
    """From here on a stop without `mark_stopped` is a crash."""
    asked(lambda: disk.write(ABORT, str(os.getpid()).encode()), ABORT)


def mark_stopped(disk: Disk) -> None:
    """All is on disk."""
    asked(lambda: disk.delete(ABORT), ABORT)


def is_clean(disk: Disk) -> bool:
    """True if the last writer stopped in order."""
    return ABORT not in asked(lambda: disk.names(""), ".")


def has_light_queues(disk: Disk) -> bool:
    """True if records may be in several queues at once (docs/rocketmq.md#multi-dispatch)."""
    if "lmqConsumerOffset.json" in asked(lambda: disk.names("config"), "config"):
        return True
    return any(topic.startswith(LIGHT) for topic, _ in names_of_queues(disk))


def write_topics(disk: Disk, queues: Iterable[tuple[str, int]], now: int) -> None:
    """Brokers serve the queues that `config/topics.json` names: what it lacks is added, and nothing else is touched.

    `queues`: every (topic, queue id) · `now`: ms. A file that is not a broker's is left alone.
    """
    counts: dict[str, int] = {}
    for topic, number in queues:
        if not topic.startswith(LIGHT):
            counts[topic] = max(counts.get(topic, 0), number + 1)
    try:
        known = json.loads(asked(lambda: disk.read(TOPICS), TOPICS) or b"{}")
        table = known.get("topicConfigTable", {})
        wider = {topic: _topic(topic, count, table.get(topic, {})) for topic, count in sorted(counts.items())}
        version = {"stateVersion": 0, **known.get("dataVersion", {}), "timestamp": now}
        version["counter"] = version.get("counter", 0) + 1  # by which brokers see that a table is a newer one
    except (ValueError, AttributeError, TypeError, RecursionError):
        return
    if any(table.get(topic) != wider[topic] for topic in wider):
        content = {**known, "dataVersion": version, "topicConfigTable": {**table, **wider}}
        text = json.dumps(content, indent="\t", separators=(",", ":"))
        asked(lambda: disk.write(TOPICS, text.encode()), TOPICS)


def _topic(name: str, queues: int, known: dict[str, Any]) -> dict[str, Any]:
    """The settings of a topic for a broker, which refuses queues that it does not count (code 29).

    Where fewer queues are to be written than read, the others are being taken out of use, and they stay so.
    """
    usual = {"attributes": {}, "order": False, "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0}
    unsaid = UNSAID_QUEUES if known else 0
    read, written = (known.get(key, unsaid) for key in ("readQueueNums", "writeQueueNums"))
    wider = {"readQueueNums": max(queues, read), "writeQueueNums": max(queues, written) if written >= read else written}
    return {**usual, **known, "topicName": name, **wider}
