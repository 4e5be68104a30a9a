"""Specs as users name them: ours by name, theirs by file or by module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass

from gapless.commands.terminal import failed
from gapless.spec.catalog import SPECS, Spec
from gapless.traces.specs import loaded, place
from gapless.traces.suggestions import did_you_mean

WHICH = "Specs by name, such as queue, or a file or a module with one of yours, such as lease.py"


def chosen(names: Sequence[str]) -> list[Spec]:
    """The specs of these names, each once; all of ours if there is none. Exits with 2 where one of them is none."""
    try:
        return list(loaded(names)) if names else list(SPECS.values())
    except ValueError as error:
        raise failed(str(error)) from None


@contextmanager
def errors_of(spec: Spec) -> Iterator[None]:
    """Within, an error of a user's spec is reported with its line, and exits with 2; one of ours is a bug."""
    try:
        yield
    except Exception as error:
        where = place(error, spec)
        if where is None:
            raise
        raise failed(f"{where}: {type(error).__name__}: {error}{_meant(error)}") from None


def _meant(error: Exception) -> str:
    """The field that a wrong one may stand for; empty where the error is about something else."""
    if not isinstance(error, AttributeError) or not is_dataclass(error.obj):
        return ""
    return did_you_mean(str(error.name), [field.name for field in fields(error.obj)])
