"""One client of a partition of Kafka: what it was answered, laid over the records of the log that it can see.

A trace has those records in the order of their offsets, each before the first answer that may be about it. A reader of
committed transactions sees committed records alone. Source: docs/kafka-clients.md.
"""

from dataclasses import dataclass

from gapless.spec.language import Number, assume, implies, replace, require


@dataclass(frozen=True, slots=True)
class State:
    """The last run of records that was read of the log, and how far the reader has come."""

    opened: bool = False
    reads: bool = False  # the client is a reader, from a position to a position
    first: Number = Number(0)  # the first offset of the last records
    end: Number = Number(0)  # exclusive end of them
    position: Number = Number(0)  # the offset that the reader receives next: all below it was received


def open(s: State, at: Number, reads: bool) -> State:  # noqa: A001 - the step's name in every trace.
    """The log is compared with the answers from offset `at` on; a reader begins there.

    Source: docs/kafka-clients.md#sessions.
    """
    require(not s.opened, "client-of-the-partition-is-not-open-yet",
        because="the client is not known yet", otherwise="two clients are taken for one")
    assume(0 <= at, because="offsets begin at 0")
    return replace(s, opened=True, reads=reads, first=at, end=at, position=at)


def show(s: State, first: Number, last: Number) -> State:
    """The log has the next records that the client can see, at the offsets from `first` to `last`.

    Source: docs/kafka-clients.md#missing.
    """
    assume(s.opened and s.end <= first and first <= last, because="a log is read in order")
    require(not s.reads or s.position == s.end, "reader-receives-every-committed-record",
        because="a reader receives every committed record before one behind it",
        otherwise="a record is lost to its consumer, who never asks for it again")
    return replace(s, first=first, end=Number(last + 1), position=first)


def acknowledge(s: State, offset: Number) -> State:
    """A producer was answered that its record lies at `offset`.

    Source: docs/kafka-clients.md#acknowledged.
    """
    require(s.first <= offset and offset < s.end, "record-that-was-acknowledged-is-in-the-log",
        because="a record that was acknowledged is in the log, at the offset of the answer",
        otherwise="its producer believes that it is safe, and no consumer receives it")
    return s


def receive(s: State, first: Number, last: Number) -> State:
    """A reader received the records from `first` to `last`, which follow one another.

    Source: docs/kafka-clients.md#twice, #missing.
    """
    assume(s.opened and s.reads and first <= last, because="a reader receives records")
    require(s.position <= first, "reader-receives-a-record-once",
        because="a reader whose position was not set back receives a record once",
        otherwise="its consumer does again what is done, though nothing failed")
    require(s.first <= first and last < s.end, "record-that-is-received-is-in-the-log",
        because="a record that is received is in the log",
        otherwise="a consumer acts on what no other consumer will ever receive")
    require(first <= s.position, "reader-receives-every-committed-record",
        because="a reader receives every committed record before one behind it",
        otherwise="a record is lost to its consumer, who never asks for it again")
    return replace(s, position=Number(last + 1))


def stop(s: State, at: Number) -> State:
    """The reader's position is `at`: it has all that it can see below.

    Source: docs/kafka-clients.md#missing.
    """
    assume(s.opened and s.reads, because="a reader has a position")
    require(at <= s.position or s.position == s.end, "reader-receives-every-committed-record",
        because="a reader receives every committed record before one behind it",
        otherwise="a record is lost to its consumer, who never asks for it again")
    return s


def a_reader_is_within_what_was_read(s: State) -> bool:
    """Otherwise it received what the log does not have."""
    return 0 <= s.first and s.first <= s.position and s.position <= s.end


def nothing_is_known_before_the_client_is(s: State) -> bool:
    """Otherwise a trace is judged by what it does not say."""
    return s.opened or s.end == 0


def a_reader_receives_every_record_once(before: State, after: State) -> bool:
    """Otherwise a consumer does again what is done, or never receives a record."""
    behind = after.position == after.first and implies(before.reads, before.position == before.end)
    moved = before.first == after.first and before.position <= after.position and before.end == after.end
    return implies(before.opened, moved or (before.end <= after.first and behind))


INITIAL = State()
ACTIONS = (open, show, acknowledge, receive, stop)
INVARIANTS = (a_reader_is_within_what_was_read, nothing_is_known_before_the_client_is)
STEP_PROPERTIES = (a_reader_receives_every_record_once,)
