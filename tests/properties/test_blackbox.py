"""The black-box machine: it finds nothing in our store, nor in a naive one, and each fault that is planted in that."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gapless.properties.machines.blackbox.cases import run_cases
from gapless.properties.machines.blackbox.client_ledger import ClientLedger, FoundMessage
from gapless.properties.machines.blackbox.half_ledger import HalfEntry, HalfLedger
from gapless.properties.machines.blackbox.subject_process import SentBody
from gapless.properties.machines.blackbox.tally import BlackBoxTally
from gapless.properties.machines.mismatch import Mismatch
from tests.support import naive_store
from tests.support.night import by_day

pytestmark = pytest.mark.slow

OURS = f"{sys.executable} -X faulthandler -m gapless.impl.subject"
NAIVE = f"{sys.executable} -I -S {naive_store.__file__}"
KILLS = 60
STORES = 40
"""A planted fault is found by then."""


def test_no_kill_or_interrupt_takes_from_our_store_what_it_acknowledged() -> None:
    tally = run_cases(range(1000), OURS, checked=True, until=KILLS)
    if list(tally.too_few()):  # on a machine with much else to do, kills come at other moments
        tally.add(run_cases(range(1000, 3000), OURS, checked=True, until=2 * KILLS))
    assert not tally.failures
    assert tally.disturbed >= KILLS
    assert not list(tally.too_few())
    assert tally.counts["checks"] > 3


def test_a_store_that_is_not_ours_is_judged_by_the_same() -> None:
    tally = run_cases(range(2), NAIVE, checked=False)
    assert not tally.failures
    assert tally.counts["messages found"] > 100


def test_a_store_without_transactions_is_not_asked_for_any() -> None:
    tally = run_cases(range(1), f"{NAIVE} {naive_store.PLAIN}", checked=False)
    assert not tally.failures
    assert not tally.counts["halves"]
    tally.counts["kills"] += 5000
    assert not any("halves" in few for few in tally.too_few())


FINDINGS = {
    "acknowledges before it writes": "",
    "loses its last message when it is interrupted": "",
    "keeps its lock in a forked child": "in use",
    "works in a forked child": "",
    "skips a number": "",
    "has no lock": "a second process may open the store",
    "keeps what it refuses": "it was refused, lost, or never begun",
    "expires more than it has": "",
    "dies of an interrupt": "the process died by itself",
    "shows a half": "",
    "acknowledges a commit before it writes": "",
    "commits twice": "",
    "undoes a durable rollback": "",
    "commits what was rolled back": "",
    "forgets a half": "",
    "asks nobody": "",
    "delivers twice": "asked for",
    "passes one by": "asked for",
    "forgets its followers": "a follower of",
}


def test_every_fault_of_the_naive_store_has_its_finding() -> None:
    assert tuple(FINDINGS) == naive_store.FAULTS


@pytest.mark.parametrize(("fault", "finding"), by_day(list(FINDINGS.items()), 1 / 4))
def test_a_planted_fault_is_found(fault: str, finding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tally = run_cases(range(STORES), f"{NAIVE} {fault}", checked=False)
    assert [finding for failed in tally.failures if finding in failed.wrong] == [finding]
    assert all((failed.kept / "store").is_dir() for failed in tally.failures)


def test_a_command_that_is_no_subject_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing, and ends."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert "died by itself" in run_cases(range(1), "true", checked=False).failures[0].wrong


def test_too_few_of_a_kind_are_no_pass() -> None:
    tally = BlackBoxTally()
    tally.counts.update({"kills": 500, "acknowledged messages": 10_000})
    assert [few.split(":")[0] for few in tally.too_few()] == [
        "interrupts",
        "interrupted calls",
        "forks",
        "limits",
        "closes",
        "halves",
        "commits",
        "rollbacks",
        "checked halves",
        "followed messages",
        "watched messages",
    ]


# -- what the ledger holds against a store ---------------------------------------------------------------------------

QUEUE = ("orders", 0)


def _sent(ledger: ClientLedger, *names: str, safe: bool = True) -> list[SentBody]:
    """Messages that were begun, each by a call of its own, one after the other was answered."""
    bodies = [SentBody(QUEUE, name, 10) for name in names]
    for number, body in enumerate(bodies):
        ledger.tick()
        entries = ledger.ask([body])
        ledger.begin(entries)
        ledger.tick()
        ledger.acknowledge(entries, [number], safe=safe)
    return bodies


def _row(number: int, body: SentBody) -> FoundMessage:
    return FoundMessage(number, body.size, body.checksum, "")


def test_what_was_acknowledged_is_found_or_lost() -> None:
    ledger = ClientLedger()
    one, two = _sent(ledger, "one", "two")
    ledger.find(QUEUE, 0, 2, [_row(0, one), _row(1, two)])
    with pytest.raises(Mismatch, match=r"two of 10 bytes .* was acknowledged as number 1 and is lost"):
        ledger.find(QUEUE, 0, 1, [_row(0, one)])
    with pytest.raises(Mismatch, match="number 0 is two"):
        ledger.find(QUEUE, 0, 2, [_row(0, two), _row(1, one)])
    with pytest.raises(Mismatch, match="has 0 to 2, and reads as"):
        ledger.find(QUEUE, 0, 2, [_row(1, two)])
    with pytest.raises(Mismatch, match="no message that was sent"):
        ledger.find(QUEUE, 0, 3, [_row(0, one), _row(1, two), _row(2, SentBody(QUEUE, "three", 10))])
    with pytest.raises(Mismatch, match="had 0"):
        ledger.find(QUEUE, 0, 3, [_row(0, one), _row(1, two), _row(2, one)])


def test_a_store_that_promises_what_was_flushed_may_lose_the_rest() -> None:
    for is_flushed in (False, True):
        ledger = ClientLedger()
        one, two = _sent(ledger, "one", "two", safe=False)
        if not is_flushed:
            ledger.find(QUEUE, 0, 1, [_row(0, one)])
            ledger.settle()
            with pytest.raises(Mismatch, match="it was refused, lost, or never begun"):
                ledger.find(QUEUE, 0, 2, [_row(0, one), _row(1, two)])
        else:
            ledger.flushed(ledger.clock)
            with pytest.raises(Mismatch, match="is lost"):
                ledger.find(QUEUE, 0, 1, [_row(0, one)])


def test_what_expires_was_reported() -> None:
    ledger = ClientLedger()
    _, two = _sent(ledger, "one", "two")
    with pytest.raises(Mismatch, match="is lost"):
        ledger.find(QUEUE, 1, 2, [_row(1, two)])
    ledger.expired(ledger.tick())
    ledger.find(QUEUE, 1, 2, [_row(1, two)])
    with pytest.raises(Mismatch, match="begins at 9, and only 2"):
        ledger.find(QUEUE, 9, 9, [])


def test_of_a_batch_that_was_under_way_the_first_messages_are_there() -> None:
    ledger = ClientLedger()
    first, second = (SentBody(QUEUE, name, 10) for name in ("first", "second"))
    entries = ledger.ask([first, second])
    ledger.begin(entries)
    ledger.leave_open(entries, answered=False)
    ledger.find(QUEUE, 0, 1, [_row(0, second)])
    with pytest.raises(Mismatch, match="another before it in its batch is not"):
        ledger.settle()


def test_numbers_are_in_the_order_of_answers() -> None:
    """A call that began after another's answer comes later in the queue, even if it is unanswered."""
    ledger = ClientLedger()
    begun_late, early = SentBody(QUEUE, "late", 10), SentBody(QUEUE, "early", 10)
    entries = ledger.ask([early])
    ledger.begin(entries)
    ledger.tick()
    ledger.keep_first(entries, 1, safe=True)
    ledger.tick()
    entries = ledger.ask([begun_late])
    ledger.begin(entries)
    ledger.leave_open(entries, answered=False)
    ledger.tick()
    with pytest.raises(Mismatch, match="acknowledged before the other was asked for"):
        ledger.find(QUEUE, 0, 2, [_row(0, begun_late), _row(1, early)])


def _children() -> Iterator[str]:
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            if status.read_text().rpartition(")")[2].split()[1] == str(os.getpid()):
                yield status.parent.name


def test_pipes_and_processes_are_given_back() -> None:
    def resources() -> tuple[int, set[str]]:
        return len(list(Path("/proc/self/fd").iterdir())), set(_children())

    gc.collect()
    before = resources()
    run_cases(range(1), NAIVE, checked=False)
    assert resources() == before


# -- what the ledger of halves holds against a store -----------------------------------------------------------------


def _halves(*names: str) -> tuple[ClientLedger, HalfLedger, list[HalfEntry]]:
    """Halves that were begun and acknowledged."""
    ledger = ClientLedger()
    ledger.is_lasting = True
    halves = HalfLedger(ledger, 3, asks_by_itself=False)
    begun = halves.ask([SentBody(QUEUE, name, 10) for name in names], ["commit"] * len(names))
    halves.begin(begun)
    ledger.tick()
    halves.acknowledge(begun, list(names), safe=True)
    return ledger, halves, begun


def test_a_half_is_not_seen_before_it_is_committed() -> None:
    ledger, halves, (half,) = _halves("one")
    with pytest.raises(Mismatch, match="it was refused, lost, or never begun"):
        ledger.find(QUEUE, 0, 1, [_row(0, half.message.sent)])
    halves.require_count(1)
    with pytest.raises(Mismatch, match="0 halves are undecided, and these 1 are"):
        halves.require_count(0)
    halves.begin_to_decide([half], "commit")
    ledger.find(QUEUE, 0, 1, [_row(0, half.message.sent)])


def test_a_commit_that_was_acknowledged_is_there_for_ever() -> None:
    ledger, halves, (half,) = _halves("one")
    halves.begin_to_decide([half], "commit")
    halves.end_to_decide([half])
    halves.committed([half], [0], safe=True)
    with pytest.raises(Mismatch, match="was committed, and is rolled back"):
        halves.rolled_back([half], durably=False)
    with pytest.raises(Mismatch, match="nothing speaks against it"):
        halves.refused([half], "commit", "")
    halves.died()
    with pytest.raises(Mismatch, match="is lost"):
        ledger.find(QUEUE, 0, 0, [])


def test_a_rollback_that_was_not_durable_may_be_undone() -> None:
    for is_durable in (False, True):
        _, halves, (half,) = _halves("one")
        halves.begin_to_decide([half], "roll_back")
        halves.end_to_decide([half])
        halves.rolled_back([half], durably=is_durable)
        with pytest.raises(Mismatch, match="was rolled back, and is committed"):
            halves.committed([half], [0], safe=True)
        halves.died()
        halves.begin_to_decide([half], "commit")
        halves.end_to_decide([half])
        if is_durable:
            with pytest.raises(Mismatch, match="was rolled back, and is committed"):
                halves.committed([half], [0], safe=True)
        else:
            halves.committed([half], [0], safe=True)


def test_an_undecided_half_is_not_refused_until_its_checks_are_spent() -> None:
    _, halves, (half,) = _halves("one")
    for _ in range(3):
        with pytest.raises(Mismatch, match="nothing speaks against it"):
            halves.refused([half], "commit", "")
        assert not halves.begin_to_check()
        halves.end_to_check()
    halves.refused([half], "commit", "")


def test_a_round_decides_what_producers_know() -> None:
    ledger, halves, _ = _halves("one")
    halves.decided({"one": "commit"})
    ledger.tick()
    asked = halves.begin_to_check()
    assert halves.checked(ledger.clock, asked) == 1
    with pytest.raises(Mismatch, match="is lost"):
        ledger.find(QUEUE, 0, 0, [])
