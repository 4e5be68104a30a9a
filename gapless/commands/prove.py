"""`gapless prove`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from gapless.commands.options import JsonOption
from gapless.commands.specs import WHICH, chosen
from gapless.commands.terminal import Terminal, failed, printing, write

if TYPE_CHECKING:
    from gapless.properties.proof.ledger import Ledger, LedgerEntry


def prove(
    specs: Annotated[
        list[str] | None, typer.Argument(metavar="SPEC", help=f"{WHICH}; default: all of ours.", show_default=False)
    ] = None,
    json: JsonOption = None,
    budget: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0, help="Seconds after which to stop, come what may.", show_default=False),
    ] = None,
    work: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="What one obligation may cost (Z3's rlimit).", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Z3's random seed.")] = 0,
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="Specs that are proved at once.")] = 2,
    fresh: Annotated[  # noqa: FBT002 - a flag is what it is
        bool, typer.Option("--fresh", help="Prove all anew, also what was proved of the same definitions before.")
    ] = False,
) -> None:
    """Prove every invariant of the model, from any state and for every bound, and that every step can happen."""
    from gapless.properties.proof import cut_equivalence, ledger
    from gapless.properties.proof.induction import WORK

    named = [name for name in specs or () if name != cut_equivalence.LAWS]
    subjects: list[ledger.Subject] = [*(chosen(named) if named else ())]
    subjects += [cut_equivalence.LAWS] * (cut_equivalence.LAWS in (specs or ()))
    asked = ledger.ProofOptions(work=work or WORK, seed=seed, budget=budget, fresh=fresh, jobs=jobs)
    quiet = str(json) == "-"
    try:
        with printing(0):
            found = ledger.prove(subjects, asked, on_progress=(lambda _entry: None) if quiet else _print_entry)
    except (TypeError, ValueError) as error:  # a spec that Z3 cannot read
        raise failed(str(error)) from None
    with printing(found.exit_code):
        if json:
            write(json, found.model_dump_json(by_alias=True, indent=1) + "\n")
        if not quiet:
            _print_ledger(found, {one.name: one.called for one in subjects if not isinstance(one, str)})
    raise typer.Exit(found.exit_code)


def _print_entry(entry: LedgerEntry) -> None:
    under = "" if entry.under == "design" else " (with deviations)"
    print(f"{entry.result:8} {entry.ms:7.1f} ms  {entry.spec}: {entry.step}: {entry.invariant}{under}", flush=True)


def _print_ledger(found: Ledger, called: Mapping[str, str]) -> None:
    from rich.table import Table

    from gapless.traces.problems import pasted

    told = set()
    for entry in found.obligations:
        if entry.story and "\n".join(entry.story) not in told:  # once, where it does not hold with deviations either
            told.add("\n".join(entry.story))
            why = [f"Perhaps: {entry.why}."] if entry.why else []
            again = f"Again: gapless prove {pasted(called.get(entry.spec, entry.spec))}"
            print("", *entry.story, *why, again, sep="\n")
        elif entry.result in ("refuted", "unknown") and not entry.story:
            print(f"\n{entry.spec}: {entry.step}: {entry.invariant}: {entry.result}. {entry.why}")
    table = Table(box=None, pad_edge=False)
    for name in ("spec", "obligations", "proved", "refuted", "unknown", "budget", "ms", "slowest", "definitions"):
        table.add_column(name, justify="left" if name in ("spec", "definitions") else "right")
    for spec, digest in found.digests.items():
        mine = [entry for entry in found.obligations if entry.spec == spec]
        counts = [
            sum(entry.result == result for entry in mine) for result in ("proved", "refuted", "unknown", "budget")
        ]
        ms = [entry.ms for entry in mine]
        numbers = (len(mine), *counts, round(sum(ms)), round(max(ms, default=0)))
        table.add_row(spec, *(f"{value:,}" for value in numbers), digest)
    print()
    Terminal(highlight=False, width=None if sys.stdout.isatty() else 120).print(table)
    proved = sum(entry.result == "proved" for entry in found.obligations)
    for spec, assumed in found.assumed.items():
        print(f"{spec} assumes of its environment: {'; '.join(assumed)}.")
    for spec, claims in found.in_the_end.items():
        for claim, assumed in claims.items():
            print(f"{spec}: {claim}, if {'; '.join(assumed)}.")
    print(f"\n{proved:,} of {len(found.obligations):,} obligations proved by Z3 {found.z3} in {found.seconds:.1f} s.")
