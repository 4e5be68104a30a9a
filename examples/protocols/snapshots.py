"""Snapshot isolation: each transaction sees the store as it was when it began, and the first to commit a key wins.

As TLA+'s KeyValueStore has it, with two keys and three transactions at most.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, applies, implies, replace, require

Transaction = NewType("Transaction", int)
Key = NewType("Key", int)
Value = NewType("Value", int)
TRANSACTIONS = 2
NONE = Value(0)
ONE = Key(0)
TWO = Key(1)


@dataclass(frozen=True, slots=True)
class State:
    """The store, and the transactions."""

    store: Map[Key, Value] = Map(Value(0))  # 0 for none
    open: Map[Transaction, bool] = Map(False)
    snapshot: Map[Transaction, Key, Value] = Map(Value(0))
    written: Map[Transaction, Key, bool] = Map(False)
    missed: Map[Transaction, Key, bool] = Map(False)  # another one has committed the key since


def begin(s: State, transaction: Transaction) -> State:
    """A transaction begins, and sees the store as it is."""
    applies(0 <= transaction < 3 and not s.open[transaction])
    return replace(
        s,
        open=s.open.set(transaction, True),
        snapshot=s.snapshot.set(transaction, ONE, s.store[ONE]).set(transaction, TWO, s.store[TWO]),
    )


def write(s: State, transaction: Transaction, key: Key, value: Value) -> State:
    """A transaction writes another value for a key, or 0 to remove it, where only it sees that."""
    applies(0 <= key < 2 and s.snapshot[transaction, key] != value)
    require(
        s.open[transaction],
        "transaction-is-open",
        because="the transaction is open",
        otherwise="the next one with the number commits what it has not written",
    )
    return replace(s, snapshot=s.snapshot.set(transaction, key, value), written=s.written.set(transaction, key, True))


def left(s: State, transaction: Transaction) -> State:
    """The transactions without one of them."""
    return replace(
        s,
        open=s.open.set(transaction, False),
        snapshot=s.snapshot.set(transaction, ONE, NONE).set(transaction, TWO, NONE),
        written=s.written.set(transaction, ONE, False).set(transaction, TWO, False),
        missed=s.missed.set(transaction, ONE, False).set(transaction, TWO, False),
    )


def roll_back(s: State, transaction: Transaction) -> State:
    """A transaction ends, and what it wrote is gone."""
    applies(s.open[transaction])
    return left(s, transaction)


def misses(s: State, transaction: Transaction, other: Transaction, key: Key) -> bool:
    """True if another transaction misses a key, once one commits."""
    return s.missed[other, key] or (s.open[other] and other != transaction and s.written[transaction, key])


def commit(s: State, transaction: Transaction) -> State:
    """A transaction ends, and the store has what it wrote."""
    applies(s.open[transaction])
    require(
        not (s.written[transaction, ONE] and s.missed[transaction, ONE])
        and not (s.written[transaction, TWO] and s.missed[transaction, TWO]),
        "no-other-one-has-committed-its-keys",
        because="no other transaction has committed a key since, that it has written",
        otherwise="the other one's update is lost",
    )
    a = Transaction(0)
    b = Transaction(1)
    c = Transaction(2)
    return left(
        replace(
            s,
            store=s.store.set(ONE, s.snapshot[transaction, ONE] if s.written[transaction, ONE] else s.store[ONE]).set(
                TWO, s.snapshot[transaction, TWO] if s.written[transaction, TWO] else s.store[TWO]
            ),
            missed=s.missed.set(a, ONE, misses(s, transaction, a, ONE))
            .set(a, TWO, misses(s, transaction, a, TWO))
            .set(b, ONE, misses(s, transaction, b, ONE))
            .set(b, TWO, misses(s, transaction, b, TWO))
            .set(c, ONE, misses(s, transaction, c, ONE))
            .set(c, TWO, misses(s, transaction, c, TWO)),
        ),
        transaction,
    )


def what_differs_was_written_or_missed(s: State, transaction: Transaction, key: Key) -> bool:
    """Otherwise a commit of another one is not noticed."""
    return implies(
        s.open[transaction] and 0 <= key < 2 and s.store[key] != s.snapshot[transaction, key],
        s.written[transaction, key] or s.missed[transaction, key],
    )


def nothing_is_left_of_a_transaction(s: State, transaction: Transaction, key: Key) -> bool:
    """Otherwise the next one with the number commits what it has not written."""
    return s.open[transaction] or (
        s.snapshot[transaction, key] == NONE and not s.written[transaction, key] and not s.missed[transaction, key]
    )


def there_are_two_keys(s: State, transaction: Transaction, key: Key) -> bool:
    """Otherwise something of a third one is left behind."""
    return 0 <= key < 2 or (
        s.store[key] == NONE
        and s.snapshot[transaction, key] == NONE
        and not s.written[transaction, key]
        and not s.missed[transaction, key]
    )


def there_are_three_transactions(s: State, transaction: Transaction) -> bool:
    """Otherwise one is not informed of what others commit."""
    return implies(s.open[transaction], 0 <= transaction < 3)


def no_update_is_lost(before: State, after: State, transaction: Transaction, key: Key) -> bool:
    """Otherwise two transactions add to what both have read, and one of both is forgotten."""
    ends = before.open[transaction] and not after.open[transaction]
    return implies(ends and before.missed[transaction, key], after.store[key] == before.store[key])


INITIAL = State()
ACTIONS = (begin, write, roll_back, commit)
INVARIANTS = (
    what_differs_was_written_or_missed,
    nothing_is_left_of_a_transaction,
    there_are_two_keys,
    there_are_three_transactions,
)
STEP_PROPERTIES = (no_update_is_lost,)
BOUND = Bound(
    says="two keys, two values",
    within=lambda s: True,
    numbers={"transaction": range(TRANSACTIONS), "key": range(2), "value": range(3)},
)
