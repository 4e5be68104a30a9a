"""A barrier: processes wait for one another, and continue all at once.

As TLA+'s Barrier has it.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, all_between, applies, implies, replace, require

Process = NewType("Process", int)
PROCESSES = 6


@dataclass(frozen=True, slots=True)
class State:
    """The processes that have come to the barrier."""

    processes: int = PROCESSES  # which no step changes
    waiting: Map[Process, bool] = Map(False)


def arrive(s: State, process: Process) -> State:
    """A process comes to the barrier."""
    applies(0 <= process < s.processes)
    applies(not s.waiting[process])
    return replace(s, waiting=s.waiting.set(process, True))


def open_it(s: State) -> State:
    """All processes continue."""
    require(
        all_between(0, s.processes, lambda p: s.waiting[Process(p)]),
        "all-have-arrived",
        because="all processes have arrived",
        otherwise="one continues while another one still works",
    )
    return replace(s, waiting=s.waiting.cleared())


def only_processes_wait(s: State, process: Process) -> bool:
    """Otherwise a stranger is waited for."""
    return 0 <= process < s.processes or not s.waiting[process]


def none_continues_while_another_one_works(before: State, after: State, a: Process, b: Process) -> bool:
    """Otherwise the barrier separates nothing."""
    return implies(0 <= a < before.processes and not before.waiting[a] and before.waiting[b], after.waiting[b])


INITIAL = State()
ACTIONS = (arrive, open_it)
INVARIANTS = (only_processes_wait,)
STEP_PROPERTIES = (none_continues_while_another_one_works,)
BOUND = Bound(
    says="all states",
    within=lambda s: True,
    numbers={"process": range(PROCESSES), "a": range(PROCESSES), "b": range(PROCESSES)},
)
