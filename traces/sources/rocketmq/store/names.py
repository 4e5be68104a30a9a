"""The names that a broker gives: its own topics, and the properties of messages that mean something to it."""

from __future__ import annotations

import numpy as np

from gapless.traces.sources.rocketmq.store.bytes import Bytes

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
PARKED_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
TIMER_TOPIC = "rmq_sys_wheel_timer"
DELAYING = (SCHEDULE_TOPIC, TIMER_TOPIC)  # where a delayed message waits, under another queue's number

HALVES = (HALF_TOPIC, 0)  # the queue of halves, and that of ops
OPS = (OP_TOPIC, 0)

UNIQ_KEY = "UNIQ_KEY"
WAIT = "WAIT"
PROPERTY_CRC = "__CRC32#"
MULTI_OFFSET = "INNER_MULTI_QUEUE_OFFSET"
CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
FIRST_PUT_BACK = "TRAN_PREPARED_QUEUE_OFFSET"
HALF_MARKER = "TRAN_MSG"
REAL_TOPIC = "REAL_TOPIC"
REAL_QUEUE = "REAL_QID"


def as_bytes(name: str) -> Bytes:
    """A name as kernels compare it."""
    return np.frombuffer(name.encode(), np.uint8)
