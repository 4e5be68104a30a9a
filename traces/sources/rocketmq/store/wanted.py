"""Which traces of a store a check was asked for: a queue by TOPIC/QUEUE, a transaction by its key, the log, or all."""

from __future__ import annotations

from gapless.traces.options import Options

COMMIT_LOG = "commitlog"  # the log, as a trace
TRANSACTIONS = "RMQ_SYS_TRANS_"  # begins the topics of halves and ops, and so the names of what is no one transaction


def wants(options: Options, topic: str, queue: int) -> bool:
    """Whether this queue is to be judged."""
    return options.topic in (None, topic) and options.trace in (None, f"{topic}/{queue}")


def wants_transactions(options: Options) -> bool:
    """Whether transactions, ops and cursors are to be judged: they are of no one topic."""
    if options.topic is not None:
        return False
    return options.trace is None or wanted_transaction(options) is not None or options.trace.startswith(TRANSACTIONS)


def wanted_transaction(options: Options) -> str | None:
    """The key of the one transaction to be judged, if it is one: the names of other traces have a slash."""
    return None if options.trace in (None, COMMIT_LOG) or "/" in str(options.trace) else options.trace
