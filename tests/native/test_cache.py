"""The cache of object code: only this user's own whole files are executed, and one process compiles for all."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from gapless.native import Function
from gapless.native.objects import cache, object_code
from gapless.native.objects.cache import alone, cache_folder, is_ours, keep, read, user_folder
from gapless.native.objects.object_code import ObjectCode


def added(value: int) -> Any:
    return value + 1


class Compiler:
    """A compiler that counts, and waits until it may go on."""

    def __init__(self, compiled: Any) -> None:
        self.compiled, self.calls = compiled, 0
        self.began, self.may = Event(), Event()
        self.may.set()

    @property
    def compile(self) -> Any:
        """A method of object code, which compiles."""

        def compile_for(code: ObjectCode, kinds: Any) -> Any:
            self.calls += 1
            self.began.set()
            assert self.may.wait(60)
            return self.compiled(code, kinds)

        return compile_for


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiler]:
    """Nothing is kept, and the compiler's calls are seen."""
    monkeypatch.setattr(object_code, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    cache.files.cache_clear()
    found = Compiler(ObjectCode._compiled)
    monkeypatch.setattr(ObjectCode, "_compiled", found.compile)
    yield found
    found.may.set()
    cache.files.cache_clear()


def another() -> ObjectCode:
    """The code of another process: of the same text, and nothing of it is loaded."""
    return ObjectCode(Function(added))  # type: ignore[arg-type]


def kept_in(folder: Path) -> Path:
    """The one file of object code."""
    (path,) = folder.glob("*.o")
    return path


def test_it_is_compiled_once(compiler: Compiler) -> None:
    assert not another().is_kept
    assert another()(6) == 7
    assert another().is_kept
    assert another()(7) == 8
    assert compiler.calls == 1


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "head", "no head"])
def test_a_torn_file_is_made_again(compiler: Compiler, tmp_path: Path, damage: str) -> None:
    another()(6)
    path = kept_in(tmp_path)
    content = path.read_bytes()
    torn = {
        "cut": content[:-20], "emptied": b"", "head": b"{" + content, "no head": content.partition(b"\n")[2],
        "flipped": content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
    }  # fmt: skip
    path.write_bytes(torn[damage])
    assert another()(6) == 7
    assert compiler.calls == 2
    assert path.read_bytes() == content, "and kept again"
    assert another()(6) == 7
    assert compiler.calls == 2


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_to_is_not_executed(compiler: Compiler, tmp_path: Path, mode: int) -> None:
    another()(6)
    path = kept_in(tmp_path)
    path.chmod(mode)
    assert read(path) is None
    another()(6)
    assert compiler.calls == 2
    assert read(path) is not None, "the new file is this user's alone"


def test_a_file_of_another_user_is_not_executed(
    compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    another()(6)
    path = kept_in(tmp_path)
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
    assert read(path) is None
    another()(6)
    assert compiler.calls == 2


def test_no_link_is_followed(compiler: Compiler, tmp_path: Path) -> None:
    another()(6)
    path = kept_in(tmp_path)
    elsewhere = path.rename(tmp_path / "elsewhere")
    path.symlink_to(elsewhere)
    assert read(elsewhere) is not None
    assert read(path) is None
    another()(6)
    assert compiler.calls == 2
    assert not path.is_symlink(), "the link is replaced"


def test_files_are_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "added.o"

    def stopped(_: Path, __: Any) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stopped)
        with pytest.raises(KeyboardInterrupt):
            keep(path, {}, b"code")
    assert list(tmp_path.iterdir()) == []
    keep(path, {"imports": []}, b"code")
    assert read(path) is not None
    assert path.stat().st_mode & 0o777 == 0o600


def test_where_nothing_can_be_written_it_is_compiled_each_time(
    compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_code, "cache_folder", lambda: tmp_path / "missing")
    assert (another()(6), another()(7)) == (7, 8)
    assert compiler.calls == 2


# -- the folder ------------------------------------------------------------------------------------------------------


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The folder of a process that begins."""
    monkeypatch.setenv(cache.FOLDER, "")  # so that it is restored, whatever a test does
    monkeypatch.delenv(cache.FOLDER)
    return cache_folder.__wrapped__


def test_it_is_in_the_users_cache(found: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert found() == tmp_path / "gapless/kernels"
    assert found().stat().st_mode & 0o022 == 0
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert user_folder() == tmp_path / "home/.cache/gapless"


def test_it_is_where_the_environment_says(found: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "own"))
    assert found() == tmp_path / "own"


@pytest.mark.parametrize("how", ["writable", "above", "link", "another user's", "no room", "no home"])
def test_a_folder_that_is_not_this_users_alone_is_not_used(
    found: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = found()
    if how == "writable":
        folder.chmod(0o770)
    elif how == "above":
        folder.parent.chmod(0o777)
    elif how == "link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    elif how == "another user's":
        monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    elif how == "no room":
        monkeypatch.setenv("XDG_CACHE_HOME", "/proc/no/room")
    else:

        def homeless() -> Path:
            raise RuntimeError

        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(Path, "home", homeless)
    private = found()
    assert private != folder
    assert private.is_dir()
    assert private.stat().st_mode & 0o777 == 0o700
    assert os.environ[cache.FOLDER] == str(private), "processes that this one starts use it, too"


def test_a_folder_or_file_of_this_user_is(tmp_path: Path) -> None:
    assert is_ours(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    assert not is_ours(tmp_path / "link")


# -- one compiler ----------------------------------------------------------------------------------------------------


def test_one_compiles_and_the_others_take_what_it_keeps(
    compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_code, "_COMPILING", NoLock())
    compiler.may.clear()
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(another(), 6)
        assert compiler.began.wait(60)
        others = [pool.submit(another(), number) for number in (7, 8, 9)]
        compiler.may.set()
        assert [one.result() for one in (first, *others)] == [7, 8, 9, 10]
    assert compiler.calls == 1
    assert [file.suffix for file in tmp_path.iterdir()] == [".o"]


class NoLock:
    """In place of the lock among threads: each thread of a test stands for a process."""

    def __enter__(self) -> None:
        """Go on."""

    def __exit__(self, *_: object) -> None:
        """Go on."""


def test_a_process_does_not_wait_for_ever(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that compiles may have been stopped."""
    monkeypatch.setattr(object_code, "_COMPILING", NoLock())
    monkeypatch.setattr(cache, "PATIENCE", 0.1)
    compiler.may.clear()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(another(), 6)
        assert compiler.began.wait(60)
        compiler.began.clear()
        second = pool.submit(another(), 7)
        assert compiler.began.wait(60)
        compiler.may.set()
        assert (first.result(), second.result()) == (7, 8)
    assert compiler.calls == 2


def test_a_process_that_fails_leaves_it_to_the_next(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), alone(tmp_path / "added.o"):
        raise KeyboardInterrupt
    with alone(tmp_path / "added.o"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_locked_each_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with alone(tmp_path / "no folder" / "added.o"):
        pass

    def refused(*_: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(fcntl, "flock", refused)
    with alone(tmp_path / "added.o"), alone(tmp_path / "added.o"):
        pass
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as where there is none
    with alone(tmp_path / "added.o"), alone(tmp_path / "added.o"):
        pass


PROGRAM = """
import sys
import numpy as np
from gapless.traces.sources.rocketmq.columns import bytes as of_bytes
found = of_bytes.fill_digests.compiled
print(found.code.is_kept)
out = np.zeros(1, np.int64)
found(np.frombuffer(bytearray(b"gapless"), np.uint8), np.array([0]), np.array([7]), out)
print(out[0], found.code.is_kept)
"""


def test_another_process_uses_it(tmp_path: Path) -> None:
    def run() -> list[str]:
        return subprocess.run(
            [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True,
            env=os.environ | {cache.FOLDER: str(tmp_path)},
        ).stdout.split()  # fmt: skip

    first, again = run(), run()
    assert (first[0], again[0]) == ("False", "True")
    assert first[1:] == again[1:] != ["0", "True"]


def test_the_folder_that_is_shown_is_the_one_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path / "named")
    assert cache.shown_folder() == str(tmp_path / "named")
    monkeypatch.setattr(cache, "cache_folder", lambda: user_folder() / "kernels")
    assert cache.shown_folder().endswith("gapless")
