"""One committed offset of a consumer group of Kafka, and those that wait for their transactions.

A trace has the records of one key in order of their positions in the topic of the groups' coordinators, and the markers
of the producers that wrote them. Maps are by producer id. Source: docs/kafka-transactions.md#groups.
"""

from dataclasses import dataclass

from gapless.spec.language import Map, Number, Position, assume, implies, replace, require

NOWHERE = Position(-1)  # the position of a record that is not there
NO_OFFSET = Number(-1)


@dataclass(frozen=True, slots=True)
class State:
    """The offset that counts, with the record that it is from, and of each producer the one that waits."""

    opened: bool = False
    end: Position = Position(0)  # exclusive end of what was read of the coordinator's log
    offset: Number = NO_OFFSET  # that counts
    at: Position = NOWHERE  # the record that it is from
    by: int = -1  # the producer in whose transaction it was committed; -1: in none
    waiting: int = 0  # producers with an offset that waits
    pending: Map[int, Number] = Map(NO_OFFSET)  # of a producer: the offset that waits for its marker
    places: Map[int, Position] = Map(NOWHERE)  # of a producer: the record that it is from
    aborted: Map[Position, int] = Map(0)  # of a record: 1 if its transaction was aborted


def open(s: State, at: Position, offset: Number) -> State:  # noqa: A001 - the step's name in every trace.
    """The log is read from position `at` on; `offset` counts there, or none does.

    Source: docs/kafka-transactions.md#groups.
    """
    require(not s.opened, "offset-of-the-group-is-not-open-yet",
        because="the offset of the group is not open yet", otherwise="two groups are taken for one")
    assume(0 <= at and NO_OFFSET <= offset, because="a reader begins within the log")
    return replace(s, opened=True, end=at, offset=offset)


def commit(s: State, at: Position, offset: Number) -> State:
    """The group commits `offset` in no transaction: it counts at once.

    Source: docs/kafka-transactions.md#groups; GroupMetadata.onOffsetCommitAppend.
    """
    assume(s.opened and s.end <= at, because="a log is read in order")
    require(0 <= offset, "offset-that-is-committed-counts-from-0",
        because="an offset that is committed counts from 0", otherwise="the group begins anywhere")
    return replace(s, end=Position(at + 1), offset=offset, at=at, by=-1)


def commit_in_transaction(s: State, at: Position, pid: int, offset: Number) -> State:
    """A producer commits `offset` for the group in its transaction: it counts when that is committed.

    Source: docs/kafka-transactions.md#groups; GroupMetadata.onTxnOffsetCommitAppend.
    """
    assume(s.opened and s.end <= at and 0 <= pid, because="a log is read in order")
    require(0 <= offset, "offset-that-is-committed-counts-from-0",
        because="an offset that is committed counts from 0", otherwise="the group begins anywhere")
    return replace(
        s, end=Position(at + 1), waiting=s.waiting + 1 if s.pending[pid] == NO_OFFSET else s.waiting,
        pending=s.pending.set(pid, offset), places=s.places.set(pid, at),
    )


def mark(s: State, at: Position, pid: int, commit: bool) -> State:
    """A marker of the producer: what waits for it counts, unless a later record does already, or is forgotten.

    Source: docs/kafka-transactions.md#groups; GroupMetadata.completePendingTxnOffsetCommit.
    """
    assume(s.opened and s.end <= at and 0 <= pid, because="a log is read in order")
    waits = s.pending[pid] != NO_OFFSET
    counts = waits and commit and s.at < s.places[pid]
    dropped = waits and not commit
    return replace(
        s, end=Position(at + 1),
        offset=s.pending[pid] if counts else s.offset, at=s.places[pid] if counts else s.at,
        by=pid if counts else s.by, waiting=s.waiting - 1 if waits else s.waiting,
        pending=s.pending.set(pid, NO_OFFSET), places=s.places.set(pid, NOWHERE),
        aborted=s.aborted.set(s.places[pid], 1) if dropped else s.aborted,
    )


def tombstone(s: State, at: Position) -> State:
    """The offset is deleted: the group, or what it knows of the topic, is gone.

    Source: docs/kafka-transactions.md#groups; GroupMetadataManager.cleanupGroupMetadata, KAFKA-19163.
    """
    assume(s.opened and s.end <= at, because="a log is read in order")
    require(s.waiting == 0, "group-with-an-offset-that-waits-is-not-deleted",
        because="a group with an offset that waits for its transaction is not deleted",
        otherwise="the transaction is committed, and the group receives its records again")
    return replace(s, end=Position(at + 1), offset=NO_OFFSET, at=at, by=-1)


def expire(s: State, at: Position, idle: int, limit: int) -> State:
    """The offset is deleted, for the group was idle for `idle` ms, of `limit`.

    Source: docs/kafka-transactions.md#groups; offsets.retention.minutes.
    """
    require(limit <= idle, "offset-is-forgotten-when-its-time-has-come",
        because="an offset is forgotten when its group was idle for long enough",
        otherwise="the group receives records again, or passes over them")
    return tombstone(s, at)


def settle(s: State, pid: int, undecided: bool) -> State:
    """The log ends here; `undecided` says that the transaction of the producer may still be decided.

    Source: docs/kafka-transactions.md#groups; KAFKA-17507.
    """
    require(undecided or s.pending[pid] == NO_OFFSET, "no-offset-waits-for-what-is-decided",
        because="no offset waits for a transaction that is decided",
        otherwise="the group receives its records again, and can commit no more")
    return s


def receive(s: State, offset: Number) -> State:
    """A consumer of the group was answered that `offset` is committed.

    Source: docs/kafka-transactions.md#groups; OffsetFetch.
    """
    require(offset == s.offset, "offset-that-a-consumer-receives-counts",
        because="the offset that a consumer receives is the one that counts",
        otherwise="it passes over records, or receives them again")
    return s


def an_aborted_offset_never_counts(s: State) -> bool:
    """Otherwise the group passes over records that were never worked on."""
    return implies(s.at != NOWHERE, s.aborted[s.at] == 0)


def what_waits_is_not_decided(s: State, pid: int) -> bool:
    """Otherwise an offset waits for a marker that came already."""
    waits = s.pending[pid] != NO_OFFSET
    place = s.places[pid]
    return implies(waits, 0 <= place and place < s.end and s.aborted[place] == 0 and 0 <= s.pending[pid]) and implies(
        not waits, place == NOWHERE
    )


def a_record_is_of_one_producer(s: State, pid: int, other: int) -> bool:
    """Otherwise a marker decides about the offset of another producer."""
    both = s.places[pid] != NOWHERE and pid != other
    return implies(both, s.places[pid] != s.places[other]) and implies(s.places[pid] != NOWHERE, s.places[pid] != s.at)


def what_counts_was_read(s: State) -> bool:
    """Otherwise an offset counts that no one committed."""
    return s.at < s.end and 0 <= s.end and NOWHERE <= s.at and NO_OFFSET <= s.offset and -1 <= s.by


def nothing_is_known_before_the_log_is_read(s: State, pid: int, at: Position) -> bool:
    """Otherwise a trace is judged by what it does not say."""
    return s.opened or (s.at == NOWHERE and s.pending[pid] == NO_OFFSET and s.aborted[at] == 0)


def what_is_aborted_was_read(s: State, at: Position) -> bool:
    """Otherwise a record is aborted before it is written."""
    return implies(s.aborted[at] != 0, at < s.end)


def what_counts_only_moves_on(before: State, after: State) -> bool:
    """Otherwise a record that was overtaken takes the place of the one that overtook it."""
    return implies(before.opened, before.at <= after.at and before.end <= after.end)


def an_offset_of_a_transaction_counts_only_after_its_commit(before: State, after: State, pid: int) -> bool:
    """Otherwise the group passes over records whose results are aborted."""
    counts = before.at != after.at and after.by == pid and 0 <= pid
    waited = before.pending[pid] != NO_OFFSET and after.offset == before.pending[pid]
    return implies(counts, waited and after.pending[pid] == NO_OFFSET)


def an_offset_that_changes_is_from_another_record(before: State, after: State) -> bool:
    """Otherwise an older record takes the place of a later one."""
    return implies(before.opened and before.offset != after.offset, before.at != after.at)


def what_waits_no_more_is_decided(before: State, after: State, pid: int) -> bool:
    """Otherwise an offset is lost that its transaction committed, or counts that it aborted."""
    place = before.places[pid]
    decided = before.pending[pid] != NO_OFFSET and after.pending[pid] == NO_OFFSET
    return implies(decided, after.aborted[place] == 1 or place <= after.at)


def what_is_aborted_stays_so(before: State, after: State, at: Position) -> bool:
    """Otherwise an offset that was forgotten counts again."""
    return before.aborted[at] <= after.aborted[at]


INITIAL = State()
ACTIONS = (open, commit, commit_in_transaction, mark, tombstone, expire, settle, receive)
INVARIANTS = (
    an_aborted_offset_never_counts, what_waits_is_not_decided, a_record_is_of_one_producer, what_counts_was_read,
    nothing_is_known_before_the_log_is_read, what_is_aborted_was_read,
)
STEP_PROPERTIES = (
    what_counts_only_moves_on, an_offset_of_a_transaction_counts_only_after_its_commit,
    an_offset_that_changes_is_from_another_record, what_waits_no_more_is_decided, what_is_aborted_stays_so,
)
