"""Laws of `coordinator`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import coordinator
from gapless.spec.coordinator import Fate, Request, State, Status
from gapless.spec.language import Number, accepts, implies


def a_coordinator_is_looked_at_once(s: State, limit: int) -> bool:
    """Otherwise the log of one coordinator is taken for that of another, or none can be looked at."""
    if not accepts(coordinator.open, s, limit):
        return s.opened == 1
    return not accepts(coordinator.open, coordinator.open(s, limit), limit)


def who_asks_is_admitted_or_met_with_silence(s: State, request: Request) -> bool:
    """Otherwise a request is neither answered nor ignored."""
    asked = s.running == 1 and s.fates[request] == Fate.NEW
    answered = accepts(coordinator.admit, s, request) or accepts(coordinator.ignore, s, request)
    return implies(asked and 0 <= s.active, answered)


def without_a_limit_nobody_is_ignored(s: State, request: Request) -> bool:
    """Otherwise clients wait for nothing."""
    return implies(s.limit == 0, not accepts(coordinator.ignore, s, request))


def who_is_ignored_is_ignored_for_good(s: State, request: Request) -> bool:
    """Otherwise a request that was met with silence is answered after all."""
    if not accepts(coordinator.ignore, s, request):
        return True
    ignored = coordinator.ignore(s, request)
    return not accepts(coordinator.admit, ignored, request) and not accepts(coordinator.ignore, ignored, request)


def who_does_not_run_lets_nobody_in(s: State, number: Number, request: Request, time: int, life: int) -> bool:
    """Otherwise a coordinator goes by a table that is not there."""
    asked = accepts(coordinator.admit, s, request) or accepts(coordinator.ignore, s, request)
    went = accepts(coordinator.burn, s, request) or accepts(coordinator.begin, s, number, request, time, life)
    return implies(s.running == 0, not asked and not went)


def who_does_not_run_ends_nothing(s: State, number: Number, to: Status) -> bool:
    """Otherwise two coordinators decide about one transaction."""
    ends = accepts(coordinator.decide, s, number, to) or accepts(coordinator.finish, s, number, to)
    return implies(s.running == 0, not ends and not accepts(coordinator.add, s, number))


def the_limit_is_the_one_that_was_set(s: State, request: Request) -> bool:
    """Otherwise a coordinator that is loaded with another limit does not heed it."""
    if s.fates[request] != Fate.NEW or not accepts(coordinator.recover, s, 0):
        return True
    unlimited = coordinator.recover(s, 0)
    idle = coordinator.recover(s, -1)
    return accepts(coordinator.admit, unlimited, request) and not accepts(coordinator.admit, idle, request)


def who_was_admitted_begins(s: State, request: Request, time: int, life: int) -> bool:
    """Otherwise a client that passed the limit waits for nothing."""
    room = s.limit == 0 or s.active < s.limit
    admitted = s.pending[request] == 1 and 0 < s.admitted
    return implies(admitted, accepts(coordinator.burn, s, request)) and implies(
        admitted and room, accepts(coordinator.begin, s, s.end, request, time, life)
    )


def what_began_is_handed_to_who_asked(s: State, number: Number) -> bool:
    """Otherwise a slot is taken by a transaction that no client works in; or two clients work in one."""
    request = s.owners[number]
    if not accepts(coordinator.hand, s, number, request):
        return s.begun[number] == s.handed[number]
    return not accepts(coordinator.hand, coordinator.hand(s, number, request), number, request)


def an_open_transaction_is_at_its_clients_disposal(s: State, number: Number) -> bool:
    """Otherwise a client can neither work in its transaction nor end it."""
    commits = accepts(coordinator.decide, s, number, Status.COMMITTING)
    aborts = accepts(coordinator.decide, s, number, Status.ABORTING)
    is_open = s.running == 1 and s.log[number] == Status.OPEN
    return implies(is_open, accepts(coordinator.add, s, number) and commits and aborts)


def who_takes_part_is_counted(s: State, number: Number) -> bool:
    """Otherwise a topic joins, and is not among those that learn the outcome."""
    return not accepts(coordinator.add, s, number) or s.added[number] < coordinator.add(s, number).added[number]


def a_transaction_has_its_time_and_no_more(
    s: State, number: Number, request: Request, time: int, life: int
) -> bool:
    """Otherwise the work of a client in time is thrown away, or a client that is gone keeps its slot."""
    if not accepts(coordinator.begin, s, number, request, time, life):
        return True
    begun = coordinator.begin(s, number, request, time, life)
    due = time + life
    early = accepts(coordinator.time_out, begun, number, due - 1)
    return accepts(coordinator.time_out, begun, number, due) and not early


def what_is_decided_ends(s: State, number: Number) -> bool:
    """Otherwise a transaction is COMMITTING for ever, and consumers wait behind its messages."""
    commits = s.running == 1 and s.log[number] == Status.COMMITTING
    aborts = s.running == 1 and s.log[number] == Status.ABORTING
    return implies(commits, accepts(coordinator.finish, s, number, Status.COMMITTED)) and implies(
        aborts, accepts(coordinator.finish, s, number, Status.ABORTED)
    )


def who_asks_is_told_the_outcome(s: State, number: Number, outcome: Status) -> bool:
    """Otherwise a client never knows what became of its work."""
    if not accepts(coordinator.acknowledge, s, number, outcome):
        return outcome != s.log[number] or outcome < Status.COMMITTED
    return coordinator.acknowledge(s, number, outcome).reported[number] == s.log[number]


def what_the_log_holds_comes_back(s: State, number: Number, status: Status) -> bool:
    """Otherwise a coordinator that was lost never comes back."""
    if not accepts(coordinator.load, s, number, status):
        return s.running == 1 or status != s.log[number]
    return coordinator.is_back(coordinator.load(s, number, status), number)


def rest_comes_when_all_has_ended(s: State, number: Number, request: Request, time: int, life: int) -> bool:
    """Otherwise what is left undecided is taken for done, or rest never comes."""
    if not accepts(coordinator.begin, s, number, request, time, life):
        return implies(s.first == s.end, coordinator.no_transaction_is_active(s))
    begun = coordinator.begin(s, number, request, time, life)
    ended = coordinator.finish(coordinator.decide(begun, number, Status.COMMITTING), number, Status.COMMITTED)
    rested = coordinator.no_transaction_is_active(s)
    rests = coordinator.no_transaction_is_active(begun)
    return coordinator.no_transaction_is_active(ended) == rested and not (rested and rests)


def rest_comes_when_all_are_answered(s: State, request: Request) -> bool:
    """Otherwise who waits for a transaction is forgotten, or rest never comes."""
    if not accepts(coordinator.admit, s, request):
        return implies(s.running == 0, coordinator.no_request_to_begin_is_left(s))
    asked = coordinator.admit(s, request)
    burnt = coordinator.burn(asked, request)
    rested = coordinator.no_request_to_begin_is_left(s)
    rests = coordinator.no_request_to_begin_is_left(asked)
    return coordinator.no_request_to_begin_is_left(burnt) == rested and not rests


def how_long_a_life_was_is_on_record(s: State, number: Number, time: int) -> bool:
    """Otherwise it is unknown if work was thrown away in time."""
    if not accepts(coordinator.time_out, s, number, time):
        return True
    return coordinator.time_out(s, number, time).left[number] == s.times[number] + s.lives[number] - time


def a_table_is_nobodys_while_its_coordinator_runs(s: State, limit: int, number: Number, status: Status) -> bool:
    """Otherwise what the coordinator goes by changes under its feet."""
    return not accepts(_load_behind_its_back, s, limit, number, status)


def _load_behind_its_back(s: State, limit: int, number: Number, status: Status) -> State:
    return coordinator.load(coordinator.recover(s, limit), number, status)


def what_came_to_nothing_is_on_record(s: State, request: Request) -> bool:
    """Otherwise it is unknown why its client was given no transaction."""
    return not accepts(coordinator.burn, s, request) or coordinator.burn(s, request).fates[request] == Fate.BURNT


def a_log_begins_with_its_first_transaction(
    s: State, number: Number, request: Request, time: int, life: int
) -> bool:
    """Otherwise a coordinator that comes back looks for transactions that never were."""
    if s.first != s.end or not accepts(coordinator.begin, s, number, request, time, life):
        return True
    return coordinator.begin(s, number, request, time, life).first == number


ENABLED_AFTER_DEVIATIONS = (
    a_coordinator_is_looked_at_once,
    who_asks_is_admitted_or_met_with_silence,
    without_a_limit_nobody_is_ignored,
    who_is_ignored_is_ignored_for_good,
    who_does_not_run_lets_nobody_in,
    who_does_not_run_ends_nothing,
    the_limit_is_the_one_that_was_set,
    who_was_admitted_begins,
    what_began_is_handed_to_who_asked,
    an_open_transaction_is_at_its_clients_disposal,
    who_takes_part_is_counted,
    a_transaction_has_its_time_and_no_more,
    what_is_decided_ends,
    who_asks_is_told_the_outcome,
    what_the_log_holds_comes_back,
    rest_comes_when_all_has_ended,
    rest_comes_when_all_are_answered,
    how_long_a_life_was_is_on_record,
    a_table_is_nobodys_while_its_coordinator_runs,
    what_came_to_nothing_is_on_record,
    a_log_begins_with_its_first_transaction,
)
