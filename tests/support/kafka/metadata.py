"""Topics that were ever compacted, out of `__cluster_metadata`, as the tests' own reader finds them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.support.kafka.batches import records, walk


class TopicConfig(NamedTuple):
    """One setting of a resource (type 2: a topic)."""

    type: int
    resource: str
    name: str
    value: str | None


def uvarint(data: bytes, at: int) -> tuple[int, int]:
    """A plain number, and where it ends."""
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not data[at - 1] & 0x80:
            return number, at


def text(data: bytes, at: int) -> tuple[str | None, int]:
    """A compact string, and where it ends."""
    size, at = uvarint(data, at)
    return (None, at) if size == 0 else (data[at : at + size - 1].decode(), at + size - 1)


def settings(directory: Path) -> list[TopicConfig]:
    """Every setting that the metadata log ever had, in order; another directory of the node may have it."""
    found = []
    folder = directory / "__cluster_metadata-0"
    others = [] if folder.exists() else sorted(directory.parent.glob("*/__cluster_metadata-0"))
    folder = others[0] if others else folder
    for path in sorted(folder.glob("*.checkpoint")) + sorted(folder.glob("*.log")):
        for batch in walk(path).batches:
            if batch.is_control or not batch.is_sound:
                continue
            for record in records(batch):
                setting = _setting(record.value or b"")
                if setting is not None:
                    found.append(setting)
    return found


def _setting(value: bytes) -> TopicConfig | None:
    if len(value) < 4:
        return None
    _, at = uvarint(value, 0)
    key, at = uvarint(value, at)
    _, at = uvarint(value, at)
    if key != 4:
        return None
    kind = value[at]
    resource, at = text(value, at + 1)
    name, at = text(value, at)
    content, at = text(value, at)
    return TopicConfig(kind, resource or "", name or "", content)


def compacted_topics(directory: Path) -> set[str]:
    """Topics whose policy ever was compaction."""
    return {
        s.resource
        for s in settings(directory)
        if s.type == 2 and s.name == "cleanup.policy" and s.value and "compact" in s.value
    }
