"""`gapless generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gapless.commands.specs import WHICH, chosen, errors_of
from gapless.commands.terminal import failed, printing, refuse_elsewhere


def generate(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help=WHICH.replace("Specs", "A spec"), show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The folder for the files; made if it is not there.")
    ],
    cover: Annotated[
        str, typer.Option(metavar="rules|steps", help="Every rule, accepting and refusing; or every step, taken.")
    ] = "rules",
    seed: Annotated[int, typer.Option(metavar="S", help="The random seed of what exploration does not find.")] = 0,
    without: Annotated[
        list[str] | None, typer.Option(metavar="STEP", help="Leave out a step that the system lacks; may be repeated.")
    ] = None,
    walks: Annotated[int, typer.Option(metavar="N", min=0, help="So many further runs, of steps at random.")] = 0,
    states: Annotated[int, typer.Option(metavar="N", min=1, help="Explore so many states at most.")] = 20_000,
) -> None:
    """Write few short runs that take every step of a spec, and meet every rule, accepting and refusing.

    They are files of events, which a system in any language performs (docs/generated-runs.md), stories for pytest, and
    a program that performs them on a class.
    """
    from gapless.properties.exploration import generated_files, generation
    from gapless.properties.exploration.adaptive_bounds import bound_for
    from gapless.properties.exploration.bounds import NoBound
    from gapless.traces.report.wording import plural

    if cover not in generation.COVERS:
        raise typer.BadParameter(f"{cover!r} is not one of {', '.join(generation.COVERS)}.", param_hint="--cover")
    refuse_elsewhere(out)
    (of,) = chosen([spec])
    if strange := [name for name in without or () if name not in of.actions]:
        steps = ", ".join(of.actions)
        raise typer.BadParameter(f"{of.name} has no step {strange[0]!r}: choose among {steps}.", param_hint="--without")
    try:
        with errors_of(of):
            suite = generation.generate(
                of, bound_for(of), seed=seed, states=states, cover=cover, walks=walks, without=without or ()
            )
        files = generated_files.write(suite, out)
    except NoBound as error:
        raise failed(str(error)) from None
    except OSError as error:
        raise failed(f"{out}: cannot be written ({error.strerror})") from None
    code = 3 if suite.missing else 0
    with printing(code):
        refused = sum(bool(step.refused) for run in suite.runs for step in run.steps)
        wanted, runs = len(suite.wanted), len(suite.runs)
        print(
            f"{of.name}: {plural(runs, 'run')} of {plural(suite.steps, 'step')}, {refused:,} of them refused, "
            f"{'covers' if runs == 1 else 'cover'} {wanted - len(suite.missing):,} of {wanted:,} {cover}"
        )
        for target in suite.missing:
            print(f"  not met within the bound: {target}")
        if others := len(suite.runs) - len(suite.recorded):
            begins = "begin in states of INITIALS; a recording begins at INITIAL"
            print(f"  stories alone: {others:,} of the runs, which {begins}")
        print(*(f"  {file}" for file in files), sep="\n")
    raise typer.Exit(code)
