"""A data directory, made file by file: a partition with three segments, one of the metadata, and the checkpoints."""

import struct
from collections.abc import Sequence
from pathlib import Path

from gapless.traces.sources.kafka.log.checksums import checksum
from tests.support.kafka.logs import Message, batch, marker

TOPIC_ID = bytes(range(16))
PRODUCER = struct.Struct(">qhiqiqiq")
"""Producer, epoch, last sequence, last offset, delta, time, coordinator epoch, first offset of the open transaction."""


def snapshot(*producers: Sequence[int]) -> bytes:
    """A snapshot of producers."""
    covered = struct.pack(">i", len(producers)) + b"".join(PRODUCER.pack(*one) for one in producers)
    return struct.pack(">hI", 1, checksum(covered)) + covered


def offsets(*lines: str) -> bytes:
    """A checkpoint with these lines."""
    return "\n".join(["0", str(len(lines)), *lines, ""]).encode()


def uvarint(value: int) -> bytes:
    """An unsigned number of variable length."""
    made = b""
    while value > 127:
        made += bytes([value & 127 | 128])
        value >>= 7
    return made + bytes([value])


def compact(text: str | None) -> bytes:
    """A text as records of the metadata have it; None is null."""
    return uvarint(0) if text is None else uvarint(len(text.encode()) + 1) + text.encode()


def framed(kind: int, body: bytes, version: int = 0) -> Message:
    """A record of the metadata."""
    return Message(uvarint(1) + uvarint(kind) + uvarint(version) + body)


def topic(name: str, identity: bytes = TOPIC_ID) -> Message:
    """A topic is created."""
    return framed(2, compact(name) + identity + b"\0")


def partition(number: int, nodes: Sequence[int] = (1,), identity: bytes = TOPIC_ID) -> Message:
    """A partition is created; the first node leads it."""
    array = uvarint(len(nodes) + 1) + struct.pack(f">{len(nodes)}i", *nodes)
    leads = struct.pack(">iii", nodes[0], 0, 0)
    return framed(3, struct.pack(">i", number) + identity + 2 * array + b"\1\1" + leads + b"\0")


def changed(number: int, leader: int, identity: bytes = TOPIC_ID) -> Message:
    """A partition has another leader, which is the only one in sync, and lacks records."""
    tags = b"\3" + b"\0" + b"\5" + b"\2" + struct.pack(">i", leader) + b"\1\4" + struct.pack(">i", leader) + b"\5\1\1"
    return framed(5, struct.pack(">i", number) + identity + tags)


def setting(kind: int, resource: str, name: str, value: str | None) -> Message:
    """A setting of a topic (2) or of brokers (4)."""
    return framed(4, bytes([kind]) + compact(resource) + compact(name) + compact(value) + b"\0")


METADATA = [
    framed(12, compact("transaction.version") + struct.pack(">h", 2) + b"\0"),
    topic("orders"),
    partition(0, (1, 2)),
    setting(2, "orders", "cleanup.policy", "delete"),
    changed(0, 2),
    framed(15, struct.pack(">iqq", 1, 5, 3000) + b"\0"),
    framed(20, b"\0"),
]  # fmt: skip


def data_directory(path: Path) -> Path:
    """Write the whole directory."""
    orders, metadata = path / "orders-0", path / "__cluster_metadata-0"
    orders.mkdir(parents=True)
    metadata.mkdir()
    (path / "meta.properties").write_text("#\nversion=1\nnode.id=3\ncluster.id=abc\ndirectory.id=d\n")
    (path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":13}')
    for name in ("recovery-point", "replication"):
        (path / f"{name}-offset-checkpoint").write_bytes(offsets("orders 0 9", "__cluster_metadata 0 1"))
    (path / "log-start-offset-checkpoint").write_bytes(offsets())
    (path / "cleaner-offset-checkpoint").write_bytes(b"")
    _partition(orders)
    (metadata / f"{0:020}.log").write_bytes(batch(0, METADATA))
    (metadata / f"{0:020}-{0:010}.checkpoint").write_bytes(batch(0, METADATA[:1]))
    (metadata / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    return path


def _partition(folder: Path) -> None:
    """Three segments: two batches, a transaction that was aborted, and the active segment, with its blank indexes."""
    ours = {"producer": 7, "epoch": 0, "attributes": 0x10}
    logs = {
        0: batch(0, [Message(b"a", b"k"), Message(b"b")], codec=3) + batch(2, codec=4),
        3: batch(3, [Message(), Message()], sequence=0, **ours) + marker(5, commit=False),
        6: batch(6, [Message(time=2), Message(time=9), Message()], codec=2),
    }
    for base, data in logs.items():
        (folder / f"{base:020}.log").write_bytes(data)
        (folder / f"{base:020}.index").write_bytes(struct.pack(">ii", 2, 0) + bytes(80))
        (folder / f"{base:020}.timeindex").write_bytes(struct.pack(">qi", 1_700_000_000_000, 1) + bytes(120))
        (folder / f"{base:020}.snapshot").write_bytes(snapshot((7, 0, 1, 4, 1, 1_700_000_000_000, 0, -1)))
    (folder / f"{3:020}.txnindex").write_bytes(struct.pack(">hqqqq", 0, 7, 3, 5, 6))
    (folder / f"{9:020}.snapshot").write_bytes(snapshot())
    (folder / "leader-epoch-checkpoint").write_bytes(offsets("0 0", "2 6"))
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw")
