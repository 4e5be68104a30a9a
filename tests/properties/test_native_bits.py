"""What is asked of many numbers at once is what is asked of each."""

from random import Random

import numpy as np
import pytest

from gapless.properties.exploration.loop_text import MAP, STORE
from gapless.properties.exploration.machine_code import Loaded, compiled
from gapless.properties.exploration.native_bits import BELOW, MANY, bits_of, compared_maps, equal_in_map
from gapless.properties.exploration.native_tables import handed

ORIGIN, WIDTH = -1, 6  # keys from -1 to 4
NUMBERS = range(-3, 9)  # some lie where no key is
QUESTIONS = [
    "(a_n < s_x)", "(a_n <= s_x)", "(s_x < a_n)", "(s_x <= a_n)", "(a_n == s_x)", "(a_n != s_x)",
    "(map_0(row, a_n) == 1)", "(map_0(row, a_n) != 0)", "(map_0(row, a_n) == 7)", "(map_1(row, a_n) == 2)",
    "(map_0(row, a_n) < map_2(row, a_n))", "(map_0(row, a_n) <= map_2(row, a_n))",
    "(map_0(row, a_n) == map_2(row, a_n))",
    "(map_0(row, a_n) != map_2(row, a_n))", "(map_0(row, a_n) > map_2(row, a_n))",
    "(map_2(row, a_n) >= map_0(row, a_n))",
    "(map_1(row, a_n) < map_0(row, a_n))", "((map_1(row, a_n) + a_n) <= s_x)", "(s_x == 2)",
]  # fmt: skip
MAPS = {0: (0, 0, 0, 1), 1: (6, 1, 0, 3), 2: (18, 0, 0, 1)}  # bit, shift, least and mask


def text(default: int) -> str:
    """A function for each question: asked of all numbers, and of each. `default`: of the Maps."""
    source = f"ORIGIN = {ORIGIN}\nWIDTH = {WIDTH}\n"
    for number, (bit, shift, least, mask) in MAPS.items():
        places = {"WORD": bit, "SHIFT": shift, "LEAST": least, "MASK": mask}
        source += "".join(f"F{number}_{name} = {value}\n" for name, value in places.items())
    source += BELOW + STORE + "".join(MAP.format(number=n, field=n, default=default) for n in MAPS)
    source += "".join(equal_in_map(n, n, len(NUMBERS), default, place, WIDTH) for n, place in MAPS.items())
    asked = [bits_of(question, "a_n", NUMBERS) for question in QUESTIONS]
    names = {
        word.partition("(")[0] for one in asked for word in str(one).replace("~", " ").split() if "compared" in word
    }
    for name in sorted(names):
        one, other = name.split("_")[1:3]
        source += compared_maps(name, [MAPS[int(one)], MAPS[int(other)]], WIDTH)
    for at, (question, bits) in enumerate(zip(QUESTIONS, asked, strict=True)):
        each = " | ".join(f"(({question.replace('a_n', f'({number})')}) << {n})" for n, number in enumerate(NUMBERS))
        source += f"\n\n@exported\ndef at_once_{at}(row, s_x):\n    return ({bits}) & {(1 << len(NUMBERS)) - 1}\n"
        source += f"\n\n@exported\ndef each_{at}(row, s_x):\n    return {each}\n"
    return source


@pytest.mark.parametrize("default", [0, 1])
def test_every_question_has_the_same_answer_at_once(default: int) -> None:
    source = text(default)
    functions, chance = Loaded(compiled(source), source).functions, Random(7)
    answers = dict.fromkeys(range(len(QUESTIONS)), 0)
    for _ in range(300):
        row, x = np.array([chance.getrandbits(63)], np.uint64), chance.randrange(-6, 12)
        for at, question in enumerate(QUESTIONS):
            each = functions[f"each_{at}"](handed(row), x)
            assert functions[f"at_once_{at}"](handed(row), x) == each, (question, x, int(row[0]))
            answers[at] |= each
    never = [QUESTIONS[at] for at, bits in answers.items() if not bits]
    assert never == ["(map_0(row, a_n) == 7)"]  # no word of one bit holds it


@pytest.mark.parametrize("question", ["holds_0(0, a_n, row, escape)", "(a_n < until_0(0, 9, row, escape))"])
def test_what_may_end_the_search_is_asked_of_each(question: str) -> None:
    assert bits_of(question, "a_n", NUMBERS) is None


def test_many_numbers_are_asked_one_by_one() -> None:
    assert bits_of("(a_n < 3)", "a_n", range(MANY + 1)) is None
    assert bits_of("(a_n < 3)", "a_n", range(MANY)) is not None
