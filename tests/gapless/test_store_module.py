"""`gapless.store`: all that a program needs, and examples that are true."""

import doctest
from pathlib import Path

import pytest

from gapless import store
from gapless.impl.records import errors


def test_the_examples_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(store, raise_on_error=False)
    assert found.attempted > 20
    assert not found.failed


def test_an_example_that_is_not_true_is_found() -> None:
    runner = doctest.DocTestRunner(verbose=False)
    example = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    assert runner.run(example, out=lambda _: None).failed == 1


def test_every_error_is_there_with_its_meaning() -> None:
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert kinds <= set(store.__all__)
    for name in store.__all__:
        assert getattr(store, name).__doc__
        assert f"`{name}`" in str(store.__doc__)
