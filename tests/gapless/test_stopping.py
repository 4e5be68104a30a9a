"""A signal ends what runs until one comes, within its time: whatever it is at."""

import hashlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from gapless.commands.stopping import until_a_signal
from gapless.traces.processes.timeouts import OutOfTime, deadline_deferred

GRACE = 2.0
BUSY = 10.0  # seconds that a machine may be late; what never ends takes minutes
BROKEN, ENDED = 7, 9

Waits = Callable[[float], bool]


def ends_by_itself(waits: Waits) -> None:
    while not waits(60.0):
        pass


def is_reading(_waits: Waits) -> None:
    while True:
        time.sleep(0.01)


def is_at_what_ends_as_a_whole(_waits: Waits) -> None:
    with deadline_deferred():
        began = time.monotonic()
        while time.monotonic() - began < 0.7 * GRACE:
            time.sleep(0.01)
        raised.append(1)
    time.sleep(60)


def is_in_a_compiler(_waits: Waits) -> None:
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # minutes, in which Python runs no handler


def does_not_hear(_waits: Waits) -> None:
    while True:
        with suppress(OutOfTime):
            time.sleep(60)


raised: list[int] = []


def run(block: Callable[[Waits], None], begun: "multiprocessing.synchronize.Event") -> None:
    """Run a block until a signal, and end by how it ended."""
    came: list[int] = []
    try:
        with until_a_signal(came, GRACE) as waits:
            begun.set()
            block(waits)
    except OutOfTime:
        os._exit(BROKEN + len(raised))
    os._exit(ENDED if came == [signal.SIGTERM] else 1)


def ended(block: Callable[[Waits], None], *more: float) -> tuple[int | None, float]:
    """Begin a block, end it by SIGTERM, and by others so many seconds later; its exit code, and how long it took."""
    context = multiprocessing.get_context("fork")
    begun = context.Event()
    process = context.Process(target=run, args=(block, begun))
    process.start()
    assert process.pid is not None
    assert begun.wait(60)
    time.sleep(0.1)
    sent = time.monotonic()
    os.kill(process.pid, signal.SIGTERM)
    for seconds in more:
        time.sleep(seconds)
        os.kill(process.pid, signal.SIGINT)
    process.join(30)
    took = time.monotonic() - sent
    if process.exitcode is None:
        process.kill()
    return process.exitcode, took


@pytest.mark.parametrize(
    ("block", "code", "earliest"),
    [
        (ends_by_itself, ENDED, 0.0),
        (is_reading, BROKEN, 0.4 * GRACE),
        (is_at_what_ends_as_a_whole, BROKEN + 1, 0.6 * GRACE),
        (is_in_a_compiler, 128 + signal.SIGTERM, 0.8 * GRACE),
        (does_not_hear, 128 + signal.SIGTERM, 0.8 * GRACE),
    ],
)
def test_a_signal_ends_it_in_time(block: Callable[[Waits], None], code: int, earliest: float) -> None:
    exit_code, took = ended(block)
    assert exit_code == code
    assert earliest <= took < GRACE + BUSY


def test_the_second_signal_ends_it_at_once() -> None:
    exit_code, took = ended(does_not_hear, 0.1)
    assert exit_code == 128 + signal.SIGTERM
    assert took < 0.4 * GRACE + BUSY


def test_what_was_there_before_is_there_again() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers]
    with until_a_signal([], GRACE) as waits:
        assert not waits(0.0)
        assert [signal.getsignal(number) for number in numbers] != before
    assert [signal.getsignal(number) for number in numbers] == before
