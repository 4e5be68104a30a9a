"""What a check was asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """What a check was asked for: it travels to every worker."""

    profile: str = "rocketmq"
    topic: str | None = None  # judge only this topic's queues
    trace: str | None = None  # judge only this trace: commitlog, TOPIC/QUEUE, or the key of a transaction
    ignored: frozenset[str] = frozenset()  # rules that may be broken, by their sentence
    split: int | None = None  # bytes that one task reads; None: what usually does best

    def wants(self, topic: str, queue: int) -> bool:
        """Whether this queue is to be judged."""
        return self.topic in (None, topic) and self.trace in (None, f"{topic}/{queue}")

    @property
    def wants_transactions(self) -> bool:
        """Whether transactions are to be judged: they are of no one topic."""
        return self.topic is None and self.trace != "commitlog"
