"""Where the house breaks its own rules today. A list may only get shorter: what no longer holds must be struck out."""

CIRCLES: list[list[str]] = []
"""Modules that import one another."""

UPWARD: dict[str, set[tuple[str, str]]] = {}
"""Arrows from a lower floor to a higher one."""

LONG = {
    "traces/replay/kernels.py",
    "traces/sources/rocketmq/clients/client_log.py",
    "traces/sources/rocketmq/splits.py",
    "traces/sources/rocketmq/store/scan.py",
    "traces/sources/rocketmq/transactions/judge.py",
}
"""Modules of more lines than a reader wants."""

TWICE = {
    "Answer",
    "Batch",
    "Judge",
    "Judged",
    "Messages",
    "Reader",
    "Result",
    "Source",
    "Step",
    "Store",
    "Suspect",
    "Tally",
    "Window",
    "World",
}
"""Names of several classes."""

DEAD = {
    ("properties/proof/induction.py", "examples.py"),
}
"""Files that prose names, and that are not there."""
