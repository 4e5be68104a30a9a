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
    from gapless.properties.faults.audit import SpecAudit
    from gapless.properties.faults.spec_mutants import MutantVerdict


def audit(
    specs: Annotated[
        list[str] | None, typer.Argument(metavar="SPEC", help=f"{WHICH}; default: all of ours.", show_default=False)
    ] = None,
    json: JsonOption = None,
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="Processes.")] = 2,
) -> None:
    """Tell which needs of a spec nothing holds up, and which faults in its steps nobody would notice.

    Every need is dropped in turn, and faults are planted one by one: a guard is missing, a comparison is off by one, an
    effect forgets a field. Then some property must break. Where none does, the spec says too little; where only a
    comparison with the spec as it is shows the fault, its properties are thin. A spec must be proved before.
    """
    from gapless.properties.faults.audit import UnprovedSpec, audits, report

    every = chosen(specs or [])
    try:
        with _progress() as told:
            found = audits(every, jobs, told)
    except UnprovedSpec as error:
        raise failed(str(error)) from None
    code = int(not all(one.sound for one in found))
    with printing(code):
        if json:
            write(json, report(found).model_dump_json(by_alias=True, indent=1) + "\n")
        if str(json) != "-":
            for number, one in enumerate(found):
                print("\n" * bool(number) + "\n".join(_told(one)))
    raise typer.Exit(code)


def _told(found: SpecAudit) -> Iterator[str]:
    """The audit of one spec as lines: what is not needed, what nobody notices, and where properties are thin."""
    name = found.spec.name
    whys = Counter(guard.why for guard in found.guards)
    yield f"{name}: {len(found.guards)} needs: {_counted(whys)}."
    for guard in found.unneeded:
        yield f"  {guard.step}: nothing breaks without {name}/{guard.rule}: say what goes wrong then, or drop it"
    fates = Counter(_fate(one) for one in found.faults)
    yield f"{name}: {len(found.faults)} planted faults: {_counted(fates)}."
    yield from _faults(found.of("nobody notices"), "Nobody notices, so no property says it")
    yield from _faults(
        found.of("only a comparison shows it"), "Only a comparison with the spec as it is shows, so properties are thin"
    )


def _counted(counts: Counter[Any]) -> str:
    return ", ".join(f"{what} {count}" for what, count in counts.most_common()) or "none"


def _fate(one: MutantVerdict) -> str:
    from gapless.properties.faults.audit import fate_of

    return fate_of(one)


def _faults(some: list[MutantVerdict], title: str) -> Iterator[str]:
    if some:
        yield f"  {title}:"
        yield from (f"    line {one.fault.line}, {one.fault.name}" for one in some)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """How far the audit is."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield now_and_then(_far)
        return
    with console.status("audit …") as status:
        yield lambda done, total: status.update(_far(done, total))


def _far(done: int, total: int) -> str:
    return f"audit: {done:,} of {total:,} needs and faults"
