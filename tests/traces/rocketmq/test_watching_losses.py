"""Files that vanish from a watched store are noticed at the next looks, and the verdict is that of a check again."""

import os
import shutil
from pathlib import Path

import pytest

from gapless.traces.watch import StoreWatch
from tests.support.rocketmq.recordings import recording
from tests.support.rocketmq.watched import Clock, Heard, checked, until_idle, watch

MIDDLE = "commitlog/00000000000001048576"
QUEUE = "consumequeue/orders/1"
OF_QUEUE = f"{QUEUE}/00000000000000000000"
FIRST_OF_HALVES = "consumequeue/RMQ_SYS_TRANS_HALF_TOPIC/0/00000000000000000000"


def stopped(tmp_path: Path, heard: Heard, clock: Clock) -> StoreWatch:
    """A watch of a store at rest, that was reported to conform."""
    shutil.copytree(recording("normal"), tmp_path / "store")
    watched = watch(tmp_path / "store", heard, clock, state=tmp_path / "state")
    look(watched, clock, 8)
    assert watched.status.conforms
    assert heard.reports[-1].verdict == "conforms"
    return watched


def look(watched: StoreWatch, clock: Clock, seconds: float) -> None:
    """Look now and then."""
    for _ in range(int(seconds)):
        clock.now += 1
        until_idle(watched)


def remove(path: Path) -> None:
    """Remove a file or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


@pytest.mark.parametrize("lost", [MIDDLE, QUEUE, OF_QUEUE, FIRST_OF_HALVES])
def test_a_file_that_vanishes_is_found_at_once_and_by_the_report(lost: str, tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    watched = stopped(tmp_path, heard, clock)
    remove(tmp_path / "store" / lost)
    look(watched, clock, 10)
    named = lost.removesuffix("/00000000000000000000") if lost == OF_QUEUE else lost
    assert [line for line in heard.says if line.startswith(f"{named} is gone")]
    assert watched.status.conforms is False
    whole, report = checked(tmp_path / "store"), watched.end()
    assert (report.verdict, whole.verdict) == ("departs", "departs")
    assert [f.rule for f in report.violations] == [f.rule for f in whole.violations]
    again = watch(tmp_path / "store", Heard(), Clock(), state=tmp_path / "state").run(lambda _: False, once=True)
    assert [f.rule for f in again.violations] == [f.rule for f in whole.violations]


def test_a_file_that_vanished_between_two_runs_is_in_the_verdict(tmp_path: Path) -> None:
    heard = Heard()
    stopped(tmp_path, heard, Clock()).keep()
    remove(tmp_path / "store" / QUEUE)
    for _ in range(2):
        report = watch(tmp_path / "store", heard, Clock(), state=tmp_path / "state").run(lambda _: False, once=True)
        assert report.verdict == checked(tmp_path / "store").verdict == "departs"


def test_a_file_that_vanishes_just_before_the_end_is_in_the_last_report(tmp_path: Path) -> None:
    heard = Heard()
    watched = stopped(tmp_path, heard, Clock())
    remove(tmp_path / "store" / QUEUE)
    assert watched.end().verdict == "departs"


def test_a_queue_file_that_is_cut_is_found_at_once(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    watched = stopped(tmp_path, heard, clock)
    os.truncate(tmp_path / "store" / OF_QUEUE, 1000)
    look(watched, clock, 10)
    assert watched.status.conforms is False
    assert watched.end().verdict == checked(tmp_path / "store").verdict == "departs"


def test_a_log_file_that_is_cut_makes_the_store_unreadable(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    watched = stopped(tmp_path, heard, clock)
    os.truncate(tmp_path / "store" / MIDDLE, 5000)
    look(watched, clock, 1)
    assert watched.status.up is False
    report, whole = watched.end(), checked(tmp_path / "store")
    assert (report.verdict, report.sources[0].reasons) == (whole.verdict, whole.sources[0].reasons)
    assert report.verdict == "unreadable"


@pytest.mark.parametrize(("saved", "verdict"), [("gone", "conforms"), ("orders", "inconclusive")])
def test_the_queues_of_a_topic_that_is_deleted_may_vanish(saved: str, verdict: str, tmp_path: Path) -> None:
    """A deletion takes them one after another, and the topic out of the saved ones."""
    heard, clock = Heard(), Clock()
    watched = stopped(tmp_path, heard, clock)
    for file in (tmp_path / "store/config").glob("topics.json*"):
        file.write_text(file.read_text().replace('"orders"', f'"{saved}"'))
    for number in range(4):
        remove(tmp_path / f"store/consumequeue/orders/{number}")
        until_idle(watched)
        clock.now += 0.1
    look(watched, clock, 10)
    assert heard.reports[-1].verdict == checked(tmp_path / "store").verdict == verdict
    assert not heard.found
    assert not [line for line in heard.says if "is gone" in line]


@pytest.mark.parametrize(
    ("lost", "check_says"),
    [
        (["commitlog/00000000000000000000"], "conforms"),  # as if it had expired
        (["commitlog/00000000000000000000", "consumequeue/RMQ_SYS_TRANS_HALF_TOPIC"], "inconclusive"),
        (["commitlog"], "unreadable"),
    ],
)
def test_a_finding_outlives_the_file_that_it_was_found_in(lost: list[str], check_says: str, tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    watched = stopped(tmp_path, heard, clock)
    with (tmp_path / "store" / OF_QUEUE).open("r+b") as file:
        file.seek(20)
        file.write(bytes(7) + b"\1")
    look(watched, clock, 3)
    assert [found.trace for found in heard.found] == ["orders/1"]
    watched.keep()
    for path in lost:
        remove(tmp_path / "store" / path)
    report = watched.end()
    (source,) = report.sources
    assert (report.verdict, source.kind) == ("departs", "rocketmq-store")
    assert "orders/1" in {found.trace for found in report.violations}
    assert checked(tmp_path / "store").verdict == check_says
    if check_says in ("inconclusive", "unreadable"):
        assert [reason for reason in source.reasons if lost[-1] in reason]


@pytest.mark.parametrize("waits", [0, 20])
def test_a_finding_outlives_a_store_that_became_unreadable(waits: int, tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    watched = stopped(tmp_path, heard, clock)
    with (tmp_path / "store" / OF_QUEUE).open("r+b") as file:
        file.seek(20)
        file.write(bytes(7) + b"\1")
    look(watched, clock, 3)
    os.truncate(tmp_path / "store" / MIDDLE, 5000)
    look(watched, clock, waits)
    report = watched.end()
    assert (report.verdict, [found.trace for found in report.violations]) == ("departs", ["orders/1"])
    assert MIDDLE in report.sources[0].reasons[0]
