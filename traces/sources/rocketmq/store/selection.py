"""Which traces of a store a check was asked for: a queue by TOPIC/QUEUE, a transaction by its key, the log, or all."""

from __future__ import annotations

from pathlib import Path

from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.index_files import FOLDER
from gapless.traces.sources.rocketmq.store.message_database import FOLDER as DATABASE
from gapless.traces.sources.rocketmq.store.names import TIMER_TOPIC
from gapless.traces.sources.rocketmq.store.timer_files import LOG as WHEEL_LOG

COMMIT_LOG = "commitlog"  # the log, as a trace
HALF_TABLE = "rocksdbstore"  # begins the names of rows of the table of halves, as traces: their position follows
INDEX_TABLE = "index-rocksdb"  # begins the names of records in the table of keys, as traces: their position follows
TIMER_TABLE = "timers-rocksdb"  # begins the names of timers in RocksDB, as traces: time and log position follow
TIMERS = "timerwheel"  # begins the names of the times of the timer wheel, as traces
TRANSACTIONS = "RMQ_SYS_TRANS_"  # begins the topics of halves and ops, and so the names of what is no one transaction


SOME_QUEUE = "/?"  # ends the name of a queue where nobody says which of its topic it is


def name_of_queue(topic: str, queue: int) -> str:
    """The trace of a queue; it is below 0 where nobody says which it is."""
    return f"{topic}/{queue}" if queue >= 0 else f"{topic}{SOME_QUEUE}"


def queue_named(trace: str) -> tuple[str, int]:
    """The queue of such a name; below 0 where nobody says which, as where a damaged record names none that can be."""
    topic, _, queue = trace.rpartition("/")
    return topic, -1 if trace.endswith(SOME_QUEUE) else int(queue)


def includes_queue(options: Options, topic: str, queue: int) -> bool:
    """Whether this queue is to be judged."""
    return options.topic in (None, topic) and options.trace in (None, name_of_queue(topic, queue))


def includes_hash_index(store: StoreDirectory, options: Options) -> bool:
    """Whether the hash index is to be judged: it is of no one topic, and grows while a broker runs."""
    if store.index is None or store.live or options.topic is not None:
        return False
    return options.trace is None or options.trace.startswith(f"{FOLDER}/")


def includes_tiered_index(options: Options, name: str) -> bool:
    """Whether a file of the index of tiered storage is to be judged: it is of no one topic."""
    return options.topic is None and options.trace in (None, name)


def includes_dledger_index(store: StoreDirectory, options: Options) -> bool:
    """Whether the index of a DLedger log is to be judged: it is of no one topic."""
    if store.dledger is None or options.topic is not None:
        return False
    return options.trace in (None, store.dledger.index_name)


def includes_transactions(options: Options) -> bool:
    """Whether transactions, ops and cursors are to be judged: they are of no one topic."""
    if options.topic is not None:
        return False
    return options.trace is None or selected_transaction(options) is not None or options.trace.startswith(TRANSACTIONS)


def selected_transaction(options: Options) -> str | None:
    """The key of the one transaction to be judged, if it is one: the names of other traces have a slash."""
    return None if options.trace in (None, COMMIT_LOG) or "/" in str(options.trace) else options.trace


def includes_half_table(options: Options) -> bool:
    """Whether the table of halves is to be judged: it is of no one topic."""
    if options.topic is not None:
        return False
    one = selected_transaction(options) is not None
    return options.trace is None or one or options.trace.startswith(f"{HALF_TABLE}/")


def includes_index_table(options: Options) -> bool:
    """Whether the table of keys is to be judged: it is of no one topic."""
    if options.topic is not None:
        return False
    name, _, position = str(options.trace).partition("/")
    return options.trace is None or (name == INDEX_TABLE and position.isdecimal())


def includes_timer_table(options: Options) -> bool:
    """Whether the table of timers is to be judged: it is of no one topic."""
    return options.topic is None and (options.trace is None or options.trace.startswith(f"{TIMER_TABLE}/"))


def needs_timer_messages(store: StoreDirectory, options: Options) -> bool:
    """Whether messages with a time are to be looked for: if any wait, and there is something to hold them against."""
    if store.live or store.dledger or (TIMER_TOPIC, 0) not in store.queues:
        return False
    root = Path(store.path)
    wheel = includes_timer_wheel(options) and (root / WHEEL_LOG).is_dir()
    return wheel or (includes_timer_table(options) and not store.copied and (root / DATABASE).is_dir())


def includes_timer_wheel(options: Options) -> bool:
    """Whether the timer wheel is to be judged: it is of no one topic."""
    return options.topic is None and (options.trace is None or options.trace.startswith(f"{TIMERS}/"))
