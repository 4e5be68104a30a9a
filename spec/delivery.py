"""One message, by its key, and the consumers that were handed it.

No consumer can be handed a message that is not in the log, nor a half that was not committed. A store shows the records
of a message, and what clients trace shows who was handed it. Source: docs/rocketmq-traces.md#deliveries.
"""

from dataclasses import dataclass

from gapless.spec.language import Position, assume, implies, replace, require


@dataclass(frozen=True, slots=True)
class State:
    """The records of the message in the log, and the number of its deliveries."""

    records: int = 0  # of this message in the log: halves, finals, copies that are delivered again
    seen: int = 0  # of these, such as consumers can read: all but halves
    handed: int = 0  # deliveries to consumers


def open(s: State, start: Position) -> State:  # noqa: A001 - the step's name in every trace.
    """The message is looked for in a log that begins at `start`.

    Source: docs/rocketmq-traces.md#deliveries.
    """
    assume(start == 0, because="nothing has expired, and no other broker has messages of these clients")
    return s


def append(s: State, marked: bool) -> State:
    """A record of the message is in the log; `marked` says that it is a half, which no consumer can read.

    Source: docs/rocketmq-transactions.md#prepare.
    """
    return replace(s, records=s.records + 1, seen=s.seen if marked else s.seen + 1)


def hand(s: State) -> State:
    """A consumer was handed the message.

    Source: docs/rocketmq-traces.md#deliveries; docs/rocketmq-transactions.md#tx13.
    """
    require(0 < s.records, "message-that-was-handed-out-is-in-the-log",
        because="the message that was handed out is in the log",
        otherwise="a consumer acted on a message that is lost, and no other consumer will ever see it")
    require(s.records == 0 or 0 < s.seen, "half-that-was-handed-out-was-committed",
        because="the half that was handed out was committed",
        otherwise="a consumer acted on a message that its producer may take back")
    return replace(s, handed=s.handed + 1)


def what_was_handed_out_could_be_read(s: State) -> bool:
    """Otherwise a consumer acted on what is not there, or on what is not decided."""
    return implies(0 < s.handed, 0 < s.seen)


def what_can_be_read_is_in_the_log(s: State) -> bool:
    """Otherwise consumers are promised a message that cannot be found."""
    return 0 <= s.handed and 0 <= s.seen and s.seen <= s.records


def what_was_handed_out_stays_so(before: State, after: State) -> bool:
    """Otherwise a message that a consumer has acted on is gone."""
    return before.records <= after.records and before.seen <= after.seen and before.handed <= after.handed


INITIAL = State()
ACTIONS = (open, append, hand)
INVARIANTS = (what_was_handed_out_could_be_read, what_can_be_read_is_in_the_log)
STEP_PROPERTIES = (what_was_handed_out_stays_so,)
