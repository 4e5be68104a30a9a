"""Reading without a lock: the view of a store sees what another process writes, whole or not at all."""

import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from gapless.impl.environment.operating_system import File, RealDisk
from gapless.impl.files.segments import Segments
from gapless.impl.records import read_kernel
from gapless.impl.records.errors import NotAStore, Refused, Stopped, StoreError
from gapless.impl.records.record import ENTRY_BYTES, Bytes, Messages
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store
from gapless.impl.store.view import StoreView

SMALL = Settings(file_size=8192, queue_file_size=400, pre_allocate=False)

WRITER = """
import sys
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store
clock = iter(range(1 << 30))
settings = Settings(file_size=8192, queue_file_size=400, workers=2)
with Store.open(sys.argv[1], settings, clock=lambda: next(clock)) as store:
    for number in range(int(sys.argv[2])):
        store.append("orders", number % 2, b"%d." % number * (number % 40), tag=f"t{number % 7}")
        if number == 0:
            print("begun", flush=True)
        if number % 400 == 399:
            store.wait_for("orders", 0, number // 2)
            store.expire(store.core.log.newest - 300)
    store.wait_for("orders", 1, number // 2)
print("ended", flush=True)
sys.stdin.read()
"""


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in a folder: when it was changed, and what is in it."""
    return {
        str(file.relative_to(folder)): (file.stat().st_mtime_ns, file.read_bytes() if file.is_file() else b"")
        for file in sorted(folder.rglob("*"))
    }


def body(queue: int, number: int) -> bytes:
    sent = 2 * number + queue
    return b"%d." % sent * (sent % 40)


def test_a_view_changes_nothing_and_needs_no_lock(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        for number in range(300):
            store.append("orders", number % 2, body(number % 2, number // 2), tag="t")
        store.wait_for("orders", 1, 149)
    before = files(tmp_path)
    with Store.open_read_only(tmp_path) as view, StoreView.open(tmp_path) as other:
        for queue in range(2):
            assert view.range("orders", queue) == (0, 150)
            assert [r.body for r in view.read("orders", queue, 0, 150)] == [body(queue, n) for n in range(150)]
            assert view.get("orders", queue, 17) == other.get("orders", queue, 17)
        assert view.range("orders", 2) == view.range("nowhere", 0) == view.range("../x", 0) == (0, 0)
        assert view.number_at("orders", 0, 1 << 60) == 150
        assert len(view.read_batch("orders", 0, 0, 150, tag="t")) == 150
        assert not view.wait_for("orders", 0, 150, timeout=0.01)
    assert files(tmp_path) == before
    with pytest.raises(Stopped):
        view.read("orders", 0, 0)


def test_a_view_sees_what_its_own_process_writes(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        with pytest.raises(NotAStore):
            StoreView.open(tmp_path)
        store.append("orders", 0, b"0")
        store.wait_for("orders", 0, 0)
        with StoreView.open(tmp_path) as view:
            for number in range(1, 200):
                store.append("orders", 0, b"%d" % number)
                assert view.wait_for("orders", 0, number)
                assert view.get("orders", 0, number).body == b"%d" % number
            store.append("new", 3, b"")
            assert view.wait_for("new", 3, 0)


def test_a_view_looks_at_no_slot_that_may_have_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full tmpfs it would be killed. A page ends within entry 204."""
    settings = Settings(file_size=1 << 20, queue_file_size=20_000, pre_allocate=False)
    seen: list[int] = []
    visible = read_kernel.visible

    def noted(log: Bytes, base: int, start: int, slots: Bytes, low: int, *more: Any) -> int:
        seen.append(20 * low + slots.size)
        return visible(log, base, start, slots, low, *more)

    monkeypatch.setattr(read_kernel, "visible", noted)
    with Store.open(tmp_path, settings) as store:
        store.append("orders", 0, b"")
        view = StoreView.open(tmp_path)
        store.append_batch(Messages.of_list([("orders", 0, b"", {})] * 199))
        for number in range(200, 210):
            store.append("orders", 0, b"")
            store.wait_for("orders", 0, number)
            assert view.range("orders", 0) == (0, number + 1)
            room = store.core.queues.named("orders", 0).in_use(0)
            assert seen[-1] <= -(-room // 20) * 20
            assert room <= -(-20 * (number + 1) // 4096) * 4096


@pytest.mark.parametrize("damage", ["hole", "position", "size", "tag", "zeros"])
def test_an_entry_that_is_being_written_ends_the_queue(tmp_path: Path, damage: str) -> None:
    with Store.open(tmp_path, SMALL) as store:
        for number in range(50):
            store.append("orders", 0, b"%d" % number, tag="paid")
        store.wait_for("orders", 0, 49)
    file = next(iter(sorted((tmp_path / "consumequeue/orders/0").iterdir())[2:]))  # its first entry is that of 40
    whole = file.read_bytes()
    low, high = {"hole": (60, 80), "position": (60, 68), "size": (68, 72), "tag": (72, 80), "zeros": (60, 400)}[damage]
    file.write_bytes(whole[:low] + bytes(high - low) + whole[high:])
    with StoreView.open(tmp_path) as view:
        assert view.range("orders", 0) == (0, 43)
        assert [r.number for r in view.read("orders", 0, 0, 100)] == list(range(43))
        with file.open("r+b") as written:
            written.write(whole)
        assert view.range("orders", 0) == (0, 50)
        with file.open("r+b") as written:  # its writer lost it in a crash
            written.write(whole[:60] + bytes(340))
        assert view.range("orders", 0) == (0, 43)


def test_a_view_reads_while_another_process_appends_and_expires(tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path), "6000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert writer.stdin is not None
    assert writer.stdout is not None
    assert writer.stdout.readline() == "begun\n"
    deadline = monotonic() + 60
    while not list((tmp_path / "consumequeue").glob("orders/*/*")) and monotonic() < deadline:
        pass
    seen, expired, following = [0, 0], 0, [0, 0]
    with StoreView.open(tmp_path) as view:
        while following != [3000, 3000] and monotonic() < deadline:
            for queue in range(2):
                view.refresh()
                low = view.range("orders", queue)[0]
                number = following[queue] = max(low, following[queue])
                try:
                    records = view.read("orders", queue, number, 100)
                except Refused as error:
                    assert "has expired" in str(error) or "expected one from" in str(error)  # noqa: PT017
                    expired += 1
                    continue
                assert [(r.number, r.body) for r in records] == [
                    (n, body(queue, n)) for n in range(number, number + len(records))
                ]
                assert [r.tag for r in records] == [f"t{(2 * r.number + queue) % 7}" for r in records]
                following[queue] += len(records)
                seen[queue] += len(records)
        assert view.range("orders", 0)[0] > 1000
    assert following == [3000, 3000]
    assert min(seen) > 0
    out, _ = writer.communicate()
    assert (out, writer.returncode) == ("ended\n", 0)


def test_files_that_have_expired_give_their_room_back(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL, clock=iter(range(10**6)).__next__) as store:
        for _ in range(300):
            store.append("orders", 0, bytes(200))
        store.wait_for("orders", 0, 299)
        with StoreView.open(tmp_path) as view:
            assert view.get("orders", 0, 5) == view.get("orders", 0, 5)
            store.expire(store.core.log.newest)
            view.refresh()
            low = store.range("orders", 0)[0]
            assert view.range("orders", 0) == (low, 300)
            assert min(view._log.segments._open, default=low) >= store.core.log.start
            with pytest.raises(Refused):
                view.get("orders", 0, 5)
            assert view.get("orders", 0, low).number == low


@pytest.mark.parametrize("call", ["range", "refresh", "read"])
def test_files_that_expire_one_after_the_other_are_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """After each listing the first of many files is deleted: five listings were not enough for a view."""
    count, per_file, folder = 200, 20, tmp_path / "consumequeue" / "orders" / "0"
    load = Segments.load
    gone = 0

    def listed(_kind: type[Segments], *of: Any) -> Segments:
        nonlocal gone
        found = load(*of)
        if found.folder == "consumequeue/orders/0" and len(found.bases) > 1:
            (folder / f"{found.bases[0]:020d}").unlink()
            gone += 1
        return found

    settings = Settings(file_size=8192, queue_file_size=per_file * ENTRY_BYTES)
    with Store.open(tmp_path, settings) as store:
        for number in range(count):
            store.append("orders", 0, body(0, number))
        assert store.wait_for("orders", 0, count - 1)
    with StoreView.open(tmp_path) as view:
        if call != "range":
            assert view.range("orders", 0) == (0, count)
            view._all_queues.all[0].segments.close()  # as where many other files are in use
        monkeypatch.setattr(Segments, "load", classmethod(listed))
        if call == "read":
            with pytest.raises(Refused):
                view.read("orders", 0, 0)
        elif call == "refresh":
            view.refresh()
        assert view.range("orders", 0) == (count - per_file, count)
        assert gone == count // per_file - 1
        assert view.get("orders", 0, count - 1).body == body(0, count - 1)


def test_a_file_that_is_listed_and_cannot_be_found_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing that stays the same is believed for some tries, and no longer."""
    with Store.open(tmp_path) as store:
        store.append("orders", 0, b"one")
        assert store.wait_for("orders", 0, 0)
        with StoreView.open(tmp_path) as view:

            def lost(_segments: Segments, _position: int, **_how: bool) -> File:
                raise StoreError("lost") from FileNotFoundError()

            with monkeypatch.context() as patch:
                patch.setattr(Segments, "file", lost)
                with pytest.raises(StoreError, match="lost"):
                    view.range("orders", 0)
            assert view.range("orders", 0) == (0, 1)


def test_a_folder_without_a_store_is_none(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    with pytest.raises(NotAStore):
        StoreView.open(RealDisk(tmp_path))
