"""Random walks over transactions, compared with their specs, through crashes; or one of them again.

python -m gapless.properties.reference_store.transactional --walks 5000 --jobs 2
python -m gapless.properties.reference_store.transactional --walks 5000 --faults
python -m gapless.properties.reference_store.transactional --again 17
"""

from __future__ import annotations

import sys
from functools import partial

from gapless.properties.campaign import ANSWERS, CaseTally, command, in_parts, judged, replay, run, show, show_failures
from gapless.properties.reference_store.transactional.faulty_walk import FaultyWalk
from gapless.properties.reference_store.transactional.walk import TransactionWalk

PART = 50  # walks that a process takes at once


def main() -> int:
    """Run them; 1 if one fails."""
    parser = command(__package__, __doc__, ANSWERS, walks=(5000, "random walks"))
    parser.add_argument("--faults", action="store_true", help="on disks that fill and fail, and whose files expire")
    asked = parser.parse_args()
    make = FaultyWalk if asked.faults else TransactionWalk
    if asked.again is not None:
        return replay(make, asked.again)
    tally = CaseTally()
    run(partial(judged, make=make), in_parts(asked, PART), tally, asked)
    crashes = tally.counts["power"] + tally.counts["kill"]
    show(f"{tally.cases:,} walks, {crashes:,} crashes, {len(tally.failures)} failed")
    show_failures(tally, make, f"python -m {__package__}{' --faults' * asked.faults}")
    return int(bool(tally.failures))


if __name__ == "__main__":
    sys.exit(main())
