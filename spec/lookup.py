"""Lookup of a half in the log: the answer to a decision about it, as if there were no cache.

A cache may change when a half is found: before it can be read from disk. It never changes what is true: what the half
is, that a half which can be read is found, and that only what is not in the log is unknown. `half_cache.py` refines
this. Source: docs/proposals.md#half-cache; docs/rocketmq-transactions.md#end-lookup.
"""

from dataclasses import dataclass
from enum import IntEnum

from gapless.spec.language import Map, Number, assume, implies, replace, require


class LookupAnswer(IntEnum):
    """The answer to a decision about a half."""

    NONE = 0
    FOUND = 1
    NOT_YET = 2
    UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class State:
    """The halves as far as they are kept, readable and written, and what was answered last."""

    lives: int = 0  # how often the broker started with these halves; 0 until they are found
    start: Number = Number(0)  # the halves before it have expired
    flushed: Number = Number(0)  # exclusive end of the halves that can be read from disk
    end: Number = Number(0)  # exclusive end of the halves that are written
    answers: int = 0  # decisions that were answered
    answer: int = LookupAnswer.NONE  # the last answer
    messages: Map[Number, int] = Map(0)  # of half n: which message it is; 0 if it was there before


def open(s: State, start: Number, number: Number) -> State:  # noqa: A001 - the step's name in every trace.
    """Halves are found: those from `start` to `number` are on disk, and those before have expired.

    Source: docs/rocketmq-transactions.md#end-lookup.
    """
    require(s.lives == 0 and s.end == 0, "halves-are-new",
        because="the halves are new", otherwise="two logs are taken for one")
    require(0 <= start and start <= number, "numbers-begin-at-0",
        because="numbers begin at 0", otherwise="a half can never be asked for")
    return replace(s, lives=1, start=start, flushed=number, end=number)


def append(s: State, number: Number, message: int) -> State:
    """A half is written to the log; it cannot be read from there yet.

    Source: docs/proposals.md#half-cache-early.
    """
    require(number == s.end, "numbers-of-halves-follow-one-another",
        because="the numbers of halves follow one another", otherwise="a half is lost, or two share a number")
    return replace(s, end=Number(number + 1), messages=s.messages.set(number, message))


def find(s: State, number: Number, message: int) -> State:
    """A decision finds its half, early or late, and is given `message`.

    Source: docs/proposals.md#half-cache-read.
    """
    require(s.start <= number and number < s.end, "half-that-is-found-is-in-the-log",
        because="the half that is found is in the log",
        otherwise="a message is committed that a crash took away, or that was never sent")
    require(message == s.messages[number], "half-that-is-given-is-the-one-that-was-written",
        because="the half that is given is the one that was written",
        otherwise="consumers receive another message than the one that was committed")
    return replace(s, answers=s.answers + 1, answer=LookupAnswer.FOUND)


def wait(s: State, number: Number) -> State:
    """The answer to a decision is to ask again: its half is written, and cannot be read from disk yet.

    Source: docs/proposals.md#half-cache-early; docs/design.md#specs.
    """
    require(s.flushed <= number, "half-that-can-be-read-is-found",
        because="a half that can be read is found", otherwise="a commit fails though its half is there to be read")
    require(number < s.end, "what-is-not-readable-yet-is-written",
        because="what is not readable yet is written",
        otherwise="a producer asks for ever for a half that does not exist")
    return replace(s, answers=s.answers + 1, answer=LookupAnswer.NOT_YET)


def deny(s: State, number: Number) -> State:
    """The answer to a decision is that there is no such half.

    Source: docs/rocketmq-transactions.md#end-lookup; docs/design.md#specs.
    """
    require(number < s.start or s.end <= number, "only-a-half-that-is-not-in-the-log-is-unknown",
        because="only a half that is not in the log is unknown",
        otherwise="a commit is turned away for good though its half is in the log, and the message is lost")
    return replace(s, answers=s.answers + 1, answer=LookupAnswer.UNKNOWN)


def flush(s: State, to: Number) -> State:
    """The halves before `to` can be read from disk."""
    require(s.flushed <= to, "readable-end-moves-on",
        because="the readable end moves on", otherwise="a half that could be read is out of reach")
    require(to <= s.end, "halves-are-written",
        because="the halves are written", otherwise="halves that do not exist count as readable")
    return replace(s, flushed=to)


def restart(s: State, kept: Number) -> State:
    """The broker starts again; the halves before `kept` have survived, on disk."""
    assume(s.flushed <= kept, because="a disk keeps what was flushed")
    assume(kept <= s.end, because="a disk invents nothing")
    return replace(s, lives=s.lives + 1, flushed=kept, end=kept, messages=s.messages.forget_from(kept))


def ends_are_ordered(s: State) -> bool:
    """Otherwise halves count as readable that were never written."""
    return 0 <= s.lives and 0 <= s.start and s.start <= s.flushed and s.flushed <= s.end


def only_halves_of_the_log_are_messages(s: State, number: Number) -> bool:
    """Otherwise a message is committed that a crash took away."""
    return implies(s.end <= number, s.messages[number] == 0)


def who_asks_is_given_one_answer(before: State, after: State) -> bool:
    """Otherwise a caller waits for an answer, or is given another one later."""
    same = after.answers == before.answers and after.answer == before.answer
    return same or (after.answers == before.answers + 1 and after.answer != LookupAnswer.NONE)


def a_half_that_is_kept_stays_what_it_is(before: State, after: State, number: Number) -> bool:
    """Otherwise consumers receive another message than the one that was committed."""
    return implies(number < before.end and number < after.end, after.messages[number] == before.messages[number])


def nothing_flushed_is_lost(before: State, after: State) -> bool:
    """Otherwise a disk forgot what it had stored."""
    return implies(before.lives > 0, before.flushed <= after.flushed and before.start == after.start)


def only_a_crash_takes_halves_away(before: State, after: State) -> bool:
    """Otherwise a half that was there is unknown, and its message is lost."""
    return implies(before.lives == after.lives, before.end <= after.end)


# What can be done, from whatever state.


INITIAL = State()
ACTIONS = (open, append, find, wait, deny, flush, restart)
INVARIANTS = (ends_are_ordered, only_halves_of_the_log_are_messages)
STEP_PROPERTIES = (
    who_asks_is_given_one_answer,
    a_half_that_is_kept_stays_what_it_is,
    nothing_flushed_is_lost,
    only_a_crash_takes_halves_away,
)
