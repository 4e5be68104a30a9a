"""The small language of the search loop says what Python says; what is said to follow from answers, does."""

import random
from itertools import product

import numpy as np
import pytest

from gapless.properties.exploration.following import follows
from gapless.properties.exploration.machine_code import Loaded, NotInTheLanguage, compiled, translated
from gapless.properties.exploration.native_tables import handed
from gapless.spec import forking
from gapless.traces.replay.fragments import Code

SOURCE = """
SEVEN = 7


def most_of(row, count):
    best = -1000
    for at in range(count):
        if row[at] == 13:
            continue
        if row[at] > 900 or not at < count:
            break
        best = max(best, row[at])
    return best


@exported
def told(row, count, by):
    total = 0
    at = 0
    while at < count and total < 100_000:
        total += row[at] // by - row[at] % by + (row[at] ^ SEVEN) * (-3 if row[at] < 0 else 2)
        at += 1
    row[0] = ~total & 0xFF
    return total + most_of(ref(row, 1), count - 1) + (1 <= by <= 3)
"""


def test_machine_code_says_what_python_says() -> None:
    by_python: dict[str, object] = {}
    exec(SOURCE.replace("@exported\n", "").replace("ref(row, 1)", "row[1:]"), by_python)  # noqa: S102 - our own text
    native, chance = Loaded(compiled(SOURCE), SOURCE).functions["told"], random.Random(1)
    for by in (-5, -1, 1, 2, 3, 64):
        numbers = [chance.choice((13, -13, 0, 950, chance.randint(-800, 800))) for _ in range(40)]
        row, plain = np.array(numbers, np.int64), list(numbers)
        assert native(handed(row), 40, by) == by_python["told"](plain, 40, by)  # type: ignore[operator]
        assert row.tolist() == plain


@pytest.mark.parametrize(
    "line", ["return a / 2", "return f(a)", "return [a]", "a.b = 1", "del a", "return a @ 1", "return b; b = a"]
)
def test_what_is_not_in_the_language_is_refused(line: str) -> None:
    with pytest.raises(NotInTheLanguage):
        translated(f"@exported\ndef told(a):\n    {line}\n")


def test_what_follows_is_so_for_all_numbers() -> None:
    """Where an answer is said to follow, no numbers give the other one; and some do follow."""
    chance = random.Random(7)
    settled = 0
    for _ in range(600):
        texts = [comparison(chance) for _ in range(4)]
        worlds = [dict(zip("abc", numbers, strict=True)) for numbers in product(range(-3, 4), repeat=3)]
        turns = [forking.Turn(Code(text), chance.random() < 0.5, settled=False) for text in texts[:3]]
        path = forking.Path((), follows, lambda question: question.text, turns)
        path.met = {turn.question.text: turn.answer for turn in turns}
        asked = [(compile(turn.question.text, "asked", "eval"), turn.answer) for turn in turns]
        left = [w for w in worlds if all(bool(eval(code, {}, w)) == answer for code, answer in asked)]  # noqa: S307
        answer = follows(path, Code(texts[3]))
        if answer is not None:
            settled += 1
            last = compile(texts[3], "asked", "eval")
            assert all(bool(eval(last, {}, world)) == answer for world in left)  # noqa: S307 - our own text
    assert settled > 30


def comparison(chance: random.Random) -> str:
    left, right = (f"({chance.choice('abc')} + {chance.randint(-1, 1)})" for _ in range(2))
    return f"({left} {chance.choice(('<', '<=', '>', '>=', '==', '!='))} {chance.choice((right, '0', '1'))})"
