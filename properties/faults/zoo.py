"""The documented defects of brokers, planted: which check caught each, how fast, and with how long a story.

`python -m gapless.properties.faults.zoo` (`make mutants`) plants every defect of `documented_defects.py` in its spec,
every fault of `implementation.py` in our implementation, and those of `trace_defects.py` in traces. Z3 looks for a
defect of a spec, with three seeds. A defect of the implementation is found by its machine, whose cases are the same
every time; a defect of a trace by `gapless check`, to which the same trace without it conforms. `--write` puts the
table into `zoo.md`, with the defects that do not apply, and why (`unmodelled_defects.py`). The exit code is 1 if a
defect is not caught with some seed.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from gapless.properties.campaign import command, show
from gapless.properties.faults import implementation, operators, spec_mutants, trace_defects
from gapless.properties.faults.documented_defects import DEFECTS
from gapless.properties.faults.unmodelled_defects import DOES_NOT_APPLY
from gapless.properties.processes import workers
from gapless.properties.proof.counterexamples import settled, story
from gapless.spec.catalog import SPECS

SEEDS = range(3)
PAGE = Path(__file__).with_name("zoo.md")
DOCUMENTED = Path(__file__).resolve().parents[2] / "docs" / "defects.md"


@dataclass(frozen=True)
class Caught:
    """The result for a defect.

    `like`: its code, if it is documented · `times`: by how many tries of `tries` it was caught · `seconds`: the median
    of these · `lines`: of the story, 0 where the machine has a sentence instead.
    """

    like: str
    where: str
    what: str
    by: str
    times: int
    tries: int
    seconds: float
    lines: int


def in_a_spec(number: int) -> Caught:
    """Plant a documented defect in its spec, and let Z3 look for the property that it breaks."""
    defect = DEFECTS[number]
    names = operators.behind_steps(SPECS[defect.spec])[defect.step]
    asked = [one for one in spec_mutants.obligations(defect.planted(), names) if one.invariant == defect.noticed_by]
    seconds, lines = [], 0
    for seed in SEEDS:
        began = time.perf_counter()
        found = next((r for r in (settled(one, seed=seed) for one in asked) if r.verdict == "refuted"), None)
        if found is not None:
            seconds.append(time.perf_counter() - began)
            lines = len(story(found))
    what = f"without {defect.written}" if defect.instead is None else f"{defect.written} → {defect.instead}"
    where = f"{defect.spec}.{defect.step}"
    return Caught(
        defect.code, where, what, defect.noticed_by, len(seconds), len(SEEDS), median(seconds or [0.0]), lines
    )


def in_the_implementation(machine: str, name: str) -> Caught:
    """Plant a fault in the implementation, and let its machine look for it."""
    began = time.perf_counter()
    found = implementation.search(machine, name)
    by = f"{machine}, case {found.after}"
    return Caught(found.like, machine, name, by, int(found.after > 0), 1, time.perf_counter() - began, 0)


def in_a_trace(number: int) -> Caught:
    """Check what a broker with the defect writes. Raises AssertionError where it departs without the defect, too."""
    defect, began = trace_defects.DEFECTS[number], time.perf_counter()
    verdict, rule, lines = defect.judged()
    if defect.lawful().judged()[0] != "conforms":
        raise AssertionError(f"{defect.code}: the trace departs, with the defect or without")
    seconds, times = time.perf_counter() - began, int((verdict, rule) == ("departs", defect.rule))
    return Caught(defect.code, f"trace of {defect.spec}", defect.what, defect.rule, times, 1, seconds, lines)


def every(jobs: int) -> Iterator[Caught]:
    """All of them."""
    planted = [(machine, fault.name) for machine, (faults, _) in implementation.MACHINES.items() for fault in faults]
    with workers(jobs) as pool:
        yield from pool.map(in_a_spec, range(len(DEFECTS)))
        yield from pool.map(in_the_implementation, *zip(*planted, strict=True))
    yield from map(in_a_trace, range(len(trace_defects.DEFECTS)))


def codes() -> list[str]:
    """The documented defects, in the order of their page."""
    return [code.upper() for code in re.findall(r'<a id="([a-z]\d\d)">', DOCUMENTED.read_text("utf-8"))]


def summary(found: Sequence[Caught]) -> list[str]:
    """The number of defects, of those caught, and the documented defects that they stand for."""
    caught = sum(one.times == one.tries for one in found)
    apply = [code for code in codes() if code not in DOES_NOT_APPLY]
    missed = {one.like for one in found if one.times < one.tries}
    stood_for = [code for code in apply if code in {one.like for one in found} - missed]
    nowhere = [code for code in apply if code not in stood_for]
    of_these = f"{len(stood_for)} are planted and caught ({len(stood_for) / len(apply):.1%})"
    lines = [
        f"{caught} of {len(found)} planted faults are caught, by every seed ({caught / len(found):.1%}).",
        f"Of {len(codes())} documented defects {len(apply)} apply, and of these {of_these}.",
    ]
    return [*lines, f"Planted nowhere, or not caught: {', '.join(nowhere)}."] if nowhere else lines


def page(found: Sequence[Caught]) -> str:
    """The page that is kept. Seconds are those of one machine, and are left out where they say nothing."""
    lines = [
        "# Documented defects, planted, and what caught each",
        "",
        "Made by `make mutants`. *like*: a [documented defect](../../docs/defects.md) · *seeds*: of Z3, for",
        "specs; the cases of a machine are the same every time, and a trace is one · *story*: its lines.",
        "",
        *summary(found),
        "",
        "| like | where | planted | caught by | seeds | seconds | story |",
        "|---|---|---|---|--:|--:|--:|",
        *(_row(one) for one in found),
        "",
        "## What does not apply",
        "",
        "| defect | what would have to be modelled |",
        "|---|---|",
        *(f"| {_linked(code)} | {_from_here(why)} |" for code, why in DOES_NOT_APPLY.items()),
    ]
    return "\n".join(lines) + "\n"


def _linked(code: str) -> str:
    return code and f"[{code}](../../docs/defects.md#{code.lower()})"


def _from_here(text: str) -> str:
    """The citations of a sentence, as links."""
    return re.sub(r"docs/([\w-]+\.md#[\w-]+)", r"[\1](../../docs/\1)", text)


def _row(one: Caught) -> str:
    like = _linked(one.like)
    what = one.what.replace("|", "\\|").replace("\n", " ")
    by = one.by.replace("_", " ") if one.times else "nothing"
    return (
        f"| {like} | {one.where} | {' '.join(what.split())} | {by} | {one.times}/{one.tries} "
        f"| {one.seconds:.1f} | {one.lines or ''} |"
    )


def main(arguments: Iterable[str] | None = None) -> int:
    """Plant all; 1 where one is not caught."""
    parser = command("gapless.properties.faults.zoo", __doc__)
    parser.add_argument("--write", action="store_true", help="write properties/faults/zoo.md")
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    found = []
    for one in every(chosen.jobs):
        found.append(one)
        seen = f"{one.times}/{one.tries} in {one.seconds:5.1f} s" if one.times else "NOT CAUGHT"
        story = f", a story of {one.lines} lines" if one.lines else ""
        show(f"{one.like:4} {one.where}: {' '.join(one.what.split())}: {one.by}: {seen}{story}")
    show(*summary(found))
    if chosen.write:
        PAGE.write_text(page(found), encoding="utf-8")
    return int(any(one.times < one.tries for one in found))


if __name__ == "__main__":
    sys.exit(main())
