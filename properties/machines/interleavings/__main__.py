"""Runs a small store in many orders of its actors' steps and counts what happened; or runs one case again.

python -m gapless.properties.machines.interleavings --schedules 100000 --jobs 2
python -m gapless.properties.machines.interleavings --again "queues=0,1,0 batch=2: append*3 scan w1*2 …"
python -m gapless.properties.machines.interleavings --subject my_store:MyStore
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from gapless.properties.machines.interleavings import schedule_cases
from gapless.properties.machines.subject_by_name import OURS, left_out, subject_by_name
from gapless.properties.simulation.schedules import DoesNotFit
from gapless.properties.subject import Subject


def main() -> int:
    """Run schedule_cases.many cases, or one again; 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=100_000, help="random runs")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first random run")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--again", metavar="CASE", help="one case, step by step")
    parser.add_argument("--subject", metavar="MODULE:CLASS", default=OURS, help="the store (default: ours)")
    asked = parser.parse_args()
    try:
        make = subject_by_name(asked.subject)
    except ValueError as error:
        parser.error(str(error))
    if asked.again is not None:
        try:
            lines, right = schedule_cases.story(make, asked.again)
        except (ValueError, DoesNotFit) as error:
            parser.error(str(error))
        print(*lines, sep="\n")  # noqa: T201 - a command
        return 0 if right else 1
    return _night(make, asked.subject, asked.first, asked.schedules, asked.jobs)


def _night(make: Callable[[], Subject], named: str, first: int, count: int, jobs: int) -> int:
    began, seen = time.monotonic(), schedule_cases.InterleavingTally()
    for tally in schedule_cases.many(make, first, count, jobs):
        seen.add(tally)
    seconds = time.monotonic() - began
    print(  # noqa: T201 - a command
        f"{seen.runs:,} schedules ({len(seen.different):,} different), {len(seen.failures)} failed; "
        f"{seen.steps:,} steps in {seconds:.0f} s; {60 * seen.runs / seen.seconds:,.0f} runs a minute of processor time"
    )
    for what, times in sorted(seen.sometimes.items()):
        print(f"{times:>12,}  {what}")  # noqa: T201
    for line in left_out(make):
        print(line)  # noqa: T201
    for case in seen.failures:
        other = "" if named == OURS else f" --subject {named}"
        again = f'Again: python -m gapless.properties.machines.interleavings{other} --again "{case}"'
        print("", *schedule_cases.story(make, case)[0], again, sep="\n")  # noqa: T201
    for plan in (*schedule_cases.SMALLEST, *schedule_cases.SMALL):
        explored = schedule_cases.in_every_way(make, plan)
        runs = explored.schedules + explored.joined
        print(f"every schedule of {plan}: {explored.states:,} states, {runs:,} runs")  # noqa: T201
    return 1 if seen.failures else 0


if __name__ == "__main__":
    sys.exit(main())
