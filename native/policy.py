"""The choice between Python and native code: Python interprets a function as long as there is little to do.

To compile takes a tenth of a second or some; Python judges a small store in that time. What was compiled before is used
from the first call on. The answers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt

from gapless.native.language import Function, Kinds, by_python

P = ParamSpec("P")
R = TypeVar("R")
Scalar = TypeVar("Scalar", bound=np.generic)

OFTEN = 4
"""Rows are read again to explain what was found; that is worth compiling only from so many times `few` on."""
_EXPECTED: ContextVar[int] = ContextVar("_EXPECTED", default=0)


@contextmanager
def expecting(work: int) -> Iterator[None]:
    """A block with so much work ahead: functions are compiled at once, or loaded, if that is worth it."""
    before = _EXPECTED.set(work)
    try:
        yield
    finally:
        _EXPECTED.reset(before)


def expected() -> int:
    """The work that is ahead of what is called now, in rows."""
    return _EXPECTED.get()


class Native(Generic[P, R]):
    """A function that Python calls: interpreted while rows are `few`, and compiled once there are more."""

    few: ClassVar[int] = 25_000  # rows, such as records: of a hundred thousand events or so

    def __init__(self, compiled: Function, work: Callable[..., int]) -> None:
        self.compiled = compiled
        self.__name__, self.__doc__, self.__module__ = compiled.__name__, compiled.__doc__, compiled.__module__
        self._work = work
        self._seen = 0
        self._is_ready = False

    def __call__(self, *args: P.args, **named: P.kwargs) -> R:
        """The function's answer. It is given nothing by name but flags."""
        if not self._is_ready:
            is_kept = not self._seen and self._is_kept()  # what was not there at first is not looked for again
            work = max(self._work(*args, **named), 0)
            self._seen += work
            if not is_kept and max(work, expected()) <= self.few and self._seen <= OFTEN * self.few:
                return self.by_python(*args, **named)
            self._is_ready = True
        return cast("R", self.compiled(*args, **named))

    def by_python(self, *args: P.args, **named: P.kwargs) -> R:
        """The same, by Python."""
        with np.errstate(over="ignore"):
            return cast("R", by_python(self.compiled)(*map(readable, args), **named))

    def prepare(self) -> None:
        """Load it, or compile it, if the work that is expected will be done by native code: forked workers have it."""
        if expected() > self.few or self._is_kept():
            self.compiled.code.load()
            self._is_ready = True

    def _is_kept(self) -> bool:
        return bool(self.compiled.code.is_kept)


def native(
    work: Callable[..., int],
    *,
    inline: bool = False,
    apart: bool = False,
    distinct: bool = False,
    keeps_lock: bool = False,
    kinds: Kinds = (),
) -> Callable[[Callable[P, R]], Native[P, R]]:
    """The decorator of a function that Python calls.

    `work`: the rows that a call is about, from its arguments · `kinds` and the others: as `Function` has them.
    """

    def decorated(python: Callable[P, R]) -> Native[P, R]:
        made = Function(
            cast("Any", python), inline=inline, apart=apart, distinct=distinct, keeps_lock=keeps_lock, kinds=kinds
        )
        return Native(made, work)

    return decorated


def handed(column: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """A column as native code takes it fast: elements side by side, row by row; a copy where they are not so.

    For every other order of elements a function would be compiled again.
    """
    return np.require(column, requirements=("C",))


def readable(value: Any) -> Any:
    """An argument in the form that Python reads fastest: narrow elements become whole numbers of any size."""
    if isinstance(value, np.ndarray):
        is_narrow = value.ndim == 1 and value.itemsize < 8 and value.dtype.kind in "iu"
        return memoryview(cast("Any", value)) if is_narrow else value
    if isinstance(value, tuple):
        made = map(readable, value)
        return value._make(made) if hasattr(value, "_make") else tuple(made)
    return value
