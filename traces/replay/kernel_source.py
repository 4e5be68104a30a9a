"""Writes a spec's replay loop: the forking engine runs its functions on fragments of code, and the ways become source.

Each action is a function of its own. Its decision tree becomes nested `if`s, its effects assignments, its refusals
numbered reasons. What is alike in several places of the trees is written once, and called: trees of steps that are made
of steps repeat themselves, and compilers take longer the longer a function is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from gapless.spec import forking
from gapless.spec.catalog import Spec
from gapless.spec.language import Reader, Refused, reader
from gapless.traces.replay.fragments import ARGUMENT, Code, Reads, Window, reads_of, text_of

LIMIT = 2**60  # so that sums of a few arguments and fields stay within 64 bits


@dataclass(frozen=True)
class Reason:
    """Why a step is refused: the need that is not met, what follows from that, and what the need looks at."""

    action: str
    step: str  # the action's name, or that of the deviation that was tried in its place
    rule: str  # its id, SPEC/RULE
    because: str
    otherwise: str
    reads: Reads

    @property
    def arguments(self) -> frozenset[str]:
        """The event's arguments that the need looks at."""
        return frozenset(name for name, key in self.reads if key == ARGUMENT)

    @property
    def fields(self) -> frozenset[tuple[str, str]]:
        """The state's fields that the need looks at; of a Map, with the source of the key."""
        return frozenset((name, key) for name, key in self.reads if key != ARGUMENT)


def _as_written(question: Code) -> str:
    """Two questions are one if they are written alike: `==` of fragments is a fragment."""
    return question.text


def tree_of(function: Callable[..., Any], *args: Any) -> Any:
    """All ways through a function of fragments, as one tree of questions."""
    return forking.decision_tree(function, *args, known=forking.Path.asked_before, key=_as_written)


def found_in(pattern: str, text: str) -> list[Any]:
    """All that a pattern finds in a piece of source. In ASCII alone, what is of a word is found in half the time."""
    return re.findall(pattern, text, re.ASCII if text.isascii() else re.NOFLAG)


def names_in(text: str) -> list[str]:
    """The fields (`s_`) and arguments (`a_`) that a piece of source looks at, each once, in order."""
    return list(dict.fromkeys(found_in(r"\b[as]_\w+", text)))


# -- quantifiers ---------------------------------------------------------------------------------------------------

QUANTIFIER = """

@njit
def {name}(low, high, {names}windows, origin, width, escape):
    if low < high and (low < origin or high > origin + width):
        escape[0] = 1
        return False
    for n in range(low, high):
{body}    return True
"""


class _Quantifiers(Reader):
    """Reads `all_between` as a loop in a function of its own, bounded by the window."""

    def __init__(self) -> None:
        self.functions: dict[str, str] = {}  # names by body, for every path through a step asks again

    def source(self) -> str:
        """The functions that the steps call."""
        return "".join(QUANTIFIER.format(name=n, names=_given(b), body=b) for b, n in self.functions.items())

    def all_between(self, low: Any, high: Any, holds: Callable[[Any], Any]) -> Code:
        tree = tree_of(holds, Code("n"))
        body = truth(tree, " " * 8)
        name = self.functions.setdefault(body, f"holds_{len(self.functions)}")
        inside = reads_of(*_questions(tree))
        given = f"{text_of(low)}, {text_of(high)}, {_given(body)}windows, origin, width, escape"
        return Code(f"{name}({given})", reads_of(low, high) | inside)


def _given(body: str) -> str:
    return "".join(f"{name}, " for name in names_in(body))


def _questions(tree: Any) -> Iterator[Any]:
    if isinstance(tree, forking.Leaf):
        yield tree.outcome
        return
    yield tree.question
    yield from _questions(tree.yes)
    yield from _questions(tree.no)


def truth(tree: Any, indent: str) -> str:
    """Source that returns False where the tree's outcome is false."""
    if isinstance(tree, forking.Leaf):
        return f"{indent}if not {text_of(tree.outcome)}:\n{indent}    return False\n"
    deeper = indent + "    "
    return f"{indent}if {text_of(tree.question)}:\n{truth(tree.yes, deeper)}{indent}else:\n{truth(tree.no, deeper)}"


# -- subtrees -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Subtree:
    """A decision tree, or what is left of one behind some answers, as source: a question, or the lines of an outcome.

    Subtrees that are alike are one object. Each ends with a `return`.
    """

    text: str
    yes: Subtree | None = None
    no: Subtree | None = None


CALLED = "e, now, args, windows, origin, width, escape"
SHARED, LONG = 240, 4_000  # letters from which a subtree is a function of its own: where it is met twice; anywhere

FUNCTION = """

@njit
def {name}({called}):
{loads}{body}"""


class Functions:
    """Subtrees as functions, none written twice. `called`: what each is given."""

    def __init__(self, loads: Callable[[str], str], called: str) -> None:
        self.loads, self.called = loads, called
        self.met: dict[tuple[str, int, int], Subtree] = {}
        self.parts = count()
        self.written: list[str] = []

    def subtree(self, text: str, yes: Subtree | None = None, no: Subtree | None = None) -> Subtree:
        """The subtree of this text; where both answers have the same consequences there is no question."""
        if yes is not None and yes is no:
            return yes
        return self.met.setdefault((text, id(yes), id(no)), Subtree(text, yes, no))

    def source(self, roots: dict[str, Subtree]) -> str:
        """Functions of these names, and before each what it calls."""
        shared = Counter[Subtree]()
        pending, seen = list(roots.values()), set(roots.values())
        while pending:
            for child in (part := pending.pop()).yes, part.no:
                if child is not None:
                    shared[child] += 1
                    pending += [] if child in seen else [child]
                    seen.add(child)
        bodies: dict[Subtree, str] = {}
        for name, root in roots.items():
            self.write(name, self._body(root, shared, bodies))
        return "".join(self.written)

    def _body(self, part: Subtree, shared: Counter[Subtree], bodies: dict[Subtree, str]) -> str:
        if part not in bodies:
            bodies[part] = body = self._inside(part, shared, bodies)
            if part.yes is not None and (len(body) > LONG or (shared[part] > 1 and len(body) > SHARED)):
                name = f"part_{next(self.parts)}"
                self.write(name, body)
                bodies[part] = f"    return {name}({self.called})\n"
        return bodies[part]

    def _inside(self, part: Subtree, shared: Counter[Subtree], bodies: dict[Subtree, str]) -> str:
        if part.yes is None or part.no is None:
            return part.text
        yes, no = (self._body(child, shared, bodies) for child in (part.yes, part.no))
        return f"    if {part.text}:\n{deeper(yes)}{no}"

    def write(self, name: str, body: str) -> None:
        """One more function."""
        self.written.append(FUNCTION.format(name=name, called=self.called, loads=self.loads(body), body=body))


def deeper(lines: str) -> str:
    """The lines, indented once more."""
    return "".join(f"    {line}" for line in lines.splitlines(keepends=True))


# -- the whole loop ------------------------------------------------------------------------------------------------


class Writer:
    """Writes one spec's replay loop. `called`: what its functions are given."""

    called = CALLED

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.reasons: dict[Reason, int] = {}  # each with its number, from 1
        self.quantifiers = _Quantifiers()
        self.functions = Functions(self.loads, self.called)
        fields: dict[str, Any] = {name: Code(f"s_{name}", frozenset({(name, "")})) for name in spec.scalars}
        for column, name in enumerate(spec.maps):
            fields[name] = Window(column, name, int(getattr(spec.initial, name).default))
        self.state = type(spec.initial)(**fields)
        self.places = {f"s_{name}": f"now[{row}]" for row, name in enumerate(spec.scalars)}
        self.places |= {f"a_{name}": f"args[{row}, e]" for row, name in enumerate(spec.arguments)}

    def source(self) -> str:
        """The whole file."""
        roots, branches = {}, ""
        for code, action in enumerate(self.spec.actions):
            roots[f"step_{code}"] = self.step(self.spec.actions[action], action, bounded=True)
            branches += f"            {'elif' if code else 'if'} act == {code}:\n"
            branches += f"                why = step_{code}({CALLED})\n"
            for number, deviation in enumerate(self.spec.deviations):
                if deviation.instead_of is self.spec.actions[action]:
                    roots[f"instead_{number}"] = self.step(deviation.step, action)
                    branches += INSTEAD.format(number=number, called=CALLED, bit=1 << number)
        functions = self.functions.source(roots)
        rows = range(len(self.spec.scalars))
        inward = "".join(f"        now[{row}] = state[{row}, t]\n" for row in rows)
        outward = "".join(f"        state[{row}, t] = now[{row}]\n" for row in rows)
        bound = LOOP_BOUND.format(large=_large([f"now[{row}]" for row in rows])) if rows else ""
        defaults = "".join(
            f"            windows[:width, {column}] = {int(getattr(self.spec.initial, name).default)}\n"
            for column, name in enumerate(self.spec.maps)
        )
        head = HEAD.format(spec=self.spec.name, limit=LIMIT) + self.quantifiers.source() + functions
        begin = inward + bound + (UNLESS_HELD + defaults + LOADED if self.spec.maps else "")
        end = LOOP_TAIL + outward + (LEFT if self.spec.maps else "")
        return head + LOOP_HEAD + begin + LOOP_EVENT + branches + end

    def loads(self, body: str) -> str:
        """What a function reads of the state and of the event, by name."""
        return "".join(f"    {name} = {self.places[name]}\n" for name in names_in(body))

    def step(self, function: Callable[..., Any], action: str, *, bounded: bool = False) -> Subtree:
        """A step's decision tree, where the arguments are `bounded` behind a look at them."""
        grown = self.grown(self.tree(function, action), action, function.__name__)
        large = _large([f"a_{name}" for name in self.spec.parameters[action]])
        subtree = self.functions.subtree
        return subtree(large, subtree("    return -1\n"), grown) if bounded and large else grown

    def tree(self, function: Callable[..., Any], action: str) -> Any:
        """All ways through a step, as a tree of questions."""
        args = [Code(f"a_{name}", frozenset({(name, ARGUMENT)})) for name in self.spec.parameters[action]]
        token = reader.set(self.quantifiers)
        try:
            return tree_of(function, self.state, *args)
        finally:
            reader.reset(token)

    def grown(self, node: Any, action: str, step: str) -> Subtree:
        """The same as source."""
        subtree = self.functions.subtree
        if not isinstance(node, forking.Leaf):
            yes, no = (self.grown(child, action, step) for child in (node.yes, node.no))
            return subtree(text_of(node.question), yes, no)
        if isinstance(node.outcome, Refused):
            return subtree(self.refusal(action, step, node))
        return subtree(self.effect(node))

    def refusal(self, action: str, step: str, leaf: Any) -> str:
        """The lines of a refusal: its reason's number."""
        return f"    return {self.reason(action, step, leaf)}\n"

    def reason(self, action: str, step: str, leaf: Any) -> int:
        """The number of why a step is refused."""
        refused, rule = leaf.outcome, f"{self.spec.name}/{leaf.outcome.rule}"
        reason = Reason(action, step, rule, refused.because, refused.otherwise, reads_of(leaf.asked))
        return self.reasons.setdefault(reason, len(self.reasons) + 1)

    def effect(self, leaf: Any) -> str:
        """Every new value is computed before any is stored, for each may read what another replaces.

        What is computed must lie within the bound, as all that goes in does: so no step can leave 64 bits.
        """
        made: list[str] = []
        stored: list[str] = []
        computed: list[str] = []

        def keep(value: Any) -> str:
            name, text = f"t{len(made)}", text_of(value)
            if not isinstance(value, Code) or text.startswith("a_"):  # nothing replaces it
                return text
            made.append(f"    {name} = {text}\n")
            if text.startswith("("):  # an operation, and neither a name nor a lookup
                computed.append(name)
            return name

        for row, name in enumerate(self.spec.scalars):
            value = getattr(leaf.outcome, name)
            if text_of(value) != f"s_{name}":
                stored.append(f"    now[{row}] = {keep(value)}  # {name}\n")
        for name in self.spec.maps:
            window = getattr(leaf.outcome, name)
            if window.empty:
                stored.append(f"    windows[:width, {window.column}] = {window.default}\n")
            stored += [f"    {effect.source(window, keep)}\n" for effect in window.effects]
        large = f"    if {_large(computed)}:\n        return -1\n" if computed else ""
        return "".join([*made, large, *stored, "    return 0\n"])


def _large(names: list[str]) -> str:
    return " or ".join(f"not -LIMIT < {name} < LIMIT" for name in names)


LOOKED_BELOW = """    if place < 0:
        windows[-1, 0] = 1
"""  # a kernel's windows have a row more, which says that somebody looked at keys below the others

HEAD = '''"""Generated from the spec `{spec}`. Do not edit: change the spec."""

from gapless.traces.native import njit

LIMIT = {limit}


@njit
def at(windows, place, width, column, default):
    if place < 0:
        windows[-1, 0] = 1
    return windows[place, column] if 0 <= place < width else default


@njit
def put(windows, place, width, column, default, value, escape):
    if 0 <= place < width:
        windows[place, column] = value
    elif value != default:
        escape[0] = 1


@njit
def forget(windows, place, width, column, default):
    if place < 0:
        windows[-1, 0] = 1
    for later in range(max(place, 0), width):
        windows[later, column] = default


@njit
def load(windows, place, cells, low, high):
    for column in range(len(cells)):
        for cell in range(low, high):
            windows[place + cell - low, column] = cells[column, cell]


@njit
def leave(windows, cells, low, high):
    for column in range(len(cells)):
        for cell in range(low, high):
            cells[column, cell] = windows[cell - low, column]
'''

INSTEAD = """                if why > 0 and allowed[{number}]:
                    instead = instead_{number}({called})
                    if instead == 0 and escape[0] == 0:
                        if deviated[{number}] == 0 or (len(rows) > 0 and rows[e] < rows[deviated_at[{number}]]):
                            deviated_at[{number}] = e
                        deviated[{number}] += 1
                        deviant[t] |= {bit}
                    if instead <= 0:
                        why = instead
"""

LOOP_HEAD = """

@njit
def replay(
    starts, action, args, state, now, origins, widths, windows, allowed,
    bad_at, bad_why, covered, deviated, deviated_at, deviant, there, loaded, cells, cut, left, left_cells, rows,
):
    escape = deviated_at[-1:]
    for t in range(len(starts) - 1):
        bad_at[t] = -1
        bad_why[t] = 0
        deviant[t] = 0
        origin = origins[t]
        width = widths[t]
"""

LOOP_BOUND = """        if {large}:
            bad_at[t] = starts[t]
            bad_why[t] = -1
            continue
"""

UNLESS_HELD = """        if len(loaded) > 0:
"""  # otherwise somebody holds the windows from one call to the next

LOADED = """        if len(loaded) > 1:
            windows[-1, 0] = 0
            load(windows, there[t] - origin, cells, loaded[t], loaded[t + 1])
"""

LEFT = """        if len(left) > 1:
            if len(loaded) > 1 and cut[t] and windows[-1, 0] != 0:
                bad_at[t] = starts[t]
                bad_why[t] = -1
            leave(windows, left_cells, left[t], left[t + 1])
"""

LOOP_EVENT = """        for e in range(starts[t], starts[t + 1]):
            why = 0
            act = action[e]
"""

LOOP_TAIL = """            else:
                why = -2
            if escape[0] != 0:
                escape[0] = 0
                why = -1
            if why != 0:
                bad_at[t] = e
                bad_why[t] = why
                break
            covered[act] += 1
"""
