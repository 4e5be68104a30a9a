"""Functions of the language: ordinary Python functions, each read by Python and by the compiler.

`native/README.md` is the language on one page.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from types import CodeType, FunctionType, ModuleType
from typing import Any, ClassVar, ParamSpec, TypeVar, cast, overload

import numpy as np

from gapless.native.kinds import Signature
from gapless.native.outlines import outline_of
from gapless.native.texts import functions_in, module_text, names_in

P = ParamSpec("P")
R = TypeVar("R")
Kinds = Signature | list[Signature]


class LanguageError(Exception):
    """A function says something that the language does not have. The message names file, line and remedy."""


class Intrinsic:
    """An intrinsic: a Python function, and the text of an LLVM function of the same meaning.

    `llvm`: the body of a function whose parameters are `%NAME`, after Python's · `kinds`: of the parameters ·
    `answer`: of what it returns · `declares`: functions of LLVM or of Python's C interface that the body calls ·
    `needs`: a feature of the processor, without which `otherwise` is the body.
    """

    def __init__(self, python: Callable[..., Any], **llvm: Any) -> None:
        self.python = python
        self.__name__, self.__module__ = python.__name__, python.__module__
        self.__doc__ = python.__doc__
        code = python.__code__
        self.parameters: tuple[str, ...] = code.co_varnames[: code.co_argcount]
        self.llvm: str = llvm["llvm"]
        self.kinds: tuple[Any, ...] = llvm["kinds"]
        self.answer: Any = llvm["answer"]
        self.declares: tuple[str, ...] = llvm.get("declares", ())
        self.needs: str = llvm.get("needs", "")
        self.otherwise: str = llvm.get("otherwise", "")

    def __call__(self, *args: Any) -> Any:
        """The meaning, by Python."""
        return self.python(*args)

    @property
    def text(self) -> str:
        """The dependencies of object code with this word in it, in addition to the file of the word."""
        return f"{self.llvm}\0{self.otherwise}\0{self.declares}\0{self.kinds}\0{self.answer}"


def word(**llvm: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """The decorator of an intrinsic: see `Intrinsic`."""

    def decorated(python: Callable[P, R]) -> Callable[P, R]:
        return cast("Callable[P, R]", Intrinsic(python, **llvm))

    return decorated


class Cast:
    """A cast to so many bits, modulo 2 to their number. A native unsigned number of 64 bits is numpy's in Python."""

    def __init__(self, bits: int, *, signed: bool) -> None:
        self.bits, self.signed = bits, signed
        self.__name__ = f"{'' if signed else 'u'}int{bits}"

    def __call__(self, value: Any) -> int:
        """The value as such a number."""
        found = int(value) & ((1 << self.bits) - 1)
        if self.signed and found >> (self.bits - 1):
            return found - (1 << self.bits)
        return np.uint64(found) if self.bits == 64 and not self.signed else found  # type: ignore[return-value]


int64, uint64, uint32, uint8 = (
    Cast(64, signed=True),
    Cast(64, signed=False),
    Cast(32, signed=False),
    Cast(8, signed=False),
)
int32 = Cast(32, signed=True)
NUMPY_CASTS: dict[Any, Cast] = {
    kind: Cast(8 * np.dtype(kind).itemsize, signed=np.dtype(kind).kind == "i")
    for kind in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
}


class Function:
    """A function of the language.

    `inline`: its code stands in its caller's · `apart`: it never does · `distinct`: no two of its arrays overlap ·
    `keeps_lock`: the interpreter lock is held while it runs, for it asks Python about objects · `kinds`: of the
    arguments with which Python calls it, so that it can be compiled beforehand; more than one choice of them is a list.
    """

    compiler: ClassVar[Any]
    """Makes the native reading of a function: `object_code.ObjectCode`, which stands above this module."""

    def __init__(
        self,
        python: FunctionType | None,
        *,
        inline: bool = False,
        apart: bool = False,
        distinct: bool = False,
        keeps_lock: bool = False,
        kinds: Kinds = (),
        constants: Mapping[str, Any] | None = None,
    ) -> None:
        self._python = python
        self.inline, self.apart, self.distinct, self.keeps_lock = inline, apart, distinct, keeps_lock
        self.kinds: Sequence[Signature] = kinds if isinstance(kinds, list) else [kinds] if kinds else []
        self.constants: Mapping[str, Any] = constants or {}
        self._specialised: dict[int, tuple[Mapping[str, Any], Function]] = {}
        self.library: Callable[..., Any] | None = None
        if python is not None:
            self.__name__, self.__module__, self.__doc__ = python.__name__, python.__module__, python.__doc__
            self.__qualname__ = python.__qualname__
            self.__wrapped__ = python

    # -- the text, as the compiler reads it

    @property
    def node(self) -> ast.FunctionDef:
        """The syntax tree. Raises LanguageError where there is no source."""
        code = self.python.__code__
        if code.co_freevars:
            raise LanguageError(
                f"{code.co_filename}:{code.co_firstlineno}: {code.co_name}: it sees {', '.join(code.co_freevars)} of "
                "the function around it: hand it over as an argument, or by `specialised`"
            )
        found = functions_in(code.co_filename).get((code.co_name, code.co_firstlineno))
        if found is None:
            raise LanguageError(f"{code.co_filename}:{code.co_firstlineno}: the source of {code.co_name} is not there")
        return found

    @property
    def python(self) -> FunctionType:
        """The function as it stands."""
        assert self._python is not None  # noqa: S101 - `SyntaxFunction` has its own
        return self._python

    @property
    def file(self) -> str:
        """The file in which it stands, for messages."""
        return self.python.__code__.co_filename

    @property
    def names(self) -> Mapping[str, Any]:
        """The global names that it sees, but for `constants`."""
        python: Any = self.python
        found: dict[str, Any] = python.__globals__
        return found

    @property
    def defaults(self) -> tuple[Any, ...]:
        """The values of parameters that a call may leave out, the last ones."""
        return self.python.__defaults__ or ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters."""
        code = self.python.__code__
        return code.co_varnames[: code.co_argcount]

    def named(self, name: str) -> Any:
        """The value of a global name; functions have the same constants. Raises KeyError."""
        if name in self.constants:
            value = self.constants[name]
        elif name in self.names:
            value = self.names[name]
        else:
            value = getattr(builtins, name, _NONE)
            if value is _NONE:
                raise KeyError(name)
        return self._with_constants(value)

    def _with_constants(self, value: Any) -> Any:
        if isinstance(value, tuple) and any(isinstance(one, Function) for one in value):
            return tuple(map(self._with_constants, value))
        value = getattr(value, "compiled", value)
        if isinstance(value, Function) and self.constants:
            return value.specialised(self.constants)
        return value

    def specialised(self, constants: Mapping[str, Any]) -> Function:
        """The same function, and all that it calls, with these values of global names."""
        if not self._mentions(constants):
            return self
        key = id(constants)
        if key not in self._specialised:
            self._specialised[key] = constants, self._copy(constants)  # kept, for its address is the key
        return self._specialised[key][1]

    def _copy(self, constants: Mapping[str, Any]) -> Function:
        return Function(
            self._python, inline=self.inline, apart=self.apart, distinct=self.distinct, keeps_lock=self.keeps_lock,
            kinds=list(self.kinds), constants=constants if not self.constants else _Overlaid(constants, self.constants),
        )  # fmt: skip

    def _mentions(self, constants: Mapping[str, Any], seen: set[int] | None = None) -> bool:
        """True if it, or a function that it calls, speaks of one of the constants."""
        seen = set() if seen is None else seen
        if id(self) in seen:
            return False
        seen.add(id(self))
        for name in self.global_names:
            if name in constants:
                return True
            value = self.constants.get(name, self.names.get(name))
            for one in value if isinstance(value, tuple) else (value,):
                called = getattr(one, "compiled", one)
                if isinstance(called, Function) and called._mentions(constants, seen):  # noqa: SLF001 - our own
                    return True
        return False

    @cached_property
    def global_names(self) -> tuple[str, ...]:
        """The global names that it may speak of."""
        return tuple(dict.fromkeys(names_in(self.python.__code__)))

    # -- the two readings

    @cached_property
    def by_python(self) -> Callable[..., Any]:
        """The Python function, which calls the Python readings of others."""
        if not self.constants and not any(
            isinstance(getattr(self.names.get(n), "compiled", self.names.get(n)), (Function, Intrinsic))
            for n in self.global_names
        ):
            return self.python
        return self._read_by_python(self.python.__code__)

    def _read_by_python(self, code: CodeType) -> Callable[..., Any]:
        names = {"__builtins__": builtins}
        for name in self.global_names:
            try:
                names[name] = _python_reading(self.named(name))
            except KeyError:  # an attribute's name
                continue
        return FunctionType(code, names, self.__name__, self.defaults)

    @cached_property
    def code(self) -> Any:
        """The native reading: compiled for the kinds of each call's arguments."""
        return self.compiler(self)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The answer, by native code."""
        if named:
            return self.code(*self.bound(args, named))
        found = self.code.entry(*args)
        return found if found is not NotImplemented else self.code(*args)

    def bound(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """All arguments by position."""
        given = list(args)
        missing = len(self.parameters) - len(self.defaults)
        for at in range(len(args), len(self.parameters)):
            name = self.parameters[at]
            given.append(named[name] if name in named else self.defaults[at - missing])
        return tuple(given)

    # -- identity

    @property
    def digest_parts(self) -> Iterator[tuple[str, str]]:
        """The texts that its own object code depends on, each with a name."""
        code = self.python.__code__
        yield f"{self.__module__}.{self.__qualname__}:{code.co_firstlineno}", ""
        is_there = getattr(sys.modules.get(self.__module__), "__file__", None) == code.co_filename
        yield from module_text(self.__module__) if is_there else [("tree", ast.dump(self.node))]


class SyntaxFunction(Function):
    """A function of the language that is made as a syntax tree.

    `names`: the global names that it sees · `digest`: a text that is another one for every other tree; the dump of the
    tree itself if it is left out.
    """

    def __init__(
        self, name: str, node: ast.FunctionDef, names: Mapping[str, Any], *, digest: str = "", **how: Any
    ) -> None:
        super().__init__(None, **how)
        self.__name__ = self.__qualname__ = name
        self.__module__ = "generated"
        self._outline = outline_of(node)
        self._node, self._names, self._digest, self._how = node, names, digest, how

    @property
    def node(self) -> ast.FunctionDef:
        """The syntax tree."""
        return self._node

    @property
    def file(self) -> str:
        """A name for messages."""
        return f"<{self.__name__}>"

    @property
    def names(self) -> Mapping[str, Any]:
        """The global names that it sees."""
        return self._names

    @property
    def defaults(self) -> tuple[Any, ...]:
        """None: every argument is given."""
        return ()

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return tuple(one.arg for one in self._node.args.args)

    @cached_property
    def global_names(self) -> tuple[str, ...]:
        """The global names that it may speak of."""
        own = set(self.parameters)
        return tuple(name for name in self._outline.names if name not in own)

    def _copy(self, constants: Mapping[str, Any]) -> Function:
        made = SyntaxFunction(self.__name__, self._node, self._names, digest=self._digest, **self._how)
        made.constants = constants if not self.constants else _Overlaid(constants, self.constants)
        return made

    @cached_property
    def by_python(self) -> Callable[..., Any]:
        """The compiled tree, which calls the Python readings of others."""
        whole = ast.Module([self._node], [])
        made = compile(ast.fix_missing_locations(whole), self.file, "exec")
        code = next(one for one in made.co_consts if isinstance(one, CodeType))
        return self._read_by_python(code)

    @property
    def digest_parts(self) -> Iterator[tuple[str, str]]:
        """The digest that it was given, or its tree."""
        yield self.__name__, self._digest or self._outline.text


class _Overlaid(Mapping[str, Any]):
    """Constants, and those that were there before."""

    def __init__(self, first: Mapping[str, Any], then: Mapping[str, Any]) -> None:
        self._all = {**then, **first}

    def __getitem__(self, name: str) -> Any:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


_NONE = object()


@overload
def function(python: Callable[..., R], /) -> Callable[..., R]: ...
@overload
def function(
    *, inline: bool = False, apart: bool = False, distinct: bool = False, keeps_lock: bool = False, kinds: Kinds = ()
) -> Callable[[Callable[..., R]], Callable[..., R]]: ...
def function(
    python: Any = None,
    /,
    *,
    inline: bool = False,
    apart: bool = False,
    distinct: bool = False,
    keeps_lock: bool = False,
    kinds: Kinds = (),
) -> Any:
    """The decorator of a function of the language that native code calls; see `Function`."""

    def decorated(python: Any) -> Function:
        return Function(python, inline=inline, apart=apart, distinct=distinct, keeps_lock=keeps_lock, kinds=kinds)

    return decorated if python is None else decorated(python)


def specialised(of: Any, /, **constants: Any) -> Any:
    """The same function with other values of global names, in all functions of the language that it calls.

    `constants`: numbers, arrays, functions of the language, or tuples of these.
    """
    return getattr(of, "compiled", of).specialised(constants)


def by_library(of: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorator of what Python calls in place of a function: a library's for the same, which is faster there."""

    def decorated(python: Callable[..., Any]) -> Callable[..., Any]:
        of.library = python
        return python

    return decorated


def by_python(of: Any) -> Callable[..., Any]:
    """The Python reading of a function, and of all that it calls."""
    found: Callable[..., Any] = _python_reading(getattr(of, "compiled", of))
    return found


def _python_reading(value: Any) -> Any:
    if isinstance(value, tuple) and any(isinstance(one, (Function, Intrinsic)) for one in value):
        return tuple(map(_python_reading, value))
    if isinstance(value, Function):
        return value.library or value.by_python
    return value.python if isinstance(value, Intrinsic) else value


# -- all that object code is made of ---------------------------------------------------------------------------------


def digest_of(*parts: str) -> str:
    """16 letters by which texts are known: of their SHA-256."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def text_of(of: Function) -> str:
    """All that object code of a function is made of: the modules of what it calls, and the values of what it names.

    Every function has a number, in the order in which they are met: so no text takes the place of another one.
    """
    gathered = _TextCollection()
    gathered.number_of(of)
    return "\0".join([*gathered.parts, *(f"{name}\0{text}" for name, text in gathered.modules.items())])


class _TextCollection:
    """Texts of functions that call one another."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.modules: dict[str, str] = {}
        self._seen: dict[int, tuple[Function, int]] = {}

    def number_of(self, of: Function) -> int:
        """The number of a function, whose texts are gathered."""
        if id(of) in self._seen:
            return self._seen[id(of)][1]
        number = len(self._seen)
        self._seen[id(of)] = of, number
        for name, text in of.digest_parts:
            self.modules.setdefault(name if name in sys.modules else f"{number} {name}", text)
        self.parts.append(f"{number} {of.inline} {of.apart} {of.distinct} {of.keeps_lock}")
        self.parts.append(f"{number} defaults {self._description(of.defaults)}")
        for name in of.global_names:
            try:
                value = of.named(name)
            except KeyError:  # an attribute's name
                continue
            self.parts.append(f"{number} {name} {self._description(value)}")
        return number

    def _description(self, value: Any) -> str:  # noqa: PLR0911 - a kind of value a case
        """A text that no other value has."""
        if isinstance(value, Function):
            return f"function {self.number_of(value)}"
        if isinstance(value, Intrinsic):
            return f"word {value.text}"
        if isinstance(value, tuple):
            return f"{self._description(type(value))}({', '.join(map(self._description, value))})"
        if isinstance(value, np.ndarray):
            return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
        if isinstance(value, ModuleType):
            self.modules.update(module_text(value.__name__))
            return f"module {value.__name__}"
        if isinstance(value, type):
            self.modules.update(module_text(value.__module__))
            return f"class {value.__module__}.{value.__qualname__}"
        if isinstance(value, Cast):
            return value.__name__
        name = repr(value) if isinstance(value, (int, np.generic)) else getattr(value, "__qualname__", "")
        return f"{type(value).__name__} {name}"
