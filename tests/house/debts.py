"""Where the house breaks its own rules today. A list may only get shorter: what no longer holds must be struck out."""

CIRCLES: list[list[str]] = []
"""Modules that import one another."""

UPWARD: dict[str, set[tuple[str, str]]] = {}
"""Arrows from a lower floor to a higher one."""

LONG: set[str] = {
    "native/program_generator.py",  # one generator: every construct of the language, drawn beside the others
}
"""Modules of more lines than a reader wants, and why."""

LONG_FUNCTIONS: dict[str, int] = {
    # Signatures of commands are tables of their options, in the order of `--help`.
    "gapless/commands/check.py:check": 146,
    # One pass of native code over its input: each branch changes the same handful of numbers, and returns one of them.
    "impl/dispatch/scan_kernel.py:scan": 87,
    "properties/exploration/compiled/loop.py:settle": 72,
    "traces/events/lines/plain_bytes.py:next_lines": 125,
    "traces/sources/rocketmq/log/scan.py:scan": 62,
    # The path of every message of a store: a call costs more than the lines that would go.
    "impl/files/log.py:append": 62,
    # A store has some thirty members, each found by a function of its own.
    "traces/sources/rocketmq/store/opening.py:open_store": 81,
}
"""Functions of more lines than a screen has, how many, and why."""

DRAWERS: dict[str, int] = {}
"""Folders of too many modules: how many."""

PREFIXES: dict[str, int] = {
    "traces/sources/rocketmq/clients/trace_": 3,
    "traces/sources/rocketmq/queues/queue_": 4,
}
"""Prefixes that modules of a folder share: how many modules."""

TWICE: set[str] = set()
"""Names of several classes."""

DEAD: set[tuple[str, str]] = set()
"""Files that prose names, and that are not there."""

WORDS: dict[str, dict[str, int]] = {
    "benchmarks": {"questions": 3, "long": 1, "persons": 3, "riddles": 10},
    "properties": {"persons": 7, "riddles": 8},
    "spec": {"persons": 1, "riddles": 3},
    "tests": {"questions": 4, "long": 2, "persons": 20, "riddles": 46, "participles": 1},
    "traces": {"long": 5, "persons": 8, "riddles": 17, "participles": 1},
}
"""Places that break a rule of `words.py`, by area: how many."""

CIRCUMSTANCES: dict[str, int] = {
    "check.py": 1,
    "clients/follow.py": 1,
    "clients/promises.py": 1,
    "joining/copy_evidence.py": 2,
    "joining/log.py": 1,
    "joining/overdue_tasks.py": 6,
    "layouts/compaction/judge.py": 1,
    "layouts/cursors/judge.py": 1,
    "layouts/delayed/judge.py": 1,
    "layouts/delayed/worker.py": 1,
    "layouts/dledger_index/worker.py": 1,
    "layouts/half_table/follow.py": 1,
    "layouts/half_table/judge.py": 2,
    "layouts/hash_index/judge.py": 4,
    "layouts/hash_index/worker.py": 1,
    "layouts/key_table/judge.py": 2,
    "layouts/message_tables.py": 1,
    "layouts/tiered/index.py": 1,
    "layouts/tiered/judge.py": 1,
    "layouts/timer_messages.py": 1,
    "layouts/timer_table/judge.py": 1,
    "layouts/timer_table/worker.py": 1,
    "log/alternative_ends.py": 1,
    "log/checksums.py": 1,
    "queues/queue_ends.py": 4,
    "queues/queue_tables.py": 1,
    "replicas/store_replicas.py": 6,
    "segments/tasks.py": 1,
    "startup/start_files.py": 2,
    "store/group_cursors.py": 1,
    "summary.py": 9,
    "transactions/parameters.py": 5,
}
"""Modules of the RocketMQ source that ask how a broker ended, or lived before: it selects how to read; how often."""
