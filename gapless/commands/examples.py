"""Examples and exit codes of each command, for `--help`, the man pages and the reference."""

from __future__ import annotations

from collections.abc import Iterable

Example = tuple[str, str]
"""A command to copy, and what it answers or does."""

OVERVIEW: tuple[Example, ...] = (
    ("gapless check /var/lib/rocketmq/store", "is every message in its queue, every transaction decided?"),
    ("gapless check a/store b/store --report out.html", "several stores, and a report for the browser"),
    ("gapless explain store --trace TopicTest/3", "the shortest story of one queue"),
    ("gapless watch store --metrics 9464", "follow a running broker, and report each violation at once"),
    ("gapless prove lease.py", "prove a spec of yours (docs/your-own-spec.md)"),
)
"""Those that `gapless --help` shows: five at most."""

MORE: dict[str, tuple[Example, ...]] = {
    "check": (
        ("gapless check store --client client.ndjson", "is anything lost that clients were promised?"),
        ("gapless check /var/lib/kafka/data", "a Kafka broker's logs, indexes and producers"),
        ("gapless check recording", "a recorded Pulsar coordinator: its limit, one outcome for each"),
        ("gapless check traces/ --junit junit.xml --sarif found.sarif", "files for a CI (docs/ci.md)"),
        ("gapless check traces/ --baseline known.json", "only what is new fails"),
        (
            "gapless check store --ignore queue/entry-points-at-its-message",
            "all rules but one; gapless rules lists them",
        ),
        ("gapless check 's3://bucket/traces/*.parquet' --engine spark", "recordings elsewhere, on many machines"),
        ("gapless check - < events.ndjson", "events from standard input"),
    ),
    "compare": (
        ("gapless compare master/store slave/store", "do a master and its slave agree?"),
        ("gapless compare a/store b/store c/store --json out.json", "several slaves, for a program"),
    ),
    "watch": (
        (
            "gapless watch store --state watch.state --report out",
            "keep the place over restarts, and a report for the browser",
        ),
        ("gapless watch store --state watch.state --once", "what is new since the last time, from a scheduler"),
    ),
    "explain": (
        ("gapless explain store --trace commitlog", "the story of the log itself"),
        ("gapless explain a.ndjson --trace q/1 --save wrong.story", "a story that pytest runs as a test"),
    ),
    "demo": (("gapless demo /tmp/demo", "into another folder than gapless-demo"),),
    "trace": (
        ("gapless trace store --out events.parquet", "the events of a store, to query or to check again"),
        ("gapless trace recording --out events.ndjson", "as lines of JSON"),
    ),
    "record": (
        ("gapless record trial --faults crash,torn", "run our own store with faults, and leave it to be checked"),
        ("gapless record trial --transactions --messages 20000", "half of the messages in transactions"),
    ),
    "rules": (
        ("gapless rules", "every rule, and the damage without it"),
        ("gapless rules queue", "the rules of a spec"),
        ("gapless rules queue/entry-points-at-its-message", "one rule"),
        ("gapless rules --spec lease.py", "those of a spec of yours"),
    ),
    "steps": (
        ("gapless steps queue", "what a recorder writes: steps, arguments, units"),
        ("gapless steps lease.py", "those of a spec of yours"),
    ),
    "schema": (
        ("gapless schema events", "a line of a file of events"),
        ("gapless schema report", "the JSON that check --json writes"),
    ),
    "prove": (
        ("gapless prove transaction", "a spec of ours"),
        ("gapless prove", "all of ours, which takes a minute or two"),
    ),
    "generate": (
        ("gapless generate lease.py --out traces", "runs that meet every rule of a spec, for any system to perform"),
        ("gapless generate dispatch --cover steps --out traces", "runs that take every step"),
    ),
    "explore": (
        ("gapless explore queue --graph queue.html", "every state of a spec within small bounds, as a picture"),
        ("gapless explore lease.py", "a spec of yours"),
    ),
    "audit": (("gapless audit lease.py", "the faults in a spec of yours that no property catches"),),
    "warm": (("gapless warm", "compile now, once, what checks compile on the way"),),
    "serve coordinator": (
        ("gapless serve coordinator data --max 100", "a coordinator that has room for a hundred transactions"),
        ("gapless serve coordinator data --record trace.ndjson", "its steps as events, for gapless check"),
        ("gapless serve coordinator data --host 0.0.0.0 --secret-file secret", "for clients of other machines, too"),
    ),
}
"""Those that only the command itself shows, after its share of the overview."""

_BY_SIGTERM = "the same by SIGTERM"
_OF_A_CHECK = {
    0: "conforms",
    1: "departs",
    2: "unreadable or wrong usage",
    3: "inconclusive: nothing could be judged, and here is why",
    130: "interrupted",
    143: _BY_SIGTERM,
}
_DONE = {0: "done", 2: "wrong usage"}

EXIT_CODES: dict[str, dict[int, str]] = {
    "check": {**_OF_A_CHECK, 4: "Spark could not do the work: nothing was judged"},
    "watch": {
        0: "with --once: conforms",
        1: "with --once: departs",
        2: "wrong usage, unreadable with --once, or state or report cannot be written",
        3: "with --once: inconclusive, and here is why",
        130: "interrupted, the last report is written",
        143: _BY_SIGTERM,
    },
    "compare": {
        0: "they agree as far as they reach",
        1: "one departs, from its master or by itself",
        2: "unreadable or wrong usage",
        3: "inconclusive: nothing in common, or something could not be compared, and here is why",
        130: "interrupted",
        143: _BY_SIGTERM,
    },
    "explain": _OF_A_CHECK,
    "trace": {
        0: "written",
        2: "unreadable or wrong usage",
        3: "nothing is there",
        130: "interrupted",
        143: _BY_SIGTERM,
    },
    "demo": {0: "done: nothing in the first store, one violation in the second", 2: "wrong usage, or no room"},
    "record": {
        0: "done",
        2: "wrong usage, or the disk or the store failed",
        130: "interrupted: what was sent is there",
        143: _BY_SIGTERM,
    },
    "prove": {
        0: "all holds",
        1: "something does not in a run from the beginning, and here is the story",
        2: "wrong usage",
        3: "unknown, out of budget, or false only in a state that may be unreachable",
    },
    "rules": _DONE,
    "steps": _DONE,
    "schema": _DONE,
    "generate": {
        0: "all is covered",
        2: "wrong usage, or the folder cannot be written",
        3: "a step or a rule is not met within the bound",
    },
    "explore": {
        0: "all hold",
        1: "a property or a claim is broken",
        2: "wrong usage",
        3: "more states than --states allows, a step that was never possible, or a claim that is undecided",
    },
    "audit": {
        0: "every need is needed, and every fault noticed, if only by the comparison",
        1: "something is not",
        2: "wrong usage, or a spec that is not proved",
    },
    "warm": {0: "done"},
    "serve coordinator": {
        0: "it was interrupted and closed in order",
        2: "wrong usage, or the directory or its disk failed",
    },
}
"""By the words of a command."""


def examples(command: str) -> tuple[Example, ...]:
    """Those of a command, by its words; all of the overview for `gapless` itself."""
    own = tuple(one for one in OVERVIEW if one[0].startswith(f"gapless {command}"))
    return (*own, *MORE.get(command, ()))


def epilog(command: str) -> str:
    """The text after the options of a command in its help."""
    parts = []
    if shown := examples(command):
        parts.append("Examples:\n\n" + as_text(shown))
    if codes := EXIT_CODES.get(command):
        parts.append("Exit codes: " + ", ".join(f"{code} {means}" for code, means in codes.items()) + ".")
    return "\n\n".join(parts)


def as_text(shown: Iterable[Example]) -> str:
    """Examples as help shows them, each on a line that is not broken, to be copied."""
    return "\n".join(["\b", *(f"{example}\n  {says}" for example, says in shown)])
