"""Turns what a judge found into findings: the damaged place, what lies there, and the story."""

from __future__ import annotations

from gapless.traces.problems import shown
from gapless.traces.replay import named, story
from gapless.traces.rocketmq import pieces, scan
from gapless.traces.rocketmq.found import Found, Judged
from gapless.traces.rocketmq.layout import ENTRY, Store, queue_files
from gapless.traces.rocketmq.pieces import Split
from gapless.traces.specs import rule_id
from gapless.traces.verdicts import Finding, Where

MISSING = ("no entry before it is missing", "every message has its entry")


def finding(judged: Judged, found: Found, *, source: str, count: int, traces: list[str]) -> Finding:
    """One departure as a finding, told in full."""
    store, departure = judged.store, found.departure
    where = place(store, found)
    trace = shown(found.trace)
    lies = what_lies_there(judged, found)
    message = f"{trace}: {_message(found)}"
    title = f"{_subject(found)} departs at {shown(where.file)}+{where.offset}."
    again = f"gapless explain {shown(source)} --trace {trace}"
    return Finding(
        rule=rule_id(found.spec, found.because),
        severity="violation",
        spec=found.spec,
        trace=trace,
        source=shown(source),
        position=found.position,
        where=Where(file=shown(where.file), offset=where.offset),
        message=f"{message} ({lies[0]})" if lies else message,
        needs=found.because,
        otherwise=departure.otherwise,
        here=departure.here,
        story=story(departure, title=title, also=[f"{line[0].upper()}{line[1:]}." for line in lies], again=again),
        count=count,
        traces=[shown(t) for t in traces],
    )


def _subject(found: Found) -> str:
    return "the commit log" if found.spec == "log" else f"queue {shown(found.trace)}"


def place(store: Store, found: Found) -> Where:
    """Where the damage lies: in the log for records, in the consume queue for entries."""
    departure = found.departure
    args = named(found.spec, departure.event)
    if found.spec == "log":
        at_the_end = "begins where" in found.because or departure.event[0] in ("checkpoint", "refer")
        at = int(departure.state.end) if at_the_end else args["position"]
        return in_log(store, at)
    action = departure.event[0]
    if action == "find_file":
        return Where(file=f"consumequeue/{found.trace}/{args['base']:020d}", offset=args["length"])
    if action in ("open", "append"):
        return in_log(store, found.position)
    if found.because in MISSING:
        return slot(store, found.trace, int(departure.state.indexed))
    number = args.get("number", int(departure.state.blank) - 1)  # dispatch that is done names no number, but a blank
    return slot(store, found.trace, number)


def in_log(store: Store, position: int) -> Where:
    """The log file of a position, and the offset in it."""
    file, offset = store.log_file_at(position)
    return Where(file=file, offset=offset)


def slot(store: Store, trace: str, number: int) -> Where:
    """The file and offset of entry `number`, whether the file exists or not."""
    topic, _, queue = trace.rpartition("/")
    at = number * ENTRY
    files = queue_files(store.queue_folder(topic, int(queue)))
    full = store.queue_file_size or (files[0].length if files else 0)
    base = at - at % full if full else 0
    for file in files:
        if file.base <= at < file.base + (full or file.length):
            base = file.base
    return Where(file=f"consumequeue/{trace}/{base:020d}", offset=at - base)


def _message(found: Found) -> str:  # noqa: C901, PLR0911 - a sentence for every kind
    """What is wrong, in one sentence without its end."""
    args = named(found.spec, found.departure.event)
    action = found.departure.event[0]
    if found.spec == "log":
        end = int(found.departure.state.end)
        if action == "checkpoint":
            return f"the log ends at {end}, with a record older than the last one that its checkpoint knows"
        if action == "refer":
            return f"the log ends at {end}, and {found.detail} names a record at {args['position']}"
        if "begins where" in found.because:
            return f"nothing follows at {found.departure.state.end}; the log goes on at {args['position']}"
        what = "blank" if action == "roll" else "record"
        return f"the {what} at {args['position']} breaks the rule: {found.because}"
    state = found.departure.state
    if found.because in MISSING:
        return f"entry {state.indexed} is missing; its message lies at {found.position}"
    if action == "append":
        return f"the message at {found.position} has number {args['number']} where {state.end} comes next"
    if action == "index" and args["number"] < state.end:
        messages = {"position": state.positions, "size": state.sizes, "tag": state.tags}
        what = next(name for name in messages if args[name] != messages[name][args["number"]])
        return f"entry {args['number']} has {what} {args[what]}, its message {messages[what][args['number']]}"
    if action == "index":
        return f"entry {args['number']} has no message in the log"
    if action == "settle":
        return f"its slots up to number {state.blank} hold blanks, and no entry follows"
    if action == "find_file":
        return f"a file of {args['length']} bytes, where all others have {args['full']}"
    if action == "open":
        return f"its first message in the log has number {args['number']}, and the log begins at {args['start']}"
    return f"breaks the rule: {found.because}"


def what_lies_there(judged: Judged, found: Found) -> list[str]:
    """For an entry that points elsewhere: what it points at. Empty for every other departure."""
    if found.spec != "queue" or found.departure.event[0] != "index":
        return []
    args = named("queue", found.departure.event)
    position, size = args["position"], args["size"]
    if position == size == args["tag"] == 0:
        return ["the entry is all zeros"]
    if "points at" not in found.because and "is in the log" not in found.because:
        return []
    return [f"the entry points at {position}, {_at(judged, position)}"]


def _at(judged: Judged, position: int) -> str:
    store = judged.store
    if position < store.start:
        return f"below the log's start {store.start}"
    if position >= judged.end:
        return f"beyond the log's end {judged.end}"
    for split in pieces.splits(store):
        if split.file.base + split.low <= position < split.file.base + split.high:
            return _record_at(store, split, position)
    return "where the log has no file"


def _record_at(store: Store, split: Split, position: int) -> str:
    for low, high, columns, _blank in pieces.segment_columns(store, split):
        if not low <= position < high:
            continue
        starts = columns.log[scan.POSITION, : columns.filled[0]]
        record = int(starts.searchsorted(position, side="right")) - 1
        if record < 0:
            continue
        if position >= starts[record] + columns.log[scan.SIZE, record]:
            return "the blank at a file's end"
        rows = columns.rows[:, : columns.filled[1]]
        mine = [r for r in range(rows.shape[1]) if rows[scan.PLACE, r] == starts[record]]
        whose = ", ".join(
            f"{topic}/{queue} number {int(rows[scan.NUMBER, r])}"
            for r in mine
            for topic, queue in [columns.subject(int(rows[scan.SUBJECT, r]))]
        )
        whose = shown(whose) or "of no queue"
        if starts[record] == position:
            return f"the record of {whose}"
        return f"in the middle of the record at {int(starts[record])} ({whose})"
    return "in a record that begins before it"
