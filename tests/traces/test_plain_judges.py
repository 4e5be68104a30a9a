"""The plain functions judge where a compiled reading cannot follow a spec, and the report says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gapless.spec.language import Refused
from gapless.traces.check import check
from gapless.traces.judging import judge as judging
from gapless.traces.replay import kernels
from gapless.traces.replay.kernels import EXACT, Kernel, Loop, kernel
from gapless.traces.specs import load

SPEC = '''"""A spec."""

from dataclasses import dataclass

from gapless.spec.language import Map, Number, all_between, replace, require

EMPTY = Map(0)
TOP = 2**63 - 1


@dataclass(frozen=True, slots=True)
class State:
    """Maps and numbers."""

    n: int = 0
    now: Map[Number, int] = Map(0)
    saved: Map[Number, int] = Map(0)
    sevens: Map[Number, int] = Map(7)


def put(s: State, k: Number, x: int) -> State:
    """A value changes."""
    return replace(s, now=s.now.set(k, x), n=x)


def act(s: State, k: Number, x: int) -> State:
    """The step in question."""
    {act}


def look(s: State, k: Number, x: int) -> State:
    """A value is read."""
    require({look} == x, "value-is-read", because="the value is there", otherwise="a reader is lied to")
    return s


def fine(s: State) -> bool:
    """Otherwise not."""
    return s.n == s.n


INITIAL = State()
ACTIONS = (put, act, look)
INVARIANTS = (fine,)
'''
NEEDS = 'require({}, "it-is-small", because="it is small", otherwise="memory runs out")\n    return s'
PUT, ACT, LOOK = "put", "act", "look"
LARGE = 2**32

Events = list[tuple[str, int, int]]
STORED = "is stored into the field"

CASES: dict[str, tuple[str, str, Events, Events, str]] = {  # act, look, what conforms, what departs, the note
    "a Map stored into another field": (
        "return replace(s, saved=s.now)", "s.saved[k]",
        [(PUT, 1, 5), (ACT, 0, 0), (PUT, 1, 7), (LOOK, 1, 5)], [(PUT, 1, 5), (ACT, 0, 0), (LOOK, 1, 0)], STORED,
    ),
    "a Map chosen by a condition": (
        "return replace(s, saved=s.now if x == 1 else s.saved)", "s.saved[k]",
        [(PUT, 1, 5), (ACT, 0, 1), (PUT, 1, 6), (ACT, 0, 0), (LOOK, 1, 5)], [(PUT, 1, 5), (ACT, 0, 1), (LOOK, 1, 0)],
        STORED,
    ),
    "two Maps swapped": (
        "return replace(s, now=s.saved, saved=s.now)", "s.now[k]",
        [(PUT, 1, 5), (ACT, 0, 0), (PUT, 1, 6), (ACT, 0, 0), (LOOK, 1, 5)], [(PUT, 1, 5), (ACT, 0, 0), (LOOK, 1, 5)],
        STORED,
    ),
    "a Map of another default": (
        "return replace(s, saved=s.sevens)", "s.saved[k]",
        [(ACT, 0, 0), (LOOK, 3, 7)], [(ACT, 0, 0), (LOOK, 3, 0)], STORED,
    ),
    "a Map stored after other effects": (
        "return replace(s, saved=s.now.set(k, 9).forget_from(Number(4)))", "s.saved[k]",
        [(PUT, 1, 5), (ACT, 2, 0), (LOOK, 1, 5), (LOOK, 2, 9)], [(PUT, 1, 5), (ACT, 1, 0), (LOOK, 1, 5)], STORED,
    ),
    "a constant Map": (
        "return replace(s, now=EMPTY.set(k, x))", "s.now[k]",
        [(PUT, 1, 5), (ACT, 2, 3), (LOOK, 1, 0), (LOOK, 2, 3)], [(PUT, 1, 5), (ACT, 2, 3), (LOOK, 1, 5)], "EMPTY",
    ),
    "a product of arguments": (
        NEEDS.format("k * x <= 1000"), "0", [(ACT, 10, 100), (ACT, LARGE, -LARGE)], [(ACT, LARGE, LARGE)], "",
    ),
    "a product with a constant": (
        NEEDS.format("x * 1000000000 <= 1000000000000000000"), "0", [(ACT, 0, 10**9)], [(ACT, 0, 18446744074)], "",
    ),
    "a square of a field": (
        NEEDS.format("s.n * s.n <= 100"), "0", [(PUT, 0, -10), (ACT, 0, 0)], [(PUT, 0, LARGE), (ACT, 0, 0)], "",
    ),
    "a long sum": (
        NEEDS.format(" + ".join(["x"] * 9) + " <= 100"), "0", [(ACT, 0, 3)], [(ACT, 0, 2**60 - 1)], "",
    ),
    "a key that is a product": (
        NEEDS.format("s.now[Number(k * x)] == 0"), "0",
        [(PUT, 0, 5), (ACT, LARGE, LARGE)], [(PUT, 6, 5), (ACT, 2, 3)], "",
    ),
    "a constant that is too large to be stored": (
        NEEDS.format("s.n + s.n + s.n + s.n >= 0").replace("return s", "return replace(s, n=TOP)"), "0",
        [(ACT, 0, 0), (ACT, 0, 0)], [(PUT, 0, -1), (ACT, 0, 0)], "",
    ),
    "a sign": (NEEDS.format("-x < 5"), "0", [(ACT, 0, -4), (ACT, 0, 2**60)], [(ACT, 0, -5)], ""),
    "a division that rounds down": (
        NEEDS.format("x // 3 == k and x % 3 < 3"), "0", [(ACT, -2, -5), (ACT, 1, 5)], [(ACT, -1, -5)], "",
    ),
    "a quantifier within a quantifier": (
        NEEDS.format("all_between(0, 3, lambda i: all_between(i, 3, lambda j: s.now[i] <= s.now[j]))"), "0",
        [(PUT, 1, 1), (PUT, 2, 2), (ACT, 0, 0)], [(PUT, 0, 1), (ACT, 0, 0)], "",
    ),
    "a product within a quantifier": (
        NEEDS.format("all_between(0, 3, lambda i: s.now[i] * s.now[i] <= 100)"), "0",
        [(PUT, 1, 10), (ACT, 0, 0)], [(PUT, 1, LARGE), (ACT, 0, 0)], "",
    ),
}  # fmt: skip


def report_of(folder: Path, name: str, events: Events, act: str, look: str) -> Any:
    """The report of a trace."""
    spec, path = folder / "stored.py", folder / f"{name}.ndjson"
    spec.write_text(SPEC.replace("{act}", act).replace("{look}", look))
    lines: list[dict[str, Any]] = [{"schema": "gapless-events", "version": 1}]
    lines += [
        {"source": "a", "spec": "stored", "trace": "t", "position": at, "action": action, "args": {"k": k, "x": x}}
        for at, (action, k, x) in enumerate(events)
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return check([path], specs=[load(spec)])


@pytest.mark.parametrize("few", [0, 1 << 60], ids=["native", "python"])
@pytest.mark.parametrize(("act", "look", "right", "wrong", "note"), CASES.values(), ids=CASES)
def test_the_plain_functions_have_the_last_word(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    act: str,
    look: str,
    right: Events,
    wrong: Events,
    note: str,
    few: int,
) -> None:
    monkeypatch.setattr(Loop, "few", few)
    for name, events, verdict in (("right", right, "conforms"), ("wrong", wrong, "departs")):
        report = report_of(tmp_path, name, events, act, look)
        assert report.verdict == verdict, name
        notes = [one for one in report.sources[0].notes if "judged by the plain functions, not by a kernel" in one]
        assert len(notes) == bool(note)
        assert all(note in one for one in notes)


def test_the_verdict_does_not_depend_on_how_many_events_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    act, look, _, wrong, _ = CASES["a product with a constant"]
    monkeypatch.setattr(Loop, "few", 100)
    assert report_of(tmp_path, "short", wrong, act, look).verdict == "departs"
    assert report_of(tmp_path, "long", [*[(LOOK, 0, 0)] * 500, *wrong], act, look).verdict == "departs"


def test_an_event_that_a_kernel_alone_refuses_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is wrong: it refuses the second event of every trace. Nothing is dropped in silence."""

    def lying(*args: Any, **named: Any) -> Kernel:
        of = kernel(*args, **named)
        why = next(n for n, reason in enumerate(of.reasons, 1) if reason.rule.endswith("value-is-read"))

        def loop(starts: Any, *columns: Any) -> None:
            columns[kernels.BAD_AT][:] = starts[:-1] + 1
            columns[kernels.BAD_AT + 1][:], columns[kernels.BAD_AT + 5][:] = why, 0
            columns[kernels.BAD_AT + 2][0] += len(starts) - 1

        return Kernel(of.spec, of.reasons, loop)

    monkeypatch.setattr(judging, "kernel", lying)
    report = report_of(tmp_path, "right", [(PUT, 1, 5), (PUT, 1, 6), (LOOK, 1, 6)], "return s", "s.now[k]")
    assert report.verdict == "conforms"
    assert {step: count for step, count in report.coverage.items() if count} == {"stored.put": 2, "stored.look": 1}
    (note,) = (one for one in report.sources[0].notes if "a kernel refused" in one)
    assert note.startswith("a kernel refused 1 stored events that the plain functions accept, t at line 3 for one")


def test_what_a_kernel_gives_up_is_left_whole(tmp_path: Path) -> None:
    path = tmp_path / "stored.py"
    path.write_text(SPEC.replace("{act}", NEEDS.format("k * x <= 1000")).replace("{look}", "0"))
    of = kernel(load(path))
    args = np.array([[LARGE, 2], [LARGE, 3]], np.int64)
    begin, starts = np.zeros((1, 2), np.int64), np.array([0, 1, 2])
    found = of.replay(starts, np.array([1, 1], np.int8), args, begin, profile="strict")
    assert (found.bad_why.tolist(), found.bad_at.tolist()) == ([EXACT, 0], [0, -1])
    with pytest.raises(Refused):
        of.spec.actions["act"](of.spec.initial, LARGE, LARGE)
