"""The `gapless` command from its first line on: an interrupt while it loads ends it as one later does."""

import atexit
import codecs
import ctypes
import gc
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

INTERRUPTED = 130  # as of a process that SIGINT ended
TERMINATED = 143  # as of one that SIGTERM ended
FAULT = 2  # of ours, or of what is ours to use: Python's own 1 would say that what was checked departs
SELDOM = 200_000, 50, 100  # objects made, and rounds of a generation, until the next collection of cycles
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # as malloc.h of glibc numbers them
SOON = 0.01  # seconds, after which an object is deleted
KEPT, LARGE = 128 << 20, 32 << 20  # bytes that are free and stay ours, and from which a piece is given back at once


def main() -> None:
    """Load the command line, and run it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # a shell lets its background jobs ignore it
        signal.signal(signal.SIGINT, _end)
    open_what_is_closed()
    outlive_standard_error()
    say_it_in_other_words()
    work_steadily()
    sys.meta_path.insert(0, NoPandas())
    try:
        from gapless.cli import main as run

        signal.signal(signal.SIGINT, before)
        with _terminated_as_interrupted():
            run()
    except KeyboardInterrupt:  # before a command has begun, or behind it
        sys.exit(INTERRUPTED)
    except Exception:  # noqa: BLE001 - whatever it is, its exit code is no verdict
        traceback.print_exc()
        sys.exit(FAULT)
    finally:
        if before is signal.default_int_handler:  # all output is written: tidying up is not broken off
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.freeze()  # all that is there ends with the process: to look for cycles in it took a tenth of a small check


def open_what_is_closed() -> None:
    """Open standard streams that the caller closed (`>&-`): else a file would get their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None and os.open(os.devnull, os.O_RDWR) == number:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))


class _Unheard(io.FileIO):
    """Standard error that drops text without a reader: that changes no exit code and stops nothing."""

    def write(self, text: Any) -> int:
        """Write, if it can be."""
        try:
            return super().write(text)
        except OSError:
            return memoryview(text).nbytes


def outlive_standard_error() -> None:
    """Keep running if standard error leads to a reader that ended, or to a full disk."""
    stream = sys.stderr
    if isinstance(stream, io.TextIOWrapper) and stream is sys.__stderr__:
        there = io.BufferedWriter(_Unheard(stream.fileno(), "w", closefd=False))
        sys.stderr = io.TextIOWrapper(there, stream.encoding, stream.errors, line_buffering=True)


def say_it_in_other_words() -> None:
    """Replace characters that the encoding of the locale lacks, such as an arrow, by others."""
    codecs.register_error("other-words", _other_words)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="other-words")


def _other_words(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of characters that cannot be written, and where those end."""
    from gapless.traces.report.outputs.text import ASCII

    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return lacking.translate(ASCII).encode("ascii", "backslashreplace").decode(), error.end


def work_steadily() -> None:
    """Let Python and the C library tidy up less often while the command works.

    Python looks for cycles of garbage less often: a check makes few, and of many queues this took a fifth of its time.
    glibc keeps memory that is let go: columns of some megabytes come and go, and each that is given back to the system
    and asked for again is filled with zeros first, page by page, which took an eighth of some checks. It keeps what is
    free at the end of the heap, and no more than `KEPT` of it. Another C library does as it always does.
    """
    gc.set_threshold(*SELDOM)
    with suppress(AttributeError, OSError, TypeError):  # no such function, or no way to ask for it
        tune = ctypes.CDLL(None).mallopt
        tune(TRIM_THRESHOLD, KEPT)
        tune(MMAP_THRESHOLD, LARGE)


class NoPandas:
    """A finder that hides pandas from pyarrow where our own code calls it: none of our arrays is of pandas.

    pyarrow imports pandas at the first array that is made of anything, to see if that is one of pandas: it takes a
    second. Imports by others find it, and so do those of pyarrow where others call it, such as Spark's.
    """

    BETWEEN = frozenset({"gapless.entry", "importlib", "_frozen_importlib", "numpy", "pyarrow"})

    def __init__(self, *, also_for_spark: bool = False) -> None:
        self._also_for_spark = also_for_spark

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> Any:
        """Leave it to other finders. Raises ModuleNotFoundError for pandas, where it is hidden."""
        left_alone = "pyspark" in sys.modules and not self._also_for_spark
        if name == "pandas" and not left_alone and self._importer() == "gapless":
            raise ModuleNotFoundError("pandas is hidden from pyarrow", name=name)
        return None

    def _importer(self) -> str:
        """The package of the code that imports, or that calls a library which does."""
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - documented, and cheaper than a traceback
        while frame is not None:
            module = str(frame.f_globals.get("__name__", ""))
            package = module.partition(".")[0]
            if not {module, package} & self.BETWEEN:
                return package
            frame = frame.f_back
        return ""


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Within, SIGTERM ends a command as SIGINT does, with its own exit code; the second one ends it at once.

    Else files that are half written would stay, and the copy of standard input.
    """
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    came: list[int] = []
    command, before = os.getpid(), sys.unraisablehook

    def stop(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() != command:  # a worker that was forked: it ends as any other process
            os.kill(os.getpid(), number)
            return
        came.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    sys.unraisablehook = _heard_later(before)
    try:
        yield
    except KeyboardInterrupt:
        if not came:
            raise
        _exit_terminated()
    except SystemExit as ended:
        if not came or ended.code != INTERRUPTED:
            raise
        _exit_terminated()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.unraisablehook = before


def _heard_later(before: Callable[[Any], None]) -> Callable[[Any], None]:
    """Make a hook for errors that cannot be raised, such as an interrupt while an object is deleted.

    Python ignores them, and the command would run to its end. So the interrupt is raised again, after the deletion.
    """

    def again(lost: Any) -> None:
        if not (isinstance(lost.exc_value, KeyboardInterrupt) and hasattr(signal, "setitimer")):
            before(lost)
            return
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, SOON)

    return again


def _exit_terminated() -> NoReturn:
    """Tidy up, and end: where the interrupt passed through `exec`, Python itself would end as if by SIGINT."""
    atexit._run_exitfuncs()  # noqa: SLF001 - exit runs them as well, and there is no other way to do without it
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(TERMINATED)


def _end(*_: object) -> NoReturn:
    """Nothing was begun, and nothing is to be written."""
    os._exit(INTERRUPTED)
