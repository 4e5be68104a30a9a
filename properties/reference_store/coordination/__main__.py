"""Runs a coordinator and its clients in many cases of all that may go wrong, and under crowds; or runs one case again.

python -m gapless.properties.reference_store.coordination --cases 10000 --jobs 2
python -m gapless.properties.reference_store.coordination --again 17
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from gapless.properties.reference_store.coordination import coordination_cases, coordinator_programs
from gapless.properties.reference_store.coordination.crowds import Crowd, crowd_outside, crowd_within


def main() -> int:
    """Run coordination_cases.many and both crowds, or one case again; 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000, help="random cases")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first case")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--within", type=int, default=10_000, help="clients of a crowd within the process")
    parser.add_argument("--outside", type=int, default=500, help="clients of a crowd over the loopback")
    parser.add_argument("--max", type=int, default=100, help="transactions that may be active then")
    parser.add_argument("--again", type=int, metavar="SEED", help="one case")
    asked = parser.parse_args()
    if asked.again is not None:
        wrong, seen = coordination_cases.failure(asked.again)
        print(wrong or "nothing is wrong", *(f"{n:>6}  {what}" for what, n in sorted(seen.items())), sep="\n")  # noqa: T201
        return int(wrong is not None)
    began = time.monotonic()
    failed, happened = dict[int, str](), Counter[str]()
    for some, counted in coordination_cases.many(asked.first, asked.cases, asked.jobs):
        failed |= some
        happened += counted
    print(f"{asked.cases:,} cases, {len(failed)} failed; {time.monotonic() - began:.0f} s")  # noqa: T201 - a command
    for what, times in sorted(happened.items()):
        print(f"{times:>12,}  {what}")  # noqa: T201
    broken = coordinator_programs.first_failure(asked.cases)
    print(f"{asked.cases:,} long programs: {'nothing is wrong' if broken is None else broken}")  # noqa: T201
    for seed, wrong in failed.items():
        print(f"{wrong}\nAgain: python -m gapless.properties.reference_store.coordination --again {seed}")  # noqa: T201
    if asked.within:
        _show("within the process", crowd_within(asked.within, asked.max))
    if asked.outside:
        _show("over the loopback", crowd_outside(asked.outside, asked.max))
    return int(bool(failed) or broken is not None)


def _show(where: str, crowd: Crowd) -> None:
    waited = f"; they waited {min(crowd.waited):.3f} to {max(crowd.waited):.3f} s" if crowd.waited else ""
    print(  # noqa: T201 - a command
        f"{crowd.clients:,} clients {where}: at most {crowd.peak} active, {crowd.served:,} served, "
        f"{crowd.ignored:,} ignored{waited}"
    )


if __name__ == "__main__":
    sys.exit(main())
