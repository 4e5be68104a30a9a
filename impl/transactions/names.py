"""The names by which brokers know transactions: topics, properties, and the group whose cursors the check service has.

Source: docs/rocketmq-transactions.md#prepare, #ops, #park, #cursors.
"""

from __future__ import annotations

from gapless.impl.records.errors import Refused

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
PARKED_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
CHECKING_GROUP = "CID_RMQ_SYS_TRANS"

KEY = "UNIQ_KEY"
CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
REAL_TOPIC = "REAL_TOPIC"
REAL_QUEUE = "REAL_QID"
PRODUCER_GROUP = "PGROUP"
MARKER = "TRAN_MSG"
TRANSACTION_ID = "__transactionId__"

OWN_PROPERTIES = (MARKER, PRODUCER_GROUP, KEY, TRANSACTION_ID, REAL_TOPIC, REAL_QUEUE, CHECK_TIMES)
"""What a half says of its transaction, written by the store."""
DELAYING = ("DELAY", "TIMER_DELAY_MS", "TIMER_DELAY_SEC", "TIMER_DELIVER_MS")
"""What would send a half through another topic, and lose its own (docs/rocketmq-transactions.md#delayed-half)."""
OWN_TOPICS = (HALF_TOPIC, OP_TOPIC, PARKED_TOPIC, "SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer")
"""Topics of the store itself: what lies there decides what others sent."""

OP_PROPERTIES = b"WAIT\x01true\x02TAGS\x01d\x02"
COMMITTED = 8  # the transaction type of a final, among the flags of a record


def require_not_own(topic: str, remedy: str) -> None:
    """Raises Refused for a topic of the store itself. `remedy`: the way to do it all the same."""
    if topic in OWN_TOPICS:
        raise Refused(f"topic {topic!r} is the store's own, and decides about transactions or delays; {remedy}")
