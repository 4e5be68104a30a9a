"""Ctrl-C in the midst of a call: the store goes on, and a message is there whole or not at all."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gapless import check
from gapless.impl.environment.simulated import SimulatedDisk
from gapless.impl.files.log import CommitLog
from gapless.impl.records import kernels
from gapless.impl.records.errors import DiskFull
from gapless.impl.records.record import Messages
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store

SMALL = Settings(file_size=8192, queue_file_size=400, pre_allocate=False)


def interrupted_after(what: Callable[..., Any], calls: int = 1) -> Callable[..., Any]:
    """The same, but that Ctrl-C comes right after the so many-th call."""
    left = [calls]

    def interrupted(*arguments: Any, **more: Any) -> Any:
        answer = what(*arguments, **more)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return answer

    return interrupted


def batch(count: int, queue: int = 0) -> Messages:
    return Messages.of_list([("orders", queue, b"%d" % number * 9, {}) for number in range(count)])


def require_whole(folder: Path, bodies: list[bytes]) -> None:
    """The store was closed in order, has these messages in its queue, and zeros behind its end."""
    assert check([folder], profile="strict").verdict == "conforms"
    with Store.open(folder) as store:
        assert [record.body for record in store.read("orders", 0, 0, 10_000)] == bodies
        assert not store.core.log.view(store.core.log.end - 1)[0][store.core.log.end % store.core.log.file_size :].any()


# -- append, append_batch, roll ---------------------------------------------------------------------------------------


def test_an_interrupted_batch_leaves_nothing_behind_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(tmp_path, SMALL) as store:
        store.append("orders", 0, b"first")
        with monkeypatch.context() as patched:
            patched.setattr(kernels, "encode_many", interrupted_after(kernels.encode_many))
            with pytest.raises(KeyboardInterrupt) as told:
                store.append_batch(batch(5))
        assert told.value.__notes__ == ["the first 0 messages of the batch are in the log, and no others"]
        store.append("other", 0, b"")
        assert store.append("orders", 0, b"second").number == 1
    require_whole(tmp_path, [b"first", b"second"])


def test_an_interrupted_batch_keeps_what_was_in_a_full_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(tmp_path, SMALL) as store:
        with monkeypatch.context() as patched:
            patched.setattr(kernels, "encode_many", interrupted_after(kernels.encode_many, calls=3))
            with pytest.raises(KeyboardInterrupt) as told:
                store.append_batch(batch(200))
        inside = int(told.value.__notes__[0].split()[2])
        assert 50 < inside < 200
        assert store.append("orders", 0, b"next").number == inside
    require_whole(tmp_path, [b"%d" % number * 9 for number in range(inside)] + [b"next"])


def test_an_interrupt_at_the_end_of_a_file_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(("_sync", "_write_to", "_flushed")):
        folder = tmp_path / str(number)
        with Store.open(folder, Settings(file_size=600, queue_file_size=400, workers=0)) as store:
            store.append("orders", 0, b"a" * 200)
            with monkeypatch.context() as patched:
                patched.setattr(CommitLog, name, interrupted_after(getattr(CommitLog, name)))
                with pytest.raises(KeyboardInterrupt):
                    store.append("orders", 0, b"b" * 300)
            assert [store.append("orders", 0, b"c").number, store.append("orders", 0, b"d" * 300).number] == [1, 2]
        require_whole(folder, [b"a" * 200, b"c", b"d" * 300])


def test_a_batch_that_a_full_disk_cuts_off_says_what_is_in_the_log() -> None:
    disk = SimulatedDisk()
    with Store.open(disk, SMALL) as store:
        store.append("orders", 0, b"first")
        store.wait_for("orders", 0, 0)
        disk.fail(errno.ENOSPC, verb="create", path="commitlog/*", times=1)
        with pytest.raises(DiskFull) as told:
            store.append_batch(batch(100))
        assert told.value.appended is not None
        positions, numbers = told.value.appended
        assert numbers.tolist() == list(range(1, 1 + len(numbers)))
        assert [store.at(position).number for position in positions.tolist()] == numbers.tolist()
        assert store.append("orders", 0, b"next").number == 1 + len(numbers)
