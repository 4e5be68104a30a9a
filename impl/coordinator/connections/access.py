"""Access to a coordinator: the tokens of transactions, a shared secret, and hosts that only this machine reaches.

A client makes a token for each transaction that it asks for, and sends a digest of it. So a request that is sent again
after a lost answer has the same token, and the coordinator's log holds nothing by which a reader could end anything.

Of a shared secret, both sides prove that they know it, each by a code over what the other one has just drawn (HMAC,
SHA-256): the secret itself is never sent, and what was overheard proves nothing on another connection.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from hashlib import sha256
from pathlib import Path

from gapless.impl.records.errors import Refused

TOKEN = 16  # bytes: of a token, and of its digest
NONCE = 32  # bytes that a side draws for each connection
PROOF = 32  # bytes
SHORTEST_SECRET = 16  # bytes
CLIENT, SERVER = b"gapless coordinator: client", b"gapless coordinator: server"  # who proves

Address = tuple[socket.AddressFamily, tuple[str, int]]


def new_token() -> bytes:
    """A token that cannot be guessed."""
    return secrets.token_bytes(TOKEN)


def new_nonce() -> bytes:
    """Bytes that were never drawn before."""
    return secrets.token_bytes(NONCE)


def digest_of(token: bytes) -> bytes:
    """The digest by which a token is known, and from which it cannot be found."""
    return sha256(token).digest()[:TOKEN]


def is_token_of(token: bytes, digest: bytes) -> bool:
    """True if the digest is this token's; how long that takes tells nothing of it."""
    return hmac.compare_digest(digest_of(token), digest)


def proof(secret: bytes, side: bytes, client: bytes, challenge: bytes, nonce: bytes) -> bytes:
    """The proof of one side of a connection that it knows the secret.

    `challenge`: what the coordinator has drawn · `nonce`: what the client has.
    """
    return hmac.digest(secret, side + challenge + nonce + client, "sha256")


def is_proof(found: bytes, expected: bytes) -> bool:
    """True if both are equal; how long that takes tells nothing of them."""
    return hmac.compare_digest(found, expected)


def check_secret(secret: bytes, where: str = "the secret") -> bytes:
    """The secret, without white space around it. Raises Refused: it could be guessed."""
    stripped = secret.strip()
    if len(stripped) < SHORTEST_SECRET:
        raise Refused(
            f"{where} has {len(stripped)} bytes, expected at least {SHORTEST_SECRET}: "
            "make one with `openssl rand -hex 32`"
        )
    return stripped


def read_secret(path: Path | str) -> bytes:
    """The shared secret in a file. Raises Refused: it could be guessed; OSError."""
    return check_secret(Path(path).read_bytes(), str(path))


def addresses(host: str, port: int) -> list[Address]:
    """The addresses that a host's name stands for; those of all interfaces where it is empty. Raises OSError."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((family, (str(where[0]), int(where[1]))) for family, _, _, _, where in found))


def permitted(host: str, port: int, *, guarded: bool) -> list[Address]:
    """The same; those that other machines reach must be guarded. Raises Refused, OSError."""
    found = addresses(host, port)
    if guarded or all(map(is_loopback, found)):
        return found
    raise Refused(
        f"{host or 'every interface'} can be reached from other machines: give clients a shared secret "
        "(--secret-file), or use TLS (--tls-cert, --tls-key)"
    )


def is_loopback(address: Address) -> bool:
    """True if only this machine reaches the address."""
    ip = ipaddress.ip_address(address[1][0].partition("%")[0])
    return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback
