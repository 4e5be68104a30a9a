"""Waiting for consumers to see all messages of a store."""

from gapless.impl.store.store import Store


def visible(store: Store) -> None:
    """Wait until all is dispatched: every entry is in its queue, and a flush of the queues may say so.

    `Store.wait_for` returns a moment earlier, when the entry can be read.
    """
    core = store.core
    assert store._pool.wait(lambda: core.dispatch.dispatched >= core.log.end, 10)
