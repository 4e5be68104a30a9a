"""Faults planted in the implementation, and what finds them: the machines that hold it against the specs.

A machine that nothing can fail proves nothing. Each fault replaces one function of `impl/` by one that does what a
broker really did (`like`: its code in the bug zoo) or what an engineer may well write; each must be found.

`python -m gapless.properties.faults.implementation` tries every fault against its machine, and prints after how many
cases it was found; `--write` keeps the table in `implementation.md`. It exits with 1 if a fault is not found.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from rich.console import Console


@dataclass(frozen=True)
class Fault:
    """A fault that can be planted. `breaks`: what goes wrong · `like`: its code in the bug zoo, where one fits."""

    name: str
    breaks: str
    like: str | None
    planted: Callable[[], AbstractContextManager[None]]


@contextmanager
def replacing(owner: object, attribute: str, value: object) -> Iterator[None]:
    """Meanwhile the attribute of a class or a module is another one."""
    missing = object()
    before = vars(owner).get(attribute, missing)
    setattr(owner, attribute, value)
    try:
        yield
    finally:
        if before is missing:
            delattr(owner, attribute)
        else:
            setattr(owner, attribute, before)


MACHINES = {
    "crashes": ("gapless.properties.faults.storage", "gapless.properties.machines.crashes"),
    "interleavings": ("gapless.properties.faults.dispatch", "gapless.properties.machines.interleavings"),
}
"""By name: the module with the faults (`FAULTS`) that a machine must find, and the machine's (`first_failure`)."""

CASES = 600
"""Within so many cases each fault must be found; they are the same on every machine, every time."""

TABLE = Path(__file__).with_name("implementation.md")


class Found(NamedTuple):
    """What became of a fault. `after`: cases, 0 where it was not found · `wrong`: what the machine says."""

    machine: str
    name: str
    breaks: str
    like: str
    after: int
    wrong: str


def faults(machine: str) -> tuple[Fault, ...]:
    """The faults that a machine must find."""
    found: tuple[Fault, ...] = importlib.import_module(MACHINES[machine][0]).FAULTS
    return found


def search(machine: str, name: str, cases: int = CASES) -> Found:
    """Plant a fault and let its machine look for it."""
    fault = next(fault for fault in faults(machine) if fault.name == name)
    with fault.planted():
        found = importlib.import_module(MACHINES[machine][1]).first_failure(cases)
    after, wrong = found or (0, "")
    return Found(machine, name, fault.breaks, fault.like or "", after, " ".join(wrong.split()))


def table(results: Sequence[Found]) -> str:
    """The page that is kept."""
    rows = [
        f"| {row.machine} | {row.name} | {row.breaks} | {row.like} | {row.after or 'not found'} | {_short(row.wrong)} |"
        for row in results
    ]
    return "\n".join(
        (
            "# Faults planted in the implementation, and what found them",
            "",
            "Made by `python -m gapless.properties.faults.implementation --write`. *like*: the code of a real fault in",
            f"the bug zoo. *after*: cases until the machine found it, of at most {CASES}.",
            "",
            "| machine | fault | what it breaks | like | after | the first sign of it |",
            "| --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
        )
    )


def _short(text: str, width: int = 90) -> str:
    text = text.replace("|", "\\|")
    return text if len(text) <= width else f"{text[: width - 1]}…"


def main(arguments: Sequence[str] | None = None) -> int:
    """Try all faults; 1 where one is not found."""
    parser = argparse.ArgumentParser(
        prog="python -m gapless.properties.faults.implementation", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--write", action="store_true", help="keep the table in impl_faults.md")
    chosen = parser.parse_args(arguments)
    wanted = [(machine, fault.name) for machine in MACHINES if _is_there(machine) for fault in faults(machine)]
    with ProcessPoolExecutor(chosen.jobs, get_context("spawn")) as pool:
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


def _is_there(machine: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in MACHINES[machine])


if __name__ == "__main__":
    sys.exit(main())
