"""`gapless explore`."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from gapless.commands.options import PROFILE_NAMES, JsonOption, Profile, output_file
from gapless.commands.specs import WHICH, chosen, errors_of
from gapless.commands.terminal import Terminal, failed, now_and_then, printing, write

if TYPE_CHECKING:
    from gapless.properties.exploration.search import Exploration, How


def explore(
    specs: Annotated[
        list[str] | None, typer.Argument(metavar="SPEC", help=f"{WHICH}; default: all of ours.", show_default=False)
    ] = None,
    profile: Annotated[
        Profile | None,
        typer.Option(
            metavar=PROFILE_NAMES,
            help="With the known deviations of a broker; without them if none is named.",
            show_default=False,
        ),
    ] = None,
    wide: Annotated[  # noqa: FBT002 - a flag is what it is
        bool, typer.Option("--wide", help="As far as native code gets, which is compiled first, once.")
    ] = False,
    plain: Annotated[  # noqa: FBT002 - as above
        bool, typer.Option("--plain", help="Compile nothing: the plain functions alone, as a second opinion.")
    ] = False,
    states: Annotated[
        int, typer.Option(metavar="N", min=1, help="Give up on a spec that has more states.")
    ] = 8_000_000,
    graph: Annotated[Path | None, output_file("Draw the states: an .svg of one spec, or an .html page.")] = None,
    json: JsonOption = None,
) -> None:
    """Try every step in every state within small bounds, and check every property.

    The bounds lie in properties/exploration/bounds/; a spec of yours says its own as BOUND, or one is found for it.
    What takes long is compiled, and finds the same states in the same order.
    """
    from gapless.properties.exploration import state_diagram, summary
    from gapless.properties.exploration.adaptive_bounds import explored
    from gapless.properties.exploration.bounds import NoBound, has_wide

    every = chosen(specs or [])
    if wide and not specs:
        every = [spec for spec in every if has_wide(spec)]
    found = []
    try:
        if graph:
            state_diagram.kind(graph, len(every))
        for spec in every:
            with _exploring(spec.name) as progress, errors_of(spec):
                how: How = "plain" if plain else "auto"
                found.append(
                    explored(
                        spec, profile=profile, wide=wide, limit=states, how=how, progress=progress, compiling=_compiling
                    )
                )
    except (NoBound, state_diagram.NoPicture) as error:
        raise failed(str(error)) from None
    code = summary.exit_code(found)
    with printing(code):
        if json:
            write(json, summary.report(found).model_dump_json(by_alias=True, indent=1) + "\n")
        if graph:
            write(graph, state_diagram.svg(found[0]) if graph.suffix == ".svg" else state_diagram.html(found))
        if str(json) != "-":
            _tabled(found, graph)
    raise typer.Exit(code)


def _compiling(name: str) -> None:
    print(f"{name}: its search is compiled, once on this machine", file=sys.stderr)


def _tabled(found: Sequence[Exploration], graph: Path | None) -> None:
    from gapless.properties.exploration import summary

    console = Terminal(highlight=False, markup=False)
    console.width = max(console.width, 120)
    console.print(summary.table(found, ruled=console.is_terminal))
    for one in found:
        remarks = [part for line in summary.remarks(one) for part in _folded(line)]
        for lines in (remarks, summary.story(one)):
            if lines:
                print("", *lines, sep="\n")
    if graph:
        print(f"graph: {graph}")


def _folded(line: str) -> list[str]:
    """A remark in lines that fit a screen."""
    return textwrap.wrap(line, WIDE, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)


WIDE = 110  # letters of a remark


@contextmanager
def _exploring(name: str) -> Iterator[Callable[[int, int], None]]:
    """Show the number of explored states."""

    def far(explored: int, known: int) -> str:
        return f"{name}: {explored:,} of {known:,} states explored"

    console = Console(stderr=True)
    if not console.is_terminal:
        yield now_and_then(far)
        return
    with console.status(f"{name} …") as status:
        yield lambda explored, known: status.update(far(explored, known))
