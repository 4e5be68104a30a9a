"""Native code of stores says what Python says, word by word and store by store."""

from __future__ import annotations

import random
import shutil
import zlib
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless import check
from gapless.native import Function, Native, by_python
from gapless.native.policy import readable
from gapless.traces.replay.kernels import Loop
from gapless.traces.sources.rocketmq.columns import bytes as of_bytes
from gapless.traces.sources.rocketmq.log import records, scan
from gapless.traces.sources.rocketmq.transactions import transaction_rows
from tests.support.night import NIGHT, by_day
from tests.support.rocketmq import damage
from tests.support.rocketmq.any_damage import mutate
from tests.support.rocketmq.damage import Fault, Pick, name_of
from tests.support.rocketmq.recordings import copy_of, recording, recording_with_client

# -- word by word ----------------------------------------------------------------------------------------------------

TEXTS = st.binary(max_size=40) | st.text(max_size=12).map(str.encode) | st.integers(0, 10**19).map(lambda n: b"%d" % n)


@given(TEXTS, st.integers(0, 40), st.integers(0, 40))
def test_each_word_means_the_same(text: bytes, begin: int, end: int) -> None:
    data = np.frombuffer(text + bytes(16), np.uint8)
    begin, end = sorted((min(begin, len(text)), min(end, len(text))))
    number = [of_bytes.u16, of_bytes.u32, of_bytes.i32, of_bytes.i64]
    for word in (*number, of_bytes.java_hash, of_bytes.digest, of_bytes.number_in, records.value_end):
        args = (begin,) if word in number else (begin, end)
        assert same(word, data, *args), word
    assert same(of_bytes.crc31, data, begin, end - begin, of_bytes.CRC_TABLES)
    assert of_bytes.crc31(data, begin, end - begin, of_bytes.CRC_TABLES) == zlib.crc32(text[begin:end]) & 0x7FFFFFFF
    assert same(of_bytes.is_name, data, begin, end, scan.TAGS)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1))
def test_each_mixture_is_the_same(one: int, other: int) -> None:
    assert same(transaction_rows._target, np.int64(one), np.int64(other))
    assert same(transaction_rows._mixed, np.uint64(one & (2**64 - 1)), np.int64(other))


@given(TEXTS, st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(-(2**31), 2**31 - 1))
def test_so_do_those_that_remember(text: bytes, begin: int, middle: int, end: int, number: int) -> None:
    """And what they are given as `bytes` is what they are given as an array."""
    data = np.frombuffer(text + bytes(16), np.uint8)
    begin, middle, end = sorted(min(place, len(text)) for place in (begin, middle, end))
    for word, args in (
        (of_bytes.hash_on, (begin, end, number)),
        (scan._subject_hash, (begin, end, number)),
        (scan._next_magic, (begin, end)),
        (transaction_rows._property, (begin, middle, end)),
        (of_bytes.place_of, (begin, end, 1)),
    ):
        assert same(word, data, *args), word
        with np.errstate(over="ignore"):
            found = by_python(word)(data.tobytes(), *args)
        native_one = word(data, *args)
        assert (
            found == native_one if isinstance(found, tuple) else int(cast("int", found)) == int(cast("int", native_one))
        ), word


@pytest.mark.parametrize("length", [0, 7, 8, 9, 15, 16, 17, 40])
def test_words_of_eight_bytes_are_read_as_bytes_one_by_one(length: int) -> None:
    """Bytes that differ from the searched one in one outermost bit, letters, and other texts."""
    choice = np.random.default_rng(length)
    for number in range(600):
        data = choice.choice(np.array([0, 1, 2, 3, 0x7F, 0x80, 0x81, 0x82, 0xFF], np.uint8), length)
        data[choice.random(length) < number % 3 * 0.45] = 0x82
        begin, end, byte = (int(choice.integers(0, high)) for high in (length + 2, length + 1, 4))
        expected = next((at for at in range(begin, end) if data[at] == byte), max(begin, end))
        assert of_bytes.place_of(data, begin, end, byte) == expected
        begin = min(begin, end)
        assert same(of_bytes.digest, data, begin, end)
        assert same(of_bytes.crc31, data, begin, end - begin, of_bytes.CRC_TABLES)
        letters = choice.integers(1, 128, length).astype(np.uint8)
        text = bytes(letters[:begin]) + ("", "é", "€", "\U0001f600")[number % 4].encode() + bytes(letters[begin:])
        texts = np.frombuffer(text, np.uint8)
        assert same(of_bytes.hash_on, texts, 0, len(text), int(choice.integers(-(2**31), 2**31)))


def test_magic_numbers_are_found_far_away() -> None:
    data = np.zeros(3 * scan.SOME, np.uint8)
    for place in (0, scan.SOME - 1, scan.SOME, 2 * scan.SOME + 5):
        data[:] = 0
        data[place + 4] = 0xDA
        assert same(scan._next_magic, data, 0, len(data) - 4)
        assert by_python(scan._next_magic)(data.tobytes(), 0, len(data) - 4) == place


def same(word: Any, *args: Any) -> bool:
    """True if native code and Python agree."""
    with np.errstate(over="ignore"):
        plain = by_python(word)(*map(readable, args))
    found = word(*args)
    return bool(tuple(found) == tuple(plain) if isinstance(found, tuple) else int(found) == int(plain))


# -- whole stores ----------------------------------------------------------------------------------------------------


def judged(path: Path) -> dict[str, Any]:
    """All that a report says, but for how long it took."""
    return check([path]).model_dump(exclude={"seconds"})


def by_both(path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Check with everything compiled, and with nothing compiled; the results must agree."""
    compiled = judged(path)
    with monkeypatch.context() as patch:
        patch.setattr(Native, "__call__", Native.by_python)
        assert judged(path) == compiled
    return compiled


@pytest.mark.parametrize("name", ["lmq", "pop_retry", "odd_clients", "immunity"])
def test_a_recording_is_judged_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert by_both(recording(name), monkeypatch)["verdict"] == "conforms"


def test_so_is_one_with_its_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    assert by_both(recording_with_client("midlife"), monkeypatch)["verdict"] == "conforms"


@pytest.mark.parametrize("fault", by_day(damage.FAULTS, 1 / 2), ids=name_of)
def test_a_damaged_store_is_judged_alike(fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = copy_of("varied 1", tmp_path)
    fault(damaged, Pick("any", fault.__name__))
    assert by_both(damaged, monkeypatch)["verdict"] == "departs"


def test_bytes_at_random_are_judged_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    for turn in range(12):
        store = copy_of("varied 2", tmp_path / str(turn))
        path = rng.choice(sorted((store / "commitlog").iterdir()))
        content = bytearray(path.read_bytes())
        for _ in range(rng.randrange(1, 30)):
            content[rng.randrange(min(len(content), 20_000))] = rng.choice((0, 1, 2, 44, 255, rng.randrange(256)))
        path.write_bytes(content)
        by_both(store, monkeypatch)


LAYOUTS = (
    *("batchcq_lives_5.5.0", "both_killed_5.5.0", "compacted_lives_5.5.0", "dledger_lives_5.5.0", "ext_lives_5.5.0"),
    *("halfdb_lives_5.5.0", "index_lives_5.5.0", "indexdb_lives_5.5.0", "lmq_lives_5.5.0", "rocksdb_lives_5.5.0"),
    *("tiered_lives_5.5.0", "timer_lives_5.5.0", "timerrocks_lives_5.5.0"),
)


@pytest.mark.parametrize("name", by_day(LAYOUTS, 1 / 13))
def test_any_damage_to_any_layout_is_judged_alike(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    choose = random.Random(name)
    for turn in range(10 if NIGHT else 1):
        store = shutil.copytree(recording(f"layouts/{name}"), tmp_path / str(turn))
        print([mutate(store, choose) for _ in range(choose.choice((1, 1, 2)))])  # noqa: T201 - shown where it fails
        by_both(store, monkeypatch)


# -- when it is compiled ---------------------------------------------------------------------------------------------


def test_a_small_store_compiles_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Native, "_is_kept", lambda _self: False)
    monkeypatch.setattr(Native, "few", 25_000)
    monkeypatch.setattr(Loop, "few", 1 << 60)
    for module in (scan, records, transaction_rows):
        for one in vars(module).values():
            if isinstance(one, Native):
                monkeypatch.setattr(one, "_is_ready", False)
                monkeypatch.setattr(one, "_seen", 0)
                monkeypatch.setattr(one, "compiled", only_by_python(one.compiled))
    assert check([copy_of("varied 1", tmp_path)]).verdict == "conforms"


def only_by_python(compiled: Function) -> Function:
    """A function that was compiled, and fails where it is called so."""

    class Fails(Function):
        def __call__(self, *_args: Any, **_named: Any) -> None:
            """Fail."""
            pytest.fail("native code is called")

    found = Fails(cast("Any", compiled.python), constants=compiled.constants)
    found.library = compiled.library
    return found
