"""Faults in the rows of the coordinators' table, under a checksum that is right: each is wrong once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from gapless.spec.kafka_transaction import TxnStatus
from tests.support.kafka.batches import varint
from tests.support.kafka.faults.case import Case, Label, Place, resealed, rewritten
from tests.support.kafka.files import Folder

TABLE = "__transaction_state"
EMPTY, ONGOING = TxnStatus.EMPTY, TxnStatus.ONGOING
PREPARED = (TxnStatus.PREPARE_COMMIT, TxnStatus.PREPARE_ABORT)
COMPLETE = (TxnStatus.COMPLETE_COMMIT, TxnStatus.COMPLETE_ABORT)
PRODUCER, EPOCH, STATUS, PARTITIONS = 2, 10, 16, 17
"""The place in a value at which its fields begin."""
BEHIND = 2
"""So many rows of the id come behind one that is changed, for the last may be missing by right."""


class Row(NamedTuple):
    """A row of the table: the one record of its batch. `key`, `value`, `end`: where they lie in the batch."""

    place: Place
    key: int
    value: int
    end: int

    @property
    def name(self) -> bytes:
        """The transactional id."""
        return self.place.batch.data[self.key + 4 : self.key + 4 + self._number(self.key + 2, 2)]

    @property
    def status(self) -> int:
        """The status of the transaction."""
        return self.place.batch.data[self.value + STATUS]

    @property
    def epoch(self) -> int:
        """The producer's epoch."""
        return self._number(self.value + EPOCH, 2)

    @property
    def producer(self) -> int:
        """The producer's id."""
        return self._number(self.value + PRODUCER, 8)

    def _number(self, at: int, width: int) -> int:
        return int.from_bytes(self.place.batch.data[at : at + width], "big", signed=True)

    def changed(self, at: int, new: bytes) -> bytes:
        """The batch with other bytes in the value."""
        data, begin = self.place.batch.data, self.value + at
        return resealed(data[:begin] + new + data[begin + len(new) :])


class Turn(NamedTuple):
    """A row with the one before it and the one behind it, of the same id. `until`: the byte where the next ones end."""

    before: Row
    row: Row
    behind: Row
    until: int


Wanted = Callable[[Turn], bool]
Change = Callable[[Turn], bytes]


def _row(place: Place) -> Row | None:
    """The row that a batch is; None if it is none, or a tombstone."""
    batch = place.batch
    if batch.is_control or batch.record_count != 1 or batch.codec:
        return None
    _, attributes = varint(batch.data, 61)
    _, at = varint(batch.data, attributes + 1)  # the time
    _, at = varint(batch.data, at)  # the offset
    length, key = varint(batch.data, at)
    size, value = varint(batch.data, key + max(length, 0))
    return Row(place, key, value, value + size) if length > 4 and size > PARTITIONS else None


def _turns(case: Case, folder: Folder) -> list[Turn]:
    """The rows of a partition behind its cleaner's point, with others of their id around them."""
    found: dict[bytes, list[Row]] = {}
    for place in case.in_order(folder):
        row = _row(place)
        if row is not None and place.batch.base >= case.point(folder):
            found.setdefault(row.name, []).append(row)
    turns = []
    for rows in found.values():
        for number in range(1, len(rows) - BEHIND):
            last = rows[number + BEHIND].place
            same = last.path == rows[number].place.path
            until = last.batch.position + last.batch.size if same else 1 << 40
            turns.append(Turn(rows[number - 1], rows[number], rows[number + 1], until))
    return turns


def _changed(case: Case, kind: str, wanted: Wanted, change: Change) -> Label | None:
    """Change a row that is wanted."""
    for folder in case.shuffled([one for one in case.folders if one.topic == TABLE]):
        turns = [turn for turn in _turns(case, folder) if wanted(turn)]
        if not turns:
            continue
        turn = case.random.choice(turns)
        place = turn.row.place
        rewritten(place, change(turn))
        label = case.label(kind, place, "kafka_transaction", also=_written(case, turn.row.producer))
        return replace(label, end=turn.until)
    return None


def _written(case: Case, producer: int) -> tuple[str, ...]:
    """The partitions that a producer wrote to: a decision that is wrong shows at its markers."""
    return tuple(
        f"{folder.name}/"
        for folder in case.folders
        if folder.topic != TABLE and any(place.batch.producer == producer for place in case.in_order(folder))
    )


def _is(turn: Turn, before: tuple[int, ...], statuses: tuple[int, ...]) -> bool:
    return turn.before.status in before and turn.row.status in statuses


def _decides(turn: Turn) -> bool:
    return _is(turn, (ONGOING,), PREPARED) and turn.behind.status in COMPLETE


def _completes(turn: Turn) -> bool:
    return _is(turn, PREPARED, COMPLETE)


def _status(turn: Turn, status: int, more: int = 0) -> bytes:
    """The row with another status, and a higher epoch."""
    raised = turn.row.changed(EPOCH, (turn.row.epoch + more).to_bytes(2, "big"))
    return resealed(raised[: turn.row.value + STATUS] + bytes([status]) + raised[turn.row.value + STATUS + 1 :])


def _epoch(turn: Turn, more: int) -> bytes:
    return turn.row.changed(EPOCH, (turn.row.epoch + more).to_bytes(2, "big", signed=True))


def decision_turned(case: Case) -> Label | None:
    """Make a commit of an abort, or an abort of a commit."""
    return _changed(case, "decision_turned", _decides, lambda t: _status(t, 5 - t.row.status))


def decision_epoch_ahead(case: Case) -> Label | None:
    """Raise the epoch of a decision by three."""
    return _changed(case, "decision_epoch_ahead", _decides, lambda t: _epoch(t, 3))


def decision_epoch_back(case: Case) -> Label | None:
    """Lower the epoch of a decision below that of its transaction."""
    return _changed(
        case, "decision_epoch_back", lambda t: _decides(t) and t.before.epoch > 0,
        lambda t: _epoch(t, t.before.epoch - 1 - t.row.epoch),
    )  # fmt: skip


def decision_of_another_id(case: Case) -> Label | None:
    """Give a decision to another transactional id."""

    def change(turn: Turn) -> bytes:
        data, at = turn.row.place.batch.data, turn.row.key + 4
        return resealed(data[:at] + b"~" + data[at + 1 :])

    return _changed(case, "decision_of_another_id", _decides, change)


def decision_left_out(case: Case) -> Label | None:
    """Make a decision complete at once."""
    return _changed(case, "decision_left_out", _decides, lambda t: _status(t, t.row.status + 2))


def decision_names_another(case: Case) -> Label | None:
    """Change the name of a topic in a decision."""

    def change(turn: Turn) -> bytes:
        names = [folder.topic.encode() for folder in turn_folders(case)]
        data = turn.row.place.batch.data
        at = min(found for name in names if (found := data.find(name, turn.row.value + PARTITIONS, turn.row.end)) > 0)
        return resealed(data[:at] + b"~" + data[at + 1 :])

    def wanted(turn: Turn) -> bool:
        data = turn.row.place.batch.data[turn.row.value + PARTITIONS : turn.row.end]
        return _decides(turn) and any(folder.topic.encode() in data for folder in turn_folders(case))

    return _changed(case, "decision_names_another", wanted, change)


def turn_folders(case: Case) -> list[Folder]:
    """The partitions that decisions name."""
    return [folder for folder in case.folders if folder.topic != TABLE]


def decision_again(case: Case) -> Label | None:
    """Make a completion a decision of the same kind."""
    return _changed(case, "decision_again", _completes, lambda t: _status(t, t.row.status - 2))


def completion_turned(case: Case) -> Label | None:
    """Complete a commit as an abort, or an abort as a commit."""
    return _changed(case, "completion_turned", _completes, lambda t: _status(t, 9 - t.row.status))


def completion_epoch_ahead(case: Case) -> Label | None:
    """Raise the epoch of a completion by one."""
    return _changed(case, "completion_epoch_ahead", _completes, lambda t: _epoch(t, 1))


def completion_of_another_producer(case: Case) -> Label | None:
    """Give a completion another producer id, in the epoch that it has."""
    return _changed(
        case, "completion_of_another_producer", _completes,
        lambda t: t.row.changed(PRODUCER, (t.row.producer + 90_000).to_bytes(8, "big")),
    )  # fmt: skip


def begin_while_open(case: Case) -> Label | None:
    """Let a producer begin in place of a decision."""
    return _changed(case, "begin_while_open", _decides, lambda t: _status(t, EMPTY, 1))


def begin_while_decided(case: Case) -> Label | None:
    """Let a producer begin in place of a completion."""
    return _changed(case, "begin_while_decided", _completes, lambda t: _status(t, EMPTY, 1))


def begin_epoch_again(case: Case) -> Label | None:
    """Let a producer begin with the epoch that the one before has."""
    return _changed(
        case, "begin_epoch_again",
        lambda t: _is(t, COMPLETE, (EMPTY,)) and t.before.producer == t.row.producer,
        lambda t: _epoch(t, t.before.epoch - t.row.epoch),
    )  # fmt: skip


def added_by_a_fenced_producer(case: Case) -> Label | None:
    """Begin a transaction in an epoch that no one has."""
    return _changed(
        case, "added_by_a_fenced_producer", lambda t: _is(t, (EMPTY, *COMPLETE), (ONGOING,)), lambda t: _epoch(t, 2)
    )


def added_behind_the_decision(case: Case) -> Label | None:
    """Let a transaction be ongoing again in place of its completion."""
    return _changed(case, "added_behind_the_decision", _completes, lambda t: _status(t, ONGOING))


def _tombstone(turn: Turn) -> bytes:
    """The row without its value; a header takes the room."""
    data, row = turn.row.place.batch.data, turn.row
    begin = next(at for at in range(row.key, row.value) if varint(data, at) == (row.end - row.value, row.value))
    room = len(data) - begin - 3
    length = 1 if room - 1 < 64 else 2
    size = room - length << 1
    prefix = bytes([size]) if length == 1 else bytes([size & 127 | 128, size >> 7])
    return resealed(data[:begin] + b"\x01\x02\x00" + prefix + bytes(room - length))


def forgotten_while_open(case: Case) -> Label | None:
    """Forget an id whose transaction is open."""
    return _changed(case, "forgotten_while_open", lambda t: _is(t, (ONGOING,), (ONGOING,)), _tombstone)


def forgotten_while_decided(case: Case) -> Label | None:
    """Forget an id in place of its decision."""
    return _changed(case, "forgotten_while_decided", _decides, _tombstone)


FAULTS = (
    decision_turned, decision_epoch_ahead, decision_epoch_back, decision_of_another_id, decision_left_out,
    decision_names_another, decision_again, completion_turned, completion_epoch_ahead, completion_of_another_producer,
    begin_while_open, begin_while_decided, begin_epoch_again, added_by_a_fenced_producer, added_behind_the_decision,
    forgotten_while_open, forgotten_while_decided,
)  # fmt: skip
