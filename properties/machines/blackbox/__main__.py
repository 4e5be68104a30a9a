"""Kills, interrupts, forks and limits real processes of a store, until that was done often enough.

python -m gapless.properties.machines.blackbox --kills 5000 --jobs 2
python -m gapless.properties.machines.blackbox --subject 'CMD …' --no-check

The subject is any command that speaks the protocol of `docs/black-box.md`; ours by default.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Protocol

from rich.console import Console

from gapless.properties.machines.blackbox.cases import run_cases
from gapless.properties.machines.blackbox.tally import BlackBoxTally, FailedCase
from gapless.properties.processes import workers

OURS = f"{sys.executable} -X faulthandler -m gapless.impl.subject"
STRETCH = 10
"""Cases that a process runs before it tells how far it is."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases; 1 if one fails, or if too little of something was tried."""
    parser = argparse.ArgumentParser(
        prog="python -m gapless.properties.machines.blackbox",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--subject", metavar="CMD", default=OURS, help="whom to try (default: our store)")
    parser.add_argument("--kills", type=int, default=5000, help="kills and interrupts, together (default: 5000)")
    parser.add_argument("--jobs", type=int, default=2, help="stores at a time (default: 2)")
    parser.add_argument("--seed", type=int, default=0, help="the first case (default: 0)")
    parser.add_argument("--no-check", action="store_true", help="its folder is nothing that `gapless check` knows")
    chosen = parser.parse_args(arguments)
    console, began = Console(), time.monotonic()
    tally = _run(chosen.subject, chosen.kills, chosen.jobs, chosen.seed, checked=not chosen.no_check)
    show = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    for failed in tally.failures:
        show(*_story(failed, chosen.subject, checked=not chosen.no_check), sep="\n")
    for skipped in sorted(tally.skipped):
        show(f"skipped {skipped}")
    for few in tally.too_few():
        show(f"too few {few}")
    seconds = time.monotonic() - began
    show(f"{tally}: in {seconds:.0f} s, {len(tally.failures)} stores failed")
    return int(bool(tally.failures) or any(tally.too_few()))


def _story(failed: FailedCase, subject: str, *, checked: bool) -> Iterator[str]:
    yield f"case {failed.seed}:"
    yield from (f"{number:3}. {line}" for number, line in enumerate(failed.lines, 1))
    yield failed.wrong
    yield f"The store is kept in {failed.kept}, and next to it what was written to standard error."
    options = ("" if subject == OURS else f" --subject '{subject}'") + " --no-check" * (not checked)
    again = f"python -m {__package__}{options} --seed {failed.seed} --kills 1"
    yield f"Again, as far as processes repeat themselves: {again}"


def _run(subject: str, kills: int, jobs: int, seed: int, *, checked: bool) -> BlackBoxTally:
    """Cases from `seed` on, several at a time, until it is enough or one fails."""
    tally = BlackBoxTally()
    stretches = (range(first, first + STRETCH) for first in count(seed, STRETCH))
    with _progress(kills) as progress, workers(jobs) as pool:
        one = partial(run_cases, command=subject, checked=checked, until=kills)
        running: set[Future[BlackBoxTally]] = {pool.submit(one, next(stretches)) for _ in range(jobs)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                tally.add(future.result())
                progress(tally)
                if tally.disturbed < kills and not tally.failures:
                    running.add(pool.submit(one, next(stretches)))
    return tally


class _Progress(Protocol):
    def __call__(self, tally: BlackBoxTally) -> None:
        """Show how far it is."""


@contextmanager
def _progress(kills: int) -> Iterator[_Progress]:
    """A progress bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda tally: None  # noqa: ARG005 - no terminal
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=kills)

        def show(tally: BlackBoxTally) -> None:
            text = f"{tally.counts['acknowledged messages']:,} acknowledged, {len(tally.failures)} failed"
            bar.update(task, completed=tally.disturbed, description=text)

        yield show


if __name__ == "__main__":
    sys.exit(main())
