"""`gapless steps`."""

from __future__ import annotations

from typing import Annotated

import typer

from gapless.commands.specs import WHICH, chosen
from gapless.commands.terminal import printing


def steps(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help=WHICH.replace("Specs", "A spec"), show_default=False)],
) -> None:
    """List the steps of a spec: what each means, its arguments with their units, and what it needs.

    It is what a recorder writes; gapless schema events describes a line of a recording.
    """
    from gapless.traces.steps import steps_of

    (of,) = chosen([spec])
    types: dict[str, str] = {}
    with printing(0):
        for number, step in enumerate(steps_of(of)):
            if number:
                print()
            print(f"{step.name}({', '.join(one.name for one in step.arguments)})")
            if step.says:  # a step may have no docstring
                print(f"  {step.says}")
            types |= step.types
            for one in step.arguments:
                print(f"  {one.name}: {one.kind}{f' · {one.meaning}' if one.meaning else ''}")
            for rule, because in step.needs:
                print(f"  needs: {because} ({rule})" if rule else f"  assumes: {because}")
        for kind, says in types.items():
            print(f"\n{kind}: a number · {says}")
