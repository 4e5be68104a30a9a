"""Explains departures of compacted topics: the place, and the violation in one sentence."""

from __future__ import annotations

from gapless.spec.catalog import rule
from gapless.traces.report.values import Where
from gapless.traces.sources.rocketmq.explanations.sentences import by_rule
from gapless.traces.sources.rocketmq.joining.findings import Breach, StoreFindings
from gapless.traces.sources.rocketmq.layouts.compaction.compacted_files import (
    ENTRIES,
    POSITIONS,
    RECORDS,
    CompactedFiles,
    opened_queues,
)
from gapless.traces.sources.rocketmq.layouts.layout import OF_QUEUES, Explanation
from gapless.traces.sources.rocketmq.startup.startup_files import UnexpectedFile
from gapless.traces.sources.rocketmq.store.selection import queue_named

OWN = rule("compaction/compacted-message-is-the-brokers-own").id
OF_MESSAGES = by_rule(  # rules that speak of what lies among the records, each with what is wrong
    "compaction/compacted-",
    {
        "message-is-whole": "is not whole",
        "message-is-of-its-queue": "is of another queue",
        "message-has-the-number-of-its-entry": "has number {its_number}",
        "message-names-its-place": "names {its_position} as its place",
        "message-has-a-key": "has no key",
        "message-is-the-brokers-own": "differs from that of the broker's own log",
        "body-has-its-checksum": "has a body with another checksum",
    },
)
OF_ENTRIES = by_rule(
    "compaction/compacted-",
    {
        "numbers-rise": "comes behind entry {before}",
        "message-follows-the-one-before-it": "points at {position}, and the message before it ends at {reached}",
        "entry-names-a-message": "points at {position}, where no message begins",
        "entry-has-the-size-of-its-message": "has size {size} and count {count}, its message size {its_size}",
        "entry-has-the-tag-code-of-its-message": "has tag {tag}, its message {its_tag}",
        "entry-has-the-time-of-its-message": "has time {time}, its message {its_time}",
    },
)
NEWEST = rule("compaction/newest-message-of-its-key-is-kept").id


def place(judged: StoreFindings, found: Breach) -> Where:
    """Returns the place of a file, an entry, its message, a missing entry, or the positions."""
    args, state = found.arguments, found.departure.state
    if found.action == "start":
        return UnexpectedFile.of(found.detail).place
    compacted = next(one for one in opened_queues(judged)[0] if one.queue == queue_named(found.trace))
    if found.action == "find_position" or not (compacted.files or found.action == "miss"):
        return Where(file=POSITIONS, offset=0)
    if found.action == "find_files":
        file, offset = compacted.name(RECORDS if not args["records"] else ENTRIES, args["base"]), 0
    elif found.action == "miss":
        file, offset = compacted.entry_at(args["number"])
    elif found.rule in OF_MESSAGES:
        file, offset = compacted.message_at(args["position"])
        offset += int(found.detail or 0) if found.rule == OWN else 0
    else:
        file, offset = _entry(compacted, int(state.base), int(state.end), begun=bool(state.begun))
    return Where(file=file, offset=offset)


def _entry(compacted: CompactedFiles, base: int, end: int, *, begun: bool) -> tuple[str, int]:
    """The entry behind that of message `end - 1` in the file that begins at `base`."""
    return compacted.name(ENTRIES, base), compacted.entries_up_to(base, end - 1) if begun else 0


def message(found: Breach) -> str:
    """Describes the violation in one sentence without its end."""
    args, state = found.arguments, found.departure.state
    if found.action == "find_files":
        if args["base"] < state.reached:
            return (
                f"a file of its compacted log begins at {args['base']}, and messages before it end at {state.reached}"
            )
        kind, other = ("records", "entries") if not args["records"] else ("entries", "records")
        return f"its compacted log has no file of {kind} at {args['base']}, and one of {other}"
    if found.action == "find_position":
        what = f"the last file begins with {state.first}" if args["given"] else "the queue has none of this number"
        return f"it was compacted up to message {args['number']}, as {POSITIONS} says, and {what}"
    if found.action == "miss":
        why = "the newest of its key" if found.rule == NEWEST else "one that no compaction has made old yet"
        return f"message {args['number']}, {why}, is missing in the compacted topic"
    return UnexpectedFile.of(found.detail).sentence if found.action == "start" else _of_entry(found)


def context(judged: StoreFindings, found: Breach) -> list[str]:
    """Names the known defect by which a message is missing, if it is one."""
    if found.action != "miss" or found.departure.state.begun or not judged.store.has_queue_database:
        return []
    known = (
        "nothing is kept of this topic, as a RocketMQ broker of 5.4 or later leaves it that keeps queues in RocksDB: "
        "no consumer receives any of its messages (docs/rocketmq.md#compaction-rocksdb)"
    )
    return [known]


def _of_entry(found: Breach) -> str:
    args, state = found.arguments, found.departure.state
    entry = f"compacted entry {args['number']}"
    if found.rule in OF_MESSAGES:
        what = OF_MESSAGES[found.rule].format(**args)
        byte = f", from byte {found.detail} on" if found.detail and found.rule == OWN else ""
        return f"the message of {entry}, at {args['position']} of the compacted log, {what}{byte}"
    sentence = OF_ENTRIES.get(found.rule, f"breaks the rule: {found.departure.because}")
    return f"{entry} {sentence.format(**args, before=state.end - 1, reached=state.reached)}"


EXPLANATION = Explanation(place, message, context, rank=OF_QUEUES)
