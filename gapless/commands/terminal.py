"""Standard output, files and progress: stable in a pipe, and whole or not there."""

from __future__ import annotations

import io
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

if TYPE_CHECKING:
    from gapless.traces.engines.engine import Progress


WIDTH = 80


class Terminal(Console):
    """A console that leaves it to `printing` what happens when no reader is left."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if self.width < 1:  # some environments say COLUMNS=0, for unknown: then nothing was printed at all
            self.width = WIDTH

    def on_broken_pipe(self) -> None:
        """Let it through."""
        raise BrokenPipeError


@contextmanager
def printing(code: int) -> Iterator[None]:
    """Print; without a reader, exit with `code` all the same; if nothing can be written, say so."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:  # a file's, and none of the output
            raise
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - what is left goes nowhere
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(code) from None
        raise failed(f"cannot write the output ({error.strerror})") from None


class _ToStandardError(logging.Handler):
    """Whatever standard error is at the moment: a progress bar puts itself in its place."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        sys.stderr.write(f"gapless: {record.getMessage()}\n")


@contextmanager
def telling() -> Iterator[None]:
    """Print messages about long work on standard error, those of workers too."""
    log, handler = logging.getLogger("gapless"), _ToStandardError()
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(before)
        log.removeHandler(handler)


EVERY = 10.0  # seconds between two lines about how far it is, where there is no terminal


def now_and_then(sentence: Callable[[int, int], str]) -> Callable[[int, int], None]:
    """Print progress in lines on standard error, every ten seconds. The function is given done and all.

    For pipes and logs of a CI, where there is no bar: they show that long work does not hang.
    """
    last = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= EVERY:
            last = now
            typer.echo(f"gapless: {sentence(done, total)}", err=True)

    return tell


def _read(done: int, total: int) -> str:
    from gapless.traces.report.wording import size

    return f"{size(done)} of {size(total)} read ({100 * done // max(total, 1)} %)"


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress bar on a terminal, lines elsewhere. No thread of its own: workers may be forked meanwhile."""
    if not sys.stderr.isatty():
        yield now_and_then(_read)
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from gapless.native.objects.object_code import COMPILATIONS

    words = TextColumn("{task.description}")
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(), words)
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("")

        def update(done: int, total: int) -> None:
            compiled = f"{COMPILATIONS.count} functions compiled, once" if COMPILATIONS.count else ""
            bar.update(task, completed=done, total=total, description=compiled)
            bar.refresh()

        yield update


def write(path: Path, text: str) -> None:
    """Write a whole file or none; `-` is standard output.

    Raises typer.Exit where the path is an address elsewhere, or nothing can be written there.
    """
    if str(path) == "-":
        if isinstance(sys.stdout, io.TextIOWrapper):  # for a program, which expects UTF-8 whatever the locale
            sys.stdout.reconfigure(encoding="utf-8", errors=sys.stdout.errors)
        sys.stdout.write(text)
        return
    refuse_output(path)
    path = path.resolve()
    try:
        write_whole(path, text)
    except OSError as error:
        raise failed(f"{path}: cannot be written ({error.strerror})") from None


def refuse_output(path: Path, option: str = "") -> None:
    """Exit with 2 where no file can be written at `path`, before anything is done; no folder is made."""
    if str(path) == "-":
        return
    refuse_elsewhere(path)
    name = f"{option} {path}".strip()
    try:
        folder = path.resolve().parent
        if path.is_dir():
            raise failed(f"{name}: is a folder: name a file in it")
        if folder.exists() and not folder.is_dir():
            raise failed(f"{name}: {shown_from_here(folder)} is a file, expected a folder")
        if not folder.exists():
            raise failed(f"{name}: folder {shown_from_here(folder)} does not exist: make it first, or correct the path")
        if not path.exists() and not os.access(folder, os.W_OK | os.X_OK):
            raise failed(f"{name}: folder {shown_from_here(folder)} cannot be written to by this user")
    except OSError as error:
        raise failed(f"{name}: cannot be written ({error.strerror})") from None


def shown_from_here(folder: Path) -> str:
    """A folder by its shorter path: from the working directory, if it lies in that."""
    here = Path.cwd()
    return str(folder.relative_to(here) if folder.is_relative_to(here) and folder != here else folder)


def refuse_elsewhere(path: Path) -> None:
    """Exit with 2 where a file to write is at an address: a folder of that name would be made, or looked for."""
    from gapless.traces.files.remote import SCHEMES

    scheme, _, place = str(path).partition(":")
    if scheme in SCHEMES and place.startswith("/"):
        raise failed(f"{scheme}://: files are written to a disk only; name one there, and copy it")


def write_whole(path: Path, text: str) -> None:
    """Write a whole file or none. Raises OSError."""
    if path.exists() and not path.is_file():  # a device or a pipe is written to, never replaced
        path.write_text(text, encoding="utf-8")
        return
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8"
    ) as file:
        name = Path(file.name)
        try:
            file.write(text)
            file.flush()
        except OSError:
            name.unlink()
            raise
    name.chmod(0o644)
    name.replace(path)


ENGINE_FAILED = 4
"""The exit code where a cluster could not do the work: no verdict on what was to be checked."""


def failed(message: str, code: int = 2) -> typer.Exit:
    """The exit of a command that was used wrongly, or that cannot go on; the message is printed."""
    typer.echo(f"gapless: {message}", err=True)
    return typer.Exit(code)
