"""Choices as values: the open points of a simulated world, decided by a test, and replayed.

Everything that may happen either way (which page survives a loss of power, which actor steps next) is asked of a
function of one kind, `Choose`: *of so many ways, which?* The plainest way is 0. Hypothesis, a generator of random
numbers, a list of numbers and an exhaustive search all answer it:

    lambda ways: data.draw(st.integers(0, ways - 1))        a test that shrinks
    random.Random(7).randrange                              a long night
    Choices.parse("0 3 1")                                  what happened last time
    for choose in every_choice(): …                         all there is
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
Choose = Callable[[int], int]
"""Of so many ways (at least 1), which: 0 … ways − 1. 0 is the plainest."""


def one_of(choose: Choose, weighed: Sequence[tuple[int, T]]) -> T:
    """One of these, each as often as it weighs."""
    ways = [one for weight, one in weighed for _ in range(weight)]
    return ways[choose(len(ways))]


def plainest(_ways: int) -> int:
    """Always the plainest way."""
    return 0


class Choices:
    """Choices and a memory of them: it asks `choose`, and `str` of it is what `parse` reads.

    `taken`: the answers so far, in order.
    """

    def __init__(self, choose: Choose = plainest) -> None:
        self.taken: list[int] = []
        self._choose = choose

    @classmethod
    def parse(cls, text: str) -> Choices:
        """The choices that were printed so; once they are used up, the plainest. Raises ValueError: not such a text."""
        return cls.of([_number(word) for word in text.split()])

    @classmethod
    def of(cls, given: Sequence[int]) -> Choices:
        """The given choices, in order; once they are used up, the plainest."""
        answers = iter(given)
        return cls(lambda _ways: next(answers, 0))

    def __call__(self, ways: int) -> int:
        """The next choice. Raises ValueError: there is no such way, so the choices were made in another world."""
        answer = self._choose(ways)
        if not 0 <= answer < ways:
            raise ValueError(
                f"choice {len(self.taken) + 1} is {answer}, but there are only {ways} ways here: "
                "these choices are of another world"
            )
        self.taken.append(answer)
        return answer

    def __str__(self) -> str:
        """The choices in order, without the plainest ones at the end."""
        last = max((index for index, answer in enumerate(self.taken, 1) if answer), default=0)
        return " ".join(map(str, self.taken[:last]))


class Odometer:
    """All sequences of choices, one after the other: the last choice that has a way left moves on, as wheels do.

    What is chosen between two calls of `advance` is one sequence. The world must ask the same where the same was
    answered: it begins again for every sequence.
    """

    def __init__(self) -> None:
        self._wheels: list[tuple[int, int]] = []  # what was answered, of how many ways
        self._asked = 0  # in this sequence
        self.given = 0  # how many choices of this sequence are certain before it begins

    def __call__(self, ways: int) -> int:
        """The choice of this sequence. Raises ValueError: the world asks otherwise than before."""
        place = self._asked
        self._asked += 1
        if place == len(self._wheels):
            self._wheels.append((0, ways))
            return 0
        answer, before = self._wheels[place]
        if ways != before:
            raise ValueError(f"choice {place + 1} has {ways} ways, and had {before} before: {_NOT_THE_SAME}")
        return answer

    def advance(self) -> bool:
        """Goes to the next sequence, if there is one. Raises ValueError: the world did not ask as often as before."""
        wheels = self._wheels
        if self._asked < len(wheels):
            raise ValueError(f"there were {self._asked} choices, and {len(wheels)} before: {_NOT_THE_SAME}")
        self._asked = 0
        while wheels:
            answer, ways = wheels.pop()
            if answer + 1 < ways:
                wheels.append((answer + 1, ways))
                self.given = len(wheels)
                return True
        return False


_NOT_THE_SAME = "the world does not begin again each time, or something in it is left to chance"


def every_choice() -> Iterator[Choices]:
    """All sequences of choices that a world asks for, the plainest first. The world begins again for each."""
    odometer = Odometer()
    while True:
        yield Choices(odometer)
        if not odometer.advance():
            return


def _number(word: str) -> int:
    if not word.isdecimal():
        raise ValueError(f"choices are numbers with spaces between, not {word!r}")
    return int(word)
