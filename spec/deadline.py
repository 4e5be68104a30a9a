"""One task that a broker does by itself when its time has come: a message to hand out, a half to ask about, an end.

No promise says how late a broker may be, so a task that waits beyond its time breaks none. But its operators
want to know. Time counts while the broker is known to be alive: one that is down is not late.
Source: docs/operator.md#overdue.
"""

from dataclasses import dataclass
from enum import IntEnum

from gapless.spec.language import implies, replace, require

ROUNDS = 20  # in which a task is done, or is overdue: a round may end early, and a pause of the process takes some
OP_ROUNDS = 10  # the same of an op, whose round looks at one list in memory
DAY = 86_400_000  # ms


class TaskKind(IntEnum):
    """The kinds of task, in the order in which specs name what waits."""

    NONE = 0
    HALF = 1  # a half whose producer is to be asked
    OP = 2  # a decision that an op is to name
    TIMER = 3  # a message that the timer wheel is to hand out
    DELAY = 4  # a message of a delay level that is to be handed out
    OPEN = 5  # a transaction that is to be aborted
    END = 6  # a transaction that is decided, and whose end is to be known to all that take part


@dataclass(frozen=True, slots=True)
class State:
    """The task, when it was to be done, and how late it is."""

    task: int = TaskKind.NONE
    due: int = 0  # ms since 1970, when its time came
    grace: int = 0  # ms that it may be late
    late: int = 0  # ms that the broker has lived since the time came
    found: int = 0  # ms that it was late when it was last found waiting


def rounds(task: int) -> int:
    """The number of rounds in which a task is done."""
    return OP_ROUNDS if task == TaskKind.OP else ROUNDS


def open(s: State, task: TaskKind, due: int, period: int) -> State:  # noqa: A001 - the step's name in every trace.
    """A task is found whose time came at `due`; every `period` ms the broker looks at what it has to do.

    Source: docs/operator.md#overdue.
    """
    require(s.task == TaskKind.NONE, "task-is-new", because="the task is new", otherwise="two tasks are taken for one")
    require(TaskKind.NONE < task and task <= TaskKind.END, "task-is-of-a-known-kind",
        because="the task is of a known kind", otherwise="it is unknown how long it may take")
    require(0 < period, "rounds-take-time",
        because="rounds take time", otherwise="every task is overdue as soon as its time has come")
    require(period <= DAY, "round-takes-a-day-at-most",
        because="a round takes a day at most", otherwise="no task is ever overdue")
    return replace(s, task=task, due=due, grace=rounds(task) * period)


def live(s: State, time: int) -> State:
    """The broker lives for `time` ms after the task's time has come.

    Source: docs/operator.md#overdue-now.
    """
    require(0 <= time, "time-does-not-go-back",
        because="time does not go back", otherwise="a task that is late seems to be in time")
    return replace(s, late=s.late + time)


def wait(s: State) -> State:
    """The task is not done yet.

    Source: docs/operator.md#overdue.
    """
    require(s.late <= s.grace, "task-is-done-when-its-time-has-come",
        because="a task is done when its time has come",
        otherwise="messages come late or never, and what waits for a transaction waits on")
    return replace(s, found=s.late)


def a_task_waits_within_its_grace(s: State) -> bool:
    """Otherwise messages come late or never, and what waits for a transaction waits on."""
    return s.found <= s.grace


def a_task_is_no_later_than_its_broker_lives(s: State) -> bool:
    """Otherwise a broker that was down is called late."""
    return 0 <= s.found and s.found <= s.late


def a_task_that_is_late_is_known(s: State) -> bool:
    """Otherwise it is unknown how long it may take."""
    kinds = TaskKind.NONE <= s.task and s.task <= TaskKind.END
    return kinds and implies(s.task == TaskKind.NONE, s.grace == 0) and implies(s.task != TaskKind.NONE, 0 < s.grace)


def a_task_keeps_its_time(before: State, after: State) -> bool:
    """Otherwise a task that is late gets more time."""
    same = after.due == before.due and after.grace == before.grace and after.task == before.task
    return implies(before.task != TaskKind.NONE, same)


def time_goes_on(before: State, after: State) -> bool:
    """Otherwise a task that is late seems to be in time."""
    return before.late <= after.late


# What can be done, from whatever state.


INITIAL = State()
ACTIONS = (open, live, wait)
INVARIANTS = (
    a_task_waits_within_its_grace, a_task_is_no_later_than_its_broker_lives, a_task_that_is_late_is_known,
)
STEP_PROPERTIES = (a_task_keeps_its_time, time_goes_on)
