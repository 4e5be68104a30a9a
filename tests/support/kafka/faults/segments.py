"""Faults in segments: bits, cuts, and batches that go, come twice or change places."""

from __future__ import annotations

from dataclasses import replace

from tests.support.kafka.faults.case import Case, Label, Place, changed, flipped, is_inner, rewritten, write

APPEND, ROLL, PRODUCER, MARK, SNAPSHOT = (
    "partition.append",
    "partition.roll",
    "producer.append",
    "producer.mark",
    "producer.snapshot",
)
REST = (
    "partition.flush",
    "partition.raise_watermark",
    "partition.lead",
    "partition.index",
    "partition.index_time",
    SNAPSHOT,
    "partition.seal",
    "partition.end",
    "partition.clean",
    "files",
)
ENDS = (
    "snapshot",
    "index",
    "timeindex",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "leader-epoch-checkpoint",
    "txnindex",
    "cleaner-offset-checkpoint",
)


def head_bit(case: Case) -> Label | None:
    """Turn one bit of a head that the checksum covers."""
    place = case.place(every=True)
    if place is None:
        return None
    at = case.random.randrange(21, 61)
    rewritten(place, flipped(place.batch.data, at, case.random.randrange(8)))
    return case.label("head_bit", place, APPEND, what=f"byte {at} of the head")


def record_bit(case: Case) -> Label | None:
    """Turn one bit of a batch's records."""
    place = case.place(lambda p: p.batch.size > 61, every=True)
    if place is None:
        return None
    at = case.random.randrange(61, place.batch.size)
    rewritten(place, flipped(place.batch.data, at, case.random.randrange(8)))
    return case.label("record_bit", place, APPEND, what=f"byte {at} of the batch")


def checksum_bit(case: Case) -> Label | None:
    """Turn one bit of a checksum."""
    place = case.place(every=True)
    if place is None:
        return None
    rewritten(place, flipped(place.batch.data, case.random.randrange(17, 21), case.random.randrange(8)))
    return case.label("checksum_bit", place, APPEND)


def length_bit(case: Case) -> Label | None:
    """Turn one of the lower bits of a length."""
    place = case.place(lambda p: p.number < len(p.batches) - 1, every=True)
    if place is None:
        return None
    rewritten(place, flipped(place.batch.data, 11, case.random.randrange(8)))
    return case.label("length_bit", place, APPEND, ROLL)


def magic_bit(case: Case) -> Label | None:
    """Turn a bit of the magic byte, but the two that make an older format of it."""
    place = case.place(every=True)
    if place is None:
        return None
    rewritten(place, flipped(place.batch.data, 16, case.random.randrange(2, 8)))
    return case.label("magic_bit", place, APPEND, ROLL)


def base_bit(case: Case) -> Label | None:
    """Turn one bit of a base offset, which no checksum covers."""
    place = case.place()
    if place is None:
        return None
    bit = case.random.randrange(24)
    rewritten(place, flipped(place.batch.data, 7 - bit // 8, bit % 8))
    return case.label("base_bit", place, APPEND, ROLL, PRODUCER, what=f"bit {bit}")


def leader_epoch_bit(case: Case) -> Label | None:
    """Turn one bit of a leader epoch, which no checksum covers."""
    place = case.place()
    if place is None:
        return None
    bit = case.random.randrange(8)
    rewritten(place, flipped(place.batch.data, 15, bit))
    return case.label(
        "leader_epoch_bit", place, APPEND, "partition.lead", what=f"bit {bit}", also=("leader-epoch-checkpoint",)
    )


def cut_inside(case: Case) -> Label | None:
    """Take some bytes out of a segment's middle."""
    place = case.place(is_inner, every=True)
    if place is None:
        return None
    size = case.random.randrange(1, place.batch.size)
    begin = case.random.randrange(0, place.batch.size - size)
    rewritten(place, place.batch.data[:begin] + place.batch.data[begin + size :])
    return case.label("cut_inside", place, APPEND, ROLL, what=f"{size} bytes")


def cut_last(case: Case) -> Label | None:
    """Cut a segment within its last batch."""
    place = case.place(lambda p: p.number == len(p.batches) - 1, every=True)
    if place is None:
        return None
    at = case.random.randrange(1, place.batch.size)
    old = place.path.read_bytes()
    write(place.path, old[: place.batch.position + at])
    return case.label("cut_last", place, APPEND, ROLL, *REST, also=ENDS, what=f"{place.batch.size - at} bytes are gone")


def cut_batches(case: Case) -> Label | None:
    """Cut whole batches off a partition's end."""
    place = case.place(lambda p: p.path == p.folder.logs[-1])
    if place is None:
        return None
    write(place.path, place.path.read_bytes()[: place.batch.position])
    return case.label(
        "cut_batches", place, *REST, also=ENDS, what=f"{len(place.batches) - place.number} batches are gone"
    )


def cut_rolled(case: Case) -> Label | None:
    """Cut whole batches off a rolled segment's end."""
    place = case.place(lambda p: p.path != p.folder.logs[-1] and p.number > 0)
    if place is None:
        return None
    write(place.path, place.path.read_bytes()[: place.batch.position])
    return case.label("cut_rolled", place, ROLL, APPEND, PRODUCER, *REST, also=ENDS)


def drop(case: Case) -> Label | None:
    """Drop a batch from the middle."""
    place = case.place(is_inner)
    if place is None:
        return None
    rewritten(place, b"")
    return case.label("drop", place, APPEND, "partition.index")


def double(case: Case) -> Label | None:
    """Put a batch twice."""
    place = case.place(every=True)
    if place is None:
        return None
    rewritten(place, place.batch.data * 2)
    return case.label("double", place, APPEND, ROLL)


def reorder(case: Case) -> Label | None:
    """Swap two batches that follow one another."""
    place = case.place(lambda p: p.number < len(p.batches) - 1, every=True)
    if place is None:
        return None
    after = place.batches[place.number + 1]
    old = place.path.read_bytes()
    write(place.path, old[: place.batch.position] + after.data + place.batch.data + old[after.position + after.size :])
    return case.label("reorder", place, APPEND)


def exchange(case: Case) -> Label | None:
    """Swap two batches of one producer and give them each other's offsets: checksums stay right."""

    def fits(p: Place) -> bool:
        if p.number == len(p.batches) - 1:
            return False
        a, b = p.batch, p.batches[p.number + 1]
        return a.producer == b.producer >= 0 and a.sequence >= 0 and b.sequence > a.sequence and a.epoch == b.epoch

    place = case.place(fits)
    if place is None:
        return None
    a, b = place.batch, place.batches[place.number + 1]
    first = changed(b, sealed=False, base=a.base, leader_epoch=a.leader_epoch)
    second = changed(a, sealed=False, base=a.base + b.delta + 1, leader_epoch=b.leader_epoch)
    old = place.path.read_bytes()
    write(place.path, old[: a.position] + first + second + old[b.position + b.size :])
    return case.label(
        "exchange", place, PRODUCER, "partition.index", "partition.index_time", also=("index", "timeindex")
    )


def shift_base(case: Case) -> Label | None:
    """Shift one batch's base offset."""
    place = case.place()
    if place is None:
        return None
    by = case.random.choice([-1, 1, 2, 50])
    rewritten(place, changed(place.batch, base=place.batch.base + by))
    return case.label("shift_base", place, APPEND, ROLL, what=f"by {by}")


def shift_rest(case: Case) -> Label | None:
    """Shift the base offsets of a batch and all behind it in its segment."""
    place = case.place(is_inner)
    if place is None:
        return None
    data = place.path.read_bytes()[: place.batch.position]
    for batch in place.batches[place.number :]:
        data += changed(batch, sealed=False, base=batch.base + 3)
    write(place.path, data)
    return case.label("shift_rest", place, APPEND, what="by 3")


def zeros(case: Case) -> Label | None:
    """Zero some bytes of a segment, over two batches."""
    place = case.place(is_inner, every=True)
    if place is None:
        return None
    old = place.path.read_bytes()
    begin = place.batch.position + case.random.randrange(place.batch.size)
    end = min(begin + 200, len(old))
    write(place.path, old[:begin] + bytes(end - begin) + old[end:])
    return case.label("zeros", place, APPEND, ROLL, later=4)


def rest_behind(case: Case) -> Label | None:
    """Write some bytes behind a rolled segment's last batch."""
    place = case.place(lambda p: p.path != p.folder.logs[-1] and p.number == len(p.batches) - 1, every=True)
    if place is None:
        return None
    write(place.path, place.path.read_bytes() + b"\x07" * 33)
    label = case.label("rest_behind", place, ROLL, APPEND)
    flushed = case.flushed.get((place.folder.topic, place.folder.number), 0)
    return replace(label, end=label.end + 33, tail=not case.is_stopped and place.batch.last + 1 >= flushed)


FAULTS = (
    head_bit,
    record_bit,
    checksum_bit,
    length_bit,
    magic_bit,
    base_bit,
    leader_epoch_bit,
    cut_inside,
    cut_last,
    cut_batches,
    cut_rolled,
    drop,
    double,
    reorder,
    exchange,
    shift_base,
    shift_rest,
    zeros,
    rest_behind,
)
