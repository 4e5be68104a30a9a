"""A process that is asked and answers, as `docs/black-box.md` has it: started, talked to, interrupted, killed, limited.

Nothing waits here without a limit, and no thread is needed: pipes are not blocking, and a poll looks at them and at
the process itself.
"""

from __future__ import annotations

import json
import os
import resource
import select
import shlex
import signal
import subprocess
import time
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from gapless.properties.machines.mismatch import Mismatch

PATIENCE = 60.0
"""Seconds after which what has not been answered counts as hanging. No other time is judged here."""

CHUNK = 1 << 16

Answer = dict[str, Any]
QueueName = tuple[str, int]
"""A topic and the number of one of its queues."""


class SentBody(NamedTuple):
    """A message by its queue, the name that no other message has, and the bytes of its body: this makes the body."""

    queue: QueueName
    name: str
    size: int

    @property
    def body(self) -> bytes:
        """The name and a dot, again and again, as long as it is to be."""
        pattern = self.name.encode() + b"."
        return (pattern * (self.size // len(pattern) + 1))[: self.size]

    @property
    def checksum(self) -> int:
        """CRC-32 of the body, by which it is known."""
        return zlib.crc32(self.body)

    def __str__(self) -> str:
        return f"{self.name} of {self.size} bytes for {self.queue[0]}/{self.queue[1]}"


@dataclass(slots=True)
class SubjectCall:
    """A request: which client asked for what."""

    number: int
    client: int
    verb: str
    arguments: dict[str, Any]


class SubjectProcess:
    """A subject that runs. `pid`: its process · `keeps`: what survives that process, "acknowledged" or "flushed".

    `offers`: which optional verbs it has.
    """

    def __init__(self, requests: int, answers: int, own: subprocess.Popen[bytes] | None) -> None:
        self._requests, self._answers, self._own = requests, answers, own
        self._numbers = count()
        self._unsent = b""
        self._half = b""
        self._heard: deque[Answer] = deque()
        self.is_dead = self._is_released = False
        self._process = -1
        os.set_blocking(requests, False)
        os.set_blocking(answers, False)
        self._poll = select.poll()
        self._poll.register(answers, select.POLLIN)
        try:
            hello = self.next_answer(needs="its first line")
            self.pid, self.keeps = int(hello["ready"]), str(hello["keeps"])
            self.offers = frozenset(hello.get("offers", ()))
            self._process = os.pidfd_open(self.pid)
        except BaseException:
            self.release()
            raise
        self._poll.register(self._process, select.POLLIN)

    # -- asking ------------------------------------------------------------------------------------------------------

    def send(self, client: int, verb: str, **arguments: Any) -> SubjectCall:
        """Ask; the answer comes later, among others."""
        call = SubjectCall(next(self._numbers), client, verb, arguments)
        request = {"id": call.number, "client": client, "verb": verb, **arguments}
        self._unsent += json.dumps(request, separators=(",", ":")).encode() + b"\n"
        self._write()
        return call

    def ask(self, verb: str, **arguments: Any) -> Answer:
        """Ask as client 0, alone, and wait for the answer. Raises Mismatch if the process dies or hangs."""
        number = self.send(0, verb, **arguments).number
        answer = self.next_answer(needs=verb)
        if answer.get("id") != number:
            raise Mismatch(f"{verb}: expected an answer to request {number}, found {answer}")
        return answer

    def next_answer(self, *, needs: str) -> Answer:
        """The next answer, to any client. Raises Mismatch if none comes."""
        end = time.monotonic() + PATIENCE
        while not self._heard:
            self.wait(0.5)
            if self.is_dead and not self._heard:
                raise Mismatch(f"the process died by itself, and not by us: {needs} was not answered")
            if time.monotonic() > end:
                self._signal(signal.SIGABRT)  # a process that dies of it may tell where its threads were
                self.wait(0.5)
                raise Mismatch(f"it hangs: {needs} is not answered after {PATIENCE:.0f} s")
        return self._heard.popleft()

    def answers(self) -> Iterator[Answer]:
        """The answers that have been heard."""
        while self._heard:
            yield self._heard.popleft()

    def wait(self, seconds: float) -> None:
        """Returns once something is heard, or after so many seconds."""
        self._write()
        for descriptor, _ in self._poll.poll(seconds * 1000):
            if descriptor == self._process:
                self.is_dead = True
                self._poll.unregister(self._process)
        self._read()
        if not self._heard and not self.is_dead and self._own is not None and self._own.poll() is not None:
            self.is_dead = self._process < 0  # it died before it was ready

    def _write(self) -> None:
        """Write as much as there is room for; the rest goes later."""
        with suppress(BlockingIOError, BrokenPipeError):
            while self._unsent:
                self._unsent = self._unsent[os.write(self._requests, self._unsent) :]

    def _read(self) -> None:
        with suppress(BlockingIOError):
            while data := os.read(self._answers, CHUNK):
                *lines, self._half = (self._half + data).split(b"\n")
                for line in lines:
                    try:
                        self._heard.append(json.loads(line))
                    except ValueError as error:
                        raise Mismatch(f"an answer is no JSON: {line[:80]!r}") from error

    # -- disturbing --------------------------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL. When this returns the process is gone, and all that it answered is heard."""
        self._signal(signal.SIGKILL)
        end = time.monotonic() + PATIENCE
        while not self.is_dead:
            self.wait(0.5)
            if time.monotonic() > end:
                raise Mismatch("the process was killed, and does not die")
        self._read()

    def _signal(self, kind: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, kind)

    def limit(self, kind: int, most: int | None) -> None:
        """Its soft limit, such as `resource.RLIMIT_NOFILE`, is that; without a number, it is as high as may be."""
        with suppress(ProcessLookupError):
            _, hard = resource.prlimit(self.pid, kind)
            resource.prlimit(self.pid, kind, (hard if most is None else most, hard))

    def release(self) -> None:
        """The process is killed if it lives, and its pipes are closed; a second time, nothing is done."""
        if self._is_released:
            return
        self._is_released = True
        if not self.is_dead and self._process >= 0:
            self.kill()
        for descriptor in (self._requests, self._answers, self._process):
            if descriptor >= 0:
                os.close(descriptor)
        if self._own is not None:
            if self._process < 0:
                self._own.kill()
            self._own.wait()


class SubjectMaker:
    """A maker of subjects: a command, or a process of it that makes others like itself, if it can.

    `command`: as a shell would have it · `folder`: for pipes, and for what subjects write to standard error.
    """

    def __init__(self, command: str, folder: Path) -> None:
        self._command = shlex.split(command)
        self._folder = folder
        self._made = 0
        self._mother: SubjectProcess | None = None
        self._can_spawn = True
        self._offers: frozenset[str] | None = None

    @property
    def offers(self) -> frozenset[str]:
        """The optional verbs of subjects. Raises Mismatch if no answer comes."""
        if self._offers is None:
            self._mother = self._run()
            self._offers = self._mother.offers
        return self._offers

    def start(self) -> SubjectProcess:
        """A new process, which has opened nothing. Raises Mismatch where it does not come."""
        if self._mother is None and self._can_spawn:
            self._mother = self._run()
        if self._mother is not None:
            if (spawned := self._spawn(self._mother)) is not None:
                return spawned
            self._can_spawn = False
            mother, self._mother = self._mother, None
            return mother
        return self._run()

    def _run(self) -> SubjectProcess:
        """The command itself, in a session of its own: a Ctrl-C at the terminal is ours alone."""
        with self.errors.open("ab") as errors:
            own = subprocess.Popen(  # noqa: S603 - it is the command that we were given
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
        assert own.stdin is not None  # noqa: S101 - for mypy
        assert own.stdout is not None  # noqa: S101 - for mypy
        requests, answers = os.dup(own.stdin.fileno()), os.dup(own.stdout.fileno())
        own.stdin.close()
        own.stdout.close()
        return SubjectProcess(requests, answers, own)

    def _spawn(self, mother: SubjectProcess) -> SubjectProcess | None:
        """A process that the mother makes; None where it cannot."""
        self._made += 1
        ours = self._folder / f"{self._made}.requests", self._folder / f"{self._made}.answers"
        for pipe in ours:
            os.mkfifo(pipe)
        requests = os.open(ours[0], os.O_RDWR | os.O_NONBLOCK)  # for writing alone, it would have to be there already
        answers = os.open(ours[1], os.O_RDONLY | os.O_NONBLOCK)
        try:
            answer = mother.ask("spawn", input=str(ours[0]), output=str(ours[1]))
            if "error" not in answer:
                return SubjectProcess(requests, answers, None)
        finally:
            for pipe in ours:
                pipe.unlink()
        os.close(requests)
        os.close(answers)
        return None

    @property
    def errors(self) -> Path:
        """The standard error of subjects."""
        return self._folder / "stderr"

    def release(self) -> None:
        """End the making of subjects."""
        if self._mother is not None:
            self._mother.release()
