"""`gapless audit`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from gapless.commands.options import JsonOption
from gapless.commands.specs import WHICH, chosen
from gapless.commands.terminal import failed, now_and_then, printing, write

if TYPE_CHECKING:
    from gapless.properties.faults.audit import Fate, SpecAudit
    from gapless.properties.faults.spec_mutants import MutantVerdict


def audit(
    specs: Annotated[
        list[str] | None, typer.Argument(metavar="SPEC", help=f"{WHICH}; default: all of ours.", show_default=False)
    ] = None,
    json: JsonOption = None,
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="Processes.")] = 2,
) -> None:
    """List the needs of a spec that are not needed, and faults in its steps that no property catches.

    Every need is dropped in turn, and faults are planted one by one: a guard is missing, a comparison is off by one, an
    effect forgets a field. Then some property must break. Where none does, the spec says too little; where only a
    comparison with the spec as it is shows the fault, its properties are thin. A spec must be proved before.
    Exit code: 0 if each requirement is needed and each fault noticed, 1 if not; thin properties alone are no failure.
    """
    from gapless.properties.faults.audit import UnprovedSpec, audits, report

    every = chosen(specs or [])
    try:
        with _progress() as progress:
            found = audits(every, jobs, progress)
    except UnprovedSpec as error:
        raise failed(str(error)) from None
    code = int(not all(one.sound for one in found))
    with printing(code):
        if json:
            write(json, report(found).model_dump_json(by_alias=True, indent=1) + "\n")
        if str(json) != "-":
            for number, one in enumerate(found):
                print("\n" * bool(number) + "\n".join(_lines(one)))
    raise typer.Exit(code)


def _lines(found: SpecAudit) -> Iterator[str]:
    """The audit of one spec as lines: unneeded requirements, faults that no check notices, and thin properties."""
    name = found.spec.name
    whys = Counter(guard.why for guard in found.guards)
    yield f"{name}: {len(found.guards)} needs: {_counted(whys)}."
    for guard in found.unneeded:
        yield f"  {guard.step}: nothing breaks without {name}/{guard.rule}: say what goes wrong then, or drop it"
    fates = Counter(_fate(one) for one in found.faults)
    yield f"{name}: {len(found.faults)} planted faults: {_counted(fates)}."
    yield from _faults(found, "no check notices it", "No check notices these; a property after → would")
    yield from _faults(
        found,
        "only a comparison shows it",
        "No property catches these, only a comparison with the spec as it is; a property after → would",
    )
    yield f"{name}: {_enough(found)}"


def _enough(found: SpecAudit) -> str:
    """The distance of a spec from the target."""
    caught = len(found.of("a property breaks"))
    counted = len(found.faults) - len(found.of("it makes no difference"))
    share = f"properties catch {caught} of {counted} faults"
    if not found.sound:
        return f"not enough: {share}, and a need or fault is left that no check notices."
    if caught < TARGET * counted:
        return f"thin: {share}, and {TARGET:.0%} are enough. Each fault that is left is a mistake that you accept."
    return f"enough: {share}, and {TARGET:.0%} are. Each fault that is left is a mistake that you accept."


TARGET = 0.8  # of the faults that make a difference


def _counted(counts: Counter[Any]) -> str:
    return ", ".join(f"{what} {count}" for what, count in counts.most_common()) or "none"


def _fate(one: MutantVerdict) -> str:
    from gapless.properties.faults.audit import fate_of

    return fate_of(one)


def _faults(found: SpecAudit, fate: Fate, title: str) -> Iterator[str]:
    """The faults with one fate by their requirement, each with the kind of property that would catch it."""
    from gapless.properties.faults.remedies import part_of, remedy

    groups: dict[tuple[str, str], dict[str, list[MutantVerdict]]] = {}
    for one in found.of(fate):
        group = groups.setdefault((one.fault.function, part_of(found.spec, one.fault)), {})
        group.setdefault(remedy(found.spec, one.fault), []).append(one)
    if groups:
        yield f"  {title}:"
    for (function, part), by_remedy in groups.items():
        yield f"  {function}, {part}:"
        for kind, faults in by_remedy.items():
            yield from (f"    line {one.fault.line}, {one.fault.name.partition(': ')[2]}" for one in faults)
            yield f"      → {kind}"


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A status line on a terminal, and a line now and then elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield now_and_then(_far)
        return
    with console.status("audit …") as status:
        yield lambda done, total: status.update(_far(done, total))


def _far(done: int, total: int) -> str:
    return f"audit: {done:,} of {total:,} needs and faults"
