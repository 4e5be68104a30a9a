"""The op batcher of one half queue: decided halves wait in memory, and are written many to an op."""

from dataclasses import dataclass

from gapless.spec.language import Map, Number, assume, greatest, implies, replace, require

MAX_SIZE = 4096  # bytes of a body that is full, unless a broker is set otherwise; docs/proposals.md#batched-ops-size
INTERVAL = 3000  # ms that an entry waits at most, unless a broker is set otherwise; docs/proposals.md#batched-ops-size

NOWHERE = -1  # the place of a half that was never entered
NO_NUMBER = Number(-1)  # the half of a place that is free


@dataclass(frozen=True, slots=True)
class State:
    """The entries in their order, the part of them that ops have taken, and the wait of the eldest.

    A crash gives the places of what waited to those who come next. So a half is entered if the place that it took is
    still its own.
    """

    opened: int = 0  # 1 once the batcher runs
    max_size: int = 0  # bytes: a body that has reached this is full; 0 where that is not known
    interval: int = 0  # ms that an entry may wait; 0 where that is not known
    restarted: int = 0  # 1 where the broker may have been set otherwise in an earlier life
    clock: int = 0  # ms
    since: int = 0  # ms, when the first that waits came
    latest: int = 0  # the first place that the latest op took
    written: int = 0  # exclusive end of the places that ops took; those behind it wait
    entered: int = 0  # exclusive end of the places that were given
    size: int = 0  # bytes that the entries which wait take in a body
    longest: int = 0  # bytes of the longest entry so far
    ops: int = 0  # ops written
    crashes: int = 0  # how often what waited was lost
    entries: Map[Number, Number] = Map(NO_NUMBER)  # of place k: the half that took it
    places: Map[Number, int] = Map(NOWHERE)  # of half n: the place that it took last


def is_entered(s: State, number: Number) -> bool:
    """True if an op names a half, or it waits for one."""
    place = s.places[number]
    return 0 <= place and place < s.entered and s.entries[Number(place)] == number


def waits(s: State, number: Number) -> bool:
    """True if a half waits for its op."""
    return s.written <= s.places[number] and is_entered(s, number)


def is_named(s: State, number: Number) -> bool:
    """True if an op names a half."""
    return s.places[number] < s.written and is_entered(s, number)


def open(s: State, max_size: int, interval: int) -> State:  # noqa: A001 - the step's name in every trace.
    """The batcher of a broker is looked at, with what is known of its settings.

    Source: docs/rocketmq-transactions.md#batching, docs/rocketmq.md#settings (transactionOpMsgMaxSize,
    transactionOpBatchInterval); docs/proposals.md#batched-ops.
    """
    require(s.opened == 0 and s.written == s.entered, "batcher-is-new",
        because="the batcher is new", otherwise="two batchers are taken for one")
    return replace(s, opened=1, max_size=max_size, interval=interval)


def restart(s: State) -> State:
    """The broker has been started again since, or set otherwise while it ran: `max_size` is its limit of today.

    Source: docs/rocketmq.md#settings-at-run-time.
    """
    return replace(s, restarted=1)


def enqueue(s: State, number: Number, length: int, known: bool) -> State:
    """A decided half waits for its op; its number takes `length` bytes; `known` says that the log has that half.

    Source: docs/rocketmq-transactions.md#batching, #tx2; TransactionalMessageServiceImpl.deletePrepareMessage;
    docs/proposals.md#batched-ops-size.
    """
    require(not is_entered(s, number), "no-op-names-the-half-yet",
        because="no op names the half yet", otherwise="the op cursor waits for a half that was done with before")
    require(known, "half-that-the-op-names-is-in-the-log-before-it",
        because="the half that the op names is in the log before it",
        otherwise="the check service skips a half that was never decided, or that is yet to come")
    require(0 < length, "number-has-digits",
        because="a number has digits", otherwise="the half is never marked, and asked about again")
    require(s.max_size <= 0 or s.restarted != 0 or s.size < s.max_size,
        "batch-that-is-full-is-written-before-another-entry-joins-it",
        because="a batch that is full is written before another entry joins it",
        otherwise="entries wait behind a body that is full, and a crash loses more than one op names")
    return replace(
        s,
        since=s.clock if s.written == s.entered else s.since,
        entered=s.entered + 1,
        size=s.size + length,
        longest=greatest(s.longest, length),
        entries=s.entries.set(Number(s.entered), number),
        places=s.places.set(number, s.entered),
    )


def write(s: State, count: int, size: int, last: int, legible: bool, listed: bool) -> State:
    """An op is in the log: its body of `size` bytes names `count` halves, the last of them in `last` bytes.

    Those are the ones that came first. `legible` says that it is an op and its body holds nothing but numbers,
    `listed` that each ends in a comma.

    Source: docs/rocketmq-transactions.md#op-size, #tx2, #n28; TransactionalMessageServiceImpl.getOpMessage;
    docs/proposals.md#batched-ops-size.
    """
    require(count == s.entered - s.written, "op-takes-all-that-waits-or-is-full",
        because="the op takes all that waits",
        otherwise="a decided half waits for nothing, and is asked about again")
    return written(s, count, size, last, legible, listed)


def written(s: State, count: int, size: int, last: int, legible: bool, listed: bool) -> State:
    """An op names the first `count` halves that wait, and perhaps not all of them."""
    left = s.entered - s.written - count
    require(legible, "op-holds-numbers-of-halves-and-nothing-else",
        because="the op holds numbers of halves and nothing else",
        otherwise="decided halves are asked about again, for their op cannot be read")
    whole = left == 0 and size == s.size
    require(0 < count and last <= s.longest and (whole or (0 < left and left <= s.size - size)),
        "op-names-what-waits",
        because="the op names what waits", otherwise="the check service skips a half that was never decided")
    require(s.max_size <= 0 or size - last < s.max_size, "body-ends-with-the-entry-that-fills-it",
        because="the body ends with the entry that fills it", otherwise="one op grows until no broker can store it")
    require(listed, "op-is-a-list",
        because="the op is a list",
        otherwise="its last number may be cut off, or there is an op for every half, and the log grows with each")
    return replace(s, latest=s.written, written=s.written + count, size=s.size - size, ops=s.ops + 1)


def name(s: State, number: Number) -> State:
    """The op that was written last is read: it names the half.

    Source: docs/rocketmq-transactions.md#ops, #tx2; docs/proposals.md#batched-ops-body.
    """
    require(is_named(s, number) and s.latest <= s.places[number], "half-that-the-op-names-was-taken-into-it",
        because="the half that the op names was taken into it",
        otherwise="the check service skips a half that was never decided")
    return s


def tick(s: State, time: int) -> State:
    """Time goes by.

    Source: docs/rocketmq-transactions.md#op-interval, docs/rocketmq.md#settings; docs/proposals.md#batched-ops-size.
    """
    assume(s.clock <= time, because="the clock does not step back")
    require(s.written == s.entered or s.interval <= 0 or time - s.since <= s.interval,
        "no-entry-waits-longer-than-the-interval",
        because="no entry waits longer than the interval", otherwise="a decided half is asked about again")
    return replace(s, clock=time)


def stop(s: State) -> State:
    """The broker stops in order: nothing waits any more.

    Source: docs/design.md#specs; docs/proposals.md#one-op-each.
    """
    require(s.written == s.entered, "nothing-waits-when-the-broker-stops",
        because="nothing waits when the broker stops",
        otherwise="decided halves are asked about again after the next start")
    return s


def crash(s: State) -> State:
    """Waiting entries are lost: the halves are asked about again.

    Source: docs/rocketmq-transactions.md#op-crash, #n14.
    """
    return replace(s, entered=s.written, size=0, crashes=s.crashes + 1)


def what_waits_has_bytes(s: State) -> bool:
    """Otherwise an op is written that names nothing, or a half is dropped from it."""
    count = s.entered - s.written
    return 0 <= count and count <= s.size and (0 < count or s.size == 0)


def nobody_waits_too_long(s: State) -> bool:
    """Otherwise a decided half is asked about again."""
    return implies(0 < s.interval and s.written < s.entered, s.clock - s.since <= s.interval)


def nobody_came_in_the_future(s: State) -> bool:
    """Otherwise an entry waits longer than the interval, unnoticed."""
    return implies(s.written < s.entered, s.since <= s.clock)


def all_is_counted_from_zero(s: State) -> bool:
    """Otherwise a half can be named once too often, and a batcher opened twice."""
    return 0 <= s.opened and 0 <= s.restarted and 0 <= s.ops and 0 <= s.latest and s.latest <= s.written


def a_half_is_named_once(s: State, number: Number, place: Number) -> bool:
    """Otherwise the op cursor waits for a half that was done with before."""
    return implies(
        0 <= place and place < s.entered and s.entries[place] == number, s.places[number] == place
    )


def a_place_was_given(s: State, number: Number) -> bool:
    """Otherwise a half counts as named as soon as another comes."""
    return NOWHERE <= s.places[number]


def a_batch_is_bounded(s: State) -> bool:
    """Otherwise entries wait behind a body that is full, and a crash loses more than one op names."""
    return implies(0 < s.max_size and s.restarted == 0 and s.written < s.entered, s.size < s.max_size + s.longest)


def an_op_is_full_or_takes_all(before: State, after: State) -> bool:
    """Otherwise a decided half waits for nothing, and is asked about again."""
    taken = before.size - after.size
    all_of_it = after.written == after.entered
    return implies(before.ops < after.ops, all_of_it or after.max_size <= 0 or after.max_size <= taken)


def an_op_takes_all_that_waits(before: State, after: State) -> bool:
    """Otherwise a decided half waits for nothing, and is asked about again."""
    return implies(before.ops < after.ops, after.written == after.entered)


def a_body_is_bounded(before: State, after: State) -> bool:
    """Otherwise one op grows until no broker can store it."""
    taken = before.size - after.size
    return implies(before.ops < after.ops and 0 < after.max_size, taken < after.max_size + after.longest)


def entries_leave_only_by_an_op_or_a_crash(before: State, after: State, number: Number) -> bool:
    """Otherwise a decided half is dropped: no op ever names it, and it is asked about again."""
    named = before.ops < after.ops and is_named(after, number)
    return implies(waits(before, number), waits(after, number) or named or before.crashes < after.crashes)


def an_op_names_what_waited(before: State, after: State, number: Number) -> bool:
    """Otherwise the check service skips a half that was never decided."""
    return implies(is_named(after, number), is_named(before, number) or waits(before, number))


def an_op_that_is_written_names_somebody(before: State, after: State) -> bool:
    """Otherwise ops are written that say nothing, or one that is not counted."""
    return (before.ops < after.ops) == (before.written < after.written)


def what_an_op_names_it_names_for_ever(before: State, after: State, number: Number) -> bool:
    """Otherwise a half that was done with is asked about again."""
    return implies(is_named(before, number), is_named(after, number))


def the_clock_never_steps_back(before: State, after: State) -> bool:
    """Otherwise entries wait longer than they should."""
    return before.clock <= after.clock


def the_settings_never_change(before: State, after: State) -> bool:
    """Otherwise the limits of a body's size and of an entry's wait are unknown."""
    return implies(0 < before.opened, after.max_size == before.max_size and after.interval == before.interval)


def ops_are_never_unwritten(before: State, after: State) -> bool:
    """Otherwise halves that were done with are asked about again."""
    return before.ops <= after.ops


def no_half_waits_for_its_op(s: State) -> bool:
    """Otherwise a half that was decided is asked about again."""
    return s.written == s.entered


INITIAL = State()
ACTIONS = (open, restart, enqueue, write, name, tick, stop, crash)
INVARIANTS = (
    what_waits_has_bytes,
    nobody_waits_too_long,
    nobody_came_in_the_future,
    all_is_counted_from_zero,
    a_half_is_named_once,
    a_place_was_given,
    a_batch_is_bounded,
)
STEP_PROPERTIES = (
    an_op_is_full_or_takes_all,
    an_op_takes_all_that_waits,
    a_body_is_bounded,
    entries_leave_only_by_an_op_or_a_crash,
    an_op_names_what_waited,
    an_op_that_is_written_names_somebody,
    what_an_op_names_it_names_for_ever,
    the_clock_never_steps_back,
    the_settings_never_change,
    ops_are_never_unwritten,
)
AT_REST = (no_half_waits_for_its_op,)
