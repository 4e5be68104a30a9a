"""Records the steps of a Python system as events, a line for each, which `gapless check` judges."""

from __future__ import annotations

import fcntl
import operator
import os
import stat
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

from gapless.spec.catalog import Spec
from gapless.spec.language import Map
from gapless.traces.events.event import NAME, OUTCOMES, Outcome, parsed, text_of
from gapless.traces.events.files import CODECS
from gapless.traces.events.lines.ndjson import HEADER, LONGEST
from gapless.traces.specs import calling_file, load
from gapless.traces.suggestions import did_you_mean, one_of

SUFFIXES = (".ndjson", ".jsonl")
OWN = ("outcome", "saw")
"""The names that `step` needs for itself."""


class Recorder:
    """Writes a recording: one line for each step that your system took, refused, or may have taken.

    `path` ends with `.ndjson`; a recording that is there is replaced, any other file is left alone. `spec` is a file
    of yours, in the folder of the caller or in the working directory, a module, or one of ours by its name. `source` is
    for people: it names who recorded. `profile` names the broker whose known deviations are no violations.

    Threads may share a recorder. Call it under the lock under which the step takes effect: the order of the calls is
    the order of the events. A line of at most 4,096 bytes is written whole, at once: a recording is readable after a
    kill. A child of `fork` needs a recorder of its own. Raises ValueError where a step, an argument or a file is not as
    it must be, and then writes nothing; in the block of an `attempt`, whose step may be taken by then, it is written
    as `unknown`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        spec: str | os.PathLike[str] | Spec,
        *,
        source: str = "recorder",
        profile: str = "strict",
    ) -> None:
        self.path = _named(Path(path))
        self.spec = spec if isinstance(spec, Spec) else load(spec, calling_file())
        self.steps = 0
        self._source = _text("source", source)
        self._waiting = Counter[str]()  # attempts that no `with` has entered yet, by their places
        self._lock = Lock()
        self._process = os.getpid()
        _require_own_names(self.spec)
        header = f"{text_of({**HEADER, 'profile': _text('profile', profile)})}\n"
        self._file = _LineFile(self.path)
        self._file.begin(header)

    def step(
        self, trace: str, action: str, /, *, outcome: Outcome = "ok", saw: Mapping[str, int] | None = None, **args: int
    ) -> None:
        """Record a step of `trace`, such as one queue, with its arguments by name.

        `outcome`: `ok`, `refused`, or `unknown` where nothing says whether it was taken, as after a timeout. `saw`:
        fields of the spec's state as your system has them after the step.
        """
        if outcome not in OUTCOMES:
            raise ValueError(f"outcome is {outcome!r}, expected {one_of(OUTCOMES)}{did_you_mean(outcome, OUTCOMES)}")
        self._require_step(action)
        event: dict[str, Any] = {"source": self._source, "spec": self.spec.name, "trace": _text("trace", trace)}
        event |= {"position": 0, "action": action, "args": self._arguments(action, args)}
        if outcome != "ok":
            event["outcome"] = outcome
        if saw is not None:
            event["saw"] = self.checked(saw)
        self._write(event)

    def attempt(self, trace: str, action: str, /, **args: int) -> Attempt:
        """A block in which a step is tried: it is recorded at the end of the block.

        Its outcome is `ok`, or `unknown` if an exception leaves the block; within, `refused()` and `unknown()` say
        otherwise, and `saw(…)` adds fields of the state.
        """
        self._require_step(action)
        self._arguments(action, args)
        caller = sys._getframe(1)  # noqa: SLF001 - as warnings and logging find a caller
        place = f'{caller.f_code.co_filename}:{caller.f_lineno}: attempt("{trace}", "{action}")'
        made = Attempt(self, _text("trace", trace), action, args, place)
        self.waits(place, 1)
        return made

    def waits(self, place: str, more: int) -> None:
        """Note that an attempt of a place waits to be entered (1), or no longer does (-1)."""
        with self._lock:
            self._waiting[place] += more
            if not self._waiting[place]:
                del self._waiting[place]

    def close(self) -> None:
        """End the recording. It is on disk when this returns.

        Raises ValueError if an attempt was never entered, whose step is not recorded.
        """
        if os.getpid() != self._process:
            return  # a child has not recorded, and the lock may be that of a thread that it does not have
        with self._lock:
            if self._file.is_open:
                self._file.close()
            never, self._waiting = self._waiting, Counter()
        if never and sys.exc_info()[0] is None:  # or else it would hide the error that ended the recording
            place = min(never)
            raise ValueError(f"{place} was never entered, and is not recorded: write `with recorder.attempt(…)`")

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_raised: object) -> None:
        """Close it."""
        self.close()

    def _write(self, event: dict[str, Any]) -> None:
        if os.getpid() != self._process:
            raise ValueError(f"{self.path}: this process was forked: make a Recorder with a file of its own in it")
        with self._lock:
            if not self._file.is_open:
                raise ValueError(f"{self.path}: the recording is closed: record within its `with` block")
            event["position"] = self.steps
            line = f"{text_of(event)}\n".encode()
            if len(line) > LONGEST:
                raise ValueError(f"{self.path}: an event of {len(line):,} bytes, expected {LONGEST:,} at most")
            self._file.append(line)
            self.steps += 1

    # -- a step, as the spec has it --------------------------------------------------------------------------------

    def _require_step(self, action: str) -> None:
        if action not in self.spec.actions:
            hint = did_you_mean(str(action), self.spec.actions)
            raise ValueError(
                f"{self.spec.called} has no step {action!r}{hint}: its steps are {self._list(self.spec.actions)}"
            )

    def _arguments(self, action: str, args: Mapping[str, int]) -> dict[str, int]:
        """The arguments of a step, in its order, as numbers."""
        wanted, flags = self.spec.parameters[action], self.spec.flags[action]
        if strange := [name for name in args if name not in wanted]:
            hint = did_you_mean(strange[0], wanted)
            raise ValueError(f"{action} has no argument {strange[0]!r}{hint}: it takes {self._list(wanted)}")
        if missing := [name for name in wanted if name not in args]:
            raise ValueError(f"{action} without its argument {missing[0]!r}: it takes {self._list(wanted)}")
        return {name: _number(f"{action}.{name}", args[name], flag=name in flags) for name in wanted}

    def checked(self, saw: Mapping[str, int]) -> dict[str, int]:
        """Fields of the state, as numbers. Raises ValueError."""
        fields = self.spec.scalars
        if maps := [name for name in saw if isinstance(getattr(self.spec.initial, str(name), None), Map)]:
            raise ValueError(f"saw.{maps[0]}: it is a Map: only numbers and flags can be seen: {self._list(fields)}")
        if strange := [name for name in saw if name not in fields]:
            hint = did_you_mean(str(strange[0]), fields)
            raise ValueError(
                f"saw has no field {strange[0]!r}{hint}: the numbers and flags of State are {self._list(fields)}"
            )
        flags = {name for name in fields if isinstance(getattr(self.spec.initial, name), bool)}
        return {name: _number(f"saw.{name}", saw[name], flag=name in flags) for name in sorted(saw)}

    @staticmethod
    def _list(names: Any) -> str:
        return ", ".join(names) or "none"


class Attempt:
    """One step that is tried within a block; its outcome is known at the end of the block, or never."""

    def __init__(self, recorder: Recorder, trace: str, action: str, args: Mapping[str, int], place: str) -> None:
        self._recorder = recorder
        self._place = place  # in the user's program; empty once its block has begun
        self._step = (trace, action)
        self._args = args
        self._outcome: Outcome | None = None
        self._saw: dict[str, int] | None = None

    def refused(self) -> None:
        """Note that the system turned the step down."""
        self._outcome = "refused"

    def unknown(self) -> None:
        """Note that the step was taken or not, and that nothing says which."""
        self._outcome = "unknown"

    def saw(self, **fields: int) -> None:
        """Add fields of the spec's state, as the system has them after the step.

        Raises ValueError for what is no such field; if that leaves the block, the step is recorded as `unknown`.
        """
        self._saw = {**(self._saw or {}), **self._recorder.checked(fields)}

    def __enter__(self) -> Self:
        """Itself."""
        if self._place:
            self._recorder.waits(self._place, -1)
            self._place = ""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """Record the step. An exception passes through."""
        outcome = self._outcome or ("ok" if kind is None else "unknown")
        self._recorder.step(*self._step, outcome=outcome, saw=self._saw, **self._args)


# -- values --------------------------------------------------------------------------------------------------------


def _number(name: str, value: object, *, flag: bool) -> int:
    """A value as a number of 64 bits; a flag as 1 or 0. Raises ValueError."""
    try:
        number = operator.index(value)  # type: ignore[arg-type] # what is no whole number is the question
    except TypeError:
        raise ValueError(f"{name} is {value!r}, expected {'True or False' if flag else 'a whole number'}") from None
    if flag and number not in (0, 1):
        raise ValueError(f"{name} is {value!r}, expected True or False: it is a flag")
    if not flag and isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}, expected a whole number: it is no flag")
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{name} is {number}, expected a number of 64 bits")
    return number


def _text(name: str, value: object) -> str:
    """A value as a text that a file can keep. Raises ValueError."""
    if not isinstance(value, str) or not value:
        raise ValueError(
            f"{name} is {value!r}, expected a text such as {'queue-1' if name == 'trace' else 'broker-a'!r}"
        )
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} is {value!r}, expected a text in UTF-8") from None
    return value


def _require_own_names(spec: Spec) -> None:
    for action, names in spec.parameters.items():
        if taken := [name for name in names if name in OWN]:
            raise ValueError(
                f"{spec.called}: {action} has an argument {taken[0]!r}, which is a word of Recorder: rename it"
            )


# -- the file ------------------------------------------------------------------------------------------------------


def _named(path: Path) -> Path:
    """The path of a recording. Raises ValueError where its name says another form."""
    if path.suffix.lower() not in SUFFIXES:
        packed = ": compress it when it is whole" if path.suffix.lower() in CODECS else ""
        raise ValueError(f"{path}: a Recorder writes lines of JSON: name the file {path.name}.ndjson{packed}")
    return path


class _LineFile:
    """A file that grows by whole lines, one writer at a time.

    A kill may cut a write in two where one page of the file ends and the next begins. So no line lies across two
    pages, if it is shorter than one: blanks behind the line before it, which readers skip, fill up the page.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            why = f"cannot be written ({error.strerror})"
            raise ValueError(f"{path}: {why}: name a file in a folder that is there") from None
        self._path = path
        self._end = 0

    @property
    def is_open(self) -> bool:
        """True until it is closed."""
        return self._file >= 0

    def begin(self, header: str) -> None:
        """Make it a recording without events. Raises ValueError where it is another file, or another's."""
        try:
            _require_replaceable(self._path, self._file)
            os.ftruncate(self._file, 0)
            self.append(header.encode())
        except BaseException:
            os.close(self._file)
            raise

    def append(self, line: bytes) -> None:
        """Write a line whole, or nothing of it. Raises OSError with the name of the file."""
        before, room = self._end, PAGE - self._end % PAGE
        try:
            if before and room < min(PAGE, len(line)):
                self._end -= 1
                self._put(b" " * room + b"\n")
            self._put(line)
        except OSError as error:
            self._end = before
            os.ftruncate(self._file, before)
            if before:
                os.pwrite(self._file, b"\n", before - 1)
            error.filename = os.fspath(self._path)
            raise

    def _put(self, text: bytes) -> None:
        while text:
            written = os.pwrite(self._file, text, self._end)
            self._end += written
            text = text[written:]

    def close(self) -> None:
        """Put it on disk."""
        os.fsync(self._file)
        os.close(self._file)
        self._file = -1


PAGE = 4096  # bytes: of every memory page, a part or all


def _require_replaceable(path: Path, file: int) -> None:
    """Raise ValueError where a file is no recording, or another recorder writes to it."""
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise ValueError(f"{path}: not a regular file: a recording needs one")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ValueError(f"{path}: another Recorder writes to it: name a file for each") from None
    begin = os.pread(file, LONGEST, 0)
    if begin and not _is_header(begin.partition(b"\n")[0]):
        raise ValueError(f"{path}: there is a file that is no recording: move it, or name another file")


def _is_header(line: bytes) -> bool:
    try:
        header = parsed(line)
    except ValueError:
        return False
    return isinstance(header, dict) and header.get("schema") == NAME
