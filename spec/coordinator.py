"""One transaction coordinator: few transactions at once, silence at the limit, and one outcome for each, for ever.

Its log outlives it. Its table is in memory, and comes back from the log whenever the coordinator is loaded. Maps are by
the number of a transaction.
"""

from dataclasses import dataclass
from enum import IntEnum

from gapless.spec.language import Map, Number, greatest, implies, replace, require

AT_BIRTH = 100  # ms: with less to live, a transaction is aborted as soon as it begins
FOR_EVER = 2**59  # ms: with so much to live, its deadline may be beyond 64 bits, and come at once


class Status(IntEnum):
    """How far a transaction is."""

    ABSENT = 0
    OPEN = 1
    COMMITTING = 2
    ABORTING = 3
    COMMITTED = 4
    ABORTED = 5


@dataclass(frozen=True, slots=True)
class State:
    """What the log says of every transaction, what the table says, and what clients were told."""

    opened: int = 0  # how many coordinators are looked at: 1, or 0 before that
    running: int = 0  # 1 while its table is there
    limit: int = 0  # of active transactions; 0: none; below 0: every request is ignored
    loaded: int = 0  # transactions that were active when the coordinator was last loaded
    active: int = 0  # transactions that take a slot
    admitted: int = 0  # requests that passed the limit, and whose transaction is not in the log yet
    crowd: int = 0  # the most that were admitted at once since then
    peak: int = 0  # the most that were active or admitted at once since then
    ignored: int = 0  # requests since then that nobody will answer
    found: int = 0  # transactions in the table that take a slot
    end: Number = Number(0)  # exclusive end of the numbers given
    log: Map[Number, int] = Map(Status.ABSENT)  # of transaction n: how far it is by the log
    table: Map[Number, int] = Map(Status.ABSENT)  # of transaction n: how far it is by the table
    begun: Map[Number, int] = Map(0)  # of transaction n: how often it began
    times: Map[Number, int] = Map(0)  # of transaction n: ms, when it began
    lives: Map[Number, int] = Map(0)  # of transaction n: ms that it may stay open
    left: Map[Number, int] = Map(0)  # of transaction n: ms that it still had when it was timed out
    added: Map[Number, int] = Map(0)  # of transaction n: how often topics or subscriptions were added
    settled: Map[Number, int] = Map(0)  # of transaction n: the same, when its end began
    outcomes: Map[Number, int] = Map(0)  # of transaction n: how often it was committed or aborted
    handed: Map[Number, int] = Map(0)  # of transaction n: how many clients were given it
    told: Map[Number, int] = Map(Status.ABSENT)  # of transaction n: the outcome that its client was told


def takes_a_slot(status: int) -> bool:
    """Whether a transaction that is so far is active."""
    return Status.ABSENT < status and status < Status.COMMITTED


def open(s: State, limit: int) -> State:  # noqa: A001 - the step's name in every trace.
    """A coordinator is looked at that may have so many active transactions, before anything is in its log.

    Source: docs/proposals.md#active-limit-setting; docs/pulsar.md#instance.
    """
    require(s.opened == 0, "coordinator-is-new",
        because="the coordinator is new", otherwise="two coordinators are taken for one")
    return replace(_loaded(s, limit), opened=s.opened + 1)


def _loaded(s: State, limit: int) -> State:
    return replace(s, limit=limit, loaded=s.active, admitted=0, crowd=0, peak=s.active, ignored=0)


def unload(s: State) -> State:
    """The table is gone, by a crash or in order; the log stays.

    Source: docs/pulsar.md#instance.
    """
    return replace(s, running=0, found=0, table=s.table.cleared())


def load(s: State, number: Number, status: Status) -> State:
    """The log is read, and has a transaction that is so far.

    Source: docs/pulsar.md#replay, #p-4, #p-6, #batched-log; apache/pulsar#20150.
    """
    require(s.running == 0, "table-is-gone",
        because="the table is gone", otherwise="what the coordinator goes by changes under its feet")
    require(status == s.log[number], "transaction-comes-back-as-it-was",
        because="a transaction comes back as it was",
        otherwise="one that has ended holds a slot again and may end otherwise, or a decision is forgotten")
    more = 1 if takes_a_slot(status) and not takes_a_slot(s.table[number]) else 0
    return replace(s, found=s.found + more, table=s.table.set(number, status))


def recover(s: State, limit: int) -> State:
    """The log is read to its end: the coordinator goes on with what is in its table, and this limit.

    More may be active than the limit: nothing that began is given up for it. Source: docs/pulsar.md#replay, #p-6, #n-2.
    """
    require(s.found == s.active, "every-active-transaction-comes-back",
        because="every active transaction comes back",
        otherwise="nobody will ever end it, and consumers wait for ever behind its messages")
    return replace(_loaded(s, limit), running=1)


def admit(s: State) -> State:
    """A request to begin passes the limit.

    Source: docs/proposals.md#active-limit-silence; docs/pulsar.md#o2, #p-10.
    """
    require(s.limit == 0 or s.active < s.limit, "limit-leaves-room",
        because="the limit leaves room", otherwise="the limit limits nothing, and the coordinator runs out of memory")
    waiting = s.admitted + 1
    return replace(s, admitted=waiting, crowd=greatest(s.crowd, waiting), peak=greatest(s.peak, s.active + waiting))


def ignore(s: State) -> State:
    """A request to begin is met with silence, for good: its client times out.

    Source: docs/proposals.md#active-limit-silence; docs/pulsar.md#p-11, #p-12.
    """
    require(s.limit != 0 and s.limit <= s.active + s.admitted, "limit-is-reached",
        because="the limit is reached", otherwise="a client waits for nothing, and blocks others meanwhile")
    return replace(s, ignored=s.ignored + 1)


def burn(s: State) -> State:
    """What was admitted comes to nothing: it could not be written, and its number is never used.

    Source: docs/pulsar.md#o4-failed, #n-17.
    """
    require(0 < s.admitted, "request-was-admitted",
        because="a request was admitted", otherwise="another request loses its place")
    return replace(s, admitted=s.admitted - 1)


def begin(s: State, number: Number, time: int, life: int) -> State:
    """Transaction `number` is in the log, new at `time`, and may stay open for `life` ms: it takes a slot.

    Source: docs/proposals.md#active-limit; docs/pulsar.md#o4, #p-1.
    """
    require(s.limit == 0 or s.active < s.limit, "slot-is-free",
        because="a slot is free", otherwise="more transactions are active than the coordinator can hold")
    require(0 < s.admitted, "request-was-admitted",
        because="a request was admitted", otherwise="a slot goes to a transaction nobody asked for")
    require(s.end <= number, "number-is-new",
        because="the number is new", otherwise="two clients work in one transaction")
    return replace(
        s,
        active=s.active + 1,
        admitted=s.admitted - 1,
        found=s.found + 1,
        end=Number(number + 1),
        log=s.log.set(number, Status.OPEN),
        table=s.table.set(number, Status.OPEN),
        begun=s.begun.set(number, s.begun[number] + 1),
        times=s.times.set(number, time),
        lives=s.lives.set(number, life),
    )


def hand(s: State, number: Number) -> State:
    """A client is given transaction `number`.

    Source: docs/pulsar.md#p-6, #p-8.
    """
    require(s.handed[number] < s.begun[number], "transaction-has-begun-and-nobody-was-given-it",
        because="the transaction has begun, and nobody was given it",
        otherwise="two clients work in one transaction, or one in none")
    return replace(s, handed=s.handed.set(number, s.handed[number] + 1))


def add(s: State, number: Number) -> State:
    """A topic or a subscription takes part in the transaction.

    Source: docs/pulsar.md#add, #p-9.
    """
    require(s.log[number] == Status.OPEN, "transaction-is-open",
        because="the transaction is open", otherwise="nobody tells it the outcome")
    return replace(s, added=s.added.set(number, s.added[number] + 1))


def decide(s: State, number: Number, to: Status) -> State:
    """The end begins: the transaction is COMMITTING or ABORTING, and still takes its slot.

    Source: docs/pulsar.md#status, #p-3.
    """
    require(s.log[number] == Status.OPEN, "transaction-is-open",
        because="the transaction is open", otherwise="some topics commit what others abort")
    require(to == Status.COMMITTING or to == Status.ABORTING, "end-begins-with-a-decision",
        because="an end begins with a decision", otherwise="some topics never hear of it")
    return replace(
        s,
        log=s.log.set(number, to),
        table=s.table.set(number, to) if takes_a_slot(s.table[number]) else s.table,
        settled=s.settled.set(number, s.added[number]),
    )


def time_out(s: State, number: Number, time: int) -> State:
    """The coordinator itself aborts a transaction that has been open for too long.

    Source: docs/pulsar.md#timeouts, #p-14, #p-15.
    """
    require(s.times[number] + s.lives[number] <= time, "transaction-has-had-its-time",
        because="the transaction has had its time", otherwise="the work of a client that is in time is thrown away")
    return replace(
        decide(s, number, Status.ABORTING),
        left=s.left.set(number, s.times[number] + s.lives[number] - time),
    )


def finish(s: State, number: Number, to: Status) -> State:
    """All that take part know the outcome: the transaction is COMMITTED or ABORTED, and its slot is free.

    Source: docs/pulsar.md#status, #p-3, #p-4.
    """
    require((s.log[number] == Status.COMMITTING and to == Status.COMMITTED)
        or (s.log[number] == Status.ABORTING and to == Status.ABORTED),
        "outcome-is-the-one-that-was-decided-and-the-first",
        because="the outcome is the one that was decided, and the first",
        otherwise="what was paid is taken back, or paid twice")
    return replace(
        s,
        active=s.active - 1,
        found=s.found - 1,
        log=s.log.set(number, to),
        table=s.table.set(number, to),
        outcomes=s.outcomes.set(number, s.outcomes[number] + 1),
    )


def acknowledge(s: State, number: Number, status: Status) -> State:
    """The client is told that its transaction is COMMITTED or ABORTED.

    Source: docs/pulsar.md#p-7.
    """
    require(Status.COMMITTED <= status and status == s.log[number], "outcome-that-is-told-is-in-the-log",
        because="the outcome that is told is in the log",
        otherwise="a client believes in an outcome that may never be, or be another")
    return replace(s, told=s.told.set(number, status))


def a_log_is_of_one_coordinator(s: State) -> bool:
    """Otherwise what one coordinator promised is held against another."""
    return 0 <= s.opened and s.opened <= 1


def the_active_stay_within_the_limit(s: State) -> bool:
    """Otherwise the coordinator holds more than it has room for; what it had when it was loaded it must keep."""
    return implies(0 < s.limit, s.active <= greatest(s.loaded, s.limit))


def only_a_crowd_passes_the_limit(s: State) -> bool:
    """Otherwise the limit, which a crowd of K may pass by K - 1, limits nothing."""
    return implies(0 < s.limit, s.peak <= greatest(s.loaded, s.limit - 1 + s.crowd))


def the_peak_is_the_most(s: State) -> bool:
    """Otherwise the limit is passed, and nobody knows."""
    return s.active + s.admitted <= s.peak and s.admitted <= s.crowd


def silence_means_that_the_limit_was_reached(s: State) -> bool:
    """Otherwise a client waits for nothing."""
    return 0 <= s.ignored and implies(0 < s.ignored, s.limit != 0 and s.limit <= s.peak)


def nothing_begins_unasked(s: State) -> bool:
    """Otherwise a slot is held by a transaction that nobody works in."""
    return 0 <= s.admitted


def a_number_is_used_once(s: State, number: Number) -> bool:
    """Otherwise two clients work in one transaction."""
    return s.begun[number] <= 1


def numbers_to_come_are_unused(s: State, number: Number) -> bool:
    """Otherwise a transaction begins with what another has left behind."""
    return 0 <= s.end and implies(
        number < 0 or s.end <= number,
        s.log[number] == Status.ABSENT and s.begun[number] == 0 and s.left[number] == 0,
    )


def nobody_shares_a_transaction(s: State, number: Number) -> bool:
    """Otherwise one client commits what another is about to abort."""
    return s.handed[number] <= s.begun[number]


def an_end_has_one_outcome(s: State, number: Number) -> bool:
    """Otherwise what was paid is taken back, or paid twice."""
    return s.outcomes[number] == (1 if Status.COMMITTED <= s.log[number] else 0)


def a_client_is_told_the_truth(s: State, number: Number) -> bool:
    """Otherwise it acts on an outcome that never was."""
    return implies(
        s.told[number] != Status.ABSENT, Status.COMMITTED <= s.told[number] and s.told[number] == s.log[number]
    )


def nothing_that_ended_comes_back(s: State, number: Number) -> bool:
    """Otherwise it holds a slot again, and may end otherwise."""
    return implies(takes_a_slot(s.table[number]), s.table[number] == s.log[number])


def no_active_transaction_is_forgotten(s: State) -> bool:
    """Otherwise nobody ever ends it. What the table holds is in the log, so where they are as many, they are alike."""
    return implies(0 < s.running, s.found == s.active)


def who_takes_part_is_settled_before_the_end(s: State, number: Number) -> bool:
    """Otherwise a topic is never told the outcome."""
    return implies(Status.OPEN < s.log[number], s.added[number] == s.settled[number])


def only_a_life_that_no_clock_measures_ends_early(s: State, number: Number) -> bool:
    """Otherwise the work of a client that is in time is thrown away."""
    return implies(0 < s.left[number], s.lives[number] < AT_BIRTH or FOR_EVER <= s.lives[number])


def a_transaction_lives_its_time(s: State, number: Number) -> bool:
    """Otherwise the work of a client that is in time is thrown away."""
    return s.left[number] <= 0


def a_slot_is_taken_with_the_beginning(before: State, after: State, number: Number) -> bool:
    """Otherwise the limit counts fewer than there are."""
    return implies(before.begun[number] < after.begun[number], after.active == before.active + 1)


def a_slot_is_freed_with_the_outcome(before: State, after: State, number: Number) -> bool:
    """Otherwise slots leak until every request is ignored; or one is freed too early, and the limit counts too few."""
    moved = before.log[number] != after.log[number] and takes_a_slot(before.log[number])
    return implies(moved, after.active == before.active - (1 if Status.COMMITTED <= after.log[number] else 0))


def what_the_table_holds_is_counted(before: State, after: State, number: Number) -> bool:
    """Otherwise a transaction is forgotten, and nobody misses it."""
    held = takes_a_slot(before.table[number])
    holds = takes_a_slot(after.table[number])
    gone = held and after.table[number] == Status.ABSENT
    return implies(holds and not held, after.found == before.found + 1) and implies(gone, after.found == 0)


def an_ignored_request_leaves_nothing_behind(before: State, after: State, number: Number) -> bool:
    """Otherwise a slot that nobody was given is never freed."""
    return implies(
        before.ignored < after.ignored,
        after.active == before.active
        and after.admitted == before.admitted
        and after.end == before.end
        and after.log[number] == before.log[number]
        and after.table[number] == before.table[number],
    )


def no_transaction_is_active(s: State) -> bool:
    """Otherwise it is left undecided, and consumers wait for ever behind its messages."""
    return s.active == 0


def no_request_to_begin_is_left(s: State) -> bool:
    """Otherwise a client waits for a transaction that never begins."""
    return s.admitted == 0


INITIAL = State()
ACTIONS = (
    open,
    unload,
    load,
    recover,
    admit,
    ignore,
    burn,
    begin,
    hand,
    add,
    decide,
    time_out,
    finish,
    acknowledge,
)
INVARIANTS = (
    the_active_stay_within_the_limit,
    a_log_is_of_one_coordinator,
    only_a_crowd_passes_the_limit,
    the_peak_is_the_most,
    silence_means_that_the_limit_was_reached,
    nothing_begins_unasked,
    a_number_is_used_once,
    numbers_to_come_are_unused,
    nobody_shares_a_transaction,
    an_end_has_one_outcome,
    a_client_is_told_the_truth,
    nothing_that_ended_comes_back,
    no_active_transaction_is_forgotten,
    who_takes_part_is_settled_before_the_end,
    only_a_life_that_no_clock_measures_ends_early,
    a_transaction_lives_its_time,
)
STEP_PROPERTIES = (
    a_slot_is_taken_with_the_beginning,
    a_slot_is_freed_with_the_outcome,
    what_the_table_holds_is_counted,
    an_ignored_request_leaves_nothing_behind,
)
AT_REST = (no_transaction_is_active, no_request_to_begin_is_left)
