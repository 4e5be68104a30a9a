"""Interrupts every verb of a store at every point, and counts; or runs one case again.

python -m gapless.properties.machines.interrupts --jobs 2
python -m gapless.properties.machines.interrupts --again "append.full 17 close"
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from functools import partial

from gapless.properties.machines.interrupts import interrupt_cases
from gapless.properties.machines.interrupts.interrupt_cases import VERBS, InterruptCase
from gapless.properties.machines.mismatch import Mismatch
from gapless.properties.processes import workers

CHECKED = 20
"""So many cases have one among them whose store the strict check judges, too."""


def main() -> int:
    """Run the cases, or one again; 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", type=int, default=1, help="interrupt at every so many-th point (default: 1)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--again", metavar="CASE", help="one case: a verb, a point, and how the store's life ends")
    asked = parser.parse_args()
    if asked.again is not None:
        try:
            return _again(InterruptCase.parse(asked.again))
        except ValueError as error:
            parser.error(str(error))
    began, failed, points = time.monotonic(), 0, 0
    with workers(asked.jobs) as pool:
        one = partial(interrupt_cases.every_point, step=asked.step, checked=CHECKED)
        for tally in pool.map(one, sorted(VERBS, reverse=True)):  # `open` has the most points
            points += tally.points
            failed += len(tally.failures)
            print(f"{tally.verb:20} {tally.points:6,} points, {len(tally.failures)} failed", flush=True)  # noqa: T201
            for case, wrong in tally.failures:
                print(f"  {wrong}")  # noqa: T201
                print(f'  Again: python -m gapless.properties.machines.interrupts --again "{case}"')  # noqa: T201
    seconds = time.monotonic() - began
    print(f"{points:,} interrupts in {seconds:.0f} s, {failed} failed")  # noqa: T201 - a command
    return int(failed > 0)


def _again(case: InterruptCase) -> int:
    try:
        reached = interrupt_cases.run_case(case, checked=True)
    except Mismatch:
        traceback.print_exc()
        return 1
    print(f"{case}: {'passes' if reached else 'the verb ends before that point'}")  # noqa: T201 - a command
    return 0


if __name__ == "__main__":
    sys.exit(main())
