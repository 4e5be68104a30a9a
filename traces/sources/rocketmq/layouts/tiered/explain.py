"""Explains departures of tiered storage: the place, and the violation in one sentence."""

from __future__ import annotations

from gapless.spec.catalog import rule
from gapless.traces.report.values import Where
from gapless.traces.sources.rocketmq.explanations.sentences import by_rule
from gapless.traces.sources.rocketmq.joining.findings import Breach, StoreFindings
from gapless.traces.sources.rocketmq.layouts.layout import OF_QUEUES, Explanation
from gapless.traces.sources.rocketmq.layouts.tiered.files import METADATA, opened_storage
from gapless.traces.sources.rocketmq.store.selection import queue_named

OF_MESSAGES = by_rule(  # rules that speak of what lies in the tiered log, each with what is wrong
    "tiered/tiered-",
    {
        "message-is-whole": "is not whole",
        "message-is-of-its-queue": "is of another queue",
        "message-has-the-number-of-its-entry": "has number {its_number}",
        "message-names-its-place": "names {its_position} as its place",
        "message-is-the-brokers-own": "differs from that of the broker's own log",
        "body-has-its-checksum": "has a body with another checksum",
    },
)
NUMBER = rule("tiered/tiered-message-has-the-number-of-its-entry").id
SIZE = rule("tiered/tiered-entry-has-the-size-of-its-message").id
TAG = rule("tiered/tiered-entry-has-the-tag-code-of-its-message").id
LIES = rule("tiered/tiered-entry-names-a-message").id
ORDER = rule("tiered/tiered-messages-lie-in-the-order-of-their-entries").id


def place(judged: StoreFindings, found: Breach) -> Where | None:
    """A segment's end or beginning, an entry, or the message that it names."""
    (storage, _), args = opened_storage(judged), found.arguments
    queue = queue_named(found.trace)
    tiered = next((one for one in storage.queues if one.queue == queue), None) if storage else None
    if tiered is None or found.action == "open":
        return Where(file=METADATA, offset=0)
    if found.action in ("find_log_file", "find_queue_file"):
        of_log = found.action == "find_log_file"
        base = args["base"] if of_log else args["number"]
        files = {file.base if of_log else file.base // 20: file for file in (tiered.log if of_log else tiered.entries)}
        continues = base == (found.departure.state.log_end if of_log else found.departure.state.end)
        return Where(file=files[base].name, offset=max(files[base].length, 0) if continues else 0)
    file, offset = tiered.entry_at(args["number"])
    if found.rule in OF_MESSAGES:
        file, offset = tiered.message_at(args["position"])
        offset += int(found.detail or 0) if found.rule.endswith("brokers-own") else 0
    return Where(file=file, offset=offset)


def context(_judged: StoreFindings, found: Breach) -> list[str]:
    """Describes the known defect by which messages are missing there, if there is one."""
    if found.rule != NUMBER or found.arguments["its_number"] <= found.arguments["number"]:
        return []
    number, last = found.arguments["number"], found.arguments["its_number"] - 1
    which = f"message {number} was" if number == last else f"messages {number} to {last} were"
    how = (
        "a known cause: a RocketMQ broker was killed while a file of entries was full (docs/rocketmq-tiered.md#rolled)"
    )
    return [f"{which} never uploaded, or lost there; {how}"]


def message(found: Breach) -> str:
    """Describes the violation in one sentence without its end."""
    args, state = found.arguments, found.departure.state
    if found.action in ("find_log_file", "find_queue_file"):
        of_log = found.action == "find_log_file"
        base, end = (args["base"], state.log_end) if of_log else (args["number"], state.end)
        kind, what = ("log", "bytes") if of_log else ("queue", "entries")
        if base != end:
            return f"a file of its tiered {kind} begins at {base}, and those before it end at {end}"
        counts = f"the metadata has {args['committed']} {what} of a tiered {kind} file at {base}"
        return f"{counts}, which contains {args['length']}"
    if found.action == "find_entry":
        entry, at = f"tiered entry {args['number']}", args["position"]
        if found.rule in OF_MESSAGES:
            what = OF_MESSAGES[found.rule].format(**args)
            byte = f", from byte {found.detail} on" if found.detail and found.rule.endswith("brokers-own") else ""
            return f"the message of {entry}, at {at} of the tiered log, {what}{byte}"
        sentences = {
            SIZE: f"has size {args['size']}, its message {args['its_size']}",
            TAG: f"has tag {args['tag']}, its message {args['its_tag']}",
            LIES: f"points at {at} of the tiered log, where no message begins",
            ORDER: f"points at {at} of the tiered log, and the message before it ends at {state.reached}",
        }
        return f"{entry} {sentences.get(found.rule, f'breaks the rule: {found.departure.because}')}"
    return f"breaks the rule: {found.departure.because}"


EXPLANATION = Explanation(place, message, context, rank=OF_QUEUES)
