"""Random walks over transactions, compared with their specs, through crashes; or one of them again.

python -m gapless.properties.reference_store.transactional --walks 5000 --jobs 2
python -m gapless.properties.reference_store.transactional --walks 5000 --faults
python -m gapless.properties.reference_store.transactional --again 17
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from functools import partial

from gapless.properties.processes import workers
from gapless.properties.reference_store.transactional.walk_cases import PART, failure, part


def main() -> int:
    """Run them; 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--walks", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first walk")
    parser.add_argument("--faults", action="store_true", help="on disks that fill and fail, and whose files expire")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--again", type=int, metavar="SEED", help="one walk")
    asked = parser.parse_args()
    if asked.again is not None:
        wrong, _ = failure(asked.again, faults=asked.faults)
        print(wrong or "nothing is wrong")  # noqa: T201 - a command
        return int(wrong is not None)
    end = asked.first + asked.walks
    parts = [range(low, min(low + PART, end)) for low in range(asked.first, end, PART)]
    failed, tally = list[str](), Counter[str]()
    with workers(asked.jobs) as pool:
        for some, happened in pool.map(partial(part, faults=asked.faults), parts):
            failed += some
            tally += happened
    crashes = tally["power"] + tally["kill"]
    print(f"{asked.walks:,} walks, {crashes:,} crashes, {len(failed)} failed")  # noqa: T201
    for wrong in failed:
        print(wrong)  # noqa: T201
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
