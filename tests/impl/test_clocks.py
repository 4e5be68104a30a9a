"""A store whose clock is set, forward or back, while it is open and between: what is promised of time."""

import random
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from gapless import check
from gapless.impl.dispatch.pool import rebuild
from gapless.impl.environment.operating_system import Clock, wall_clock
from gapless.impl.environment.steady_clock import passed_by, passed_by_the_machine
from gapless.impl.files.store_settings import read_kept
from gapless.impl.records.record import Messages
from gapless.impl.store.core import NEVER, Core, Settings
from gapless.impl.store.groups import GroupCursors
from gapless.impl.store.store import Store
from gapless.impl.store.transaction_service import TransactionService
from gapless.impl.store.upkeep import retention
from gapless.impl.store.upkeep.retention import HOUR, SETTLED, ProvenTime, Retention
from gapless.impl.transactions.settings import TransactionSettings
from gapless.impl.transactions.transactions import Transactions
from gapless.properties.faults.planted.fault_injection import replacing
from gapless.properties.simulation.simulated_disk import SimulatedDisk, SteppedClock

T = TypeVar("T")
MINUTE = 60_000
YEARS = 10 * 365 * 24 * HOUR
FILE = 4096
SETTINGS = Settings(
    file_size=FILE, queue_file_size=400, workers=1, pre_allocate=False, reserved_hours=72, expire_interval=MINUTE
)
RESERVED = 72 * HOUR
JUMPS = [-YEARS, -HOUR, HOUR, YEARS]


class Life:
    """A store without threads, through several openings; what its threads would do is one step a call."""

    def __init__(self, disk: SimulatedDisk, clock: SteppedClock) -> None:
        self.disk, self.time = disk, clock
        self.clock: Clock = clock
        self._closing = False
        self.asked: list[int] = []
        self.positions: list[int] = []
        self.open()

    def open(self) -> None:
        """All that is done when a store is opened."""
        self.core = Core.open(self.disk, SETTINGS if not read_kept(self.disk) else None)
        self.retention = Retention(self.core.kept, self.clock, self.core.log, self._let_go)
        cursors = GroupCursors(self.disk, self.core.queues.all)
        settings = TransactionSettings(transaction_timeout=6000, check_interval=30_000)
        tx = Transactions.open(self.core.log, self.core.queues, cursors, settings, self.clock())
        self.service = TransactionService(self, tx)
        self.service.checks["g"] = lambda half: self.asked.append(half.number)

    def _let_go(self, before: int, most: int, young: int) -> int:
        return self.core.expire(before, most, young=young)

    def _locked(self, what: Callable[[], T]) -> T:
        return what()

    def wait(self, _position: int) -> None:
        """All is on disk."""
        self.core.flush()

    def append(self, count: int = 8) -> None:
        """So many messages of half a kilobyte, which are on disk and in their queue."""
        queue = self.core.queues.named("t", 0)
        for _ in range(count):
            self.positions.append(self.core.append(queue, b"x" * 400, b"", self.clock())[0])
        self.core.flush()
        rebuild(self.core.dispatch, self.core.log.end, workers=1)
        self.core.write_checkpoint(self.clock())

    def again(self, *, kill: bool = True) -> None:
        """The process dies, or the store is closed; and it is opened again."""
        if kill:
            self.core.abandon()
        else:
            self.core.close(self.clock())
        self.open()

    def times(self) -> list[int]:
        """The store times of all messages."""
        return [self.core.log.time_at(position) for position in self.positions]

    def times_kept(self) -> int:
        """The store time of the first message that is kept."""
        return self.core.log.time_at(self.core.log.start)

    def look(self) -> int:
        """The store looks for what has expired, if it is time to; returns where the log begins."""
        self.retention.look()
        assert self.retention.error is None
        return self.core.log.start

    def lives(self, ms: int) -> None:
        """So much time passes; meanwhile the store does what it does by itself."""
        end = self.time.passed() + ms
        while self.time.passed() < end:
            self.time.advance(min(end - self.time.passed(), 10 * MINUTE))
            self.look()


def new() -> Life:
    return Life(SimulatedDisk(), SteppedClock())


# --- Store times ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", JUMPS)
def test_store_times_never_decrease(by: int) -> None:
    """Neither while the store is open nor behind a restart; a clock that was set back does not show in them."""
    life = new()
    life.append(3)
    newest = life.clock()
    life.time.set_by(by)
    life.append(3)
    assert life.times() == [newest] * 3 + [max(newest, newest + by)] * 3
    life.time.set_by(-by)
    life.append(3)
    life.again()
    life.append(3)
    many = life.core.append_many(Messages.of_list([("t", 0, b"x", {})] * 3), life.clock())
    life.positions += many[0].tolist()
    assert life.times() == [newest] * 3 + [max(newest, newest + by)] * 12


# --- Ops and checks ---------------------------------------------------------------------------------------------


def prepared(life: Life) -> int:
    return life.service.step(lambda tx, now: tx.prepare("t", 0, b"x", {}, "g", now)).number


@pytest.mark.parametrize("by", JUMPS)
def test_an_op_is_written_when_its_interval_has_passed(by: int) -> None:
    life = new()
    half = prepared(life)
    life.service.step(lambda tx, now: tx.commit(half, now))
    life.time.set_by(by)
    assert 0 < life.service._pause() <= 3000
    life.time.advance(2999)
    life.service._keep_on()
    assert (life.service.tx.batcher.ops, life.service._pause()) == (0, 1)
    life.time.advance(1)
    life.service._keep_on()
    assert life.service.tx.batcher.ops == 1


@pytest.mark.parametrize("by", JUMPS)
def test_a_producer_is_asked_when_its_time_has_passed(by: int) -> None:
    life = new()
    half = prepared(life)
    life.time.advance(29_999)
    late = prepared(life)
    life.time.set_by(by)
    life.service._keep_on()
    assert life.asked == []
    life.time.advance(1)
    life.service._keep_on()
    assert life.asked == [late + 1], "a version of the first half, whose number is behind the second"
    life.time.advance(30_000)
    life.service._keep_on()
    assert len(life.asked) == 3
    assert half < late


@pytest.mark.parametrize("by", JUMPS)
def test_a_half_of_before_a_restart_is_asked_about_in_the_first_round(by: int) -> None:
    """It waits no longer than a new one would, though it was stored while the clock was ahead."""
    life = new()
    life.time.set_by(by)
    prepared(life)
    life.append()
    life.again()
    life.time.set_by(-by)
    life.again(kill=False)
    life.time.advance(29_999)
    life.service._keep_on()
    assert life.asked == []
    life.time.advance(1)
    life.service._keep_on()
    assert len(life.asked) == 1


# --- What expires -----------------------------------------------------------------------------------------------


def filled(files: int = 6) -> Life:
    """A store of so many full files, three hours apart."""
    life = new()
    for _ in range(files):
        life.append()
        life.lives(3 * HOUR)
    assert life.core.log.start == 0
    assert len(life.core.log.segments.bases) > files
    return life


@pytest.mark.parametrize("by", JUMPS)
def test_a_clock_that_is_wrong_for_a_moment_expires_nothing(by: int) -> None:
    life = filled()
    life.time.set_by(by)
    life.lives(MINUTE)
    assert life.retention.unproven == max(0, by)
    life.retention.expire()
    life.time.set_by(-by)
    life.lives(HOUR)
    assert life.retention.unproven == 0
    assert life.core.log.start == 0


@pytest.mark.parametrize("by", JUMPS)
def test_a_machine_that_starts_with_a_wrong_clock_loses_nothing(by: int) -> None:
    """Nor if the store is opened again before the clock is right, with messages of the wrong time in it."""
    life = filled()
    life.core.abandon()
    life.time.set_by(by)
    life.open()
    life.lives(MINUTE)
    for kill in (True, False):
        life.append()
        life.lives(MINUTE)
        life.again(kill=kill)
        life.lives(MINUTE)
    life.time.set_by(-by)
    life.lives(2 * HOUR)
    life.again()
    life.lives(2 * HOUR)
    assert life.core.log.start == 0


def seen_stored(meanwhile: int, then: int) -> bool:
    """True if nothing of the last 72 hours goes. The clock is ahead by `meanwhile` for 60 of them, and by `then`."""
    life = filled()
    life.again()
    opened = life.core.log.end
    life.time.set_by(meanwhile)
    for _ in range(5):
        life.append()
        life.lives(12 * HOUR)
    life.time.set_by(then - meanwhile)
    life.lives(11 * HOUR)
    return life.retention.expire() <= opened


WRONG_FOR_HOURS = [(0, YEARS), (0, 100 * HOUR), (-YEARS, 0), (-YEARS, YEARS)]


@pytest.mark.parametrize(("meanwhile", "then"), WRONG_FOR_HOURS)
def test_what_the_store_has_seen_stored_stays_whatever_the_clock_says(meanwhile: int, then: int) -> None:
    assert seen_stored(meanwhile, then)
    with replacing(Retention, "_young", lambda *_: NEVER):
        assert not seen_stored(meanwhile, then)


def test_what_grew_old_while_the_store_was_closed_goes_an_hour_after_it_was_opened() -> None:
    life = filled()
    life.core.close(life.clock())
    life.time.advance(80 * HOUR)
    life.open()
    life.lives(SETTLED - 10 * MINUTE)
    assert life.core.log.start == 0
    assert life.retention.unproven > 0
    life.lives(10 * MINUTE)
    assert life.core.log.start == life.core.log.segments.bases[-1]


def test_time_passes_for_a_store_that_is_opened_again_and_again() -> None:
    """The newest messages say how late it is at least, though the store is never open for long."""
    life = filled()
    for _ in range(40):
        life.append(1)
        life.lives(MINUTE)
        life.core.close(life.clock())
        life.time.advance(3 * HOUR)
        life.open()
        life.look()
    assert life.core.log.start > 0
    assert life.times_kept() > life.clock() - RESERVED - 30 * HOUR


def test_who_names_a_time_is_believed() -> None:
    life = filled()
    assert life.core.expire(life.clock() + 1) == life.core.log.segments.bases[-1]


PAUSE = 56 * HOUR  # the longest: what is stored while the clock is behind has the time of the message before it


def walk(seed: int) -> bool:
    """A life in which the clock is wrong once, for less than an hour; whether all that expired was old enough.

    Before, meanwhile and behind it the store is appended to, closed, killed and opened again.
    """
    chance, life = random.Random(seed), new()
    by = chance.choice([*JUMPS, 100 * HOUR, -100 * HOUR])
    begins, stored = chance.randrange(10, 50), dict[int, int]()  # when each message was stored, by its position
    for step in range(60):
        if step == begins:
            life.time.set_by(by)
        if step == begins + 5:
            life.time.set_by(-by)
        is_wrong = begins <= step < begins + 5
        before = len(life.positions)
        if chance.random() < 0.8:
            life.append(chance.randrange(1, 20))
            stored |= dict.fromkeys(life.positions[before:], life.time.passed())
        life.lives(chance.choice((MINUTE, 10 * MINUTE) if is_wrong else (MINUTE, HOUR, 5 * HOUR)))
        what = chance.randrange(6)
        if what < 2:
            life.again(kill=what == 0)
        elif what == 2 and not is_wrong:
            life.core.close(life.clock())
            life.time.advance(chance.choice((MINUTE, HOUR, 50 * HOUR)))
            life.open()
        life.look()
        young = life.time.passed() - RESERVED + (PAUSE if by < 0 else 0)
        if any(position < life.core.log.start for position, at in stored.items() if at > young):
            return False
    if by < 0:
        life.lives(RESERVED + PAUSE)
        assert life.core.log.start == life.core.log.segments.bases[-1]
    return True


SEEDS = range(8)


def test_nothing_young_expires_around_a_wrong_clock() -> None:
    assert all(walk(seed) for seed in SEEDS)


def _at_once(time: ProvenTime) -> int:
    return time._clock()


@pytest.mark.parametrize(
    ("owner", "name", "instead"),
    [
        (ProvenTime, "__call__", _at_once),
        (ProvenTime, "_known", _at_once),
        (ProvenTime, "_known", lambda time: time._newest),
        (retention, "SETTLED", MINUTE),
    ],
)
def test_a_rule_that_is_left_out_is_missed(owner: object, name: str, instead: object) -> None:
    with replacing(owner, name, instead):
        assert not all(walk(seed) for seed in SEEDS)


# --- With threads -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [-HOUR, YEARS])
def test_a_store_whose_clock_is_set_writes_ops_asks_producers_and_keeps_its_files(tmp_path: Path, by: int) -> None:
    """The machine's own time passes: the clock that is given brings no other."""
    set_by, asked = 0, threading.Event()

    def clock() -> int:
        return wall_clock() + set_by

    fast = TransactionSettings(max_checks=30_000, transaction_timeout=1, check_interval=5, op_batch_interval=1)
    with Store.open(tmp_path, replace(SETTINGS, expire_interval=1), clock=clock) as store:
        for _ in range(20):
            store.append("t", 0, b"x" * 400)
        set_by = by
        with store.transactions("g", lambda _half: asked.set(), fast) as producers:
            half = producers.begin("t", 0, b"x")
            set_by += by
            producers.begin("t", 0, b"x").commit()
            for _ in range(2):  # the second time in a round that began behind the commit, with its op
                asked.clear()
                assert asked.wait(20)
            assert producers.counts().ops > 0
            half.roll_back()
        assert store.wait_for("t", 0, 20)
        store.flush()
        store.expire(0)
        store.expire(0)  # it looks for what has expired after a request is done, and before the next
        assert store.range("t", 0) == (0, 21)
        assert (store.stats().expiry_unproven_ms >= YEARS) == (by > 0)
    assert check([tmp_path], profile="strict").verdict == "conforms"


def test_time_that_passes_is_the_machines_own_unless_the_clock_brings_another() -> None:
    clock = SteppedClock()
    assert passed_by(clock) == clock.passed
    assert passed_by(wall_clock) is passed_by_the_machine
    assert 0 < passed_by_the_machine() <= passed_by_the_machine()
