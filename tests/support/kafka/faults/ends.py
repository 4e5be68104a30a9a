"""Faults in the ends of transactions: their markers, late records, and the offsets of groups that wait for them."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.kafka.batches import marker
from tests.support.kafka.faults.case import Case, Label, Place, changed, flipped, is_marker, resealed, write

OFFSETS, TRANSACTION = "__consumer_offsets", "kafka_transaction"


def _ends_data(place: Place) -> bool:
    """True for a marker right behind a batch of its transaction."""
    before = place.batches[place.number - 1] if place.number else None
    return (
        is_marker(place)
        and before is not None
        and before.producer == place.batch.producer
        and before.is_transactional
        and not before.is_control
    )


def _later(place: Place) -> bool:
    """True if a marker of the producer comes behind, for the last may be missing by right."""
    return any(b.producer == place.batch.producer and b.is_control for b in place.batches[place.number + 1 :])


def _of_plain(case: Case, wanted: Callable[[Place], bool]) -> Place | None:
    return case.place(lambda place: _ends_data(place) and wanted(place))


def _of_offsets(case: Case, wanted: Callable[[Place], bool]) -> Place | None:
    """A marker behind the offset of a group that waits for it, behind the cleaner's point."""
    folders = [folder for folder in case.folders if folder.topic == OFFSETS]
    found = [
        place
        for folder in folders
        for place in case.in_order(folder)
        if place.batch.base >= case.point(folder) and _ends_data(place) and wanted(place)
    ]
    return case.random.choice(found) if found else None


def _put(place: Place, data: bytes, begin: int, size: int) -> None:
    old = place.path.read_bytes()
    write(place.path, old[:begin] + data + old[begin + size :])


def _shown(case: Case, kind: str, place: Place) -> Label:
    """The label: it shows at the marker or one of the next batches, in a snapshot, an index, or the row of its id."""
    also = ("__transaction_state-", f"{place.folder.name}/{place.path.stem}.txnindex", ".snapshot")
    return case.label(kind, place, TRANSACTION, "group_offsets", later=99, also=also)


def _turned(place: Place) -> None:
    found, data = marker(place.batch), place.batch.data
    at = 61 + data[61:].index(b"\0\0\0" + bytes([found.type if found else 0])) + 3
    _put(place, resealed(flipped(data, at, 0)), place.batch.position, place.batch.size)


def _exchanged(place: Place) -> None:
    """The marker comes before the batch that it ends."""
    data, end = place.batches[place.number - 1], place.batch
    moved = changed(end, base=data.base) + changed(data, base=data.base + 1)
    _put(place, moved, data.position, data.size + end.size)


def _before(place: Place) -> Place:
    """The batch before, where an exchange begins."""
    return place._replace(number=place.number - 1)


def marker_is_a_record(case: Case) -> Label | None:
    """Put a record of no producer in the place of a marker."""
    place = _of_plain(case, _later)
    if place is None:
        return None
    data = changed(place.batch, attributes=0, producer=-1, epoch=-1, sequence=-1)
    _put(place, data, place.batch.position, place.batch.size)
    return _shown(case, "marker_is_a_record", place)


def marker_before_its_records(case: Case) -> Label | None:
    """Exchange a marker and the last records that it ends."""
    place = _of_plain(case, bool)
    if place is None:
        return None
    _exchanged(place)
    return _shown(case, "marker_before_its_records", _before(place))


def marker_in_the_middle(case: Case) -> Label | None:
    """Put a marker in the place of a record, while its transaction is open."""

    def fits(place: Place) -> bool:
        batch, behind = place.batch, place.batches[place.number + 1 :]
        rest = next((b for b in behind if b.producer == batch.producer), None)
        is_open = rest is not None and rest.is_transactional and not rest.is_control
        return batch.is_transactional and not batch.is_control and batch.record_count == 1 and is_open

    place = case.place(fits)
    if place is None:
        return None
    batch = place.batch
    body = b"\0\0\0" + b"\x08" + b"\0\0\0\0" + b"\x0c" + bytes(6)  # ABORT, of coordinator 0
    room = batch.size - 61 - len(body) - 2  # of the header that fills it up, and the length of the record
    for wide in (1, 2):
        for rest in (1, 2):
            left = room - wide - rest - 1
            if left >= 0 and len(_varint(left)) == rest and len(_varint(batch.size - 61 - wide)) == wide:
                record = body + b"\x02\0" + _varint(left) + bytes(left + 1)
                record = _varint(batch.size - 61 - wide) + record[: batch.size - 61 - wide]
                if len(record) == batch.size - 61:
                    head = changed(batch, sealed=False, attributes=0x30, sequence=-1)[:61]
                    _put(place, resealed(head + record), batch.position, batch.size)
                    return _shown(case, "marker_in_the_middle", place)
    return None


def _varint(value: int) -> bytes:
    bits, made = value << 1, b""
    while bits > 127:
        made += bytes([bits & 127 | 128])
        bits >>= 7
    return made + bytes([bits])


def offsets_of_an_aborted_transaction(case: Case) -> Label | None:
    """Make a COMMIT of the ABORT that an offset of a group waits for."""
    return _turned_offsets(case, "offsets_of_an_aborted_transaction", 0)


def offsets_of_a_committed_transaction(case: Case) -> Label | None:
    """Make an ABORT of the COMMIT that an offset of a group waits for."""
    return _turned_offsets(case, "offsets_of_a_committed_transaction", 1)


def _turned_offsets(case: Case, kind: str, of: int) -> Label | None:
    place = _of_offsets(case, lambda p: _later(p) and (found := marker(p.batch)) is not None and found.type == of)
    if place is None:
        return None
    _turned(place)
    return _shown(case, kind, place)


def offset_behind_its_marker(case: Case) -> Label | None:
    """Exchange the last marker of a producer and the offset of a group that waits for it (KAFKA-17507)."""
    place = _of_offsets(case, lambda p: not _later(p))
    if place is None:
        return None
    _exchanged(place)
    return _shown(case, "offset_behind_its_marker", _before(place))


def offsets_marker_epoch(case: Case) -> Label | None:
    """Raise the epoch of a marker that an offset of a group waits for by three."""
    place = _of_offsets(case, _later)
    if place is None:
        return None
    _put(place, changed(place.batch, epoch=place.batch.epoch + 3), place.batch.position, place.batch.size)
    return _shown(case, "offsets_marker_epoch", place)


def offsets_marker_of_another(case: Case) -> Label | None:
    """Give a marker that an offset of a group waits for to a producer that is not known."""
    place = _of_offsets(case, _later)
    if place is None:
        return None
    _put(place, changed(place.batch, producer=place.batch.producer + 77_000), place.batch.position, place.batch.size)
    return _shown(case, "offsets_marker_of_another", place)


FAULTS = (
    marker_is_a_record, marker_before_its_records, marker_in_the_middle,
    offsets_of_an_aborted_transaction, offsets_of_a_committed_transaction, offset_behind_its_marker,
    offsets_marker_epoch, offsets_marker_of_another,
)  # fmt: skip
