"""Explains how many entries of a queue are missing, if no file of the queue has any of them."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.joining.findings import Breach, StoreFindings
from gapless.traces.sources.rocketmq.store.files import ENTRY
from gapless.traces.sources.rocketmq.store.selection import queue_named


def missing_entries(judged: StoreFindings, found: Breach) -> str:
    """Describes the extent of missing entries in one sentence without its end; or is empty, where it is not known."""
    store, queue = judged.store, queue_named(found.trace)
    run = judged.queues.get(queue)
    if run is None or found.action != "settle" or store.database_of(queue) or queue in store.batched:
        return ""
    indexed, end = int(found.departure.state.indexed), run.end
    files = store.queues.get(queue, ())
    reach = max(((file.base + file.length) // ENTRY for file in files), default=0)
    if end - indexed < 2 or reach > indexed:
        return ""
    how = f"its files end at number {indexed}"
    if not files:
        how = "its folder has no file" if store.has_folder(queue) else "its folder is not there"
    every = "all" if indexed == run.first else "the last"
    return f"{every} {end - indexed:,} entries are missing: {how}; the first message lies at {found.position}"
