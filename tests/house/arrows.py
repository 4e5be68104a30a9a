"""The imports between modules: `python -m tests.house.arrows` shows the rooms and their floors.

With the name of a room it lists that room's modules too, each with its imports from the same room.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator

import networkx as nx

from tests.house.project import ROOMS, Module, modules, product

Arrow = tuple[str, str]


def graph(of: Iterable[Module]) -> nx.DiGraph[str]:
    """The modules, each with an arrow to those that it imports anywhere, `TYPE_CHECKING` included."""
    of = tuple(of)
    names = {module.name for module in of}
    drawn: nx.DiGraph[str] = nx.DiGraph()
    drawn.add_nodes_from(names)
    for module in of:
        for _, name in module.imports:
            target = name if name in names else name.rpartition(".")[0]
            if target in names and target != module.name:
                drawn.add_edge(module.name, target)
    return drawn


def circles(of: Iterable[Module]) -> list[list[str]]:
    """Modules that import one another, round and round."""
    return sorted(sorted(circle) for circle in nx.strongly_connected_components(graph(of)) if len(circle) > 1)


def between_floors(of: Iterable[Module]) -> Counter[Arrow]:
    """The arrows from each floor of a room to each other one, and how many there are."""
    of = tuple(of)
    floors = {module.name: module.floor for module in of}
    ends = ((floors[one], floors[two]) for one, two in graph(of).edges)
    return Counter((one, two) for one, two in ends if one != two)


def between_rooms() -> Counter[Arrow]:
    every = tuple(product())
    rooms = {module.name: module.room for module in every}
    ends = ((rooms[one], rooms[two]) for one, two in graph(every).edges)
    return Counter((one, two) for one, two in ends if one != two)


def drawing() -> Iterator[str]:
    """The rooms and their floors as a Mermaid graph, and below it how many arrows each room holds."""
    yield "```mermaid"
    yield "graph LR"
    for room in ROOMS:
        yield f"  subgraph {room}"
        yield from (
            f"    {room}.{one}[{one}] --> {room}.{two}[{two}]" for one, two in sorted(between_floors(modules(room)))
        )
        yield "  end"
    yield from (f"  {one} --> {two}" for one, two in sorted(between_rooms()))
    yield "```"
    for room in ROOMS:
        drawn = graph(modules(room))
        yield f"{room}/: {drawn.number_of_nodes()} modules, {drawn.number_of_edges()} arrows between them"


def of_room(room: str) -> Iterator[str]:
    drawn = graph(modules(room))
    for name in sorted(drawn):
        yield " ".join([name, "→", *sorted(drawn.successors(name))])


if __name__ == "__main__":
    print(*drawing(), *(line for room in sys.argv[1:] for line in of_room(room)), sep="\n")  # noqa: T201 - it is asked to
