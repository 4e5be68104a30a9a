"""Operations on a store, step by step; each step reports its observations, and deviations from expectations."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from gapless.impl.records.errors import InUse
from gapless.impl.store.store import Store
from tests.interop.broker import Broker
from tests.interop.damage import PlantedFault
from tests.interop.files import Contents, changes, overwritten
from tests.interop.remoting import SEARCH_BY_TIME, Client, PulledMessages
from tests.interop.written import Message, WrittenStore, differences
from tests.support.rocketmq import stores
from tests.support.rocketmq.stores import Queue

ROOT = Path(__file__).parent.parent.parent
NEW_TOPIC = "refunds"
UNINDEXED = "not in the hash index, and others are"  # why a verdict is inconclusive, in the words of the report
SENT = 40  # messages that the broker is sent for each queue


@dataclass(frozen=True)
class Step:
    """One line of the table, and the lines that follow it if something is wrong."""

    what: str
    seen: str
    wrong: list[str] = field(default_factory=list)


def look(store: Path, written: WrittenStore, *, missing: int = 0) -> Step:
    """Read the files with a reader that shares no code with their writer: the log first, then every queue.

    For an abandoned store, the last `missing` entries are not there.
    """
    log, there = stores.read_log(store), stores.queues_of(store)
    expected = stores.expected_queues(log)
    wrong, lost = [], 0
    for queue, messages in written.queues.items():
        lying = [record for record in log if (record.topic, record.queue) == queue]
        wrong += differences(queue, messages, PulledMessages(lying), "the log has")
        wanted = [*expected.get(queue, {}).items()]
        found = [*stores.read_queue(store, queue).items()] if queue in there else []
        if found != wanted[: len(found)]:
            wrong.append(f"{name_of(queue)}: an entry is not what its record says")
        lost += len(wanted) - len(found)
    if len(log) != written.count or lost != missing:
        wrong.append(f"{len(log)} records and all but {lost} of their entries; expected {written.count}, {missing}")
    files = stores.log_files(store)
    ahead = sum(not any(file.read_bytes()) for file in files)
    wrong += [f"{ahead} files are made ahead"] if ahead != bool(missing) else []
    seen = f"{len(log)} records, {len(log) - lost} entries, {len(files)} log files" + (", 1 ahead" if ahead else "")
    return Step("another reader looks into the files", seen, wrong)


def visit(broker: Broker, written: WrittenStore, *, send: bool) -> Iterator[Step]:
    """The broker opens the store, hands out what is in it, takes more if it is to, and stops in order.

    What it takes is added to `written`.
    """
    before = Contents.of(broker.store)
    end = before.end_of(written.last.position)
    queues = [*written.queues]
    began = time.monotonic()
    with broker:
        yield Step("a broker opens it", f"serves after {time.monotonic() - began:.1f} s")
        with broker.client() as client:
            yield consume(client, written)
            yield consume_by_tag(client, written)
            yield find_by_time(client, written)
            yield keep_out(broker.store)
            if send:
                yield append(client, written, Random(len(before.files)))
                yield consume(client, written)
        began = time.monotonic()
        broker.stop()
    after = Contents.of(broker.store)
    yield Step("it stops", f"after {time.monotonic() - began:.1f} s")
    wrong = overwritten(before, after, end, queues)
    yield Step("what was written is left as it was", changes(before, after), wrong)


def consume(client: Client, written: WrittenStore) -> Step:
    """Every message of every queue, in order."""
    found, wrong = 0, []
    for queue, messages in written.queues.items():
        consumed = client.consume(queue)
        found += len(consumed.records)
        wrong += differences(queue, messages, consumed)
    return Step("every queue is consumed", f"{found} of {written.count} messages, {len(written.queues)} queues", wrong)


def consume_by_tag(client: Client, written: WrittenStore) -> Step:
    """The messages of one tag in each queue: the broker picks them by the codes in the entries."""
    found, wrong = 0, []
    for queue, messages in written.queues.items():
        tag = next((message.tag for message in messages if message.tag), "none")
        consumed = client.consume(queue, tag)
        numbers = [record.number for record in consumed.records]
        wanted = [number for number, message in enumerate(messages) if message.tag == tag]
        found += len(numbers)
        if numbers != wanted or consumed.stopped:
            lost = sorted({*wanted} - {*numbers})[:3]
            wrong.append(
                f"{name_of(queue)}: {len(wanted)} messages have the tag {tag}, the broker hands out {len(numbers)}"
                + (f", without {lost}" if lost else "")
                + (f"; {consumed.stopped}" if consumed.stopped else "")
            )
    return Step("a tag of each queue is consumed", f"{found} messages", wrong)


def find_by_time(client: Client, written: WrittenStore) -> Step:
    """In each queue the first message that was stored when the middle one was."""
    found, wrong = 0, []
    for queue, messages in written.queues.items():
        times = [record.store_time for record in client.consume(queue).records]
        if not times or len(times) != len(messages):
            continue
        middle = times[len(times) // 2]
        number = client.number(SEARCH_BY_TIME, queue, timestamp=middle)
        found += 1
        if number != times.index(middle):
            wrong.append(f"{name_of(queue)}: at {middle} comes number {times.index(middle)}, the broker says {number}")
    return Step("a time of each queue is looked up", f"{found} queues", wrong)


def keep_out(store: Path) -> Step:
    """While a broker has a store open, our implementation does not open it."""
    what = "it keeps our implementation out"
    try:
        Store.open(store).abandon()
    except InUse as refusal:
        return Step(what, str(refusal).partition(";")[0])
    return Step(what, "", ["two writers have the store open"])


def append(client: Client, written: WrittenStore, choose: Random) -> Step:
    """More messages for every queue, and for two of a new topic; they are added to `written`."""
    if (NEW_TOPIC, 0) not in written.queues:
        client.make_topic(NEW_TOPIC, 2)
        written.queues |= {(NEW_TOPIC, 0): [], (NEW_TOPIC, 1): []}
    sent, wrong = 0, []
    for index in range(SENT):
        for queue, messages in written.queues.items():
            body = choose.randbytes(choose.randrange(1, 300))
            given = {
                "UNIQ_KEY": f"{choose.getrandbits(128):032X}",
                "TAGS": choose.choice(("paid", "créé", "订单-😀")),
                "WAIT": "true",
            }
            number, position = client.send(queue, body, given)
            if number != len(messages):
                wrong.append(f"{name_of(queue)}: message {len(messages)} was given the number {number} (send {index})")
            messages.append(Message(position, body, given))
            sent += 1
    return Step("the broker is sent more", f"{sent} messages, {len(written.queues)} queues", wrong)


def check(home: Path, written: WrittenStore, *, indexed: bool = True, index_stands: bool = False) -> Step:
    """`gapless check` of what is there now: it conforms, and its counts are those of what was written.

    In a store that was abandoned, not all need be indexed. `index_stands`: as of `report`.
    """
    found, result = report(home, "rocketmq", index_stands=index_stands)
    if not found:
        return Step("gapless check", "no report", result)
    coverage = found["coverage"]
    seen = {
        "records": found["sources"][0]["records"],
        "log.append": coverage["log.append"],
        "queue.append": coverage["queue.append"],
    } | ({"queue.index": coverage["queue.index"]} if indexed else {})
    wrong = [
        f"{name}: {count}, and {written.count} were written" for name, count in seen.items() if count != written.count
    ]
    wrong += result
    notes = [f"{found['findings_total']} findings"] if found["findings_total"] else []
    return Step("gapless check", ", ".join([found["verdict"], f"{seen['records']} records", *notes]), wrong)


def report(home: Path, profile: str, *, index_stands: bool = False) -> tuple[dict[str, Any], list[str]]:
    """Return the JSON of `gapless check`, and deviations from expectations; nothing if there is no report.

    `index_stands`: our implementation, which makes no hash index, continued a broker's store with one. That cannot be
    told from a damaged index, so the verdict is inconclusive, for this reason alone.
    """
    file = home / "check.json"
    command = [sys.executable, "-m", "gapless", "check", str(home), "--profile", profile, "--json", str(file)]
    file.unlink(missing_ok=True)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    if not file.exists():
        return {}, (done.stdout + done.stderr).splitlines()[-5:]
    found = json.loads(file.read_text())
    reasons = found["sources"][0]["reasons"]
    verdict, code = ("inconclusive", 3) if index_stands else ("conforms", 0)
    wrong = [reason for reason in reasons if not (index_stands and UNINDEXED in reason)]
    if found["verdict"] != verdict:
        wrong += [f"the verdict is {found['verdict']}", *(finding["message"] for finding in found["findings"][:3])]
    return found, wrong + ([f"exit code {done.returncode}"] if done.returncode != code else [])


def complain(broker: Broker) -> Step:
    """Report the broker's logged errors. They fail nothing: a broker calls a torn record a bug of its own."""
    errors = [line.split(" ", 2)[2] for line in broker.complaints() if " ERROR " in line]
    return Step("errors in its log", "; ".join(errors)[:300] or "none")


def notice(broker: Broker, written: WrittenStore, planted: list[PlantedFault]) -> Iterator[Step]:
    """Read a store with faults: each must be reported, and no queue without one."""
    with broker, broker.client() as client:
        wrong_lines = [*consume(client, written).wrong, *consume_by_tag(client, written).wrong]
    for fault in planted:
        lines = [
            line for line in wrong_lines if line.startswith(f"{name_of(fault.queue)}: ") and fault.reported_as in line
        ]
        wrong = [] if lines else [f"not noticed; reported was: {line}" for line in wrong_lines or ["nothing"]]
        yield Step(f"noticed: {fault.what}", lines[0] if lines else "", wrong)
    faulty = tuple(f"{name_of(fault.queue)}: " for fault in planted)
    wrong = [line for line in wrong_lines if not line.startswith(faulty)]
    yield Step("nothing is reported of other queues", f"{len(written.queues) - len(planted)} queues", wrong)


def name_of(queue: Queue) -> str:
    """Format a queue's name for people."""
    return f"{queue[0]}/{queue[1]}"
