"""The worlds a store can be given: the real disk where things go wrong, and the simulated one that is like it."""

import ctypes
import errno
import fcntl
import gc
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.impl.environment import file_status, mapped_file, operating_system
from gapless.impl.environment.operating_system import Disk, File, RealDisk, wall_clock
from gapless.properties.simulation.simulated_disk import SimulatedDisk, SteppedClock

# --- The real disk and the simulated one ---------------------------------------------------------------------

PATHS = st.sampled_from(["a", "a/b", "c/d", "c/e"])  # few, so that a program meets a file of its own again
LENGTHS = st.sampled_from([0, 1, 100, 5000])
SMALL = st.binary(max_size=5)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), PATHS, LENGTHS),
        st.tuples(st.just("open"), PATHS, st.booleans()),
        st.tuples(st.just("change"), st.integers(0, 110), SMALL),
        st.tuples(st.sampled_from(["sync", "close"])),
        st.tuples(st.sampled_from(["delete", "read"]), PATHS),
        st.tuples(st.just("write"), PATHS, SMALL),
        st.tuples(st.just("look"), st.sampled_from(["", "a", "c"])),
        st.tuples(st.just("lock")),
    ),
    min_size=5,
    max_size=30,
)


def answer(disk: Disk, files: list[File], verb: object, *arguments: Any) -> object:
    """Return the result of one step, or its error. `files`: the last is the one that the store opened last."""
    try:
        match verb:
            case "create" | "open":
                files[:] = [
                    disk.create(*arguments) if verb == "create" else disk.open(*arguments[:1], write=arguments[1])
                ]
            case "change":
                at, content = arguments
                part = files[0].data[at : at + len(content)]
                part[:] = np.frombuffer(content[: len(part)], np.uint8)
            case "sync" | "close":
                getattr(files[0], verb)()
            case "look":
                return disk.names(*arguments), disk.folders(*arguments)
            case _:
                return getattr(disk, str(verb))(*arguments)
        return bytes(files[0].data), files[0].data.flags.writeable
    except OSError as error:
        return type(error), error.errno
    except ValueError as error:
        return str(error)


@settings(max_examples=settings.get_profile(settings.get_current_profile_name()).max_examples // 2)
@given(STEPS)
def test_both_disks_answer_alike(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[object, ...]]) -> None:
    """In all but loss. The last comparison is of everything that is there."""
    real, simulated = RealDisk(tmp_path_factory.mktemp("store")), SimulatedDisk()
    worlds: list[tuple[Disk, list[File]]] = [(disk, [disk.create("first", 10)]) for disk in (real, simulated)]
    try:
        for step in steps:
            there, here = (answer(disk, files, *step) for disk, files in worlds)
            assert there == here, step
        assert everything(real) == everything(simulated)
    finally:
        real.unlock()


@pytest.mark.parametrize(
    "path", ["file", "file/x", "file/x/y", "folder", "folder/x", "folder/deep", "new", "new/x", "new/x/y"]
)
@pytest.mark.parametrize(
    "step",
    [("create", 3), ("open", False), ("open", True), ("delete",), ("read",), ("write", b"content"), ("look",)],
    ids=lambda step: " ".join(map(str, step)),
)
def test_both_disks_answer_alike_for_every_kind_of_path(tmp_path: Path, path: str, step: tuple[object, ...]) -> None:
    verb, *arguments = step
    answers = []
    for disk in (RealDisk(tmp_path), SimulatedDisk()):
        disk.write("file", b"old")
        disk.write("folder/x", b"")
        disk.write("folder/deep/x", b"")
        disk.write("top/under/x", b"")
        disk.delete("top/under/x")
        answers.append((answer(disk, [], verb, path, *arguments), everything(disk)))
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    "path", ["", ".", "..", "../x", "/x", "a//b", "a/", "a/../b", "a/.", "nul\0", "n" * 256, "é" * 128]
)
def test_no_path_leads_out_of_the_store(tmp_path: Path, path: str) -> None:
    number = errno.ENAMETOOLONG if len(path) > 100 else errno.EINVAL
    for disk in (RealDisk(tmp_path / "store"), SimulatedDisk()):
        for step in (("create", path, 3), ("open", path, True), ("delete", path), ("read", path), ("write", path, b"")):
            assert answer(disk, [], *step) == (OSError, number)
        if path:
            assert answer(disk, [], "look", path) == (OSError, number)
    assert list(tmp_path.iterdir()) == []


def everything(disk: Disk, folder: str = "") -> object:
    """Every folder, and what is in every file."""
    inside = f"{folder}/" if folder else ""
    files = {name: (length, disk.read(inside + name)) for name, length in disk.names(folder).items()}
    return files, {name: everything(disk, inside + name) for name in disk.folders(folder)}


def test_a_file_is_synced_by_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its effect on the disk cannot be tested without a power cut."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    file = RealDisk(tmp_path).create("a", 10)
    file.sync()
    assert synced == [(tmp_path / "a").stat().st_ino]


def test_a_store_goes_from_a_simulated_disk_to_a_real_one_and_back(tmp_path: Path) -> None:
    disk = SimulatedDisk()
    disk.create("consumequeue/T/0/00", 40).data[3] = 7
    disk.write("abort", b"")
    disk.save(tmp_path / "store")
    again = SimulatedDisk()
    again.load(tmp_path / "store")
    assert again.files() == disk.files() == again.crash().files()


# --- Locks ---------------------------------------------------------------------------------------------------

BROKER = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)  # what Java's FileChannel.tryLock(0, 1, false) does
    except OSError:
        sys.exit("it is locked")
    print("locked", flush=True)
    sys.stdin.read()
"""
OURS = """
import sys
from gapless.impl.environment.operating_system import RealDisk
disk = RealDisk(sys.argv[1])
disk.lock()
print("locked", flush=True)
sys.stdin.read()
"""


def other_process(code: str, path: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code, str(path)], stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.fixture(params=["real", "simulated"])
def two_writers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Disk, Disk]]:
    """Two stores of one process that would write to one disk."""
    if request.param == "simulated":
        disk = SimulatedDisk()
        yield disk, disk
        return
    first, second = RealDisk(tmp_path / "store"), RealDisk(tmp_path / "store")
    yield first, second
    first.unlock()
    second.unlock()


def test_two_stores_of_one_process_keep_each_other_out(two_writers: tuple[Disk, Disk]) -> None:
    first, second = two_writers
    first.lock()
    for other in (first, second):
        with pytest.raises(BlockingIOError, match="another writer holds it"):
            other.lock()
    assert first.read("lock") == b"lock"
    first.unlock()
    first.unlock()
    second.lock()


def test_a_broker_and_a_store_keep_each_other_out(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    disk.lock()
    (tmp_path / "lock").read_bytes()  # another part of this process opens the file, and closes it
    with other_process(BROKER, tmp_path / "lock") as broker:
        assert "it is locked" in broker.communicate()[1]
    disk.unlock()
    with other_process(BROKER, tmp_path / "lock") as broker:
        assert broker.stdout is not None
        assert broker.stdout.readline() == "locked\n"
        with pytest.raises(BlockingIOError, match=f"process {broker.pid} holds it"):
            disk.lock()
        broker.kill()
    disk.lock()
    disk.unlock()


def test_the_end_of_a_process_unlocks_its_store(tmp_path: Path) -> None:
    with other_process(OURS, tmp_path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n", other.communicate()[1]
        with pytest.raises(BlockingIOError):
            RealDisk(tmp_path).lock()
        other.kill()
    disk = RealDisk(tmp_path)
    disk.lock()
    disk.unlock()


def test_where_the_lock_was_taken_away_nothing_is_changed_or_promised(tmp_path: Path) -> None:
    """Its name may be another file's: a broker locks the one that is there. The folder keeps out all others."""
    disk, other = RealDisk(tmp_path), RealDisk(tmp_path)
    disk.lock()
    file = disk.create("log", 10)
    (tmp_path / "lock").rename(tmp_path / "elsewhere")
    changes: list[Callable[[], object]] = [
        file.sync,
        lambda: disk.sync([file]),
        lambda: disk.create("new", 10),
        lambda: disk.write("small", b"new"),
        lambda: disk.delete("log"),
    ]
    for change in changes:
        with pytest.raises(OSError, match="its file `lock` was deleted or replaced"):
            change()
    with pytest.raises(BlockingIOError):
        other.lock()
    (tmp_path / "elsewhere").rename(tmp_path / "lock")
    file.sync()
    assert disk.names("") == {"lock": 4, "log": 10}
    disk.unlock()
    other.lock()
    other.unlock()


def test_where_folders_cannot_be_locked_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS locks what is open for writing, and no folder is."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EBADF, "as NFS says")

    monkeypatch.setattr(fcntl, "flock", refuse)
    open_before = descriptors()
    disk, other = RealDisk(tmp_path), RealDisk(tmp_path)
    disk.lock()
    with pytest.raises(BlockingIOError):
        other.lock()
    disk.unlock()
    other.lock()
    other.unlock()
    assert descriptors() == open_before


# --- The real disk, where things go wrong --------------------------------------------------------------------


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_nothing_stays_open_or_half_made_where_a_step_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = RealDisk(tmp_path)
    disk.create("whole", 10).close()
    open_before = descriptors()

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "as a broken disk does")

    for function in ("fsync", "ftruncate"):
        with monkeypatch.context() as broken:
            broken.setattr(os, function, refuse)
            with pytest.raises(OSError, match="as a broken disk does"):
                disk.create("new", 10)
    with monkeypatch.context() as broken:
        broken.setattr(os, "posix_fallocate", refuse)
        file = disk.open("whole", write=True)
        file.rest()
        with pytest.raises(OSError, match="as a broken disk does"):
            file.reserve(0, 10)
    with monkeypatch.context() as broken:
        broken.setattr(mapped_file, "MappedBytes", refuse)
        uses: list[Callable[[], object]] = [lambda: disk.create("new", 10), lambda: disk.open("whole", write=True)]
        for use in uses:
            with pytest.raises(OSError, match="as a broken disk does"):
                use()
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", refuse)
        with pytest.raises(OSError, match="as a broken disk does"):
            disk.write("whole", b"other")
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", refuse)
        with pytest.raises(OSError, match="as a broken disk does"):
            disk.lock()
    assert descriptors() == open_before
    assert disk.names("") == {"lock": 0, "whole": 10}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "whole"]


def test_a_descriptor_is_closed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time it might be another file's."""
    gc.collect()  # what other tests have left closes its own
    closed: list[int] = []
    close = os.close

    def noted(descriptor: int) -> None:
        closed.append(descriptor)
        close(descriptor)

    monkeypatch.setattr(os, "close", noted)
    with monkeypatch.context() as broken:
        broken.setattr(mapped_file, "MappedBytes", None)
        with pytest.raises(TypeError):
            RealDisk(tmp_path).create("new", 10)
    gc.collect()
    assert len(closed) == 1
    file = RealDisk(tmp_path).create("empty", 0)
    file.close()
    file.close()
    del file
    assert len(closed) == 3  # with the folder's: the two may have one number, one after the other
    file = RealDisk(tmp_path).open("empty", write=True)
    file.rest()
    file.sync()  # its own, opened for that, and its folder's
    file.close()
    assert len(closed) == 6


def test_another_file_of_the_same_name_is_not_synced_in_place_of_ours(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    file = disk.create("log", 10)
    file.rest()
    (tmp_path / "other").write_bytes(bytes(10))
    (tmp_path / "other").rename(tmp_path / "log")
    for use in (file.sync, file.used, lambda: file.reserve(0, 10)):
        with pytest.raises(OSError, match="another file was put in its place"):
            use()


def test_the_zeros_at_a_files_end_are_known(tmp_path: Path) -> None:
    """Also those that nothing was written to yet, though there is room for it."""
    file = RealDisk(tmp_path).create("sparse", 1 << 24)
    assert file.used() == 0
    file.reserve(0, 1 << 20)
    assert (tmp_path / "sparse").stat().st_blocks * 512 == 1 << 20
    assert file.used() <= 1 << 20
    file.data[(1 << 16) + 5] = 1
    for _ in ("in memory", "on the disk"):
        assert 1 << 16 < file.used() <= 1 << 20
        file.sync()


def test_many_files_are_synced_by_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the store is locked: then its disk has watched for errors since before anything was written."""
    disk = RealDisk(tmp_path)
    many = [disk.create(f"folder/{number}", 100, durable=False) for number in range(operating_system.FEW + 1)]
    one_by_one: list[int] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        one_by_one.append(descriptor)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    disk.lock()
    disk.sync(many)
    assert all(disk.is_named(file.path) for file in many)
    assert bool(one_by_one) == (operating_system.KERNEL < operating_system.TELLS_ERRORS)
    disk.delete("folder/3")
    with pytest.raises(OSError, match="the file was deleted from outside"):
        disk.sync(many)
    disk.unlock()
    one_by_one.clear()
    disk.sync(many[4:])
    assert not one_by_one, "their names are durable: fdatasync is enough"


def test_a_mapping_lives_as_long_as_its_bytes_are_used(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    disk.create("file", 1 << 16).close()
    gc.collect()
    open_before = descriptors()
    part = disk.open("file", write=True).data[100:200]
    gc.collect()
    part[:] = 7
    assert (tmp_path / "file").read_bytes()[99:201] == b"\0" + 100 * b"\7" + b"\0"
    assert descriptors() == open_before
    assert f"{tmp_path}/file" in Path("/proc/self/maps").read_text()
    del part
    assert f"{tmp_path}/file" not in Path("/proc/self/maps").read_text()


def test_where_blocks_cannot_be_reserved_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "sparse").open("wb") as sparse:
        sparse.truncate(3 << 20)
        sparse.seek(1 << 20)
        sparse.write(b"content")

    def unsupported(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "not on this file system")

    monkeypatch.setattr(os, "posix_fallocate", unsupported)
    before = (tmp_path / "sparse").read_bytes()
    disk = RealDisk(tmp_path)
    for file in (disk.open("sparse", write=True), disk.create("new", 3 << 20)):
        file.reserve(0, 3 << 20)
        file.sync()
        file.close()
    assert (tmp_path / "sparse").read_bytes() == before
    for name in ("sparse", "new"):
        assert (tmp_path / name).stat().st_blocks * 512 >= 3 << 20


def test_a_file_is_as_safe_as_the_names_that_lead_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a process was killed after it made a folder, and before it synced that."""
    synced: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        name = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        synced.append(name.removeprefix(str(tmp_path)))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    disk = RealDisk(tmp_path / "new" / "store")
    disk.create("a/b/c", 1)
    assert synced == ["", "/new", "/new/store", "/new/store/a", "/new/store/a/b/c", "/new/store/a/b"]
    synced.clear()
    disk.write("a/b/d", b"")
    assert synced == ["/new/store/a/b/.d.tmp", "/new/store/a/b"]
    synced.clear()
    RealDisk(tmp_path / "new" / "store").create("a/b/e", 1)
    assert synced == ["/new/store", "/new/store/a", "/new/store/a/b/e", "/new/store/a/b"]
    synced.clear()
    for name in "cde":
        disk.delete(f"a/b/{name}")
    assert synced == ["/new/store/a/b", "/new/store/a/b", "/new/store/a/b", "/new/store/a"]
    assert disk.folders("a") == []
    synced.clear()
    disk.create("a/b/f", 1)
    assert synced == ["/new/store/a", "/new/store/a/b/f", "/new/store/a/b"]


def test_a_file_system_that_does_not_sync_folders_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def files_only(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a file")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)
    disk = RealDisk(tmp_path)
    disk.create("a/b", 1)
    disk.delete("a/b")
    assert disk.names("a") == {}


def test_a_write_that_a_crash_left_unfinished_is_no_file_of_the_store(tmp_path: Path) -> None:
    (tmp_path / ".abort.tmp").write_bytes(b"half")
    disk = RealDisk(tmp_path)
    assert disk.names("") == {}
    disk.write("abort", b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["abort"]


def test_one_file_that_goes_away_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = RealDisk(tmp_path)
    for name in "abc":
        disk.write(name, b"")
    listed = disk._entries("")
    disk.delete("b")
    monkeypatch.setattr(disk, "_entries", lambda _: listed)
    assert disk.names("") == {"a": 0, "c": 0}


def test_the_store_s_own_folder_stays(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path / "store")
    disk.write("abort", b"")
    disk.delete("abort")
    assert (tmp_path / "store").is_dir()


# --- Clocks --------------------------------------------------------------------------------------------------


def test_a_stepped_clock_shows_what_it_reported() -> None:
    clock = SteppedClock(5)
    assert (clock(), clock.advance(10), clock(), clock.set_by(-12), clock(), clock.passed()) == (5, 15, 15, 3, 3, 10)
    clock.now = 1000
    assert clock() == 1000


def test_the_wall_clock_counts_milliseconds() -> None:
    assert abs(wall_clock() - time.time() * 1000) < 60_000


@pytest.mark.parametrize("is_known", [True, False], ids=["statx", "fstat"])
def test_the_status_of_a_file_is_that_of_python_whether_its_times_are_asked_for_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_known: bool
) -> None:
    if not is_known:
        monkeypatch.setattr(file_status, "_statx", None)
    path = tmp_path / "ä \udcff"
    path.write_bytes(bytes(5000))
    with path.open("rb") as opened:
        found = os.fstat(opened.fileno())
        expected = found.st_dev, found.st_ino, 1, 5000
        assert file_status.status_of(opened.fileno()) == file_status.status_of(path) == expected
        os.link(path, tmp_path / "second")
        os.truncate(path, 7)
        assert file_status.status_of(opened.fileno())[2:] == (2, 7)
        path.unlink()
        (tmp_path / "second").unlink()
        assert file_status.status_of(opened.fileno()).links == 0
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        file_status.status_of(path)
    with pytest.raises(OSError, match="Bad file descriptor"):
        file_status.status_of(1 << 20)


@pytest.mark.parametrize("refused", [errno.ENOSYS, errno.EPERM])
def test_a_kernel_or_a_container_without_statx_is_asked_for_times_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    def refuse(*_: object) -> int:
        ctypes.set_errno(refused)
        return -1

    monkeypatch.setattr(file_status, "_statx", refuse)
    assert file_status.status_of(tmp_path).inode == tmp_path.stat().st_ino
