"""Tries crash cases until the power has failed as often as was asked for, or one case again.

python -m gapless.properties.machines.crashes --points 10000 --jobs 2
python -m gapless.properties.machines.crashes --again "seed 17"
python -m gapless.properties.machines.crashes --recorded 10      records every tenth case, and checks what was recorded
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from gapless.properties.campaign import answers, command, described, run, show, without_end
from gapless.properties.machines.crashes.crash_cases import shortest, some, story
from gapless.properties.machines.crashes.store_client import CrashTally
from gapless.properties.machines.subject_option import NamedSubject, add_subject

CHUNK = 50  # cases that one process tries at a time


def main(arguments: Sequence[str] | None = None) -> int:
    """Try cases, or one case again; 1 if one fails."""
    again = 'one case: "seed 17", or its answers, as they were printed'
    parser = command(__package__, __doc__, again, points=(10_000, "losses of power to try"))
    parser.add_argument("--recorded", metavar="N", type=int, default=0, help="record and replay every N-th case")
    add_subject(parser)
    asked = parser.parse_args(arguments)
    subject, recorded = asked.subject, asked.recorded > 0
    if asked.again is not None:
        try:
            answers(asked.again)
        except ValueError as error:
            parser.error(str(error))
        return int(not _replayed(subject, asked.again, recorded=recorded))
    tally = CrashTally()
    one = partial(some, subject, recorded=asked.recorded)
    seconds = run(one, without_end(asked, CHUNK), tally, asked, until=asked.cases)
    show(
        f"{tally.points:,} crashes in {tally.cases:,} cases, {tally.points / seconds:,.0f} a second: {tally.records:,} "
        f"records found again and compared; {len(tally.failures)} cases failed"
    )
    for name, counts in (
        ("lives ended by", tally.ends),
        ("the power failed in", tally.uses),
        ("steps", tally.steps),
        ("recordings replayed", tally.replayed),
    ):
        show(f"{name}: " + ", ".join(f"{what} {n:,}" for what, n in counts.most_common()))
    show(*subject.left_out())
    for case, _ in tally.failures[:1]:
        show(f"the first of them, {case}, as short as was soon found:")
        _replayed(subject, shortest(subject, case, recorded=recorded), recorded=recorded)
    return int(bool(tally.failures))


def _replayed(subject: NamedSubject, case: str, *, recorded: bool) -> bool:
    """Show a case, line by line; return whether it passes."""
    lines, error = story(subject, case, recorded=recorded)
    show(*(f"{number:3}. {line}" for number, line in enumerate(lines, 1)))
    if error is not None:
        options = " --recorded 1" * recorded
        show(described(error), f'Again: python -m {__package__}{subject.option} --again "{case}"{options}')
    return error is None


if __name__ == "__main__":
    sys.exit(main())
