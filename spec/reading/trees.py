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

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, Self, cast

from gapless.spec import forking, language
from gapless.spec.language import Map, Reader, Refused, reader
from gapless.spec.reading.terms import BEFORE, NOTHING, Every, Field, MapTerm, Node, Reads, Term, Variable

Known = forking.Known
asked_before = forking.Path.asked_before
"""Knows the answers of the path alone."""


class LeftAlone:
    """The outcome of a function that divides by 0: the plain functions are asked, which raise there."""

    def __repr__(self) -> str:
        return "LEFT_ALONE"


LEFT_ALONE: Final = LeftAlone()
"""The outcome of a way that no compiled reading decides."""


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

    def left_alone_at_0(*given: Any) -> Any:
        try:
            return function(*given)
        except ZeroDivisionError:
            return LEFT_ALONE

    return _shared(forking.decision_tree(left_alone_at_0, *args, known=known, key=_by_identity))


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
        depth = _depth.get()
        token = _depth.set(depth + 1)
        try:
            variable = Variable(f"n{depth}")
            body = tree_of(holds, variable, known=self.known)
        finally:
            _depth.reset(token)
        return True if body is TRUE else Every(low, high, variable, body)


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
