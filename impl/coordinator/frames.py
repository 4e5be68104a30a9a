"""Frames between a client and a coordinator: a u32 length and so many bytes, all big-endian.

A frame is a kind (u8), the number of the request that it asks or answers (u64), and the rest, which the kind says. The
first frame of a connection is HELLO, and its answer WELCOME. A frame that is none ends the connection: the coordinator
says why, in a NO to request `OF_THE_CONNECTION`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from gapless.impl.coordinator.steps import LONGEST_NAME, Status

VERSION = 1
LONGEST = LONGEST_NAME + 64  # bytes of a frame, without its length
OF_THE_CONNECTION = 2**64 - 1

_LENGTH = struct.Struct(">I")
_HEAD = struct.Struct(">BQ")


class Kind(IntEnum):
    """Kinds of frames, each with its content behind the head."""

    HELLO = 1  # u16 version, the client's 16 bytes
    OPEN = 2  # u64: below it, the client asks no more; u64 life in ms
    ADD = 3  # u64 transaction, then the name
    END = 4  # u64 transaction, u8: 1 to commit, 0 to abort
    WELCOME = 17  # u16 version
    DONE = 18  # u64 transaction, u8 its status
    NO = 19  # u8 why, then a sentence


class Why(IntEnum):
    """Reasons why a request failed."""

    UNKNOWN = 1  # there is no such transaction, or its outcome is not kept any more
    OTHERWISE = 2  # it ends otherwise
    REFUSED = 3  # what was asked for cannot be
    FAILED = 4  # the log could not be written, and nothing was changed
    CONFUSED = 5  # the frame is none, or comes at the wrong time


class BadFrame(Exception):  # noqa: N818 - it names a finding.
    """Bytes that are no frame of ours."""


class Hello(NamedTuple):
    """A client says who it is, and in which version it speaks."""

    version: int
    client: bytes


class OpenRequest(NamedTuple):
    """A transaction is asked for. `below`: the client asks no more by requests with lower numbers."""

    below: int
    life: int


class AddName(NamedTuple):
    """A participant joins a transaction."""

    number: int
    name: bytes


class End(NamedTuple):
    """A transaction is to end."""

    number: int
    commit: bool


class Welcome(NamedTuple):
    """The coordinator understands this version."""

    version: int


class IsDone(NamedTuple):
    """The request is done, and on disk."""

    number: int
    status: Status


class No(NamedTuple):
    """It is not."""

    why: Why
    sentence: str


Content = Hello | OpenRequest | AddName | End | Welcome | IsDone | No


def frame(request: int, content: Content) -> bytes:
    """The frame of this content, with its length."""
    kind, rest = _packed(content)
    return _LENGTH.pack(_HEAD.size + len(rest)) + _HEAD.pack(kind, request) + rest


def _packed(content: Content) -> tuple[Kind, bytes]:  # noqa: PLR0911 - a case each
    match content:
        case Hello(version, client):
            return Kind.HELLO, struct.pack(">H16s", version, client)
        case OpenRequest(below, life):
            return Kind.OPEN, struct.pack(">QQ", below, life)
        case AddName(number, name):
            return Kind.ADD, struct.pack(">Q", number) + name
        case End(number, commit):
            return Kind.END, struct.pack(">QB", number, commit)
        case Welcome(version):
            return Kind.WELCOME, struct.pack(">H", version)
        case IsDone(number, status):
            return Kind.DONE, struct.pack(">QB", number, status)
        case No(why, sentence):
            return Kind.NO, struct.pack(">B", why) + sentence.encode()[:LONGEST_NAME]


def content_of(data: bytes) -> tuple[int, Content]:
    """The request of a frame without its length, and its content. Raises BadFrame."""
    if len(data) < _HEAD.size:
        raise BadFrame(f"a frame of {len(data)} bytes, expected at least {_HEAD.size}")
    kind, request = _HEAD.unpack_from(data)
    try:
        return request, _unpacked(kind, data[_HEAD.size :])
    except (struct.error, ValueError) as error:
        raise BadFrame(f"a frame of kind {kind} with {len(data)} bytes: {error}") from error


def _unpacked(kind: int, rest: bytes) -> Content:  # noqa: PLR0911 - as above
    match Kind(kind):
        case Kind.HELLO:
            return Hello(*struct.unpack(">H16s", rest))
        case Kind.OPEN:
            return OpenRequest(*struct.unpack(">QQ", rest))
        case Kind.ADD:
            return AddName(struct.unpack_from(">Q", rest)[0], rest[8:])
        case Kind.END:
            number, commit = struct.unpack(">QB", rest)
            return End(number, bool(commit))
        case Kind.WELCOME:
            return Welcome(*struct.unpack(">H", rest))
        case Kind.DONE:
            number, status = struct.unpack(">QB", rest)
            return IsDone(number, Status(status))
        case Kind.NO:
            (why,) = struct.unpack_from(">B", rest)
            return No(Why(why), rest[1:].decode(errors="replace"))


class Frames:
    """Cuts what arrives into frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, Content]]:
        """The frames that are whole now. Raises BadFrame: what follows is not to be understood."""
        self._rest += data
        at = 0
        try:
            while len(self._rest) - at >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(self._rest, at)
                if length > LONGEST:
                    raise BadFrame(f"a frame of {length} bytes, expected at most {LONGEST}")
                low, high = at + _LENGTH.size, at + _LENGTH.size + length
                if high > len(self._rest):
                    return
                at = high
                yield content_of(bytes(self._rest[low:high]))
        finally:
            del self._rest[:at]
