"""Functions of a spec as trees of the questions that have two answers, for native code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any

from gapless.properties.exploration.following import follows
from gapless.spec import forking
from gapless.traces.replay.fragments import Code, Reads, reads_of, text_of, zero_asked_about

LEFT_ALONE = Code("left_alone(escape)")
"""What becomes of a function that divides by 0: the search is left to the plain functions, which raise there."""


def tree_of(function: Callable[..., Any], *args: Any, known: forking.Known = follows) -> Any:
    """All ways through a function of fragments, as one tree of the questions that have two answers."""

    def left_alone_at_0(*given: Any) -> Any:
        try:
            return function(*given)
        except ZeroDivisionError:
            return LEFT_ALONE

    token = zero_asked_about.set(True)
    try:
        return forking.decision_tree(left_alone_at_0, *args, known=known, key=_as_written)
    finally:
        zero_asked_about.reset(token)


def _as_written(question: Code) -> str:
    return question.text


def reads_in(tree: Any) -> Reads:
    """What a tree's questions and outcomes look at."""
    if isinstance(tree, forking.Leaf):
        return reads_of(tree.outcome)
    return reads_of(tree.question) | reads_in(tree.yes) | reads_in(tree.no)


def leaves(tree: Any) -> Iterator[Any]:
    """The outcomes of a tree."""
    if isinstance(tree, forking.Leaf):
        yield tree
    else:
        yield from leaves(tree.yes)
        yield from leaves(tree.no)


def left_of(tree: Any, written: AbstractSet[str], is_put: Callable[[Any], bool]) -> Any:
    """What is left to be asked of a state after a step that wrote these fields, where it was true of the one before.

    As long as all questions were answered alike of both states, what looks at nothing that was written is known.
    `is_put`: whether something else is asked instead of a question that must be true of both states.
    """
    if isinstance(tree, forking.Leaf):
        if tree.outcome is False or (_reads(tree.outcome, written) and not is_put(tree.outcome)):
            return tree
        return forking.Leaf(outcome=True, asked=tree.asked)
    never = [isinstance(child, forking.Leaf) and child.outcome is False for child in (tree.yes, tree.no)]
    if not _reads(tree.question, written):
        if any(never):
            return left_of(tree.no if never[0] else tree.yes, written, is_put)
        yes, no = (left_of(child, written, lambda _: False) for child in (tree.yes, tree.no))
        return forking.Fork(tree.question, yes, no)
    if never[1]:
        yes = left_of(tree.yes, written, is_put)
        return yes if is_put(tree.question) else forking.Fork(tree.question, yes, tree.no)
    return forking.Fork(tree.question, tree.yes, left_of(tree.no, written, is_put) if never[0] else tree.no)


def answered(tree: Any, answers: Mapping[str, bool] = MappingProxyType({})) -> Any:
    """A tree whose outcome is nowhere a question that was answered on the way: `a and b` is `a` where that is false."""
    if isinstance(tree, forking.Leaf):
        known = answers.get(text_of(tree.outcome))
        return tree if known is None else forking.Leaf(outcome=known, asked=tree.asked)
    ways = (True, tree.yes), (False, tree.no)
    yes, no = (answered(child, {**answers, tree.question.text: answer}) for answer, child in ways)
    return forking.Fork(tree.question, yes, no)


def _reads(what: Any, written: AbstractSet[str]) -> bool:
    return any(name in written for name, _ in reads_of(what))


def flag(tree: Any, indent: str) -> str:
    """The lines that set `good` to 0 where the tree's outcome is false."""
    if isinstance(tree, forking.Leaf):
        if tree.outcome is True:
            return ""
        return (
            f"{indent}good = 0\n"
            if tree.outcome is False
            else f"{indent}if not {text_of(tree.outcome)}:\n{indent}    good = 0\n"
        )
    yes, no = (flag(child, indent + "    ") for child in (tree.yes, tree.no))
    if not yes and not no:
        return ""
    return f"{indent}if {text_of(tree.question)}:\n{yes or f'{indent}    pass' + chr(10)}" + (
        f"{indent}else:\n{no}" if no else ""
    )
