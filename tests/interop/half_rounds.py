"""What a broker does with open halves, step by step: it asks their producers, and hands out what they committed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from tests.interop import rounds
from tests.interop.ledger import COMMIT, OPEN, PARKED, ROLLBACK, Ledger, Transaction
from tests.interop.producer import NameServer, Producer
from tests.interop.remoting import Client, Consumed, Refused
from tests.interop.rounds import Step, name_of
from tests.interop.setup import Setup
from tests.support.rocketmq import transactions as second
from tests.support.rocketmq.stores import Queue

GROUP, TOPIC = "billing", "orders"
MAX_CHECKS = 5
INTERVAL = 2.0  # seconds between two rounds of a broker
SETTINGS: dict[str, str | int] = {
    "transactionCheckInterval": int(1000 * INTERVAL),
    "transactionTimeOut": 3_600_000,  # until there is somebody to be asked: a check without a producer counts
    "transactionOpBatchInterval": 100,
    "transactionCheckMax": MAX_CHECKS,
}
PARKING = (second.PARK, 0)
SETTLED_WITHIN = 60  # seconds


@dataclass(frozen=True)
class Sending:
    """What RocketMQ's producer sends while it is there: how many, how it decides at first, what it answers when asked.

    Those whose answer begins with `later-` are answered by our implementation alone.
    """

    count: int
    first: str
    asked: str


AT_ONCE = (Sending(10, COMMIT, "none"), Sending(6, ROLLBACK, "none"), Sending(5, "open", COMMIT))
TO_BE_LEFT = (Sending(6, "open", "later-commit"), Sending(5, "open", "later-rollback"))


def visit(setup: Setup, ledger: Ledger, *, end: str = "stop", leave: bool = True) -> Iterator[Step]:
    """A broker opens the store with RocketMQ's producer beside it, and resolves what is open.

    `end`: stop or kill · `leave`: halves are left open at the end.
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
            parking = {body for body in ledger.of_fate(OPEN) if body.split(b"/")[1] == b"never"}
            _wait_until_settled(client, producer, expected, parking)
            yield compare_asked([told.body for told in producer.asked], expected, "the broker asks")
            ledger.resolve(parks=True)
            yield compare(ledger, client.consume, "the broker hands out", twice=ledger.told_again)
            yield _set_aside(client, ledger)
            ledger.told_again.clear()
            if leave:
                mine = _send(ledger, producer, AT_ONCE)
                asked = {body for body in mine if ledger.transactions[body].fate == OPEN}
                _wait_until_settled(client, producer, expected | asked, set())
                ledger.resolve(parks=False)
                yield compare(ledger, client.consume, "the broker hands out")
                _send(ledger, producer, TO_BE_LEFT)
                time.sleep(INTERVAL + 1.5)
            if end == "stop":
                broker.stop()
            else:
                if leave:
                    _wait_until_seen(client, ledger, _send(ledger, producer, (Sending(4, COMMIT, COMMIT),)))
                broker.kill()
        ledger.take(producer.asked, TOPIC)
    ledger.write_client_log()
    yield Step(f"it ends by a {end}", f"{len(ledger.of_fate(OPEN))} halves are open")


def _send(ledger: Ledger, producer: Producer, what: Collection[Sending]) -> list[bytes]:
    """The producer sends these, in turn; their bodies."""
    bodies = []
    for each in what:
        for _ in range(each.count):
            body = ledger.body(each.first, each.asked)
            told = producer.send(body)
            ledger.take([told], TOPIC)
            fate = each.first if each.first in (COMMIT, ROLLBACK) else OPEN
            ledger.transactions[body] = Transaction((TOPIC, told.where), fate)
            bodies.append(body)
    return bodies


def _wait_until_settled(
    client: Client, producer: Producer, expected: Collection[bytes], parking: Collection[bytes]
) -> None:
    """All that should be asked about has been, what should be set aside is, and then nothing happens for two rounds.

    At most `SETTLED_WITHIN` seconds: then what is there is compared.
    """
    until, quiet, before = time.monotonic() + SETTLED_WITHIN, time.monotonic(), -1
    while time.monotonic() < until:
        asked = [told.body for told in producer.asked]
        if len(asked) != before:
            before, quiet = len(asked), time.monotonic()
        aside = {record.body for record in _consume(client, PARKING).records} if parking else set()
        done = {*expected} <= {*asked} and {*parking} <= aside
        if done and time.monotonic() > quiet + 2 * INTERVAL + 0.5:
            return
        time.sleep(0.2)


def _wait_until_seen(client: Client, ledger: Ledger, bodies: Collection[bytes]) -> None:
    """Their finals are there. What names them in an op may not be yet."""
    until = time.monotonic() + SETTLED_WITHIN
    while time.monotonic() < until:
        seen = {record.body for queue in ledger.queues for record in client.consume(queue).records}
        if {*bodies} <= seen:
            return


def _consume(client: Client, queue: Queue) -> Consumed:
    try:
        return client.consume(queue)
    except Refused:
        return Consumed([])


def compare_asked(asked: Collection[bytes], expected: Collection[bytes], who: str) -> Step:
    """Exactly those that are undecided are asked about."""
    strange = sorted({*asked} - {*expected})
    forgotten = sorted({*expected} - {*asked})
    wrong = [f"{who} about {body.decode()}, which is decided" for body in strange]
    wrong += [f"{who} nobody about {body.decode()}, which is open" for body in forgotten]
    seen = f"{len({*asked})} of {len(expected)} undecided ones, {len(asked)} times"
    return Step(f"{who} about what is open", seen, wrong)


def compare(ledger: Ledger, consume: Callable[[Queue], Consumed], who: str, *, twice: Collection[bytes] = ()) -> Step:
    """Consumers see exactly what was sent and what was committed, once, behind all that they had seen.

    `twice`: what a broker may commit once more.
    """
    wrong, found, again = [], 0, 0
    for queue in ledger.queues:
        consumed = consume(queue)
        bodies = [record.body for record in consumed.records]
        found += len(bodies)
        if bodies[: len(ledger.seen.get(queue, ()))] != ledger.seen.get(queue, []):
            wrong.append(f"{name_of(queue)}: what was consumed before is not there any more")
        ledger.seen[queue] = bodies
        counts, expected = Counter(bodies), ledger.visible(queue)
        for body in sorted(counts.keys() | expected.keys()):
            repeated = counts[body] == 2 and expected[body] == 1 and body in ledger.repeated | {*twice}
            again += repeated
            if repeated:
                ledger.repeated.add(body)
            elif counts[body] != expected[body]:
                wrong.append(f"{name_of(queue)}: {who} {body.decode()} {counts[body]} times, not {expected[body]}")
        wrong += [f"{name_of(queue)}: {consumed.stopped}"] if consumed.stopped else []
    seen = f"{found} messages, {len(ledger.queues)} queues" + (
        f", {again} of them again, as is its habit" if again else ""
    )
    return Step("every queue is consumed", seen, wrong)


def _set_aside(client: Client, ledger: Ledger) -> Step:
    there = {record.body for record in _consume(client, PARKING).records}
    wrong = [f"{body.decode()} is not set aside" for body in sorted(ledger.of_fate(PARKED) - there)]
    wrong += [f"{body.decode()} is set aside" for body in sorted(there - ledger.of_fate(PARKED))]
    return Step("what nobody decided is set aside", f"{len(there)} transactions", wrong)


def judge(ledger: Ledger, profile: str) -> Step:
    """`gapless check` with the client log, and the tests' own judge."""
    found, wrong = rounds.report(ledger.home, profile)
    wrong += [f"{rule} at {position}: {about}" for rule, position, about in second.departures(ledger.home / "store")]
    if not found:
        return Step(f"gapless check, {profile}", "no report", wrong)
    coverage, counts = found["coverage"], second.counts(ledger.home / "store")
    pairs = (
        ("transaction.prepare", counts.halves - counts.renewals),
        ("transaction.check", counts.renewals),
        ("transaction.commit", counts.finals),
        ("transaction.park", counts.parked),
    )
    told = {name: coverage.get(name, 0) for name, _ in pairs}
    anomalies = found["findings_total"]
    seen = ", ".join([found["verdict"], *(f"{count} {name.split('.')[1]}" for name, count in told.items())])
    return Step(f"gapless check, {profile}", f"{seen}, {anomalies} findings", wrong)
