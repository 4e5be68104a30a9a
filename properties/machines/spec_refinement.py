"""Refinement: an implementation and its model take each step together, or refuse it together.

A refinement of one spec derives from `SpecRefinement`. It has a method for each step, and `as_spec`: the state of the
spec that the implementation is in. After each step that is compared with the model's, as a whole. The steps are chosen
elsewhere: by Hypothesis (`stateful/`), by random programs, or in every order of a few actors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import immutables

from gapless.properties.machines.mismatch import Mismatch
from gapless.spec.catalog import State
from gapless.spec.language import Map, Number, Refused
from gapless.traces.replay.notation import changes

S = TypeVar("S", bound=State)
A = TypeVar("A")
V = TypeVar("V")


class NothingToDo(Exception):  # noqa: N818 - it names what is wrong.
    """A step of the implementation is not possible: what the model must refuse, too."""


class SpecRefinement(Generic[S]):
    """An implementation and its model.

    `model`: its state · `refused`: the errors with which the implementation refuses · `tally`: how often what happened.
    """

    refused: tuple[type[Exception], ...] = ()

    def __init__(self, model: S) -> None:
        self.model = model
        self.tally: Counter[str] = Counter()

    def as_spec(self) -> S:
        """The meaning of the implementation's state. What it does not keep is the model's."""
        raise NotImplementedError

    def compare(self) -> None:
        """The implementation's state means the model's. Raises Mismatch."""
        require_same(self.as_spec(), self.model)

    def both(self, step: Callable[[], A], *, taken: bool) -> A | None:
        """The implementation's answer to a step that the model takes, if `taken`; None where both refuse it.

        Raises Mismatch where one refuses alone.
        """
        answer, why = self._tried(step)
        self._require_both(why, "" if taken else "it is not possible")
        return answer

    def offer(self, step: Callable[[], bool], action: Callable[..., S], *arguments: int) -> None:
        """Both take a step and come to the same state, or both refuse it. `step` refuses by False, too."""
        answer, why = self._tried(step)
        after, needs = self.model, ""
        try:
            after = action(self.model, *arguments)
        except Refused as refused:
            needs = refused.because
        self._require_both("" if answer else why or "it does nothing", needs)
        self.tally[f"not {action.__name__}" if needs else action.__name__] += 1
        self.model = after
        self.compare()

    def _tried(self, step: Callable[[], A]) -> tuple[A | None, str]:
        """The implementation's answer, or the reason why it refuses a step."""
        refused: tuple[type[Exception], ...] = (*self.refused, NothingToDo)
        try:
            return step(), ""
        except refused as error:
            return None, f"{error}" or type(error).__name__

    def _require_both(self, why: str, needs: str) -> None:
        """Raise Mismatch unless both refuse, `why` and for what the model `needs`, or none does."""
        if why and not needs:
            raise Mismatch(f"the implementation refuses what the model allows: {why}")
        if needs and not why:
            raise Mismatch(f"the implementation takes a step that the model refuses: {needs}")
        self.tally["refused" if why else "taken"] += 1

    def take(self, action: Callable[..., S], *arguments: int) -> None:
        """The model takes a step that the implementation has taken. Raises Mismatch."""
        self.model = followed(self.model, action, *arguments)

    def require(self, properties: Iterable[Callable[[S], Any]]) -> None:
        """All is at rest: these are true of the model. Raises Mismatch."""
        for holds in properties:
            if not holds(self.model):
                raise Mismatch(f"at rest: {holds.__name__} is false in {self.model}")


def followed(s: S, action: Callable[..., S], *arguments: int) -> S:
    """The model's state after a step that the implementation has taken. Raises Mismatch."""
    try:
        return action(s, *arguments)
    except Refused as refused:
        raise Mismatch(f"{action.__name__}{arguments} needs: {refused}; otherwise {refused.otherwise}") from refused


def require_same(found: State, model: State, where: str = "the implementation is in another state: ") -> None:
    """Raise Mismatch unless the implementation's state is the model's: it names what differs, and nothing else."""
    if found != model:  # words for what is the same took a fifth of the time of all orders
        differ = (f"{what} is {its} and not {ought}" for what, ought, its in changes(model, found))
        raise Mismatch(f"{where}{', '.join(differ)}")


def ones(numbers: Iterable[int]) -> Map[Number, int]:
    """The map that is 1 for these numbers."""
    return Map(0, immutables.Map({Number(number): 1 for number in numbers}))


def over(known: Map[Any, V], seen: Mapping[Any, V]) -> Map[Any, V]:
    """The model's map, with what is seen of the implementation in its place."""
    for key, value in seen.items():
        known = known.set(key, value)
    return known
