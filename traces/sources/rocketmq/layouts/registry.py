"""The registry of layouts, a line each, in the order in which they are judged."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.layouts.layout import Layout

LAYOUTS: tuple[Layout, ...] = (
    Layout("hash_index", "hash_index", "the hash index", ("(index|tiered_index_file|rmq_sys_INDEX)", r"\d+"),
        opens=True, works=True, follows=True, exports=True),
    Layout("cursors", "cursor", "cursor"),
    Layout("extension", "extension", works=True, exports=True),
    Layout("delayed", "stage", "message", ("delayed", r"\d+/\d+"), works=True),
    Layout("timer_wheel", "timer", traces=("timerwheel", r"\d+"), works=True),
    Layout("half_table", "half_table", "half", ("rocksdbstore", r"\d+"), follows=True),
    Layout("key_table", "index_table", "record", ("index-rocksdb", r"\d+")),
    Layout("timer_table", "timer_table", "timer", ("timers-rocksdb", r"\d+(/\d+)?"), works=True),
    Layout("tiered", "tiered", "the tiered queue"),
    Layout("compaction", "compaction", "the compacted queue"),
    Layout("dledger_index", "dledger_index", "the index of entries", (r"dledger-n\d+", "index"), works=True),
)  # fmt: skip
"""A DLedger log is named by n and a number, as all give as dLegerSelfId; with another id, its name is a user's."""


def layout_of(spec: str) -> Layout | None:
    """Returns the layout whose traces a spec judges; None if it judges others."""
    return next((layout for layout in LAYOUTS if layout.spec == spec), None)
