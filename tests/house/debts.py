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
        ("replay", "judging"),
        ("replay", "rules"),
    },
}
"""Arrows from a lower floor to a higher one."""

LONG = {
    "traces/events/schema.py",
    "traces/replay/kernels.py",
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
    "Beside",
    "Broken",
    "Case",
    "Checkpoint",
    "ClientLog",
    "Departs",
    "Engine",
    "Explored",
    "Fault",
    "Found",
    "Judge",
    "Judged",
    "Kept",
    "Known",
    "Messages",
    "Queues",
    "Reader",
    "Recorder",
    "Report",
    "Result",
    "Run",
    "Send",
    "Sent",
    "Source",
    "Step",
    "Store",
    "Suspect",
    "Tally",
    "Way",
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
    ("properties/machines/dispatch_machine.py", "beside.py"),
    ("properties/machines/dispatch_refinement.py", "ground.py"),
    ("properties/machines/dispatch_refinement.py", "machine_dispatch.py"),
    ("properties/machines/ground_truth.py", "beside.py"),
    ("properties/machines/interleavings.py", "beside.py"),
    ("properties/machines/log_machine.py", "replayed.py"),
    ("properties/machines/queue_machine.py", "replayed.py"),
    ("properties/proof/induction.py", "examples.py"),
}
"""Files that prose names, and that are not there."""
