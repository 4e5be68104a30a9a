"""The prover's verdict on a spec, compared with exploration and the plain functions.

Exploration and the prover share the plain functions and nothing else, so where they disagree, one of them is wrong:
what exploration breaks must not be proved, what is refuted must have an example that the plain functions confirm, and
every step that exploration took or was refused must be read so.
"""

from __future__ import annotations

import inspect
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from itertools import product
from pathlib import Path

import z3
from hypothesis import HealthCheck, Phase, given, seed, settings

from gapless.properties.campaign import CaseTally, described, error_of
from gapless.properties.exploration.bounds import FLAG, NoBound, arguments
from gapless.properties.exploration.search import BrokenProperty, Exploration, explore
from gapless.properties.fuzzing.random_specs import specs
from gapless.properties.proof import counterexamples, induction, symbolic
from gapless.properties.proof.induction import COVERED, INITIAL, Obligation, ask, theory
from gapless.spec import catalog
from gapless.spec.catalog import Spec, State, spec_from
from gapless.spec.language import Bound, Map, Refused, every_map

WORK = 100_000  # Z3's own measure of work that one obligation may cost: what is not proved by then is unknown
READING = 20_000  # the same of one step that is read: most of what is read wrongly is found out by far less
WINDOW, VALUES = range(-1, 4), 9  # keys and numbers among which examples are looked for
STATES = 60  # that are explored of one spec
READ = 4  # steps of one spec, taken or refused, of which Z3 is asked whether they are read so
TRIED = (0, 1, -1, 2)  # what an argument is tried with, and what properties are checked for

BOUND = Bound(
    says="small numbers",
    within=lambda s: all(
        -2 <= number <= 3
        for name in s.__dataclass_fields__
        for value in (getattr(s, name),)
        for number in (value.entries.values() if isinstance(value, Map) else (value,))
    ),
    numbers={
        **dict.fromkeys("kl", TRIED),
        **{f"{letter}{n}": TRIED for letter in "xy" for n in range(2)},
        "z": every_map(range(2), (0, 1), 0),
    },
)


class Disagreement(AssertionError):  # noqa: N818 - the prover may be right.
    """The prover says one thing of a spec, and the plain functions another."""


def loaded(text: str, folder: Path) -> Spec:
    """The spec that a text states, from a file, for readers look at its lines."""
    path = folder / "fuzzed.py"
    path.write_text(text, encoding="utf-8")
    found = spec_from_file_location("fuzzed", path)
    assert found is not None  # noqa: S101 - for the type checker: a path that ends in .py has a loader
    assert found.loader is not None  # noqa: S101
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return spec_from(module)


def judge(text: str) -> Counter[str]:
    """Judge a spec. Raises Disagreement."""
    for kept in (theory, induction._known, catalog._calls_of):  # noqa: SLF001 - what is known of one spec is of no use to the next
        kept.cache_clear()
    with tempfile.TemporaryDirectory() as folder:
        return _judged(loaded(text, Path(folder)))


def _judged(spec: Spec) -> Counter[str]:
    seen: Counter[str] = Counter()
    verdicts = dict[tuple[str, str], str]()
    for obligation in induction.obligations(spec):
        verdicts[obligation.step, obligation.invariant] = fate = verdict(obligation)
        seen[fate] += 1
        if obligation.invariant == COVERED and fate == "refuted":
            raise Disagreement(f"{obligation.step}: {COVERED}: {fate}")
    bound = _bound(spec)
    try:
        found = explore(spec, bound, limit=STATES)
    except NoBound:  # no initial state is made of numbers that are tried
        return seen
    kept = {verdict for (_, invariant), verdict in verdicts.items() if invariant != induction.CAN_HAPPEN}
    proved = kept == {"proved"}
    seen["specs proved"] += proved
    if found.broken:
        seen["specs that exploration breaks"] += 1
        if proved:
            raise Disagreement(f"all is proved, and exploration breaks {found.broken.sentence}: {found.broken.path}")
        _break(spec, found, found.broken, verdicts)
    for step, before, args in _steps(spec, bound, found):
        _read(spec, step, before, args)
        seen["steps read"] += 1
    return seen


def _bound(spec: Spec) -> Bound:
    numbers = dict(BOUND.numbers)
    for name, action in (*spec.actions.items(), *spec.starts.items()):
        for parameter in inspect.signature(action).parameters.values():
            if parameter.annotation is bool:
                numbers[f"{name}.{parameter.name}"] = FLAG
    return Bound(BOUND.says, BOUND.within, numbers)


# -- verdicts ------------------------------------------------------------------------------------------------------


def verdict(obligation: Obligation) -> str:
    """`proved`, `refuted` by an example that the plain functions confirm, or `unknown`. Raises Disagreement."""
    answer = ask(obligation.question().terms, work=induction.WORK if obligation.invariant == COVERED else WORK)
    if obligation.wanted == "sat":
        return {"sat": "proved", "unsat": "refuted"}.get(answer.verdict, "unknown")
    if answer.verdict == "unsat":
        return "proved"
    if obligation.holds is None:
        return "refuted" if answer.verdict == "sat" else "unknown"
    found = counterexamples.refuted([obligation], WINDOW, VALUES, work=WORK)
    if found is None or found.example is None:
        return "unknown"
    _replay(obligation, found.example)
    return "refuted"


def _replay(obligation: Obligation, example: counterexamples.Example) -> None:
    """Check the example by the plain functions and nothing else."""
    assert obligation.holds is not None  # noqa: S101 - asked of properties only
    after = example.before
    if obligation.begins:
        after = obligation.steps[0](after, *example.args.values()) if obligation.steps else after
    else:
        for holds in obligation.spec.invariants():
            count = len(inspect.signature(holds).parameters) - 1
            if not all(holds(example.before, *some) for some in product(range(-4, 7), repeat=count)):
                raise Disagreement(f"{obligation.step}: it is refuted from a state that breaks {holds.__name__}")
        after = obligation.steps[0](example.before, *example.args.values())
    if obligation.holds(*(example.before, after)[2 - obligation.states :], *example.free.values()):
        raise Disagreement(f"{obligation.step}: {obligation.invariant} is refuted, and holds of {example}")


def _break(spec: Spec, found: Exploration, broken: BrokenProperty, verdicts: Mapping[tuple[str, str], str]) -> None:
    """Check that the step that breaks a property is not proved to keep it, where all were true before."""
    steps = [broken.path[-1].action] if broken.path else [*spec.starts] or [INITIAL]
    if any(verdicts[step, broken.sentence] != "proved" for step in steps):
        return
    step = steps[0]
    before = symbolic.symbolic(found.graph.states[broken.way[-2]]) if broken.path else None
    of = theory(spec, False, None)  # noqa: FBT003 - the design's own steps
    with symbolic.read(of.reading):
        if before is None or ask([of.reading.everywhere(holds, before) for holds in of.invariants]).verdict == "sat":
            raise Disagreement(f"{step} is proved to keep {broken.sentence}, and does not: {broken.path}")


# -- steps ---------------------------------------------------------------------------------------------------------


def _steps(spec: Spec, bound: Bound, found: Exploration) -> Iterator[tuple[str, State, tuple[int, ...]]]:
    """Some steps that were taken, with full Maps, and as many that may be refused."""
    states = found.graph.states
    fullest = sorted(range(found.graph.explored), key=lambda n: -_near_bound(spec, states[n]))
    taken = [(call, states[n]) for n in fullest[:READ] for call, _ in list(found.graph.leaving(n))[: 2 * READ]]
    for call, state in taken[:: max(1, len(taken) // READ)]:
        yield call.action, state, call.args
    offered = [(name, args) for name in spec.actions for args in arguments(bound, spec, name)]
    for name, args in offered[:: max(1, len(offered) // READ)]:
        yield name, states[-1], args


def _near_bound(spec: Spec, state: State) -> int:
    return sum(len(getattr(state, name).entries) for name in spec.maps)


def _read(spec: Spec, name: str, before: State, args: tuple[int, ...]) -> None:
    """Z3's reading of a step comes to what the plain function does, with these very numbers."""
    step = spec.actions[name]
    after: State | None
    try:
        after = step(before, *args)
    except Refused:
        after = None
    state = symbolic.symbolic(before)
    of = theory(spec, False, None)  # noqa: FBT003 - the design's own steps
    unknown, ways = of.ways(step)
    same = [symbolic.same_state(of.before, state)]
    same += [symbolic.number(u) == int(a) for u, a in zip(unknown.values(), args, strict=True)]
    reads = [
        z3.And(*way.facts, symbolic.same_state(way.outcome, symbolic.symbolic(after)))
        if after is not None and way.accepted
        else z3.And(way.facts)
        for way in ways
        if way.accepted == (after is not None)
    ]
    if ask((*same, z3.Or(reads)), work=READING).verdict == "unsat":
        raise Disagreement(f"{name}{args} in {before} is read otherwise: it comes to {after}")


# -- many ----------------------------------------------------------------------------------------------------------


def chunk(first: int, count: int, *, shrink: bool = True) -> CaseTally:
    """So many specs, the same ones for the same number; what fails is shrunk by Hypothesis."""
    tally = CaseTally()
    with_last: list[str] = []

    def one(text: str) -> None:
        with_last[:] = [text]
        seen = judge(text)
        tally.cases += 1
        tally.counts.update(seen)

    run: Callable[[], None] = seed(first)(
        settings(
            max_examples=count,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        )(given(specs())(one))
    )
    error = error_of(run)
    if error is not None:
        tally.failures.append(f"{described(error)}\n\n{with_last[0]}")
    return tally


WANTED = ("proved", "refuted", "specs proved", "specs that exploration breaks", "steps read")


def unseen(tally: CaseTally) -> list[str]:
    """The verdicts that many specs should have shown and did not: the test is blind for these."""
    return [name for name in WANTED if not tally.counts[name]]
