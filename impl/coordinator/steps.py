"""Steps of transactions in a coordinator's log: each a kind and a few numbers, many to a group."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from gapless.impl.coordinator.connections.access import TOKEN
from gapless.impl.records.errors import Refused


class Status(IntEnum):
    """The status of a transaction. It takes a slot until it is COMMITTED or ABORTED."""

    ABSENT = 0
    OPEN = 1
    COMMITTING = 2
    ABORTING = 3
    COMMITTED = 4
    ABORTED = 5


ENDING = {Status.COMMITTING: Status.COMMITTED, Status.ABORTING: Status.ABORTED}
"""What is decided, and what it ends as."""


class Key(NamedTuple):
    """The origin of a transaction: a client (16 random bytes), and the number of its request."""

    client: bytes
    request: int


class Begin(NamedTuple):
    """Transaction `number` is open since `time` (ms since 1970), for at most `life` ms."""

    number: int
    key: Key
    time: int
    life: int


class Add(NamedTuple):
    """A topic or a subscription, by a name of its client's choice, takes part in the transaction."""

    number: int
    name: bytes


class Decide(NamedTuple):
    """Its end begins: it will be committed or aborted. `time`: when it had had its time; None if its client asked."""

    number: int
    to: Status
    time: int | None


class Finish(NamedTuple):
    """All that take part know the outcome."""

    number: int


class Next(NamedTuple):
    """No number below this one is given again."""

    number: int


class Kept(NamedTuple):
    """The outcome of a transaction that ended in a file before this one."""

    number: int
    status: Status


class Owner(NamedTuple):
    """The owner of a transaction: a client that knows the token of this digest may change and end it."""

    number: int
    digest: bytes


Step = Begin | Add | Decide | Finish | Next | Kept | Owner

LONGEST_NAME = 4096  # bytes
_BEGIN = struct.Struct(">QqQ16sQ")
_ADD = struct.Struct(">QH")
_DECIDE = struct.Struct(">QBBq")
_NUMBER = struct.Struct(">Q")
_KEPT = struct.Struct(">QB")
_OWNER = struct.Struct(f">Q{TOKEN}s")


def encoded(steps: Iterable[Step]) -> bytes:
    """The steps as the content of one group."""
    return b"".join(map(_encoded, steps))


def _encoded(step: Step) -> bytes:  # noqa: PLR0911 - a case each
    match step:
        case Begin(number, (client, request), time, life):
            return b"B" + _BEGIN.pack(number, time, life, client, request)
        case Add(number, name):
            return b"A" + _ADD.pack(number, len(name)) + name
        case Decide(number, to, time):
            return b"D" + _DECIDE.pack(number, to, time is not None, time or 0)
        case Finish(number):
            return b"F" + _NUMBER.pack(number)
        case Next(number):
            return b"N" + _NUMBER.pack(number)
        case Kept(number, status):
            return b"K" + _KEPT.pack(number, status)
        case Owner(number, digest):
            return b"O" + _OWNER.pack(number, digest)


def decoded(content: bytes) -> Iterator[Step]:
    """The steps of a group. Raises ValueError: it is none."""
    at = 0
    while at < len(content):
        kind, at = content[at : at + 1], at + 1
        try:
            step, at = _decoded(kind, content, at)
        except struct.error as error:
            raise ValueError(f"a step {kind!r} is cut off at byte {at}") from error
        yield step


def _decoded(kind: bytes, content: bytes, at: int) -> tuple[Step, int]:  # noqa: PLR0911 - as above
    """One step, and where the next one begins."""
    match kind:
        case b"B":
            number, time, life, client, request = _BEGIN.unpack_from(content, at)
            return Begin(number, Key(client, request), time, life), at + _BEGIN.size
        case b"A":
            number, length = _ADD.unpack_from(content, at)
            low = at + _ADD.size
            return Add(number, content[low : low + length]), low + length
        case b"D":
            number, to, timed, time = _DECIDE.unpack_from(content, at)
            return Decide(number, Status(to), time if timed else None), at + _DECIDE.size
        case b"F":
            return Finish(*_NUMBER.unpack_from(content, at)), at + _NUMBER.size
        case b"N":
            return Next(*_NUMBER.unpack_from(content, at)), at + _NUMBER.size
        case b"K":
            number, status = _KEPT.unpack_from(content, at)
            return Kept(number, Status(status)), at + _KEPT.size
        case b"O":
            return Owner(*_OWNER.unpack_from(content, at)), at + _OWNER.size
    raise ValueError(f"{kind!r} at byte {at - 1} is no step")


def check_name(name: bytes) -> None:
    """Check that it can take part. Raises Refused."""
    if not 0 < len(name) <= LONGEST_NAME:
        raise Refused(f"a name of {len(name)} bytes, expected 1 to {LONGEST_NAME}")
