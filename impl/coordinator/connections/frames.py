"""Frames between a client and a coordinator: a u32 length and so many bytes, all big-endian.

A frame is a kind (u8), the number of the request that it asks or answers (u64), and the rest, which the kind says. The
first frame of a connection is HELLO, and its answer WELCOME; where there is a shared secret, CHALLENGE and PROOF come
between. A frame that is none ends the connection: the coordinator says why, in a NO to request `OF_THE_CONNECTION`. It
also ends a connection on which no whole frame came for as long as WELCOME says: a client without requests sends
HEARTBEAT.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from enum import IntEnum
from typing import NamedTuple

from gapless.impl.coordinator.connections.access import NONCE, PROOF, TOKEN
from gapless.impl.coordinator.steps import LONGEST_NAME, Status

VERSION = 2
LONGEST = LONGEST_NAME + 64  # bytes of a frame, without its length
OF_THE_CONNECTION = 2**64 - 1

_LENGTH = struct.Struct(">I")
_HEAD = struct.Struct(">BQ")
_OPEN = struct.Struct(f">QQ{TOKEN}s")
_OF_TRANSACTION = struct.Struct(f">Q{TOKEN}s")
_END = struct.Struct(f">Q{TOKEN}sB")
_WELCOME = struct.Struct(">HI")


class Kind(IntEnum):
    """Kinds of frames, each with its content behind the head."""

    HELLO = 1  # u16 version, the client's 16 bytes
    OPEN = 2  # u64: below it, the client asks no more; u64 life in ms; 16 bytes: the digest of the token
    ADD = 3  # u64 transaction, its token of 16 bytes, then the name
    END = 4  # u64 transaction, its token of 16 bytes, u8: 1 to commit, 0 to abort
    HEARTBEAT = 5  # nothing: the client is there
    PROOF = 6  # the client's nonce of 32 bytes, its proof of 32 bytes
    WELCOME = 17  # u16 version, u32 ms between frames at most (0: any), then the coordinator's proof, or nothing
    DONE = 18  # u64 transaction, u8 its status
    NO = 19  # u8 why, then a sentence
    CHALLENGE = 20  # the coordinator's nonce of 32 bytes


class Why(IntEnum):
    """Reasons why a request failed."""

    UNKNOWN = 1  # there is no such transaction, or its outcome is not kept any more
    OTHERWISE = 2  # it ends otherwise
    REFUSED = 3  # what was asked for cannot be
    FAILED = 4  # the log could not be written, and nothing was changed
    CONFUSED = 5  # the frame is none, or comes at the wrong time
    FOREIGN = 6  # another client began the transaction
    SECRET = 7  # the client does not know the shared secret
    LATE = 8  # no whole frame came for too long


class BadFrame(Exception):  # noqa: N818 - it names a finding.
    """Bytes that are no frame of ours."""


class Hello(NamedTuple):
    """A client says who it is, and in which version it speaks."""

    version: int
    client: bytes


class OpenRequest(NamedTuple):
    """A transaction is asked for. `below`: the client asks no more by requests with lower numbers.

    `owner`: the digest of the transaction's token.
    """

    below: int
    life: int
    owner: bytes


class AddName(NamedTuple):
    """A participant joins a transaction."""

    number: int
    token: bytes
    name: bytes


class End(NamedTuple):
    """A transaction is to end."""

    number: int
    token: bytes
    commit: bool


class Heartbeat(NamedTuple):
    """The client is there, and has nothing to ask for."""


class Challenge(NamedTuple):
    """The client shall prove that it knows the shared secret."""

    nonce: bytes


class Proof(NamedTuple):
    """The client proves it, and the coordinator shall prove it, too."""

    nonce: bytes
    proof: bytes


class Welcome(NamedTuple):
    """The coordinator understands this version. `idle`: ms without a frame after which it ends the connection."""

    version: int
    idle: int = 0
    proof: bytes = b""


class IsDone(NamedTuple):
    """The request is done, and on disk."""

    number: int
    status: Status


class No(NamedTuple):
    """It is not."""

    why: Why
    sentence: str


Content = Hello | OpenRequest | AddName | End | Heartbeat | Proof | Welcome | IsDone | No | Challenge


def frame(request: int, content: Content) -> bytes:
    """The frame of this content, with its length."""
    kind, rest = _packed(content)
    return _LENGTH.pack(_HEAD.size + len(rest)) + _HEAD.pack(kind, request) + rest


def _packed(content: Content) -> tuple[Kind, bytes]:  # noqa: C901, PLR0911 - a case each
    match content:
        case Hello(version, client):
            return Kind.HELLO, struct.pack(">H16s", version, client)
        case OpenRequest(below, life, owner):
            return Kind.OPEN, _OPEN.pack(below, life, owner)
        case AddName(number, token, name):
            return Kind.ADD, _OF_TRANSACTION.pack(number, token) + name
        case End(number, token, commit):
            return Kind.END, _OF_TRANSACTION.pack(number, token) + bytes([commit])
        case Heartbeat():
            return Kind.HEARTBEAT, b""
        case Proof(nonce, proof):
            return Kind.PROOF, nonce + proof
        case Challenge(nonce):
            return Kind.CHALLENGE, nonce
        case Welcome(version, idle, proof):
            return Kind.WELCOME, _WELCOME.pack(version, idle) + proof
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


def _unpacked(kind: int, rest: bytes) -> Content:  # noqa: C901, PLR0911 - as above
    match Kind(kind):
        case Kind.HELLO:
            return Hello(*struct.unpack(">H16s", rest))
        case Kind.OPEN:
            return OpenRequest(*_OPEN.unpack(rest))
        case Kind.ADD:
            number, token = _OF_TRANSACTION.unpack_from(rest)
            return AddName(number, token, rest[_OF_TRANSACTION.size :])
        case Kind.END:
            number, token, commit = _END.unpack(rest)
            return End(number, token, bool(commit))
        case Kind.HEARTBEAT:
            return Heartbeat(*_exactly(rest, 0))
        case Kind.PROOF:
            return Proof(*_exactly(rest, NONCE, PROOF))
        case Kind.CHALLENGE:
            return Challenge(*_exactly(rest, NONCE))
        case Kind.WELCOME:
            version, idle = _WELCOME.unpack_from(rest)
            return Welcome(version, idle, rest[_WELCOME.size :])
        case Kind.DONE:
            number, status = struct.unpack(">QB", rest)
            return IsDone(number, Status(status))
        case Kind.NO:
            (why,) = struct.unpack_from(">B", rest)
            return No(Why(why), rest[1:].decode(errors="replace"))


def _exactly(rest: bytes, *lengths: int) -> tuple[bytes, ...]:
    """Parts of these lengths, and nothing more; those of no length are left out. Raises struct.error."""
    return struct.unpack("".join(f"{length}s" for length in lengths if length), rest)


class Frames:
    """Cuts what arrives into frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def add(self, data: bytes) -> None:
        """Bytes have arrived."""
        self._rest += data

    def whole(self) -> Generator[tuple[int, Content]]:
        """The frames that are whole now, each once. Raises BadFrame: what follows is not to be understood."""
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
