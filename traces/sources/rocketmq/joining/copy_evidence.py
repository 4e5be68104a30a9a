"""Signs that a store's files are of one moment, as after a kill, or of several, as in a live copy.

A broker writes a message to its log, then its entry; a process that is killed loses neither. So if its files are of
one moment, the messages with an entry are a prefix of the log. A copy takes one file after another: entries that name
positions beyond the log's end were copied after it, and queues that end before messages with later entries in other
queues were copied before these. A loss of power takes the ends of files in the same ways, and cannot be distinguished.

These signs change no verdict. Only the user can declare that a store was copied so (`--copied`).

Source: docs/rocketmq.md#cq2, #power-loss; docs/rocketmq-protocol.md#live.
"""

from __future__ import annotations

from gapless.traces.report.values import Moments
from gapless.traces.report.wording import plural
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings

ONE = (
    "all its files seem to be of one moment, as a broker that is killed leaves them, a snapshot of a file system, or a "
    "copy while nothing was sent"
)
OTHERWISE = "the cause is a copy of a running broker, file by file (cp, rsync, tar), or a loss of power"


def copy_evidence(judged: StoreFindings, later: int, earlier: int) -> Moments | None:
    """Returns the moments that the files look to be of, and adds a note; None if queues have no files.

    `later`: queues with entries for positions beyond the log's end · `earlier`: queues that end before one of their
    messages, while another queue has its entry for a later one.
    """
    store = judged.store
    if store.live:
        return "running"
    if store.clean:
        return "stopped"
    if store.database or not any(store.queues.values()):
        return None
    queues = plural(len(judged.queues), "queue")
    ahead = f"{later:,} of {queues} have entries for positions beyond the log's end"
    behind = f"{earlier:,} of {queues} end before messages although other queues have later entries"
    looks: Moments
    if later and earlier:
        looks, note = "several", f"its files seem to be of several moments: {ahead}, and {behind}; {OTHERWISE}"
    elif later:
        looks, note = "queues younger", f"its queues seem younger than its log: {ahead}; {OTHERWISE}"
    elif earlier:
        looks, note = "queues older", f"its queues seem older than its log: {behind}; {OTHERWISE}"
    else:
        looks, note = "one", ONE
    judged.notes.insert(0, note)  # before what it explains
    return looks
