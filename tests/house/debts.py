"""Where the house breaks its own rules today. A list may only get shorter: what no longer holds must be struck out."""

CIRCLES: list[list[str]] = [
    [
        "gapless.impl.dispatch.dispatch",
        "gapless.impl.dispatch.scanner",
        "gapless.impl.recorder.recorder",
        "gapless.impl.store.log",
    ],
]
"""Modules that import one another."""

UPWARD = {
    "impl": {("dispatch", "store"), ("native", "store"), ("recorder", "store")},
    "traces": {
        ("engines", "sources"),
        ("events", "parts"),
        ("judging", "sources"),
        ("replay", "judging"),
        ("replay", "rules"),
        ("sources", "check"),
    },
}
"""Arrows from a lower floor to a higher one."""

LONG = {
    "gapless/cli.py",
    "spec/transaction.py",
    "traces/check.py",
    "traces/events/schema.py",
    "traces/judging/event_traces.py",
    "traces/replay/kernels.py",
    "traces/report/rendering.py",
    "traces/sources/rocketmq/clients/client_log.py",
    "traces/sources/rocketmq/splits.py",
    "traces/sources/rocketmq/store/scan.py",
    "traces/sources/rocketmq/transactions/judge.py",
}
"""Modules of more lines than a reader wants."""

TWICE = {
    "Answer",
    "Asked",
    "Batch",
    "Checkpoint",
    "ClientLog",
    "Engine",
    "Explored",
    "Judge",
    "Judged",
    "Kept",
    "Known",
    "Messages",
    "Queues",
    "Reader",
    "Recorder",
    "Result",
    "Send",
    "Step",
    "Store",
    "Stretch",
    "Suspect",
    "Tally",
    "Transactions",
    "Window",
    "World",
}
"""Names of several classes."""

DEAD = {
    ("impl/README.md", "bits.py"),
    ("impl/README.md", "building.py"),
    ("impl/README.md", "checking.py"),
    ("impl/README.md", "keeping.py"),
    ("impl/README.md", "known.py"),
    ("impl/README.md", "life.py"),
    ("impl/README.md", "pages.py"),
    ("impl/README.md", "runs.py"),
    ("impl/README.md", "scanning.py"),
    ("impl/README.md", "telling.py"),
    ("impl/README.md", "worlds.py"),
    ("impl/dispatch/scan_kernel.py", "building.py"),
    ("impl/recorder/rows.py", "telling.py"),
    ("properties/proof/induction.py", "examples.py"),
    ("traces/judging/event_traces.py", "worlds.py"),
}
"""Files that prose names, and that are not there."""
