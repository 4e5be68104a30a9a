"""Faults planted into a store that is whole: that the comparison is not one that cannot fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.interop.written import WrittenStore
from tests.support.rocketmq.stores import ENTRY, Queue, Record, encode, fields, queue_files

WHERE = 30  # the number of the message that is hit: in the first log file, which no recovery reads after a clean stop


@dataclass(frozen=True)
class PlantedFault:
    """One fault: in which queue, and a part of the line that must tell it."""

    what: str
    queue: Queue
    reported_as: str


def plant(store: Path, written: WrittenStore) -> list[PlantedFault]:
    """Five faults, each in a queue of its own. The store is changed."""
    busy = [queue for queue, messages in written.queues.items() if messages]
    entry, dropped, tag, number, body = busy[:5]
    _flip(queue_files(store, entry)[0], WHERE * ENTRY.size + 7)
    _drop_entry(queue_files(store, dropped), WHERE)
    _flip(queue_files(store, tag)[0], _first_of_its_tag(written, tag) * ENTRY.size + 19)
    log = store / "commitlog" / f"{0:020}"
    _replace(log, written.queues[number][WHERE].position, lambda record: replace(record, number=record.number ^ 1))
    _replace(log, written.queues[body][WHERE].position, lambda record: replace(record, body=bytes(len(record.body))))
    return [
        PlantedFault("an entry points one byte off", entry, "no record"),
        PlantedFault("an entry is missing", dropped, f"number of message {WHERE} was written as {WHERE}"),
        PlantedFault("an entry has another tag", tag, "have the tag"),
        PlantedFault("a record has another number", number, f"number of message {WHERE} was written as {WHERE}"),
        PlantedFault("a body is another", body, f"the body of message {WHERE}"),
    ]


def _flip(file: Path, at: int) -> None:
    """The lowest bit of one byte."""
    with file.open("r+b") as opened:
        opened.seek(at)
        byte = opened.read(1)[0]
        opened.seek(at)
        opened.write(bytes([byte ^ 1]))


def _replace(log: Path, position: int, change: Callable[[Record], Record]) -> None:
    """A record is another one, and its checksums are right."""
    data = bytearray(log.read_bytes())
    record, end = fields(bytes(data), position)
    data[position:end] = encode(change(record))
    log.write_bytes(data)


def _drop_entry(files: list[Path], number: int) -> None:
    """Those behind it move up."""
    data = b"".join(file.read_bytes() for file in files)
    data = data[: number * ENTRY.size] + data[(number + 1) * ENTRY.size :] + bytes(ENTRY.size)
    size = len(data) // len(files)
    for index, file in enumerate(files):
        file.write_bytes(data[index * size : (index + 1) * size])


def _first_of_its_tag(written: WrittenStore, queue: Queue) -> int:
    """The number of the first message that has a tag."""
    return next(number for number, message in enumerate(written.queues[queue]) if message.tag)
