"""New halves: what they say of their transaction, and what is refused before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import cast

import numpy as np

from gapless.impl.files.log import CommitLog
from gapless.impl.records.errors import Refused
from gapless.impl.records.input_checks import first_unsound, queue_number
from gapless.impl.records.kernels import SEAL
from gapless.impl.records.record import (
    BLANK,
    FIXED,
    LONGEST_PROPERTIES,
    Bytes,
    Ints,
    Messages,
    properties_bytes,
    topic_bytes,
)
from gapless.impl.transactions import names
from gapless.impl.transactions.copy_kernel import HALF_MORE, MOST_MORE, half_properties

_LONGEST = LONGEST_PROPERTIES - SEAL - MOST_MORE
_FORBIDDEN = (*names.OWN_PROPERTIES, *names.DELAYING)
_FORBIDDEN_BYTES = np.frombuffer(b"".join(name.encode() + b"\x01" for name in _FORBIDDEN), np.uint8)
_FORBIDDEN_ENDS = np.cumsum([0, *(len(name) + 1 for name in _FORBIDDEN)])


@lru_cache(1 << 12)
def _target(topic: str, queue: int) -> bytes:
    """The target of a half's message. Raises Refused."""
    topic_bytes(topic)
    names.require_not_own(topic, "no transaction can be for it")
    return properties_bytes({names.REAL_TOPIC: topic, names.REAL_QUEUE: str(queue_number(queue))})


@lru_cache(1 << 10)
def _of_group(group: str) -> bytes:
    if not group or not group.isprintable():
        raise Refused(f"group {group!r}: expected the name of a group of producers")
    return properties_bytes({names.MARKER: "true", names.PRODUCER_GROUP: group})


def half_of(topic: str, queue: int, properties: Mapping[str, str], group: str, key: str) -> bytes:
    """The properties of a half, as they lie in its record. Raises Refused."""
    if properties and (wrong := [name for name in _FORBIDDEN if name in properties]):
        raise Refused(f"property {wrong[0]!r}: the store's own to write, or what would delay a half; leave it out")
    keys = f"{names.KEY}\x01{key}\x02{names.TRANSACTION_ID}\x01{key}\x02".encode()
    return (properties_bytes(properties) if properties else b"") + _of_group(group) + keys + _target(topic, queue)


def require_room(log: CommitLog, body: int, properties: int) -> None:
    """Check that the half, and all that it may become, fits into records. Raises Refused.

    A final is shorter; a copy that was put back says how often, and its topic is two bytes longer when it is set aside.
    """
    if properties > _LONGEST:
        raise Refused(f"{properties} bytes of properties, expected at most {_LONGEST} for a half; put them in the body")
    size = FIXED + len(names.PARKED_TOPIC) + body + properties + MOST_MORE + SEAL + BLANK
    if size > log.file_size:
        raise Refused(f"a half of {size} bytes, expected at most {log.file_size}, what a file has")


def halves_of(log: CommitLog, messages: Messages, group: str, prefix: str, first_key: int) -> Messages:
    """Many messages as halves, for the queue of halves. `messages`: as `sound` returns them. Raises Refused."""
    count = len(messages.queue_index)
    given_ends = cast("Ints", messages.property_ends)
    bad = first_unsound(messages.properties, given_ends, _FORBIDDEN_BYTES, _FORBIDDEN_ENDS)
    if bad >= 0:
        raise Refused(f"message {bad}: its properties are the store's own to write, or would delay a half")
    before = _of_group(group)
    targets = [_target(topic, queue) for topic, queue in messages.queues]
    target_ends = np.cumsum([0, *map(len, targets)])
    lengths = np.diff(given_ends) + len(before) + HALF_MORE + np.diff(target_ends)[messages.queue_index]
    if count:
        require_room(log, int(np.diff(messages.body_ends).max()), int(lengths.max()))
    out, ends = np.empty(int(lengths.sum()), np.uint8), np.zeros(count + 1, np.int64)
    half_properties(
        messages.properties, given_ends, messages.queue_index, _bytes(before), _bytes(prefix.encode()), first_key,
        _bytes(b"".join(targets)), target_ends, out, ends,
    )  # fmt: skip
    return Messages([(names.HALF_TOPIC, 0)], np.zeros(count, np.int32), messages.bodies, messages.body_ends, out, ends)


def _bytes(text: bytes) -> Bytes:
    return np.frombuffer(text, np.uint8)
