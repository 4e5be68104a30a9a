"""The names that a broker gives: its own topics, and the properties of messages that mean something to it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gapless.traces.sources.rocketmq.columns.bytes import Bytes

INDEX_FOLDER, COMPACTION_FOLDER, TIMER_LOG, TIMER_WHEEL = "index", "compaction", "timerlog", "timerwheel"

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TABLE_HALF_TOPIC = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"  # of halves that a table in RocksDB tells of, and of their ops
TABLE_OP_TOPIC = "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"
HALF_TOPICS = (HALF_TOPIC, TABLE_HALF_TOPIC)
PARKED_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
TIMER_TOPIC = "rmq_sys_wheel_timer"
RETRY, OF_BROKER = "%RETRY%", "rmq_sys_"  # how topics begin of messages that are tried again, and that a broker writes
REVIVE = f"{OF_BROKER}REVIVE_LOG_"  # how the topics begin where a broker keeps what pop consumers were handed
DEAD = "%DLQ%"  # how the topics begin into which a message goes that a consumer sent back too often
LIGHT = "%LMQ%"  # how the topics of light queues begin, which share their records with other queues
DELAYING = (SCHEDULE_TOPIC, TIMER_TOPIC)  # where a delayed message waits, under another queue's number

HALVES = (HALF_TOPIC, 0)  # the queue of halves, and that of ops
OPS = (OP_TOPIC, 0)
TABLE_HALVES = (TABLE_HALF_TOPIC, 0)

UNIQ_KEY = "UNIQ_KEY"
WAIT = "WAIT"
PROPERTY_CRC = "__CRC32#"
MULTI, MULTI_OFFSET = "INNER_MULTI_DISPATCH", "INNER_MULTI_QUEUE_OFFSET"
CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
FIRST_PUT_BACK = "TRAN_PREPARED_QUEUE_OFFSET"
HALF_MARKER = "TRAN_MSG"
REAL_TOPIC = "REAL_TOPIC"
REAL_QUEUE = "REAL_QID"


TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"  # where clients write message traces, unless the broker calls it otherwise
CLOUD_TRACES = "rmq_sys_TRACE_DATA_"  # a region's name follows: clients of access channel CLOUD write there
OF_BROKERS = ("RMQ_SYS_", OF_BROKER, RETRY, DEAD)  # prefixes of topics without clients' own messages
OWN = (LIGHT, RETRY, "RMQ_SYS_", OF_BROKER)  # begin topics that a broker makes when they are needed
MADE_AT_EVERY_START = {SCHEDULE_TOPIC, PARKED_TOPIC, "SELF_TEST_TOPIC", "TBW102", "BenchmarkTest", "OFFSET_MOVED_EVENT"}
REPLIES = "_REPLY_TOPIC"  # ends the topic of answers to requests, which a broker makes, too


def is_made_by_broker(topic: str, settings: Mapping[str, str]) -> bool:
    """True if a broker makes the topic by itself, at a start or when a client needs it."""
    names = {settings.get("brokerName"), settings.get("brokerClusterName", "DefaultCluster")}
    return topic.startswith(OWN) or topic in MADE_AT_EVERY_START | names or topic.endswith(REPLIES)


def is_of_clients(topic: str) -> bool:
    """True if clients write their own messages to a topic of this name."""
    return not topic.startswith(OF_BROKERS) and topic not in (PARKED_TOPIC, *DELAYING)


def is_read_by_consumers(topic: str) -> bool:
    """True if consumers subscribe to topics of this name: brokers have the others for themselves."""
    return not topic.startswith(("RMQ_SYS_", OF_BROKER)) and topic not in (PARKED_TOPIC, *DELAYING)


def as_bytes(name: str) -> Bytes:
    """A name as kernels compare it."""
    return np.frombuffer(name.encode(), np.uint8)
