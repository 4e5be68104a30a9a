"""Transactions are watched while the oldest log files expire: expired data is no violation."""

import shutil
from pathlib import Path
from random import Random

import pytest

from tests.support.night import by_day
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.transaction_broker import ODD, TAME, VERSIONS, TransactionBroker, live
from tests.support.rocketmq.watched import Clock, Heard, checked, put_in_place, until_idle, watch

LIVES = range(200)


@pytest.mark.parametrize("seed", by_day(LIVES, 1 / 16))
def test_lawful_lives_conform_whatever_expires_meanwhile(seed: int, tmp_path: Path) -> None:
    """Halves that expired and are named again are among them."""
    chance, clock, heard, store = Random(seed), Clock(), Heard(), tmp_path / "store"
    builder = StoreBuilder(log_file_size=chance.choice((2048, 4096)), queue_file_size=200)
    broker = TransactionBroker(chance.choice(VERSIONS), check_max=chance.randint(1, 3), builder=builder)
    watched, deeds = watch(store, heard, clock), TAME + ODD
    steps = chance.randint(3, 10)
    for step in range(steps):
        some = [(chance.choice(deeds), chance.randrange(100), chance.randrange(100)) for _ in range(15)]
        live(broker, some[: chance.randint(1, 15)])
        clean = step == steps - 1 and chance.random() < 0.6
        if clean:
            broker.stop(flushes=chance.random() < 0.5)
        elif step == steps - 1:
            broker.crash()
        elif chance.random() < 0.5:
            broker.save()
        expired = builder.expired
        broker.expire(chance.choice((0, 1, 2, 5, 10)))
        builder.expired = max(expired, builder.expired)
        if builder.records:
            written = broker.write(tmp_path / str(step), clean=clean)
            put_in_place(written, store)
            shutil.copy(written.parent / "broker.conf", tmp_path)
        clock.now += chance.choice((0.5, 7, 20))
        until_idle(watched)
    clock.now += 20
    until_idle(watched)
    report, whole = watched.end(), checked(store)
    assert (report.verdict, whole.verdict, heard.found) == ("conforms", "conforms", [])
