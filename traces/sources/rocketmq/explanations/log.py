"""Explains departures of the commit log: the file or the message that is damaged, and what that may explain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from gapless.spec.catalog import rule
from gapless.traces.problems import shown
from gapless.traces.replay.exact import named
from gapless.traces.report.charts import clipped
from gapless.traces.sources.rocketmq.joining.findings import Breach
from gapless.traces.sources.rocketmq.log.records import PlainRecord
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.names import REAL_QUEUE, REAL_TOPIC, UNIQ_KEY

FOLLOWS = (
    rule("log/record-begins-where-the-last-one-ends").id,
    rule("log/blank-begins-where-the-last-record-ends").id,
)
BODY = rule("log/body-has-its-checksum").id
SEAL = rule("log/record-has-the-checksum-that-its-properties-carry").id
OF_BODIES = (BODY, SEAL)
KEYS = "KEYS"  # the property with the keys that a producer chose
LONGEST_KEY = 80
YEAR_10000 = 253_402_300_800_000  # in ms


def message(store: StoreDirectory, found: Breach) -> str:
    """Describes a violation of the log in one sentence without its end."""
    args = named("log", found.departure.event)
    end = int(found.departure.state.end)
    if found.action == "checkpoint":
        why = "with a record older than the last one that its checkpoint knows"
        return f"{_next_file(store, end)}the log ends at {end}, {why}"
    if found.action == "refer":
        return f"{_next_file(store, end)}the log ends at {end}, and {found.detail} names a record at {args['position']}"
    if found.rule in FOLLOWS:
        gone = _missing(store, end, int(args["position"]))
        return f"{gone}no record follows at {end}; the log continues at {args['position']}"
    if found.action == "roll" and not args["marked"]:
        return f"{_unreadable(store, int(args['position']))}, and the log continues in the next file"
    if found.rule in OF_BODIES or found.action == "omit":
        return f"{_damaged(store, found)} (the record at {args['position']})"
    what = "blank" if found.action == "roll" else "record"
    return f"the {what} at {args['position']} breaks the rule: {found.departure.because}"


def _next_file(store: StoreDirectory, end: int) -> str:
    """Names the file behind the last one, if the log ends with a full file and that one is not there."""
    whole = (end - store.start) % store.file_size == 0 and end > store.start
    there = any(file.base == end for file in store.files)
    return f"log file {end:020d} is missing: " if whole and not there else ""


def _missing(store: StoreDirectory, low: int, high: int) -> str:
    """Names the log files between two positions that are not there."""
    there = {file.base for file in store.files}
    first = low - (low - store.start) % store.file_size
    gone = [base for base in range(first, high, store.file_size) if base not in there]
    if not gone:
        return ""
    if len(gone) == 1:
        return f"log file {gone[0]:020d} is missing: "
    if len(gone) == 2:
        return f"log files {gone[0]:020d} and {gone[1]:020d} are missing: "
    return f"{len(gone):,} log files from {gone[0]:020d} to {gone[-1]:020d} are missing: "


def _unreadable(store: StoreDirectory, position: int) -> str:
    """Names the log file that has no record from a position on."""
    offset = (position - store.start) % store.file_size
    name = f"log file {position - offset:020d}"
    if offset:
        return f"{name} has no record from byte {offset} on, which is {position} of the log"
    return f"{name} has no record that can be read"


def _damaged(store: StoreDirectory, found: Breach) -> str:
    position = int(found.arguments["position"])
    name = message_at(store, position) or f"the message at {position}"
    if found.action == "omit":
        return f"{name} carries no checksum of itself{', ' * bool(found.detail)}{found.detail}"
    body = found.rule == BODY
    return f"{'the body of ' * body}{name} {'does not have' if body else 'does not match'} its checksum"


def message_at(store: StoreDirectory, position: int) -> str:
    """Names the message of a record: topic, queue, number, key, and the time when it was stored; or is empty."""
    header, record = file_access.header_of(store, position), _record(store, position)
    if record is None or not header.known:
        return ""
    topic, queue = record.properties.get(REAL_TOPIC), record.properties.get(REAL_QUEUE)
    half = f" (a half of {topic}/{queue})" if topic and queue else ""
    key = "".join(f", {word} {key}" for word, key in zip(("key", "keys"), keys_at(store, position), strict=False))
    stored = f", stored {_date(header.time)}" if 0 < header.time < YEAR_10000 else ""
    return shown(f"message {record.topic}/{record.queue} number {record.number}{half}{key}{stored},")


def keys_at(store: StoreDirectory, position: int) -> list[str]:
    """Returns the keys of the message at a log position: the one that its client made, and those of its producer."""
    record = _record(store, position)
    found = record.properties if record else {}
    names = dict.fromkeys(found[name] for name in (UNIQ_KEY, KEYS) if name in found)
    return [shown(clipped(name, LONGEST_KEY)) for name in names]


def _record(store: StoreDirectory, position: int) -> PlainRecord | None:
    wrapped = next((file.wrapped for file in store.files if file.base <= position < file.base + file.length), 0)
    return file_access.record_at(store, position + wrapped)


def _date(time: int) -> str:
    return f"{datetime.fromtimestamp(time // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def others(store: StoreDirectory, group: Sequence[Breach], most: int) -> Iterator[str]:
    """Yields a line for each further violation of one rule, up to `most` with the first."""
    for found in group[1:most]:
        yield f"Also: {message(store, found)}."
