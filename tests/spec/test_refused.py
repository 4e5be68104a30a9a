"""Specs that a 64-bit reading lacks, or that Python cannot run, are refused with line and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapless.spec.reading.vocabulary import ForeignWords
from gapless.traces.specs import load

SPEC = '''"""A spec."""

from dataclasses import dataclass

from gapless.spec.language import Map, Number, replace, require

{top}


@dataclass(frozen=True, slots=True)
class State:
    """A state."""

    n: int = 0
    flag: bool = False


def take(s: State, a: int, f: bool) -> State:
    """A step."""
{body}
    return replace(s, n={value})


def fine(s: State) -> bool:
    """Otherwise not."""
    return s.n == s.n


INITIAL = State()
ACTIONS = (take,)
INVARIANTS = (fine,)
'''
NOTHING = '    require(a == a, "same", because="it is the same", otherwise="it is not")'


def written(folder: Path, top: str, body: str, value: str) -> Path:
    """A file with such a spec."""
    path = folder / "taking.py"
    path.write_text(SPEC.format(top=top, body=body or NOTHING, value=value))
    return path


@pytest.mark.parametrize(
    ("top", "body", "value", "line", "expected", "remedy"),
    [
        ("BIG = 2**70", "", "a % 7", 7, "`2 ** 70`, which has more than 64 bits", "below 2⁶³"),
        ("BIG = 10 ** 10 ** 10", "", "a", 7, "`10 ** 10 ** 10`, which has more than 64 bits", "below 2⁶³"),
        ("LOW = -2**63 - 1", "", "a", 7, "`-2 ** 63 - 1`, which has more than 64 bits", "below 2⁶³"),
        ("BIG = 2**40\nLARGER = BIG * BIG", "", "a", 8, "`BIG * BIG`, which has more than 64 bits", "below 2⁶³"),
        ("", "", "1000000000000 * 1000000000000", 21, "which has more than 64 bits", "below 2⁶³"),
        ("", "", "-s.flag", 21, "`-s.flag` of a truth value", "`(-1 if s.flag else 0)`"),
        ("", "", "-f", 21, "`-f` of a truth value", "`(-1 if f else 0)`"),
        (
            "",
            "    if f:\n        b = 1",
            "b",
            22,
            "`b`, which has a value on some ways only",
            "`b = …` before the `if`",
        ),
        (
            "",
            "    if f:\n        b = 1\n    else:\n        c = b",
            "1",
            23,
            "`b`, which has a value on some ways only",
            "`b",
        ),
        ("b = 3", "    if f:\n        b = 1", "b", 22, "`b`, which has a value on some ways only", "`b = …`"),
        ("D = 0", "", "a % D", 21, "`D`, which is 0, as a divisor", "a positive number"),
        ("D = 3 - 5", "", "a // D", 21, "`D`, which is -2, as a divisor", "a positive number"),
        ("", "", "a // -2", 21, "`-2` as a divisor", "a positive number"),
    ],
)
def test_what_no_reading_has_is_refused(
    tmp_path: Path, top: str, body: str, value: str, line: int, expected: str, remedy: str
) -> None:
    with pytest.raises(ForeignWords) as refused:
        load(written(tmp_path, top, body, value))
    (complaint,) = refused.value.complaints
    assert (complaint.line, remedy in complaint.instead) == (line, True)
    assert expected in complaint.word


@pytest.mark.parametrize(
    ("top", "body", "value"),
    [
        ("TOP = 2**63 - 1", "", "a % 7"),
        ("D = 2**40", "", "a // D"),
        ("", "", "-a"),
        ("", "    if f:\n        b = 1\n    else:\n        b = 2", "b"),
        ("", "    if f:\n        b = 1\n    else:\n        return s", "b"),
        ("", "    if f:\n        return s\n    b = 1", "b"),
        ("", "    b = 1\n    if f:\n        b = 2", "b"),
    ],
)
def test_what_is_like_it_and_right_is_read(tmp_path: Path, top: str, body: str, value: str) -> None:
    assert load(written(tmp_path, top, body, value)).actions
