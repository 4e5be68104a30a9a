"""Small specs as Hypothesis builds them, in the words of the spec language: fields, Maps, quantifiers, nested cases.

They mean nothing. Most have an invariant that some step breaks; a good part of them are right, for their guards and
invariants are drawn from the same few shapes. What is drawn is text, so that what fails can be read and kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from hypothesis import strategies as st

SCALARS = ("a", "b", "c")
SMALL = ("0", "1", "-1", "2", "3")
COMPARED = ("==", "!=", "<", "<=")
KINDS = ("int", "Number", "bool")
DEPTH = 2  # of expressions within expressions
CASES = 4  # distinctions in one step, whose ways multiply

HEAD = '''"""A random spec."""

from dataclasses import dataclass

from gapless.spec.language import (
    Map, Number, all_between, applies, count_between, greatest, implies, replace, require, some_between,
)


@dataclass(frozen=True, slots=True)
class State:
{fields}

'''

TAIL = """
INITIAL = State()
INITIALS = ({starts})
ACTIONS = ({actions},)
INVARIANTS = ({invariants},)
STEP_PROPERTIES = ({step_properties})
"""


@dataclass(frozen=True)
class Names:
    """The names that an expression may use: of states, of their fields, and of numbers and flags."""

    states: tuple[str, ...]
    scalars: tuple[str, ...]
    maps: tuple[str, ...]
    pairs: tuple[str, ...] = ()  # the Maps of two keys
    numbers: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    bound: int = 0

    def within(self) -> Names:
        """The same with one more number, which a quantifier binds."""
        name = f"n{self.bound}"
        return replace(self, numbers=(*self.numbers, name), keys=(*self.keys, name), bound=self.bound + 1)


Draw = Callable[[st.SearchStrategy[Any]], Any]


@cache
def _among(choices: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.sampled_from(choices)


@cache
def _upto(most: int) -> st.SearchStrategy[int]:
    return st.integers(0, most)


def _one(draw: Draw, *choices: str) -> str:
    chosen: str = draw(_among(choices))
    return chosen


def number(draw: Draw, names: Names, depth: int = DEPTH) -> str:  # noqa: C901, PLR0911 - one for each kind
    """An expression that is a number; the plainest come first, to which Hypothesis shrinks."""
    match draw(_upto(9 if depth else 3)):
        case 0 | 1:
            fields = (f"{state}.{name}" for state in names.states for name in names.scalars)
            return _one(draw, *fields, *names.numbers)
        case 2:
            return _one(draw, *SMALL)
        case 3 if names.pairs and (not names.maps or draw(_upto(1))):
            return f"{_one(draw, *names.states)}.q[{_key(draw, names)}, {_key(draw, names)}]"
        case 3 if names.maps:
            key = _one(draw, "0", *names.keys, *(f"{names.states[0]}.{name}" for name in names.scalars))
            return f"{_one(draw, *names.states)}.{_one(draw, *names.maps)}[Number({key})]"
        case 4:
            return f"({number(draw, names, depth - 1)} {_one(draw, '+', '-')} {number(draw, names, depth - 1)})"
        case 5:
            return f"({_one(draw, '2', '3')} * {number(draw, names, depth - 1)})"
        case 6:
            return f"({number(draw, names, depth - 1)} {_one(draw, '//', '%')} {_one(draw, '2', '3')})"
        case 7:
            yes, no = number(draw, names, depth - 1), number(draw, names, depth - 1)
            return f"({yes} if {truth(draw, names, depth - 1)} else {no})"
        case 8:
            return f"greatest({number(draw, names, depth - 1)}, {number(draw, names, depth - 1)})"
        case 9:
            low, high = number(draw, names, 0), number(draw, names, 0)
            return f"count_between({low}, {high}, lambda n{names.bound}: {truth(draw, names.within(), depth - 1)})"
    return _one(draw, *SMALL)


def _key(draw: Draw, names: Names) -> str:
    return f"Number({_one(draw, '0', '1', *names.keys, f'{names.states[0]}.{names.scalars[0]}')})"


def truth(draw: Draw, names: Names, depth: int = DEPTH) -> str:
    """An expression that is true or not."""
    match draw(_upto(6 if depth else 2)):
        case 2 if names.flags:
            return _one(draw, *names.flags)
        case 3:
            low, high = number(draw, names, 0), number(draw, names, 0)
            word = _one(draw, "all_between", "some_between")
            return f"{word}({low}, {high}, lambda n{names.bound}: {truth(draw, names.within(), depth - 1)})"
        case 4:
            return f"({truth(draw, names, depth - 1)} {_one(draw, 'and', 'or')} {truth(draw, names, depth - 1)})"
        case 5:
            return f"(not {truth(draw, names, depth - 1)})"
        case 6:
            return f"implies({truth(draw, names, depth - 1)}, {truth(draw, names, depth - 1)})"
    less = min(depth, 1)
    return f"({number(draw, names, less)} {_one(draw, *COMPARED)} {number(draw, names, less)})"


def step(draw: Draw, which: int, names: Names) -> str:
    """A step: needs, case distinctions, an effect."""
    kinds = [_one(draw, *KINDS) for _ in range(draw(_upto(2)))]
    called = {kind: tuple(f"x{n}" for n, one in enumerate(kinds) if one == kind) for kind in KINDS}
    names = replace(names, numbers=(*called["int"], *called["Number"]), flags=called["bool"], keys=called["Number"])
    arguments = "".join(f", x{n}: {kind}" for n, kind in enumerate(kinds))
    lines = [f"def step_{which}(s: State{arguments}) -> State:"]
    for need in range(draw(_upto(2))):
        says = f'"need-{which}-{need}", because="it is needed", otherwise="it is unknown"'
        lines.append(f"    require({truth(draw, names)}, {says})")
    if cases := [truth(draw, names, 1) for _ in range(draw(_upto(CASES)))]:
        lines.append("    more = " + " + ".join(f"(1 if {case} else 0)" for case in cases))
        names = replace(names, numbers=(*names.numbers, "more"))
    if draw(_upto(1)):
        lines += [f"    if {truth(draw, names)}:", f"        return {effect(draw, names)}"]
    lines.append(f"    return {effect(draw, names)}")
    return "\n".join(lines) + "\n"


def start(draw: Draw, names: Names) -> str:
    """A function that makes initial states, of numbers, flags and Maps."""
    kinds = [_one(draw, "int", "bool") for _ in range(draw(_upto(2)))]
    given = {kind: tuple(f"y{n}" for n, one in enumerate(kinds) if one == kind) for kind in KINDS}
    arguments = [f"y{n}: {kind}" for n, kind in enumerate(kinds)]
    names = replace(names, numbers=given["int"], flags=given["bool"])
    lines = [f"    applies({truth(draw, names, 1)})"] * draw(_upto(1))
    lines.append(f"    return {effect(draw, names)}")
    if names.maps and draw(_upto(1)):
        arguments.append("z: Map[Number, int]")
        changes = f"m=z.set(Number({number(draw, names, 0)}), {number(draw, names, 1)})" if draw(_upto(1)) else "m=z"
        lines[-1] = f"    return replace(s, {changes}, a={number(draw, names)})"
    return "\n".join([f"def begin({', '.join(['s: State', *arguments])}) -> State:", *lines]) + "\n"


def effect(draw: Draw, names: Names) -> str:
    """The changes of one field, or of two."""
    changes = {name: _new(draw, names, name) for name in (_some(draw, names) for _ in range(1 + draw(_upto(1))))}
    return f"replace(s, {', '.join(f'{name}={value}' for name, value in changes.items())})"


def _some(draw: Draw, names: Names) -> str:
    return _one(draw, *names.scalars, *names.maps, *names.maps, *names.pairs, *names.pairs)


def _new(draw: Draw, names: Names, field: str) -> str:
    if field in names.pairs:
        if draw(_upto(3)) == 3:
            return "s.q.cleared()"
        return f"s.q.set({_key(draw, names)}, {_key(draw, names)}, {number(draw, names, 1)})"
    if field not in names.maps:
        return number(draw, names)
    key = f"Number({number(draw, names, 0)})"
    match draw(_upto(3)):
        case 2:
            return f"s.{field}.cleared()"
        case 3:
            return f"s.{field}.forget_from({key})"
    return f"s.{field}.set({key}, {number(draw, names, 1)})"


def invariant(draw: Draw, which: int, names: Names) -> str:
    """An invariant: mostly of the shapes that specs have, so that some are kept."""
    if draw(_upto(1)):
        names = replace(names, numbers=("k",), keys=("k",))
        if names.pairs and draw(_upto(1)):
            names = replace(names, numbers=("k", "l"), keys=("k", "l"))
    scalar = f"s.{_one(draw, *names.scalars)}"
    shapes: list[Callable[[], str]] = [
        lambda: f"0 <= {scalar}",
        lambda: truth(draw, names, 1),
        lambda: truth(draw, names),
    ]
    if names.keys and names.maps:
        shapes += [lambda: "0 <= s.m[k]", lambda: f"implies(s.m[k] != 0, k < {scalar})", lambda: f"s.m[k] <= {scalar}"]
    if names.keys and names.pairs:
        shapes += [lambda: f"0 <= s.q[k, {names.keys[-1]}]", lambda: f"s.q[{names.keys[-1]}, k] <= {scalar}"]
    parameter = "".join(f", {key}: Number" for key in names.keys)
    body = shapes[draw(_upto(len(shapes) - 1))]()
    return f'def holds_{which}(s: State{parameter}) -> bool:\n    """Otherwise."""\n    return {body}\n'


def step_property(draw: Draw, names: Names) -> str:
    """A step property."""
    names = replace(names, states=("before", "after"))
    scalar = _one(draw, *names.scalars)
    body = truth(draw, names, 1) if draw(_upto(1)) else f"before.{scalar} <= after.{scalar}"
    return f'def kept(before: State, after: State) -> bool:\n    """Otherwise."""\n    return {body}\n'


@st.composite
def specs(draw: Draw) -> str:
    """A whole spec, as text."""
    names = Names(("s",), SCALARS[: 1 + draw(_upto(2))], ("m",) * (draw(_upto(2)) > 0), ("q",) * (draw(_upto(2)) > 1))
    scalars = [f"    {name}: int = 0" for name in names.scalars]
    fields = [*scalars, *(f"    {name}: Map[Number, int] = Map(0)" for name in names.maps)]
    fields += [f"    {name}: Map[Number, Number, int] = Map(0)" for name in names.pairs]
    actions = [step(draw, n, names) for n in range(1 + draw(_upto(1)))]
    invariants = [invariant(draw, n, names) for n in range(1 + draw(_upto(1)))]
    of_steps = [step_property(draw, names) for _ in range(draw(_upto(1)))]
    starts = [start(draw, names) for _ in range(max(draw(_upto(3)) - 2, 0))]
    tail = TAIL.format(
        actions=", ".join(f"step_{n}" for n in range(len(actions))),
        invariants=", ".join(f"holds_{n}" for n in range(len(invariants))),
        step_properties="kept," * len(of_steps),
        starts="begin," * len(starts),
    )
    return (
        "\n\n".join([HEAD.format(fields="\n".join(fields)).rstrip() + "\n", *starts, *actions, *invariants, *of_steps])
        + tail
    )
