"""Specs by name, by file or by module: ours, and those of users.

A user's spec is one file. Its words are checked against the vocabulary before any of it is run. It is known by
its text, not by its path: two files of one name, or one file before and after a change, are two specs, also within one
process. It travels to workers, on this machine or another, as text.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, get_origin

from gapless.spec import __name__ as room
from gapless.spec.catalog import END, SPECS, TEXT, Spec, Step, spec_from, text_of
from gapless.spec.language import Bound, Map
from gapless.spec.reading.constants import A_BOUND
from gapless.spec.reading.declarations import SpecFile
from gapless.spec.reading.quantification import EndlessCases, counterexample
from gapless.spec.reading.vocabulary import ForeignWords, misspelt_entries, understood
from gapless.traces.suggestions import did_you_mean, nearest, one_of

MUST = {
    "State": "`class State` with its fields",
    "INITIAL": "`INITIAL = State()`",
    "ACTIONS": "`ACTIONS = (…,)` with the steps",
    "INVARIANTS": "`INVARIANTS = (…,)` with what holds in every state",
}
"""The names that every spec has, and the line that gives each."""
RESERVED = ("joining",)
"""Aliases of specs."""


class NoSpec(ValueError):  # noqa: N818 - its message says all.
    """A file or name that is no spec: the message has the file, the line and the reason."""


@dataclass(frozen=True)
class GivenSpec(Spec):
    """A spec that a user brings. `given`: the file, as the user named it."""

    given: str = ""

    @property
    def called(self) -> str:
        """The name that users have for it."""
        return self.given

    @property
    def source(self) -> str:
        """The file, which stands for the source of rules that cite none."""
        return self.given

    def source_of(self, step: Step) -> str:
        """The page or file that the rules of a step cite; those of `end` are in the user's own file."""
        return self.source if step is self.actions.get(END) else super().source_of(step)

    def __reduce__(self) -> tuple[Callable[[str, str, str], Spec], tuple[str, str, str]]:  # type: ignore[override]
        """Travel to workers as text."""
        return _made, (self.given, self.name, text_of(self.module))


def load(named: str | os.PathLike[str], near: Path | None = None) -> Spec:
    """Load the spec of this name: one of ours, or that of a file or a module. Raises NoSpec, ForeignWords.

    A file of ours returns our own spec. A relative path is looked for in the folder of the file `near`, above it up to
    the root of its project, and then in the working directory.
    """
    if str(named) in SPECS:
        return SPECS[str(named)]
    path = _file(str(named), near)
    for ours in SPECS.values():
        if path.exists() and path.resolve() == Path(ours.module.__file__ or "").resolve():
            return ours
    return _made(str(path), _name(path), _text(path))


def loaded(names: Iterable[str | os.PathLike[str] | Spec], near: Path | None = None) -> tuple[Spec, ...]:
    """Load the specs of several names, each once. Raises NoSpec, ForeignWords; two specs may not share a name."""
    found: dict[str, Spec] = {}
    for named in names:
        spec = named if isinstance(named, Spec) else load(named, near)
        if found.setdefault(spec.name, spec) is not spec:
            raise NoSpec(
                f"{spec.called}: {found[spec.name].called} has a spec of this name, too: give them in two runs"
            )
    return tuple(found.values())


def calling_file() -> Path | None:
    """The file of a user that called a function of gapless; None where a library or a command line did."""
    frame = sys._getframe(1)  # noqa: SLF001 - as warnings and logging find a caller
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == __name__.partition(".")[0]:
        frame = frame.f_back
    path = Path(frame.f_code.co_filename)
    library = path.is_relative_to(sysconfig.get_path("purelib")) or path.is_relative_to(sysconfig.get_path("stdlib"))
    return path if path.is_file() and not library else None


def _file(named: str, near: Path | None) -> Path:
    """Find the file that a user names, directly or as a module. Raises NoSpec."""
    path = Path(named)
    if near and not path.is_absolute():
        for folder in _folders_of(near):
            if (beneath := folder / path).is_file():
                return Path(os.path.relpath(beneath))
    if named and path.is_dir():
        inside = next(iter(sorted(path.glob("*.py"))), None)
        raise NoSpec(f"{path}: a folder: name each file in it{f', such as {inside}' if inside else ''}")
    if named and (path.suffix == ".py" or os.sep in named or path.exists()):
        _require_there(path, near)
        return path
    folders, found = [str(Path.cwd()), *sys.path], None
    for package in named.split("."):
        found = PathFinder.find_spec(package, folders)  # which runs nothing of it
        folders = list(found.submodule_search_locations or ()) if found else []
    if not found or not found.origin or not found.origin.endswith(".py"):
        raise NoSpec(
            f"there is no spec {named!r}{did_you_mean(named, _known_specs())}: choose among {', '.join(SPECS)}, or "
            "name a file, such as lease.py"
        )
    return Path(os.path.relpath(found.origin))


ROOTS = ("pyproject.toml", "pytest.ini", ".git")
"""The files and folders that the root of a project has, each of them enough."""


def _folders_of(near: Path) -> list[Path]:
    """The folder of a file, and those above it up to the root of its project; only the first where no root is found."""
    above = [near.resolve().parent, *near.resolve().parent.parents]
    roots = (n for n, folder in enumerate(above) if any((folder / name).exists() for name in ROOTS))
    return above[: next(roots, 0) + 1]


def _known_specs() -> list[str]:
    """The names of our specs, and the Python files of the working directory."""
    return [*SPECS, *sorted(path.name for path in Path.cwd().glob("*.py"))]


def _require_there(path: Path, near: Path | None) -> None:
    """Raise NoSpec where there is no such file, with the folders that were tried."""
    if path.exists() or path.is_symlink():
        return
    here, folder = Path.cwd(), near.parent if near else Path()
    hint = did_you_mean(path.name, [*_siblings(folder / path), *_siblings(path)])
    hint = hint or _in_a_similar_folder(path)
    if path.is_absolute():
        raise NoSpec(f"{path}: no such file{hint}")
    tried = [f"{here} (the working directory)"]
    if near:
        first, *above = _folders_of(near)
        others = [f"{first} (the folder of {near.name})"] * (first != here)
        tried = [*others, *(str(one) for one in above if one != here), *tried]
    raise NoSpec(f"{path}: no such file in {' nor in '.join(tried)}{hint}")


def _name(path: Path) -> str:
    """Return the name of the spec in a file, as it stands in events and rule ids. Raises NoSpec."""
    name = path.parent.resolve().name if path.stem == "__init__" else path.stem
    if not name.isidentifier():
        raise NoSpec(f"{path}: {name!r} cannot be the name of a spec, which stands in every event: rename the file")
    if name in SPECS or name in RESERVED:
        raise NoSpec(f"{path}: {name} is the name of one of our specs, and stands in events: rename the file")
    return name


def _in_a_similar_folder(path: Path) -> str:
    """A clause with the file of this name in a folder of a similar name; empty where there is none."""
    absolute = path.absolute()
    missing = next(one for one in (*reversed(absolute.parents), absolute) if not one.exists())
    if missing == absolute or not missing.parent.is_dir():
        return ""
    rest = absolute.relative_to(missing)
    there = [found.name for found in missing.parent.iterdir() if (found / rest).is_file()]
    meant = [missing.parent / name / rest for name in nearest(missing.name, sorted(there))]
    return f" (there is {meant[0] if path.is_absolute() else os.path.relpath(meant[0])})" if meant else ""


def _siblings(path: Path) -> list[str]:
    return sorted(found.name for found in path.parent.glob("*.py")) if path.parent.is_dir() else []


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise NoSpec(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise NoSpec(f"{path}:{line}: not text in UTF-8 ({error.reason}): save the file as UTF-8") from None


@cache
def _made(given: str, name: str, text: str) -> GivenSpec:
    """Build the spec of a text. Raises NoSpec, ForeignWords."""
    tree = _parsed(given, text)
    file = SpecFile(given, name, tree)
    if missing := [end for name, end in MUST.items() if name not in file.values and name not in file.classes]:
        if misspelt := [*misspelt_entries(file)]:
            raise ForeignWords(given, misspelt)
        raise NoSpec(f"{given}:1: {'not a spec' if text.strip() else 'an empty file'}: write {one_of(missing, 'and')}")
    understood(file)
    digest = hashlib.sha256(f"{given}\0{text}".encode()).hexdigest()[:16]
    module = ModuleType(f"{room}.given.{digest}.{name}")
    module.__dict__.update({"__file__": given, TEXT: text})
    sys.modules[module.__name__] = module  # its states travel, and are found again by the module's name
    try:
        exec(compile(tree, given, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - a spec, which was read word by word
        _sound(file, module)
        return GivenSpec(spec_from(module).module, given=given)
    except NoSpec:
        del sys.modules[module.__name__]
        raise
    except Exception as error:  # noqa: BLE001 - any fault at its top is reported with its line
        del sys.modules[module.__name__]
        where = _place(error, given) or f"{given}:1"
        raise NoSpec(f"{where}: this line raises {type(error).__name__}: {error}: correct it") from None


def place(error: BaseException, spec: Spec) -> str | None:
    """The place in the file of a user's spec that raised an error; None where another file did."""
    return _place(error, spec.given) if isinstance(spec, GivenSpec) else None


def _place(error: BaseException, given: str) -> str | None:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == given]
    return f"{given}:{lines[-1]}" if lines else None


def _parsed(given: str, text: str) -> ast.Module:
    try:
        return ast.parse(text, given)
    except SyntaxError as error:
        line = error.lineno or 1
        shown = "".join(text.splitlines()[line - 1 : line]).strip()
        raise NoSpec(f"{given}:{line}: not Python: {error.msg}: correct `{shown}`, or the line before it") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise NoSpec(f"{given}:1: not Python ({str(error) or type(error).__name__}): save it as a text") from None


def _sound(file: SpecFile, module: ModuleType) -> None:
    """Raise NoSpec unless the initial state consists of whole numbers and Maps of them."""

    def at(name: str) -> str:
        return f"{file.path}:{file.values[name].lineno}"

    initial = module.INITIAL
    if not isinstance(initial, module.State):
        raise NoSpec(f"{at('INITIAL')}: INITIAL is `{ast.unparse(file.values['INITIAL'])}`: write `INITIAL = State()`")
    for field in fields(initial):
        value = getattr(initial, field.name)
        wrong = value.default if isinstance(value, Map) else value
        if isinstance(value, Map) != (get_origin(field.type) is Map) or not isinstance(wrong, int):
            given, kind = (
                "a Map" if isinstance(value, Map) else repr(value),
                getattr(field.type, "__name__", field.type),
            )
            raise NoSpec(f"{at('INITIAL')}: State.{field.name} begins as {given}: write a value of its type, {kind}")
    bound: Any = getattr(module, "BOUND", None)
    within: Any = getattr(bound, "within", None)
    if bound is not None and not (isinstance(bound, Bound) and callable(within) and _are_numbers(bound.numbers)):
        raise NoSpec(f"{at('BOUND')}: BOUND has other values: write {A_BOUND}")
    if END in (action.__name__ for action in module.ACTIONS) and hasattr(module, "AT_REST"):
        raise NoSpec(f"{at('ACTIONS')}: there is a step {END}, and AT_REST makes another: rename the step")
    for holds in getattr(module, "AT_REST", ()):
        _require_few_cases(file.path, holds, initial)


def _require_few_cases(given: str, holds: Callable[..., Any], initial: Any) -> None:
    """Raise NoSpec where a property at rest has ever more cases in the first state, which has the fewest."""
    try:
        counterexample(holds, initial, cases=FEW_CASES)
    except EndlessCases as error:
        raise NoSpec(f"{given}:{holds.__code__.co_firstlineno}: {error}") from None


FEW_CASES = 10_000


def _are_numbers(numbers: object) -> bool:
    """True if each argument has its numbers. A range has nothing else, and may be too long to look through."""
    return isinstance(numbers, Mapping) and all(
        isinstance(some, range)
        or callable(some)
        or (isinstance(some, Collection) and all(isinstance(one, int | Map) for one in some))
        for some in numbers.values()
    )
