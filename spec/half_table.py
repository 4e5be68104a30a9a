"""One half that a table tells of for as long as it is undecided: its row, from its place in the log to its op.

A broker that keeps halves in RocksDB asks producers about what the table has, and about nothing else. A row is
written when its half is dispatched, and deleted when an op that names it is.
Source: docs/rocketmq-transactions.md#half-table.
"""

from dataclasses import dataclass

from gapless.spec.language import Position, implies, replace, require

NOWHERE = Position(-1)  # of a half that is not in the log


@dataclass(frozen=True, slots=True)
class State:
    """The half, and what the table has of it."""

    position: Position = NOWHERE  # in the log
    size: int = 0  # bytes of its record
    decisions: int = 0  # ops that name it, and finals, as far as the table knows of them
    rows: int = 0  # of the half in the table
    extent: int = 0  # bytes that its row says it has


def prepare(s: State, position: Position, size: int) -> State:
    """The half is in the log."""
    require(s.position == NOWHERE, "half-lies-in-one-place",
        because="the half lies in one place", otherwise="two halves are taken for one")
    require(0 <= position and 0 < size, "half-lies-in-the-log",
        because="the half lies in the log", otherwise="the broker asks about a message that was never sent")
    return replace(s, position=position, size=size)


def decide(s: State) -> State:
    """An op names the half, or a final does, and the table knows of it.

    Source: docs/rocketmq-transactions.md#half-table (TransMessageRocksDBStore.buildTransIndex).
    """
    require(0 <= s.position, "decision-of-the-table-names-a-half",
        because="a decision names a half", otherwise="another half is forgotten")
    return replace(s, decisions=s.decisions + 1)


def find_row(s: State, size: int, checks: int, limit: int, owned: bool, within: bool) -> State:
    """The table has a row of `size` bytes for the half, asked about `checks` times of `limit`.

    `limit` is 0 where it is not known · `owned`: the row names the half's topic and key · `within`: it lies up to where
    the table says that it ends.

    Source: docs/rocketmq-transactions.md#half-table (TransRocksDBRecord).
    """
    require(0 <= s.position, "row-points-at-a-half",
        because="the row points at a half", otherwise="the broker asks about another message, or about none")
    require(s.rows == 0, "half-has-one-row",
        because="the half has one row", otherwise="its producer is asked twice, and again after its op")
    require(size == s.size, "row-has-the-size-of-its-half",
        because="the row has the size of its half",
        otherwise="the broker cannot read the half, and forgets a transaction that was never decided")
    require(owned, "row-has-topic-and-key-of-its-half",
        because="the row has the topic and the key of its half",
        otherwise="its op deletes no row, and the producer is asked after its decision")
    require(s.decisions == 0, "half-that-is-decided-has-no-row",
        because="a half that is decided has no row", otherwise="the producer is asked again, and decides a second time")
    require(0 <= checks and (limit == 0 or checks <= limit), "row-counts-no-more-checks-than-allowed",
        because="the row counts no more checks than are allowed",
        otherwise="the half is given up before its last check, or after it never")
    require(within, "row-lies-up-to-the-end-of-the-table",
        because="the row lies up to the end of the table",
        otherwise="the next start writes it again, and undoes what was decided")
    return replace(s, rows=s.rows + 1, extent=size)


def miss_row(s: State, spent: bool) -> State:
    """The table has come as far as the half, and has no row for it; `spent`: all its checks may be over.

    Source: docs/rocketmq-transactions.md#half-table (TransactionalMessageRocksDBService).
    """
    require(0 < s.decisions, "half-that-is-undecided-has-its-row",
        because="a half that is undecided has its row",
        otherwise="its producer is never asked again, and no consumer ever sees its message")
    return s


def find_end(s: State, position: Position, there: bool) -> State:
    """The table says that the half at `position` is the last that it knows of; `there`: one lies there.

    Source: docs/rocketmq-transactions.md#half-table (lastOffsetPy).
    """
    require(there, "table-ends-at-a-half",
        because="the table ends at a half", otherwise="halves are left out, or appear again after their decision")
    return s


def what_has_a_row_is_in_the_log(s: State) -> bool:
    """Otherwise the broker asks about another message, or about none."""
    return implies(0 < s.rows or 0 < s.decisions, 0 <= s.position)


def a_half_has_one_row(s: State) -> bool:
    """Otherwise its producer is asked twice."""
    return 0 <= s.rows and s.rows <= 1 and 0 <= s.decisions


def a_row_is_as_long_as_its_half(s: State) -> bool:
    """Otherwise the broker cannot read the half, and forgets it."""
    return implies(0 < s.rows, s.extent == s.size)


def a_half_stays_where_it_is(before: State, after: State) -> bool:
    """Otherwise what was decided about it is about another one."""
    return implies(0 <= before.position, after.position == before.position and after.size == before.size)


# What can be done, from whatever state.


INITIAL = State()
ACTIONS = (prepare, decide, find_row, miss_row, find_end)
INVARIANTS = (what_has_a_row_is_in_the_log, a_half_has_one_row, a_row_is_as_long_as_its_half)
STEP_PROPERTIES = (a_half_stays_where_it_is,)
