"""Runs a small store in many orders of its actors' steps and counts what happened; or runs one case again.

python -m gapless.properties.machines.interleavings --schedules 100000 --jobs 2
python -m gapless.properties.machines.interleavings --again "queues=0,1,0 batch=2: append*3 scan w1*2 …"
"""

from __future__ import annotations

import argparse
import sys
import time

from gapless.properties.machines.interleavings import schedule_cases
from gapless.properties.simulation.schedules import DoesNotFit


def main() -> int:
    """Run schedule_cases.many cases, or one again; 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=100_000, help="random runs")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first random run")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--again", metavar="CASE", help="one case, step by step")
    asked = parser.parse_args()
    if asked.again is not None:
        try:
            lines, right = schedule_cases.story(asked.again)
        except (ValueError, DoesNotFit) as error:
            parser.error(str(error))
        print(*lines, sep="\n")  # noqa: T201 - a command
        return 0 if right else 1
    return _night(asked.first, asked.schedules, asked.jobs)


def _night(first: int, count: int, jobs: int) -> int:
    began, seen = time.monotonic(), schedule_cases.InterleavingTally()
    for tally in schedule_cases.many(first, count, jobs):
        seen.add(tally)
    seconds = time.monotonic() - began
    print(  # noqa: T201 - a command
        f"{seen.runs:,} schedules ({len(seen.different):,} different), {len(seen.failures)} failed; "
        f"{seen.steps:,} steps in {seconds:.0f} s; {60 * seen.runs / seen.seconds:,.0f} runs a minute of processor time"
    )
    for what, times in sorted(seen.sometimes.items()):
        print(f"{times:>12,}  {what}")  # noqa: T201
    for case in seen.failures:
        again = f'Again: python -m gapless.properties.machines.interleavings --again "{case}"'
        print("", *schedule_cases.story(case)[0], again, sep="\n")  # noqa: T201
    for plan in (*schedule_cases.SMALLEST, *schedule_cases.SMALL):
        explored = schedule_cases.in_every_way(plan)
        runs = explored.schedules + explored.joined
        print(f"every schedule of {plan}: {explored.states:,} states, {runs:,} runs")  # noqa: T201
    return 1 if seen.failures else 0


if __name__ == "__main__":
    sys.exit(main())
