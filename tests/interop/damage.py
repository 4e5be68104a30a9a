"""Faults planted into a store that is whole: that the comparison is not one that cannot fail."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tests.interop.written import Written
from tests.support.rocketmq.stores import ENTRY, Queue, encode, fields, queue_files

WHERE = 30  # the number of the message that is hit: in the first log file, which no recovery reads after a clean stop
NUMBER = 20  # where a record has its number


@dataclass(frozen=True)
class Planted:
    """One fault: in which queue, and a part of the line that must tell it."""

    what: str
    queue: Queue
    told_as: str


def plant(store: Path, written: Written) -> list[Planted]:
    """Five faults, each in a queue of its own. The store is changed."""
    busy = [queue for queue, messages in written.queues.items() if messages]
    entry, dropped, tag, number, body = busy[:5]
    _flip(queue_files(store, entry)[0], WHERE * ENTRY.size + 7)
    _drop_entry(queue_files(store, dropped), WHERE)
    _flip(queue_files(store, tag)[0], _first_of_its_tag(written, tag) * ENTRY.size + 19)
    log = store / "commitlog" / f"{0:020}"
    _flip(log, written.queues[number][WHERE].position + NUMBER + 7)
    _replace_body(log, written.queues[body][WHERE].position)
    return [
        Planted("an entry points one byte off", entry, "no record"),
        Planted("an entry is missing", dropped, f"number of message {WHERE} was written as {WHERE}"),
        Planted("an entry has another tag", tag, "have the tag"),
        Planted("a record has another number", number, f"number of message {WHERE} was written as {WHERE}"),
        Planted("a body is another", body, f"the body of message {WHERE}"),
    ]


def _flip(file: Path, at: int) -> None:
    """The lowest bit of one byte."""
    with file.open("r+b") as opened:
        opened.seek(at)
        byte = opened.read(1)[0]
        opened.seek(at)
        opened.write(bytes([byte ^ 1]))


def _replace_body(log: Path, position: int) -> None:
    """Its checksum is right."""
    data = bytearray(log.read_bytes())
    record, end = fields(bytes(data), position)
    data[position:end] = encode(replace(record, body=bytes(len(record.body))))
    log.write_bytes(data)


def _drop_entry(files: list[Path], number: int) -> None:
    """Those behind it move up."""
    data = b"".join(file.read_bytes() for file in files)
    data = data[: number * ENTRY.size] + data[(number + 1) * ENTRY.size :] + bytes(ENTRY.size)
    size = len(data) // len(files)
    for index, file in enumerate(files):
        file.write_bytes(data[index * size : (index + 1) * size])


def _first_of_its_tag(written: Written, queue: Queue) -> int:
    """The number of the first message that has a tag."""
    return next(number for number, message in enumerate(written.queues[queue]) if message.tag)
