"""One queue, built by many workers at once: entries are written in any order, and become visible in one.

The proposal serializes access to a queue and allows limited parallelism later. Which of the two a broker does is a
constant of its world, `overlap`, and what follows holds for both. Source: docs/proposals.md#parallel-dispatch,
docs/rocketmq.md#parallel-dispatch.
"""

from dataclasses import dataclass

from gapless.spec.language import Map, Number, all_between, implies, replace, require

NO_NUMBER = Number(-1)  # the number that a worker is at, where no worker is at the queue


@dataclass(frozen=True, slots=True)
class State:
    """The scanned, visible and safe ends of the queue, and its workers' progress with each number."""

    lives: int = 0  # how often the broker started with this queue; 0 until the queue is found
    overlap: int = 0  # 1 where several workers may be at the queue at once, 0 where one may
    start: Number = Number(0)  # the numbers before it were done with when the queue was found
    flushed: Number = Number(0)  # exclusive end of the entries that survive a crash
    committed: Number = Number(0)  # exclusive end of the entries that consumers see: the commit position
    scanned: Number = Number(0)  # exclusive end of the numbers that were given
    at: Number = NO_NUMBER  # the number of the worker that came to the queue last, until an entry is written
    taken: Map[Number, int] = Map(0)  # of number n: how often a worker took it, in this life
    bits: Map[Number, int] = Map(0)  # of number n: 1 once its entry is written (the bitmap)
    written: Map[Number, int] = Map(0)  # of number n: how often its entry was written, in this life


def open(s: State, number: Number, overlap: int) -> State:  # noqa: A001 - the step's name in every trace.
    """A queue is found whose entries before `number` are visible and safe; `overlap` says who may be at it.

    Source: docs/proposals.md#parallel-dispatch-serialized.
    """
    require(s.lives == 0 and s.scanned == 0, "queue-is-new",
        because="the queue is new", otherwise="two queues are taken for one")
    require(0 <= number, "numbers-begin-at-0",
        because="numbers begin at 0", otherwise="a message can never be asked for")
    return replace(s, lives=1, overlap=overlap, start=number, flushed=number, committed=number, scanned=number)


def scan(s: State, number: Number) -> State:
    """A message of this queue is met in the log, and gets its number.

    Source: docs/proposals.md#parallel-dispatch-numbers.
    """
    require(number == s.scanned, "numbers-are-given-in-order-each-once",
        because="numbers are given in order, each once",
        otherwise="a message is in the log and no consumer ever receives it, or two messages share an entry")
    return replace(s, scanned=Number(number + 1))


def take(s: State, number: Number) -> State:
    """A worker comes to the queue to write entry `number`.

    Source: docs/proposals.md#parallel-dispatch-write, #parallel-dispatch-serialized.
    """
    require(s.committed <= number and number < s.scanned, "number-was-given-and-is-not-visible-yet",
        because="the number was given, and is not visible yet",
        otherwise="a worker builds an entry of nothing, or one that consumers have read")
    require(s.taken[number] == 0, "no-worker-has-the-number",
        because="no worker has the number", otherwise="two workers write one entry")
    require(s.overlap > 0 or s.at == NO_NUMBER, "no-other-worker-is-at-the-queue-or-workers-may-overlap",
        because="no other worker is at the queue, or workers may overlap",
        otherwise="two workers are at a queue that was built for one")
    return replace(s, at=number, taken=s.taken.set(number, s.taken[number] + 1))


def write(s: State, number: Number) -> State:
    """The entry is in the queue, where no consumer looks yet, and its bit is set.

    Source: docs/proposals.md#parallel-dispatch-write.
    """
    require(s.taken[number] == 1, "worker-has-the-number",
        because="a worker has the number", otherwise="an entry is in the queue that no worker was asked to write")
    require(s.bits[number] == 0, "entry-is-not-written-yet",
        because="the entry is not written yet", otherwise="an entry changes, perhaps while a consumer reads it")
    return replace(s, at=NO_NUMBER, bits=s.bits.set(number, 1), written=s.written.set(number, s.written[number] + 1))


def commit(s: State, to: Number) -> State:
    """Group commit: consumers see every entry before `to`, the largest number that no gap stands before.

    With entries 1, 2 and 5 written it is 3, exclusive; once 3 and 4 are, it is 6.

    Source: docs/proposals.md#parallel-dispatch-example.
    """
    require(s.committed <= to, "commit-position-moves-on",
        because="the commit position moves on",
        otherwise="an entry counts as gone that consumers have read")
    require(all_between(s.committed, to, lambda n: s.bits[Number(n)] == 1),
        "every-entry-before-the-commit-position-is-written",
        because="every entry before the commit position is written",
        otherwise="consumers read an entry that is not there, skip its message, and never come back")
    require(s.bits[to] == 0, "commit-position-takes-all-it-can",
        because="the commit position takes all it can",
        otherwise="a message is written and waits for the next one before consumers receive it")
    return replace(s, committed=to)


def flush(s: State, to: Number) -> State:
    """The entries before `to` are on disk."""
    require(s.flushed <= to, "flushed-position-moves-on",
        because="the flushed position moves on", otherwise="safe entries count as unsafe")
    require(to <= s.committed, "entries-are-visible",
        because="the entries are visible", otherwise="entries that do not exist count as safe")
    return replace(s, flushed=to)


def crash(s: State, kept: Number) -> State:
    """The broker starts again: the entries before `kept` have survived, and what lies beyond is scanned again.

    Source: docs/proposals.md#parallel-dispatch; docs/rocketmq.md#recovery (ConsumeQueue.recover).
    """
    require(s.flushed <= kept, "what-was-flushed-survives",
        because="what was flushed survives", otherwise="a disk forgot what it had stored")
    require(all_between(s.committed, kept, lambda n: s.bits[Number(n)] == 1),
        "no-gap-stands-before-the-end-of-what-survived",
        because="no gap stands before the end of what survived",
        otherwise="consumers read an entry that is not there, skip its message, and never come back")
    return replace(
        s,
        lives=s.lives + 1,
        flushed=kept,
        committed=kept,
        scanned=kept,
        at=NO_NUMBER,
        taken=s.taken.forget_from(kept),
        bits=s.bits.forget_from(kept),
        written=s.written.forget_from(kept),
    )


def positions_are_ordered(s: State) -> bool:
    """Otherwise entries count as visible that were never written, or as safe that a crash takes away."""
    return 0 <= s.start and s.start <= s.flushed and s.flushed <= s.committed and s.committed <= s.scanned


def lives_are_counted(s: State) -> bool:
    """Otherwise a queue is found twice, and what was built of it is lost."""
    return 0 <= s.lives


def the_commit_position_never_passes_a_gap(s: State, number: Number) -> bool:
    """Otherwise a consumer skips a message that is in the log, and never comes back."""
    return implies(s.start <= number and number < s.committed, s.written[number] == 1)


def every_entry_is_written_once(s: State, number: Number) -> bool:
    """Otherwise an entry changes under its readers."""
    return 0 <= s.written[number] and s.written[number] <= 1


def the_bitmap_tells_what_is_written(s: State, number: Number) -> bool:
    """Otherwise the commit position waits for an entry that is there, or passes one that is not."""
    return s.bits[number] == s.written[number]


def what_is_written_was_taken_once(s: State, number: Number) -> bool:
    """Otherwise two workers write one entry, or one writes an entry that is not due."""
    return 0 <= s.taken[number] and s.taken[number] <= 1 and s.written[number] <= s.taken[number]


def what_is_taken_was_given(s: State, number: Number) -> bool:
    """Otherwise an entry stands for no message, and the message that comes later finds its place taken."""
    return implies(s.taken[number] > 0, s.start <= number and number < s.scanned)


def one_worker_is_at_the_queue_unless_they_may_overlap(s: State, number: Number) -> bool:
    """Otherwise two workers are at a queue that was built for one."""
    return implies(s.overlap <= 0 and s.taken[number] > s.written[number], s.at == number)


def who_is_at_the_queue_has_an_entry_to_write(s: State) -> bool:
    """Otherwise the others wait for a worker that is gone, and the queue stands still."""
    return implies(s.at != NO_NUMBER, s.taken[s.at] == 1 and s.written[s.at] == 0)


def nothing_flushed_is_lost(before: State, after: State) -> bool:
    """Otherwise a disk forgot what it had stored."""
    return implies(before.lives > 0, before.flushed <= after.flushed)


def what_is_visible_stays_visible_in_one_life(before: State, after: State) -> bool:
    """Otherwise an entry counts as gone that consumers have read."""
    return implies(before.lives == after.lives, before.committed <= after.committed)


def a_commit_takes_all_it_can(before: State, after: State) -> bool:
    """Otherwise a message is written, nothing is missing before it, and its consumers wait."""
    return implies(
        before.lives == after.lives and before.committed < after.committed, after.written[after.committed] == 0
    )


def numbers_are_given_one_by_one(before: State, after: State) -> bool:
    """Otherwise a message of the log has no number, and no consumer ever receives it."""
    one_more = after.scanned == before.scanned + 1
    return implies(before.lives == after.lives, after.scanned == before.scanned or one_more)


def a_new_life_begins_where_the_safe_entries_end(before: State, after: State) -> bool:
    """Otherwise what a crash took away is not scanned again."""
    return implies(before.lives < after.lives, after.flushed == after.committed and after.committed == after.scanned)


def what_the_queue_was_built_for_never_changes(before: State, after: State) -> bool:
    """Otherwise it is unknown if two workers at one queue are too many."""
    return implies(before.lives > 0, after.overlap == before.overlap and after.start == before.start)


def every_message_is_visible(s: State) -> bool:
    """Otherwise a message is in the log and no consumer ever receives it."""
    return s.committed == s.scanned


def every_entry_is_on_disk(s: State) -> bool:
    """Otherwise a start that trusts the queues finds entries missing."""
    return s.flushed == s.committed


# What can be done, from whatever state.


INITIAL = State()
ACTIONS = (open, scan, take, write, commit, flush, crash)
INVARIANTS = (
    positions_are_ordered,
    lives_are_counted,
    the_commit_position_never_passes_a_gap,
    every_entry_is_written_once,
    the_bitmap_tells_what_is_written,
    what_is_written_was_taken_once,
    what_is_taken_was_given,
    one_worker_is_at_the_queue_unless_they_may_overlap,
    who_is_at_the_queue_has_an_entry_to_write,
)
STEP_PROPERTIES = (
    nothing_flushed_is_lost,
    what_is_visible_stays_visible_in_one_life,
    a_commit_takes_all_it_can,
    numbers_are_given_one_by_one,
    a_new_life_begins_where_the_safe_entries_end,
    what_the_queue_was_built_for_never_changes,
)
AT_REST = (every_message_is_visible, every_entry_is_on_disk)
