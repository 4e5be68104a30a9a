"""Object code: made of LLVM's text once, kept on disk, and called without the compiler from then on.

It is kept under a digest of all that it was made of: its text and that of what it calls, the values that either names,
the kinds of its arguments, this compiler, the processor and the version of LLVM. llvmlite loads it in milliseconds.
"""

from __future__ import annotations

import logging
import mmap
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import count
from threading import RLock
from typing import Any

import numpy as np

from gapless.native.compiler.lowering import Program
from gapless.native.kinds import Kind, Signature, are_covered, kind_of
from gapless.native.language import Function, digest_of, text_of
from gapless.native.objects import convention
from gapless.native.objects.cache import alone, cache_folder, files, keep, read, shown_folder
from gapless.native.objects.convention import ENTRY, Entry

LOG = logging.getLogger("gapless")
CHECKED = "GAPLESS_BOUNDS"  # set to 1, native code compares every index with its array
PROCESSOR, FEATURES = "GAPLESS_PROCESSOR", "GAPLESS_FEATURES"  # as LLVM names them: a lesser processor than this one
LEVEL = 3  # of optimization
EXTERNAL = re.compile(r"^declare \w+ @(?!llvm\.)(\w+)\(")


class Compilations:
    """The object code that this process and its forked children compile: its number, and the time that it takes.

    Both lie in memory that the children share, so that the first of all of them says in one line what happens.
    """

    def __init__(self) -> None:
        self._shared = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), np.float64)
        self.own_seconds = 0.0  # of this process alone

    @property
    def count(self) -> int:
        """The functions that were compiled, or are being compiled."""
        return int(self._shared[0])

    @property
    def seconds(self) -> float:
        """The processor time that it took."""
        return float(self._shared[1])

    @contextmanager
    def counted(self) -> Iterator[None]:
        """A block that compiles one function."""
        self._shared[0] += 1
        if self.count == 1:
            LOG.info("compiling native code for this machine, cached in %s", shown_folder())
        began = time.thread_time()
        try:
            yield
        finally:
            taken = time.thread_time() - began
            self._shared[1] += taken
            self.own_seconds += taken


COMPILATIONS = Compilations()


def compiling_seconds() -> float:
    """The processor time that this process and its forked children have spent compiling."""
    return COMPILATIONS.seconds


_COMPILING = RLock()
"""Taken by a thread that compiles or loads. A fork waits for it: a child would have LLVM's lock without its owner."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_COMPILING.acquire, after_in_parent=_COMPILING.release, after_in_child=_COMPILING.release
    )


def unmatched(*_: Any) -> Any:
    """The entry of a function that is not loaded: every argument is of another kind."""
    return NotImplemented


class ObjectCode:
    """A function as object code, for every choice of kinds that its arguments come in: one, as a rule."""

    def __init__(self, of: Function) -> None:
        self._of = of
        self._entries: dict[tuple[Kind, ...], Callable[..., Any]] = {}
        self._alive: list[Any] = []
        self.entry: Callable[..., Any] = unmatched

    def __call__(self, *args: Any) -> Any:
        """The function's answer. Raises IndexError, in checked code, ZeroDivisionError, ValueError, TypeError."""
        found = self.entry(*args)
        return found if found is not NotImplemented else self._other(args)

    def _other(self, args: Sequence[Any]) -> Any:
        given = args if len(args) == len(self._of.parameters) else self._of.bound(tuple(args), {})
        given = tuple(map(_as_python, given))
        kinds = tuple(map(kind_of, given))
        entry = self.entry = self._entry(next((one for one in self._of.kinds if are_covered(one, kinds)), kinds))
        found = entry(*given)
        if found is NotImplemented:
            raise TypeError(f"{self._of.__name__}: arguments are of other kinds than {kinds}")
        return found

    def load(self) -> None:
        """Compile it, or load it, for the kinds that it declares, so that the first call finds it."""
        for kinds in self._of.kinds:
            self.entry = self._entry(kinds)

    def _entry(self, kinds: Signature) -> Callable[..., Any]:
        entry = self._entries.get(kinds)
        if entry is None:
            with _COMPILING:
                entry = self._entries.get(kinds) or self._load(kinds)
                self._entries[kinds] = entry
        return entry

    @property
    def is_kept(self) -> bool:
        """True if there is object code of this very text, loaded or on disk. LLVM is asked only where there may be."""
        if self._entries:
            return True
        near = [name for name in files() if name.startswith(f"{self._name}-") and name.endswith(".o")]
        with _COMPILING:  # a fork would give a child the locks of what is imported for the digest
            return any(name.startswith(f"{self._name}-{self._digest}-") for name in near)

    @property
    def _name(self) -> str:
        return f"{self._of.__module__}.{self._of.__qualname__}"

    @cached_property
    def _digest(self) -> str:
        return digest_of(text_of(self._of), _own_text(), *of_this_machine(), _bounds(), sys.version.partition(" ")[0])

    def _load(self, kinds: tuple[Kind, ...]) -> Callable[..., Any]:
        path = cache_folder() / f"{self._name}-{self._digest}-{digest_of(repr(kinds))[:8]}.o"
        kept = read(path)
        if kept is None:
            with alone(path):
                kept = read(path)  # by the process that was waited for
                if kept is None:
                    kept = self._compiled(kinds)
                    keep(path, *kept)
        head, code = kept
        library = link(path.stem, code, [ENTRY], head["imports"])
        entry, alive = convention.callable_at(library[ENTRY], self._of.__name__, library)
        self._alive.append(alive)
        return entry

    def _compiled(self, kinds: tuple[Kind, ...]) -> tuple[dict[str, Any], bytes]:
        with COMPILATIONS.counted():
            text, imports = llvm_text(self._of, kinds, features=processor()[1])
            code = assembled(text)
        return {"imports": imports}, code


Function.compiler = ObjectCode


def llvm_text(
    of: Function, kinds: tuple[Any, ...], *, features: str = "", is_checked: bool | None = None
) -> tuple[str, list[str]]:
    """A function with its entry in LLVM's text, and the names of Python's C interface that it needs."""
    program = Program(features, is_checked=_bounds() == "1" if is_checked is None else is_checked)
    lowered = program.function(of, kinds)
    entry = Entry(
        lowered.name, kinds, lowered.answer, writes=lowered.writes, may_fail=lowered.may_fail, keeps_lock=of.keeps_lock
    )
    imports, body = {*convention.FUNCTIONS, *convention.OBJECTS}, []
    for line in program.texts:
        external = EXTERNAL.match(line)
        if external is None or external[1] not in convention.FUNCTIONS:  # the entry declares its own
            body.append(line)
        if external is not None:
            imports.add(external[1])
    return "\n".join([*body, entry.text()]), sorted(imports)


def _as_python(value: Any) -> Any:
    """A scalar of numpy's as Python's own, but for an unsigned one of 64 bits."""
    if isinstance(value, np.generic) and not isinstance(value, np.uint64):
        return value.item()
    if isinstance(value, tuple) and any(isinstance(one, (np.generic, tuple)) for one in value):
        made = map(_as_python, value)
        return value._make(made) if hasattr(value, "_make") else tuple(made)
    return value


@cache
def _own_text() -> str:
    """The compiler's own text: another compiler makes other code."""
    return "\0".join(_texts(resources.files("gapless.native")))  # it may be in an archive


def _texts(folder: Traversable) -> Iterator[str]:
    for part in sorted(folder.iterdir(), key=lambda part: part.name):
        if part.is_dir():
            yield from _texts(part)
        elif part.name.endswith(".py"):
            yield part.read_text("utf-8")


def _bounds() -> str:
    return "1" if os.environ.get(CHECKED, "0") not in {"", "0"} else "0"


@cache
def of_this_machine() -> tuple[str, str, str]:
    """The differences between object code of one text: the version of LLVM, the processor, and its features."""
    import llvmlite  # noqa: PLC0415 - not where Python does all

    return llvmlite.__version__, *processor()


@cache
def processor() -> tuple[str, str]:
    """The processor that code is made for, and its features: this one, unless the environment names another."""
    name, features = os.environ.get(PROCESSOR), os.environ.get(FEATURES)
    llvm = _llvm()
    return (
        name or llvm.get_host_cpu_name(),
        (llvm.get_host_cpu_features().flatten() if name is None else "") if features is None else features,
    )


# -- LLVM ------------------------------------------------------------------------------------------------------------


def _llvm() -> Any:
    import llvmlite.binding  # noqa: PLC0415 - not where Python does all

    return llvmlite.binding


@cache
def machine() -> Any:
    """LLVM's target: this processor, with all its features."""
    llvm = _llvm()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=processor()[0],
        features=processor()[1],
        opt=LEVEL,
        reloc="pic",
        codemodel="small",
    )


def assembled(text: str, *, level: int = LEVEL, target: Any = None) -> bytes:
    """Object code of a text, optimized, for this processor or another `target`."""
    llvm, target = _llvm(), target or machine()
    module = llvm.parse_assembly(text)
    module.verify()
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=level))
    passes = builder.getModulePassManager()
    passes.run(module, builder)
    return bytes(target.emit_object(module))


_LINKED = count()  # so that each library has a name of its own, as the linker asks


@cache
def _linker() -> Any:
    return _llvm().create_lljit_compiler(machine())


def link(name: str, code: bytes, symbols: Sequence[str], imports: Sequence[str] = ()) -> Any:
    """The addresses of symbols of object code, by name. The memory goes with what is returned."""
    builder = _llvm().JITLibraryBuilder().add_object_img(code).add_current_process()
    for symbol in imports:
        builder = builder.import_symbol(symbol, convention.symbol_address(symbol))
    for symbol in symbols:
        builder = builder.export_symbol(symbol)
    return builder.link(_linker(), f"{name} {next(_LINKED)}")
