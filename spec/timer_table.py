"""One timer of a table: the messages with one key that wait for one time, their row, and what was delivered.

A broker that keeps timers in RocksDB writes a row for a message that waits, and deletes it for one that cancels it.
When the time comes, it delivers what the row names, and nothing else; the row itself stays for a while.
Source: docs/rocketmq.md#timers-rocksdb.
"""

from dataclasses import dataclass

from gapless.spec.language import Number, Position, implies, replace, require

NOWHERE = Position(-1)  # of a message that is not there


@dataclass(frozen=True, slots=True)
class State:
    """The messages, and what the table has of them."""

    last: Position = NOWHERE  # where the newest of the messages lies in the log
    messages: int = 0  # that wait, with this key and this time
    cancelled: int = 0  # messages that cancel them
    rows: int = 0  # in the table
    delivered: int = 0  # times that it was seen to be delivered


def wait(s: State, position: Position) -> State:
    """A message that waits lies at `position`, and the table knows of it."""
    require(0 <= position and s.last < position, "message-of-a-timer-lies-behind-those-before-it",
        because="a message lies behind those before it", otherwise="one message is taken for two")
    return replace(s, last=position, messages=s.messages + 1)


def cancel(s: State) -> State:
    """A message cancels those with this key and this time, and the table knows of it in time."""
    return replace(s, cancelled=s.cancelled + 1)


def find_row(s: State, named: bool, whole: bool, over: bool) -> State:
    """The table has a row for this key and this time.

    `named`: one of the messages lies where it says · `whole`: it has that message's size · `over`: the time is, and so
    the row is not looked at any more.

    Source: docs/rocketmq.md#timers-rocksdb (TimerRocksDBRecord).
    """
    require(0 < s.messages and named, "row-of-a-timer-names-a-message-that-waits",
        because="the row names a message that waits for this time, with this key",
        otherwise="a message is delivered too early, too late, or never, or another one is")
    require(whole, "row-of-a-timer-has-the-size-of-its-message",
        because="the row has the size of its message",
        otherwise="the broker cannot read the message, and passes it over")
    require(s.rows == 0, "timer-has-one-row",
        because="a timer has one row", otherwise="its message is delivered twice")
    require(over or s.cancelled == 0, "timer-that-is-cancelled-has-no-row",
        because="a timer that is cancelled has no row", otherwise="consumers receive what was called back")
    return replace(s, rows=s.rows + 1)


def seek(s: State, handed_on: bool) -> State:
    """The time is to come, and the table knows of the messages; `handed_on`: they were delivered all the same.

    Source: docs/rocketmq.md#timers-rocksdb (Timeline).
    """
    require(0 < s.rows or 0 < s.cancelled or s.messages == 0 or handed_on, "timer-that-waits-has-its-row",
        because="a timer that waits has its row", otherwise="its message is never delivered")
    return s


def deliver(s: State, copies: int) -> State:
    """The time is over: the message lies so many times in the topic that it was sent to.

    Source: docs/rocketmq.md#timers-rocksdb (TimerMessageReputService).
    """
    require(0 < copies or 0 < s.cancelled or s.messages == 0, "timer-is-delivered-when-its-time-has-come",
        because="a timer is delivered when its time has come", otherwise="no consumer ever receives the message")
    require(copies <= 1, "timer-is-delivered-once",
        because="a timer is delivered once", otherwise="consumers receive the message twice")
    return replace(s, delivered=s.delivered + copies)


def read_to(s: State, number: Number, end: Number) -> State:
    """The table knows of messages up to `number`, and those that wait end at `end`.

    Source: docs/rocketmq.md#timers-rocksdb (sys_topic_scan_offset_checkpoint).
    """
    require(number <= end, "timers-are-read-up-to-those-that-wait",
        because="the table knows of no more messages than there are",
        otherwise="messages that come are never put into it")
    return s


def what_has_a_row_waits(s: State) -> bool:
    """Otherwise a message that was never sent is delivered."""
    return implies(0 < s.rows, 0 < s.messages) and 0 <= s.messages and 0 <= s.cancelled


def a_timer_has_one_row(s: State) -> bool:
    """Otherwise its message is delivered twice."""
    return 0 <= s.rows and s.rows <= 1


def messages_come_one_behind_the_other(before: State, after: State) -> bool:
    """Otherwise one message is taken for two."""
    more = before.messages < after.messages
    return before.last <= after.last and implies(more, before.last < after.last)


def one_is_delivered_at_a_time(before: State, after: State) -> bool:
    """Otherwise consumers receive it twice."""
    return after.delivered <= before.delivered + 1


# What can be done, from whatever state.


INITIAL = State()
ACTIONS = (wait, cancel, find_row, seek, deliver, read_to)
INVARIANTS = (what_has_a_row_waits, a_timer_has_one_row)
STEP_PROPERTIES = (messages_come_one_behind_the_other, one_is_delivered_at_a_time)
