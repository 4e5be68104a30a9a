"""Terminal components of explored graphs, compared with those that networkx finds."""

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from gapless.properties.exploration.graph import StateGraph
from gapless.spec.catalog import SPECS

STATES = 10
NUMBERS = st.integers(0, STATES - 1)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=30), st.sets(NUMBERS, max_size=2))
def test_terminal_components_are_those_of_networkx(steps: list[tuple[int, int]], beyond: set[int]) -> None:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(STATES))
    graph.add_edges_from(step for step in steps if step[0] not in beyond)
    found = StateGraph(states=[SPECS["log"].initial] * STATES, beyond=beyond)
    for n in range(STATES):
        found.targets.extend(graph.successors(n))
        found.starts.append(len(found.targets))
    condensed = nx.condensation(graph)
    ends = [sorted(condensed.nodes[c]["members"]) for c in condensed if condensed.out_degree(c) == 0]
    assert found.terminal == sorted(end for end in ends if not beyond.intersection(end))
