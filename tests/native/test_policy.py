"""A function is compiled once there is enough to do, and read by Python until then."""

from __future__ import annotations

from typing import Any

import pytest

from gapless.native import Function, Native, expecting, native


class NamedReader(Function):
    """A function of which each reading says its name."""

    def __init__(self) -> None:
        super().__init__(answer)  # type: ignore[arg-type]

    def __call__(self, *_: Any, **__: Any) -> str:
        """In place of native code, which has no text to answer with."""
        return "native"


def answer(count: int) -> Any:
    return f"{count} by Python"


def never(count: int) -> Any:
    return count


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Act as on a machine where no command ever ran."""
    monkeypatch.setattr(Native, "_is_kept", lambda _self: False)
    monkeypatch.setattr(Native, "few", 100)


def asked() -> Native[[int], str]:
    """A function that says which reading answers."""
    return Native(NamedReader(), lambda count: count)


@pytest.mark.usefixtures("nothing_kept")
def test_little_is_not_compiled_and_much_is() -> None:
    """Much at once, or often."""
    function = asked()
    results = [function(count) for count in (60, 100, 100, 100, 40, 1, 0)]
    assert results == [f"{count} by Python" for count in (60, 100, 100, 100, 40)] + ["native"] * 2
    assert [asked()(count) for count in (100, 101)] == ["100 by Python", "native"]


@pytest.mark.usefixtures("nothing_kept")
def test_it_is_compiled_at_once_where_much_is_ahead() -> None:
    with expecting(100):
        assert asked()(0) == "0 by Python"
    with expecting(101):
        assert asked()(0) == "native"


def test_what_was_kept_is_used_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Native, "few", 100)
    monkeypatch.setattr(Native, "_is_kept", lambda _self: True)
    assert asked()(1) == "native"


def test_it_is_known_what_was_kept() -> None:
    once = native(lambda count: count)(never)
    assert not once._is_kept()
    assert once.compiled(7) == 7  # compiled, and kept
    try:
        assert once._is_kept()
        assert native(lambda count: count)(never)._is_kept()
    finally:
        for path in kept(once):
            path.unlink()


def kept(of: Native[Any, Any]) -> Any:
    """The files of a function's object code."""
    from gapless.native.objects.cache import cache_folder, files  # noqa: PLC0415 - after it was kept

    files.cache_clear()
    return cache_folder().glob(f"{of.compiled.code._name}-*")
