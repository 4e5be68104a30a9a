"""Small cases in every order of their actors' steps, with a crash at every point; all of them, or one by its name.

python -m gapless.properties.reference_store.orders --jobs 2
python -m gapless.properties.reference_store.orders --stride 100 --case "a timeout and a reply"
"""

from __future__ import annotations

import sys
from functools import partial

from gapless.properties.campaign import CaseTally, command, run, show
from gapless.properties.reference_store.orders.cases import CASES, Part, one, parts


def main() -> int:
    """Run them; 1 if anything fails."""
    parser = command(__package__, __doc__)
    parser.add_argument("--case", choices=CASES, help="one case")
    parser.add_argument("--stride", type=int, default=1, help="one of so many orders (default: all)")
    asked = parser.parse_args()
    tally = CaseTally()
    todo = [(name, some) for name in CASES if asked.case in (None, name) for some in parts(name, asked.stride)]
    seconds = run(partial(one, stride=asked.stride), todo, tally, asked, report=_report)
    show(f"{_text(tally)}, {len(tally.failures)} failed, in {seconds:.0f} s")
    return int(bool(tally.failures))


def _report(part: Part, tally: CaseTally, seconds: float) -> None:
    name, some = part
    show(f"{seconds:5.0f} s  {name}, from order {some.start:,} on: {_text(tally)}", *tally.failures)


def _text(tally: CaseTally) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in tally.counts.items())


if __name__ == "__main__":
    sys.exit(main())
