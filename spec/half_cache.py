"""The half-message cache: a decision that comes before its half is readable from disk finds it all the same.

A half goes into the cache once it is written and before its producer hears of it, at the end of a line; the eldest
leaves when the cache is full, a hit takes its half out, and a miss falls back to disk. What is answered is what
`lookup.py` allows, which knows no cache. Source: docs/proposals.md#half-cache;
docs/rocketmq-transactions.md#cache (proposed, not landed).
"""

from dataclasses import dataclass
from enum import IntEnum

from gapless.spec.language import Map, Number, all_between, assume, implies, replace, require

CAPACITY = 8000  # halves in a cache by default: docs/proposals.md#half-cache-capacity
NOWHERE = Number(-1)  # the place of a half that is not in the cache
NO_NUMBER = Number(-1)  # who stands at a place of the line that is empty


class Answer(IntEnum):
    """The answer to a decision about a half."""

    NONE = 0
    FROM_CACHE = 1
    FROM_DISK = 2
    NOT_YET = 3
    UNKNOWN = 4


@dataclass(frozen=True, slots=True)
class State:
    """The halves as far as they are written and readable, those in the cache, and what was answered last."""

    lives: int = 0  # how often the broker started with this cache; 0 until it is found
    capacity: int = 0  # how many halves the cache holds at most
    start: Number = Number(0)  # the halves before it have expired
    flushed: Number = Number(0)  # exclusive end of the halves that can be read from disk
    end: Number = Number(0)  # exclusive end of the halves that are written
    size: int = 0  # halves in the cache
    front: Number = Number(0)  # the first place of the line at which a half may stand
    back: Number = Number(0)  # exclusive end of the line: the next half to come stands here
    about: Number = NO_NUMBER  # the half that the last step of the cache was about
    answers: int = 0  # decisions that were answered
    answer: int = Answer.NONE  # the last answer
    messages: Map[Number, int] = Map(0)  # of half n: which message it is in the log; 0 if it was there before
    copies: Map[Number, int] = Map(0)  # of half n: which message it is in the cache
    places: Map[Number, Number] = Map(NOWHERE)  # of half n: where it stands in the line
    line: Map[Number, Number] = Map(NO_NUMBER)  # of place k: the half that stands there
    puts: Map[Number, int] = Map(0)  # of half n: how often it was put in, in this life
    left: Map[Number, int] = Map(0)  # of half n: how often it left, by a hit or by age, in this life


def open(s: State, start: Number, number: Number, capacity: int) -> State:  # noqa: A001 - its name in every trace.
    """An empty cache for `capacity` halves is found; those from `start` to `number` are on disk, others have expired.

    Source: docs/proposals.md#half-cache-capacity.
    """
    require(s.lives == 0 and s.end == 0, "cache-is-new",
        because="the cache is new", otherwise="two caches are taken for one")
    require(0 <= start and start <= number, "numbers-begin-at-0",
        because="numbers begin at 0", otherwise="a half can never be asked for")
    require(0 <= capacity, "cache-holds-no-less-than-nothing",
        because="a cache holds no less than nothing", otherwise="nothing ever fits, nor leaves")
    ends = replace(s, start=start, flushed=number, end=number, front=number, back=number)
    return replace(ends, lives=1, capacity=capacity, size=0)


def append(s: State, number: Number, message: int) -> State:
    """A half is written to the log; it cannot be read from there yet.

    Source: docs/proposals.md#half-cache-early.
    """
    require(number == s.end, "numbers-of-halves-follow-one-another",
        because="the numbers of halves follow one another", otherwise="a half is lost, or two share a number")
    return replace(s, end=Number(number + 1), messages=s.messages.set(number, message))


def put(s: State, number: Number, message: int) -> State:
    """The half is in the cache, at the end of the line, and is `message` there.

    Source: docs/proposals.md#half-cache-put.
    """
    require(s.start <= number and number < s.end, "half-is-written-before-it-is-put-into-the-cache",
        because="the half is written before it is put into the cache",
        otherwise="a message is committed that a crash takes away, or that was never in the log")
    require(message == s.messages[number], "half-in-the-cache-is-the-one-that-was-written",
        because="the half in the cache is the one that was written",
        otherwise="consumers receive another message than the one that was committed")
    require(s.puts[number] == 0, "half-was-not-in-the-cache-before",
        because="the half was not in the cache before",
        otherwise="a half that was decided comes back, and takes the room of one that was not")
    require(s.size < s.capacity, "cache-has-room",
        because="the cache has room", otherwise="the cache grows until the broker runs out of memory")
    return replace(
        s,
        size=s.size + 1,
        back=Number(s.back + 1),
        about=number,
        copies=s.copies.set(number, message),
        places=s.places.set(number, s.back),
        line=s.line.set(s.back, number),
        puts=s.puts.set(number, s.puts[number] + 1),
    )


def acknowledge(s: State, number: Number) -> State:
    """The broker reports to the producer that its half is written: from now on it may decide, early or late.

    Source: docs/proposals.md#half-cache-put, #half-cache-early, #phase-answer.
    """
    require(s.start <= number and number < s.end, "half-that-its-producer-is-told-of-is-written",
        because="the half that its producer is told of is written",
        otherwise="a local transaction is run for a half that does not exist")
    require(s.puts[number] == 1 or s.capacity == 0, "half-is-put-into-the-cache-before-its-producer-may-decide",
        because="the half is put into the cache before its producer may decide",
        otherwise="an early commit fails, which is what the cache is for")
    return s


def evict(s: State, number: Number) -> State:
    """The eldest half leaves the cache, to make room for one that comes.

    Source: docs/proposals.md#half-cache-capacity.
    """
    require(s.size == s.capacity, "cache-is-full",
        because="the cache is full", otherwise="a half is forgotten without need, and an early commit of it fails")
    require(s.places[number] != NOWHERE, "half-that-leaves-is-in-the-cache",
        because="the half that leaves is in the cache", otherwise="the cache believes that it has room, and grows")
    require(all_between(s.front, s.places[number], lambda place: s.line[Number(place)] == NO_NUMBER), "eldest-leaves",
        because="the eldest leaves", otherwise="a half is forgotten that came later than one that is kept")
    return replace(_without(s, number), front=Number(s.places[number] + 1))


def _without(s: State, number: Number) -> State:
    return replace(
        s,
        size=s.size - 1,
        about=number,
        copies=s.copies.set(number, 0),
        places=s.places.set(number, NOWHERE),
        line=s.line.set(s.places[number], NO_NUMBER),
        left=s.left.set(number, s.left[number] + 1),
    )


def hit(s: State, number: Number, message: int) -> State:
    """A decision finds its half in the cache, is given `message`, and takes the half out.

    Source: docs/proposals.md#half-cache-read.
    """
    require(s.places[number] != NOWHERE, "half-that-is-read-from-the-cache-is-in-it",
        because="the half that is read from the cache is in it",
        otherwise="consumers receive another message than the one that was committed")
    require(message == s.copies[number], "half-that-is-given-is-the-one-in-the-cache",
        because="the half that is given is the one in the cache",
        otherwise="consumers receive another message than the one that was committed")
    return _answered(_without(s, number), number, Answer.FROM_CACHE)


def _answered(s: State, number: Number, answer: int) -> State:
    return replace(s, about=number, answers=s.answers + 1, answer=answer)


def read(s: State, number: Number, message: int) -> State:
    """A decision misses the cache, finds its half on disk, and is given `message`.

    Source: docs/proposals.md#half-cache-read.
    """
    require(s.places[number] == NOWHERE, "cache-is-asked-first",
        because="the cache is asked first",
        otherwise="halves that were decided stay in the cache, and drive out those that were not")
    require(s.start <= number and number < s.flushed, "half-that-is-read-from-disk-is-there",
        because="the half that is read from disk is there", otherwise="consumers receive bytes that were never written")
    require(message == s.messages[number], "half-that-is-given-is-the-one-on-disk",
        because="the half that is given is the one on disk",
        otherwise="consumers receive another message than the one that was committed")
    return _answered(s, number, Answer.FROM_DISK)


def wait(s: State, number: Number) -> State:
    """A decision misses the cache, and its half cannot be read from disk yet: it is to be asked for again.

    Source: docs/proposals.md#half-cache-early; docs/design.md#specs.
    """
    require(s.places[number] == NOWHERE, "half-in-the-cache-is-found-before-it-is-flushed",
        because="a half in the cache is found before it is flushed",
        otherwise="an early commit fails, which is what the cache is for")
    require(s.flushed <= number, "miss-falls-back-to-disk",
        because="a miss falls back to disk", otherwise="a commit fails though its half is there to be read")
    require(number < s.end, "what-is-not-readable-yet-is-written",
        because="what is not readable yet is written",
        otherwise="a producer asks for ever for a half that does not exist")
    return _answered(s, number, Answer.NOT_YET)


def deny(s: State, number: Number) -> State:
    """The answer to a decision is that there is no such half.

    Source: docs/rocketmq-transactions.md#end-lookup, #cache; docs/design.md#specs.
    """
    require(number < s.start or s.end <= number, "only-a-half-that-is-not-in-the-log-is-unknown",
        because="only a half that is not in the log is unknown",
        otherwise="a commit is turned away for good though its half is in the log, and the message is lost")
    return _answered(s, number, Answer.UNKNOWN)


def flush(s: State, to: Number) -> State:
    """The halves before `to` can be read from disk."""
    require(s.flushed <= to, "readable-end-moves-on",
        because="the readable end moves on", otherwise="a half that could be read is out of reach")
    require(to <= s.end, "halves-are-written",
        because="the halves are written", otherwise="halves that do not exist count as readable")
    return replace(s, flushed=to)


def restart(s: State, kept: Number) -> State:
    """The broker starts again with an empty cache; the halves before `kept` have survived, on disk.

    Source: docs/proposals.md#half-cache-restart.
    """
    assume(s.flushed <= kept, because="a disk keeps what was flushed")
    assume(kept <= s.end, because="a disk invents nothing")
    kept_log = replace(s, flushed=kept, end=kept, messages=s.messages.forget_from(kept))
    empty = replace(kept_log, size=0, front=kept, back=kept, places=s.places.cleared(), line=s.line.cleared())
    forgotten = replace(empty, copies=s.copies.cleared(), puts=s.puts.cleared(), left=s.left.cleared())
    return replace(forgotten, lives=s.lives + 1)


def ends_are_ordered(s: State) -> bool:
    """Otherwise halves count as readable that were never written."""
    return 0 <= s.start and s.start <= s.flushed and s.flushed <= s.end and 0 <= s.front and s.front <= s.back


def lives_are_counted(s: State) -> bool:
    """Otherwise a cache is found twice, and what is in it is forgotten."""
    return 0 <= s.lives


def the_cache_never_outgrows_its_capacity(s: State) -> bool:
    """Otherwise undecided halves fill the broker's memory."""
    return 0 <= s.capacity and s.size <= s.capacity


def what_is_cached_is_written(s: State, number: Number) -> bool:
    """Otherwise a message is committed that was never in the log."""
    return implies(s.places[number] != NOWHERE, s.start <= number and number < s.end)


def a_copy_is_its_half(s: State, number: Number) -> bool:
    """Otherwise consumers receive another message than the one that was committed."""
    return s.copies[number] == (s.messages[number] if s.places[number] != NOWHERE else 0)


def only_halves_of_the_log_are_messages(s: State, number: Number) -> bool:
    """Otherwise a message is committed that a crash took away."""
    return implies(s.end <= number, s.messages[number] == 0)


def what_was_put_in_was_written(s: State, number: Number) -> bool:
    """Otherwise the half that is written later is taken for one that was in the cache before."""
    return implies(s.puts[number] > 0, s.start <= number and number < s.end)


def a_cached_half_stands_in_the_line(s: State, number: Number) -> bool:
    """Otherwise it never grows old, and stays for ever."""
    place = s.places[number]
    return implies(place != NOWHERE, s.front <= place and place < s.back and s.line[place] == number)


def who_stands_in_the_line_is_cached(s: State, place: Number) -> bool:
    """Otherwise the eldest is one that has left, and no room is made."""
    return implies(s.line[place] != NO_NUMBER, place != NOWHERE and s.places[s.line[place]] == place)


def only_halves_stand_in_the_line(s: State, place: Number) -> bool:
    """Otherwise the eldest is one that never came, and no room is made."""
    return NO_NUMBER <= s.line[place]


def a_half_is_found_unless_it_was_read_or_grew_too_old(s: State, number: Number) -> bool:
    """Otherwise an early commit fails, which is what the cache is for."""
    cached = 1 if s.places[number] != NOWHERE else 0
    return s.puts[number] == s.left[number] + cached


def a_half_is_put_in_once(s: State, number: Number) -> bool:
    """Otherwise a half that was decided is kept, and drives out one that was not."""
    return 0 <= s.left[number] and s.puts[number] <= 1


def size_counts_what_is_cached(before: State, after: State) -> bool:
    """Otherwise a cache that is full believes that it has room, or one that has room forgets halves.

    Only `about` may come or leave in a step (see below): so `size` is a count, though nothing here counts.
    """
    came = 1 if after.places[after.about] != NOWHERE else 0
    went = 1 if before.places[after.about] != NOWHERE else 0
    return implies(before.lives == after.lives, after.size == before.size + came - went)


def one_half_comes_or_leaves_at_a_time(before: State, after: State, number: Number) -> bool:
    """Otherwise more halves leave than anybody asked for."""
    return implies(before.lives == after.lives and number != after.about, before.places[number] == after.places[number])


def a_restart_empties_the_cache(before: State, after: State, number: Number) -> bool:
    """Otherwise a half is found that the crash took from the log."""
    return implies(before.lives < after.lives, after.size == 0 and after.places[number] == NOWHERE)


def only_a_full_cache_forgets(before: State, after: State) -> bool:
    """Otherwise an early commit fails for no reason."""
    return implies(before.lives == after.lives and before.front < after.front, before.size == before.capacity)


def a_half_that_is_cached_is_found(before: State, after: State) -> bool:
    """Otherwise an early commit fails, or a half that was decided stays."""
    cached = before.places[after.about] != NOWHERE
    return implies(before.answers < after.answers and cached, after.answer == Answer.FROM_CACHE)


def a_miss_falls_back_to_disk(before: State, after: State) -> bool:
    """Otherwise a half that left the cache cannot be committed any more."""
    missed = before.places[after.about] == NOWHERE
    readable = before.start <= after.about and after.about < before.flushed
    return implies(before.answers < after.answers and missed and readable, after.answer == Answer.FROM_DISK)


def an_unflushed_half_is_not_yet_and_never_unknown(before: State, after: State) -> bool:
    """Otherwise a message that was sent and committed is lost, because its producer was quick."""
    missed = before.places[after.about] == NOWHERE
    unflushed = before.flushed <= after.about and after.about < before.end
    return implies(before.answers < after.answers and missed and unflushed, after.answer == Answer.NOT_YET)


def nobody_waits_for_a_half_that_does_not_exist(before: State, after: State) -> bool:
    """Otherwise a producer asks for ever, or is given a message that was never sent."""
    return implies(before.answers < after.answers and before.end <= after.about, after.answer == Answer.UNKNOWN)


def who_grew_too_old_is_not_looked_for_again(before: State, after: State) -> bool:
    """Otherwise making room passes all places at which a half ever stood."""
    aged = before.left[after.about] < after.left[after.about] and before.answers == after.answers
    return implies(aged, before.places[after.about] < after.front)


def nothing_flushed_is_lost(before: State, after: State) -> bool:
    """Otherwise a disk forgot what it had stored."""
    return implies(before.lives > 0, before.flushed <= after.flushed)


def halves_are_written_one_by_one(before: State, after: State) -> bool:
    """Otherwise a half counts as written that was never sent."""
    one_more = after.end == before.end + 1
    return implies(before.lives == after.lives, after.end == before.end or one_more)


def a_new_life_begins_with_what_is_on_disk(before: State, after: State) -> bool:
    """Otherwise halves count as written that a crash took away, or that were never sent."""
    invented = 0 < before.lives and before.end < after.end
    return implies(before.lives < after.lives, after.flushed == after.end and not invented)


def the_world_of_the_cache_never_changes(before: State, after: State) -> bool:
    """Otherwise it is unknown when the cache is full."""
    return implies(before.lives > 0, after.capacity == before.capacity and after.start == before.start)


# What can be done, from whatever state.


INITIAL = State()
ACTIONS = (open, append, put, acknowledge, evict, hit, read, wait, deny, flush, restart)
INVARIANTS = (
    ends_are_ordered,
    lives_are_counted,
    the_cache_never_outgrows_its_capacity,
    what_is_cached_is_written,
    a_copy_is_its_half,
    only_halves_of_the_log_are_messages,
    what_was_put_in_was_written,
    a_cached_half_stands_in_the_line,
    who_stands_in_the_line_is_cached,
    only_halves_stand_in_the_line,
    a_half_is_found_unless_it_was_read_or_grew_too_old,
    a_half_is_put_in_once,
)
STEP_PROPERTIES = (
    size_counts_what_is_cached,
    one_half_comes_or_leaves_at_a_time,
    a_restart_empties_the_cache,
    only_a_full_cache_forgets,
    who_grew_too_old_is_not_looked_for_again,
    a_half_that_is_cached_is_found,
    a_miss_falls_back_to_disk,
    an_unflushed_half_is_not_yet_and_never_unknown,
    nobody_waits_for_a_half_that_does_not_exist,
    nothing_flushed_is_lost,
    halves_are_written_one_by_one,
    a_new_life_begins_with_what_is_on_disk,
    the_world_of_the_cache_never_changes,
)
