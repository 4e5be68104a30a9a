"""Faults planted in the implementation, and the machines that find them by comparison with specs.

A machine that nothing can fail proves nothing. Each fault replaces one function of `impl/` by one that does what a
broker really did (`like`: its code in docs/defects.md) or what an engineer may well write; each must be found.

`python -m gapless.properties.faults.implementation` tries every fault against its machine, and prints after how many
cases it was found; `--write` keeps the table in `implementation.md`. It exits with 1 if a fault is not found.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from gapless.properties.faults import coordination_faults, dispatch_faults, service_faults, storage_faults
from gapless.properties.faults.fault_injection import Faults
from gapless.properties.machines.crashes import crash_cases
from gapless.properties.machines.interleavings import schedule_cases
from gapless.properties.machines.stateful import dispatch_machine
from gapless.properties.processes import workers
from gapless.properties.reference_store import whole_store
from gapless.properties.reference_store.coordination import coordination_cases, coordinator_programs, permits_machine
from gapless.properties.reference_store.store_subject import ReferenceStore
from gapless.properties.reference_store.transactional import service_walk

FirstFailure = Callable[[Any, int], tuple[int, str] | None]


def _of_ours(first_failure: Callable[[int], tuple[int, str] | None]) -> FirstFailure:
    """A machine that knows no other subject than ours."""
    return lambda _subject, cases: first_failure(cases)


MACHINES: dict[str, tuple[Faults, tuple[FirstFailure, ...]]] = {
    "crashes": (storage_faults.FAULTS, (crash_cases.first_failure,)),
    "coordinator": (
        coordination_faults.COORDINATOR,
        (_of_ours(coordinator_programs.first_failure), _of_ours(coordination_cases.first_failure)),
    ),
    "permits": (
        coordination_faults.PERMITS,
        (_of_ours(permits_machine.first_failure), _of_ours(coordination_cases.first_failure)),
    ),
    "service": (service_faults.FAULTS, (_of_ours(service_walk.first_failure),)),
    "whole store": (storage_faults.WHOLE_STORE, (_of_ours(whole_store.first_failure),)),
    "interleavings": (dispatch_faults.FAULTS, (schedule_cases.first_failure, dispatch_machine.first_failure)),
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
        for tried, first_failure in enumerate(machines):
            found = first_failure(ReferenceStore, cases)
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
    parser = argparse.ArgumentParser(
        prog="python -m gapless.properties.faults.implementation", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--write", action="store_true", help="write the table to properties/faults/implementation.md")
    chosen = parser.parse_args(arguments)
    wanted = [(machine, fault.name) for machine, (faults, _) in MACHINES.items() for fault in faults]
    with workers(chosen.jobs) as pool:
        results = list(pool.map(search, *zip(*wanted, strict=True)))
    if chosen.write:
        TABLE.write_text(table(results))
    console = Console()
    for row in results:
        after = f"{row.after:5}" if row.after else "  not"
        console.print(f"{row.machine:13} {after}  {row.name}", markup=False, highlight=False)
    missing = sum(not row.after for row in results)
    console.print(f"{len(results) - missing} of {len(results)} faults are found", highlight=False)
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
