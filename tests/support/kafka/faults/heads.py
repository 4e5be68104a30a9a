"""Faults in the heads and records of batches, under a checksum that is right."""

from __future__ import annotations

from tests.support.kafka.batches import records, unpacked, varint
from tests.support.kafka.faults.case import Case, Label, Place, changed, is_data, resealed, rewritten

HEAD = 61
APPEND, ROLL, PRODUCER, MARK, SNAPSHOT = (
    "partition.append",
    "partition.roll",
    "producer.append",
    "producer.mark",
    "producer.snapshot",
)


def _sequenced(p: Place) -> bool:
    before = [
        b
        for b in p.batches[: p.number]
        if b.producer == p.batch.producer and b.sequence >= 0 and b.epoch == p.batch.epoch
    ]
    return is_data(p) and p.batch.sequence > 0 and bool(before)


def sequence_gap(case: Case) -> Label | None:
    """Raise a batch's sequence."""
    place = case.place(_sequenced)
    if place is None:
        return None
    rewritten(place, changed(place.batch, sequence=place.batch.sequence + case.random.choice([1, 2, 7, 1000])))
    return case.label("sequence_gap", place, PRODUCER)


def sequence_again(case: Case) -> Label | None:
    """Give a batch the sequence of the one before it."""
    place = case.place(_sequenced)
    if place is None:
        return None
    before = [b for b in place.batches[: place.number] if b.producer == place.batch.producer and b.sequence >= 0][-1]
    rewritten(place, changed(place.batch, sequence=before.sequence))
    return case.label("sequence_again", place, PRODUCER)


def epoch_in_the_middle(case: Case) -> Label | None:
    """Raise a producer's epoch at a batch whose sequence is not 0."""
    place = case.place(_sequenced)
    if place is None:
        return None
    rewritten(place, changed(place.batch, epoch=place.batch.epoch + 1))
    return case.label("epoch_in_the_middle", place, PRODUCER)


def epoch_back(case: Case) -> Label | None:
    """Lower a producer's epoch at a batch whose forerunner has a higher one."""
    place = case.place(lambda p: _sequenced(p) and p.batch.epoch > 0)
    if place is None:
        return None
    rewritten(place, changed(place.batch, epoch=place.batch.epoch - 1))
    return case.label("epoch_back", place, PRODUCER)


def other_producer(case: Case) -> Label | None:
    """Give a batch to another producer that wrote before."""

    def fits(p: Place) -> bool:
        return _sequenced(p) and any(
            b.producer not in {-1, p.batch.producer} and not b.is_control for b in p.batches[: p.number]
        )

    place = case.place(fits)
    if place is None:
        return None
    other = next(b for b in place.batches if b.producer not in {-1, place.batch.producer} and not b.is_control)
    same = (other.last_sequence + 1) % 2**31 == place.batch.sequence and other.epoch == place.batch.epoch
    rewritten(place, changed(place.batch, producer=other.producer))
    return case.label(
        "other_producer",
        place,
        PRODUCER,
        MARK,
        SNAPSHOT,
        also=("snapshot",),
        later=99,
        what="its sequence fits by chance" if same else "",
    )


def leader_epoch_back(case: Case) -> Label | None:
    """Lower the leader epoch of a batch behind one of the same epoch."""
    place = case.place(lambda p: p.number > 0 and p.batches[p.number - 1].leader_epoch == p.batch.leader_epoch)
    if place is None:
        return None
    rewritten(place, changed(place.batch, leader_epoch=place.batch.leader_epoch - 1))
    return case.label("leader_epoch_back", place, APPEND, "partition.lead", also=("leader-epoch-checkpoint",))


def count_wrong(case: Case) -> Label | None:
    """Change a batch's record count."""
    place = case.place(is_data, every=True)
    if place is None:
        return None
    by = case.random.choice([-1, 1, 1000, 2**31 - 1 - place.batch.record_count])
    rewritten(place, changed(place.batch, count=place.batch.record_count + by))
    return case.label(
        "count_wrong", place, APPEND, what=f"{place.batch.record_count} to {place.batch.record_count + by}"
    )


def delta_wrong(case: Case) -> Label | None:
    """Change a batch's last offset delta."""
    place = case.place(is_data)
    if place is None:
        return None
    by = case.random.choice([-1, 1, 30])
    rewritten(place, changed(place.batch, delta=place.batch.delta + by))
    return case.label("delta_wrong", place, APPEND, ROLL, PRODUCER, what=f"by {by}")


def time_wrong(case: Case) -> Label | None:
    """Raise a batch's maximum time of creation."""
    place = case.place(lambda p: is_data(p) and not p.batch.is_append_time)
    if place is None:
        return None
    rewritten(place, changed(place.batch, max_time=place.batch.max_time + case.random.choice([-1, 1, 60_000])))
    return case.label(
        "time_wrong",
        place,
        APPEND,
        "partition.index_time",
        "partition.seal",
        SNAPSHOT,
        also=("timeindex", "snapshot"),
        later=99,
    )


def outside(case: Case) -> Label | None:
    """Take a batch out of the transaction that is open."""

    def fits(p: Place) -> bool:
        mine = [b for b in p.batches[: p.number] if b.producer == p.batch.producer]
        return (
            is_data(p)
            and p.batch.is_transactional
            and bool(mine)
            and not mine[-1].is_control
            and mine[-1].is_transactional
        )

    place = case.place(fits)
    if place is None:
        return None
    rewritten(place, changed(place.batch, attributes=place.batch.attributes & ~16))
    return case.label("outside", place, PRODUCER)


def unpackable(case: Case) -> Label | None:
    """Say another codec than that of the records."""
    place = case.place(is_data, every=True)
    if place is None:
        return None
    codec = (place.batch.codec + case.random.choice([1, 2, 3, 4])) % 5
    rewritten(place, changed(place.batch, attributes=place.batch.attributes & ~7 | codec))
    return case.label("unpackable", place, APPEND, what=f"codec {place.batch.codec} to {codec}")


def record_length(case: Case) -> Label | None:
    """Change the first record's length."""
    place = case.place(lambda p: is_data(p) and p.batch.codec == 0, every=True)
    if place is None:
        return None
    data = place.batch.data
    rewritten(place, resealed(data[:61] + bytes([data[61] ^ 2]) + data[62:]))
    return case.label("record_length", place, APPEND)


def record_order(case: Case) -> Label | None:
    """Give the second record of a batch the first one's offset."""
    place = case.place(lambda p: is_data(p) and p.batch.codec == 0 and p.batch.record_count > 2)
    if place is None:
        return None
    data = unpacked(place.batch)
    size, at = varint(data, 0)
    _, at = varint(data, at + size)
    _, at = varint(data, at + 1)
    head = place.batch.data[:61]
    rewritten(place, resealed(head + data[:at] + b"\0" + data[at + 1 :]))
    return case.label("record_order", place, APPEND)


def key_again(case: Case) -> Label | None:
    """Give a record where the cleaner was the key of one before it."""
    for folder in case.shuffled(case.cleaned):
        found = [
            (place, record)
            for place in case.in_order(folder)
            if is_data(place) and place.batch.codec == 0
            for record in records(place.batch)[:1]
            if record.key and record.offset < case.point(folder)
        ]
        for number, (place, record) in case.shuffled(list(enumerate(found))):
            old, data = record.key or b"", place.batch.data
            for earlier, other in case.shuffled(found[:number]):
                new = other.key or b""
                if new != old and len(new) == len(old):
                    at = data.index(old, HEAD)
                    rewritten(place, resealed(data[:at] + new + data[at + len(new) :]))
                    return case.label("key_again", earlier, "partition.clean", what=f"as at {record.offset}", later=0)
    return None


FAULTS = (
    key_again,
    sequence_gap,
    sequence_again,
    epoch_in_the_middle,
    epoch_back,
    other_producer,
    leader_epoch_back,
    count_wrong,
    delta_wrong,
    time_wrong,
    outside,
    unpackable,
    record_length,
    record_order,
)
