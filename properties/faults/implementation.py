"""Faults planted in the implementation, and the machines that find them by comparison with specs.

A machine that nothing can fail proves nothing. Each fault replaces one function of `impl/` by one that does what a
broker really did (`like`: its code in docs/defects.md) or what an engineer may well write; each must be found.

`python -m gapless.properties.faults.implementation` tries every fault against its machine, and prints after how many
cases it was found; `--write` keeps the table in `implementation.md`. It exits with 1 if a fault is not found.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from gapless.properties.campaign import command, first_failure, show
from gapless.properties.faults.planted import coordination_faults, dispatch_faults, service_faults, storage_faults
from gapless.properties.faults.planted.fault_injection import Faults
from gapless.properties.machines.crashes import crash_cases
from gapless.properties.machines.interleavings import schedule_cases
from gapless.properties.machines.stateful import failure_count
from gapless.properties.machines.stateful.dispatch_machine import DispatchMachine
from gapless.properties.processes import workers
from gapless.properties.reference_store.coordination.coordination_cases import run_case
from gapless.properties.reference_store.coordination.coordinator.programs import run_program
from gapless.properties.reference_store.coordination.permits.machine import PermitsMachine
from gapless.properties.reference_store.store_subject import ReferenceStore
from gapless.properties.reference_store.transactional.service_walk import walk
from gapless.properties.reference_store.whole_store import life_of_a_store

FirstFailure = Callable[[int], tuple[int, str] | None]

PROGRAMS, COORDINATION = partial(first_failure, run_program), partial(first_failure, run_case)
PERMITS = partial(failure_count.first_failure, PermitsMachine)
CRASHES = partial(crash_cases.first_failure, ReferenceStore)
SCHEDULES = partial(schedule_cases.first_failure, ReferenceStore)
DISPATCH = partial(failure_count.first_failure, DispatchMachine.of(ReferenceStore))
STORES = 20  # at most: each has files and threads of its own

MACHINES: dict[str, tuple[Faults, tuple[FirstFailure, ...]]] = {
    "crashes": (storage_faults.FAULTS, (CRASHES,)),
    "coordinator": (coordination_faults.COORDINATOR, (PROGRAMS, COORDINATION)),
    "permits": (coordination_faults.PERMITS, (PERMITS, COORDINATION)),
    "service": (service_faults.FAULTS, (partial(first_failure, walk),)),
    "whole store": (storage_faults.WHOLE_STORE, (lambda cases: first_failure(life_of_a_store, min(cases, STORES)),)),
    "interleavings": (dispatch_faults.FAULTS, (SCHEDULES, DISPATCH)),
}
"""By name: the faults, and the machines that look for them one after the other."""

CASES = 600
"""Within so many cases each fault must be found; they are the same on every machine, every time."""

MISFIT = re.compile(r"^TypeError: .* (positional|keyword|required) .*argument")

TABLE = Path(__file__).with_name("implementation.md")


class Detection(NamedTuple):
    """The fate of a fault. `after`: cases, 0 if it was not found · `wrong`: the machine's report."""

    machine: str
    name: str
    breaks: str
    like: str
    after: int
    wrong: str


def search(machine: str, name: str, cases: int = CASES) -> Detection:
    """Plant a fault, and let the machines look for it. Raises TypeError where what is planted is called otherwise."""
    faults, machines = MACHINES[machine]
    fault = next(fault for fault in faults if fault.name == name)
    after, wrong = 0, ""
    with fault.planted():
        for tried, look in enumerate(machines):
            found = look(cases)
            if found is not None:
                if MISFIT.search(found[1]):  # it breaks at once, and shows nothing
                    raise TypeError(f"{name}: {found[1]}: give it the arguments of what it stands in for")
                after, wrong = tried * cases + found[0], found[1]
                break
    return Detection(machine, name, fault.breaks, fault.like or "", after, " ".join(wrong.split()))


def table(results: Sequence[Detection]) -> str:
    """The page that is kept."""
    rows = [
        f"| {row.machine} | {row.name} | {row.breaks} | {_linked(row.like)} | {row.after or 'not found'} "
        f"| {_short(row.wrong)} |"
        for row in results
    ]
    return "\n".join(
        (
            "# Faults planted in the implementation, and what found them",
            "",
            "Made by `python -m gapless.properties.faults.implementation --write`. *like*: the code of a",
            "[documented defect](../../docs/defects.md). *after*: cases until the machine found it,",
            f"of at most {CASES}.",
            "",
            "| machine | fault | what it breaks | like | after | the first sign of it |",
            "| --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
        )
    )


def _linked(like: str) -> str:
    return like and f"[{like}](../../docs/defects.md#{like.lower()})"


def _short(text: str, width: int = 90) -> str:
    text = text.replace("|", "\\|")
    return text if len(text) <= width else f"{text[: width - 1]}…"


def main(arguments: Sequence[str] | None = None) -> int:
    """Try all faults; 1 where one is not found."""
    parser = command("gapless.properties.faults.implementation", __doc__)
    parser.add_argument("--write", action="store_true", help="write the table to properties/faults/implementation.md")
    chosen = parser.parse_args(arguments)
    wanted = [(machine, fault.name) for machine, (faults, _) in MACHINES.items() for fault in faults]
    with workers(chosen.jobs) as pool:
        results = list(pool.map(search, *zip(*wanted, strict=True)))
    if chosen.write:
        TABLE.write_text(table(results))
    show(*(f"{row.machine:13} {row.after or 'not':>5}  {row.name}" for row in results))
    missing = sum(not row.after for row in results)
    show(f"{len(results) - missing} of {len(results)} faults are found")
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
