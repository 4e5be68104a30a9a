"""Specs by name, by file or by module: ours, and those that users bring.

A user's spec is one file. Its words are held to the vocabulary before anything of it is run. What it makes is known by
its text, not by its path: two files of one name, or one file before and after a change, are two specs, also within one
process. To a worker, on this machine or another, it travels as text.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, get_origin

from gapless.spec import __name__ as room
from gapless.spec.catalog import END, SPECS, STATED, TEXT, Spec, spec_from, text_of
from gapless.spec.language import Bound, Map
from gapless.spec.reading.declarations import SpecFile
from gapless.spec.reading.vocabulary import understood

MUST = ("INITIAL", *STATED)
RESERVED = ("joining",)
"""Names that stand for something else where specs are named."""


class NoSpec(ValueError):  # noqa: N818 - its message says all.
    """What a user named is no spec, and why, with its file and line."""


@dataclass(frozen=True)
class GivenSpec(Spec):
    """A spec that a user brings. `given`: the file, as the user named it."""

    given: str = ""

    @property
    def called(self) -> str:
        """What users name it by."""
        return self.given

    @property
    def source(self) -> str:
        """Where its rules stand that cite nothing else."""
        return self.given

    def __reduce__(self) -> tuple[Callable[[str, str, str], Spec], tuple[str, str, str]]:  # type: ignore[override]
        """So that it travels to workers as text."""
        return _made, (self.given, self.name, text_of(self.module))


def load(named: str | os.PathLike[str]) -> Spec:
    """The spec of this name: one of ours, or that of a file or a module. Raises NoSpec, ForeignWords.

    A file of ours is the spec that we have of it.
    """
    if str(named) in SPECS:
        return SPECS[str(named)]
    path = _file(str(named))
    for ours in SPECS.values():
        if path.exists() and path.resolve() == Path(ours.module.__file__ or "").resolve():
            return ours
    return _made(str(path), _name(path), _text(path))


def loaded(names: Iterable[str | os.PathLike[str] | Spec]) -> tuple[Spec, ...]:
    """The specs of several names, each once. Raises NoSpec, ForeignWords; two specs may not share a name."""
    found: dict[str, Spec] = {}
    for named in names:
        spec = named if isinstance(named, Spec) else load(named)
        if found.setdefault(spec.name, spec) is not spec:
            raise NoSpec(
                f"{spec.called}: {found[spec.name].called} has a spec of this name, too: give them in two runs"
            )
    return tuple(found.values())


def _file(named: str) -> Path:
    """The file that a user names, directly or as a module. Raises NoSpec."""
    path = Path(named)
    if named and (path.suffix == ".py" or os.sep in named or path.exists()):
        return path
    folders, found = [str(Path.cwd()), *sys.path], None
    for package in named.split("."):
        found = PathFinder.find_spec(package, folders)  # which runs nothing of it
        folders = list(found.submodule_search_locations or ()) if found else []
    if not found or not found.origin or not found.origin.endswith(".py"):
        raise NoSpec(f"there is no spec {named!r}: choose among {', '.join(SPECS)}, or name a file, such as lease.py")
    return Path(os.path.relpath(found.origin))


def _name(path: Path) -> str:
    """The name of the spec in a file, as it stands in events and rule ids. Raises NoSpec."""
    name = path.parent.resolve().name if path.stem == "__init__" else path.stem
    if not name.isidentifier():
        raise NoSpec(f"{path}: {name!r} cannot be the name of a spec, which stands in every event: rename the file")
    if name in SPECS or name in RESERVED:
        raise NoSpec(f"{path}: {name} is the name of one of our specs, and stands in events: rename the file")
    return name


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise NoSpec(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise NoSpec(f"{path}: is no text in UTF-8 ({error.reason} at byte {error.start})") from None


@cache
def _made(given: str, name: str, text: str) -> GivenSpec:
    """The spec of a text. Raises NoSpec, ForeignWords."""
    tree = _parsed(given, text)
    file = SpecFile(given, name, tree)
    missing = [one for one in MUST if one not in file.values] + ["class State"] * ("State" not in file.classes)
    if missing:
        raise NoSpec(f"{given}:1: is no spec: it has no {' and no '.join(missing)}")
    understood(file)
    digest = hashlib.sha256(f"{given}\0{text}".encode()).hexdigest()[:16]
    module = ModuleType(f"{room}.given.{digest}.{name}")
    module.__dict__.update({"__file__": given, TEXT: text})
    sys.modules[module.__name__] = module  # its states travel, and are found again by the module's name
    try:
        exec(compile(tree, given, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - a spec, which was read word by word
        _sound(given, module)
        return GivenSpec(spec_from(module).module, given=given)
    except NoSpec:
        del sys.modules[module.__name__]
        raise
    except Exception as error:  # noqa: BLE001 - whatever is wrong at its top, it is told with its line
        del sys.modules[module.__name__]
        raise NoSpec(f"{_place(error, given) or given}: {type(error).__name__}: {error}") from None


def place(error: BaseException, spec: Spec) -> str | None:
    """Where in the file of a user's spec an error was raised; None where it was raised elsewhere."""
    return _place(error, spec.given) if isinstance(spec, GivenSpec) else None


def _place(error: BaseException, given: str) -> str | None:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == given]
    return f"{given}:{lines[-1]}" if lines else None


def _parsed(given: str, text: str) -> ast.Module:
    try:
        return ast.parse(text, given)
    except SyntaxError as error:
        raise NoSpec(f"{given}:{error.lineno or 1}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise NoSpec(f"{given}:1: cannot be parsed ({str(error) or type(error).__name__})") from None


def _sound(given: str, module: ModuleType) -> None:
    """Raise NoSpec unless its initial state is one, of whole numbers and Maps of such."""
    initial = module.INITIAL
    if not isinstance(initial, module.State):
        raise NoSpec(f"{given}:1: INITIAL is {initial!r}: say INITIAL = State()")
    if not module.ACTIONS:
        raise NoSpec(f"{given}:1: ACTIONS is empty: say which steps there are")
    for field in fields(initial):
        value = getattr(initial, field.name)
        wrong = value.default if isinstance(value, Map) else value
        if isinstance(value, Map) != (get_origin(field.type) is Map) or not isinstance(wrong, int):
            raise NoSpec(f"{given}:1: State.{field.name} begins as {value!r}, which is another kind of value")
    bound: Any = getattr(module, "BOUND", None)
    within: Any = getattr(bound, "within", None)
    if bound is not None and not (isinstance(bound, Bound) and callable(within) and _are_numbers(bound.numbers)):
        raise NoSpec(f"{given}:1: BOUND is {bound!r}: say Bound(says=…, within=a function of the state, numbers={{…}})")
    if END in (action.__name__ for action in module.ACTIONS) and hasattr(module, "AT_REST"):
        raise NoSpec(f"{given}:1: there are an action {END} and AT_REST, of which that action is made: rename it")


def _are_numbers(numbers: object) -> bool:
    """Whether each argument has its numbers. A range has nothing else, and may be longer than anybody waits."""
    return isinstance(numbers, Mapping) and all(
        isinstance(some, range) or (isinstance(some, Collection) and all(isinstance(number, int) for number in some))
        for some in numbers.values()
    )
