"""Runs a spec's function on values whose truth is not known: every truth test forks the run.

A reader that knows a value only as a Z3 term or as a piece of source code gives it a `__bool__` that asks `decide`.
The function is then run once per way through it, and the runs together cover every input, none twice. No reader need
take that on trust: a proof about a step is a proof about its ways, too.

What does not pass through `bool` or an overloaded operator is invisible here: `is`, `isinstance` and f-strings fail
silently. That is why specs keep to a small vocabulary, and why every reader checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from gapless.spec.language import Refused

T = TypeVar("T")

Known = Callable[["Path", Any], bool | None]
"""What a path already knows of a question: its answer, or None where both are possible."""

Key = Callable[[Any], Hashable]
"""What a reader knows a question by: two that have the same key are one question."""


class AskedOtherwise(Exception):  # noqa: N818 - its message says all.
    """A function was run again with the same answers and asked another question: nothing that is read of it counts."""


@dataclass(frozen=True)
class Turn:
    """A question that a path met, and its answer: `settled` where there was no other, and chosen otherwise."""

    question: Any
    answer: bool
    settled: bool


@dataclass
class Path:
    """One way through a function: every question that it met, and its answer, be it settled or chosen.

    The `script` says how the path begins: what was answered once is never asked again, so that a reader which has
    learned something since cannot answer otherwise, and no answer is taken for that of another question.
    """

    script: tuple[Turn, ...]
    known: Known
    key: Key
    turns: list[Turn] = field(default_factory=list)
    met: dict[Hashable, bool] = field(default_factory=dict)  # the answer to each, by its key

    @property
    def answers(self) -> list[bool]:
        """The answer to each question."""
        return [turn.answer for turn in self.turns]

    def asked_before(self, question: Any) -> bool | None:
        """The answer where the question was met before on this path."""
        return self.met.get(self.key(question))

    def decide(self, question: Any) -> bool:
        """The answer on this path. A question whose answer is already known is not a fork. Raises AskedOtherwise."""
        key = self.key(question)
        if len(self.turns) < len(self.script):
            turn = self.script[len(self.turns)]
            if self.key(turn.question) != key:
                raise AskedOtherwise(f"asked {question} where it had asked {turn.question}, after the same answers")
        else:
            settled = self.known(self, question)
            turn = Turn(question, True if settled is None else settled, settled is not None)
        self.turns.append(turn)
        self.met[key] = turn.answer
        return turn.answer

    def roads_not_taken(self) -> Iterator[tuple[Turn, ...]]:
        """The scripts that differ from this path in its last answer, where that was chosen and is new."""
        for turn in range(len(self.script), len(self.turns)):
            if not self.turns[turn].settled:
                yield (*self.turns[:turn], replace(self.turns[turn], answer=False))


_walked: ContextVar[Path] = ContextVar("path")


def decide(question: Any) -> bool:
    """The answer to `question` on the path that is being walked. Raises LookupError outside of `runs`."""
    return _walked.get().decide(question)


def itself(question: Any) -> Hashable:
    """Questions are one if they are equal."""
    return question  # type: ignore[no-any-return]


def nothing_known(_path: Path, _question: Any) -> bool | None:
    """Both answers are always possible."""
    return None


def runs(
    function: Callable[..., T], *args: Any, known: Known = nothing_known, key: Key = itself
) -> Iterator[tuple[Path, T | Refused]]:
    """Every path through `function(*args)` with its outcome, a refusal being one. Raises AskedOtherwise."""
    pending: list[tuple[Turn, ...]] = [()]
    while pending:
        path = Path(pending.pop(), known, key)
        token = _walked.set(path)
        outcome: T | Refused
        try:
            outcome = function(*args)
        except Refused as refusal:
            outcome = refusal
        finally:
            _walked.reset(token)
        if len(path.turns) < len(path.script):
            raise AskedOtherwise(f"asked nothing where it had asked {path.script[len(path.turns)].question}")
        pending.extend(path.roads_not_taken())
        yield path, outcome


@dataclass(frozen=True)
class Leaf(Generic[T]):
    """An outcome, and the last question before it: where the outcome is a refusal, the need that failed."""

    outcome: T | Refused
    asked: Any


@dataclass(frozen=True)
class Fork(Generic[T]):
    """A question, and what follows from either answer."""

    question: Any
    yes: Fork[T] | Leaf[T]
    no: Fork[T] | Leaf[T]


Tree = Fork[T] | Leaf[T]


def decision_tree(
    function: Callable[..., T], *args: Any, known: Known = nothing_known, key: Key = itself
) -> Fork[T] | Leaf[T]:
    """All paths through `function(*args)` as one tree of questions; those that were settled do not fork it."""
    return _grown(list(runs(function, *args, known=known, key=key)), depth=0)


def _grown(paths: list[tuple[Path, T | Refused]], depth: int) -> Fork[T] | Leaf[T]:
    path, outcome = paths[0]
    while depth < len(path.turns) and path.turns[depth].settled:
        depth += 1
    if len(paths) == 1 and len(path.turns) == depth:
        return Leaf(outcome, path.turns[-1].question if path.turns else None)
    return Fork(
        path.turns[depth].question,
        _grown([p for p in paths if p[0].turns[depth].answer], depth + 1),
        _grown([p for p in paths if not p[0].turns[depth].answer], depth + 1),
    )


def leaves(tree: Fork[T] | Leaf[T]) -> Iterator[Leaf[T]]:
    """The outcomes of a tree, left to right."""
    if isinstance(tree, Leaf):
        yield tree
        return
    yield from leaves(tree.yes)
    yield from leaves(tree.no)
