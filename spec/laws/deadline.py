"""Laws of `deadline`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import deadline
from gapless.spec.deadline import DAY, State, TaskKind
from gapless.spec.language import accepts, implies


def a_task_is_found_once(s: State, task: TaskKind, due: int, period: int) -> bool:
    """Otherwise two tasks are taken for one, or a task is overdue from its beginning."""
    known = TaskKind.NONE < task and task <= TaskKind.END
    regular = 0 < period and period <= DAY
    return accepts(deadline.open, s, task, due, period) == (s.task == TaskKind.NONE and known and regular)


def a_broker_may_live_on(s: State, time: int) -> bool:
    """Otherwise no task is ever late."""
    return accepts(deadline.live, s, time) == (0 <= time)


def a_task_may_wait_as_long_as_its_grace(s: State) -> bool:
    """Otherwise a broker that is in time is called late, or one that is late is not."""
    return accepts(deadline.wait, s) == (s.late <= s.grace)


def what_is_found_is_on_record(s: State, task: TaskKind, due: int, period: int) -> bool:
    """Otherwise it is unknown since when it waits."""
    return not accepts(deadline.open, s, task, due, period) or deadline.open(s, task, due, period).due == due


def a_task_that_waits_says_how_long(s: State) -> bool:
    """Otherwise it is unknown how near it is to being overdue."""
    return not accepts(deadline.wait, s) or deadline.wait(s).found == s.late


def _waits(s: State, task: TaskKind, due: int, period: int, time: int) -> State:
    return deadline.wait(deadline.live(deadline.open(s, task, due, period), time))


def a_task_has_its_rounds(s: State, task: TaskKind, due: int, period: int, time: int) -> bool:
    """Otherwise a task is overdue after a round that ended early, or never."""
    new = s.task == TaskKind.NONE and s.late == 0 and accepts(deadline.open, s, task, due, period) and 0 <= time
    return implies(new, accepts(_waits, s, task, due, period, time) == (time <= deadline.rounds(task) * period))


ENABLED = (
    a_task_is_found_once, a_broker_may_live_on, a_task_may_wait_as_long_as_its_grace, what_is_found_is_on_record,
    a_task_that_waits_says_how_long, a_task_has_its_rounds,
)
