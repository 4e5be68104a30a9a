"""`gapless explore`."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from gapless.commands.options import PROFILE_NAMES, JsonOption, Profile, output_file
from gapless.commands.specs import WHICH, chosen, errors_of
from gapless.commands.terminal import Terminal, failed, now_and_then, printing, write

if TYPE_CHECKING:
    from gapless.properties.exploration.search import Exploration, How
    from gapless.spec.catalog import Spec


WideOption = Annotated[bool, typer.Option("--wide", help="As far as native code gets, which is compiled first, once.")]
PlainOption = Annotated[
    bool, typer.Option("--plain", help="Compile nothing: the plain functions alone, as a second opinion.")
]
StatesOption = Annotated[int, typer.Option(metavar="N", min=1, help="Give up on a spec that has more states.")]
SymmetryOption = Annotated[
    bool, typer.Option("--symmetry", help="Once for all states that differ in interchangeable numbers alone.")
]
WalksOption = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Walk at random N times instead of exploring all.", show_default=False),
]
SeedOption = Annotated[int, typer.Option(metavar="S", help="The random seed of --walks.")]
LengthOption = Annotated[int, typer.Option(metavar="N", min=1, help="The most steps of one of the --walks.")]
InteractiveOption = Annotated[
    bool, typer.Option("--interactive", help="Step by hand: possible steps, what each changes, and back.")
]


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
    wide: WideOption = False,  # noqa: FBT002 - a flag is what it is
    plain: PlainOption = False,  # noqa: FBT002 - as above
    states: StatesOption = 8_000_000,
    symmetry: SymmetryOption = False,  # noqa: FBT002 - as above
    walks: WalksOption = None,
    seed: SeedOption = 0,
    length: LengthOption = 200,
    interactive: InteractiveOption = False,  # noqa: FBT002 - as above
    graph: Annotated[Path | None, output_file("Draw the states: an .svg of one spec, or an .html page.")] = None,
    json: JsonOption = None,
) -> None:
    """Try every step in every state within small bounds, and check every property.

    The bounds lie in properties/exploration/bounds/; a spec of yours says its own as BOUND, or one is found for it.
    What takes long is compiled, and finds the same states in the same order. Where there are too many states, --walks
    tries some of them, and --symmetry those that differ in more than names.
    """
    from gapless.properties.exploration import summary
    from gapless.properties.exploration.bounds import NoBound, has_wide

    every = chosen(specs or [])
    _require_one_way(symmetry=symmetry, walks=walks, interactive=interactive, all_states=wide or plain or graph)
    if interactive:
        _step_by_hand(every, profile)
        return
    if walks:
        _walk(every, profile, walks, seed, length, json)
    if wide and not specs:
        every = [spec for spec in every if has_wide(spec)]
    how: How = "plain" if plain else "auto"
    _require_picture(graph, len(every))
    try:
        found = [
            _explored(spec, profile=profile, wide=wide, limit=states, how=how, symmetry=symmetry) for spec in every
        ]
    except NoBound as error:
        raise failed(str(error)) from None
    code = summary.exit_code(found)
    with printing(code):
        if json:
            _write_json(found, json)
        if graph:
            _draw(found, graph)
        if str(json) != "-":
            _tabled(found, graph)
    raise typer.Exit(code)


def _require_picture(graph: Path | None, count: int) -> None:
    """Exit with 2 where so many specs cannot be drawn into a file of that kind, if one is wanted."""
    if graph is None:
        return
    from gapless.properties.exploration import state_diagram

    try:
        state_diagram.kind(graph, count)
    except state_diagram.NoPicture as error:
        raise failed(str(error)) from None


def _write_json(found: Sequence[Exploration], json: Path) -> None:
    from gapless.properties.exploration import json_report

    write(json, json_report.report(found).model_dump_json(by_alias=True, indent=1) + "\n")


def _draw(found: Sequence[Exploration], graph: Path) -> None:
    from gapless.properties.exploration import state_diagram

    write(graph, state_diagram.svg(found[0]) if graph.suffix == ".svg" else state_diagram.html(found))


def _explored(spec: Spec, **options: Any) -> Exploration:
    """All states of a spec. Exits with 2 where symmetry is asked for, and there is none. Raises NoBound."""
    from gapless.properties.exploration.adaptive_bounds import explored
    from gapless.properties.exploration.symmetry import NotSymmetric

    try:
        with _exploring(spec.name) as progress, errors_of(spec):
            return explored(spec, progress=progress, compiling=_compiling, **options)
    except NotSymmetric as error:
        raise failed(f"--symmetry: {spec.called}: {error}: leave it out") from None


def _require_one_way(*, symmetry: bool, walks: int | None, interactive: bool, all_states: object) -> None:
    """Exit with 2 where a command asks for two ways to explore at once."""
    asked = {"--symmetry": symmetry, "--walks": walks, "--interactive": interactive}
    given = [name for name, value in asked.items() if value]
    if len(given) > 1:
        raise failed(f"{given[0]} and {given[1]} explore in two ways: leave out one of them")
    if given and all_states:
        raise failed(f"{given[0]}: --wide, --plain and --graph are about all states: leave out one of them")


def _walk(every: Sequence[Spec], profile: str | None, count: int, seed: int, length: int, json: Path | None) -> None:
    """Walk at random through each spec, and exit."""
    from gapless.properties.exploration import json_report, walk_report
    from gapless.properties.exploration.adaptive_bounds import bound_for
    from gapless.properties.exploration.bounds import NoBound
    from gapless.properties.exploration.walks import walks

    if profile:
        raise failed("--walks: it takes the design's own steps: leave --profile out")
    found = []
    try:
        for spec in every:
            with errors_of(spec):
                found.append(walks(spec, bound_for(spec), count, seed, length))
    except NoBound as error:
        raise failed(str(error)) from None
    code = walk_report.exit_code(found)
    with printing(code):
        if json:
            made = json_report.ExplorationReport(schema=1, explored=[], walks=[*map(walk_report.report, found)])
            write(json, made.model_dump_json(by_alias=True, indent=1) + "\n")
        if str(json) != "-":
            for one in found:
                print(*walk_report.lines(one), sep="\n")
                if one.broken:
                    print("", *walk_report.story(one), sep="\n")
    raise typer.Exit(code)


def _step_by_hand(every: Sequence[Spec], profile: str | None) -> None:
    """Ask for one step after another."""
    from gapless.properties.exploration.adaptive_bounds import bound_for
    from gapless.properties.exploration.bounds import NoBound
    from gapless.properties.exploration.stepping import step_by_hand

    if len(every) != 1 or profile:
        raise failed("--interactive: name one spec, and no --profile")
    try:
        with errors_of(every[0]), printing(0):
            step_by_hand(every[0], bound_for(every[0]), lambda: input("> "), print)
    except NoBound as error:
        raise failed(str(error)) from None


def _compiling(name: str) -> None:
    print(f"{name}: its search is compiled, once on this machine", file=sys.stderr)


def _tabled(found: Sequence[Exploration], graph: Path | None) -> None:
    from gapless.properties.exploration import summary

    console = Terminal(highlight=False, markup=False)
    console.width = max(console.width, 120)
    console.print(summary.table(found, ruled=console.is_terminal))
    for one in found:
        remarks = [part for line in summary.remarks(one) for part in _folded(line)]
        for lines in (remarks, summary.story(one), *summary.refuted_claims(one)):
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
