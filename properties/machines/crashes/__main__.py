"""Tries crash cases until the power has failed as often as was asked for, or one case again.

`python -m gapless.properties.machines.crashes --points 10000 --jobs 2`; `--recorded 10` records every tenth case, and
checks what was recorded.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from rich.console import Console

from gapless.properties.machines.crashes.crash_cases import MakeSubject, many, shortest, story
from gapless.properties.machines.subject_by_name import OURS, left_out, subject_by_name


def replay(make: MakeSubject, case: str, console: Console, *, options: str = "", recorded: bool = False) -> bool:
    """Print a case, line by line; return whether it passes."""
    lines, error = story(make, case, recorded=recorded)
    for number, line in enumerate(lines, 1):
        console.print(f"{number:3}. {line}", markup=False, highlight=False, soft_wrap=True)
    if error is not None:
        console.print(f"{type(error).__name__}: {error}", markup=False, highlight=False, soft_wrap=True)
        again = (
            f'Again: python -m gapless.properties.machines.crashes{options} --again "{case}"'
            + " --recorded 1" * recorded
        )
        console.print(again, markup=False, highlight=False)
    return error is None


def main(arguments: Sequence[str] | None = None) -> int:
    """Try cases, or one case again; 1 if one fails."""
    parser = argparse.ArgumentParser(
        prog="python -m gapless.properties.machines.crashes", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--points", type=int, default=10_000, help="losses of power to try (default: 10000)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--seed", type=int, default=0, help="the first case (default: 0)")
    parser.add_argument("--again", metavar="CASE", help='one case: "seed 17", or its answers, as they were printed')
    parser.add_argument("--recorded", metavar="N", type=int, default=0, help="record and replay every N-th case")
    parser.add_argument("--subject", metavar="MODULE:CLASS", default=OURS, help="the store (default: ours)")
    chosen = parser.parse_args(arguments)
    try:
        make = subject_by_name(chosen.subject)
    except ValueError as error:
        parser.error(str(error))
    console, options = Console(), "" if chosen.subject == OURS else f" --subject {chosen.subject}"
    if chosen.again is not None:
        return int(not replay(make, chosen.again, console, options=options, recorded=chosen.recorded > 0))
    began = time.monotonic()
    tally, failures = many(make, chosen.points, chosen.jobs, chosen.seed, chosen.recorded)
    seconds = time.monotonic() - began
    console.print(
        f"{tally.points:,} crashes in {tally.cases:,} cases, {tally.points / seconds:,.0f} a second: {tally.records:,} "
        f"records found again and compared; {len(failures)} cases failed",
        highlight=False,
    )
    for name, counts in (
        ("lives ended by", tally.ends),
        ("the power failed in", tally.uses),
        ("steps", tally.steps),
        ("recordings replayed", tally.replayed),
    ):
        console.print(f"{name}: " + ", ".join(f"{what} {n:,}" for what, n in counts.most_common()), highlight=False)
    for line in left_out(make):
        console.print(line, markup=False, highlight=False)
    if failures:
        console.print(f"the first of them, {failures[0].case}, as short as was soon found:", highlight=False)
        case, _, recorded = failures[0]
        replay(make, shortest(make, case, recorded=recorded), console, options=options, recorded=recorded)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
