"""Object code says what Python says, is used again without numba, and is not used where anything of it differs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import platformdirs
import pytest

from gapless.traces import object_code
from gapless.traces.native import by_python, native, njit
from gapless.traces.object_code import NativeError, ObjectCode, cache_folder, text_of

STEP = 3


class Pair(NamedTuple):
    """What is handed over together."""

    one: Any
    other: int


@njit
def _twice(value: int) -> int:
    return 2 * value + STEP


@native(lambda values, *_: len(values))
def _told(values: Any, rows: Any, pair: Pair, more: bool, large: np.uint64) -> Any:  # noqa: FBT001 - it is native code
    """All kinds of arguments, an array that is written to, and an answer of several numbers."""
    total = np.int64(0)
    for i in range(len(values)):
        rows[1, i] = _twice(values[i]) + pair.one[i] * pair.other
        total += rows[0, i]
    return total, np.int64(more), np.int64(large >> np.uint64(60))


@njit
def _is_more(one: int, other: int) -> bool:
    return one > other


@njit
def _nothing(values: Any) -> None:
    values[0] = 7


@njit
def _divided(one: int, other: int) -> int:
    return one // other


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept."""
    monkeypatch.setattr(object_code, "cache_folder", lambda: tmp_path)
    object_code._files.cache_clear()


def given(writeable: bool = True) -> tuple[Any, ...]:  # noqa: FBT001, FBT002 - as numpy has it
    """Arguments of every kind, the first as its owner lets it be written to."""
    values = np.arange(5)
    values.flags.writeable = writeable
    return values, np.ones((2, 9), np.int64)[:, ::2], Pair(np.full(5, 10, np.int8), -2), True, np.uint64(2**63)


@pytest.mark.parametrize("writeable", [True, False])
def test_it_says_what_python_says(writeable: bool) -> None:  # noqa: FBT001 - of pytest
    plain, ours = given(writeable), given(writeable)
    with np.errstate(over="ignore"):
        expected = by_python(_told.compiled)(*plain)
    assert _told.compiled(*ours) == tuple(map(int, expected)) == (5, 1, 8)
    assert ours[1].tolist() == plain[1].tolist()


def test_truth_is_truth_and_nothing_is_nothing() -> None:
    assert (_is_more(2, 1), _is_more(1, 2)) == (True, False)
    values = np.zeros(2, np.int64)
    assert _nothing(values) is None
    assert values.tolist() == [7, 0]


def test_where_it_fails_it_says_so() -> None:
    assert _divided(7, 2) == 3
    with pytest.raises(NativeError, match="_divided"):
        _divided(7, 0)


def test_what_native_code_cannot_be_given_is_refused() -> None:
    with pytest.raises(TypeError, match="not str"):
        _is_more("1", 2)


def code_of(text: str, asked: list[str]) -> ObjectCode:
    """Code made of a text, which tells whether it was compiled anew."""

    def function() -> Any:
        asked.append(text)
        return _is_more.py_func

    return ObjectCode("is_more", lambda: text, function)


def test_it_is_compiled_once(tmp_path: Path) -> None:
    asked: list[str] = []
    assert not code_of("one", asked).is_kept
    assert code_of("one", asked)(2, 1)
    again = code_of("one", asked)
    assert again.is_kept
    assert again(2, 1)
    assert not code_of("other", asked).is_kept, "of another text, it is other code"
    assert code_of("other", asked)(2, 1)
    assert asked == ["one", "other"]
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied"])
def test_what_is_damaged_is_made_again(tmp_path: Path, damage: str) -> None:
    asked: list[str] = []
    code_of("one", asked)(2, 1)
    (path,) = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes({"cut": bytes(content[:-20]), "flipped": bytes(content), "emptied": b""}[damage])
    assert code_of("one", asked)(2, 1)
    assert asked == ["one", "one"]
    assert code_of("one", asked)(2, 1)
    assert asked == ["one", "one"], "and kept again"


def test_where_nothing_can_be_written_it_is_compiled_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_code, "cache_folder", lambda: tmp_path / "missing")
    asked: list[str] = []
    assert code_of("one", asked)(2, 1)
    assert code_of("one", asked)(2, 1)
    assert asked == ["one", "one"]


def test_where_there_is_no_cache_it_is_kept_where_numba_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda _name: "/proc/nobody/may/write/here")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert cache_folder.__wrapped__() == tmp_path


def test_its_text_is_that_of_all_that_it_calls_and_names(monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(_told.compiled.py_func)
    assert Path(__file__).read_text("utf-8") in text
    monkeypatch.setattr(sys.modules[__name__], "STEP", 4)
    assert text_of(_told.compiled.py_func) != text, "what is called names another number"


PROGRAM = """
import sys
from pathlib import Path
from gapless.traces import object_code
object_code.cache_folder = lambda: Path(sys.argv[1])
import numpy as np
from gapless.traces.sources.rocketmq.store import bytes as of_bytes
found = of_bytes.fill_digests.compiled
print(found.is_kept())
out = np.zeros(1, np.int64)
found(np.frombuffer(bytearray(b"gapless"), np.uint8), np.array([0]), np.array([7]), out)
print(out[0], "numba" in sys.modules)
"""


def test_another_process_uses_it_without_numba(tmp_path: Path) -> None:
    def run() -> list[str]:
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path)], check=True, capture_output=True, text=True
        ).stdout.split()

    first, again = run(), run()
    assert (first[0], first[2]) == ("False", "True")
    assert (again[0], again[2]) == ("True", "False")
    assert first[1] == again[1] != "0"
