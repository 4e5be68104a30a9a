"""Native code, and when it is worth compiling.

To compile all that reads and judges a store takes most of a minute; Python judges a small store in a second. So what
Python calls is `native`: its text is run by Python as it stands while there is little to do, and compiled once there is
more. The text is the same, and so are the answers. What was compiled before is used from the first call on.

`njit` is for what only native code calls. Nothing here makes an array, and therefore nobody counts references to any:
numba counts them at every call that is given an array, which costs more than most of what is called here. Whoever needs
room is given it.

Numba is imported where the first function is compiled: it takes longer than to judge a small store. What was compiled
before is loaded without it (see `object_code`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property
from inspect import signature
from types import FunctionType
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt

from gapless.traces.object_code import ObjectCode, text_of

P = ParamSpec("P")
R = TypeVar("R")
Scalar = TypeVar("Scalar", bound=np.generic)

LOG = logging.getLogger("gapless")

uint64, uint32 = np.uint64, np.uint32
"""Casts in native code, modulo 2⁶⁴ and 2³². Python is given `_uint64` and `_uint32` in their place."""

OFTEN = 4
_EXPECTED: ContextVar[int] = ContextVar("_EXPECTED", default=0)
_BY_LIBRARY: dict[Any, Callable[..., Any]] = {}


@contextmanager
def expecting(work: int) -> Iterator[None]:
    """Whoever is called meanwhile has so much work ahead: it is compiled at once, or loaded, if that is worth it."""
    before = _EXPECTED.set(work)
    try:
        yield
    finally:
        _EXPECTED.reset(before)


def expected() -> int:
    """How much work is ahead of what is called now."""
    return _EXPECTED.get()


class Jitted(Generic[P, R]):
    """A function as numba compiles it, once it is called, or native code that calls it is compiled.

    To numba it is what it stands for: its dispatcher.
    """

    def __init__(self, function: Callable[P, R], how: dict[str, Any]) -> None:
        self.py_func: Any = function
        self._how = how

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's own word for the function."""
        import numba  # noqa: PLC0415 - see above

        return numba.njit(**self._how)(self.py_func)

    @cached_property
    def code(self) -> ObjectCode:
        """As which Python calls it."""
        function = self.py_func
        name = f"{function.__module__}.{function.__qualname__}"
        return ObjectCode(name, lambda: text_of(function), lambda: function)

    def __call__(self, *args: P.args, **named: P.kwargs) -> R:
        """What the function says, by native code. It is given nothing by name but flags."""
        if named:
            return cast("R", self.code(*signature(self.py_func).bind(*args, **named).args))
        return cast("R", self.code(*args))

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    @property
    def targetoptions(self) -> Any:
        """How it is compiled: who calls it asks whether it is to stand in the caller's own code."""
        return self.dispatcher.targetoptions

    def is_kept(self) -> bool:
        """Whether there is native code of this very text, here or on disk."""
        return self.code.is_kept


def njit(function: Callable[..., Any] | None = None, /, **how: Any) -> Any:
    """The decorator of what native code calls. `how`: as numba's own has it."""
    if function is not None:
        return Jitted(function, {"_nrt": False, **how})
    return lambda function: Jitted(function, {"_nrt": False, **how})


class Native(Generic[P, R]):
    """A function that Python calls: by Python as it stands while rows are `few`, and compiled once there are more.

    What is read once more, to tell of what was found, is no more than what was read before: it is worth no compiler
    until it comes to `OFTEN` times so much.

    `compiled`: what native code calls instead.
    """

    few: ClassVar[int] = 25_000  # rows, such as records: of a hundred thousand events or so

    def __init__(self, compiled: Any, work: Callable[P, int]) -> None:
        self.compiled = compiled
        self._work = work
        self._seen = 0
        self._is_ready = False

    def __call__(self, *args: P.args, **named: P.kwargs) -> R:
        """What the function says. It is given nothing by name but flags."""
        if not self._is_ready:
            kept = not self._seen and self._is_kept()  # nobody looks again for what was not there at first
            work = max(self._work(*args, **named), 0)
            self._seen += work
            if not kept:
                if max(work, expected()) <= self.few and self._seen <= OFTEN * self.few:
                    return self.by_python(*args, **named)
                if not self._is_kept():
                    _tell()
            self._is_ready = True
        return cast("R", self.compiled(*args, **named))

    def by_python(self, *args: P.args, **named: P.kwargs) -> R:
        """The same, by Python."""
        with np.errstate(over="ignore"):
            return cast("R", by_python(self.compiled)(*map(_plain, args), **named))

    def _is_kept(self) -> bool:
        return bool(self.compiled.is_kept())


@cache
def _tell() -> None:
    LOG.info("compiling native code, once: more than %s records or events", f"{Native.few:,}")


def handed(column: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """A column as native code is given it: side by side in memory, which may be written to; a copy where it is not so.

    What arrow and pickle hold may not be written to, and a choice of columns may lie row by row: for each of these
    kinds numba would compile the same once more.
    """
    return np.require(column, requirements=("C", "W"))


def native(work: Callable[P, int]) -> Callable[[Callable[P, R]], Native[P, R]]:
    """The decorator of what Python calls. `work`: how many rows a call is about."""

    def decorated(function: Callable[P, R]) -> Native[P, R]:
        return Native(njit(function), work)

    return decorated


def by_library(compiled: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """The decorator of what Python calls in place of native code: a library's function for the same."""

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        _BY_LIBRARY[compiled] = function
        return function

    return decorated


@cache
def by_python(compiled: Any) -> Callable[..., Any]:
    """The function that was compiled, as it stands, and all that it calls."""
    if compiled in _BY_LIBRARY:
        return _BY_LIBRARY[compiled]
    function = compiled.py_func
    names = {**function.__globals__, "uint64": _uint64, "uint32": _uint32}
    for name in function.__code__.co_names:
        if isinstance(names.get(name), Jitted):
            names[name] = by_python(names[name])
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)


def _uint64(value: Any) -> np.uint64:
    """As numba has it: modulo 2⁶⁴."""
    return np.uint64(int(value) & 0xFFFF_FFFF_FFFF_FFFF)


def _uint32(value: Any) -> np.uint32:
    """As numba has it: modulo 2³²."""
    return np.uint32(int(value) & 0xFFFF_FFFF)


def _plain(value: Any) -> Any:
    """An argument as Python reads it fast. Bytes become whole numbers when they are read, as native code has them."""
    if isinstance(value, np.ndarray):
        return memoryview(cast("Any", value)) if value.dtype == np.uint8 and value.ndim == 1 else value
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(map(_plain, value))
    return value
