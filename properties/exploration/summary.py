"""Results of exploration for users: the path to a broken property, a table of counts, and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from rich import box
from rich.table import Table

from gapless.properties.exploration.graph import called, differing
from gapless.properties.exploration.liveness import stories
from gapless.properties.exploration.search import BrokenProperty, Exploration, SearchResult
from gapless.spec.catalog import Spec, State
from gapless.traces.problems import pasted
from gapless.traces.replay.notation import changes, changes_text, column, follows, values_text
from gapless.traces.replay.provenance import broken_for

EXIT_CODES: dict[SearchResult, int] = {"holds": 0, "breaks": 1, "unfinished": 3, "vacuous": 3, "undecided": 3}
TRAPS = 3  # deadlocks, or terminal sets, that are described
CLIPPED = 48  # letters of a state, and of the way there
NUMBERS = ("states", "transitions", "tried", "deadlocks", "terminal")


def exit_code(found: Iterable[Exploration]) -> int:
    """1 if a property is broken; else 3 if a spec was not explored to the end, or a step was never taken."""
    return worst(EXIT_CODES[one.result] for one in found)


def worst(codes: Iterable[int]) -> int:
    """The exit code for several results: 1 if one is that, else the greatest; 3 if there are none."""
    every = set(codes)
    return 1 if 1 in every else max(every, default=3)


def story(one: Exploration) -> list[str]:
    """The shortest path to a broken property; empty where none is."""
    if not one.broken:
        return []
    states = [one.graph.states[number] for number in one.broken.way]
    return story_of(one.spec, one.broken, states, again(one))


def refuted_claims(one: Exploration) -> Iterator[list[str]]:
    """The runs that refute claims, each as a story."""
    yield from filter(None, (stories.story(one.spec, one.graph, found, again(one)) for found in one.claims))


def again(one: Exploration) -> str:
    """The command that explores it again."""
    profile = f" --profile {one.profile}" if one.profile else ""
    return f"gapless explore {pasted(one.spec.called)}{profile}" + " --symmetry" * (one.folding is not None)


def story_of(spec: Spec, broken: BrokenProperty, states: Sequence[State], again: str) -> list[str]:
    """A path with what each step changes, and the property that is broken at its end."""
    pairs = zip(broken.path, pairwise(states), strict=True)
    steps = [(called(spec, call), changes_text(changes(before, after))) for call, (before, after) in pairs]
    width = column(steps)
    looked_at = broken_for(broken.holds, states[-broken.states :], broken.witness)
    here = values_text(looked_at or differing(spec.initial, states[-1]))
    return [
        f"{spec.name} breaks {broken.sentence} after {_steps(len(steps))}.",
        "",
        *([f"  In the initial state with {values_text(differing(spec.initial, states[0]))}:"] if spec.starts else []),
        *(f"  {n}. {text:<{width}}   {what}" for n, (text, what) in enumerate(steps, 1)),
        *([""] if steps else []),
        f"The state breaks the property {_sentence(broken)}.",
        f"Here: {here or 'all is as in the beginning'}.",
        follows(broken.otherwise).partition("\n")[0] or "Its docstring does not say what follows from that.",
        f"Again: {again}",
    ]


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _sentence(broken: BrokenProperty) -> str:
    """`"an entry is its message", for number = 0`."""
    numbers = values_text(broken.witness)
    return f'"{broken.sentence.replace("_", " ")}"' + (f", for {numbers}" if numbers else "")


def table(found: Sequence[Exploration], *, ruled: bool) -> Table:
    """One row for each spec."""
    made = Table(box=box.SIMPLE if ruled else None, pad_edge=False)
    for heading in ("spec", "bound", *NUMBERS, "seconds", "result", "accepted"):
        worded = heading in ("spec", "bound", "result", "accepted")
        folds = heading in ("bound", "accepted", "result")
        made.add_column(heading, justify="left" if worded else "right", no_wrap=not folds, overflow="fold")
    for one in found:
        numbers = (one.states, one.transitions, one.tried, len(one.graph.deadlocks), len(one.graph.terminal))
        made.add_row(
            one.spec.name,
            one.bound.says,
            *(f"{number:,}" for number in numbers),
            f"{one.seconds:.1f}",
            outcome(one),
            ", ".join(f"{name} {count:,}" for name, count in one.accepted.items()),
        )
    return made


def outcome(one: Exploration) -> str:
    """The result in words."""
    refuted = sum(found.verdict == "breaks" for found in one.claims)
    if refuted:
        return f"{'a claim is' if refuted == 1 else f'{refuted} claims are'} BROKEN"
    if one.result == "undecided":
        return "claims are undecided"
    if one.result == "vacuous":
        return f"never: {', '.join(one.never)}"
    return {"holds": "all hold", "breaks": "BROKEN", "unfinished": "unfinished"}[one.result]


def remarks(one: Exploration) -> list[str]:
    """The lines below the table: how to get further, and where a spec comes to rest."""
    name, graph = one.spec.name, one.graph
    lines = []
    if one.result == "unfinished":
        waiting = len(graph.states) - graph.explored
        lines.append(
            f"{name}: {waiting:,} states were met and not explored; --states {4 * len(graph.states)} continues."
        )
    if one.folding:
        lines.append(
            f"{name}: states that differ only in the numbers of {one.folding.kind} are explored once: "
            f"{one.states:,} stand for {one.unfolded:,}."
        )
    if one.not_native:
        lines.append(f"{name}: explored by calling the plain functions; there is no native code, for {one.not_native}.")
    if one.never:
        lines.append(f"{name}: never accepted within the bound: {', '.join(one.never)}. Nothing is known of them.")
    return [*lines, *_ends(one), *stories.remarks(one.spec, one.claims)]


def _ends(one: Exploration) -> Iterator[str]:
    """The states in which runs end, and the sets of states that runs never leave."""
    name, graph = one.spec.name, one.graph
    if ends := len(graph.deadlocks):
        yield f"{name}: {_states(ends, 'ends', 'end')} a run; {_at_rest(one, ends)}."
        if one.broken or one.profile or not one.spec.at_rest:
            yield from (f"  {_where(one, state)}" for state in graph.deadlocks[:TRAPS])
    circles = [states for states in graph.terminal if len(states) > 1]
    for states in circles[:TRAPS]:
        yield f"{name}: a run that comes to these {len(states):,} states never leaves them; one of them:"
        yield f"  {_where(one, states[0])}"
    if len(circles) > TRAPS:
        yield f"{name}: there are {len(circles) - TRAPS:,} more such sets of states."


def _states(count: int, one: str, several: str) -> str:
    return f"1 state {one}" if count == 1 else f"{count:,} states {several}"


def _at_rest(one: Exploration, ends: int) -> str:
    """The meaning of ends for what AT_REST says."""
    if one.broken:
        return "a property is broken, see below"
    if not one.spec.at_rest or one.profile:
        return "no AT_REST says in which states it may"
    return f"AT_REST holds in {'it' if ends == 1 else 'all of them'}"


def _where(one: Exploration, state: int) -> str:
    """The state, and the shortest way there, in a line that is no longer than others."""
    values = values_text(differing(one.spec.initial, one.graph.states[state]))
    way = ", ".join(called(one.spec, call) for call in one.graph.path(one.graph.way(state)))
    begun = values_text(differing(one.spec.initial, one.graph.states[one.graph.way(state)[0]]))
    start = f", from the initial state with {_clipped(begun)}" if begun else ""
    return f"{_clipped(values or 'all is as in the beginning')} · after {_clipped(way or 'no step')}{start}"


def _clipped(text: str) -> str:
    return text if len(text) <= CLIPPED else f"{text[: CLIPPED - 1]}…"
