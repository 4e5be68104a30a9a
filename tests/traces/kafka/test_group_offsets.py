"""Offsets of groups in `__consumer_offsets`: all versions, and those that wait for their transactions."""

import struct

import numpy as np
import pytest

from gapless import check
from gapless.traces.sources.kafka.files.group_offsets import DELETED, offset_records
from gapless.traces.sources.kafka.judging.offset_piece import NONE, CommittedOffsets
from gapless.traces.sources.kafka.judging.transaction_items import ABORT, COMMIT, DATA, TransactionItems, together
from gapless.traces.sources.kafka.log.batches import Batches
from gapless.traces.sources.kafka.log.records import RecordColumns
from gapless.traces.sources.kafka.transactions.offset_events import offset_events
from tests.support.kafka.evidence import changed, gathered, judged
from tests.support.kafka.recordings import recording

KEY = struct.pack(">hh3sh6si", 1, 3, b"app", 6, b"orders", 2)
VALUE = struct.pack(">hqihq", 3, 42, -1, 0, 1_000)
WAITS = "group_offsets/no-offset-waits-for-what-is-decided"


def columns(*pairs: tuple[bytes, bytes | None]) -> RecordColumns:
    """Records with these keys and values."""
    data, rows = b"", []
    for number, (key, value) in enumerate(pairs):
        at = len(data)
        middle, end = at + len(key), at + len(key) + len(value or b"")
        data += key + (value or b"")
        rows.append([0, number, 0, at, middle, -1 if value is None else middle, end, hash(key)])
    return RecordColumns(np.array(rows, np.int64).T.copy(), np.frombuffer(data, np.uint8))


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("layout", [0, 1, 2, 3, 4])
def test_each_version_of_a_key_and_a_value_has_its_offset(version: int, layout: int) -> None:
    key, value = struct.pack(">h", version) + KEY[2:], struct.pack(">h", layout) + VALUE[2:]
    found = offset_records(columns((key, value), (key, None)))
    assert found.committed.tolist() == [42, DELETED]
    assert (found.name(0), found.name(1)) == ("app/orders-2", "app/orders-2")


def test_what_is_no_offset_is_passed_over_and_no_length_is_believed() -> None:
    groups = [(struct.pack(">h", version) + KEY[2:], VALUE) for version in (2, 3, 8, 16, 23, -1)]
    cut = [(KEY[:length], VALUE) for length in range(len(KEY))] + [(KEY, VALUE[:length]) for length in range(10)]
    assert not len(offset_records(columns(*groups, *cut)).row)


def heads(*spans: tuple[int, int, int]) -> Batches:
    """Batches with these first and last offsets and counts."""
    table = np.zeros((16, len(spans)), np.int64)
    table[2], table[3], table[4] = np.array(spans).T
    return Batches(table)


@pytest.mark.parametrize(
    ("spans", "since"),
    [
        ([(5, 9, 5), (10, 10, 1)], 5),
        ([(7, 9, 3), (10, 10, 1)], 7),  # the first are gone
        ([(5, 9, 5), (12, 12, 1)], 10),
        ([(5, 9, 4), (10, 10, 1)], 10),
        ([(5, 9, 5), (10, 10, 0)], 11),
    ],
)
def test_a_log_has_all_its_records_behind_its_last_gap(spans: list[tuple[int, int, int]], since: int) -> None:
    assert heads(*spans).dense_from(5) == since
    assert heads(*spans[:0] or [(5, 5, 1)]).dense_from(5) == 5


def items(*rows: tuple[int, int, int]) -> TransactionItems:
    """Runs and markers: producer, offset, kind."""
    producer, first, kind = np.array(rows, np.int64).T
    none = np.zeros(len(rows), np.int64)
    return TransactionItems(producer, first, first, none, kind, none, none)


def test_each_offset_of_a_transaction_has_its_marker_and_one_that_is_left_waits() -> None:
    offsets = CommittedOffsets(*map(np.array, ([7] * 4, [0, 2, 5, 6], [10, 11, 12, DELETED], [1, 2, 1, NONE])))
    found = offset_events(
        offsets, items((1, 0, DATA), (1, 3, COMMIT), (1, 5, DATA), (2, 2, DATA), (2, 4, ABORT)), 0, np.array([1])
    )
    assert [found.events.at(number) for number in range(len(found.events.action))] == [
        ("open", (0, -1)),
        ("commit_in_transaction", (0, 1, 10)),
        ("commit_in_transaction", (2, 2, 11)),
        ("mark", (3, 1, 1)),
        ("mark", (4, 2, 0)),
        ("commit_in_transaction", (5, 1, 12)),
        ("tombstone", (6,)),
        ("settle", (1, 0)),
    ]
    assert found.starts.tolist() == [0, 8]


def test_the_offset_of_a_group_is_explained_step_by_step() -> None:
    report = check(recording("3.5.2-txn") / "n1", trace="__consumer_offsets/app/input-0", jobs=1)
    assert (report.verdict, report.life[0].split("(")[0].split()[-1]) == ("conforms", "open")


def test_an_offset_whose_marker_is_missing_waits_for_ever() -> None:
    copies = gathered(recording("3.5.2-txn") / "n1")
    (which,) = [
        number for number, copy in enumerate(copies) if copy.offsets and any(len(one.names) for one in copy.offsets)
    ]
    found = together(copies[which].items)
    last = int(np.flatnonzero(found.kind != DATA)[-1])
    left = judged(changed(copies, which, found.of(np.delete(np.arange(len(found.kind)), last))))
    assert WAITS in {one.departure.rule for one in left.breaches}
