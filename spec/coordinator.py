"""One transaction coordinator: few transactions at once, silence at the limit, and one outcome for each, for ever.

Its log outlives it. Its table, its timers and the requests that wait are in memory: the table comes back from the log
whenever the coordinator is loaded, a timer with each transaction that is open, and requests do not. Maps are by the
number of a transaction, or of a request to begin one.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import Map, Number, all_between, greatest, implies, replace, require

Request = NewType("Request", int)
"""The number of a request to begin, among all requests of its coordinator."""

AT_BIRTH = 100  # ms: with less to live, a transaction is aborted as soon as it begins
FOR_EVER = 2**59  # ms: with so much to live, its deadline may be beyond 64 bits, and come at once


class Status(IntEnum):
    """The phase of a transaction."""

    ABSENT = 0
    OPEN = 1
    COMMITTING = 2
    ABORTING = 3
    COMMITTED = 4
    ABORTED = 5


class Fate(IntEnum):
    """The fate of a request to begin."""

    NEW = 0
    ADMITTED = 1  # it passed the limit
    BEGUN = 2  # its transaction is in the log
    ANSWERED = 3  # its client was given the transaction
    BURNT = 4  # its transaction could not be written
    IGNORED = 5  # it was met with silence


@dataclass(frozen=True, slots=True)
class State:
    """The log, the table and the outcomes that clients know, for every transaction."""

    opened: int = 0  # how many coordinators are looked at: 1, or 0 before that
    running: int = 0  # 1 while its table is there
    limit: int = 0  # of active transactions; 0: none; below 0: every request is ignored
    loaded: int = 0  # transactions that were active when the coordinator was last loaded
    active: int = 0  # transactions that take a slot
    admitted: int = 0  # requests that passed the limit, and whose transaction is not in the log yet
    crowd: int = 0  # the most that were admitted at once since then
    peak: int = 0  # the most that were active or admitted at once since then
    ignored: int = 0  # requests since then that are never answered
    first: Number = Number(0)  # the first number that was given
    end: Number = Number(0)  # exclusive end of the numbers given
    log: Map[Number, int] = Map(Status.ABSENT)  # of transaction n: how far it is by the log
    table: Map[Number, int] = Map(Status.ABSENT)  # of transaction n: how far it is by the table
    timers: Map[Number, int] = Map(0)  # of transaction n: 1 while a timer waits to abort it
    begun: Map[Number, int] = Map(0)  # of transaction n: how often it began
    times: Map[Number, int] = Map(0)  # of transaction n: ms, when it began
    lives: Map[Number, int] = Map(0)  # of transaction n: ms that it may stay open
    left: Map[Number, int] = Map(0)  # of transaction n: ms that it still had when it was timed out
    added: Map[Number, int] = Map(0)  # of transaction n: how often topics or subscriptions were added
    settled: Map[Number, int] = Map(0)  # of transaction n: the same, when its end began
    outcomes: Map[Number, int] = Map(0)  # of transaction n: how often it was committed or aborted
    owners: Map[Number, Request] = Map(Request(0))  # of transaction n: the request that it began for
    handed: Map[Number, int] = Map(0)  # of transaction n: how many clients were given it
    reported: Map[Number, int] = Map(Status.ABSENT)  # of transaction n: the outcome reported to its client
    fates: Map[Request, int] = Map(Fate.NEW)  # of request r: what became of it
    pending: Map[Request, int] = Map(0)  # of request r: 1 while it is admitted, and nothing has come of it yet


def takes_a_slot(status: int) -> bool:
    """True if a transaction in this phase is active."""
    return Status.ABSENT < status and status < Status.COMMITTED


def is_back(s: State, number: Number) -> bool:
    """True if an active transaction is in the table."""
    return implies(takes_a_slot(s.log[number]), s.table[number] == s.log[number])


def open(s: State, limit: int) -> State:  # noqa: A001 - the step's name in every trace.
    """A coordinator is looked at that may have so many active transactions: it runs, and nothing is in its log.

    Source: docs/proposals.md#active-limit-setting; docs/pulsar.md#instance.
    """
    require(s.opened == 0, "coordinator-is-new",
        because="the coordinator is new", otherwise="two coordinators are taken for one")
    return replace(_loaded(s, limit), opened=s.opened + 1)


def _loaded(s: State, limit: int) -> State:
    return replace(s, running=1, limit=limit, loaded=s.active, crowd=0, peak=s.active, ignored=0)


def unload(s: State) -> State:
    """The memory of the coordinator is lost, by a crash or a stop; the log stays.

    Source: docs/pulsar.md#instance.
    """
    lost = replace(s, table=s.table.cleared(), timers=s.timers.cleared(), pending=s.pending.cleared())
    return replace(lost, running=0, admitted=0)


def load(s: State, number: Number, status: Status) -> State:
    """The log is read, and has a transaction that is so far. One that is open gets its timer again.

    Source: docs/pulsar.md#replay, #p-4, #p-6, #batched-log; apache/pulsar#20150.
    """
    require(s.running == 0, "table-is-gone",
        because="the table is gone", otherwise="what the coordinator goes by changes under its feet")
    require(status == s.log[number], "transaction-comes-back-as-it-was",
        because="a transaction comes back as it was",
        otherwise="one that has ended holds a slot again and may end otherwise, or a decision is forgotten")
    timer = 1 if status == Status.OPEN else 0
    return replace(s, table=s.table.set(number, status), timers=s.timers.set(number, timer))


def recover(s: State, limit: int) -> State:
    """The log is read to its end: the coordinator continues with its table and this limit.

    More may be active than the limit: nothing that began is given up for it. Source: docs/pulsar.md#replay, #p-6, #n-2.
    """
    require(s.running == 0, "table-is-gone",
        because="the table is gone", otherwise="what the coordinator goes by changes under its feet")
    require(s.opened == 1, "coordinator-is-known",
        because="the coordinator is known", otherwise="what it promised before is forgotten")
    require(all_between(s.first, s.end, lambda n: is_back(s, Number(n))), "every-active-transaction-comes-back",
        because="every active transaction comes back",
        otherwise="it is never ended, and consumers wait for ever behind its messages")
    return _loaded(s, limit)


def admit(s: State, request: Request) -> State:
    """A request to begin passes the limit.

    Source: docs/proposals.md#active-limit-silence; docs/pulsar.md#o2, #p-10.
    """
    require(s.running == 1, "coordinator-runs",
        because="the coordinator runs", otherwise="it goes by a table that is not there")
    require(s.limit == 0 or (0 < s.limit and s.active < s.limit), "limit-leaves-room",
        because="the limit leaves room", otherwise="the limit limits nothing, and the coordinator runs out of memory")
    require(s.fates[request] == Fate.NEW, "request-is-new",
        because="the request is new", otherwise="one that was ignored is answered, or one client holds two slots")
    waiting = s.admitted + 1
    return replace(
        s,
        admitted=waiting, crowd=greatest(s.crowd, waiting), peak=greatest(s.peak, s.active + waiting),
        fates=s.fates.set(request, Fate.ADMITTED), pending=s.pending.set(request, 1),
    )


def ignore(s: State, request: Request) -> State:
    """A request to begin is met with silence, for good: its client times out.

    Source: docs/proposals.md#active-limit-silence; docs/pulsar.md#p-11, #p-12.
    """
    require(s.running == 1, "coordinator-runs",
        because="the coordinator runs", otherwise="it goes by a table that is not there")
    require(s.limit != 0 and s.limit <= s.active + s.admitted, "limit-is-reached",
        because="the limit is reached", otherwise="a client waits for nothing, and blocks others meanwhile")
    require(s.fates[request] == Fate.NEW, "request-is-new",
        because="the request is new", otherwise="one that was ignored is answered, or one client holds two slots")
    return replace(s, ignored=s.ignored + 1, fates=s.fates.set(request, Fate.IGNORED))


def burn(s: State, request: Request) -> State:
    """An admitted request comes to nothing: it was not written, and its number is never used.

    Source: docs/pulsar.md#o4-failed, #n-17.
    """
    require(s.running == 1, "coordinator-runs",
        because="the coordinator runs", otherwise="it goes by a table that is not there")
    require(s.pending[request] == 1 and 0 < s.admitted, "request-was-admitted",
        because="the request was admitted", otherwise="another request loses its place")
    pending = s.pending.set(request, 0)
    return replace(s, admitted=s.admitted - 1, fates=s.fates.set(request, Fate.BURNT), pending=pending)


def begin(s: State, number: Number, request: Request, time: int, life: int) -> State:
    """Transaction `number` is in the log, new at `time`, and may stay open for `life` ms: it takes a slot.

    Source: docs/proposals.md#active-limit; docs/pulsar.md#o4, #p-1, #timeouts.
    """
    require(s.running == 1, "coordinator-runs",
        because="the coordinator runs", otherwise="it goes by a table that is not there")
    require(s.limit == 0 or s.active < s.limit, "slot-is-free",
        because="a slot is free", otherwise="more transactions are active than the coordinator has slots")
    require(s.end <= number, "number-is-new",
        because="the number is new", otherwise="two clients work in one transaction")
    require(s.pending[request] == 1 and 0 < s.admitted, "request-was-admitted",
        because="the request was admitted", otherwise="a slot goes to a transaction that no client asked for")
    return replace(
        s,
        active=s.active + 1, admitted=s.admitted - 1,
        first=number if s.first == s.end else s.first, end=Number(number + 1),
        log=s.log.set(number, Status.OPEN), table=s.table.set(number, Status.OPEN), timers=s.timers.set(number, 1),
        begun=s.begun.set(number, s.begun[number] + 1), owners=s.owners.set(number, request),
        times=s.times.set(number, time), lives=s.lives.set(number, life),
        fates=s.fates.set(request, Fate.BEGUN), pending=s.pending.set(request, 0),
    )


def hand(s: State, number: Number, request: Request) -> State:
    """The client that asked by `request` is given transaction `number`.

    Source: docs/pulsar.md#p-6, #p-8.
    """
    require(s.handed[number] < s.begun[number], "transaction-has-begun-and-nobody-was-given-it",
        because="the transaction has begun, and no client was given it",
        otherwise="two clients work in one transaction, or one in none")
    require(s.owners[number] == request, "transaction-began-for-the-request",
        because="the transaction began for the request", otherwise="a request that was ignored is answered")
    return replace(s, handed=s.handed.set(number, s.handed[number] + 1), fates=s.fates.set(request, Fate.ANSWERED))


def add(s: State, number: Number) -> State:
    """A topic or a subscription takes part in the transaction.

    Source: docs/pulsar.md#add, #p-9.
    """
    require(s.running == 1, "coordinator-runs",
        because="the coordinator runs", otherwise="it goes by a table that is not there")
    require(s.log[number] == Status.OPEN, "transaction-is-open",
        because="the transaction is open", otherwise="it never learns the outcome")
    return replace(s, added=s.added.set(number, s.added[number] + 1))


def decide(s: State, number: Number, to: Status) -> State:
    """The end begins: the transaction is COMMITTING or ABORTING, has no timer, and still takes its slot.

    Source: docs/pulsar.md#status, #p-3, #timeouts.
    """
    require(s.running == 1, "coordinator-runs",
        because="the coordinator runs", otherwise="it goes by a table that is not there")
    require(s.log[number] == Status.OPEN, "transaction-is-open",
        because="the transaction is open", otherwise="some topics commit what others abort")
    require(to == Status.COMMITTING or to == Status.ABORTING, "end-begins-with-a-decision",
        because="an end begins with a decision", otherwise="some topics never hear of it")
    settled = s.settled.set(number, s.added[number])
    now = replace(s, log=s.log.set(number, to), table=s.table.set(number, to), timers=s.timers.set(number, 0))
    return replace(now, settled=settled)


def time_out(s: State, number: Number, time: int) -> State:
    """The coordinator itself aborts a transaction that has been open for too long.

    Source: docs/pulsar.md#timeouts, #p-14, #p-15.
    """
    require(s.times[number] + s.lives[number] <= time, "transaction-has-had-its-time",
        because="the transaction has had its time", otherwise="the work of a client that is in time is thrown away")
    left = s.times[number] + s.lives[number] - time
    return replace(decide(s, number, Status.ABORTING), left=s.left.set(number, left))


def finish(s: State, number: Number, to: Status) -> State:
    """All that take part know the outcome: the transaction is COMMITTED or ABORTED, and its slot is free.

    Source: docs/pulsar.md#status, #p-3, #p-4.
    """
    require(s.running == 1, "coordinator-runs",
        because="the coordinator runs", otherwise="it goes by a table that is not there")
    require((s.log[number] == Status.COMMITTING and to == Status.COMMITTED)
        or (s.log[number] == Status.ABORTING and to == Status.ABORTED),
        "outcome-is-the-one-that-was-decided-and-the-first",
        because="the outcome is the one that was decided, and the first",
        otherwise="what was paid is taken back, or paid twice")
    return replace(
        s,
        active=s.active - 1, log=s.log.set(number, to), table=s.table.set(number, to),
        outcomes=s.outcomes.set(number, s.outcomes[number] + 1),
    )


def acknowledge(s: State, number: Number, status: Status) -> State:
    """The coordinator reports to the client that its transaction is COMMITTED or ABORTED.

    Source: docs/pulsar.md#p-7.
    """
    require(Status.COMMITTED <= status and status == s.log[number], "outcome-that-is-told-is-in-the-log",
        because="the outcome that is reported is in the log",
        otherwise="a client believes in an outcome that may never be, or be another")
    return replace(s, reported=s.reported.set(number, status))


def a_log_is_of_one_coordinator(s: State) -> bool:
    """Otherwise one coordinator is blamed for the promises of another."""
    return 0 <= s.running and s.running <= s.opened and s.opened <= 1 and implies(s.opened == 0, s.first == s.end)


def the_active_stay_within_the_limit(s: State) -> bool:
    """Otherwise the coordinator holds more than it has room for; what it had when it was loaded it must keep."""
    return implies(0 < s.limit, s.active <= greatest(s.loaded, s.limit))


def only_a_crowd_passes_the_limit(s: State) -> bool:
    """Otherwise the limit, which a crowd of K may pass by K - 1, limits nothing."""
    return implies(0 < s.limit, s.peak <= greatest(s.loaded, s.limit - 1 + s.crowd))


def a_limit_below_zero_lets_nobody_in(s: State, request: Request) -> bool:
    """Otherwise a coordinator that is to be idle is not."""
    return implies(s.limit < 0, s.pending[request] == 0)


def the_peak_is_the_most(s: State) -> bool:
    """Otherwise the limit is passed unnoticed."""
    return s.active + s.admitted <= s.peak and s.admitted <= s.crowd


def silence_means_that_the_limit_was_reached(s: State) -> bool:
    """Otherwise a client waits for nothing."""
    return 0 <= s.ignored and implies(0 < s.ignored, s.limit != 0 and s.limit <= s.peak)


def nothing_begins_unasked(s: State) -> bool:
    """Otherwise a slot is taken by a transaction that no client works in."""
    return 0 <= s.admitted and implies(s.running == 0 or s.limit < 0, s.admitted == 0)


def a_request_waits_while_nothing_has_come_of_it(s: State, request: Request) -> bool:
    """Otherwise one that came to nothing keeps its place, until every request is ignored."""
    waits = s.pending[request] == 1 and s.running == 1 and s.fates[request] == Fate.ADMITTED
    return waits or s.pending[request] == 0


def a_transaction_is_its_requests(s: State, number: Number, request: Request) -> bool:
    """Otherwise a request that was ignored, or came to nothing, is answered."""
    fate = s.fates[request]
    given = 0 < s.begun[number] and s.owners[number] == request
    return implies(given, fate == (Fate.ANSWERED if 0 < s.handed[number] else Fate.BEGUN))


def a_request_begins_one_transaction(s: State, number: Number, other: Number) -> bool:
    """Otherwise a client holds two slots, and works in one."""
    both = 0 < s.begun[number] and 0 < s.begun[other] and number != other
    return implies(both, s.owners[number] != s.owners[other])


def a_number_is_used_once(s: State, number: Number) -> bool:
    """Otherwise two clients work in one transaction."""
    return 0 <= s.begun[number] and s.begun[number] <= 1


def numbers_to_come_are_unused(s: State, number: Number) -> bool:
    """Otherwise a transaction begins with what another has left behind."""
    unused = s.log[number] == Status.ABSENT and s.begun[number] == 0 and s.left[number] == 0
    ordered = 0 <= s.first and s.first <= s.end and implies(s.first == s.end, s.active == 0)
    return ordered and implies(number < s.first or s.end <= number, unused)


def nobody_works_in_what_never_began(s: State, number: Number) -> bool:
    """Otherwise a topic waits for the outcome of nothing."""
    no_client = s.begun[number] == 0 and s.added[number] == 0 and s.handed[number] == 0
    return implies(s.log[number] == Status.ABSENT, no_client)


def nobody_shares_a_transaction(s: State, number: Number) -> bool:
    """Otherwise one client commits what another is about to abort."""
    return 0 <= s.handed[number] and s.handed[number] <= s.begun[number]


def an_end_has_one_outcome(s: State, number: Number) -> bool:
    """Otherwise what was paid is taken back, or paid twice."""
    return s.outcomes[number] == (1 if Status.COMMITTED <= s.log[number] else 0)


def a_client_is_told_the_truth(s: State, number: Number) -> bool:
    """Otherwise it acts on an outcome that never was."""
    reported = s.reported[number]
    return implies(reported != Status.ABSENT, Status.COMMITTED <= reported and reported == s.log[number])


def nothing_that_ended_comes_back(s: State, number: Number) -> bool:
    """Otherwise it holds a slot again, and may end otherwise."""
    return implies(s.table[number] != Status.ABSENT, s.table[number] == s.log[number])


def no_active_transaction_is_forgotten(s: State, number: Number) -> bool:
    """Otherwise it is never ended."""
    return implies(s.running == 1, is_back(s, number))


def a_timer_runs_for_every_open_transaction(s: State, number: Number) -> bool:
    """Otherwise a client that is gone holds its slot for ever."""
    return implies(s.table[number] == Status.OPEN, s.timers[number] == 1)


def no_timer_is_left_behind(s: State, number: Number) -> bool:
    """Otherwise it goes off for a transaction that has ended, and timers are more and more."""
    return implies(s.timers[number] != 0, s.table[number] == Status.OPEN)


def who_takes_part_is_settled_before_the_end(s: State, number: Number) -> bool:
    """Otherwise a topic never learns the outcome."""
    return implies(Status.OPEN < s.log[number], s.added[number] == s.settled[number])


def only_a_life_that_no_clock_measures_ends_early(s: State, number: Number) -> bool:
    """Otherwise the work of a client that is in time is thrown away."""
    return implies(0 < s.left[number], s.lives[number] < AT_BIRTH or FOR_EVER <= s.lives[number])


def a_transaction_lives_its_time(s: State, number: Number) -> bool:
    """Otherwise the work of a client that is in time is thrown away."""
    return s.left[number] <= 0


def a_slot_is_taken_with_the_beginning(before: State, after: State, number: Number) -> bool:
    """Otherwise the limit counts fewer than there are."""
    began = before.log[number] == Status.ABSENT and after.log[number] != Status.ABSENT
    counted = after.begun[number] == before.begun[number] + 1 and after.active == before.active + 1
    return implies(began or before.begun[number] < after.begun[number], began and counted)


def a_slot_is_freed_with_the_outcome(before: State, after: State, number: Number) -> bool:
    """Otherwise slots leak until every request is ignored; or one is freed too early, and the limit counts too few."""
    moved = before.log[number] != after.log[number] and takes_a_slot(before.log[number])
    return implies(moved, after.active == before.active - (1 if Status.COMMITTED <= after.log[number] else 0))


def an_outcome_is_the_one_that_was_decided(before: State, after: State, number: Number) -> bool:
    """Otherwise some topics commit what others abort."""
    was = before.log[number]
    now = after.log[number]
    decided = was == Status.OPEN and (now == Status.COMMITTING or now == Status.ABORTING)
    ended = (was == Status.COMMITTING and now == Status.COMMITTED) or (was == Status.ABORTING and now == Status.ABORTED)
    return implies(was != Status.ABSENT and was != now, decided or ended)


def all_who_are_admitted_are_counted(before: State, after: State, request: Request) -> bool:
    """Otherwise a request that was burnt keeps its place, until all are ignored; or the limit counts too few."""
    more = after.pending[request] - before.pending[request]
    return implies(more != 0 and after.running == 1, after.admitted == before.admitted + more)


def what_became_of_a_request_stays(before: State, after: State, request: Request) -> bool:
    """Otherwise a request that was ignored, or came to nothing, is answered after all."""
    was = before.fates[request]
    now = after.fates[request]
    came_of_it = was == Fate.ADMITTED and (now == Fate.BEGUN or now == Fate.BURNT)
    asked = was == Fate.NEW and (now == Fate.ADMITTED or now == Fate.IGNORED)
    return implies(was != now, asked or came_of_it or (was == Fate.BEGUN and now == Fate.ANSWERED))


def what_was_in_memory_is_gone(before: State, after: State, number: Number, request: Request) -> bool:
    """Otherwise a coordinator continues with a state that another has changed since."""
    lost = after.table[number] == Status.ABSENT and after.timers[number] == 0 and after.pending[request] == 0
    return implies(after.running < before.running, lost)


def a_crowd_is_of_one_load(before: State, after: State) -> bool:
    """Otherwise a crowd of long ago excuses more transactions than the limit."""
    fresh = after.crowd == after.admitted and after.peak == after.active and after.loaded == after.active
    return implies(before.running < after.running, fresh and after.ignored == 0)


def an_ignored_request_leaves_nothing_behind(before: State, after: State, number: Number, request: Request) -> bool:
    """Otherwise a slot given to no client is never freed, or it is unknown how many clients wait in vain."""
    met_with_silence = before.fates[request] != after.fates[request] and after.fates[request] == Fate.IGNORED
    same_log = after.end == before.end and after.log[number] == before.log[number]
    same = same_log and after.active == before.active and after.admitted == before.admitted
    return implies(met_with_silence, after.ignored == before.ignored + 1) and implies(
        before.ignored < after.ignored, same and after.table[number] == before.table[number]
    )


def no_transaction_is_active(s: State) -> bool:
    """Otherwise it is left undecided, and consumers wait for ever behind its messages."""
    return s.active == 0


def no_request_to_begin_is_left(s: State) -> bool:
    """Otherwise a client waits for a transaction that never begins."""
    return s.admitted == 0


INITIAL = State()
ACTIONS = (open, unload, load, recover, admit, ignore, burn, begin, hand, add, decide, time_out, finish, acknowledge)
INVARIANTS = (
    the_active_stay_within_the_limit, a_log_is_of_one_coordinator,
    only_a_crowd_passes_the_limit, a_limit_below_zero_lets_nobody_in, the_peak_is_the_most,
    silence_means_that_the_limit_was_reached, nothing_begins_unasked, a_request_waits_while_nothing_has_come_of_it,
    a_transaction_is_its_requests, a_request_begins_one_transaction,
    a_number_is_used_once, numbers_to_come_are_unused, nobody_works_in_what_never_began,
    nobody_shares_a_transaction, an_end_has_one_outcome, a_client_is_told_the_truth, nothing_that_ended_comes_back,
    no_active_transaction_is_forgotten, a_timer_runs_for_every_open_transaction, no_timer_is_left_behind,
    who_takes_part_is_settled_before_the_end, only_a_life_that_no_clock_measures_ends_early,
    a_transaction_lives_its_time,
)
STEP_PROPERTIES = (
    a_slot_is_taken_with_the_beginning, a_slot_is_freed_with_the_outcome, an_outcome_is_the_one_that_was_decided,
    all_who_are_admitted_are_counted, what_became_of_a_request_stays,
    what_was_in_memory_is_gone, a_crowd_is_of_one_load, an_ignored_request_leaves_nothing_behind,
)
AT_REST = (no_transaction_is_active, no_request_to_begin_is_left)
