"""Decision trees of terms: all ways through a function of a spec, as questions and outcomes.

    Branch(question, yes, no)       a term that is asked, and the trees behind either answer
    End(outcome)                    a state of terms, a Refused, a truth value or number (plain or a Term), LEFT_ALONE

Trees are nodes as terms are: equal subtrees are one object, a question whose answers have the same consequences is not
asked, and `reads` has all that a tree looks at (of an outcome that is a state or a refusal: nothing).

`tree_of` makes them, within `reading()`, of functions that are given a `state_of_terms`. `known` may be `asked_before`,
or `difference_bounds.Answers(…).known`, which knows what follows, too. `obstacle` says which outcome of a step cannot
be compiled. `nodes`, `outcomes`, `questions` and `ways` go through trees; `answered` leaves out what is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, Self, cast

from gapless.spec import forking, language
from gapless.spec.language import Map, Reader, Refused, reader
from gapless.spec.reading.quantification import for_every_number, is_flag, parameters
from gapless.spec.reading.trees.terms import (
    BEFORE,
    CONTRARY,
    NOTHING,
    TURNED,
    Count,
    Every,
    Field,
    MapTerm,
    Node,
    Operation,
    Reads,
    Term,
    Variable,
    term_of,
)

Known = forking.Known
asked_before = forking.Path.asked_before
"""Knows the answers of the path alone."""


class LeftAlone:
    """The outcome of a function that divides by 0: the plain functions are asked, which raise there."""

    def __repr__(self) -> str:
        return "LEFT_ALONE"


LEFT_ALONE: Final = LeftAlone()
"""The outcome of a way that no compiled reading decides."""


class NoEnds(Exception):  # noqa: N818 - it is caught where trees are made.
    """A property speaks of every number, and no comparison says between which two: the plain functions are asked."""


class Branch(Node):
    """A question, and what follows from either answer."""

    __slots__ = ()
    __match_args__ = ("question", "yes", "no")

    def __new__(cls, question: Term, yes: Tree, no: Tree) -> Self:
        """The tree of this question; where both answers have the same consequences, what follows from both."""
        return cast("Self", yes) if yes is no else super().__new__(cls, question, yes, no)

    @property
    def question(self) -> Term:
        """The term that is asked."""
        return cast("Term", self.parts[0])

    @property
    def yes(self) -> Tree:
        """The tree behind a yes."""
        return cast("Tree", self.parts[1])

    @property
    def no(self) -> Tree:
        """The tree behind a no."""
        return cast("Tree", self.parts[2])


class End(Node):
    """The outcome of a way."""

    __slots__ = ("outcome",)
    __match_args__ = ("outcome",)
    outcome: Any

    def __new__(cls, outcome: Any) -> Self:
        """The end with this outcome."""
        found = super().__new__(cls, _structure(outcome))
        if not hasattr(found, "outcome"):
            found.outcome = outcome
        return found

    def _reads_of_parts(self) -> Reads:
        (part,) = self.parts
        return part.reads if isinstance(part, Term) else NOTHING


Tree = Branch | End


def _structure(outcome: Any) -> Any:
    """All that tells an outcome from others, as a key."""
    if isinstance(outcome, MapTerm):
        return outcome.structure
    if isinstance(outcome, Refused):
        return "refused", outcome.rule, outcome.because, outcome.otherwise
    if is_dataclass(outcome) and not isinstance(outcome, Map):
        return (type(outcome), *(_structure(getattr(outcome, f.name)) for f in fields(outcome)))
    if isinstance(outcome, bool | int):  # True is not 1 here, but a tree that holds
        return "value", isinstance(outcome, bool), int(outcome)
    return outcome


TRUE, FALSE = End(True), End(False)  # noqa: FBT003 - these are what they are


def _by_identity(question: Any) -> int:
    return id(question)


def tree_of(function: Callable[..., Any], *args: Any, known: Known = asked_before) -> Tree:
    """All ways through a function of terms, as one tree of the questions that have two answers."""

    def left_alone(*given: Any) -> Any:
        try:
            return function(*given)
        except (ZeroDivisionError, NoEnds):
            return LEFT_ALONE

    return _shared(forking.decision_tree(left_alone, *args, known=known, key=_by_identity))


def _shared(tree: Any) -> Tree:
    if isinstance(tree, forking.Leaf):
        return End(tree.outcome)
    return Branch(tree.question, _shared(tree.yes), _shared(tree.no))


def nodes(*trees: Tree) -> Iterator[Tree]:
    """Every branch and end of trees, each once."""
    seen, pending = set[Tree](), list(reversed(trees))
    while pending:
        tree = pending.pop()
        if tree not in seen:
            seen.add(tree)
            yield tree
            if isinstance(tree, Branch):
                pending += tree.no, tree.yes


def outcomes(*trees: Tree) -> Iterator[Any]:
    """Every outcome of trees, each once."""
    return (tree.outcome for tree in nodes(*trees) if isinstance(tree, End))


def questions(*trees: Tree) -> Iterator[Term]:
    """Every question of trees, once for each branch."""
    return (tree.question for tree in nodes(*trees) if isinstance(tree, Branch))


def ways(tree: Tree) -> Iterator[tuple[tuple[tuple[Term, bool], ...], Any]]:
    """Every way through a tree: questions with their answers, and the outcome."""
    pending: list[tuple[tuple[tuple[Term, bool], ...], Tree]] = [((), tree)]
    while pending:
        answers, tree = pending.pop()
        if isinstance(tree, Branch):
            pending += ((*answers, (tree.question, False)), tree.no), ((*answers, (tree.question, True)), tree.yes)
        else:
            yield answers, tree.outcome


def always(tree: Tree) -> bool:
    """True if every outcome of a tree is True."""
    return tree is TRUE


def answered(tree: Tree, answers: Mapping[Term, bool]) -> Tree:
    """A tree without the questions that have been answered, be they questions or outcomes."""
    if isinstance(tree, End):
        known = answers.get(tree.outcome) if isinstance(tree.outcome, Term) else None
        return tree if known is None else End(known)
    known = answers.get(tree.question)
    if known is not None:
        return answered(tree.yes if known else tree.no, answers)
    yes, no = (
        answered(child, {**answers, tree.question: answer}) for answer, child in ((True, tree.yes), (False, tree.no))
    )
    return Branch(tree.question, yes, no)


# -- reading a spec ------------------------------------------------------------------------------------------------

_depth: ContextVar[int] = ContextVar("depth", default=0)


class TermReader(Reader):
    """Reads `all_between` as a quantifier over the tree of its body. A variable is named after how deep it stands."""

    def __init__(self, known: Known = asked_before) -> None:
        self.known = known

    def all_between(self, low: Any, high: Any, holds: Callable[[Any], Any]) -> Any:
        """True if it holds of all numbers between."""
        variable, body = self._body(holds)
        return True if body is TRUE else Every(low, high, variable, body)

    def count_between(self, low: Any, high: Any, holds: Callable[[Any], Any]) -> Any:
        """The number of the numbers between of which it holds."""
        variable, body = self._body(holds)
        return 0 if body is FALSE else Count(low, high, variable, body)

    def _body(self, holds: Callable[[Any], Any]) -> tuple[Variable, Tree]:
        """A variable, and the tree of what holds of it."""
        depth = _depth.get()
        token = _depth.set(depth + 1)
        try:
            variable = Variable(f"n{depth}")
            return variable, tree_of(holds, variable, known=self.known)
        finally:
            _depth.reset(token)

    def for_every_number(self, holds: Callable[..., Any], state: Any) -> Any:
        """True if it holds of all numbers: of those between the ends that its own comparisons name. Raises NoEnds."""
        depth, kinds = _depth.get(), parameters(holds)
        if any(map(is_flag, kinds.values())):
            raise NoEnds
        variables = [Variable(f"n{depth + at}") for at in range(len(kinds))]
        token = _depth.set(depth + len(kinds))
        try:
            body = tree_of(holds, state, *variables, known=self.known)
        finally:
            _depth.reset(token)
        return all(bounded(body, variables))


def names_its_ends(holds: Callable[..., Any], state: Any) -> bool:
    """True if a property at rest can be judged without the plain functions. `state`: one of terms."""
    with reading():
        return tree_of(for_every_number, holds, state) is not End(LEFT_ALONE)


def bounded(body: Tree, variables: Sequence[Variable]) -> Iterator[Any]:
    """A tree for every number, as quantifiers between two numbers, all of which must be true. Raises NoEnds.

    Beyond the ends it holds in any case: every way to another outcome asks for them.
    """
    if body is TRUE:
        return
    variable, *inner = variables
    inside = [End(every) for every in bounded(body, inner)] if inner else [body]
    for low, high in _ends(body, variable, frozenset(variables)):
        yield from (Every(low, high, variable, one) for one in inside)


def _ends(body: Tree, variable: Variable, bound: frozenset[Term]) -> dict[tuple[Term, Term], None]:
    """The ends between which a variable lies where a tree is not True. None of them speaks of the `bound` ones."""
    found = dict[tuple[Term, Term], None]()
    for answers, outcome in ways(body):
        if outcome is True:
            continue
        lows: list[Term] = []
        highs: list[Term] = []
        for question, answer in answers:
            for end, is_low in _end_of(question, answer, variable):
                if bound.isdisjoint(end.reads):
                    (lows if is_low else highs).append(end)
        if not lows or not highs:
            raise NoEnds
        if not any((low, high) in found for low in lows for high in highs):
            found[lows[0], highs[0]] = None
    return found


def _end_of(question: Term, answer: bool, variable: Variable) -> Iterator[tuple[Term, bool]]:
    """The ends of a variable that an answer names: the lowest number, or the first beyond the highest."""
    match question:
        case Operation(sign, left, right) if sign in TURNED and (left is variable) != (right is variable):
            sign = sign if answer else CONTRARY[sign]
            sign, end = (sign, right) if left is variable else (TURNED[sign], left)
            if sign in (">", ">=", "=="):
                yield term_of(end + 1 if sign == ">" else end), True
            if sign in ("<", "<=", "=="):
                yield term_of(end if sign == "<" else end + 1), False


@contextmanager
def reading(known: Known = asked_before) -> Iterator[None]:
    """Within, the words of the spec language make terms."""
    token = reader.set(TermReader(known))
    try:
        yield
    finally:
        reader.reset(token)


def state_of_terms(initial: Any, version: str = BEFORE) -> Any:
    """A state of which nothing is known, of the kind that `initial` is: a Field or MapTerm for each field."""
    found: dict[str, Any] = {}
    for field in fields(initial):
        value = getattr(initial, field.name)
        found[field.name] = (
            MapTerm(field.name, int(value.default), version=version)
            if isinstance(value, Map)
            else Field(field.name, version)
        )
    return type(initial)(**found)


def constant_map(*functions: Callable[..., Any]) -> str:
    """The name of a Map at the top of a spec that functions speak of, or those that they call; empty if there is none.

    It holds numbers, and is asked for terms: no compiled reading can follow that.
    """
    seen, pending = set[CodeType](), [(function.__code__, function.__globals__) for function in functions]
    while pending:
        code, names = pending.pop()
        if code in seen:
            continue
        seen.add(code)
        pending += [(one, names) for one in code.co_consts if isinstance(one, CodeType)]
        for name in code.co_names:
            value = names.get(name)
            inside = [vars(value).get(one) for one in code.co_names] if isinstance(value, ModuleType) else []
            for one in (value, *inside):
                if isinstance(one, Map):
                    return name
                if isinstance(one, FunctionType) and one.__globals__ is not vars(language):
                    pending.append((one.__code__, one.__globals__))
    return ""


def obstacle(before: Any, outcome: Any) -> str:
    """The reason for which an outcome of a step on the state `before` cannot be compiled exactly; empty where it can.

    A compiled reading writes effects into the column of a field's own Map: one that began as another field's, has
    another default, or is a constant, is left to the plain functions.
    """
    if not isinstance(outcome, type(before)):
        return ""
    for field in fields(before):
        own, value = getattr(before, field.name), getattr(outcome, field.name)
        if isinstance(own, MapTerm):
            if not isinstance(value, MapTerm):
                return f"a constant Map is stored into the field `{field.name}`"
            if value.field != own.field or value.version != own.version:
                return f"the Map of the field `{value.field}` is stored into the field `{field.name}`"
            if value.default != own.default:
                return f"a Map of another default is stored into the field `{field.name}`"
    return ""
