"""One record of a log, and what a table of keys has for it: a row for each of its keys, and no other.

A broker that keeps its index in RocksDB finds messages by these rows alone. They are written in the order of the log,
in batches; the table says itself up to which record it was written.
Source: docs/rocketmq.md#index-rocksdb.
"""

from dataclasses import dataclass

from gapless.spec.language import Position, implies, replace, require

NOWHERE = Position(-1)  # of a record that is not in the log


@dataclass(frozen=True, slots=True)
class State:
    """The record, and how many of its rows were found."""

    position: Position = NOWHERE  # in the log
    keys: int = 0  # that lead to it, each once
    rows: int = 0  # of them in the table
    passed: int = 0  # times that the table was seen to be written farther


def store(s: State, position: Position, keys: int) -> State:
    """The record lies in the log, with so many keys by which it is to be found."""
    require(s.position == NOWHERE, "record-lies-in-one-place",
        because="the record lies in one place", otherwise="two records are taken for one")
    require(0 <= position and 0 <= keys, "record-lies-in-the-log",
        because="the record lies in the log", otherwise="a key leads to a message that was never sent")
    return replace(s, position=position, keys=keys)


def find_row(s: State, owned: bool, timely: bool, in_hour: bool) -> State:
    """The table has a row that leads to the record.

    `owned`: it has one of the record's keys · `timely`: its time is that of the record · `in_hour`: it stands among the
    rows of that hour.

    Source: docs/rocketmq.md#index-rocksdb (IndexRocksDBRecord).
    """
    require(0 <= s.position, "row-of-a-key-leads-to-a-record",
        because="the row leads to a record", otherwise="who looks the key up is handed nothing, or an error")
    require(owned, "row-has-a-key-of-its-record",
        because="the row has a key of its record",
        otherwise="who looks the key up finds a message that does not have it")
    require(timely, "row-of-a-key-has-the-time-of-its-record",
        because="the row has the time of its record",
        otherwise="who looks a key up in a stretch of time misses its message")
    require(in_hour, "row-stands-in-the-hour-of-its-record",
        because="the row stands among those of its record's hour",
        otherwise="the message is not found by its key, or the row goes before its record does")
    require(s.rows < s.keys, "key-of-a-record-has-one-row",
        because="a key of a record has one row", otherwise="who looks the key up finds the message twice")
    return replace(s, rows=s.rows + 1)


def pass_by(s: State) -> State:
    """The table was written farther than the record.

    Source: docs/rocketmq.md#index-rocksdb (lastOffsetPy).
    """
    require(s.rows == s.keys, "key-of-a-record-has-its-row",
        because="each key of the record has its row", otherwise="the message is not found by its key")
    return replace(s, passed=s.passed + 1)


def find_last(s: State, position: Position, there: bool, timely: bool) -> State:
    """The table says that the record at `position` is the last that it was written for.

    `there`: a record with keys lies there · `timely`: the table has its time for that of the last one.

    Source: docs/rocketmq.md#index-rocksdb (lastOffsetPy, lastStoreTimeStamp).
    """
    require(there, "table-of-keys-ends-at-a-record",
        because="the table of keys ends at a record",
        otherwise="records are never put into it, for the broker takes them for those that it was written for")
    require(timely, "table-of-keys-ends-at-the-time-of-its-record",
        because="the table of keys ends at the time of its last record",
        otherwise="who asks how far it was written is misled")
    return s


def what_has_rows_is_in_the_log(s: State) -> bool:
    """Otherwise a key leads to nothing."""
    return implies(0 < s.rows or 0 < s.keys, 0 <= s.position)


def a_record_has_no_more_rows_than_keys(s: State) -> bool:
    """Otherwise it is found twice, or by a key that it does not have."""
    return 0 <= s.rows and s.rows <= s.keys and 0 <= s.passed


def a_record_stays_where_it_is(before: State, after: State) -> bool:
    """Otherwise its keys lead to another one."""
    return implies(0 <= before.position, after.position == before.position and after.keys == before.keys)


def rows_are_found_one_by_one(before: State, after: State) -> bool:
    """Otherwise one row counts for several keys."""
    return after.rows == before.rows or after.rows == before.rows + 1


# What can be done, from whatever state.


INITIAL = State()
ACTIONS = (store, find_row, pass_by, find_last)
INVARIANTS = (what_has_rows_is_in_the_log, a_record_has_no_more_rows_than_keys)
STEP_PROPERTIES = (a_record_stays_where_it_is, rows_are_found_one_by_one)
