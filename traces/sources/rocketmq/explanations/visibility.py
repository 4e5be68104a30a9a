"""Explains what consumers can read of a transaction without its final: by which queue, and what became of it."""

from __future__ import annotations

from gapless.traces.problems import shown
from gapless.traces.sources.rocketmq.joining.findings import Breach
from gapless.traces.sources.rocketmq.log.records import PlainRecord
from gapless.traces.sources.rocketmq.store import names
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.file_access import read_slot, record_at

OF_LIGHTS = "RocketMQ's light queues show halves as they are stored: apache/rocketmq#6795"
SENT_BACK = (
    "it is a copy: consumers sent a half back, or did not acknowledge it (docs/rocketmq-transactions.md#visible-halves)"
)


def message(found: Breach) -> str:
    """Describes the violation in one sentence without its end."""
    return f"a half can be read at {found.arguments['position']}, and no final came before it ({found.detail})"


def context(store: StoreDirectory, found: Breach) -> list[str]:
    """Names the queues in which consumers find the record, and its topic."""
    at = found.arguments["position"]
    record = record_at(store, at)
    if record is None:
        return []
    queues = [
        (topic, queue, number)
        for topic, queue, number in _queues_of(record)
        if read_slot(store, topic, queue, number)[0] == at
    ]
    by = ", ".join(f"entry {number} of {topic}/{queue}" for topic, queue, number in queues)
    known = [OF_LIGHTS] if any(topic.startswith(names.LIGHT) for topic, *_ in queues) else []
    known += [SENT_BACK] if record.topic.startswith((names.RETRY, names.DEAD)) else []
    return [f"{shown(by)} leads consumers to number {record.number} of {shown(record.topic)}/{record.queue}", *known]


def _queues_of(record: PlainRecord) -> list[tuple[str, int, int]]:
    """Returns the queues of consumers in which a record has a number, and that number."""
    own = [(record.topic, record.queue, record.number)] if names.is_read_by_consumers(record.topic) else []
    lights, numbers = (record.properties.get(name, "").split(",") for name in (names.MULTI, names.MULTI_OFFSET))
    return own + [(name, 0, int(at)) for name, at in zip(lights, numbers, strict=False) if name and at.isdecimal()]
