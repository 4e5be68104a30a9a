"""The traces that a check was asked for.

A partition by TOPIC-N, a producer in it by TOPIC-N/ID, a transactional id by __transaction_state/ID, the offset of a
group by __consumer_offsets/GROUP/TOPIC-N, a topic, or all.
"""

from __future__ import annotations

from gapless.traces.options import Options
from gapless.traces.sources.kafka.files.names import OFFSETS_TOPIC, TRANSACTION_TOPIC

ALL = -1
DIGITS = 18
"""Digits of a producer's id: brokers count them up from 0."""


def includes_partition(options: Options, trace: str, topic: str) -> bool:
    """True if a partition is to be read: it, or one of its producers, is asked for, or an id that may have used it."""
    if options.trace is not None:
        return is_joined(options.trace) or options.trace == trace or wanted_producer(options, trace) != ALL
    return options.topic is None or options.topic == topic


def is_joined(trace: str) -> bool:
    """True if a trace is that of a transactional id, or of the offset of a group: all partitions are read for it."""
    return trace.startswith((f"{TRANSACTION_TOPIC}/", f"{OFFSETS_TOPIC}/"))


def wanted_producer(options: Options, trace: str) -> int:
    """Return the id of the producer of a partition that is asked for; `ALL` if none is."""
    partition, slash, producer = (options.trace or "").rpartition("/")
    if not slash or partition != trace or len(producer) > DIGITS or not (producer.isascii() and producer.isdigit()):
        return ALL
    return int(producer)
