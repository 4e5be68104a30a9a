"""The tables of `README.md`: how each property is established, and how often recordings show a step that can break it.

`python -m gapless.properties.overview RECORDING…` writes the tables again, with what these recordings show; without
recordings, it keeps what the page says of them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from gapless.properties.exploration.bounds import bound_of
from gapless.properties.faults import false_friends
from gapless.properties.proof import cut_equivalence, symbolic
from gapless.properties.proof.claims import claims_of
from gapless.properties.proof.induction import Theory, theory
from gapless.properties.proof.refinement import refinements
from gapless.spec.catalog import SPECS, Spec

PAGE = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- generated: properties -->\n", "<!-- generated: end -->\n"
CITED = re.compile(r"(?:docs/([\w-]+\.md))?#([a-z][\w-]*)")
ISSUE = re.compile(r"(apache/\w+)#(\d+)")
SEEN = re.compile(r"^Seen in recordings: (.*)\.$", re.MULTILINE)

StepCounts = Mapping[str, int]
"""How often a step was seen in recordings, by `spec.step`."""


def touched(design: Theory, holds: Callable[..., bool], states: int) -> Iterator[str]:
    """The steps that can change whether a property holds: they change a value that it reads."""
    free = list(symbolic.unknown_arguments(holds, states, tag="some ").values())
    with symbolic.read(design.reading):
        still = symbolic.formula(holds, *(design.before,) * states, *free)
        for name, step in design.spec.actions.items():
            outcomes = [way.outcome for way in design.ways(step)[1] if way.accepted]
            after = [symbolic.formula(holds, *(design.before, outcome)[2 - states :], *free) for outcome in outcomes]
            if not all(one.eq(still) for one in after):
                yield name


def tables(seen: StepCounts) -> str:
    """All tables."""
    specs = (line for spec in SPECS.values() for line in _spec(spec, seen))
    return "\n".join([*specs, *_claims(), *_refinements(), *_cuts(), *_friends()])


def _spec(spec: Spec, seen: StepCounts) -> Iterator[str]:
    yield f"### {spec.name}\n"
    yield f"Explored: {bound_of(spec).says}.\n"
    shown = {name: seen[f"{spec.name}.{name}"] for name in spec.actions if seen.get(f"{spec.name}.{name}")}
    counts = ", ".join(f"{name} {count:,}" for name, count in shown.items())
    yield f"Seen in recordings: {counts or 'nothing'}.\n"
    if missing := [name for name in spec.actions if name not in shown]:
        yield f"Not seen: {', '.join(missing)}.\n"
    yield "| property | proved over | with deviations | explored | tested | seen: steps that can touch it |"
    yield "|---|---|---|---|---|---|"
    design, weak = theory(spec, False, None), len(spec.deviations)  # noqa: FBT003 - what the design allows
    for properties, states in ((design.invariants, 1), (design.step_properties, 2)):
        left = (spec.invariants, spec.step_properties)[states - 1](weak=True) if weak else ()
        for holds in properties:
            steps = list(touched(design, holds, states))
            deviations = (
                f"{len(spec.actions) + weak} steps" if holds in left else "given up" if weak else "there are none"
            )
            yield (
                f"| {holds.__name__.replace('_', ' ')} | {len(spec.actions)} steps | {deviations} | "
                f"every state | random walks | {sum(shown.get(name, 0) for name in steps):,} |"
            )
    yield ""


def _claims() -> Iterator[str]:
    yield "### What happens in the end\n"
    yield "| claim | of | if these steps are taken in the end | but for |"
    yield "|---|---|---|---|"
    for spec in SPECS.values():
        for claim in claims_of(spec):
            helpful = "; ".join(f"{helpful.step}: {helpful.fairness}" for helpful in claim.helpful)
            but = "; ".join(f"{step}: {why}" for step, why in claim.disturbances.items()) or "nothing"
            yield f"| {claim.sentence} | {spec.name} | {helpful} | {but} |"
    yield ""


def _refinements() -> Iterator[str]:
    yield "### Refinement\n"
    yield "| spec | refines | steps that are steps there, the others being stutters | as |"
    yield "|---|---|---|---|"
    for one in refinements():
        page = f"spec/refinements/{one.files[0].__name__.rpartition('.')[2]}.py"
        yield f"| {one.concrete.name} | {one.abstract.name} | {', '.join(one.steps)} | [{page}](../{page}) |"
    yield ""


def _cuts() -> Iterator[str]:
    yield "### Cut anywhere\n"
    steps = "; ".join(f"{cut.spec} ({', '.join(cut.steps)})" for cut in cut_equivalence.CUTS)
    yield f"Pieces are judged as the whole is: {steps}. Joining is associative, and part after part is the whole.\n"


def _friends() -> Iterator[str]:
    yield "### False friends\n"
    yield "| it looks as if | it is not so, because | whose steps | source |"
    yield "|---|---|---|---|"
    for friend in false_friends.FALSE_FRIENDS:
        why = " ".join((friend.looks_true.__doc__ or "").split())
        whose = "the design's own" if friend.profile == "strict" else friend.profile
        yield f"| {friend.spec}: {friend.sentence} | {why} | {whose} | {linked(friend.seen)} |"
    yield ""


def linked(cited: str) -> str:
    """A citation as links of this page: paths into `docs/`, further anchors of the same page, public issues."""
    pages = [""]

    def link(match: re.Match[str]) -> str:
        pages.append(match[1] or pages[-1])
        return f"[{match[1] or ''}#{match[2]}](../docs/{pages[-1]}#{match[2]})"

    return ISSUE.sub(r"[\g<0>](https://github.com/\1/issues/\2)", CITED.sub(link, cited))


# -- the file ------------------------------------------------------------------------------------------------------


def written(text: str, seen: StepCounts) -> str:
    """The page, with its tables written again."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables(seen)}\n{END}{after}"


def seen_on(text: str) -> dict[str, int]:
    """The number of times that recordings show a step, on the page."""
    found: dict[str, int] = {}
    for name, part in re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", text, re.MULTILINE | re.DOTALL):
        if counts := SEEN.search(part):
            for step, count in re.findall(r"(\w+) ([\d,]+)", counts[1]):
                found[f"{name}.{step}"] = int(count.replace(",", ""))
    return found


def seen_in(recordings: Sequence[Path]) -> dict[str, int]:
    """The number of times that these recordings show each step."""
    from gapless.traces.check import check  # noqa: PLC0415 - only who reads recordings needs it

    total: dict[str, int] = {}
    for recording in recordings:
        report = check(recording)
        for step, count in report.coverage.items():
            total[step] = total.get(step, 0) + count
    return total


def main() -> None:
    """Write the page."""
    text = PAGE.read_text(encoding="utf-8")
    recordings = [Path(name) for name in sys.argv[1:]]
    PAGE.write_text(written(text, seen_in(recordings) if recordings else seen_on(text)), encoding="utf-8")


if __name__ == "__main__":
    main()
