"""The traces that a check was asked for: a queue by TOPIC/QUEUE, a transaction by its key, the log, or all."""

from __future__ import annotations

from gapless.traces.options import Options

COMMIT_LOG = "commitlog"  # the log, as a trace
TRANSACTIONS = "RMQ_SYS_TRANS_"  # begins the topics of halves and ops, and so the names of what is no one transaction


SOME_QUEUE = "/?"  # ends the name of a queue whose number is unknown


def name_of_queue(topic: str, queue: int) -> str:
    """Returns the trace name of a queue, whose number is below 0 if unknown."""
    return f"{topic}/{queue}" if queue >= 0 else f"{topic}{SOME_QUEUE}"


def queue_named(trace: str) -> tuple[str, int]:
    """Parses the trace name of a queue; its number is below 0 if unknown, as in a damaged record."""
    topic, _, queue = trace.rpartition("/")
    return topic, -1 if trace.endswith(SOME_QUEUE) else int(queue)


def includes_queue(options: Options, topic: str, queue: int) -> bool:
    """True if this queue was selected."""
    return options.topic in (None, topic) and options.trace in (None, name_of_queue(topic, queue))


def includes_transactions(options: Options) -> bool:
    """True if transactions, ops and cursors were selected: they belong to no topic."""
    if options.topic is not None:
        return False
    return options.trace is None or selected_transaction(options) is not None or options.trace.startswith(TRANSACTIONS)


def selected_transaction(options: Options) -> str | None:
    """The key of the one requested transaction, if it is one: the names of other traces have a slash."""
    return None if options.trace in (None, COMMIT_LOG) or "/" in str(options.trace) else options.trace
