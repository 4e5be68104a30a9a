"""The project as the house tests see it: its rooms and their modules, each file read and parsed once."""

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from shutil import which

ROOT = Path(__file__).parents[2]
ROOMS = ("native", "spec", "impl", "traces", "properties", "gapless")
"""The rooms of the product; all but the last are imported as `gapless.spec` and so on."""

Imports = tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Module:
    """A Python file, by its path from the root."""

    path: Path
    source: str

    @property
    def room(self) -> str:
        """The folder at the top in which it lies."""
        return self.path.parts[0]

    @property
    def name(self) -> str:
        """The name that it is imported by."""
        parts = (self.path.parent if self.path.name == "__init__.py" else self.path.with_suffix("")).parts
        return ".".join(parts if self.room not in ROOMS[:-1] else ("gapless", *parts))

    @property
    def floor(self) -> str:
        """Its folder in the room, or the module itself where it lies in none."""
        return (*self.path.with_suffix("").parts, "")[1]

    @property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return parsed(self.source)

    @cached_property
    def imports(self) -> Imports:
        """Every module or member that it imports, with the line."""
        return tuple(imported(self.tree))


@cache
def parsed(source: str) -> ast.Module:
    """The syntax tree of a file, made once for all who look at it."""
    return ast.parse(source)


@cache
def modules(room: str) -> tuple[Module, ...]:
    """The Python files of a room or of `tests`; links between rooms are not followed."""
    paths = sorted((ROOT / room).rglob("*.py"))
    return tuple(Module(path.relative_to(ROOT), path.read_text(encoding="utf-8")) for path in paths)


def product() -> Iterator[Module]:
    return (module for room in ROOMS for module in modules(room))


@cache
def project_files() -> tuple[Path, ...]:
    """List the files in the repository or about to be; empty if this is no repository."""
    git = which("git")
    if git is None or not (ROOT / ".git").exists():
        return ()
    listing = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    return tuple(ROOT / name for name in names if name and (ROOT / name).is_file())


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every module or member that is imported, at any depth, or used as `futures.ThreadPoolExecutor`."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from ((node.lineno, alias.name) for alias in node.names)
            case ast.ImportFrom(module="__future__"):
                pass
            case ast.ImportFrom():
                whence = "." * node.level + (node.module or "")
                yield from ((node.lineno, f"{whence}.{alias.name}") for alias in node.names)
            case ast.Attribute(value=ast.Name(id="futures"), attr=attribute):
                yield node.lineno, f"concurrent.futures.{attribute}"
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="concurrent"), attr="futures"), attr=attribute):
                yield node.lineno, f"concurrent.futures.{attribute}"


def within(name: str, package: str) -> bool:
    """True if `name` is `package` or lies in it."""
    return f"{name}.".startswith(f"{package}.")


def listed(complaints: list[str]) -> str:
    """Complaints, one a line, for an assertion to show."""
    return "\n".join(["", *complaints])


def listed_at(path: Path, complaints: list[str]) -> str:
    return listed([f"{path}:{complaint}" for complaint in complaints])
