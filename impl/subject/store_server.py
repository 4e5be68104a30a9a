"""A store behind the protocol of `docs/black-box.md`, with a thread for each client.

Client 0 is served by the main thread, since that is where Python raises KeyboardInterrupt.
"""

from __future__ import annotations

import json
import os
import signal
import time
import zlib
from _thread import start_new_thread
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from queue import SimpleQueue
from threading import Lock
from typing import Any

from gapless.impl.environment.operating_system import wall_clock
from gapless.impl.records.errors import DiskFull, InUse, Refused, StoreError
from gapless.impl.records.record import Messages, Record
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store
from gapless.impl.store.view import StoreView
from gapless.impl.subject.transaction_server import OWN_TOPICS, SpeakingTransactions

Request = dict[str, Any]
Answer = dict[str, Any]

Follower = tuple[dict[tuple[str, int], int], Iterator[Record]]
"""The next number of each of its queues, and what it hands out."""

NO_PROPERTIES: dict[str, str] = {}
READ = 1 << 16  # bytes of the input that are taken at once
OUTLIVES = 60  # seconds that a forked child lives, if it is not ended


class SpeakingStore:
    """One process that is asked. `source`, `answers`: descriptors, of what it reads and of what it writes."""

    def __init__(self, source: int, answers: int) -> None:
        self._source, self._answers = source, answers
        self._answering = Lock()
        self._clients: defaultdict[int, SimpleQueue[Request]] = defaultdict(SimpleQueue)
        self._may_be_interrupted = False
        self._has_spawned = False
        self._followers: dict[int, Follower] = {}  # by client: those that have not come to an end
        self.store: Store
        self.reads: Store | StoreView  # what is read: the store, or a view of another process's
        self.transactions: SpeakingTransactions
        self.verbs: dict[str, Callable[[Request], Any]] = {
            verb.__name__: verb
            for verb in (
                *(self.open, self.append, self.flush, self.queues, self.range, self.read, self.wait, self.expire),
                *(self.follow, self.view),
                *(self.fork, self.close, self.spawn),
                *(self.begin, self.commit, self.roll_back, self.check, self.undecided),
            )
        }

    def serve(self) -> None:
        """Answer what is asked; the process ends with its input, and leaves the store as it is."""
        signal.signal(signal.SIGINT, self._interrupted)
        self._write({"ready": os.getpid(), "keeps": "acknowledged", "offers": ["transactions", "follow", "view"]})
        mine = self._clients[0]
        start_new_thread(self._listen, ())
        self._serve(mine)

    def _listen(self) -> None:
        """Every request goes to its client, in the order in which they come."""
        for line in _lines(self._source):
            request = json.loads(line)
            client = request["client"]
            if client not in self._clients:
                start_new_thread(self._serve, (self._clients[client],))
            self._clients[client].put(request)
        os._exit(0)

    def _serve(self, requests: SimpleQueue[Request]) -> None:
        """Do what one client asks, one request after another."""
        while True:
            request = requests.get()
            self._write({"id": request["id"], **self._answer(request)})

    def _write(self, answer: Answer) -> None:
        line = json.dumps(answer, separators=(",", ":")).encode() + b"\n"
        with self._answering:
            while line:
                line = line[os.write(self._answers, line) :]

    # -- calls -------------------------------------------------------------------------------------------------------

    def _interrupted(self, _signal: int, _frame: object) -> None:
        """Ctrl-C ends a call of client 0 where there is one, and nothing else; and each call once."""
        if self._may_be_interrupted:
            self._may_be_interrupted = False
            raise KeyboardInterrupt

    def _answer(self, request: Request) -> Answer:
        """The answer to a request: a value, or the kind of an error."""
        is_mine = request["client"] == 0 and request["verb"] not in {"fork", "spawn"}
        try:
            try:
                if is_mine:
                    self._may_be_interrupted = True
                return {"ok": self.verbs[request["verb"]](request)}
            finally:
                if is_mine:
                    self._may_be_interrupted = False
        except KeyboardInterrupt:
            return {"error": "interrupted"}
        except Exception as error:  # noqa: BLE001 - the client gets the error
            return _error_answer(error)

    def open(self, request: Request) -> None:
        """The folder's store is open. A queue file holds fewer entries than a log file holds small messages."""
        wanted = request["settings"]
        entries = max(8, wanted["file_size"] // 1024)
        settings = Settings(
            file_size=wanted["file_size"],
            queue_file_size=20 * entries,
            synchronous=wanted["synchronous"],
            flush_interval=20,
            queue_flush_interval=30,
        )
        self.reads = self.store = Store.open(request["folder"], settings)
        if "transactions" not in wanted:
            return
        try:
            self.transactions = SpeakingTransactions(self.store, wanted["transactions"], request.get("answers", {}))
        except BaseException:
            self.store.abandon()  # it opens whole, or not at all
            raise

    def view(self, request: Request) -> None:
        """The store of a folder, which another process has open, can be read."""
        self.reads = StoreView.open(request["folder"])

    def append(self, request: Request) -> list[int]:
        """The messages' numbers. One is appended by itself, and several as a batch."""
        messages = [(*message, NO_PROPERTIES) for message in _messages(request)]
        if len(messages) == 1:
            topic, queue, body, _ = messages[0]
            return [self.store.append(topic, queue, body).number]
        _, numbers = self.store.append_batch(Messages.of_list(messages))
        return [int(number) for number in numbers]

    def flush(self, _request: Request) -> None:
        """All that was acknowledged is on disk."""
        self.store.flush()

    def queues(self, _request: Request) -> list[tuple[str, int]]:
        """Every queue that producers write to."""
        return [(queue.topic, queue.id) for queue in self.store.core.queues.all if queue.topic not in OWN_TOPICS]

    def range(self, request: Request) -> tuple[int, int]:
        """The first number that is kept, and the end of what consumers see."""
        return self.reads.range(request["topic"], request["queue"])

    def read(self, request: Request) -> list[tuple[int, int, int, str]]:
        """The number of each message, and the size, the checksum and the beginning of its body."""
        records = self.reads.read(request["topic"], request["queue"], request["number"], request["count"])
        return [_row(record) for record in records]

    def follow(self, request: Request) -> list[tuple[str, int, int, int, int, str]]:
        """The topic and queue of each message as it comes, and what `read` tells of it.

        A client that asks for what comes next in all its queues has the follower of before, which may have read it.
        """
        wanted = {(topic, queue): number for topic, queue, number in request["queues"]}
        client, count = request.get("client", -1), request["count"]
        following, records = self._followers.pop(client, ({}, iter(())))
        if following != wanted:
            records = self.reads.follow(wanted, timeout=request["timeout"])
        found = list(islice(records, count))
        for record in found:
            wanted[record.topic, record.queue] = record.number + 1
        if len(found) == count:
            self._followers[client] = wanted, records
        return [(record.topic, record.queue, *_row(record)) for record in found]

    def wait(self, request: Request) -> bool:
        """True if consumers see a number in time."""
        return self.store.wait_for(request["topic"], request["queue"], request["number"], request["timeout"])

    def expire(self, _request: Request) -> None:
        """Delete files without anything newer than now."""
        self.store.expire(wall_clock() + 1)

    def close(self, _request: Request) -> None:
        """A clean stop."""
        self.store.close()

    # -- transactions ------------------------------------------------------------------------------------------------

    def begin(self, request: Request) -> list[int]:
        """Halves of these messages are there; what names them."""
        return self.transactions.begin({"messages": _messages(request)})

    def commit(self, request: Request) -> list[int]:
        """Halves are messages now; their numbers."""
        return self.transactions.commit(request)

    def roll_back(self, request: Request) -> bool:
        """Halves will never be messages; whether a crash leaves that so."""
        return self.transactions.roll_back(request)

    def check(self, request: Request) -> None:
        """Producers were asked about every half that was undecided."""
        self.transactions.check(request)

    def undecided(self, request: Request) -> int:
        """The number of undecided halves."""
        return self.transactions.undecided(request)

    # -- processes ---------------------------------------------------------------------------------------------------

    def fork(self, request: Request) -> dict[str, Any]:
        """A child tries every verb, and tells what came of it; then it lives on, without the pipes of its parent."""
        heard, report = os.pipe()
        child = os.fork()
        if not child:
            self._be_a_child(request, report)
        try:
            os.close(report)
            return {"pid": child, "outcomes": json.loads(next(_lines(heard), b"{}"))}
        finally:
            os.close(heard)

    def _be_a_child(self, request: Request, report: int) -> None:
        """The work of a forked child; it never returns."""
        try:
            signal.alarm(OUTLIVES)
            for descriptor in (self._source, self._answers):
                os.close(descriptor)
            outcomes = {}
            more = _every_verb_of_transactions(request) if hasattr(self, "transactions") else ()
            for verb, asked in (*more, *_every_verb(request)):
                try:
                    self.verbs[verb](asked)
                    outcomes[verb] = "done"
                except Exception as error:  # noqa: BLE001 - reported
                    outcomes[verb] = _error_answer(error)["error"]
            os.write(report, json.dumps(outcomes).encode() + b"\n")
            time.sleep(OUTLIVES)
        finally:
            os._exit(0)

    def spawn(self, request: Request) -> None:
        """A process like this one is asked on other pipes."""
        if not self._has_spawned:
            self._has_spawned = True
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        if not os.fork():
            try:
                os.close(self._source)
                os.close(self._answers)
                SpeakingStore(os.open(request["input"], os.O_RDONLY), os.open(request["output"], os.O_WRONLY)).serve()
            finally:
                os._exit(1)


def _every_verb(request: Request) -> Iterator[tuple[str, Request]]:
    """The requests of a forked child, `close` last."""
    names = {"topic": request["topic"], "queue": request["queue"]}
    message = [request["topic"], request["queue"], "forked", 10]
    yield "append", {"messages": [message]}
    yield "append", {"messages": [message, message]}
    yield "flush", {}
    yield "range", names
    yield "read", {**names, "number": 0, "count": 1}
    yield "wait", {**names, "number": 0, "timeout": 1}
    yield "follow", {"queues": [[*names.values(), 0]], "count": 1, "timeout": 1}
    yield "expire", {}
    yield "close", {}


def _every_verb_of_transactions(request: Request) -> Iterator[tuple[str, Request]]:
    """Likewise, where there are transactions."""
    message = [request["topic"], request["queue"], "forked", 10]
    yield "begin", {"messages": [message]}
    yield "begin", {"messages": [message, message]}
    yield "commit", {"halves": [0]}
    yield "roll_back", {"halves": [0]}
    yield "check", {}
    yield "undecided", {}


def _row(record: Record) -> tuple[int, int, int, str]:
    """Describe a message: its number, and the size, the checksum and the beginning of its body."""
    body = record.body
    return record.number, len(body), zlib.crc32(body), bytes(body[:20]).decode("latin-1")


def _messages(request: Request) -> list[tuple[str, int, bytes]]:
    """Topic, queue and body of each message that is asked for."""
    return [(topic, queue, _body(name, size)) for topic, queue, name, size in request["messages"]]


def _body(name: str, size: int) -> bytes:
    """The body of a message that is called so: its name and a dot, again and again."""
    pattern = name.encode() + b"."
    return (pattern * (size // len(pattern) + 1))[:size]


def _error_answer(error: Exception) -> Answer:
    """An error as the protocol has it, and how many of the messages were appended nevertheless."""
    kind = "failed"
    kinds = {Refused: "refused", DiskFull: "full", InUse: "in use"}
    with suppress(StopIteration):
        kind = next(name for of, name in kinds.items() if isinstance(error, of))
    answer = {"error": kind, "says": f"{type(error).__name__}: {error}"}
    if isinstance(error, StoreError) and error.appended is not None:
        return {**answer, "kept": len(error.appended[0])}
    return {**answer, "kept": 0} if kind == "full" else answer


def _lines(source: int) -> Iterator[bytes]:
    """The lines that come through a descriptor. No lock is held while it waits, which a fork would leave locked."""
    rest = b""
    while data := os.read(source, READ):
        *lines, rest = (rest + data).split(b"\n")
        yield from lines
