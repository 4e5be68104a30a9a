"""Small cases in every order of their actors' steps, with a crash at every point; all of them, or one by its name.

python -m gapless.properties.reference_store.orders --jobs 2
python -m gapless.properties.reference_store.orders --stride 100 --case "a timeout and a reply"
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial

from gapless.properties.processes import workers
from gapless.properties.reference_store.orders.cases import CASES, one, parts
from gapless.properties.reference_store.orders.every_order import OrderTally


def main() -> int:
    """Run them; 1 if anything fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, help="one case")
    parser.add_argument("--stride", type=int, default=1, help="one of so many orders (default: all)")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    asked = parser.parse_args()
    names, seen, began = [asked.case] if asked.case else list(CASES), OrderTally(), time.monotonic()
    todo = [(name, some) for name in names for some in parts(name, asked.stride)]
    with workers(asked.jobs) as pool:
        tallies = pool.map(partial(one, stride=asked.stride), *zip(*todo, strict=True))
        for (name, some), tally in zip(todo, tallies, strict=True):
            seen.add(tally)
            since = time.monotonic() - began
            print(f"{since:5.0f} s  {name}, from order {some.start:,} on: {_shown(tally)}", flush=True)  # noqa: T201 - a command
            for failure in tally.failures:
                print(failure, flush=True)  # noqa: T201
    print(f"{_shown(seen)}, {len(seen.failures)} failed, in {time.monotonic() - began:.0f} s")  # noqa: T201
    return int(bool(seen.failures))


def _shown(tally: OrderTally) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in tally.counts.items())


if __name__ == "__main__":
    sys.exit(main())
