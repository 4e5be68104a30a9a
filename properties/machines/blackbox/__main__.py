"""Kills, interrupts, forks and limits real processes of a store, until that was done often enough.

python -m gapless.properties.machines.blackbox --kills 5000 --jobs 2
python -m gapless.properties.machines.blackbox --subject 'CMD …' --no-check

The subject is any command that speaks the protocol of `docs/black-box.md`; ours by default.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial

from gapless.properties.campaign import command, run, show, without_end
from gapless.properties.machines.blackbox.cases import run_cases
from gapless.properties.machines.blackbox.tally import BlackBoxTally, FailedCase

OURS = f"{sys.executable} -X faulthandler -m gapless.impl.subject"
STRETCH = 10
"""Cases that a process runs before it tells how far it is."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases; 1 if one fails, or if too little of something was tried."""
    parser = command(__package__, __doc__, kills=(5000, "kills and interrupts, together"))
    parser.add_argument("--subject", metavar="CMD", default=OURS, help="whom to try (default: our store)")
    parser.add_argument("--no-check", action="store_true", help="its folder is nothing that `gapless check` knows")
    asked = parser.parse_args(arguments)
    tally = BlackBoxTally()
    one = partial(run_cases, command=asked.subject, checked=not asked.no_check, until=asked.cases)
    seconds = run(one, without_end(asked, STRETCH), tally, asked, until=asked.cases)
    options = ("" if asked.subject == OURS else f" --subject '{asked.subject}'") + " --no-check" * asked.no_check
    for failed in tally.failures:
        show(*_story(failed, options))
    show(*(f"skipped {skipped}" for skipped in sorted(tally.skipped)))
    show(*(f"too few {few}" for few in tally.too_few()))
    show(f"{tally}: in {seconds:.0f} s, {len(tally.failures)} stores failed")
    return int(bool(tally.failures) or any(tally.too_few()))


def _story(failed: FailedCase, options: str) -> Iterator[str]:
    yield f"case {failed.seed}:"
    yield from (f"{number:3}. {line}" for number, line in enumerate(failed.lines, 1))
    yield failed.wrong
    yield f"The store is kept in {failed.kept}, and next to it what was written to standard error."
    again = f"python -m {__package__}{options} --seed {failed.seed} --kills 1"
    yield f"Again, as far as processes repeat themselves: {again}"


if __name__ == "__main__":
    sys.exit(main())
