"""Object code of native functions: made by numba once, kept on disk, and called without numba from then on.

Numba's own cache gives a function back as an object of numba's. To load one takes numba's import, all that it knows of
types, and a link for each function: more than the check of a small store. What is kept here is what the processor
runs and nothing else. llvmlite alone loads it, in some milliseconds, and ctypes calls it as native code of numba's
calls another: an array as its pieces, a tuple as its members, the answer behind a pointer.

Object code is kept under a digest of all that it was made of: its text and that of what it calls, the numbers that
either names, the kinds of its arguments, the processor, the versions of numba and LLVM.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property
from itertools import count
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import platformdirs

from gapless.traces.one_compiler import alone

OURS = "gapless"  # the package whose texts count
ROOM = "NUMBA_CACHE_DIR"
CHECKED = "NUMBA_BOUNDSCHECK"  # compiled so, native code looks whether an index is within its array
C_TYPES: dict[str, Any] = {
    "?": ctypes.c_uint8, "b": ctypes.c_int8, "B": ctypes.c_uint8, "h": ctypes.c_int16, "H": ctypes.c_uint16,
    "i": ctypes.c_int32, "I": ctypes.c_uint32, "l": ctypes.c_int64, "L": ctypes.c_uint64, "d": ctypes.c_double,
}  # fmt: skip

ARRAY = 5  # facts of an array's kind; of a tuple only its name and length are said

Kinds = tuple[Any, ...]
Head = dict[str, Any]


class NativeError(RuntimeError):
    """Native code ended before it had an answer: an index beyond an array, where that is looked at, or a division."""


class ObjectCode:
    """A function as object code, for every choice of kinds that its arguments come in: one, as a rule.

    `name`: of its file · `text`: all that it is made of · `function`: the Python function that is compiled, asked for
    where nothing is kept.
    """

    def __init__(self, name: str, text: Callable[[], str], function: Callable[[], Any]) -> None:
        self._name, self._text, self._function = name, text, function
        self._loaded: dict[Kinds, Callable[[Sequence[Any]], Any]] = {}

    def __call__(self, *args: Any) -> Any:
        """What the function says. Raises NativeError."""
        kinds: list[Any] = []
        values: list[Any] = []
        for value in args:
            _take_apart(value, kinds, values)
        key = tuple(kinds)
        run = self._loaded.get(key)
        if run is None:
            run = self._loaded[key] = self._load(key, args)
        return run(values)

    @property
    def is_kept(self) -> bool:
        """Whether there is object code of this very text, loaded or on disk. LLVM is asked only where there may be."""
        if self._loaded:
            return True
        near = [name for name in _files(cache_folder()) if name.startswith(f"{self._name}-")]
        return bool(near) and any(name.startswith(f"{self._name}-{self._digest}-") for name in near)

    @cached_property
    def _digest(self) -> str:
        return digest_of(self._text(), importlib.metadata.version("numba"), *of_this_machine(), _bounds())

    def _load(self, kinds: Kinds, args: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:
        path = cache_folder() / f"{self._name}-{self._digest}-{digest_of(repr(kinds))[:8]}.o"
        kept = read(path)
        if kept is None:
            with alone(path):
                kept = read(path)  # by whom we waited for
                if kept is None:
                    kept = _compiled(self._function(), args)
                    keep(path, *kept)
        return _linked(path.stem, *kept, kinds)


# -- arguments -------------------------------------------------------------------------------------------------------


def _take_apart(value: Any, kinds: list[Any], values: list[Any]) -> None:
    """An argument as native code is given it: what kind it is, and the words of which it consists."""
    if isinstance(value, np.ndarray):
        flags, shape = value.flags, value.shape
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        kinds.append((value.dtype.char, len(shape), order, flags.writeable, flags.aligned))
        values += (None, None, value.size, value.itemsize, _begin(value), *shape, *value.strides)
    elif isinstance(value, tuple):
        kinds.append((type(value).__qualname__, len(value)))
        for member in value:
            _take_apart(member, kinds, values)
    elif isinstance(value, (bool, np.bool_)):
        kinds.append("?")
        values.append(value)
    elif isinstance(value, np.generic):
        kinds.append(value.dtype.char)
        values.append(value.item())
    elif isinstance(value, int):
        kinds.append("l")
        values.append(value)
    else:
        raise TypeError(f"native code is given numbers, arrays and tuples of them, not {type(value).__name__}")


def _begin(value: npt.NDArray[Any]) -> int | None:
    """Where in memory an array begins."""
    return _POINTER.from_address(id(value) + _HEAD).value if _IS_FIRST else value.ctypes.data


_POINTER, _HEAD = ctypes.c_void_p, object.__basicsize__
_PROBE = np.zeros(1)
# Behind what every object of Python begins with, an array says first where it begins. Numpy's own answer takes two
# microseconds, and a check asks tens of thousands of times.
_IS_FIRST = (
    sys.implementation.name == "cpython" and _POINTER.from_address(id(_PROBE) + _HEAD).value == _PROBE.ctypes.data
)


def _words(kinds: Kinds) -> Iterator[Any]:
    """The types of the words that arguments of these kinds consist of."""
    for kind in kinds:
        if isinstance(kind, str):
            yield C_TYPES[kind]
        elif len(kind) == ARRAY:
            yield from (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
            yield from (ctypes.c_int64,) * (2 * kind[1])


# -- compiling -------------------------------------------------------------------------------------------------------


def _compiled(function: Any, args: Sequence[Any]) -> tuple[Head, bytes]:
    """Object code of a function, and what is to be known of it."""
    import numba  # noqa: PLC0415 - not where all is kept
    from numba.core import compiler, registry  # noqa: PLC0415 - see above
    from numba.core.compiler_lock import global_compiler_lock  # noqa: PLC0415 - see above

    flags = compiler.Flags()
    flags.nrt = False
    flags.boundscheck = bool(_bounds().strip("0"))
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    target = registry.cpu_target
    with global_compiler_lock:
        kinds = tuple(numba.typeof(value) for value in args)
        made = compiler.compile_extra(
            target.typing_context, target.target_context, function, kinds, None, flags, {}
        )  # fmt: skip
        made.library.finalize()
        text = made.library.get_llvm_str()
    code = bytes(machine().emit_object(_llvm().parse_assembly(text)))
    return {"symbol": made.fndesc.llvm_func_name, "answer": _answer(made.signature.return_type)}, code


def _answer(kind: Any) -> list[str] | str | None:
    """What a function answers with: the code of a number, those of a tuple, or nothing."""
    from numba.core.types import boolean, none  # noqa: PLC0415 - not where all is kept
    from numba.core.types.containers import BaseTuple  # noqa: PLC0415 - see above
    from numba.core.types.misc import unliteral  # noqa: PLC0415 - see above

    kind = unliteral(kind)
    if kind == none:
        return None
    if isinstance(kind, BaseTuple):
        return [str(_answer(one)) for one in kind]
    return "?" if kind == boolean else np.dtype(str(kind)).char


# -- what is kept ----------------------------------------------------------------------------------------------------


def read(path: Path) -> tuple[Head, bytes] | None:
    """What was kept, if it is whole: it is going to be run."""
    try:
        line, _, content = path.read_bytes().partition(b"\n")
        head: Head = json.loads(line)
        whole = head["digest"] == hashlib.sha256(content).hexdigest()
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return (head, content) if whole else None


def keep(path: Path, head: Head, content: bytes) -> None:
    """Keep content, and a line of JSON before it, whole or not at all. Where neither can be, it is made again."""
    line = json.dumps({**head, "digest": hashlib.sha256(content).hexdigest()})
    with suppress(OSError):
        write_whole(path, line.encode() + b"\n" + content)
    _files.cache_clear()


def write_whole(path: Path, content: bytes) -> None:
    """A file that is there whole or not at all. Raises OSError."""
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
        file.write(content)
    Path(file.name).replace(path)


@cache
def _files(folder: Path) -> frozenset[str]:
    try:
        return frozenset(file.name for file in folder.iterdir())
    except OSError:
        return frozenset()


@cache
def cache_folder() -> Path:
    """Where native code is kept: the user's cache, or where that cannot be written, the folder that numba is told of.

    `gapless.compiled` names one that goes with the process, where there is none.
    """
    folder = Path(platformdirs.user_cache_dir(OURS)) / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(os.environ.get(ROOM) or tempfile.mkdtemp(prefix="gapless-"))


def digest_of(*parts: str) -> str:
    """What texts are known by: 16 letters of their SHA-256."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@cache
def of_this_machine() -> tuple[str, str, str]:
    """What object code of the same text differs by: the version of LLVM, the processor, and what it can do."""
    llvm = _llvm()
    version = importlib.metadata.version("llvmlite")
    return version, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _bounds() -> str:
    return os.environ.get(CHECKED, "0")


# -- linking ---------------------------------------------------------------------------------------------------------


def _llvm() -> Any:
    import llvmlite.binding  # noqa: PLC0415 - not where all is judged by Python

    return llvmlite.binding


@cache
def machine() -> Any:
    """What LLVM makes object code for: this processor, with all that it can do."""
    llvm = _llvm()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="pic",
        codemodel="small",
    )


_LINKED = count()  # so that each library has a name of its own, as the linker asks


@cache
def _linker() -> Any:
    return _llvm().create_lljit_compiler(machine())


def link(name: str, code: bytes, symbols: Iterable[str]) -> Any:
    """Where these symbols of object code lie, by their names. The memory goes with what is returned."""
    builder = _llvm().JITLibraryBuilder().add_object_img(code).add_current_process()
    for symbol in symbols:
        builder = builder.export_symbol(symbol)
    return builder.link(_linker(), f"{name} {next(_LINKED)}")


def _linked(name: str, head: Head, code: bytes, kinds: Kinds) -> Callable[[Sequence[Any]], Any]:
    """A function that takes the words of its arguments."""
    symbol, answer = head["symbol"], head["answer"]
    library = link(name, code, [symbol])
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *_words(kinds))(library[symbol])
    members = [answer] if isinstance(answer, str) else answer or ["l"]
    room = type("Answer", (ctypes.Structure,), {"_fields_": [(f"m{i}", C_TYPES[m]) for i, m in enumerate(members)]})
    names = [name for name, _ in room._fields_]  # type: ignore[attr-defined]

    def run(values: Sequence[Any]) -> Any:
        found, why = room(), ctypes.c_void_p()
        status = function(ctypes.addressof(found), ctypes.addressof(why), *values)
        if status:
            raise NativeError(f"{name}: native code ended with {status}")
        if answer is None:
            return None
        told = tuple(
            bool(getattr(found, at)) if member == "?" else getattr(found, at)
            for at, member in zip(names, members, strict=True)
        )
        return told[0] if isinstance(answer, str) else told

    run.library = library  # type: ignore[attr-defined] # whose memory it lies in
    return run


# -- what it is made of ----------------------------------------------------------------------------------------------


def text_of(function: Any) -> str:
    """All that native code of a function is made of: the modules of what it calls, and the values of what it names."""
    parts: dict[str, str] = {}
    _gather(function, parts)
    return "\0".join(f"{name}\0{text}" for name, text in sorted(parts.items()))


def _gather(function: Any, parts: dict[str, str]) -> None:
    key = f"{function.__module__}.{function.__qualname__}"
    if key in parts:
        return
    parts[key] = ""
    _add_module(function.__module__, parts)
    for name in _names_in(function.__code__):
        value = function.__globals__.get(name)
        called = getattr(value, "py_func", None)
        if called is not None:
            _gather(called, parts)
        elif isinstance(value, ModuleType):
            _add_module(value.__name__, parts)
        elif isinstance(value, np.ndarray):
            parts[f"{key} {name}"] = f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
        elif isinstance(value, type):
            _add_module(value.__module__, parts)
        elif value is not None and not callable(value):
            parts[f"{key} {name}"] = repr(value)


def _names_in(code: CodeType) -> Iterator[str]:
    """The names that a function asks for, and those of what is written within it."""
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _names_in(one)


def _add_module(name: str, parts: dict[str, str]) -> None:
    """The text of a module of ours, or of one that a user brings."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if file and name not in parts and name.partition(".")[0] not in {"numpy", "numba"}:
        parts[name] = _text_in(file)


@cache
def _text_in(file: str) -> str:
    with suppress(OSError, ValueError):
        return Path(file).read_text("utf-8")
    return ""
