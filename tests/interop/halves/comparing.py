"""Comparisons with the ledger: the producers that are asked, the messages of consumers, and both verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

from tests.interop import rounds
from tests.interop.halves.ledger import Ledger
from tests.interop.remoting import PulledMessages
from tests.interop.rounds import Step, name_of
from tests.support.rocketmq import transactions as second
from tests.support.rocketmq.stores import Queue


def compare_asked(asked: Collection[bytes], expected: Collection[bytes], who: str) -> Step:
    """Exactly those that are undecided are asked about."""
    strange = sorted({*asked} - {*expected})
    forgotten = sorted({*expected} - {*asked})
    wrong = [f"{who} about {body.decode()}, which is decided" for body in strange]
    wrong += [f"{who} nobody about {body.decode()}, which is open" for body in forgotten]
    seen = f"{len({*asked})} of {len(expected)} undecided ones, {len(asked)} times"
    return Step(f"{who} about what is open", seen, wrong)


def compare(
    ledger: Ledger, consume: Callable[[Queue], PulledMessages], who: str, *, twice: Collection[bytes] = ()
) -> Step:
    """Compare: consumers see exactly the sent and committed messages, once, after all earlier ones.

    `twice`: messages that a broker may commit again.
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


def judge(ledger: Ledger, profile: str, *, index_stands: bool = False) -> Step:
    """`gapless check` with the client log, and the tests' own judge. `index_stands`: as of `rounds.report`."""
    found, wrong = rounds.report(ledger.home, profile, index_stands=index_stands)
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
    by_name = {name: coverage.get(name, 0) for name, _ in pairs}
    wrong += [f"{name}: {by_name[name]}, and there are {count}" for name, count in pairs if by_name[name] != count]
    again = found["anomalies"].get("commit_again", 0)
    if again != len(ledger.repeated):
        wrong.append(f"{again} are committed again, expected {len(ledger.repeated)}")
    words = [found["verdict"], *(f"{count} {name.split('.')[1]}" for name, count in by_name.items())]
    words += [f"{count} {name.replace('_', ' ')}" for name, count in found["anomalies"].items()]
    return Step(f"gapless check, {profile}", ", ".join(words), wrong)
