"""The table of transactions: both versions of its rows, damaged ones, and those of real coordinators."""

import struct

import numpy as np
import pytest

from gapless.traces.sources.kafka.files.fields import OutOfBounds
from gapless.traces.sources.kafka.files.names import PartitionName
from gapless.traces.sources.kafka.files.transaction_table import (
    COUNT,
    PROTOCOL,
    SET,
    STARTED,
    TOMBSTONE,
    UNKNOWN,
    UPDATED,
    WHOLE,
    rows_of,
    transaction_rows,
)
from gapless.traces.sources.kafka.log.records import RecordColumns
from tests.support.kafka.recordings import recording

KEY = b"\0\0\0\2t1"
HEAD = struct.pack(">hqhib", 0, 7, 3, 60_000, 1)
OLD = HEAD + struct.pack(">ih6siiqq", 1, 6, b"orders", 1, 5, 2_000, 1_000)
NEW = b"\0\1" + HEAD[2:] + b"\2\7orders\2\0\0\0\5\0" + struct.pack(">qq", 2_000, 1_000) + b"\1\2\2\0\2"
FOLLOW = {0: {0, 1, 3}, 1: {1, 2, 3}, 2: {4}, 3: {5}, 4: {0, 1, 3}, 5: {0, 1, 3}}
"""The statuses that may follow each."""


def _columns(*pairs: tuple[bytes | None, bytes | None]) -> RecordColumns:
    data, rows = b"", []
    for number, (key, value) in enumerate(pairs):
        at = len(data)
        middle, end = at + len(key or b""), at + len(key or b"") + len(value or b"")
        data += (key or b"") + (value or b"")
        rows.append([0, number, 0, -1 if key is None else at, middle, -1 if value is None else middle, end, 0])
    return RecordColumns(np.array(rows, np.int64).T.copy(), np.frombuffer(data, np.uint8))


@pytest.mark.parametrize("value", [OLD, NEW])
def test_details_in_columns_are_those_of_one_row_and_none_of_what_is_cut(value: bytes) -> None:
    rows = rows_of(_columns((KEY, value), *((KEY, value[:length]) for length in range(len(value))), (KEY, None)))
    details = rows.details()
    one = rows.detail(0)
    found = details[[COUNT, UPDATED, STARTED, PROTOCOL, WHOLE], 0].tolist()
    assert found == [len(one.partitions), one.updated, one.started, one.protocol, 1]
    assert not details[WHOLE, 1:].any()


def test_partitions_have_the_hash_of_their_set_in_any_order_and_version() -> None:
    turned = HEAD + struct.pack(">ih6siih6siiqq", 2, 6, b"orders", 1, 4, 6, b"orders", 1, 5, 2_000, 1_000)
    both = HEAD + struct.pack(">ih6siiiqq", 1, 6, b"orders", 2, 5, 4, 2_000, 1_000)
    sets = rows_of(_columns((KEY, OLD), (KEY, NEW), (KEY, turned), (KEY, both))).details()[SET].tolist()
    assert sets[0] == sets[1] != sets[2] == sets[3]


@pytest.mark.parametrize(("value", "protocol"), [(OLD, 1), (NEW, 2)])
def test_both_versions_are_read(value: bytes, protocol: int) -> None:
    rows = rows_of(_columns((KEY, value), (KEY, None)))
    assert (rows.producer.tolist(), rows.epoch.tolist(), rows.timeout.tolist()) == ([7, -1], [3, -1], [60_000, -1])
    assert (rows.status.tolist(), rows.name(0)) == ([1, TOMBSTONE], "t1")
    assert rows.detail(0) == (frozenset({PartitionName("orders", 5)}), 2_000, 1_000, protocol)


@pytest.mark.parametrize("value", [OLD, NEW])
def test_no_length_of_a_value_is_read_beyond_its_end(value: bytes) -> None:
    for length in range(len(value)):
        rows = rows_of(_columns((KEY, value[:length])))
        if rows.status[0] == UNKNOWN:
            assert length < len(HEAD)
        else:
            with pytest.raises(OutOfBounds):
                rows.detail(0)


def test_what_is_not_known_is_no_row() -> None:
    strange = [(b"\0\1\0\2t1", OLD), (b"\0", OLD), (None, OLD), (KEY, b"\0\2" + OLD[2:]), (b"\0", b"")]
    assert (rows_of(_columns(*strange)).status == UNKNOWN).all()


@pytest.mark.parametrize("name", ["3.5.2-txn", "4.4.0-kill"])
def test_the_rows_of_real_coordinators_follow_one_another(name: str) -> None:
    last: dict[str, int] = {}
    for log in sorted((recording(name) / "n1").glob("__transaction_state-*/*.log")):
        for rows in transaction_rows(log):
            for row, status in enumerate(rows.status.tolist()):
                detail = rows.detail(row)
                assert bool(detail.partitions) <= (status in (1, 2, 3))
                assert detail.protocol in ({1} if name.startswith("3") else {1, 2})
                assert rows.name(row) not in last or status in FOLLOW[last[rows.name(row)]]
                last[rows.name(row)] = status
    assert last
