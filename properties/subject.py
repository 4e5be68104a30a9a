"""A subject: a store that machines compare with the specs, step by step, knowing nothing else of it.

To test your own log and queues, write one class that derives from `Subject`. The machines of
`gapless.properties.machines` call its verbs in whatever order they like, on a disk that they lose and break as they
like, and compare it with `gapless.spec` after every step: `as_log`, `as_queue` and `as_dispatch` say what its state
means there. docs/your-own-store.md is a page to follow.

It is called by one thread, in the machine's own process. The subjects of the black-box machine are others: processes,
which are asked over pipes and killed (docs/black-box.md).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, cast

import immutables

from gapless.properties.simulation.simulated_disk import SimulatedDisk
from gapless.spec import dispatch as dispatch_spec
from gapless.spec import log as log_spec
from gapless.spec import queue as queue_spec
from gapless.spec.language import Map, Number, Position

QueueName = tuple[str, int]
"""A topic, and the number of one of its queues."""

QueueEntry = tuple[int, int, int]
"""What a queue says of a message: its position in the log, the bytes of its record, the code of its tag."""

ENDLESS = 1 << 62
"""The size of a log file, where a log has only one."""

V = TypeVar("V", bound=int)


class NewMessage(NamedTuple):
    """A message to be appended. `properties`: what it carries besides its tag."""

    queue: QueueName
    body: bytes
    tag: str = ""
    properties: Mapping[str, str] = {}


class MessagePlace(NamedTuple):
    """The place of a message. `position`: of its record in the log · `size`: its bytes · `number`: in its queue."""

    position: int
    size: int
    number: int


class StoredMessage(NamedTuple):
    """A message that is in the log. `time`: when it was stored, in ms."""

    message: NewMessage
    position: int
    size: int
    number: int
    time: int


class QueueReach(NamedTuple):
    """The ends of a queue. Each is a number; all but the first are exclusive ends.

    `first`: of its messages that have not expired · `committed`: consumers see what is before it · `flushed`: these
    entries survive a crash · `scanned`: dispatch has met these · `next`: what the next message gets.
    """

    first: int
    committed: int
    flushed: int
    scanned: int
    next: int


class DispatchProgress(NamedTuple):
    """The progress of dispatch, and the checkpoint.

    `scanned`: where in the log the next batch begins · `dispatched`: all before that position is visible · `full`: the
    last `scan` cut nothing since too much is in flight · `idle`: nothing is in flight · `checkpoint`: what was stored
    up to that time, in ms, is on disk, as the checkpoint has it.
    """

    scanned: int
    dispatched: int
    full: bool
    idle: bool
    checkpoint: int


class SubjectBatch(Protocol):
    """The part of the log, from `low` to `high`, that a worker builds at a time.

    `entries`: of each entry that is due: its queue, its number, position and size; in the order of the log. A batch
    equals no other one.
    """

    @property
    def low(self) -> int:
        """Its begin in the log."""

    @property
    def high(self) -> int:
        """Its exclusive end: the next one begins there."""

    @property
    def entries(self) -> Sequence[tuple[QueueName, int, int, int]]:
        """The part to be built."""


@dataclass(frozen=True, slots=True)
class SubjectLayout:
    """The layout and the settings of the store.

    `file_size`: bytes of a log file, `ENDLESS` for a subject without `roll` · `queue_entries`: of a queue's file; a
    hint · `synchronous`: consumers see only what is on disk · `batch_records`: of a batch, at most · `in_flight`:
    batches that are cut and not visible yet, at most · `overlap`: two workers may be at one queue · `checksums`: a hint
    · `queues`: those that are there from the beginning · `retries`: how often a batch that failed is tried again, None
    for whatever is usual · `bitmap`: entries that a bitmap has room for at first; a hint.
    """

    file_size: int
    queue_entries: int = 10
    synchronous: bool = False
    batch_records: int = 1 << 14
    in_flight: int = 8
    overlap: bool = True
    checksums: bool | None = None
    queues: tuple[QueueName, ...] = ()
    retries: int | None = None
    bitmap: int | None = None


class SubjectErrors(NamedTuple):
    """The errors that verbs raise, and nothing else.

    `any`: the class of them all · `refused`: it cannot be done as it was asked for, and nothing has changed ·
    `stopped`: the disk failed, and nothing is appended any more; or a worker did, and nothing is dispatched any more ·
    `damaged`: what lies in the log is not what belongs there; says in which file, and of which queue.
    """

    any: type[Exception]
    refused: type[Exception]
    stopped: type[Exception]
    damaged: type[Exception]


class MissingVerb(Exception):  # noqa: N818 - it names a finding.
    """A subject has no such verb. A machine that asks for one nevertheless is wrong."""


OPTIONAL = (
    *("roll", "expire", "append_many", "make_ready", "acknowledge", "checkpoint"),
    *("claim", "flawed", "find", "find_file", "outlived", "rebuild"),
    *("failed", "spoil", "restart", "on_disk", "overlap", "record"),
)
"""What a subject may do without, if it says why. Verbs, but for two: `claim` is `append` with a number and `take_back`,
and `overlap` that several workers are at one queue."""


class Subject(Protocol):
    """A store, open or not. It is made by calling its class without arguments, and used for one run.

    `errors`: what its verbs raise · `files`: patterns of its files on the disk, of the `log`, and of the `queues` if
    they have any ·
    `absent`: which of `OPTIONAL` it has not, and why · `flawless`: which flaws (`flawed` names them) its records cannot
    have, and why. A machine leaves out what needs them, and says so.

    Of positions and numbers, `low:high` is from `low` to before `high`. PowerLost, which the disk raises, goes through
    all verbs.
    """

    errors: ClassVar[SubjectErrors]
    files: ClassVar[Mapping[str, str]]
    absent: ClassVar[Mapping[str, str]] = {}
    flawless: ClassVar[Mapping[str, str]] = {}

    # -- a life ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def open(self, disk: SimulatedDisk, layout: SubjectLayout) -> None:
        """The store on this disk is open, new or found; every message found has its entry, visible and on disk.

        Refused where a store on this disk is open already. Then, and where it fails, all stays as it was.
        """

    @abstractmethod
    def close(self, now: int) -> None:
        """A clean stop: all is on disk, and every message has its entry, visible. `now`: ms."""

    @abstractmethod
    def die(self) -> None:
        """The process is gone: nothing more is written, and what it had in memory is lost."""

    # -- the log -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def append(self, message: NewMessage, now: int, number: int | None = None) -> MessagePlace:
        """The message is at the log's end, in the next file if it does not fit: then the file before it is flushed.

        It is stored at `now`, in ms, or at the newest time before, if that is later. With `number`, the record carries
        that, whatever is due. Refused if it fits into no file.
        """

    @abstractmethod
    def flush(self) -> int:
        """All that is in the log is on disk; returns its end. Raises `errors.stopped` where the disk failed."""

    @abstractmethod
    def read(self, position: int) -> StoredMessage:
        """The message whose record begins there. Refused, or anything else of `errors.any`, if none does."""

    @abstractmethod
    def records(self) -> Iterable[StoredMessage]:
        """Every message of the log, from its start to its end."""

    # -- dispatch ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def scan(self) -> SubjectBatch | None:
        """The next batch is cut from the log: its messages have their numbers. None if there is none, or no room.

        A synchronous store scans what is on disk. Raises `errors.damaged` where a number is not the one that is due.
        """

    @abstractmethod
    def take(self, batch: SubjectBatch | None = None) -> SubjectBatch | None:
        """A worker takes a batch: this one, or the oldest that it may; None if there is none. Refused if it may not."""

    @abstractmethod
    def build(self, batch: SubjectBatch) -> None:
        """The worker writes the entries, where no consumer looks yet."""

    @abstractmethod
    def wrote(self, batch: SubjectBatch) -> None:
        """The worker says that it has. Refused if no worker has the batch."""

    @abstractmethod
    def commit(self, queue: QueueName) -> int:
        """Consumers see every entry of the queue that no gap stands before; returns where they end."""

    @abstractmethod
    def flush_queues(self) -> None:
        """Visible entries are on disk, as far as their messages are."""

    # -- what is seen of it ------------------------------------------------------------------------------------------

    @abstractmethod
    def as_log(self) -> log_spec.State:
        """The meaning of the log in `spec/log.py`; its initial state if the store is not open."""

    @abstractmethod
    def size(self, message: NewMessage) -> int:
        """The bytes of the message's record. It follows from the message and the layout alone."""

    @abstractmethod
    def tag_code(self, tag: str) -> int:
        """The code of a tag, as entries have it; 0 for no tag."""

    @abstractmethod
    def queues(self) -> Sequence[QueueName]:
        """The queues that the store knows, in an order that stays."""

    @abstractmethod
    def reach(self, queue: QueueName) -> QueueReach:
        """The progress of a queue that the store knows."""

    @abstractmethod
    def entries(self, queue: QueueName, low: int, high: int) -> list[QueueEntry]:
        """The entries `low:high`, as they lie there."""

    @abstractmethod
    def taken(self, queue: QueueName) -> Sequence[int]:
        """The numbers from the commit position on that a worker took in this life, whatever became of it."""

    @abstractmethod
    def written(self, queue: QueueName) -> Sequence[int]:
        """The numbers from the commit position on whose entries are written."""

    @abstractmethod
    def progress(self) -> DispatchProgress:
        """The progress of dispatch."""

    # -- optional verbs ----------------------------------------------------------------------------------------------

    def append_many(self, messages: Sequence[NewMessage], now: int) -> list[MessagePlace]:
        """All of them, one after the other. Refused, and none is appended, if one fits into no file."""
        raise MissingVerb("append_many")

    def roll(self) -> None:
        """A blank fills the file, the file is flushed, and the next one begins."""
        raise MissingVerb("roll")

    def make_ready(self) -> None:
        """The next log file is made before it is needed."""
        raise MissingVerb("make_ready")

    def acknowledge(self, to: int) -> None:
        """Report to producers that all before `to` is safe. Refused if it is not."""
        raise MissingVerb("acknowledge")

    def checkpoint(self, now: int) -> int:
        """The checkpoint says what is on disk; returns up to which time, in ms. `now`: ms."""
        raise MissingVerb("checkpoint")

    def expire(self, before: int) -> int:
        """Log files whose messages were all stored before that time, in ms, are gone; returns where the log begins.

        What is not on disk or not visible yet stays, and so does the last file.
        """
        raise MissingVerb("expire")

    def commit_all(self, batch: SubjectBatch) -> None:
        """`commit` of every queue of a batch, in one step."""
        for queue in sorted({queue for queue, *_ in batch.entries}):
            self.commit(queue)

    def failed(self, batch: SubjectBatch, error: Exception) -> bool:
        """A worker could not build its batch; returns whether it is tried again. If not, dispatch stops, and says why.

        Refused if no worker has the batch.
        """
        raise MissingVerb("failed")

    def spoil(self, batch: SubjectBatch) -> None:
        """A worker that is about to fail leaves rubbish in place of its entries."""
        raise MissingVerb("spoil")

    def restart(self, kept: Mapping[QueueName, int], position: int) -> None:
        """Begin dispatch again at a position of the log; each queue keeps `kept` entries, with rubbish behind."""
        raise MissingVerb("restart")

    def take_back(self, due: int) -> None:
        """The last message, which `scan` refused, is removed without a trace; `due`: the next number of its queue."""
        raise MissingVerb("claim")

    def flawed(self, flaw: str, message: NewMessage, at: int, time: int) -> int:
        """The log's end that a start finds if a record of this message lies at `at`. It changes nothing.

        `flaw` is empty, or what is wrong with it: it names another position as its own (`claimed`), has a strange magic
        number (`known`), parts that do not add up (`fits`), or a wrong checksum of its body (`intact`) or of its
        properties (`sealed`).
        """
        raise MissingVerb("flawed")

    def find(
        self, disk: SimulatedDisk, layout: SubjectLayout, message: NewMessage, number: int, start: int, time: int
    ) -> MessagePlace:
        """Another store is open in place of this one, on an empty disk: its log begins at `start`, with this record.

        Raises where the record cannot be the first of its queue: then all stays as it was.
        """
        raise MissingVerb("find")

    def find_file(self, disk: SimulatedDisk, layout: SubjectLayout, length: int) -> None:
        """Open and close the store on this disk, stopped in order, with a queue file of `length` bytes in it.

        That is not the store that is open. Raises where it does not open.
        """
        raise MissingVerb("find_file")

    def outlived(self, queue: QueueName) -> list[tuple[int, int]]:
        """Number and position of the entries that are still there though their messages have expired."""
        raise MissingVerb("outlived")

    def rebuild(self) -> None:
        """All queues are deleted, and built again from the log."""
        raise MissingVerb("rebuild")

    def on_disk(self, queue: QueueName, low: int, high: int) -> list[QueueEntry]:
        """The entries `low:high`, or fewer, as they would be found after a loss of power."""
        raise MissingVerb("on_disk")

    def record(self) -> None:
        """From the next `open` on, all it does is recorded."""
        raise MissingVerb("record")

    def replay(self) -> Counter[str]:
        """The checker replays what was recorded, and nothing is recorded any more; how many events there were.

        Raises Nonconformance.
        """
        return Counter()

    # -- what it means in the specs ----------------------------------------------------------------------------------

    def as_queue(self, name: QueueName) -> queue_spec.State:
        """A queue: messages as a walk through the log finds them, entries as consumers see them."""
        messages: dict[Number, StoredMessage] = {}
        for record in self.records():
            if record.message.queue == name:
                if not record.number:
                    messages.clear()  # the topic was deleted and created again
                messages[Number(record.number)] = record
        reach = self.reach(name)
        entries = dict(enumerate(self.entries(name, reach.first, reach.committed), reach.first))
        return queue_spec.State(
            start=Position(self.as_log().start),
            first=Number(reach.first),
            indexed=Number(reach.committed),
            end=Number(reach.next),
            positions=_map({number: Position(record.position) for number, record in messages.items()}),
            sizes=_map({number: record.size for number, record in messages.items()}),
            tags=_map({number: self.tag_code(record.message.tag) for number, record in messages.items()}),
            entry_positions=_map({Number(number): Position(entry[0]) for number, entry in entries.items()}),
            entry_sizes=_map({Number(number): entry[1] for number, entry in entries.items()}),
            entry_tags=_map({Number(number): entry[2] for number, entry in entries.items()}),
        )

    def as_dispatch(self, name: QueueName, model: dispatch_spec.State) -> dispatch_spec.State:
        """Dispatch of one queue.

        A worker took and wrote every visible entry; the subject knows which later ones it took and wrote. A worker that
        is alone at a queue takes its numbers one by one, and says when all are written. What only a history knows
        (`lives`, `start`, and who came last where workers may overlap) is the model's.
        """
        reach = self.reach(name)
        visible = range(model.start, reach.committed)
        written, taken = self.written(name), self.taken(name)
        at = model.at
        if not model.overlap:
            at = Number(min((number for number in taken if number not in written), default=dispatch_spec.NO_NUMBER))
            taken = [number for number in taken if number in written or number == at]
        bits = _ones(visible, written)
        return dispatch_spec.State(
            lives=model.lives,
            overlap=model.overlap,
            start=model.start,
            flushed=Number(reach.flushed),
            committed=Number(reach.committed),
            scanned=Number(reach.scanned),
            at=at,
            taken=_ones(visible, taken),
            bits=bits,
            written=bits,
        )


def path_of(queue: QueueName) -> str:
    """The name of a queue in reports."""
    return f"{queue[0]}/{queue[1]}"


def require_all_verbs(kind: Any) -> None:
    """A subject has every optional verb, or says why not: otherwise something would be left out in silence.

    `kind`: a class, or an object of it. Raises TypeError.
    """
    strange = sorted(kind.absent.keys() - {*OPTIONAL})
    if strange:
        raise TypeError(f"{_name(kind)}.absent names {', '.join(strange)}: expected some of {', '.join(OPTIONAL)}")
    untold = [
        verb
        for verb in OPTIONAL
        if verb not in kind.absent and verb != "overlap" and _of_class(kind, verb) is getattr(Subject, _method(verb))
    ]
    if untold:
        raise TypeError(
            f"{_name(kind)} has no {', '.join(untold)}: define it, or say in `absent` why there is none, so that what "
            "is left out can be listed"
        )


def _of_class(kind: Any, verb: str) -> object:
    return getattr(kind if isinstance(kind, type) else type(kind), _method(verb))


def _name(kind: Any) -> str:
    return (kind if isinstance(kind, type) else type(kind)).__name__


def _method(verb: str) -> str:
    return "take_back" if verb == "claim" else verb


def _ones(*numbers: Sequence[int]) -> Map[Number, int]:
    return Map(0, immutables.Map({Number(number): 1 for some in numbers for number in some}))


def _map(entries: dict[Number, V]) -> Map[Number, V]:
    return Map(cast("V", 0), immutables.Map({number: value for number, value in entries.items() if value}))
