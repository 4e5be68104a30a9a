"""Native code, and when it is worth compiling.

To compile all that reads and judges a store takes most of a minute; Python judges a small store in a second. So what
Python calls is `native`: its text is run by Python as it stands while there is little to do, and compiled once there is
more. The text is the same, and so are the answers. What was compiled before is used from the first call on.

`njit` is for what only native code calls. It makes no array, and therefore counts no references to any: numba counts
them at every call that is given an array, which costs more than most of what is called here. Who makes an array says so
(`arrays=True`), and may call those who make none; not the other way round, as the compiler says.

Numba is imported where the first function is compiled or loaded: it takes a third of the time in which a small store is
judged, and nothing of one needs it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt
import platformdirs

P = ParamSpec("P")
R = TypeVar("R")
Scalar = TypeVar("Scalar", bound=np.generic)

LOG = logging.getLogger("gapless")

uint64, uint32 = np.uint64, np.uint32
"""Casts in native code, modulo 2⁶⁴ and 2³². Python is given `_uint64` and `_uint32` in their place."""

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

    def __call__(self, *args: P.args, **named: P.kwargs) -> R:
        """What the function says, by native code."""
        return cast("R", self.dispatcher(*args, **named))

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    @property
    def targetoptions(self) -> Any:
        """How it is compiled: who calls it asks whether it is to stand in the caller's own code."""
        return self.dispatcher.targetoptions

    def is_kept(self) -> bool:
        """Whether there is machine code of this very text, here or on disk. Numba is asked only where there may be."""
        if "dispatcher" in self.__dict__ and self.dispatcher.signatures:
            return True
        if self.py_func.__qualname__ not in _kept_in(Path(self.py_func.__code__.co_filename).parent):
            return False
        try:
            return bool(self.dispatcher._cache._cache_file._load_index())  # noqa: SLF001 - numba has no other word for it
        except AttributeError:  # another version of it
            return True


@cache
def _kept_in(folder: Path) -> frozenset[str]:
    """The names of functions of modules in a folder of which numba may have kept machine code, of this text or another.

    It looks in the folder that it is told of, or else beside the modules and among the files of the user.
    """
    told = os.environ.get("NUMBA_CACHE_DIR")
    rooms = [Path(told)] if told else [Path(platformdirs.user_cache_dir("numba"))]
    places = [] if told else [folder / "__pycache__"]
    for room in rooms:
        with suppress(OSError):
            places += room.glob(f"{folder.name}_*")
    names: set[str] = set()
    for place in places:
        with suppress(OSError):
            names.update(file.stem.partition("-")[0].partition(".")[2] for file in place.glob("*.nbi"))
    return frozenset(names)


def njit(function: Callable[..., Any] | None = None, /, *, arrays: bool = False, **how: Any) -> Any:
    """The decorator of what native code calls. `arrays`: it makes arrays · `how`: as numba's own has it."""
    if function is not None:
        return Jitted(function, {"_nrt": arrays, **how})
    return lambda function: Jitted(function, {"_nrt": arrays, **how})


class Native(Generic[P, R]):
    """A function that Python calls: by Python as it stands for the first `few` rows, and compiled once there are more.

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
            self._seen += max(self._work(*args, **named), 0)
            if not kept:
                if max(self._seen, expected()) <= self.few:
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


def native(work: Callable[P, int], *, arrays: bool = False) -> Callable[[Callable[P, R]], Native[P, R]]:
    """The decorator of what Python calls. `work`: how many rows a call is about · `arrays`: it makes arrays."""

    def decorated(function: Callable[P, R]) -> Native[P, R]:
        return Native(njit(nogil=True, cache=True, arrays=arrays)(function), work)

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
