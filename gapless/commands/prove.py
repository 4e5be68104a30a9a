"""`gapless prove`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from gapless.commands.options import JsonOption
from gapless.commands.specs import WHICH, chosen
from gapless.commands.terminal import Terminal, failed, printing, write

if TYPE_CHECKING:
    from rich.status import Status

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
        bool, typer.Option("--fresh", help="Prove all again, also what was proved of the same definitions before.")
    ] = False,
) -> None:
    """Prove every invariant from any state and for every bound, and that every step can happen."""
    from gapless.properties.proof import cut_equivalence, ledger
    from gapless.properties.proof.induction import WORK

    named = [name for name in specs or () if name != cut_equivalence.LAWS]
    subjects: list[ledger.Subject] = [*(chosen(named) if named else ())]
    subjects += [cut_equivalence.LAWS] * (cut_equivalence.LAWS in (specs or ()))
    asked = ledger.ProofOptions(work=work or WORK, seed=seed, budget=budget, fresh=fresh, jobs=jobs)
    quiet = str(json) == "-"
    try:
        with printing(0), _Refutations.shown(quiet=quiet) as shown:
            found = ledger.prove(subjects, asked, on_progress=shown.report)
    except (TypeError, ValueError) as error:  # a spec that Z3 cannot read
        raise failed(str(error)) from None
    with printing(found.exit_code):
        if json:
            write(json, found.model_dump_json(by_alias=True, indent=1) + "\n")
        if not quiet:
            _print_ledger(found, {one.name: one.called for one in subjects if not isinstance(one, str)})
    raise typer.Exit(found.exit_code)


class _Refutations:
    """The lines of a proof in progress: each answer, each refutation at once, then the search for runs."""

    def __init__(self, *, quiet: bool, status: Status | None) -> None:
        self.quiet, self.status = quiet, status
        self.searched = 0
        self.waiting: set[tuple[str, str, str, str]] = set()

    @classmethod
    @contextmanager
    def shown(cls, *, quiet: bool) -> Iterator[_Refutations]:
        """Within, a terminal shows for how many refutations a run is being looked for."""
        console = Console(stderr=True)
        if not console.is_terminal:
            yield cls(quiet=quiet, status=None)
            return
        with console.status("proof …") as status:
            yield cls(quiet=quiet, status=status)

    def report(self, entry: LedgerEntry) -> None:
        """Print an answer; a refutation with its story, before a run to it is looked for."""
        from gapless.properties.proof.ledger import SEARCHED

        which = entry.spec, entry.under, entry.step, entry.invariant
        if which in self.waiting:  # the search for a run has ended
            self.searched += 1
            self._show()
            return
        if entry.why == SEARCHED:
            self.waiting.add(which)
        if not self.quiet:
            _print_entry(entry)
            if entry.why == SEARCHED:
                print("", *(f"  {line}".rstrip() for line in entry.story), "", sep="\n", flush=True)
        self._show()

    def _show(self) -> None:
        """Show the progress of the search for runs; all answers are printed before it begins."""
        if self.status and len(self.waiting) > self.searched:
            self.status.update(
                f"looking for runs to what is refuted: {self.searched} of {len(self.waiting)} done; "
                "Ctrl-C leaves what is printed"
            )


def _print_entry(entry: LedgerEntry) -> None:
    under = "" if entry.under == "design" else " (with deviations)"
    print(f"{entry.result:8} {entry.ms:7.1f} ms  {entry.spec}: {entry.step}: {entry.invariant}{under}", flush=True)


def _print_ledger(found: Ledger, called: Mapping[str, str]) -> None:
    from rich.table import Table

    from gapless.traces.problems import pasted

    seen = set[str]()
    for entry in found.obligations:
        if entry.story and "\n".join(entry.story) not in seen:  # once, if deviations break it, too
            seen.add("\n".join(entry.story))
            why = [f"Perhaps: {entry.why}."] if entry.why else []
            again = f"Again: gapless prove {pasted(called.get(entry.spec, entry.spec))}"
            print("", *entry.story, *why, again, sep="\n")
    print(*_without_a_story(found), sep="\n", end="")
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
    _print_what_was_shown(found)
    print(f"\n{proved:,} of {len(found.obligations):,} obligations proved by Z3 {found.z3} in {found.seconds:.1f} s.")


def _print_what_was_shown(found: Ledger) -> None:
    """Print the assumptions of proofs, claims and refinements, and the claims that are not proved."""
    for spec, assumed in found.assumed.items():
        print(f"{spec} assumes of its environment: {'; '.join(assumed)}.")
    for spec, claims in found.in_the_end.items():
        for claim, assumed in claims.items():
            print(f"{spec}: {claim}, if {'; '.join(assumed)}.")
    for spec, names in found.refines.items():
        print(f"{spec}: each step is to be a step of {' and of '.join(names)}, or to change nothing there.")
    for spec, unproved in found.without_rank.items():
        for sentence in unproved:
            print(f'{spec}: the claim "{sentence}" has no rank, and is not proved; explore decides it.')


def _without_a_story(found: Ledger) -> Iterator[str]:
    """The obligations without a proof or a story, each reason once."""
    of: dict[tuple[str, str], list[LedgerEntry]] = {}
    for entry in found.obligations:
        if entry.result in ("refuted", "unknown") and not entry.story:
            of.setdefault((entry.spec, entry.why), []).append(entry)
    for (spec, why), entries in of.items():
        first = entries[0]
        more = f" (and {len(entries) - 1} more)" if len(entries) > 1 else ""
        yield f"\n{spec}: {first.step}: {first.invariant}{more}: {first.result}. {why}\n"
