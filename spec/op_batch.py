"""The op batcher of one half queue: decided halves wait in memory, and are written many to an op."""

from dataclasses import dataclass

from gapless.spec.language import Map, Number, greatest, implies, replace, require


@dataclass(frozen=True, slots=True)
class State:
    """What waits, for how long, and which halves ops have named."""

    opened: int = 0  # 1 once the batcher runs
    max_size: int = 0  # bytes: a body that has reached this is full; 0 where that is not known
    interval: int = 0  # ms that an entry may wait; 0 where that is not known
    restarted: int = 0  # 1 where the broker may have been set otherwise in an earlier life
    clock: int = 0  # ms
    since: int = 0  # ms, when the first that waits came
    count: int = 0  # entries that wait
    size: int = 0  # bytes that they take in a body
    longest: int = 0  # bytes of the longest entry so far
    ops: int = 0  # ops written
    named: Map[Number, int] = Map(0)  # of half n: how often it was taken into a batch


def open(s: State, max_size: int, interval: int) -> State:  # noqa: A001 - the step's name in every trace.
    """The batcher of a broker is looked at, with what is known of its settings.

    Source: docs/rocketmq-transactions.md#batching, docs/rocketmq.md#settings (transactionOpMsgMaxSize,
    transactionOpBatchInterval); docs/proposals.md#batched-ops.
    """
    require(s.opened == 0 and s.count == 0, "batcher-is-new",
        because="the batcher is new", otherwise="two batchers are taken for one")
    return replace(s, opened=1, max_size=max_size, interval=interval)


def restart(s: State) -> State:
    """The broker has been started again since, or set otherwise while it ran: `max_size` is its limit of today.

    Source: docs/rocketmq.md#settings-at-run-time.
    """
    return replace(s, restarted=1)


def enqueue(s: State, number: Number, length: int, known: bool) -> State:
    """A decided half waits for its op; its number takes `length` bytes; `known` says that the log has that half.

    Source: docs/rocketmq-transactions.md#batching, #tx2; TransactionalMessageServiceImpl.deletePrepareMessage.
    """
    require(s.named[number] == 0, "no-op-names-the-half-yet",
        because="no op names the half yet", otherwise="the op cursor waits for a half that was done with before")
    require(known, "half-that-the-op-names-is-in-the-log-before-it",
        because="the half that the op names is in the log before it",
        otherwise="the check service skips a half that nobody decided, or that is yet to come")
    require(0 < length, "number-has-digits",
        because="a number has digits", otherwise="the half is never marked, and asked about again")
    return replace(
        s,
        since=s.clock if s.count == 0 else s.since,
        count=s.count + 1,
        size=s.size + length,
        longest=greatest(s.longest, length),
        named=s.named.set(number, s.named[number] + 1),
    )


def write(s: State, count: int, size: int, last: int, legible: bool, listed: bool) -> State:
    """An op is in the log: its body of `size` bytes names `count` halves, the last of them in `last` bytes.

    `legible` says that it is an op and its body holds nothing but numbers, `listed` that each ends in a comma.

    Source: docs/rocketmq-transactions.md#op-size, #tx2, #n28; TransactionalMessageServiceImpl.getOpMessage;
    docs/proposals.md#batched-ops-size.
    """
    require(legible, "op-holds-numbers-of-halves-and-nothing-else",
        because="the op holds numbers of halves and nothing else",
        otherwise="decided halves are asked about again, for nobody can read their op")
    require(0 < count and count <= s.count and s.count - count <= s.size - size and last <= s.longest,
        "op-names-what-waits",
        because="the op names what waits", otherwise="the check service skips a half that nobody decided")
    require(count == s.count or s.max_size == 0 or s.max_size <= size, "op-takes-all-that-waits-or-is-full",
        because="the op takes all that waits, or is full",
        otherwise="a decided half waits for nothing, and is asked about again")
    require(s.max_size == 0 or size - last < s.max_size, "body-ends-with-the-entry-that-fills-it",
        because="the body ends with the entry that fills it", otherwise="one op grows until no broker can store it")
    require(listed, "op-is-a-list",
        because="the op is a list",
        otherwise="its last number may be cut off, or there is an op for every half, and the log grows with each")
    return replace(s, count=s.count - count, size=s.size - size, since=s.clock, ops=s.ops + 1)


def tick(s: State, time: int) -> State:
    """Time goes by.

    Source: docs/rocketmq-transactions.md#op-interval, docs/rocketmq.md#settings.
    """
    require(s.clock <= time, "clock-does-not-step-back",
        because="the clock does not step back", otherwise="entries wait longer than they should")
    require(s.count == 0 or s.interval == 0 or time - s.since <= s.interval, "no-entry-waits-longer-than-the-interval",
        because="no entry waits longer than the interval", otherwise="a decided half is asked about again")
    return replace(s, clock=time)


def stop(s: State) -> State:
    """The broker stops in order: nothing waits any more.

    Source: docs/design.md#specs; docs/proposals.md#one-op-each.
    """
    require(s.count == 0, "nothing-waits-when-the-broker-stops",
        because="nothing waits when the broker stops",
        otherwise="decided halves are asked about again after the next start")
    return s


def crash(s: State) -> State:
    """What waits is lost: the halves are asked about again.

    Source: docs/rocketmq-transactions.md#op-crash, #n14.
    """
    return replace(s, count=0, size=0)


def what_waits_has_bytes(s: State) -> bool:
    """Otherwise an op is written that names nothing, or a half is dropped from it."""
    return 0 <= s.count and s.count <= s.size


def nobody_waits_too_long(s: State) -> bool:
    """Otherwise a decided half is asked about again."""
    return implies(0 < s.interval and 0 < s.count, s.clock - s.since <= s.interval)


def all_is_counted_from_zero(s: State, number: Number) -> bool:
    """Otherwise a half can be named once too often, and a batcher opened twice."""
    return 0 <= s.opened and 0 <= s.named[number]


def a_half_is_named_once(s: State, number: Number) -> bool:
    """Otherwise the op cursor waits for a half that was done with before."""
    return s.named[number] <= 1


def an_op_is_full_or_takes_all(before: State, after: State) -> bool:
    """Otherwise a decided half waits for nothing, and is asked about again."""
    written = before.size - after.size
    return implies(before.ops < after.ops, after.count == 0 or after.max_size == 0 or after.max_size <= written)


def a_body_is_bounded(before: State, after: State) -> bool:
    """Otherwise one op grows until no broker can store it."""
    written = before.size - after.size
    return implies(before.ops < after.ops and 0 < after.max_size, written < after.max_size + after.longest)


def the_clock_never_steps_back(before: State, after: State) -> bool:
    """Otherwise entries wait longer than they should."""
    return before.clock <= after.clock


def the_settings_never_change(before: State, after: State) -> bool:
    """Otherwise nobody can tell how large a body may be, nor how long an entry may wait."""
    return implies(0 < before.opened, after.max_size == before.max_size and after.interval == before.interval)


def ops_are_never_unwritten(before: State, after: State) -> bool:
    """Otherwise halves that were done with are asked about again."""
    return before.ops <= after.ops


def no_half_waits_for_its_op(s: State) -> bool:
    """Otherwise a half that was decided is asked about again."""
    return s.count == 0


INITIAL = State()
ACTIONS = (open, restart, enqueue, write, tick, stop, crash)
INVARIANTS = (what_waits_has_bytes, nobody_waits_too_long, all_is_counted_from_zero, a_half_is_named_once)
STEP_PROPERTIES = (
    an_op_is_full_or_takes_all,
    a_body_is_bounded,
    the_clock_never_steps_back,
    the_settings_never_change,
    ops_are_never_unwritten,
)
AT_REST = (no_half_waits_for_its_op,)
