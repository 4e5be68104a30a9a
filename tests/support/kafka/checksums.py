"""The checksums in Kafka's files: the bytes under them, and how they are mended."""

import re
from collections.abc import Iterator
from pathlib import Path

from gapless.traces.sources.kafka.log.checksums import checksum

UNCOUNTED, COVERED, CHECKSUM = 12, 21, slice(17, 21)
"""The bytes of a batch that its length does not count, those that the checksum does not cover, and the checksum."""
SEGMENT = re.compile(r"\d{20}\.log")
PARTITION = re.compile(r".+-\d+")


def covered(folder: Path) -> dict[str, list[tuple[int, int]]]:
    """The bytes under checksums of batches, by file, if the broker of a directory stopped in order."""
    if not (folder / ".kafka_cleanshutdown").exists():
        return {}  # the end may be torn
    logs = [file for file in folder.glob("*/*.log") if SEGMENT.fullmatch(file.name) and _is_closed(file.parent.name)]
    return {str(file.relative_to(folder)): list(_sound(file.read_bytes())) for file in logs}


def _is_closed(partition: str) -> bool:
    return bool(PARTITION.fullmatch(partition)) and not partition.startswith("__cluster_metadata")


def _sound(data: bytes) -> Iterator[tuple[int, int]]:
    for begin, end in _batches(data):
        if checksum(data[begin + COVERED : end]).to_bytes(4, "big") == data[begin:end][CHECKSUM]:
            yield begin + COVERED, end


def mend(file: Path) -> None:
    """Make the checksums of batches right, or that of a snapshot of producers."""
    data = bytearray(file.read_bytes())
    if file.suffix == ".snapshot":
        data[2:6] = checksum(bytes(data[6:])).to_bytes(4, "big")
    else:
        for begin, end in _batches(data):
            data[begin + 17 : begin + 21] = checksum(bytes(data[begin + COVERED : end])).to_bytes(4, "big")
    file.write_bytes(data)


def _batches(data: bytes | bytearray) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each batch; a last one that is cut ends with the file."""
    at = 0
    while at + COVERED < len(data):
        size = UNCOUNTED + max(int.from_bytes(data[at + 8 : at + UNCOUNTED], "big", signed=True), COVERED)
        yield at, min(at + size, len(data))
        at += size
