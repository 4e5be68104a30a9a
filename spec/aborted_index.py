"""The index of aborted transactions of one partition of Kafka: an entry for each abort that ended records.

Readers of committed transactions leave out the records that an entry names. A broker makes no entry again that was lost
below the recovery point, and looks for none.

Source: docs/kafka.md#aborted-index.
"""

from dataclasses import dataclass

from gapless.spec.language import Number, assume, implies, replace, require

NOWHERE = -1  # where there is no offset, and no producer


@dataclass(frozen=True, slots=True)
class State:
    """The last abort, and how far aborts have entries."""

    opened: bool = False
    producer: int = NOWHERE  # of the last abort
    first: Number = Number(NOWHERE)  # the first offset of its transaction
    stable: Number = Number(NOWHERE)  # with its marker, all below this offset is decided
    end: Number = Number(0)  # behind its marker
    hidden: Number = Number(0)  # behind the marker of the last abort that has its entry
    aborted: int = 0  # aborts so far
    entered: int = 0  # entries so far


def open(s: State, at: Number) -> State:  # noqa: A001 - the step's name in every trace.
    """A log is read from offset `at` on."""
    require(not s.opened, "index-of-aborts-is-not-open-yet",
        because="the index is not open yet", otherwise="two logs are taken for one")
    assume(0 <= at, because="offsets begin at 0")
    return replace(s, opened=True, end=at, hidden=at)


def abort(s: State, producer: int, first: Number, last: Number, stable: Number) -> State:
    """A marker at offset `last` aborts the transaction of a producer, whose first record is at `first`.

    `stable`: the first offset of the earliest transaction that is open then; if none is, the one behind the marker.

    Source: docs/kafka.md#aborted-index; ProducerStateManager.lastStableOffset.
    """
    assume(s.opened and s.end <= last and first < last and stable <= last + 1 and NOWHERE < first and NOWHERE < stable,
        because="markers are read in the order of their offsets, behind the records that they end")
    require(s.hidden == s.end, "every-abort-is-in-the-index",
        because="each abort before is in the index",
        otherwise="readers of committed transactions receive aborted records: no start makes the entry again")
    return replace(s, producer=producer, first=first, stable=stable, end=Number(last + 1), aborted=s.aborted + 1)


def enter(s: State, producer: int, first: Number, last: Number, stable: Number) -> State:
    """The index has an entry: transaction of a producer from `first` to its marker at `last`.

    Source: docs/kafka.md#aborted-index; LogSegment.updateTxnIndex.
    """
    require(s.opened and s.hidden < s.end and last + 1 == s.end, "entry-is-of-an-abort-that-has-none-yet",
        because="the entry is of an abort that has none yet",
        otherwise="readers of committed transactions leave out records that were committed")
    require(producer == s.producer, "entry-names-the-producer-of-its-abort",
        because="the entry names the producer whose transaction was aborted",
        otherwise="readers of committed transactions receive its records, and leave out those of another")
    require(first == s.first, "entry-begins-where-its-transaction-begins",
        because="the entry begins where its transaction begins",
        otherwise="readers of committed transactions receive aborted records, or leave out committed ones")
    require(stable == s.stable, "entry-has-the-stable-offset-of-its-abort",
        because="the entry has the stable offset as of its marker",
        otherwise="a fetch stops too early to look for aborts, and aborted records are received")
    return replace(s, hidden=s.end, entered=s.entered + 1)


def close(s: State) -> State:
    """A segment ends: the entries of its aborts are in its own index.

    Source: docs/kafka.md#aborted-index.
    """
    require(s.opened and s.hidden == s.end, "every-abort-is-in-the-index",
        because="each abort before is in the index",
        otherwise="readers of committed transactions receive aborted records: no start makes the entry again")
    return s


def an_entry_has_its_abort(s: State) -> bool:
    """Otherwise committed records are left out."""
    return 0 <= s.hidden and s.hidden <= s.end


def an_abort_has_one_entry(s: State) -> bool:
    """Otherwise aborted records are received, or committed ones left out."""
    return 0 <= s.entered and s.aborted == (s.entered if s.hidden == s.end else s.entered + 1)


def a_transaction_lies_before_its_marker(s: State) -> bool:
    """Otherwise an entry names records that are not there."""
    inside = s.first == NOWHERE or s.first + 1 < s.end
    return NOWHERE <= s.first and inside and NOWHERE <= s.stable and s.stable <= s.end


def an_entry_is_missing_of_an_abort_alone(s: State) -> bool:
    """Otherwise a sound log is accused."""
    return implies(s.hidden < s.end, s.first != NOWHERE and s.stable != NOWHERE)


def nothing_is_aborted_before_a_log_is_read(s: State) -> bool:
    """Otherwise aborts are counted that were never looked at."""
    return s.opened or (s.end == 0 and s.aborted == 0 and s.first == NOWHERE and s.stable == NOWHERE)


def an_abort_is_hidden_before_the_next(before: State, after: State) -> bool:
    """Otherwise aborted records are received, unnoticed."""
    return implies(before.opened and after.end != before.end, before.hidden == before.end)


def what_is_hidden_stays_hidden(before: State, after: State) -> bool:
    """Otherwise aborted records are received that were left out before."""
    return before.end <= after.end and before.hidden <= after.hidden


def an_abort_is_entered_once(before: State, after: State) -> bool:
    """Otherwise committed records are left out, or an abort is passed over."""
    entered = before.opened and after.hidden != before.hidden
    return implies(entered, before.hidden < before.end and after.end == before.end and after.hidden == after.end)


def each_abort_has_a_marker_of_its_own(before: State, after: State) -> bool:
    """Otherwise one entry hides two transactions."""
    another = after.first != before.first or after.stable != before.stable or after.producer != before.producer
    return implies(another, before.end < after.end)


def an_index_is_opened_once(before: State, after: State) -> bool:
    """Otherwise two logs are taken for one."""
    return implies(before.opened, after.opened)


INITIAL = State()
ACTIONS = (open, abort, enter, close)
INVARIANTS = (
    an_entry_has_its_abort, an_abort_has_one_entry, a_transaction_lies_before_its_marker,
    an_entry_is_missing_of_an_abort_alone, nothing_is_aborted_before_a_log_is_read,
)
STEP_PROPERTIES = (
    an_abort_is_hidden_before_the_next, what_is_hidden_stays_hidden, an_abort_is_entered_once,
    each_abort_has_a_marker_of_its_own, an_index_is_opened_once,
)
