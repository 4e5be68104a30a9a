"""Wrong arguments, and files changed between two runs: refused or repaired."""

import asyncio
import enum
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gapless import Settings, Store
from gapless.impl.records.errors import Damaged, InUse, NotAStore, Refused, Stopped, StoreError
from gapless.impl.records.record import Messages
from gapless.traces.check import check
from tests.support.visible_messages import visible

SMALL = Settings(file_size=8192, queue_file_size=400, synchronous=True, pre_allocate=False)


class Lane(enum.IntEnum):
    """Queues by name."""

    FAST = 1


def columns(**changed: Any) -> Messages:
    """Three messages of two queues, with something changed."""
    usual = {
        "queues": [("orders", 0), ("orders", 1)],
        "queue_index": np.array([0, 1, 0], np.int32),
        "bodies": np.frombuffer(b"onetwothree", np.uint8),
        "body_ends": np.array([0, 3, 6, 11]),
        "properties": np.frombuffer(b"TAGS\x01a\x02" * 3, np.uint8),
        "property_ends": np.array([0, 7, 14, 21]),
    }
    return Messages(**{**usual, **changed})


def properties(data: bytes) -> dict[str, object]:
    """The properties of the first of three messages."""
    return {"properties": np.frombuffer(data, np.uint8), "property_ends": np.array([0, *[len(data)] * 3])}


BATCHES: list[tuple[dict[str, object], str]] = [
    ({"queue_index": np.array([0, 5, 1], np.int32)}, "`queue_index` has 0 to 5, expected indices of the 2 queues"),
    ({"queue_index": np.array([0, -1, 1], np.int32)}, "`queue_index` has -1 to 1"),
    ({"queue_index": np.array([0.5, 0, 1])}, "`queue_index`: expected a column of integers"),
    ({"queue_index": np.zeros((3, 1), np.int32)}, "`queue_index`: expected a column"),
    ({"queues": [("orders", 1 << 32), ("orders", 1)]}, "queue 4294967296: expected an integer"),
    ({"queues": [("orders", -1), ("orders", 1)]}, "queue -1: expected an integer"),
    ({"queues": [("orders", 1), ("orders", 1)]}, "names orders/1 twice"),
    ({"queues": [("a/b", 0), ("orders", 1)]}, "topic 'a/b'"),
    ({"body_ends": np.array([0, 3, 2, 11])}, "`body_ends`: expected 4 positions that never fall"),
    ({"body_ends": np.array([0, 3, 6, 12])}, "up to the 11 bytes of `bodies`"),
    ({"body_ends": np.array([0, 3, 11])}, "`body_ends`: expected 4 positions"),
    ({"bodies": np.array([1, 2, 300])}, "`bodies`: 1 to 300 is beyond uint8"),
    (properties(b"a\x01" + b"b" * 40_000 + b"\x02"), "40003 bytes of properties"),
    (properties(b"a\x01\0\x02"), "message 0: properties"),
    (properties(b"a\x01b"), "message 0: properties"),
    (properties(b"a\x01\x02"), "message 0: properties"),
    (properties(b"\x01b\x02"), "message 0: properties"),
    (properties(b"ab\x02"), "message 0: properties"),
    (properties(b"a\x01b\x01c\x02"), "message 0: properties"),
    (properties(b"a\x01b\x02__CRC32#\x010000000000\x02"), "message 0: properties"),
    (properties(b"INNER_MULTI_DISPATCH\x01x\x02"), "message 0: properties"),
]


@pytest.mark.parametrize(("changed", "words"), BATCHES)
def test_a_batch_too_large_for_any_log_is_refused_whole(tmp_path: Path, changed: dict[str, object], words: str) -> None:
    with Store.open(tmp_path, SMALL) as store:
        store.append("orders", 0, b"before")
        end = store.core.log.end
        with pytest.raises(Refused, match=words):
            store.append_batch(columns(**changed))
        assert store.core.log.end == end
        store.append_batch(columns(queue_index=[0, 1, 0], body_ends=[0, 3, 6, 11]))  # lists will do
        assert store.wait_for("orders", 0, 2)
        assert [record.body for record in store.read("orders", 0, 0)] == [b"before", b"one", b"three"]
    assert check([tmp_path], profile="strict").verdict == "conforms"


MESSAGES: list[tuple[dict[str, object], str]] = [
    ({"topic": None}, "topic None"),
    ({"topic": b"orders"}, "topic b'orders'"),
    ({"topic": "a\udcff"}, "topic"),
    ({"queue": 1.0}, "queue 1.0: expected an integer"),
    ({"queue": None}, "queue None"),
    ({"queue": 1 << 31}, "queue 2147483648"),
    ({"body": "text"}, "body 'text': expected bytes"),
    ({"body": None}, "body None: expected bytes"),
    ({"tag": "\ud800"}, "UTF-8"),
    ({"tag": "a\0"}, "property 'TAGS'"),
    ({"properties": {"a": 1}}, "property 'a'=1: expected text"),
    ({"properties": {"__CRC32#": "0000000000"}}, "__CRC32#"),
    ({"properties": {"INNER_MULTI_DISPATCH": "%LMQ%a", "INNER_MULTI_QUEUE_OFFSET": "7"}}, "INNER_MULTI"),
    ({"flag": 1 << 32}, "flag=4294967296"),
    ({"born": 1.5}, "born=1.5"),
    ({"body": bytes(9000)}, "expected at most 8184"),
]


@pytest.mark.parametrize(("changed", "words"), MESSAGES)
def test_a_message_too_large_for_any_record_is_refused(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    usual: dict[str, Any] = {"topic": "orders", "queue": 0, "body": b"x"}
    with Store.open(tmp_path, SMALL) as store:
        store.append(**usual)
        end = store.core.log.end
        with pytest.raises(Refused, match=words):
            store.append(**{**usual, **changed})
        assert not any(store.core.log.view(end)[0][end:])  # what a torn record is known by
        assert store.append(**usual).number == 1
    assert check([tmp_path], profile="strict").verdict == "conforms"


def test_whatever_is_an_integer_names_a_queue(tmp_path: Path) -> None:
    queues: list[Any] = [True, Lane.FAST, np.int64(1), 1]
    body: Any = bytearray(b"x")
    with Store.open(tmp_path, SMALL) as store:
        for queue in queues:
            store.append("orders", queue, body)
        assert store.wait_for("orders", 1, 3)
        store.core.write_checkpoint(0)
    with Store.open(tmp_path) as store:
        assert store.range("orders", 1) == (0, 4)


@pytest.mark.parametrize(
    "settings",
    [{"queue_file_size": 0}, {"queue_file_size": -20}, {"in_flight": 0}, {"batch_records": 0}, {"workers": -1}],
)
def test_settings_that_nothing_works_with_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(Refused, match=f"settings: {next(iter(settings))}="):
        Settings(**settings)  # type: ignore[arg-type]
    with pytest.raises(Refused, match="delays is empty"):
        Settings(delays=())


# -- between two runs --------------------------------------------------------------------------------------------------


def left(folder: Path, *, clean: bool) -> list[bytes]:
    """A store of several files, as a clean stop or a killed program leaves it."""
    store = Store.open(folder, SMALL)
    sent = [b"%d." % number * 40 for number in range(100)]
    for number, body in enumerate(sent):
        store.append("orders" if number >= 20 else "early", 0, body)
    visible(store)
    store.core.flush_queues()
    store.core.write_checkpoint(0)
    if clean:
        store.close()
    else:
        store.abandon()
    return sent


def _without_log(folder: Path) -> None:
    shutil.rmtree(folder / "commitlog")


def _dangling_log(folder: Path) -> None:
    shutil.rmtree(folder / "commitlog")
    (folder / "commitlog").symlink_to(folder / "nowhere")


def _topic_is_a_file(folder: Path) -> None:
    shutil.rmtree(folder / "consumequeue" / "orders")
    (folder / "consumequeue" / "orders").touch()


def _config_is_a_file(folder: Path) -> None:
    shutil.rmtree(folder / "config")
    (folder / "config").touch()


def _strange_queue(folder: Path) -> None:
    (folder / "consumequeue" / "orders" / ("9" * 20)).mkdir()


def _second_queue_file_gone(folder: Path) -> None:
    (folder / "consumequeue" / "orders" / "0" / f"{400:020d}").unlink()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (_without_log, Damaged),
        (_dangling_log, StoreError),
        (_topic_is_a_file, StoreError),
        (_config_is_a_file, StoreError),
        (_strange_queue, NotAStore),
        (_second_queue_file_gone, Damaged),
    ],
)
def test_a_store_that_cannot_be_trusted_is_not_opened(
    tmp_path: Path,
    clean: bool,  # noqa: FBT001
    damage: Callable[[Path], None],
    error: type[StoreError],
) -> None:
    left(tmp_path, clean=clean)
    damage(tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "consumequeue").rglob("*") if path.is_file()}
    with pytest.raises(error):
        Store.open(tmp_path)
    after = {path: path.read_bytes() for path in (tmp_path / "consumequeue").rglob("*") if path.is_file()}
    assert {path: after[path] for path in before} == before
    assert (tmp_path / "abort").exists() is not clean


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("lost", ["consumequeue/early/0", f"consumequeue/orders/0/{0:020d}", "consumequeue"])
def test_queues_that_lost_files_are_rebuilt(tmp_path: Path, clean: bool, lost: str) -> None:  # noqa: FBT001
    sent = left(tmp_path, clean=clean)
    path = tmp_path / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    for _ in range(2):
        with Store.open(tmp_path, Settings(queue_file_size=400, rebuild=lost.endswith("early/0"))) as store:
            assert [record.body for k in (0, 32, 64) for record in store.read("orders", 0, k)] == sent[20:]
            assert [record.body for record in store.read("early", 0, 0)] == sent[:20]
    assert check([tmp_path], profile="strict").verdict == "conforms"


def test_a_message_that_is_not_what_it_was_is_not_handed_out(tmp_path: Path) -> None:
    left(tmp_path, clean=True)
    with Store.open(tmp_path) as store:
        position = store.read("early", 0, 3)[0].position
        store.core.log.segments.file(position, write=True).data[position + 90] ^= 1
        with pytest.raises(Damaged, match=r"commitlog/.*has not its checksum"):
            store.read("early", 0, 3, 1)
        queue = store.core.queues.named("early", 0)
        slots = queue.segments.file(0, write=True).data.reshape(-1, 20)
        slots[5] = slots[6]
        with pytest.raises(
            Damaged, match=r"consumequeue/early/0/0{20}\+100: entry 5 of early/0 points at .* message 6"
        ):
            store.read("early", 0, 5)
        slots[5, 7] += 1
        with pytest.raises(Damaged, match="where no record begins"):
            store.read("early", 0, 5)


# -- processes, and the end --------------------------------------------------------------------------------------------


def in_a_child(what: Callable[[], object]) -> int:
    """The process that did this, after a fork, and nothing else; its exit status is 0 if it went well."""
    child = os.fork()
    if child:
        return child
    try:  # pragma: no cover - counted in the parent only
        what()
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the parent's tests are not the child's
        traceback.print_exc()
    os._exit(1)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_child_can_do_nothing_with_its_parents_store(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL, clock=count(0, 10).__next__) as store:
        for number in range(300):
            store.append("orders", 0, b"%d" % number)
        store.flush()
        assert store.wait_for("orders", 0, 299)
        before = {path: path.read_bytes() for path in sorted((tmp_path / "commitlog").iterdir())}
        begun = store.follow({("orders", 0): 298})
        next(begun)

        async def follow_async() -> None:
            await anext(store.follow_async({("orders", 0): 0}))

        def ask() -> None:
            for verb in (
                lambda: store.append("orders", 0, b"child"),
                lambda: store.append_batch(Messages.of_list([("orders", 0, b"child", {})])),
                lambda: store.read("orders", 0, 299),
                lambda: store.range("orders", 0),
                lambda: store.at(0),
                lambda: store.number_at("orders", 0, 0),
                lambda: store.wait(0),
                lambda: store.wait_for("orders", 0, 0),
                store.flush,
                lambda: store.expire(10**15),
                lambda: next(store.follow({("orders", 0): 0})),
                lambda: list(begun),
                lambda: asyncio.run(follow_async()),
            ):
                with pytest.raises(Stopped, match="parent process"):
                    verb()
            store.close()
            store.abandon()

        assert os.waitpid(in_a_child(ask), 0)[1] == 0
        assert {path: path.read_bytes() for path in sorted((tmp_path / "commitlog").iterdir())} == before
        assert store.append("orders", 0, b"parent again").number == 300
        with pytest.raises(InUse):
            Store.open(tmp_path)
    Store.open(tmp_path).close()


def test_a_child_opens_stores_though_it_was_forked_while_native_code_was_loaded(tmp_path: Path) -> None:
    program = """
import os, sys, threading, time
from gapless.impl.store.store import Store
opening = threading.Thread(target=lambda: Store.open(f"{sys.argv[1]}/parent").close())
opening.start()
time.sleep(float(sys.argv[2]))
child = os.fork()
if not child:
    with Store.open(f"{sys.argv[1]}/child") as store:
        store.append("orders", 0, b"")
        store.wait_for("orders", 0, 0)
    os._exit(0)
opening.join()
sys.exit(os.waitpid(child, 0)[1])
"""
    for pause in (0.01, 0.1, 0.3):
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program, str(tmp_path), str(pause)], timeout=60, check=False
        )
        assert ran.returncode == 0


def test_looking_for_entries_touches_no_page_that_has_no_room(tmp_path: Path) -> None:
    """On a full tmpfs that is a signal, and so it is behind the end of a file. A page ends within an entry's tag."""
    program = """
import os, sys
from gapless.impl.environment.operating_system import RealDisk
from gapless.impl.files.queues import ENTRY, ConsumeQueues
queue = ConsumeQueues(RealDisk(sys.argv[1]), 20_000).named("orders", 0)
slots, end = queue.reserve(0)
slots.view(ENTRY).reshape(-1)[:] = [(100 * number, 100, 0) for number in range(end)]
os.truncate(f"{sys.argv[1]}/consumequeue/orders/0/{0:020}", 4096)
queue.forget_below = lambda start: None  # it would notice
queue.recover(0, 1 << 40, lambda *_: True)
assert (end, queue.committed, queue.reach, queue.truncate()) == (204, 204, 20_400, False)
"""
    ran = subprocess.run([sys.executable, "-c", program, str(tmp_path)], timeout=60, check=False)
    assert ran.returncode == 0


def test_a_lock_goes_with_the_process_that_took_it(tmp_path: Path) -> None:
    """Though a child of it lives on: it was forked, and nothing more."""
    program = """
import os, sys, time
from gapless.impl.store.store import Store
store = Store.open(sys.argv[1])
if not os.fork():
    os.close(1)
    time.sleep(60)
    os._exit(0)
store.append("orders", 0, b"parent")
print("ready", flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program, str(tmp_path)], stdout=subprocess.PIPE, process_group=0
    )
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        with pytest.raises(InUse):
            Store.open(tmp_path)
        parent.kill()
        parent.wait()
        with Store.open(tmp_path) as store:
            assert store.range("orders", 0) == (0, 1)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)
        parent.communicate()


def test_a_closed_store_answers_nothing(tmp_path: Path) -> None:
    store = Store.open(tmp_path, SMALL)
    store.append("orders", 0, b"x")
    with pytest.raises(Refused, match="beyond the log's end"):
        store.wait(10**9)
    store.close()
    for ask in (
        lambda: store.read("orders", 0, 0),
        lambda: store.at(0),
        lambda: store.number_at("orders", 0, 0),
        lambda: store.wait_for("orders", 0, 0),
    ):
        with pytest.raises(Stopped, match="closed"):
            ask()
