"""Runs a coordinator and its clients in many cases of all that may go wrong, and under crowds; or runs one case again.

python -m gapless.properties.reference_store.coordination --cases 10000 --jobs 2
python -m gapless.properties.reference_store.coordination --again 17
"""

from __future__ import annotations

import sys
from functools import partial

from gapless.properties.campaign import (
    ANSWERS,
    CaseTally,
    command,
    first_failure,
    in_parts,
    judged,
    replay,
    run,
    show,
    show_counts,
    show_failures,
)
from gapless.properties.reference_store.coordination.coordination_cases import CoordinationCase
from gapless.properties.reference_store.coordination.coordinator.programs import run_program
from gapless.properties.reference_store.coordination.crowds import Crowd, crowd_outside, crowd_within

PART = 50  # cases that a process does at a time


def main() -> int:
    """Run many cases and both crowds, or one case again; 1 if one fails."""
    parser = command(__package__, __doc__, ANSWERS, cases=(10_000, "random cases"))
    parser.add_argument("--within", type=int, default=10_000, help="clients of a crowd within the process")
    parser.add_argument("--outside", type=int, default=500, help="clients of a crowd over the loopback")
    parser.add_argument("--max", type=int, default=100, help="transactions that may be active then")
    asked = parser.parse_args()
    if asked.again is not None:
        return replay(CoordinationCase, asked.again)
    tally = CaseTally()
    seconds = run(partial(judged, make=CoordinationCase), in_parts(asked, PART), tally, asked)
    show(f"{tally.cases:,} cases, {len(tally.failures)} failed; {seconds:.0f} s")
    show_counts(tally.counts)
    broken = first_failure(run_program, asked.cases)
    show(f"{asked.cases:,} long programs: {'nothing is wrong' if broken is None else broken}")
    show_failures(tally, CoordinationCase, f"python -m {__package__}")
    if asked.within:
        show(_text("within the process", crowd_within(asked.within, asked.max)))
    if asked.outside:
        show(_text("over the loopback", crowd_outside(asked.outside, asked.max)))
    return int(bool(tally.failures) or broken is not None)


def _text(where: str, crowd: Crowd) -> str:
    waited = f"; they waited {min(crowd.waited):.3f} to {max(crowd.waited):.3f} s" if crowd.waited else ""
    return (
        f"{crowd.clients:,} clients {where}: at most {crowd.peak} active, {crowd.served:,} served, "
        f"{crowd.ignored:,} ignored{waited}"
    )


if __name__ == "__main__":
    sys.exit(main())
