"""Halves are copied to the log's end, many in a pass: as finals, as newer versions, or to be set aside."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gapless.impl.files.queues import ConsumeQueue
from gapless.impl.records.errors import Refused
from gapless.impl.records.record import Bytes, Ints, Messages, topic_bytes
from gapless.impl.transactions import copy_kernel as k
from gapless.impl.transactions.state import TransactionState


def append_copies(of: TransactionState, numbers: Ints, how: int, now: int) -> Ints:
    """Copies of these halves are in the log: int64 [4, n], as `CommitLog.append_many`. Raises as that does."""
    positions, sizes = of.table.position[numbers - of.table.base], of.table.size[numbers - of.table.base]
    count, total = len(numbers), int(sizes.sum())
    heads, host = np.empty((count, k.HEAD_SIZE), np.uint8), np.frombuffer(of.log.host, np.uint8)
    bodies, properties = np.empty(total, np.uint8), np.empty(total + k.MOST_MORE * count, np.uint8)
    body_ends, property_ends = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    targets = np.zeros((k.TARGET_ROWS, count), np.int64)
    whole: list[Bytes] = []  # what the halves of a run lie in
    begins = [0]
    for data, at in _runs(of, numbers, positions, cached=how == k.AS_FINAL):
        low = begins[-1]
        where = np.zeros(count, np.int64)
        where[low : low + len(at)] = at
        k.copy_halves(
            data, where, low, low + len(at), how, host, heads, positions, bodies, body_ends, properties,
            property_ends, targets,
        )  # fmt: skip
        whole.append(data)
        begins.append(low + len(at))
    if how == k.AS_FINAL:
        pairs, index = _targets(targets, whole, np.array(begins))
        queues = [of.queues.named(*pair) for pair in pairs]
    else:
        queue: ConsumeQueue = of.halves_queue if how == k.AS_VERSION else of.copies_queue
        queues, pairs, index = [queue], [(queue.topic, queue.id)], np.zeros(count, np.int32)
    messages = Messages(
        pairs, index, bodies[: body_ends[-1]], body_ends, properties[: property_ends[-1]], property_ends
    )
    return of.log.append_many(queues, messages, now, heads)


def _runs(of: TransactionState, numbers: Ints, positions: Ints, *, cached: bool) -> list[tuple[Bytes, Ints]]:
    """The bytes in which the halves lie, in their order: files of the log, or what the cache has of them."""
    if cached and len(of.cache):
        taken = [of.cache.take(number) for number in numbers.tolist()]
    else:
        taken = [None] * len(numbers)
        of.cache.misses += len(numbers) if cached else 0
    has = np.array([raw is not None for raw in taken], np.bool_)
    bases = np.where(has, -1, positions // of.log.file_size)
    cuts = [0, *(np.flatnonzero(np.diff(bases)) + 1).tolist(), len(numbers)]
    runs: list[tuple[Bytes, Ints]] = []
    for low, high in pairwise(cuts):
        if has[low]:
            parts = [raw for raw in taken[low:high] if raw is not None]
            ends = np.cumsum([0, *map(len, parts)])
            runs.append((np.frombuffer(b"".join(parts), np.uint8), ends[:-1]))
        else:
            data, base = of.log.view(int(positions[low]))
            runs.append((data, positions[low:high] - base))
    return runs


def _targets(targets: Ints, whole: list[Bytes], begins: Ints) -> tuple[list[tuple[str, int]], np.ndarray]:
    """The queues that finals are to go to, and which of them is that of each: int32 [n]. Raises Refused."""
    _, first, index = np.unique(targets[k.DIGEST], return_index=True, return_inverse=True)
    pairs = []
    for at in first.tolist():
        _, low, size, queue = targets[:, at].tolist()
        data = whole[int(np.searchsorted(begins, at, side="right")) - 1]
        topic = data[low : low + size].tobytes().decode(errors="backslashreplace")
        topic_bytes(topic)
        if queue < 0:
            raise Refused(f"topic {topic!r}: the half does not say for which queue it is")
        pairs.append((topic, queue))
    return pairs, index.astype(np.int32)
