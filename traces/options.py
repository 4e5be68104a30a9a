"""What a check was asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """What a check was asked for: it travels to every worker."""

    profile: str = "rocketmq"
    topic: str | None = None  # judge only this topic's queues
    trace: str | None = None  # judge only this trace: commitlog, TOPIC/QUEUE, or the key of a transaction
    ignored: frozenset[str] = frozenset()  # ids of rules that may be broken
    listed: bool = False  # the verdict of every trace is wanted
    split: int | None = None  # bytes that one task reads; None: what usually does best

    def wants(self, topic: str, queue: int) -> bool:
        """Whether this queue is to be judged."""
        return self.topic in (None, topic) and self.trace in (None, f"{topic}/{queue}")

    @property
    def wants_transactions(self) -> bool:
        """Whether transactions, ops and cursors are to be judged: they are of no one topic."""
        if self.topic is not None:
            return False
        return self.trace is None or self.transaction is not None or self.trace.startswith("RMQ_SYS_TRANS_")

    @property
    def transaction(self) -> str | None:
        """The key of the one transaction to be judged, if it is one: the names of other traces have a slash."""
        return None if self.trace is None or self.trace == "commitlog" or "/" in self.trace else self.trace
