"""The messages due at one time of the timer wheel: a chain of units in the timer log, and its slot.

A message that is to be delivered later waits in a topic of the broker's own. For each, a unit is appended to the timer
log; it names the message, and the unit of the same time before it. The wheel has a slot for every time, which names the
newest unit. When the time comes, the broker goes from there back through the chain and delivers what it finds.
Source: docs/rocketmq.md#timers.
"""

from dataclasses import dataclass

from gapless.spec.language import Number, Position, implies, replace, require

NOWHERE = Position(-1)  # what a unit names that is the first of its time, and a slot that has none


@dataclass(frozen=True, slots=True)
class State:
    """The chain of one time, and how far it was delivered."""

    start: Position = Position(0)  # of the timer log: what lay below has expired
    units: int = 0  # in the chain
    count: int = 0  # what the wheel counts: messages, less those that cancel one
    first: Position = NOWHERE  # in the timer log: the oldest unit of the chain
    last: Position = NOWHERE  # and the newest
    delivered: int = 0  # units whose message was handed on when its time had come


def open(s: State, start: Position) -> State:  # noqa: A001 - the step's name in every trace.
    """The timer log is found; what lay below `start` has expired."""
    require(s.units == 0 and s.start == 0, "chain-is-new", because="the chain is new",
        otherwise="two times are taken for one")
    require(0 <= start, "timer-log-begins-at-0", because="the timer log begins at 0",
        otherwise="a unit lies where no reader looks")
    return replace(s, start=start)


def schedule(
    s: State, position: Position, before: Position, time: int, due: int, rolled: bool, cancels: bool,
    whole: bool, waits: bool, marked: bool, again: bool,
) -> State:
    """A unit of this time lies at `position` of the timer log, and names `before` as the unit before it.

    `time`: of the unit, and `due` of its message, in ms · `rolled`: that time is too far away for the wheel, and the
    message is written again when the unit's comes · `cancels`: it cancels another · `whole`: the unit has its size and
    known marks · `waits`: a message that waits lies where it says · `marked`: what it says of cancelling, the message
    says too · `again`: another unit names the same message.

    Source: docs/rocketmq.md#timers (TimerMessageStore.doEnqueue).
    """
    require(whole, "unit-is-whole",
        because="the unit is whole", otherwise="the next start cuts the timer log off there, and what follows is lost")
    require(s.last < position and s.start <= position, "unit-lies-behind-those-of-its-time",
        because="a unit lies behind those of its time", otherwise="who follows the chain goes round for ever")
    require(waits, "unit-names-a-message-that-waits",
        because="the unit names a message that waits", otherwise="a message is never delivered, or another one is")
    require(not again, "message-has-one-unit",
        because="a message has one unit", otherwise="it is delivered twice")
    require(rolled or time == due, "unit-has-the-time-of-its-message",
        because="the unit has the time of its message", otherwise="the message is delivered too early, or too late")
    require(implies(rolled, time < due), "message-is-rolled-to-an-earlier-time",
        because="a message that is rolled comes round before its time", otherwise="it is delivered too late")
    require(marked, "unit-cancels-if-its-message-does",
        because="the unit cancels if its message does",
        otherwise="what was cancelled is delivered, or what was not is lost")
    require(before == s.last or (s.units == 0 and NOWHERE <= before and before < s.start),
        "unit-names-the-one-before-it",
        because="the unit names the one before it", otherwise="messages of that time are never delivered")
    return replace(
        s,
        units=s.units + 1,
        count=s.count + (-1 if cancels else 1),
        first=position if s.units == 0 else s.first,
        last=position,
    )


def turn(s: State, first: Position, last: Position, count: int, counted: bool) -> State:
    """The slot of this time names its `first` and `last` unit, and says how many messages there are.

    `counted`: the broker was not started again since; a start finds units that it does not count, and a first one that
    others came before.

    Source: docs/rocketmq.md#timers (TimerWheel).
    """
    require(last == s.last, "slot-names-the-newest-unit",
        because="the slot names the newest unit of its time", otherwise="messages of that time are never delivered")
    require(implies(counted, first == s.first), "slot-names-the-oldest-unit",
        because="the slot names the oldest unit of its time", otherwise="a start that mends the wheel begins too late")
    require(implies(counted, count == s.count), "slot-counts-its-messages",
        because="the slot counts its messages", otherwise="messages are turned away, or too many are taken")
    return s


def seek(s: State, number: Number, there: bool) -> State:
    """Message `number` waits, and the broker is done with writing it into the wheel; `there` says that a unit names it.

    Source: docs/rocketmq.md#timers (TimerMessageStore.commitQueueOffset).
    """
    require(0 <= number, "message-has-a-number", because="a message has a number", otherwise="it is never found")
    require(there, "message-that-waits-has-its-unit",
        because="a message that waits has its unit", otherwise="it is never delivered")
    return s


def deliver(s: State, copies: int, cancelled: bool) -> State:
    """The time has come and is over: a unit's message is in the topic that it was sent to, so many times.

    Source: docs/rocketmq.md#timers (TimerMessageStore.dequeue).
    """
    require(s.delivered < s.units, "unit-is-delivered-once",
        because="a unit is delivered once", otherwise="consumers receive messages that were never sent")
    require(cancelled or 0 < copies, "message-is-delivered-when-its-time-has-come",
        because="a message is delivered when its time has come", otherwise="no consumer ever receives it")
    require(copies <= 1, "message-is-delivered-once",
        because="a message is delivered once", otherwise="consumers receive it twice")
    return replace(s, delivered=s.delivered + 1)


def what_is_delivered_was_scheduled(s: State) -> bool:
    """Otherwise consumers receive messages that were never sent."""
    return 0 <= s.delivered and s.delivered <= s.units


def a_chain_has_two_ends(s: State) -> bool:
    """Otherwise messages of that time are never delivered."""
    empty = s.first == NOWHERE and s.last == NOWHERE
    return 0 <= s.start and (empty if s.units == 0 else s.start <= s.first and s.first <= s.last)


def no_more_is_counted_than_there_is(s: State) -> bool:
    """Otherwise messages are turned away, for the wheel seems full."""
    return s.count <= s.units and 0 <= s.count + s.units


def the_chain_goes_on_forward(before: State, after: State) -> bool:
    """Otherwise who follows the chain goes round for ever."""
    more = before.units < after.units
    return before.last <= after.last and implies(more, before.last < after.last and after.units == before.units + 1)


def what_is_in_the_chain_stays(before: State, after: State) -> bool:
    """Otherwise a message is never delivered."""
    return before.units <= after.units and implies(before.units > 0, before.first == after.first)


def one_is_delivered_after_the_other(before: State, after: State) -> bool:
    """Otherwise a delivery counts for several messages."""
    return after.delivered == before.delivered or after.delivered == before.delivered + 1


def the_log_keeps_its_beginning(before: State, after: State) -> bool:
    """Otherwise a unit of the log counts as expired."""
    return implies(before.units > 0 or before.start > 0, before.start == after.start)


# What can be done, from whatever state.


INITIAL = State()
ACTIONS = (open, schedule, turn, seek, deliver)
INVARIANTS = (what_is_delivered_was_scheduled, a_chain_has_two_ends, no_more_is_counted_than_there_is)
STEP_PROPERTIES = (
    the_chain_goes_on_forward, what_is_in_the_chain_stays, one_is_delivered_after_the_other,
    the_log_keeps_its_beginning,
)
