"""Suggestions for a topic or a trace that a store does not have: its topics, its queues, a similar name."""

from __future__ import annotations

from gapless.traces.options import Options
from gapless.traces.problems import shown
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.store.selection import COMMIT_LOG, TRANSACTIONS
from gapless.traces.suggestions import did_you_mean, first_of, nearest

SYSTEM = (TRANSACTIONS, "RMQ_SYS_", "SCHEDULE_TOPIC", "OFFSET_MOVED", "TRANS_CHECK", "%", "rmq_sys_")
SOME = 8  # names that are listed


def absent_topic(judged: StoreFindings, topic: str) -> str:
    """The sentence for a topic without a message in the log."""
    known = _topics(judged)
    return f"no message of topic {topic} in the log{did_you_mean(topic, known)}{_topics_here(known)}"


def absent_queue(judged: StoreFindings, trace: str) -> str:
    """The sentence for a queue without a message in the log."""
    (topic, _, queue), numbers = trace.rpartition("/"), _queues(judged)
    if topic in numbers:
        return f"no message of {trace} in the log; {_names(topic, numbers[topic])}"
    known = _topics(judged)
    hint = did_you_mean(topic, known)
    if (similar := nearest(topic, known)) and queue in map(str, numbers[similar[0]]):
        hint = f" (did you mean {similar[0]}/{queue}?)"
    return f"no message of {trace} in the log{hint}{_topics_here(known)}"


def absent_transaction(judged: StoreFindings, options: Options) -> str:
    """The sentence for a name that is no transaction's key: it may be a topic, or another trace misspelt."""
    name, numbers = str(options.trace), _queues(judged)
    if name in numbers:
        return f"{name} is a topic: name a queue of it; {_names(name, numbers[name])}"
    if hint := did_you_mean(name, [COMMIT_LOG, *_topics(judged)]):
        return f"no transaction {name} in the log{hint}"
    return (
        f"no transaction {name} in the log; a trace is {COMMIT_LOG}, TOPIC/QUEUE or the key of a transaction; topics "
        f"here: {first_of([shown(one) for one in _topics(judged)], SOME) or 'none'}"
    )


def _queues(judged: StoreFindings) -> dict[str, list[int]]:
    """The numbers of the queues of each topic."""
    found: dict[str, set[int]] = {}
    for topic, queue in (*judged.store.queues, *judged.queues):
        found.setdefault(str(topic), set()).add(int(queue))
    return {topic: sorted(numbers) for topic, numbers in found.items()}


def _topics(judged: StoreFindings) -> list[str]:
    """The topics of users; those of the broker where there are no others."""
    every = sorted(_queues(judged))
    return [topic for topic in every if not topic.startswith(SYSTEM)] or every


def _topics_here(known: list[str]) -> str:
    return f"; topics here: {first_of([shown(one) for one in known], SOME)}" if known else ""


def _names(topic: str, numbers: list[int]) -> str:
    if len(numbers) > SOME and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"queues of {shown(topic)}: {shown(topic)}/{numbers[0]} to {shown(topic)}/{numbers[-1]}"
    return f"queues of {shown(topic)}: {first_of([f'{shown(topic)}/{number}' for number in numbers], SOME)}"
