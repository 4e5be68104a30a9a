"""A store of one file of JSON lines, behind the protocol of `docs/black-box.md`: it shares nothing with ours.

`python naive_store.py [FAULT]`. It does one thing after another, whichever client asks. A fault is one of `FAULTS`.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import time
import zlib
from pathlib import Path
from typing import Any

FAULTS = (
    "acknowledges before it writes",
    "loses its last message when it is interrupted",
    "keeps its lock in a forked child",
    "works in a forked child",
    "skips a number",
    "has no lock",
    "keeps what it refuses",
    "expires more than it has",
    "dies of an interrupt",
    "shows a half",
    "acknowledges a commit before it writes",
    "commits twice",
    "undoes a durable rollback",
    "commits what was rolled back",
    "forgets a half",
    "asks nobody",
    "delivers twice",
    "passes one by",
    "forgets its followers",
)

PLAIN = "without transactions"
"""In the place of a fault: it has none, and no such verbs."""

PASS = 8
"""Messages that a follower reads at a time."""

FOLLOWERS = {"delivers twice": -1, "passes one by": 1}
"""Messages by which it advances too far after that."""

Message = tuple[str, int, str, int]
Request = dict[str, Any]


class NaiveStore:
    """`messages`: by queue, from number 0 on · `first`: of each queue, where those begin that are kept."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.path, self.lock, self.file, self.largest = Path(), -1, -1, 0
        self.messages: dict[tuple[str, int], list[Message | None]] = {}
        self.first: dict[tuple[str, int], int] = {}
        self.halves: list[Message] = []
        self.decided: dict[int, str] = {}  # halves, by their place
        self.answers: dict[str, str] = {}
        self.unwritten: list[bytes] = []
        self.may_be_interrupted = self.is_child = self.is_view = False

    def answer(self, request: Request) -> Request:
        """Return the response to a request."""
        try:
            try:
                self.may_be_interrupted = request.get("client") == 0
                if self.is_child and (self.fault != "works in a forked child" or request["verb"] in {"fork", "close"}):
                    raise RuntimeError("a forked child")
                return {"ok": getattr(self, f"_{request['verb']}")(request)}
            finally:
                self.may_be_interrupted = False
        except KeyboardInterrupt:
            self.read_again()
            return {"error": "interrupted"}
        except BlockingIOError:
            return {"error": "in use"}
        except ValueError:
            return {"error": "refused"}
        except Exception as error:  # noqa: BLE001 - returned to the caller
            if self.file >= 0:
                self.read_again()
            return {"error": "failed", "says": repr(error)}

    def _open(self, request: Request) -> None:
        self.path, self.largest = Path(request["folder"]) / "messages", request["settings"]["file_size"]
        if self.lock < 0:
            self.lock = os.open(self.path.with_name("lock"), os.O_RDWR | os.O_CREAT)
        if self.fault != "has no lock":
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.answers = request.get("answers", {})
        if self.file < 0:
            self.file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self.read_again()

    def read_again(self) -> None:
        """All as the file has it. What was not written to its end is cut off."""
        if self.file < 0 or self.is_child:
            return
        self.messages, self.first, self.halves, self.decided = {}, {}, [], {}
        lines = os.pread(self.file, os.fstat(self.file).st_size, 0).split(b"\n")
        if not self.is_view:
            os.ftruncate(self.file, sum(len(line) + 1 for line in lines[:-1]))
        for line in lines[:-1]:
            self.apply(*json.loads(line))

    def apply(
        self, messages: list[Message], first: list[tuple[str, int, int]], half: str = "", of: int = -1
    ) -> list[int]:
        """Do what a line says; returns the messages' numbers. `half`: what becomes of one, or `begun`."""
        messages = [(topic, queue, name, size) for topic, queue, name, size in messages]  # JSON has lists
        if half == "begun":
            self.halves += messages
            if self.fault != "shows a half" or len(self.halves) % 9:
                return [len(self.halves) - 1]
        elif half:
            self.decided[of] = half
        numbers = []
        for topic, queue, name, size in messages:
            there = self.messages.setdefault((topic, queue), [])
            if self.fault == "skips a number" and len(there) == 20:
                there.append(None)
            numbers.append(len(there))
            there.append((topic, queue, name, size))
        self.first |= {(topic, queue): number for topic, queue, number in first}
        return numbers

    def write(
        self, messages: list[Message], first: list[tuple[str, int, int]], half: str = "", of: int = -1
    ) -> list[int]:
        """A line is in the file, and done."""
        line = json.dumps([messages, first, half, of]).encode() + b"\n"
        is_early = {
            "acknowledges before it writes": not half,
            "acknowledges a commit before it writes": half == "commit",
        }
        if is_early.get(self.fault, False) and len(self.unwritten) < 4:
            self.unwritten.append(line)
            return self.apply(messages, first, half, of)
        self._flush({})
        if os.write(self.file, line) != len(line):
            raise OSError("no room")
        os.fsync(self.file)
        return self.apply(messages, first, half, of)

    def _append(self, request: Request) -> list[int]:
        messages = [tuple(message) for message in request["messages"]]
        is_refused = any(size > self.largest for _, _, _, size in messages)
        if is_refused and self.fault != "keeps what it refuses":
            raise ValueError
        numbers = self.write(messages, [])
        if is_refused:
            raise ValueError
        return numbers

    def _flush(self, _request: Request) -> None:
        while self.unwritten:
            os.write(self.file, self.unwritten.pop(0))

    def _queues(self, _request: Request) -> list[tuple[str, int]]:
        return list(self.messages)

    def _range(self, request: Request) -> tuple[int, int]:
        name = request["topic"], request["queue"]
        return self.first.get(name, 0), len(self.messages.get(name, []))

    def _read(self, request: Request) -> list[tuple[int, int, int, str]]:
        low, high = self._range(request)
        number = request["number"]
        if not low <= number <= high:
            raise ValueError
        rows = []
        there = self.messages.get((request["topic"], request["queue"]), [])
        for at, message in enumerate(there[number : number + request["count"]], number):
            if message is not None:
                _, _, name, size = message
                body = f"{name}.".encode() * size
                rows.append((at, size, zlib.crc32(body[:size]), body[:20].decode()))
        return rows

    def _view(self, request: Request) -> None:
        self.is_view, self.file = True, os.open(Path(request["folder"]) / "messages", os.O_RDONLY)

    def _follow(self, request: Request) -> list[tuple[str, int, int, int, int, str]]:
        if self.is_view:
            self.read_again()
        rows: list[tuple[str, int, int, int, int, str]] = []
        for topic, queue, number in request["queues"]:
            at, one = number, {"topic": topic, "queue": queue, "count": PASS}
            while len(rows) < request["count"] and (found := self._read({**one, "number": at})):
                rows += [(topic, queue, *row) for row in found][: request["count"] - len(rows)]
                at += len(found) + FOLLOWERS.get(self.fault, 0) * (len(found) == PASS)
                if self.fault == "forgets its followers":
                    break
        return rows

    def _wait(self, request: Request) -> bool:
        return bool(request["number"] < self._range(request)[1])

    def _expire(self, _request: Request) -> None:
        beyond = 50 if self.fault == "expires more than it has" else 0
        kept = [
            (*name, max(self.first.get(name, 0), len(there) // 2) + beyond) for name, there in self.messages.items()
        ]
        self.write([], [(topic, queue, number) for topic, queue, number in kept])

    def _close(self, _request: Request) -> None:
        self._flush({})
        fcntl.flock(self.lock, fcntl.LOCK_UN)

    def _begin(self, request: Request) -> list[int]:
        messages = [tuple(message) for message in request["messages"]]
        is_kept = self.fault != "forgets a half" or len(self.halves) < 10
        begin = self.write if is_kept else self.apply
        return [begin([message], [], "begun")[0] for message in messages]

    def _decide(self, half: int, decision: str) -> int:
        """The number of a committed message; -1 of one that was rolled back. What is decided otherwise is refused."""
        before = self.decided.get(half)
        if self.fault == "commits what was rolled back" and decision == "commit":
            before = None
        if before not in {None, decision} or half >= len(self.halves):
            raise ValueError
        message = self.halves[half]
        if before is None or (self.fault == "commits twice" and half % 3 == 0):
            self.write([message] if decision == "commit" else [], [], decision, half)
        if decision == "roll_back":
            return -1
        return self.messages[message[0], message[1]].index(message)

    def _commit(self, request: Request) -> list[int]:
        is_refused = any(self.decided.get(half, "commit") != "commit" for half in request["halves"])
        if is_refused and self.fault != "commits what was rolled back":
            raise ValueError
        return [self._decide(half, "commit") for half in request["halves"]]

    def _roll_back(self, request: Request) -> bool:
        if any(self.decided.get(half, "roll_back") != "roll_back" for half in request["halves"]):
            raise ValueError
        for half in request["halves"]:
            if self.fault == "undoes a durable rollback":
                self.decided[half] = "roll_back"
            else:
                self._decide(half, "roll_back")
        return True

    def _check(self, _request: Request) -> None:
        for half, (_, _, name, _) in enumerate(self.halves):
            if half not in self.decided and name in self.answers and self.fault != "asks nobody":
                self._decide(half, self.answers[name])

    def _undecided(self, _request: Request) -> int:
        return len(self.halves) - len(self.decided)

    def _fork(self, request: Request) -> Request:
        heard, writer = os.pipe()
        self.may_be_interrupted = False
        if child := os.fork():
            os.close(writer)
            outcomes = json.loads(os.read(heard, 10_000))
            os.close(heard)
            return {"pid": child, "outcomes": outcomes}
        self.is_child = True
        signal.alarm(60)
        os.close(0)
        os.close(1)
        if self.fault != "keeps its lock in a forked child":
            os.close(self.lock)
        name = {"topic": request["topic"], "queue": request["queue"]}
        asked = [
            {"verb": "append", "messages": [[*name.values(), "forked", 10]]},
            {"verb": "read", **name, "number": 0, "count": 1},
            {"verb": "follow", "queues": [[*name.values(), 0]], "count": 1, "timeout": 1},
            *({"verb": verb, **name} for verb in ("flush", "range", "expire", "check", "undecided")),
        ]
        outcomes = {one["verb"]: self.answer(one).get("error", "done") for one in asked}
        os.write(writer, json.dumps(outcomes).encode())
        time.sleep(60)
        os._exit(0)

    def interrupted(self, _signal: int, _frame: object) -> None:
        """Ctrl-C ends a call, and nothing else."""
        if self.fault == "dies of an interrupt":
            os._exit(1)
        if self.fault == "loses its last message when it is interrupted" and self.file >= 0:
            self._cut_last()
        if self.may_be_interrupted:
            self.may_be_interrupted = False
            raise KeyboardInterrupt

    def _cut_last(self) -> None:
        lines = os.pread(self.file, 1 << 30, 0).splitlines(keepends=True)
        if lines:
            messages, first, *_ = json.loads(lines[-1])
            os.ftruncate(self.file, sum(map(len, lines[:-1])))
            os.write(self.file, json.dumps([messages[:-1], first]).encode() + b"\n")


def main() -> None:
    store = NaiveStore(" ".join(sys.argv[1:]))
    signal.signal(signal.SIGINT, store.interrupted)
    offers = [] if store.fault == PLAIN else ["transactions", "follow", "view"]
    os.write(1, json.dumps({"ready": os.getpid(), "keeps": "acknowledged", "offers": offers}).encode() + b"\n")
    rest = b""
    while data := os.read(0, 1 << 16):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            request = json.loads(line)
            answer = json.dumps({"id": request["id"], **store.answer(request)}).encode() + b"\n"
            while answer:
                answer = answer[os.write(1, answer) :]


if __name__ == "__main__":
    main()
