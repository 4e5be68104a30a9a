"""Faults in markers, under a checksum that is right."""

from __future__ import annotations

from tests.support.kafka.batches import marker
from tests.support.kafka.faults.case import Case, Label, Place, changed, flipped, is_marker, resealed, rewritten

APPEND, ROLL, PRODUCER, MARK, SNAPSHOT = (
    "partition.append",
    "partition.roll",
    "producer.append",
    "producer.mark",
    "producer.snapshot",
)


def marker_of_another(case: Case) -> Label | None:
    """Give a marker to a producer that is not known."""
    place = case.place(is_marker)
    if place is None:
        return None
    rewritten(place, changed(place.batch, producer=place.batch.producer + 77_000))
    return case.label(
        "marker_of_another",
        place,
        MARK,
        PRODUCER,
        SNAPSHOT,
        "partition.clean",
        "partition.raise_watermark",
        also=("snapshot", "txnindex"),
        later=99,
    )


def marker_epoch(case: Case) -> Label | None:
    """Raise a marker's producer epoch by three."""
    place = case.place(
        lambda p: (
            is_marker(p) and any(b.producer == p.batch.producer and not b.is_control for b in p.batches[: p.number])
        )
    )
    if place is None:
        return None
    rewritten(place, changed(place.batch, epoch=place.batch.epoch + 3))
    return case.label("marker_epoch", place, MARK, PRODUCER, SNAPSHOT, also=("snapshot",), later=99)


def marker_epoch_back(case: Case) -> Label | None:
    """Lower a marker's producer epoch below that of its data."""
    place = case.place(
        lambda p: (
            is_marker(p)
            and p.batch.epoch > 0
            and any(b.producer == p.batch.producer and b.epoch == p.batch.epoch for b in p.batches[: p.number])
        )
    )
    if place is None:
        return None
    rewritten(place, changed(place.batch, epoch=place.batch.epoch - 1))
    return case.label("marker_epoch_back", place, MARK, SNAPSHOT, PRODUCER, also=("snapshot",), later=99)


def marker_turned(case: Case) -> Label | None:
    """Make a COMMIT of an ABORT, or an ABORT of a COMMIT that ended data."""

    def fits(p: Place) -> bool:
        mine = [b for b in p.batches[: p.number] if b.producer == p.batch.producer]
        return is_marker(p) and bool(mine) and not mine[-1].is_control

    place = case.place(fits)
    if place is None:
        return None
    batch = place.batch
    found = marker(batch)
    at = 61 + batch.data[61:].index(b"\0\0\0" + bytes([found.type if found else 0])) + 3
    rewritten(place, resealed(flipped(batch.data, at, 0)))
    return case.label(
        "marker_turned",
        place,
        MARK,
        "partition.index",
        "aborted_index",
        also=("txnindex",),
        what="shows in the index of aborted transactions",
    )


def marker_coordinator_back(case: Case) -> Label | None:
    """Lower a marker's coordinator epoch below that of an earlier one."""

    def fits(p: Place) -> bool:
        mine = [marker(b) for b in p.batches[: p.number] if b.producer == p.batch.producer and b.is_control]
        return is_marker(p) and any(m is not None and m.coordinator >= 0 for m in mine)

    place = case.place(fits)
    if place is None:
        return None
    found = marker(place.batch)
    data = place.batch.data
    at = len(data) - 1 - 4  # the value ends with the epoch, and a count of headers
    assert found is not None
    assert data[at : at + 4] == found.coordinator.to_bytes(4, "big", signed=True)
    rewritten(place, resealed(data[:at] + (-1).to_bytes(4, "big", signed=True) + data[at + 4 :]))
    return case.label("marker_coordinator_back", place, MARK, SNAPSHOT, also=("snapshot",), later=99)


FAULTS = (
    marker_of_another,
    marker_epoch,
    marker_epoch_back,
    marker_turned,
    marker_coordinator_back,
)
