"""Who needs the same native code at once waits for one to compile it, and nobody waits for ever."""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from gapless.traces import object_code, one_compiler
from gapless.traces.native import njit
from gapless.traces.object_code import ObjectCode
from gapless.traces.one_compiler import alone


@njit
def _answer(value: int) -> int:
    return value + 1


class Compiler:
    """A compiler that waits before it compiles, until it may."""

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        self.calls = 0
        self.began, self.may = Event(), Event()

    def __call__(self, function: Any, args: Any) -> Any:
        """Compile once that may be."""
        self.calls += 1
        self.began.set()
        assert self.may.wait(60)
        return self.compiled(function, args)


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiler]:
    """Nothing is kept, and what is asked of the compiler is seen."""
    monkeypatch.setattr(object_code, "cache_folder", lambda: tmp_path)
    object_code._files.cache_clear()
    found = Compiler(object_code._compiled)
    monkeypatch.setattr(object_code, "_compiled", found)
    yield found
    found.may.set()


def another() -> ObjectCode:
    """What another process has: the same text, and nothing that was loaded."""
    return ObjectCode("answer", lambda: "its text", lambda: _answer.py_func)


def test_one_compiles_and_the_others_take_what_it_keeps(compiler: Compiler, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(another(), 6)
        assert compiler.began.wait(60)
        others = [pool.submit(another(), number) for number in (7, 8, 9)]
        compiler.may.set()
        assert [one.result() for one in (first, *others)] == [7, 8, 9, 10]
    assert compiler.calls == 1
    assert [file.suffix for file in tmp_path.iterdir()] == [".o"]


def test_nobody_waits_for_ever(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who compiles may have been stopped."""
    monkeypatch.setattr(one_compiler, "PATIENCE", 0.1)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(another(), 6)
        assert compiler.began.wait(60)
        compiler.began.clear()
        second = pool.submit(another(), 7)
        assert compiler.began.wait(60)
        compiler.may.set()
        assert (first.result(), second.result()) == (7, 8)
    assert compiler.calls == 2


def test_who_fails_leaves_it_to_the_next(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), alone(tmp_path / "answer.o"):
        raise KeyboardInterrupt
    with alone(tmp_path / "answer.o"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_locked_each_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with alone(tmp_path / "no folder" / "answer.o"):
        pass

    def refused(*_: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(fcntl, "flock", refused)
    with alone(tmp_path / "answer.o"), alone(tmp_path / "answer.o"):
        pass
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as where there is none
    with alone(tmp_path / "answer.o"), alone(tmp_path / "answer.o"):
        pass
