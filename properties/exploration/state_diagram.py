"""The states of a spec as a picture: columns by distance from the initial state, an arrow for every step.

The picture is one SVG, alone or in a page that needs no other file. It says what was left out for lack of room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from gapless.properties.exploration.graph import Call, called, differing
from gapless.properties.exploration.placement import PlacedNode, around, curve, lay_out
from gapless.properties.exploration.search import Exploration
from gapless.properties.exploration.summary import outcome, story

DRAWN = 150  # states; of more, only those on the shortest ways to each step are drawn
SCANNED = 100_000  # states, the first that were met, in which steps are looked for
LETTER = 6.7  # px: the widest
LINE = 15.0  # px
LEFT, TOP, BOTTOM = 28.0, 112.0, 60.0  # px around the states
NARROWEST = 860.0  # px: room for the words below
LINES = 5  # of a state; a tooltip shows the rest
ACROSS = 26  # letters of a line
LABEL = 33  # letters of a call next to its arrow
CALLS = 12  # in the tooltip of an arrow

LEGEND = (
    "A state tells what differs from the initial one, in bold what its first step changed. "
    "↻: some step changes nothing. Dashed: not left within the bound."
)

Pair = tuple[int, int]


class NoPicture(Exception):  # noqa: N818 - its message says all.
    """The picture cannot be written into a file of that kind."""


@dataclass(frozen=True)
class DrawnState:
    """A state as it is drawn."""

    number: int
    kind: str  # start, trap, broken, beyond, or empty
    lines: Sequence[tuple[str, bool]]  # its values, and whether the first step here set them
    loops: bool  # whether some step changes nothing
    title: str
    node: PlacedNode


@dataclass(frozen=True)
class Arrow:
    """All steps from one state to another."""

    source: int
    target: int
    kind: str  # first: the step by which the state was met; on, back, or broken
    path: str
    label: str
    x: float  # where the label ends
    y: float
    title: str


@dataclass(frozen=True)
class StateDiagram:
    """One spec as shapes, for the template to draw."""

    spec: str
    counts: str
    bound: str
    left_out: str
    result: str
    result_kind: str
    boxes: Sequence[DrawnState]
    arrows: Sequence[Arrow]
    story: Sequence[str]
    width: float
    height: float
    states: tuple[float, float, float, float]  # the part of it that has no words around: left, top, width and height


def kind(path: Path, specs: int) -> str:
    """The kind of picture for a file of this name: .svg or .html. Raises NoPicture."""
    if path.suffix not in {".svg", ".html"}:
        raise NoPicture(f"{path}: a graph is an .svg or an .html file")
    if path.suffix == ".svg" and specs != 1:
        raise NoPicture(f"{path}: an .svg shows one spec: name one, or write an .html page")
    return path.suffix


def svg(one: Exploration) -> str:
    """The picture of one spec."""
    return _templates().get_template("graph.svg.j2").render(picture=picture(one), alone=True, legend=LEGEND) + "\n"


def html(found: Sequence[Exploration]) -> str:
    """A page with the picture of every spec."""
    page = _templates().get_template("graph.html.j2")
    return page.render(pictures=[*map(picture, found)], alone=False, legend=LEGEND) + "\n"


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("gapless.properties.exploration"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def picture(one: Exploration) -> StateDiagram:
    """The first states of an exploration, laid out."""
    shown, left_out = _shown(one)
    boxes = {number: _box(one, number) for number in shown}
    between = _between(one, boxes)
    lay_out({number: box.node for number, box in boxes.items()}, between, LEFT, TOP)
    arrows = [_arrow(one, boxes, pair, calls) for pair, calls in between.items() if pair[0] != pair[1]]
    right = max(*(box.node.right for box in boxes.values()), *(arrow.x for arrow in arrows), 0.0)
    bottom = max(box.node.bottom for box in boxes.values())
    return StateDiagram(
        spec=one.spec.name,
        counts=_counts(one),
        bound=one.bound.says,
        left_out=left_out,
        result=outcome(one),
        result_kind=one.result,
        boxes=list(boxes.values()),
        arrows=sorted(arrows, key=lambda arrow: ("back", "on", "first", "broken").index(arrow.kind)),
        story=story(one),
        width=max(right + LEFT, NARROWEST),
        height=bottom + BOTTOM,
        states=(0.0, TOP - LEFT, right + LEFT, bottom + LEFT - (TOP - LEFT)),
    )


def _counts(one: Exploration) -> str:
    deviations = f", with the deviations of {one.profile}" if one.profile else ""
    return f"{one.states:,} states, {one.transitions:,} transitions{deviations}"


def _shown(one: Exploration) -> tuple[list[int], str]:
    """The states to draw; and, where they are not all, what is left out.

    Of a graph that is too large, these are on the shortest ways to each step that changes something, and to what is
    broken.
    """
    known, beyond = len(one.graph.states), one.graph.beyond
    if known <= DRAWN:
        return [*range(known)], ""
    if one.states <= DRAWN:
        broken = one.broken.way if one.broken else ()
        inside = [number for number in range(known) if number not in beyond or number in broken]
        return inside, f"All {one.states:,} states; the {known - len(inside):,} beyond the bound are not drawn."
    shown, crowded, seen = set(one.broken.way if one.broken else (0,)), [], set()
    for source in range(min(one.graph.explored, SCANNED)):
        for call, target in one.graph.leaving(source):
            name = call.deviation or call.action
            if name in seen or source == target:  # where it changes nothing, a step shows nothing
                continue
            seen.add(name)
            way = {*one.graph.way(source), target}
            if len(shown | way) > DRAWN:
                crowded.append(name)
            else:
                shown |= way
    without = f"; there is no room for those to {', '.join(crowded)}" if crowded else ""
    also = f" (and {len(beyond):,} beyond the bound)" if beyond else ""
    count = f"of {one.states:,} states{also}, these {len(shown):,}"
    return sorted(
        shown
    ), f"Too large to draw: {count} are on the shortest ways to each step that changes something{without}."


# -- states --------------------------------------------------------------------------------------------------------


def _box(one: Exploration, number: int) -> DrawnState:
    lines = _lines(one, number)
    stays = dict.fromkeys(call.deviation or call.action for call, to in one.graph.leaving(number) if to == number)
    values = differing(one.spec.initial, one.graph.states[number])
    title = [f"{name}={value}" for name, value in values.items()] or ["the initial state"]
    width = max(LETTER * len(text) for text, _ in lines) + 34
    return DrawnState(
        number=number,
        kind=_kind(one, number),
        lines=lines,
        loops=bool(stays),
        title="\n".join([*title, *([f"↻ {', '.join(stays)}"] if stays else [])]),
        node=PlacedNode(column=one.graph.depths[number], width=width, height=len(lines) * LINE + 12),
    )


def _kind(one: Exploration, number: int) -> str:
    if one.broken and number == one.broken.way[-1]:
        return "broken"
    if one.graph.open_ended(number):
        return "beyond"
    if any(number in component for component in one.graph.terminal):
        return "trap"
    return "start" if one.graph.met[number] is None else ""


def _lines(one: Exploration, number: int) -> list[tuple[str, bool]]:
    """The values of a state; first those that the first step here changed."""
    states, origin = one.graph.states, one.graph.met[number]
    values = differing(one.spec.initial, states[number])
    changed = differing(states[origin[0]], states[number]) if origin else values
    new = [f"{name} {value}" for name, value in changed.items()] or ["initial state"]
    old = [f"{name} {value}" for name, value in values.items() if name not in changed]
    lines = [*((line, True) for line in _wrapped(new)), *((line, False) for line in _wrapped(old))]
    return lines if len(lines) <= LINES else [*lines[: LINES - 1], ("…", False)]


def _wrapped(words: Iterable[str]) -> list[str]:
    """Values side by side, as far as they fit into a line."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(word) + 3 <= ACROSS:
            lines[-1] += f" · {word}"
        else:
            lines.append(word)
    return lines


# -- arrows --------------------------------------------------------------------------------------------------------


def _between(one: Exploration, shown: Iterable[int]) -> dict[Pair, list[Call]]:
    """The calls from one drawn state to another."""
    found: dict[Pair, list[Call]] = {}
    drawn = set(shown)
    for source in sorted(drawn):
        for call, target in one.graph.leaving(source):
            if target in drawn:
                found.setdefault((source, target), []).append(call)
    if one.broken:  # the search ended there, before it kept the last step
        for pair, call in zip(pairwise(one.broken.way), one.broken.path, strict=True):
            found.setdefault(pair, [call])
    return found


def _arrow(one: Exploration, boxes: Mapping[int, DrawnState], pair: Pair, calls: Sequence[Call]) -> Arrow:
    source, target = boxes[pair[0]].node, boxes[pair[1]].node
    origin = one.graph.met[pair[1]]
    first = origin is not None and origin[0] == pair[0]
    kind = "first" if first else "on" if source.column < target.column else "back"
    if one.broken and pair in pairwise(one.broken.way):
        kind = "broken"
    more = [f"and {len(calls) - CALLS} more"] if len(calls) > CALLS else []
    back = source.column >= target.column
    return Arrow(
        source=pair[0],
        target=pair[1],
        kind=kind,
        path=curve(source, target),
        label=_clipped(called(one.spec, calls[0]), LABEL) + (f" +{len(calls) - 1}" if len(calls) > 1 else ""),
        x=max(source.right, target.right) + around(source, target) if back else target.x - 10,
        y=(source.y + target.y) / 2 if back else target.y - 4,
        title="\n".join([*(called(one.spec, call) for call in calls[:CALLS]), *more]),
    )


def _clipped(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
