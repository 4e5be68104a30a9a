"""Interrupts every verb of a store at every point, and counts; or runs one case again.

python -m gapless.properties.machines.interrupts --jobs 2
python -m gapless.properties.machines.interrupts --again "append.full 17 close"
"""

from __future__ import annotations

import sys
import traceback
from functools import partial

from gapless.properties.campaign import CaseTally, command, run, show
from gapless.properties.machines.interrupts.interrupt_cases import VERBS, InterruptCase, every_point, run_case
from gapless.properties.machines.mismatch import Mismatch

CHECKED = 20
"""So many cases have one among them whose store the strict check judges, too."""


def main() -> int:
    """Run the cases, or one again; 1 if one fails."""
    parser = command(__package__, __doc__, "one case: a verb, a point, and how the store's life ends")
    parser.add_argument("--step", type=int, default=1, help="interrupt at every so many-th point (default: 1)")
    asked = parser.parse_args()
    if asked.again is not None:
        try:
            return _again(InterruptCase.parse(asked.again))
        except ValueError as error:
            parser.error(str(error))
    tally = CaseTally()
    verbs = sorted(VERBS, reverse=True)  # `open` has the most points
    seconds = run(partial(every_point, step=asked.step, checked=CHECKED), verbs, tally, asked, report=_report)
    show(f"{tally.cases:,} interrupts in {seconds:.0f} s, {len(tally.failures)} failed")
    return int(bool(tally.failures))


def _report(verb: str, tally: CaseTally, _seconds: float) -> None:
    show(f"{verb:20} {tally.cases:6,} points, {len(tally.failures)} failed")
    for case, wrong in tally.failures:
        show(f"  {wrong}", f'  Again: python -m {__package__} --again "{case}"')


def _again(case: InterruptCase) -> int:
    try:
        reached = run_case(case, checked=True)
    except Mismatch:
        traceback.print_exc()
        return 1
    show(f"{case}: {'passes' if reached else 'the verb ends before that point'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
