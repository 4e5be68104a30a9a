"""Turns the findings of a judge into those of a report: place, content of the place, and story."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from gapless.spec.catalog import rule
from gapless.traces.judging.findings.timelines import timeline_of
from gapless.traces.problems import pasted, shown
from gapless.traces.replay.exact import named, story
from gapless.traces.replay.notation import called
from gapless.traces.report.values import Finding, Where
from gapless.traces.sources.rocketmq.explanations import hazard as explain_hazard
from gapless.traces.sources.rocketmq.explanations import log as explain_log
from gapless.traces.sources.rocketmq.explanations import numbers as explain_numbers
from gapless.traces.sources.rocketmq.explanations import startup as explain_startup
from gapless.traces.sources.rocketmq.explanations import visibility as explain_visibility
from gapless.traces.sources.rocketmq.explanations.entry_picture import entries_around
from gapless.traces.sources.rocketmq.explanations.extent import missing_entries
from gapless.traces.sources.rocketmq.explanations.log import FOLLOWS
from gapless.traces.sources.rocketmq.explanations.record_places import whereabouts
from gapless.traces.sources.rocketmq.explanations.sentences import ENTRY_STATES, by_rule, headline
from gapless.traces.sources.rocketmq.joining.findings import Breach, Hazard, StoreFindings
from gapless.traces.sources.rocketmq.layouts import registry
from gapless.traces.sources.rocketmq.queues.batch_queues import FOLDER, UNIT, units_of
from gapless.traces.sources.rocketmq.queues.extension_units import EXTENDED, LOWEST, unit_place
from gapless.traces.sources.rocketmq.report import SUBJECTS
from gapless.traces.sources.rocketmq.store import file_access, names
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import ENTRY, Queue, born_with
from gapless.traces.sources.rocketmq.store.selection import queue_named

MISSING = (rule("queue/no-entry-before-it-is-missing").id, rule("queue/every-message-has-its-entry").id)
OF_BATCHES = (
    rule("queue/entry-comes-behind-those-before-it").id,
    rule("queue/entry-ends-where-its-batch-ends").id,
)
ELSEWHERE = (rule("queue/entry-points-at-its-message").id, rule("queue/message-of-the-entry-is-in-the-log").id)
TAG = rule("queue/entry-has-the-tag-code-of-its-message").id
NAMED = 5  # traces that one finding names
UNDECIDED = rule("checkpoint/half-cursor-passes-no-undecided-half").id
BEYOND = (
    rule("checkpoint/half-cursor-stays-within-the-halves-of-the-log").id,
    rule("checkpoint/op-cursor-stays-within-the-ops-of-the-log").id,
)
NAMED_TWICE = rule("op_batch/no-op-names-the-half-yet").id
COPIES = (
    rule("transaction/final-carries-what-its-half-carries").id,
    rule("transaction/half-is-put-back-as-it-was").id,
    rule("transaction/half-is-set-aside-as-it-was").id,
)


def finding(
    judged: StoreFindings, found: Breach, *, source: str, count: int, traces: list[str], how: str = "", title: str = "",
    also: Sequence[str] = (), old: int = 0,
) -> Finding:  # fmt: skip
    """Describes one departure as a finding. `how`: further arguments of the command that shows it.

    `title`: of its story, unless it departs already · `also`: further lines of the story · `old`: the number of slots
    with old bytes.
    """
    store, departure = judged.store, found.departure
    where = place(judged, found)
    trace = shown(found.trace)
    lies = context(judged, found)
    sentence = _message(judged, found)
    more = f"; {lies[0]}" if lies and not lies[0].startswith("the entry points at ") else ""
    title = title or f"{_subject(found)} departs at {shown(where.file)}+{where.offset}."
    lines = [*(f"{line[0].upper()}{line[1:]}." for line in lies), *also]
    again = f"gapless explain {pasted(source)} --trace {pasted(found.trace)}{how}"
    return Finding(
        rule=found.rule,
        severity="violation",
        spec=found.spec,
        trace=trace,
        source=shown(source),
        position=found.position,
        where=Where(file=shown(where.file), offset=where.offset),
        message=f"{trace}: {sentence}{more}",
        summary=sentence if found.spec == "log" else headline(trace, sentence),
        keys=explain_log.keys_at(store, found.position) if found.rule in explain_log.OF_BODIES else [],
        needs=departure.because,
        otherwise=departure.otherwise,
        here=departure.here,
        story=story(departure, title=title, also=lines, again=again),
        count=count,
        traces=[shown(t) for t in traces],
        picture=found.picture or entries_around(judged, found, old) or timeline_of(departure),
    )


def hazard(
    judged: StoreFindings, found: Hazard, *, source: str, count: int, traces: list[str], how: str = ""
) -> Finding:
    """Describes a violation at the next start as a finding, with the story of its first wrong step."""
    where, trace = place(judged, found.breach), shown(found.breach.trace)
    made = finding(
        judged, found.breach, source=source, count=count, traces=traces, how=how,
        title=f"queue {trace} will depart at the broker's next start, at {shown(where.file)}+{where.offset}.",
        also=[*explain_hazard.lines(judged, found)],
        old=0 if found.files else found.slots,
    )  # fmt: skip
    message = f"{trace}: {explain_hazard.message(judged, found)}"
    return made.model_copy(update={"severity": "hazard", "message": message, "summary": message})


def feared(judged: StoreFindings, found: Sequence[Breach], *, source: str, how: str = "") -> Finding:
    """Describes future steps that will break one rule as a finding, with the story of the first."""
    where = place(judged, found[0])
    at = f"{shown(where.file)}+{where.offset}"
    of_start = found[0].spec == "startup"
    layout = registry.layout_of(found[0].spec)
    when, then = layout.explanation.feared if layout else (AT_START, ())
    title = "the broker's next start goes wrong" if of_start else f"{_subject(found[0])} will depart {when},"
    count, named = len(found) + judged.feared_more[found[0].rule], list(dict.fromkeys(one.trace for one in found))
    made = finding(
        judged, found[0], source=source, count=count, traces=named[:NAMED], how=how,
        title=f"{title} at {at}.", also=explain_startup.also(found[0]) if of_start else then,
    )  # fmt: skip
    words = dict.fromkeys(("message", "summary"), explain_startup.message(found[0])) if of_start else {}
    return made.model_copy(update={"severity": "hazard", **words})


AT_START = "at the broker's next start"


def _subject(found: Breach) -> str:
    if layout := registry.layout_of(found.spec):
        title = layout.explanation.subject
        return title(found) if title else f"{layout.subject or 'queue'} {shown(found.trace)}"
    named = {"log": "the commit log", "checkpoint": "the check service", "op_batch": "the op batcher"}
    return named.get(found.spec) or f"{SUBJECTS.get(found.spec, 'queue')} {shown(found.trace)}"


TABLE_KEYS = {"tell_last": "max", "tell_first": "min"}


def place(judged: StoreFindings, found: Breach) -> Where:  # noqa: PLR0911 - one for every kind of place
    """Returns the place of the damage: in the log for records, in the consume queue for entries."""
    store, departure = judged.store, found.departure
    args = named(found.spec, departure.event)
    if found.spec == "log":
        at_the_end = found.rule in FOLLOWS or departure.event[0] in ("checkpoint", "refer")
        at = int(departure.state.end) if at_the_end else args["position"]
        return in_log(store, at)
    if there := _in_another_file(judged, found):
        return there
    if found.rule in BEYOND and store.cursors:
        return Where(file=store.cursors.file, offset=0)
    if found.spec != "queue":
        return in_log(store, found.position)
    action = departure.event[0]
    if action == "find_file":
        folder = FOLDER if queue_named(found.trace) in store.batched else "consumequeue"
        return Where(file=f"{folder}/{found.trace}/{args['base']:020d}", offset=args["length"])
    if action in TABLE_KEYS and found.database:
        where = f"{found.database.folder}/RocksDB:offset/{found.trace}/{TABLE_KEYS[action]}"
        return Where(file=where, offset=args["number"])
    if action == "index" and found.database:
        return Where(file=f"{found.database.folder}/RocksDB:{found.trace}", offset=args["number"])
    if action in ("open", "append", "account", "acknowledge"):
        return in_log(store, found.position)
    if found.rule in MISSING:
        return slot(store, found.trace, int(departure.state.indexed))
    number = args.get("number", int(departure.state.blank) - 1)  # dispatch that is done names no number, but a blank
    return slot(store, found.trace, number)


def _in_another_file(judged: StoreFindings, found: Breach) -> Where | None:
    """Returns the place in a file of neither log nor queue entries, if the departure has one."""
    store = judged.store
    if layout := registry.layout_of(found.spec):
        return layout.explanation.place(judged, found)
    if found.spec == "startup":
        return explain_startup.place(store, found)
    if found.rule == TAG and store.extended and not found.database:
        return _unit_of_entry(store, queue_named(found.trace), found.arguments["number"])
    return None


def _unit_of_entry(store: StoreDirectory, queue: Queue, number: int) -> Where | None:
    """Returns the place of the unit that an entry names in its tag code, if it does."""
    *_, tag = file_access.read_slot(store, *queue, number)
    if tag > EXTENDED:
        return None
    file, offset = unit_place(store, queue, tag ^ LOWEST)
    return Where(file=file, offset=offset)


def in_log(store: StoreDirectory, position: int) -> Where:
    """The log file of a position, and the offset in it."""
    file, offset = store.log_file_at(position)
    return Where(file=file, offset=offset)


def slot(store: StoreDirectory, trace: str, number: int) -> Where:
    """The file and offset of entry `number`, whether the file exists or not."""
    queue = queue_named(trace)
    if database := store.database_of(queue):
        return Where(file=f"{database.folder}/RocksDB:{trace}", offset=number)
    if queue in store.batched:
        return _batch_unit(store, queue, number)
    at = number * ENTRY
    files = store.queues.get(queue, ())
    full = born_with(files, store.queue_file_size) or (files[0].length if files else 0)
    base = at - at % full if full else 0
    for file in files:
        if file.base <= at < file.base + (full or file.length):
            base = file.base
    return Where(file=f"consumequeue/{trace}/{base:020d}", offset=at - base)


def _batch_unit(store: StoreDirectory, queue: Queue, number: int) -> Where:
    """Returns the place of a batch queue's entry, or of the entry before which it is missing."""
    units, places = units_of(Path(store.path), queue, store.batched[queue])
    (behind,) = np.nonzero(units["number"] >= number)
    after = int(places[-1]) + UNIT.itemsize if len(places) else 0
    at = int(places[behind[0]]) if len(behind) else after
    base = max((file.base for file in store.batched[queue] if file.base <= at), default=0)
    return Where(file=f"{FOLDER}/{queue[0]}/{queue[1]}/{base:020d}", offset=at - base)


def _message(judged: StoreFindings, found: Breach) -> str:  # noqa: C901, PLR0911, PLR0912 - a sentence for every kind
    """Describes the violation in one sentence without its end."""
    args = named(found.spec, found.departure.event)
    action = found.action
    if layout := registry.layout_of(found.spec):
        return layout.explanation.message(found)
    if found.spec == "startup":
        return explain_startup.message(found)
    if found.spec in OF_TRANSACTIONS:
        return OF_TRANSACTIONS[found.spec](found, action, args)
    if found.spec == "log":
        return explain_log.message(judged.store, found)
    state = found.departure.state
    if action == "acknowledge" and args["number"] < 0:
        return f"the broker answered that a message lies at {args['position']} ({found.detail})"
    if action == "acknowledge":
        return f"the broker answered that its message {args['number']} lies at {args['position']} ({found.detail})"
    if action == "account":
        return f"no client sent the message at {found.position}, number {args['number']}"
    if found.rule in MISSING:
        if extent := missing_entries(judged, found):
            return extent
        return f"entry {state.indexed} is missing; its message lies at {found.position}"
    if action == "append":
        return f"the message at {found.position} has number {args['number']} where {state.end} comes next"
    if action == "index_batch" and found.rule in OF_BATCHES:
        return f"entry {args['number']} for {args['count']} numbers breaks the rule: {found.departure.because}"
    if action in ("index", "index_batch") and args["number"] < state.end:
        messages = {"position": state.positions, "size": state.sizes, "tag": state.tags}
        what = next(name for name in messages if args[name] != messages[name][args["number"]])
        return f"entry {args['number']} {ENTRY_STATES[what].format(args[what], messages[what][args['number']])}"
    if action in ("index", "index_batch"):
        return f"entry {args['number']} has no message in the log"
    if action == "settle":
        return f"its slots up to number {state.blank} are blanks, and no entry follows"
    if action == "tell_first":
        return f"the table has number {args['number']} for its first entry, and message {state.first} is in the log"
    if action == "tell_last" and args["number"] < 0:
        return f"the table knows nothing of it, and its last entry is {state.indexed - 1}"
    if action == "tell_last" and args["number"] + 1 == state.indexed:
        points = state.entry_positions[args["number"]]
        return (
            f"the table lets its last entry, {args['number']}, point at {args['position']}, and it points at {points}"
        )
    if action == "tell_last":
        return f"the table has number {args['number']} for its last entry, which is {state.indexed - 1}"
    if action == "find_file":
        torn = args["length"] % ENTRY and queue_named(found.trace) not in judged.store.batched
        how = "no whole number of entries" if torn else f"where others have {args['full']}"
        return f"a file of {args['length']} bytes, {how}"
    if action == "open":
        return f"its first message in the log has number {args['number']}, and the log begins at {args['start']}"
    return f"breaks the rule: {found.departure.because}"


def _of_transaction(found: Breach, action: str, args: Mapping[str, int]) -> str:
    what = {"check": "the half put back", "commit": "the final", "roll_back": "the op", "mark": "the op"}
    sentence = SENTENCES.get(found.rule, "{what} at {at} breaks the rule: {because}")
    state = found.departure.state
    parent = args.get("parent", args.get("number", -1))
    return sentence.format(
        what=what.get(action, "what lies"), at=found.position, because=found.departure.because,
        phase=called(state.phase), newest=state.newest, limit=state.max_checks, before=state.times[parent],
        about=parent, **{"number": "?", "half": "?", "times": "?"} | {name: str(v) for name, v in args.items()},
    )  # fmt: skip


REPLACED = "{what} at {at} is about half {about}, and half {newest} has its place"
OF_RULES = {  # what is wrong with a transaction, by the rule that is broken
    "transaction-is-undecided": "{what} at {at} comes when the transaction is {phase}",
    "final-names-a-version-of-its-half": "the final at {at} names a half at {half}, and no version lies there",
    "final-carries-what-its-half-carries": "the final at {at} is not what its half at {half} is",
    "producer-asked-to-commit-it": "there is a final at {at}, but its producer did not ask for it",
    "producer-asked-to-roll-it-back": "half {number} at {at} has an op and no final, but no client rolled it back",
    "decision-names-the-newest-version": REPLACED,
    "newest-version-is-put-back": REPLACED,
    "newest-version-is-set-aside": REPLACED,
    "counter-goes-up-by-one": "the half at {at} was put back with counter {times}, the one before it has {before}",
    "half-that-is-put-back-is-in-the-log": "the half at {at} has counter {times}, and no version before it",
    "producer-is-asked": "the half at {at} was put back with counter {times}, but its producer was not asked",
    "all-checks-are-spent": "the half was set aside at {at} after {times} checks, where {limit} are allowed",
    "commit-that-was-acknowledged-has-its-final": "half {number} was acknowledged as committed, and is not",
    "check-names-a-version-of-its-half": "its producer was asked about half {number} at {half}, where none lies",
}
SENTENCES = by_rule("transaction/", OF_RULES)


def _of_cursors(found: Breach, action: str, args: Mapping[str, int]) -> str:
    state = found.departure.state
    if found.rule == UNDECIDED:
        return f"half {state.half_end - 1} at {found.position} has no op, newer version or parked copy; {found.detail}"
    if found.rule in BEYOND:
        what, end = ("op", state.op_end) if action == "advance_ops" else ("half", state.half_end)
        return f"the {what} cursor is {args['to']}, and those of the log end at {end} ({found.detail})"
    return f"op {state.op_end - 1} at {found.position} breaks the rule: {found.departure.because}"


def _of_ops(found: Breach, action: str, args: Mapping[str, int]) -> str:
    if found.rule == NAMED_TWICE:
        return f"the op at {found.position} names half {args['number']} more than once"
    if action == "enqueue":
        return f"the op at {found.position} names half {args['number']}, which is not in the log before it"
    return f"the op at {found.position} breaks the rule: {found.departure.because}"


def _of_deliveries(found: Breach, _action: str, _args: Mapping[str, int]) -> str:
    what = "the log has no record of it" if not found.departure.state.records else "the log has its half alone"
    return f"a consumer was handed the message, and {what} ({found.detail})"


OF_TRANSACTIONS: Mapping[str, Callable[[Breach, str, Mapping[str, int]], str]] = {
    "delivery": _of_deliveries,
    "visibility": lambda found, _action, _args: explain_visibility.message(found),
    "transaction": _of_transaction,
    "checkpoint": _of_cursors,
    "op_batch": _of_ops,
}


def context(judged: StoreFindings, found: Breach) -> list[str]:
    """Describes the target of a wrong entry, or the differences of a copy; or returns nothing."""
    if found.spec == "queue":
        return _queue_context(judged, found)
    if found.spec in ("transaction", "visibility"):
        of = _differences if found.spec == "transaction" else explain_visibility.context
        return of(judged.store, found)
    if found.detail and (found.spec == "op_batch" or found.action in ("checkpoint", "roll") or found.rule in FOLLOWS):
        return [found.detail]
    if found.spec == "log" and found.arguments.get("fits") == 0:
        return _entry(judged.store, found.position)
    layout = registry.layout_of(found.spec)
    return layout.explanation.context(judged, found) if layout else []


def _queue_context(judged: StoreFindings, found: Breach) -> list[str]:
    if found.action == "settle" and found.detail:
        return [found.detail]
    if found.action == "acknowledge":
        return [f"at {found.position} is {whereabouts(judged, found.position)}"]
    return [*_entry_target(judged, found), *explain_numbers.context(judged, found)]


def _entry(store: StoreDirectory, position: int) -> list[str]:
    """Describes the header of a DLedger entry, of which a part is wrong (docs/rocketmq.md#dledger)."""
    header = file_access.entry_at(store, position)
    if header is None:
        return []
    claims = (
        f"index {header.number}, term {header.term}, position {header.position} and a record of {header.body} bytes"
    )
    return [f"the entry's header has magic {header.magic}, size {header.size}, {claims}"]


def _entry_target(judged: StoreFindings, found: Breach) -> list[str]:
    """Describes the target of an entry, and the known defect that explains it, if there is one."""
    if found.rule in MISSING and judged.store.database and found.position == judged.store.start:
        rebuilt = "a broker that builds its queues again in RocksDB leaves it out (docs/rocketmq.md#rocksdb-switched)"
        killed = (
            "one that was killed reads ten files of the log again, and no more (docs/rocketmq.md#rocksdb-ten-files)"
        )
        return [f"it is the first message of the log: {rebuilt}; {killed}"]
    if found.action not in ("index", "index_batch"):
        return []
    args = named("queue", found.departure.event)
    position, size = args["position"], args["size"]
    if position == size == args["tag"] == 0:
        return ["the entry is all zeros"]
    if found.rule not in ELSEWHERE:
        return []
    lies = [f"the entry points at {position}, {whereabouts(judged, position)}"]
    topic, _, queue = found.trace.rpartition("/")
    record, number = file_access.record_at(judged.store, position), args["number"]
    if record and (record.topic, str(record.queue), record.number) == (topic, queue, number + 1):
        lies.append(
            f"message {number} has no entry, and those behind it stand a slot too early; a known cause: a clean start "
            "of RocketMQ from 5.3.2 on skips the first record without an entry (docs/rocketmq.md#recovery-clean)"
        )
    return lies


OF_HALVES = frozenset(  # properties that only a half has, and those that count its versions
    {
        names.WAIT, names.REAL_TOPIC, names.REAL_QUEUE, names.HALF_MARKER, names.PROPERTY_CRC, names.MULTI_OFFSET,
        names.CHECK_TIMES, names.FIRST_PUT_BACK,
    }
)  # fmt: skip


def _differences(store: StoreDirectory, found: Breach) -> list[str]:
    """Describes the differences between a half and its renewal, final or parked copy."""
    if found.rule not in COPIES:
        return []
    args = named("transaction", found.departure.event)
    half_at = found.departure.state.positions[args.get("parent", args["number"])]
    half, copy = file_access.record_at(store, half_at), file_access.record_at(store, found.position)
    if half is None or copy is None:
        return []
    what = ["body"] * (half.body != copy.body) + ["birth"] * (half.born != copy.born)
    if found.action == "commit":
        wanted = half.properties.get(names.REAL_TOPIC), half.properties.get(names.REAL_QUEUE)
        what += ["topic"] * (copy.topic != wanted[0]) + ["queue"] * (str(copy.queue) != wanted[1])
    if found.action != "check":
        what += ["flag"] * (half.flag != copy.flag) + ["reconsume times"] * (half.reconsumed != copy.reconsumed)
    compared = (half.properties.keys() | copy.properties.keys()) - OF_HALVES
    what += sorted(name for name in compared if half.properties.get(name) != copy.properties.get(name))
    return [f"the half at {half_at} and what lies at {found.position} differ in {', '.join(map(shown, what))}"] * bool(
        what
    )
