"""The compiled reading of a spec agrees with the plain one: same verdict, same reason, same state, or EXACT.

A kernel begins with empty Maps, so a state is reached by walking there. A walk offers events to the plain functions,
keeps those that are taken, and remembers each with the events before it; the kernel then replays every one of these.
Values are drawn from those that matter where the walk is: the state's own, their neighbours, and the ends of 64 bits.
"""

from __future__ import annotations

import ast
import functools
import marshal
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from inspect import get_annotations
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.native.objects import cache
from gapless.native.objects import object_code as native_code
from gapless.spec import coordinator, ring
from gapless.spec.broker import Counter as Counted
from gapless.spec.catalog import SPECS, Spec
from gapless.spec.language import Map, Number, Refused, all_between, require
from gapless.traces.replay import kernels
from gapless.traces.replay.exact import Event, named
from gapless.traces.replay.kernels import EXACT, UNKNOWN_ACTION, Kernel, Loop, ReplayResult, kernel
from gapless.traces.replay.step_functions import LONG, Reason, StepFunctions
from tests.support.needs import NEVER_UNMET
from tests.support.walks import (
    EVERY_SPEC,
    INT64,
    NO_BROKER,
    SOME_READINGS,
    SOME_SPECS,
    Offer,
    broker,
    drawing,
    profiles_of,
    some_of_each,
    walk,
    walks,
)

HUGE = tuple(sign * 2**power - near for power in (60, 61, 62, 63) for sign in (1, -1) for near in (-1, 0, 1))
WINDOW = range(-8, 392)  # the keys that Maps may have, unless a test sets others
KEYS = (Number, coordinator.Request, ring.Batch, Counted)  # the types of what Maps may be asked for
EDGES = tuple(value for value in HUGE if value in INT64)


@pytest.fixture(autouse=True)
def compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few events would be replayed by Python, where nothing is compiled yet."""
    monkeypatch.setattr(Loop, "few", 0)


def compiled(
    of: Kernel, offers: Sequence[Offer], profile: str, *, origin: int = WINDOW[0], width: int = len(WINDOW)
) -> ReplayResult:
    """Every offer as a trace of its own, all in one call; the keys of Maps lie in `origin:origin + width`."""
    spec = of.spec
    traces = [[*offer.path, offer.event] for offer in offers]
    events = [event for trace in traces for event in trace]
    args = np.full((len(spec.arguments), len(events)), 77, np.int64)  # what an action does not take, it must not read
    for at, event in enumerate(events):
        for name, value in named(spec.name, event).items():
            args[spec.arguments.index(name), at] = value
    begin = [[int(getattr(spec.initial, name))] * len(traces) for name in spec.scalars]
    return of.replay(
        np.cumsum([0, *(len(trace) for trace in traces)], dtype=np.int64),
        np.array([spec.codes[name] for name, _ in events], np.int8),
        args,
        np.array(begin, np.int64).reshape(len(spec.scalars), len(traces)),
        origins=np.full(len(traces), origin, np.int64),
        widths=np.full(len(traces), width, np.int64),
        profile=profile,
    )


def disagreements(of: Kernel, offers: Sequence[Offer], found: ReplayResult) -> Iterator[str]:
    """Yield events for which the kernel disagrees with the plain functions, and does not defer to them."""
    begin = 0
    for at, offer in enumerate(offers):
        last = begin + len(offer.path)
        begin = last + 1
        why, where = int(found.bad_why[at]), int(found.bad_at[at])
        if why == EXACT:
            continue
        refusal = None if why == 0 else (of.reasons[why - 1].action, of.reasons[why - 1].rule, where)
        expected = None if offer.rule is None else (offer.event[0], offer.rule, last)
        if refusal != expected:
            yield f"{offer}: the kernel says {refusal}, expected {expected}"
            continue
        state = {name: int(value) for name, value in zip(of.spec.scalars, found.state[:, at], strict=True)}
        for name, value in state.items():
            if value != getattr(offer.after, name):
                yield f"{offer}: the kernel has {name} = {value}, expected {getattr(offer.after, name)}"


def assert_agreement(
    of: Kernel, offers: Sequence[Offer], profile: str, *, origin: int = WINDOW[0], width: int = len(WINDOW)
) -> ReplayResult:
    """Compare the kernel with the plain functions."""
    found = compiled(of, offers, profile, origin=origin, width=width)
    for disagreement in disagreements(of, offers, found):
        pytest.fail(disagreement)
    return found


# -- agreement -----------------------------------------------------------------------------------------------------


def keys_of(spec: Spec, event: Event) -> set[int]:
    """The arguments that may be keys."""
    types = get_annotations(spec.actions[event[0]])
    return {value for name, value in named(spec.name, event).items() if types[name] in KEYS}


@SOME_READINGS
@given(data=st.data())
def test_small_values_get_the_same_answer_and_a_decision(spec: Spec, profile: str, data: st.DataObject) -> None:
    offers = list(walk(spec, profile, drawing(data), length=12))
    found = assert_agreement(kernel(spec.name), offers, profile)
    if EXACT in found.bad_why:
        keys = {key for offer in offers for event in offer.taken for key in keys_of(spec, event)}
        assert not all(WINDOW[0] <= key <= WINDOW[-1] for key in keys)
        return
    taken = Counter(name for offer in offers for name, _ in offer.taken)
    assert found.covered.tolist() == [taken[name] for name in spec.actions]
    deviated = Counter(name for offer in offers for name in offer.deviations)
    assert found.deviated[:-1].tolist() == [deviated[d.step.__name__] for d in spec.deviations]


@SOME_READINGS
@given(data=st.data())
def test_values_at_the_ends_of_64_bits_get_the_same_answer(spec: Spec, profile: str, data: st.DataObject) -> None:
    assert_agreement(kernel(spec.name), list(walk(spec, profile, drawing(data), length=10, edges=EDGES)), profile)


@SOME_READINGS
@given(data=st.data(), origin=st.integers(-2, 6), width=st.integers(0, 4))
def test_a_narrow_window_never_makes_a_wrong_answer(
    spec: Spec, profile: str, data: st.DataObject, origin: int, width: int
) -> None:
    offers = list(walk(spec, profile, drawing(data), length=12))
    assert_agreement(kernel(spec.name), offers, profile, origin=origin, width=width)


def test_sums_of_large_arguments_do_not_wrap_around() -> None:
    """Each argument has room to spare in 64 bits; what a guard adds up has not."""
    near = 2**62 - 1
    opened = ("open", (near, near))
    state = SPECS["log"].step(SPECS["log"].initial, *_named("log", opened), NO_BROKER)[0]
    event = ("append", (near, near, near, 1, 1, 1, 1, 0))
    with pytest.raises(Refused) as refused:
        SPECS["log"].step(state, *_named("log", event), NO_BROKER)
    offer = Offer((opened,), event, state, f"log/{refused.value.rule}", ())
    assert_agreement(kernel("log"), [offer], NO_BROKER)


def _named(spec: str, event: Event) -> tuple[str, dict[str, int]]:
    return event[0], named(spec, event)


@pytest.mark.slow
@SOME_READINGS
def test_every_action_deviation_and_reason_is_met_on_walks(spec: Spec, profile: str) -> None:
    """Agreement says nothing of what no walk meets: on these all agree, and nothing is left out."""
    offers = walks(spec, profile)
    of = kernel(spec.name)
    assert_agreement(of, some_of_each(offers, 40), profile)
    assert {name for offer in offers for name, _ in offer.taken} == set(spec.actions)
    assert {name for offer in offers for name in offer.deviations} == {d.step.__name__ for d in spec.allowed(profile)}
    refused = {(offer.event[0], offer.rule) for offer in offers if offer.rule}
    assert refused <= {(reason.action, reason.rule) for reason in of.reasons if is_of_the_action(reason)}


@pytest.mark.slow
@SOME_SPECS
def test_every_reason_is_met_on_walks(spec: Spec) -> None:
    """Some only behind a deviation."""
    every = needs_of(kernel(spec.name))
    offers = [offer for profile in profiles_of(spec) for offer in walks(spec, profile)]
    assert {(offer.event[0], offer.rule) for offer in offers if offer.rule} == every


def needs_of(of: Kernel) -> set[tuple[str, str]]:
    """Every action and need of its own that some run leaves unmet."""
    own = {(reason.action, reason.rule) for reason in of.reasons if is_of_the_action(reason)}
    return own - {(action, f"{spec}/{need}") for spec, action, need in NEVER_UNMET if spec == of.spec.name}


def is_of_the_action(reason: Reason) -> bool:
    """True if a need is the action's own; those of a deviation are never reported."""
    return reason.step == reason.action


# -- a Map that is written, forgotten and read in one step ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """The state of a spec that is made up for this."""

    found: int = 0  # what the last writer read
    there: int = 0  # what was read later
    full: int = 0  # whether every line had something written
    lines: Map[Number, int] = Map(0)


def write_and_forget(s: Page, first: Number, low: Number, then: Number, asked: Number) -> Page:
    """Write and clear: the last effect on a key counts, in a guard, a quantifier or a new value."""
    before = s.lines.forget_from(then)
    lines = s.lines.set(first, 7).forget_from(low).set(then, before[asked] + 8)
    require(lines[first] < 20, "there-is-room", because="there is room", otherwise="a line runs over")
    full = 1 if all_between(0, 4, lambda n: lines[Number(n)] > 0) else 0
    return replace(s, lines=lines, full=full, found=lines[asked])


def write_and_clear(s: Page, first: Number, low: Number, asked: Number) -> Page:
    """A cleared Map has forgotten what was written before, and not what is written after."""
    lines = s.lines.set(low, 3).cleared().set(first, 5).forget_from(low)
    return replace(s, lines=lines, found=lines[asked])


def read(s: Page, asked: Number) -> Page:
    """Read its current value."""
    return replace(s, there=s.lines[asked])


LINES = st.integers(0, 3)
A_STEP = st.tuples(st.booleans(), LINES, LINES, LINES, LINES)


@given(steps=st.lists(A_STEP, min_size=1, max_size=4), origin=st.sampled_from([0, 0, 1]), asked=LINES)
def test_effects_on_a_map_take_place_in_order(
    steps: list[tuple[bool, int, int, int, int]], origin: int, asked: int
) -> None:
    module = ModuleType("page")
    vars(module).update(INITIAL=Page(), ACTIONS=(write_and_forget, write_and_clear, read), DEVIATIONS=())
    spec = Spec(module)
    of = kernel(spec)
    trace: list[Event] = [
        ("write_and_clear", (a, b, d)) if clear else ("write_and_forget", (a, b, c, d)) for clear, a, b, c, d in steps
    ]
    trace.append(("read", (asked,)))
    state, taken = spec.initial, 0
    for name, values in trace:
        try:
            state, _ = spec.step(state, name, dict(zip(spec.parameters[name], values, strict=True)), NO_BROKER)
        except Refused:
            break
        taken += 1
    found = replay_one(of, trace, origin=origin, width=4)
    if found.bad_why[0] == EXACT:
        assert origin, "all keys lie in the window"
        return
    assert found.bad_at[0] == (taken if taken < len(trace) else -1)
    assert found.state[:, 0].tolist() == [state.found, state.there, state.full]


def replay_one(of: Kernel, trace: Sequence[Event], *, origin: int, width: int) -> ReplayResult:
    """One trace from the spec's initial state."""
    spec = of.spec
    args = np.full((len(spec.arguments), len(trace)), 77, np.int64)
    for at, (name, values) in enumerate(trace):
        for parameter, value in zip(spec.parameters[name], values, strict=True):
            args[spec.arguments.index(parameter), at] = value
    return of.replay(
        np.array([0, len(trace)]),
        np.array([spec.codes[name] for name, _ in trace], np.int8),
        args,
        np.zeros((len(spec.scalars), 1), np.int64),
        origins=np.array([origin]),
        widths=np.array([width]),
        profile=NO_BROKER,
    )


# -- disagreement --------------------------------------------------------------------------------------------------


def uncompiled(of: Kernel, steps: StepFunctions) -> Kernel:
    """A kernel with other steps, run as plain Python: slow, and good enough for a few events."""
    return replace(of, loop=kernels.python_reading(of.spec, kernels.code_of(steps)))


class WithoutGuard(ast.NodeTransformer):
    """StepFunctions in which these reasons are never given: the question before each always has the other answer."""

    def __init__(self, leaves: Sequence[int]) -> None:
        self.leaves = leaves

    def changes(self, function: ast.FunctionDef) -> bool:
        """True if the function gives one of the reasons."""
        return not _answers(function).isdisjoint(self.leaves)

    def visit_If(self, node: ast.If) -> ast.AST:
        """A question whose yes is a refusal."""
        self.generic_visit(node)
        if self.refuses(node.body):
            node.test = ast.copy_location(ast.Constant(value=False), node.test)
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Lines among which a question's no is a refusal."""
        super().generic_visit(node)
        for lines in (getattr(node, "body", []), getattr(node, "orelse", [])):
            if isinstance(lines, list) and len(lines) > 1 and self.refuses(lines[-1:]):
                asked = lines[-2]
                assert isinstance(asked, ast.If)
                asked.test = ast.copy_location(ast.Constant(value=True), asked.test)
        return node

    def refuses(self, lines: Sequence[ast.stmt]) -> bool:
        """True if lines give one of the reasons."""
        match lines:
            case [ast.Return(value=ast.Constant(value=number))]:
                return type(number) is int and number in self.leaves
        return False


@functools.cache
def _answers(function: ast.FunctionDef) -> frozenset[object]:
    """The constants that a function returns."""
    returned = (node.value for node in ast.walk(function) if isinstance(node, ast.Return))
    return frozenset(value.value for value in returned if isinstance(value, ast.Constant))


class Forgetful(ast.NodeTransformer):
    """StepFunctions that never write one number of the state."""

    def __init__(self, row: int) -> None:
        self.row = row
        self.forgot = False

    def changes(self, _function: ast.FunctionDef) -> bool:
        """Any may store it."""
        return True

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """A number that is stored, or not."""
        match node.targets:
            case [ast.Subscript(value=ast.Name(id="now"), slice=ast.Constant(value=row))] if row == self.row:
                self.forgot = True
                return ast.copy_location(ast.Pass(), node)
        return node


def changed(steps: StepFunctions, by: WithoutGuard | Forgetful) -> StepFunctions:
    """Other steps, made of these. A copy takes longer than to run them, so what stays as it is is not copied."""
    every = steps.functions
    return replace(steps, functions=tuple(by.visit(deepcopy(one)) if by.changes(one) else one for one in every))


@pytest.mark.slow
@SOME_SPECS
def test_a_kernel_that_lacks_one_guard_is_found_out(spec: Spec) -> None:
    of = kernel(spec.name)
    whole = uncompiled(of, of.steps)
    met = defaultdict(list)
    for profile in profiles_of(spec):
        for offer in (offer for offer in walks(spec, profile) if offer.rule):
            met[offer.event[0], offer.rule].append((profile, offer))
    for action, rule in sorted(needs_of(of)):
        profile = met[action, rule][0][0]
        offers = [offer for its_profile, offer in met[action, rule] if its_profile == profile][:9]
        leaves = [n for n, reason in enumerate(of.reasons, 1) if (reason.action, reason.rule) == (action, rule)]
        broken = uncompiled(of, changed(of.steps, WithoutGuard(leaves)))
        assert not any(disagreements(of, offers, compiled(whole, offers, profile)))
        assert any(disagreements(of, offers, compiled(broken, offers, profile))), rule


@pytest.mark.slow
@SOME_SPECS
def test_a_kernel_that_forgets_a_step_is_found_out(spec: Spec) -> None:
    of, profile = kernel(spec.name), broker(spec)
    offers = walks(spec, profile)
    for name in spec.scalars:
        forgetful = Forgetful(spec.scalars.index(name))
        broken = uncompiled(of, changed(of.steps, forgetful))
        if forgetful.forgot:
            taken = (o for o in offers if not o.rule and getattr(o.after, name) != getattr(spec.initial, name))
            some = list(islice(taken, 25))
            assert any(disagreements(of, some, compiled(broken, some, profile))), name


@EVERY_SPEC
def test_nothing_is_written_twice_and_no_function_is_long(spec: Spec) -> None:
    """Compilers take longer the longer a function is: steps that are made of steps took minutes as one."""
    functions = kernel(spec.name).steps.functions
    bodies = [ast.dump(ast.Module(function.body, [])) for function in functions]
    assert len(set(bodies)) == len(bodies)
    assert max(len(list(ast.walk(function))) for function in functions) < 4 * LONG


def test_a_kernel_is_handed_columns_of_one_kind() -> None:
    """Columns whose values lie apart would compile it again."""
    handed: list[list[np.ndarray[Any, Any]]] = []

    class Hands:
        def __call__(self, *columns: np.ndarray[Any, Any]) -> None:
            handed.append(list(columns))

    of = replace(kernel(SPECS["queue"]), loop=Hands())
    for kind in (lambda column: column, fixed, apart):
        starts, action, origins, widths, rows = (
            kind(np.zeros(count, dtype))
            for count, dtype in ((3, np.int64), (4, np.int8), (2, np.int64), (2, np.int64), (4, np.int64))
        )
        args = kind(np.zeros((len(of.spec.arguments), 4), np.int64))
        state = np.zeros((len(of.spec.scalars), 2), np.int64)
        of.replay(starts, action, args, state, origins=origins, widths=widths, rows=rows, profile="strict")
    kinds = [[(c.dtype, c.flags.c_contiguous) for c in columns] for columns in handed]
    assert kinds[0] == kinds[1] == kinds[2]


def fixed(column: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same, which may not be written to."""
    column.flags.writeable = False
    return column


def apart(column: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same, with others between its values."""
    return np.repeat(column, 2, axis=-1)[..., ::2]


def test_an_action_that_the_spec_does_not_have_is_reported() -> None:
    of = kernel("log")
    nothing = np.zeros((len(of.spec.arguments), 1), np.int64)
    begin = np.zeros((len(of.spec.scalars), 1), np.int64)
    found = of.replay(np.array([0, 1]), np.array([99], np.int8), nothing, begin, profile=NO_BROKER)
    assert found.bad_why.tolist() == [UNKNOWN_ACTION]


def test_what_python_makes_of_a_kernel_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernels, "cache_folder", lambda: tmp_path)
    make = kernels._kernel.__wrapped__
    first = make(SPECS["lookup"], frozenset())
    (kept,) = tmp_path.iterdir()
    whole = kept.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "trees_of", lambda _: pytest.fail("made again"))
        assert make(SPECS["lookup"], frozenset()).reasons == first.reasons
    kept.write_bytes(whole[:-1])
    assert make(SPECS["lookup"], frozenset()).reasons == first.reasons, "what is not whole is made again"
    head, code = cache.read(kept) or ({}, b"")
    cache.keep(kept, head, marshal.dumps(compile("def step(act): return 0", "of another loop", "exec")))
    assert make(SPECS["lookup"], frozenset()).reasons == first.reasons
    assert (cache.read(kept) or ({}, b""))[1] == code, "what the loop cannot call is made again"


def test_a_kernel_is_compiled_once_there_are_many_events(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "gapless")
    for module in (native_code, cache):
        monkeypatch.setattr(module, "cache_folder", lambda: tmp_path)
    cache.files.cache_clear()
    monkeypatch.setattr(Loop, "few", 100)
    of = kernel("lookup")
    of = replace(of, loop=fresh(of))
    begin = np.zeros((len(of.spec.scalars), 1), np.int64)

    def replay(events: int) -> int:
        args = np.zeros((len(of.spec.arguments), events), np.int64)
        found = of.replay(np.array([0, events]), np.zeros(events, np.int8), args, begin, profile=NO_BROKER)
        return int(found.bad_at[0])

    few = replay(20)
    assert not any(tmp_path.glob("*.o")), "these are for Python"
    assert not caplog.messages
    assert replay(200) == few
    assert len(caplog.messages) <= 1, "the first function that a process compiles is reported"
    assert any(tmp_path.glob("*.o")), "and these for the compiler"
    cache.files.cache_clear()
    again = fresh(of)
    assert replace(of, loop=again).replay(
        np.array([0, 0]),
        np.zeros(0, np.int8),
        np.zeros((len(of.spec.arguments), 0), np.int64),
        begin,
        profile=NO_BROKER,
    ).bad_at.tolist() == [-1]
    assert again._native is not None, "what was compiled is used from the start"
    assert len(caplog.messages) <= 1


def fresh(of: Kernel) -> Loop:
    """The loop of a kernel that has seen no event."""
    return Loop(of.spec, kernels.code_of(of.steps), lambda: of.steps, "another")
