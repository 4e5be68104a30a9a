"""Documented defects that cannot be planted here, each with the missing part of the model.

A defect applies where a spec, the implementation or a trace has the part in which it lies.
"""

from __future__ import annotations

REPLICAS = "which replicas have what: there is one copy of a log here, and no confirm offset or epoch"
READERS = "what a topic does with transactions: a read limit, and readers who stop at it"
ESCAPE = "a second master to which a message escapes, and tries on the way there"
LEDGERS = (
    "a log of ledgers that is compacted or trimmed while it is read; ours is read once, from its beginning to its end"
)

DOES_NOT_APPLY: dict[str, str] = {
    "T02": "a round that comes back to the same half: ours looks at each half once, and one that is as old as the "
    "limit waits for the next round",
    "T15": f"{REPLICAS}; and an error promises nothing, so a half that is there all the same is lawful",
    "T18": "what a broker does with a message that a consumer sends back; the flag itself lies in every final that "
    "brokers up to 5.5.0 store, and is lawful (docs/rocketmq-transactions.md#n7)",
    "T30": ESCAPE,
    "T32": ESCAPE,
    "T33": ESCAPE,
    "T36": "a queue of requests that is full: a request that is dropped is one that was never heard, which is lawful",
    "C37": REPLICAS,
    "P04": "threads of a client, and which of them waits: our permits are steps, and none of them waits",
    "P14": f"{READERS}, and the mark below which all has ended",
    "P15": f"{READERS}, and the mark below which all has ended",
    "P16": READERS,
    "P17": READERS,
    "P18": READERS,
    "P19": READERS,
    "P24": LEDGERS,
    "P26": LEDGERS,
    "P27": LEDGERS,
    "P30": "what consumers acknowledge, and the content of their buffers when a transaction is aborted",
    "P33": "timers that are set again while their task waits: here one thread does one thing after the other",
    "P35": READERS,
}
"""By code, what is missing."""
