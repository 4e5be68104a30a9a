"""Runs a small store in many orders of its actors' steps and counts what happened; or runs one case again.

python -m gapless.properties.machines.interleavings --schedules 100000 --jobs 2
python -m gapless.properties.machines.interleavings --again "queues=0,1,0 batch=2: append*3 scan w1*2 …"
python -m gapless.properties.machines.interleavings --subject my_store:MyStore
"""

from __future__ import annotations

import sys
from functools import partial

from gapless.properties.campaign import command, in_parts, run, show, show_counts
from gapless.properties.machines.interleavings.schedule_cases import (
    SMALL,
    SMALLEST,
    InterleavingTally,
    in_every_way,
    some,
    story,
)
from gapless.properties.machines.subject_option import add_subject
from gapless.properties.simulation.schedules import DoesNotFit

PART = 500  # runs that a process does at a time


def main() -> int:
    """Run many cases, or one again; 1 if one fails."""
    parser = command(__package__, __doc__, "one case, step by step", schedules=(100_000, "random runs"))
    add_subject(parser)
    asked = parser.parse_args()
    make = asked.subject
    if asked.again is not None:
        try:
            lines, right = story(make, asked.again)
        except (ValueError, DoesNotFit) as error:
            parser.error(str(error))
        show(*lines)
        return int(not right)
    tally = InterleavingTally()
    seconds = run(partial(some, make), in_parts(asked, PART), tally, asked)
    show(
        f"{tally.cases:,} schedules ({len(tally.different):,} different), {len(tally.failures)} failed; "
        f"{tally.steps:,} steps in {seconds:.0f} s; {60 * tally.cases / tally.seconds:,.0f} runs a minute of processor "
        "time"
    )
    show_counts(tally.counts)
    show(*make.left_out())
    for case, _ in tally.failures:
        again = f'Again: python -m {__package__}{make.option} --again "{case}"'
        show("", *story(make, case)[0], again)
    for plan in (*SMALLEST, *SMALL):
        explored = in_every_way(make, plan)
        show(f"every schedule of {plan}: {explored.states:,} states, {explored.schedules + explored.joined:,} runs")
    return int(bool(tally.failures))


if __name__ == "__main__":
    sys.exit(main())
