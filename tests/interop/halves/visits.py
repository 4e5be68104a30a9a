"""A broker's treatment of open halves, step by step: it asks their producers, and delivers committed ones."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tests.interop.halves.comparing import compare, compare_asked
from tests.interop.halves.faults import PlantedHalf
from tests.interop.halves.ledger import (
    AWAY,
    COMMIT,
    GROUP,
    MAX_CHECKS,
    OPEN,
    PARKED,
    ROLLBACK,
    TOPIC,
    Ledger,
    Transaction,
    answer,
)
from tests.interop.halves.producer import NameServer, Producer
from tests.interop.remoting import Client, PulledMessages, Refused
from tests.interop.rounds import Step
from tests.interop.setup import Setup
from tests.support.rocketmq import transactions as second
from tests.support.rocketmq.stores import Queue

INTERVAL = 2.0  # seconds between two rounds of a broker
NEVER = 3_600_000  # ms: no half is as old
SETTINGS: dict[str, str | int] = {
    "transactionCheckInterval": int(1000 * INTERVAL),
    "transactionTimeOut": NEVER,  # until a producer is there: a check without one counts
    "transactionOpBatchInterval": 100,
    "transactionCheckMax": MAX_CHECKS,
}
PARKING = (second.PARK, 0)
SETTLED_WITHIN = 60  # seconds


@dataclass(frozen=True)
class SendPlan:
    """Messages of RocketMQ's producer: how many, their first decisions, and its answers to back-checks.

    Those whose answer begins with `later-` are answered by our implementation alone.
    """

    count: int
    first: str
    asked: str


AT_ONCE = (SendPlan(10, COMMIT, "none"), SendPlan(6, ROLLBACK, "none"), SendPlan(5, "open", COMMIT))
TO_BE_LEFT = (SendPlan(6, "open", "later-commit"), SendPlan(5, "open", "later-rollback"))


def visit(
    setup: Setup, ledger: Ledger, *, end: str = "stop", leave: bool = True, within: float = SETTLED_WITHIN
) -> Iterator[Step]:
    """Let a broker with RocketMQ's producer open the store, and resolve its open halves.

    `end`: stop or kill · `leave`: halves are left open at the end · `within`: seconds that it is given for all of them.
    """
    home = ledger.home
    with NameServer(home, setup.jars, setup.java) as server:
        broker = setup.broker(home.name, **SETTINGS, namesrvAddr=server.address, autoCreateTopicEnable="false")
        producer = Producer(home, setup.jars, setup.java, server=server.address, group=GROUP, topic=TOPIC)
        began = time.monotonic()
        with producer, broker, broker.client() as client:
            if not (home / "store" / "consumequeue" / TOPIC).exists():
                client.make_topic(TOPIC, 4)
            producer.wait_until_known()
            client.configure(transactionTimeOut=1000)
            yield Step("a broker opens it, a producer comes", f"after {time.monotonic() - began:.1f} s")
            expected = ledger.asked_now()
            parking = {body for body in ledger.of_fate(OPEN) | ledger.of_fate(AWAY) if answer(body) == "never"}
            _wait_until_settled(client, producer, expected, parking, within)
            yield compare_asked([check.body for check in producer.asked], expected, "the broker asks")
            ledger.resolve(parks=True)
            yield compare(ledger, client.consume, "the broker hands out", twice=ledger.asked_again)
            yield _set_aside(client, ledger)
            ledger.asked_again.clear()
            if leave:
                mine = _send(ledger, producer, AT_ONCE)
                asked = {body for body in mine if ledger.transactions[body].fate == OPEN}
                _wait_until_settled(client, producer, expected | asked, set(), within)
                ledger.resolve(parks=False)
                yield compare(ledger, client.consume, "the broker hands out")
                _wait_until_asked(producer, _send(ledger, producer, TO_BE_LEFT))
                client.configure(transactionTimeOut=NEVER)  # a slow stop continues its rounds, and sets them aside
            if end == "stop":
                broker.stop()
            else:
                if leave:
                    _wait_until_seen(client, ledger, _send(ledger, producer, (SendPlan(4, COMMIT, COMMIT),)))
                broker.kill()
        ledger.take(producer.asked, TOPIC)
    ledger.write_client_log()
    yield Step(f"it ends by a {end}", f"{len(ledger.of_fate(OPEN))} halves are open")


def _send(ledger: Ledger, producer: Producer, what: Collection[SendPlan]) -> list[bytes]:
    """The producer sends these, in turn; their bodies."""
    bodies = []
    for each in what:
        for _ in range(each.count):
            body = ledger.body(each.first, each.asked)
            sent = producer.send(body)
            ledger.take([sent], TOPIC)
            fate = each.first if each.first in (COMMIT, ROLLBACK) else OPEN
            ledger.transactions[body] = Transaction((TOPIC, sent.where), fate)
            bodies.append(body)
    return bodies


def _wait_until_settled(
    client: Client, producer: Producer, expected: Collection[bytes], parking: Collection[bytes], within: float
) -> None:
    """Wait until all expected back-checks and parkings are done, and two rounds passed without news.

    At most `within` seconds: then the current state is compared.
    """
    until, quiet, before = time.monotonic() + within, time.monotonic(), -1
    while time.monotonic() < until:
        asked = [check.body for check in producer.asked]
        if len(asked) != before:
            before, quiet = len(asked), time.monotonic()
        aside = {record.body for record in _consume(client, PARKING).records} if parking else set()
        done = {*expected} <= {*asked} and {*parking} <= aside
        if done and time.monotonic() > quiet + 2 * INTERVAL + 0.5:
            return
        time.sleep(0.2)


def _wait_until_asked(producer: Producer, bodies: Collection[bytes]) -> None:
    """Wait until its producer has answered *unknown* for each."""
    until = time.monotonic() + SETTLED_WITHIN
    while time.monotonic() < until and not {*bodies} <= {check.body for check in producer.asked}:
        time.sleep(0.05)


def _wait_until_seen(client: Client, ledger: Ledger, bodies: Collection[bytes]) -> None:
    """Their finals are there. What names them in an op may not be yet."""
    until = time.monotonic() + SETTLED_WITHIN
    while time.monotonic() < until:
        seen = {record.body for queue in ledger.queues for record in client.consume(queue).records}
        if {*bodies} <= seen:
            return


def _consume(client: Client, queue: Queue) -> PulledMessages:
    try:
        return client.consume(queue)
    except Refused:
        return PulledMessages([])


def _set_aside(client: Client, ledger: Ledger) -> Step:
    there, expected = Counter(record.body for record in _consume(client, PARKING).records), ledger.of_fate(PARKED)
    wrong = [
        f"{body.decode()} is set aside {there[body]} times, not {int(body in expected)}"
        for body in sorted(expected | there.keys())
        if there[body] != int(body in expected)
    ]
    return Step("undecided halves are set aside", f"{len(there)} transactions", wrong)


def notice(setup: Setup, ledger: Ledger, planted: Sequence[PlantedHalf]) -> Iterator[Step]:
    """Let a broker open a store with faults: it must report each one's transaction, and no other."""
    check = [line for step in visit(setup, ledger, leave=False, within=20) for line in step.wrong]
    for fault in planted:
        lines = [line for line in check if fault.body.decode() in _words(line) and fault.reported_as in line]
        wrong = [] if lines else [f"not noticed; reported was: {line}" for line in check or ["nothing"]]
        yield Step(f"noticed: {fault.what}", lines[0] if lines else "", wrong)
    bodies = {fault.body.decode() for fault in planted}
    wrong = [line for line in check if not bodies & _words(line)]
    yield Step(
        "nothing is reported of other transactions", f"{len(ledger.transactions) - len(bodies)} transactions", wrong
    )


def _words(line: str) -> set[str]:
    return {*line.replace(",", "").lower().split()}
