"""Standard output, files and progress: stable in a pipe, and whole or not there."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

if TYPE_CHECKING:
    from gapless.traces.engines.engine import Progress


class Terminal(Console):
    """A console that leaves it to `printing` what happens when nobody reads on."""

    def on_broken_pipe(self) -> None:
        """Let it through."""
        raise BrokenPipeError


@contextmanager
def printing(code: int) -> Iterator[None]:
    """Print; where nobody reads on, exit with `code` all the same, and where nothing can be written, say so."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
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
    """Within, what takes its time is told on standard error, by workers too."""
    log, handler = logging.getLogger("gapless"), _ToStandardError()
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(before)
        log.removeHandler(handler)


@contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """A progress bar on a terminal, nothing elsewhere. No thread of its own: workers may be forked beside it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("")

        def update(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)
            bar.refresh()

        yield update


def write(path: Path, text: str) -> None:
    """Write a whole file or none; `-` is standard output."""
    if str(path) == "-":
        sys.stdout.write(text)
        return
    path = path.resolve()
    try:
        if path.exists() and not path.is_file():  # a device or a pipe is written to, never replaced
            path.write_text(text, encoding="utf-8")
            return
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)
    except OSError as error:
        raise failed(f"{path}: cannot be written ({error.strerror})") from None


def failed(message: str) -> typer.Exit:
    """The exit of a command that was used wrongly, or that cannot go on; the message is printed."""
    typer.echo(f"gapless: {message}", err=True)
    return typer.Exit(2)
