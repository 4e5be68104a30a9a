"""Of which moments the files of a store are: of one, as a kill leaves them, or of several, as copies of a running one.

A broker writes a message to its log, then its entry; a process that is killed loses neither. So where its files are of
one moment, the messages with an entry are a prefix of the log. A copy takes one file after another: entries that name
what lies beyond the log's end were copied after it, and queues that end before messages that others have entries for
were copied before these. A loss of power takes the ends of files in the same ways, and nothing tells the two apart.

What it looks like changes no verdict. That a store was copied so is for its user to say (`--copied`).

Source: docs/rocketmq.md#cq2, #power-loss; docs/rocketmq-protocol.md#live.
"""

from __future__ import annotations

from gapless.traces.report.values import Moments
from gapless.traces.report.wording import plural
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings

ONE = (
    "all its files look to be of one moment, as a broker that is killed leaves them, a snapshot of a file system, or a "
    "copy while nothing was sent"
)
OTHERWISE = "a copy of a running broker looks so, file by file (cp, rsync, tar), or a loss of power"


def copy_evidence(judged: StoreFindings, later: int, earlier: int) -> Moments | None:
    """Of which moments the files look to be, and a note that says so; nothing where queues have no files to tell it.

    `later`: queues that have entries for what lies beyond the log's end · `earlier`: queues that end before a message
    of theirs, while another queue has its entry for a later one.
    """
    store = judged.store
    if store.live:
        return "running"
    if store.clean:
        return "stopped"
    if store.database or not any(store.queues.values()):
        return None
    queues = plural(len(judged.queues), "queue")
    ahead = f"{later:,} of {queues} hold entries for what lies beyond the log's end"
    behind = f"{earlier:,} of {queues} end before messages that others have entries behind"
    looks: Moments
    if later and earlier:
        looks, note = "several", f"its files look to be of several moments: {ahead}, and {behind}; {OTHERWISE}"
    elif later:
        looks, note = "queues younger", f"its queues look younger than its log: {ahead}; {OTHERWISE}"
    elif earlier:
        looks, note = "queues older", f"its queues look older than its log: {behind}; {OTHERWISE}"
    else:
        looks, note = "one", ONE
    judged.notes.insert(0, note)  # before what it explains
    return looks
