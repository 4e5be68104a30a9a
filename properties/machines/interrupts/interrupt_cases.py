"""Cases of the interrupt machine: Ctrl-C at every point of every verb of a store, in a folder of its own.

A store is opened, and has some messages. One verb is called, and interrupted at a point. Then its client continues: it
appends to the same queues and to others, closes the store, and opens it again; or abandons it first. And

- all that was acknowledged is there, with its number, and so is what was appended since; nothing hangs;
- of what the interrupted verb was to append, the first messages are there whole, and the others not at all;
- nothing else is there, no number is missing, and all that lies behind the log's end is zeros.

A case is a verb, a point and an ending; its text, as `append.full 17 close`, is all that is needed to run it again.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from gapless.impl.records.record import Messages
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store
from gapless.properties.campaign import CaseTally, Failure
from gapless.properties.machines.interrupts.interrupter import Interrupter
from gapless.properties.machines.mismatch import Mismatch, expect
from gapless.traces.check import check

PATIENCE = 20.0
"""Seconds after which what has not ended counts as hanging."""

ENDINGS = ("close", "abandon")

FILE = 2048
SETTINGS = {"file_size": FILE, "queue_file_size": 400, "pre_allocate": False}


@dataclass(frozen=True, slots=True)
class InterruptCase:
    """A verb of `VERBS`, the point at which it is interrupted, and the end of the store's life then."""

    verb: str
    point: int
    ending: str = "close"

    @classmethod
    def parse(cls, text: str) -> InterruptCase:
        """The case of such a text. Raises ValueError."""
        verb, point, ending = text.split()
        if verb not in VERBS or ending not in ENDINGS:
            raise ValueError(f"{text!r}: expected one of {', '.join(VERBS)}, a number, and {' or '.join(ENDINGS)}")
        return cls(verb, int(point), ending)

    def __str__(self) -> str:
        return f"{self.verb} {self.point} {self.ending}"


class InterruptedClient:
    """The user of a store, who knows what is in it.

    `known`: the bodies of every queue, in order · `asked`: what is being appended, as queue and body, in order.
    """

    def __init__(self, folder: Path, *, synchronous: bool = False) -> None:
        self.folder = folder
        self.settings = Settings(synchronous=synchronous, **SETTINGS)  # type: ignore[arg-type]
        self.clock = count(1_700_000_000_000, 1000)
        self.known: dict[int, list[bytes]] = defaultdict(list)
        self.asked: list[tuple[int, bytes]] = []
        self.store: Store
        self.first = 0  # the lowest number of queue 0 that has not expired
        self.copy: Path | None = None  # where a copy is made of the messages that are known when that begins

    def open(self) -> None:
        """The store is open."""
        self.store = Store.open(self.folder, self.settings, clock=self.clock.__next__)

    def append(self, queue: int, body: bytes) -> None:
        """A message is in the log, with the next number."""
        found = self.store.append("orders", queue, body)
        expect(found.number == len(self.known[queue]), f"{body!r} of queue {queue} got number {found.number}")
        self.known[queue].append(body)

    def fill(self, messages: int) -> None:
        """So many messages, in turn to three queues."""
        for number in range(messages):
            self.append(number % 3, b"%d." % number * 5)

    def see(self) -> None:
        """Consumers see every message."""
        for queue, bodies in self.known.items():
            expect(not bodies or self.store.wait_for("orders", queue, len(bodies) - 1), f"queue {queue} is not seen")

    def go_on(self, interrupt: KeyboardInterrupt | None, *, is_crash: bool) -> None:
        """Append to every queue, and learn from the numbers how many of the messages are there."""
        bodies = {queue: list(self.known[queue]) for queue in {5, *self.known, *(queue for queue, _ in self.asked)}}
        numbers = {queue: self.store.append("orders", queue, b"afterwards").number for queue in sorted(bodies)}
        kept = 0
        while kept < len(self.asked) and any(len(bodies[queue]) < number for queue, number in numbers.items()):
            queue, body = self.asked[kept]
            bodies[queue].append(body)
            kept += 1
        lengths = {queue: len(bodies[queue]) for queue in numbers}
        expect(lengths == numbers, f"the next numbers are {numbers}, expected {lengths}")
        expect(interrupt is not None or kept == len(self.asked), f"{kept} of {len(self.asked)} messages are there")
        for note in getattr(interrupt, "__notes__", ()):
            reported = int(
                note.split()[2]
            )  # an end like a crash may leave more: what was written, and had not been reported
            expect(kept == reported or (is_crash and reported <= kept), f"{kept} messages are there: {note}")
        self.known.update((queue, [*there, b"afterwards"]) for queue, there in bodies.items())

    def compare(self) -> None:
        """The store that is found again holds what is known, and nothing else."""
        store = self.store
        queues = {queue.id: queue for queue in store.core.queues.all if queue.topic == "orders"}
        for queue in sorted(queues.keys() | self.known.keys()):
            low, high = store.range("orders", queue)
            expect(high == len(self.known[queue]), f"queue {queue} ends at {high}, expected {len(self.known[queue])}")
            bodies = [record.body for record in store.read("orders", queue, low, high - low)]
            expect(bodies == self.known[queue][low:], f"queue {queue} has other messages than were sent")
            expect(low <= self.first or not queue, f"queue {queue} begins at {low}: what has not expired is gone")

    def compare_copy(self, *, is_expected: bool) -> None:
        """The copy is whole, or there is none and nothing is left of it."""
        if self.copy is None:
            return
        copies = [path for path in self.copy.parent.iterdir() if self.copy.name in path.name]
        expect(not copies or copies == [self.copy], f"next to the copy there is {copies}")
        expect(bool(copies) or not is_expected, "there is no copy")
        if copies:
            with Store.open(self.copy) as store:
                for queue, bodies in self.known.items():
                    high = store.range("orders", queue)[1]
                    found = [record.body for record in store.read("orders", queue, 0, high)]
                    expect(found == bodies, f"queue {queue} of the copy has other messages than were sent")
            report = check([self.copy], profile="strict")
            expect(report.verdict == "conforms", f"the strict check says of the copy that it {report.verdict}")
            shutil.rmtree(self.copy)

    def close(self) -> None:
        """A clean stop; what lies behind the log's end is zeros then."""
        self.store.close()
        end = self.store.core.log.end
        for file in (self.folder / "commitlog").iterdir():
            behind = file.read_bytes()[max(0, end - int(file.name)) :]
            expect(not any(behind), f"{file.name}: bytes behind the log's end, {end}, are not zeros")


# -- verbs -----------------------------------------------------------------------------------------------------------

Verb = Callable[[InterruptedClient], Callable[[], Any]]
"""Makes a store ready, and returns the call that is to be interrupted."""


def _appending(client: InterruptedClient, *, after: int, size: int = 20, queue: int = 0) -> Callable[[], Any]:
    client.open()
    client.fill(after)
    client.asked = [(queue, b"x" * size)]
    return partial(client.store.append, "orders", queue, b"x" * size, tag="t")


def _batching(client: InterruptedClient, *, messages: int) -> Callable[[], Any]:
    client.open()
    client.fill(4)
    client.asked = [(number % 2, b"%d" % number * 30) for number in range(messages)]
    batch = Messages.of_list([("orders", queue, body, {}) for queue, body in client.asked])
    return partial(client.store.append_batch, batch)


def _synchronous(client: InterruptedClient) -> Callable[[], Any]:
    client.settings = Settings(synchronous=True, **SETTINGS)  # type: ignore[arg-type]
    return _appending(client, after=3)


def _on_a_store(ask: Callable[[Store], Callable[[], Any]], *, seen: bool = True) -> Verb:
    def verb(client: InterruptedClient) -> Callable[[], Any]:
        client.open()
        client.fill(40)
        if seen:
            client.see()
        return ask(client.store)

    return verb


def _expire(client: InterruptedClient) -> Callable[[], Any]:
    client.open()
    client.fill(40)
    client.see()
    client.store.flush()
    client.first = len(client.known[0])
    return partial(client.store.expire, 1 << 60)


def _backup(client: InterruptedClient) -> Callable[[], Any]:
    client.open()
    client.fill(20)
    client.copy = client.folder.parent / f"{client.folder.name}.copy"
    return partial(client.store.backup, client.copy)


def _open(client: InterruptedClient) -> Callable[[], Any]:
    client.open()
    client.fill(10)
    client.store.close()
    return client.open


def _open_again(client: InterruptedClient) -> Callable[[], Any]:
    client.open()
    client.fill(10)
    client.store.abandon()
    return client.open


VERBS: dict[str, Verb] = {
    "append.first": partial(_appending, after=0),
    "append.next": partial(_appending, after=3),
    "append.queue": partial(_appending, after=3, queue=7),
    "append.full": partial(_appending, after=6, size=1600),
    "append.synchronous": _synchronous,
    "append_batch.small": partial(_batching, messages=6),
    "append_batch.files": partial(_batching, messages=40),
    "read": _on_a_store(lambda store: partial(store.read, "orders", 0, 0)),
    "at": _on_a_store(lambda store: partial(store.at, 0)),
    "range": _on_a_store(lambda store: partial(store.range, "orders", 0)),
    "number_at": _on_a_store(lambda store: partial(store.number_at, "orders", 0, 1_700_000_010_000)),
    "wait_for": _on_a_store(lambda store: partial(store.wait_for, "orders", 0, 13), seen=False),
    "wait_for.never": _on_a_store(lambda store: partial(store.wait_for, "orders", 0, 10**6, 0.001)),
    "wait": _on_a_store(lambda store: partial(store.wait, store.core.log.end), seen=False),
    "flush": _on_a_store(lambda store: store.flush, seen=False),
    "expire": _expire,
    "backup": _backup,
    "stats": _on_a_store(lambda store: store.stats),
    "close": _on_a_store(lambda store: store.close, seen=False),
    "abandon": _on_a_store(lambda store: store.abandon, seen=False),
    "open.clean": _open,
    "open.crashed": _open_again,
}
"""By name: each public verb, in the situations that it distinguishes."""


NEVER = 1 << 62
"""A point that no verb comes to."""


# -- a case ----------------------------------------------------------------------------------------------------------


def run_case(case: InterruptCase, *, checked: bool = False) -> bool:
    """Run it; False where the verb ends before that point. Raises Mismatch, and what the store should not have raised.

    `checked`: `gapless check --profile strict` judges the folder in the end, too.
    """
    with _folder() as folder:
        try:
            with _in_time(PATIENCE):
                was_reached = _run(InterruptedClient(Path(folder)), case)
        except Exception as error:
            raise Mismatch(f"{case}: {type(error).__name__}: {error}") from error
        if checked:
            report = check([folder], profile="strict")
            expect(report.verdict == "conforms", f"{case}: the strict check says that it {report.verdict}")
        return was_reached


@contextmanager
def _in_time(seconds: float) -> Iterator[None]:
    """Limit the time within the context, with a Mismatch at its end. For main threads, which signals reach."""

    def hangs(_signal: int, _frame: object) -> None:
        raise Mismatch(f"nothing happens for {seconds:.0f} s: it hangs")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _run(client: InterruptedClient, case: InterruptCase) -> bool:
    call = VERBS[case.verb](client)
    interrupter = Interrupter(case.point)
    interrupt = interrupter.call(call)  # kept to the end, with all that its traceback refers to
    swallowed = interrupter.was_swallowed
    expect(swallowed or interrupter.has_come == (interrupt is not None), "the interrupt was swallowed")
    client.compare_copy(is_expected=interrupt is None)
    if case.verb.startswith("open"):
        if interrupt is not None:
            client.open()
    elif case.verb in ENDINGS:
        getattr(client.store, case.verb)()
        expect(case.verb == "abandon" or not (client.folder / "abort").exists(), "it was no clean stop")
        client.open()
    elif case.ending == "abandon":
        client.store.abandon()
        client.open()
    client.go_on(interrupt, is_crash=case.ending == "abandon")
    client.see()
    client.close()
    client.open()
    client.compare()
    client.append(0, b"the last")
    client.close()
    return interrupter.has_come


def _folder() -> tempfile.TemporaryDirectory[str]:
    """A folder, in memory if the machine has such: no power fails here, and no test waits for a disk."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder in it has a name that cannot be guessed
    return tempfile.TemporaryDirectory(
        prefix="gapless-", dir=memory if memory.is_dir() else None, ignore_cleanup_errors=True
    )


MOST = 3
"""Failures of a verb after which its other points are left out."""


def every_point(verb: str, step: int = 1, *, first: int = 1, checked: int = 0) -> CaseTally:
    """Interrupt a verb at every `step`-th point from `first` on, until it ends without; the endings take turns.

    The strict check judges what every `checked`-th case leaves.
    """
    tally = CaseTally()
    for number, point in enumerate(count(first, step), 1):
        case = InterruptCase(verb, point, ENDINGS[number % 2])
        try:
            if not run_case(case, checked=bool(checked) and number % checked == 0):
                break
        except Mismatch as wrong:
            tally.failures.append(Failure(str(case), str(wrong)))
            if len(tally.failures) == MOST:
                break
        tally.cases += 1
    return tally


def some_points(verb: str, most: int) -> CaseTally:
    """Interrupt as `every_point` does, at some `most` points of the verb, evenly apart.

    The first call in a process loads native code, and has more points than those that follow.
    """
    return every_point(verb, step=1 + min(points(verb), points(verb)) // most)


def points(verb: str) -> int:
    """The number of a verb's points. It varies a little: a waiting thread looks again at each wake-up."""
    with _folder() as folder:
        client, interrupter = InterruptedClient(Path(folder)), Interrupter(NEVER)
        interrupter.call(VERBS[verb](client))
        client.store.close()
        return NEVER - interrupter.left
