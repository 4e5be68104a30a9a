"""Runs a spec's function on values whose truth is not known: every truth test forks the run.

A reader that knows a value only as a Z3 term or as a piece of source code gives it a `__bool__` that asks `decide`.
The function is then run once per way through it, and the runs together cover every input, none twice.

What does not pass through `bool` or an overloaded operator is invisible here: `is`, `isinstance` and f-strings fail
silently. That is why specs keep to a small vocabulary, and why a test holds them to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from gapless.spec.language import Refused

T = TypeVar("T")

Known = Callable[["Path", Any], bool | None]
"""What a path already knows of a question: its answer, or None where both are possible."""


@dataclass
class Path:
    """One way through a function: the questions it met, and the answers it was given."""

    script: tuple[bool, ...]
    known: Known
    questions: list[Any] = field(default_factory=list)
    answers: list[bool] = field(default_factory=list)

    def decide(self, question: Any) -> bool:
        """The answer on this path. A question whose answer is already known is not a fork."""
        settled = self.known(self, question)
        if settled is not None:
            return settled
        turn = len(self.answers)
        answer = self.script[turn] if turn < len(self.script) else True
        self.questions.append(question)
        self.answers.append(answer)
        return answer

    def roads_not_taken(self) -> Iterator[tuple[bool, ...]]:
        """The scripts that differ from this path in its last new answer."""
        for turn in range(len(self.script), len(self.answers)):
            yield (*self.answers[:turn], False)


_walked: ContextVar[Path] = ContextVar("path")


def decide(question: Any) -> bool:
    """The answer to `question` on the path that is being walked. Raises LookupError outside of `runs`."""
    return _walked.get().decide(question)


def nothing_known(_path: Path, _question: Any) -> bool | None:
    """Both answers are always possible."""
    return None


def runs(function: Callable[..., T], *args: Any, known: Known = nothing_known) -> Iterator[tuple[Path, T | Refused]]:
    """Every path through `function(*args)` with its outcome, a refusal being one."""
    pending: list[tuple[bool, ...]] = [()]
    while pending:
        path = Path(pending.pop(), known)
        token = _walked.set(path)
        outcome: T | Refused
        try:
            outcome = function(*args)
        except Refused as refusal:
            outcome = refusal
        finally:
            _walked.reset(token)
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


def decision_tree(function: Callable[..., T], *args: Any, known: Known = nothing_known) -> Fork[T] | Leaf[T]:
    """All paths through `function(*args)` as one tree of questions."""
    return _grown(list(runs(function, *args, known=known)), depth=0)


def _grown(paths: list[tuple[Path, T | Refused]], depth: int) -> Fork[T] | Leaf[T]:
    path, outcome = paths[0]
    if len(paths) == 1 and len(path.answers) == depth:
        return Leaf(outcome, path.questions[-1] if path.questions else None)
    return Fork(
        path.questions[depth],
        _grown([p for p in paths if p[0].answers[depth]], depth + 1),
        _grown([p for p in paths if not p[0].answers[depth]], depth + 1),
    )


def leaves(tree: Fork[T] | Leaf[T]) -> Iterator[Leaf[T]]:
    """The outcomes of a tree, left to right."""
    if isinstance(tree, Leaf):
        yield tree
        return
    yield from leaves(tree.yes)
    yield from leaves(tree.no)
