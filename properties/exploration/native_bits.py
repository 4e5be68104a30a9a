"""Writes what is asked of many numbers at once: a question is a word with a bit for each number, set where it is true.

A step is tried with a number of arguments, and an invariant speaks of a number of keys. Where there are few of them,
no loop goes from one to the next: each question is answered for all, by a comparison with a bound, by the bits of a
Map, or one by one where there is nothing better. Then what a decision tree says is some bits, too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import lru_cache

MANY = 24  # numbers that a question is asked of at once
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}

BELOW = """

@inline
def below(number):
    return (1 << min(max(number, 0), 63)) - 1
"""
"""The bits of the numbers from 0 up to one."""

EQUAL = """

@inline
def equal_{number}_{count}(row, key, value):
    return {each}
"""
EQUAL_ONE = """

@inline
def equal_{number}_{count}(row, key, value):
    there = (row[{word}] >> {shift}) & {ones}
    raw = value - F{field}_LEAST
    same = there if raw == 1 else (there ^ {ones} if raw == 0 else 0)
    outside = -1 if value == {default} else 0
    place = key - ORIGIN
    right = min(max(place, 0), 32)
    left = min(max(0 - place, 0), 32)
    return (((same | (outside & ~{ones})) >> right) << left) | (outside & below(left))
"""
"""At which keys of a Map, from one on, a value lies; and the same of a Map whose values have one bit each."""

COMPARED = """

@inline
def {name}(row, new, key):
    return {made}
"""
BETWEEN_BITS = {
    "less": "~{a} & {b}", "most": "~{a} | {b}", "more": "{a} & ~{b}", "least": "{a} | ~{b}", "same": "~({a} ^ {b})",
    "other": "{a} ^ {b}",
}  # fmt: skip
"""How two Maps whose values have one bit each compare."""
WORDS = {"<": "less", "<=": "most", ">": "more", ">=": "least", "==": "same", "!=": "other"}

WORD = 64  # bits
NARROW = 31  # keys of a Map that are told apart by the lower half of a word


def equal_in_map(number: int, field: int, count: int, default: int, place: Sequence[int], width: int) -> str:
    """The function that says at which keys of a Map a value lies. `place`: as `is_narrow` is told."""
    if is_narrow(place, width):
        bit = place[0]
        return EQUAL_ONE.format(
            number=number, field=field, count=count, default=default, word=bit // WORD, shift=bit % WORD,
            ones=(1 << width) - 1,
        )  # fmt: skip
    each = " | ".join(f"((map_{number}(row, key + {n}) == value) << {n})" for n in range(count))
    return EQUAL.format(number=number, count=count, each=each)


def compared_maps(name: str, places: Sequence[Sequence[int]], width: int) -> str:
    """The function that compares two Maps at so many keys from one on, as its name says."""
    one, other, sign, count = name.removeprefix("compared_").split("_")
    if all(is_narrow(place, width) for place in places) and places[0][2] == places[1][2]:
        a, b = (
            f"equal_{number}_{count}({row}, key, {least + 1})"
            for number, row, (_, _, least, _) in zip((one, other), ("row", "new"), places, strict=True)
        )
        made = BETWEEN_BITS[sign].format(a=a, b=b)
    else:
        of = {word: text for text, word in WORDS.items()}[sign]
        made = " | ".join(
            f"((map_{one}(row, key + {n}) {of} map_{other}(new, key + {n})) << {n})" for n in range(int(count))
        )
    return COMPARED.format(name=name, made=made)


def is_narrow(place: Sequence[int], width: int) -> bool:
    """Whether the values of a Map have one bit each, all in one word. `place`: bit, shift, least and mask."""
    bit, shift, _, mask = place
    return shift == 0 and mask == 1 and width <= NARROW and bit % WORD + width <= WORD


@lru_cache(maxsize=1024)  # guards, invariants and properties of steps ask the same
def bits_of(question: str, name: str, numbers: range) -> str | None:
    """For which numbers a question is true, if it is asked of them by a name; None where nobody can say so at once."""
    if len(numbers) > MANY or "holds_" in question or "until_" in question:
        return None
    named = re.compile(rf"\b{name}\b")
    if not named.search(question):
        return f"(0 - ({question}))"
    node = ast.parse(question, mode="eval").body
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, sign, right = ast.unparse(node.left), SIGNS[type(node.ops[0])], ast.unparse(node.comparators[0])
        if named.search(right) and not named.search(left):
            left, sign, right = right, TURNED[sign], left
        for compared in (_between_maps,) if named.search(right) else (_compared, _in_map):
            made = compared(left, sign, right, name, numbers)
            if made:
                return made
    return " | ".join(f"(({named.sub(f'({value})', question)}) << {n})" for n, value in enumerate(numbers))


def _compared(left: str, sign: str, right: str, name: str, numbers: range) -> str | None:
    """What a comparison of a number itself with something else is."""
    turned = "~" if sign in {">", ">=", "!="} else ""
    if left == name:
        upto = f"below({right} - ({numbers[0]}))"
        past = f"below({right} + 1 - ({numbers[0]}))"
        made = {"<": upto, ">=": upto, "<=": past, ">": past}.get(sign) or f"({past} & ~{upto})"
        return f"{turned}{made}"
    return None


def _between_maps(left: str, sign: str, right: str, name: str, numbers: range) -> str | None:
    """What a comparison of two Maps at the number is."""
    one, other = (re.fullmatch(rf"map_(\d+)\((\w+), {name}\)", text) for text in (left, right))
    if not one or not other:
        return None
    called = f"compared_{one[1]}_{other[1]}_{WORDS[sign]}_{len(numbers)}"
    return f"{called}({one[2]}, {other[2]}, {numbers[0]})"


def _in_map(left: str, sign: str, right: str, name: str, numbers: range) -> str | None:
    """What a comparison of what lies in a Map at the number with a constant is."""
    there = re.fullmatch(rf"map_(\d+)\((\w+), {name}\)", left)
    if there and sign in {"==", "!="} and re.fullmatch(r"-?\d+", right):
        return f"{'~' if sign == '!=' else ''}equal_{there[1]}_{len(numbers)}({there[2]}, {numbers[0]}, {right})"
    return None
