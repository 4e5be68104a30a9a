"""The bench that damages files of every kind notices what must not happen. `make night` has the thousands of cases."""

import random
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import mutated_files
from tests.support.kafka import checksums
from tests.support.kafka.directories import data_directory
from tests.support.mutated_files import DamageBench, FileKind, is_broken, judged_apart, sealed
from tests.support.rocketmq.any_damage import OF_BYTES
from tests.support.rocketmq.store_builder import varied


class Answer:
    """A report, as far as the bench looks at it."""

    verdict = "conforms"

    @staticmethod
    def model_dump_json() -> str:
        """Return an empty object."""
        return "{}"


def raises(_paths: list[Path], **_more: int) -> Answer:
    """A check with a fault."""
    raise IndexError("of a kernel")


def sleeps(_paths: list[Path], **_more: int) -> Answer:
    """A check that does not end."""
    time.sleep(600)
    return Answer()


def takes_memory(_paths: list[Path], **_more: int) -> Answer:
    """A check that takes more than there is for it."""
    assert len(bytearray(2 * mutated_files.MEMORY)) > mutated_files.MEMORY
    return Answer()


def dies(_paths: list[Path], **_more: int) -> Answer:
    """A check that a library ends."""
    resource.setrlimit(resource.RLIMIT_CPU, (0, 0))
    while True:
        pass


def ends(_paths: list[Path], **_more: int) -> Answer:
    """A check as it should be."""
    return Answer()


@pytest.mark.parametrize(
    ("judge", "wrong"),
    [
        (raises, "IndexError: of a kernel"),
        (sleeps, "it does not end within"),
        (takes_memory, "MiB"),
        (dies, "it was ended by SIG"),
        (ends, ""),
    ],
)
def test_what_must_not_happen_is_noticed(
    judge: Callable[..., Answer], wrong: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mutated_files, "check", judge)
    monkeypatch.setattr(mutated_files, "PATIENCE", 0 if judge is sleeps else 600)
    monkeypatch.setattr(mutated_files, "MEMORY", 1 << 26)
    outcome = judged_apart(tmp_path)
    assert wrong in outcome.wrong
    assert bool(wrong) == bool(outcome.wrong)


def test_bytes_under_a_checksum_are_known(tmp_path: Path) -> None:
    store = varied(1, 60).write(tmp_path / "store")
    (ranges, *_) = sealed(tmp_path).values()
    assert sum(map(len, sealed(tmp_path).values())) == 60
    (file, *_) = sorted((store / "commitlog").iterdir())
    data = file.read_bytes()
    assert not is_broken(data, data[: ranges[-1][1]], ranges)
    assert is_broken(data, data[: ranges[-1][1] - 1], ranges)
    assert is_broken(data, data[:100] + bytes([data[100] ^ 1]) + data[101:], ranges)


def test_a_log_that_conforms_though_bytes_under_a_checksum_changed_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each case has its file back behind it, and is the same again by its seed."""
    store = varied(1, 60).write(tmp_path / "store")
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    bench = DamageBench(FileKind((lambda: store,), ("commitlog/*",)), tmp_path)
    whole = [bench.case(random.Random(seed)) for seed in range(4)]
    assert [outcome.wrong for _, outcome in whole] == [""] * 4
    monkeypatch.setattr(mutated_files, "check", ends)
    again = [bench.case(random.Random(seed)) for seed in range(4)]
    assert [what for what, _ in again] == [what for what, _ in whole]
    assert any("bytes under a checksum" in outcome.wrong for _, outcome in again)
    assert before == {path: path.read_bytes() for path in before}


def test_kafkas_batches_are_under_checksums_and_can_be_mended(tmp_path: Path) -> None:
    path = data_directory(tmp_path / "n1")
    ranges = sealed(path)
    assert {name: len(found) for name, found in ranges.items()} == {
        f"orders-0/{base:020}.log": count for base, count in ((0, 2), (3, 2), (6, 1))
    }
    log = path / "orders-0" / f"{0:020}.log"
    before = log.read_bytes()
    log.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    assert len(sealed(path)[f"orders-0/{log.name}"]) == 1
    checksums.mend(log)
    assert sealed(path) == ranges
    (path / ".kafka_cleanshutdown").unlink()
    assert sealed(path) == {}


@pytest.mark.parametrize("mutation", OF_BYTES)
def test_damage_of_bytes_leaves_the_file_and_is_repeatable(
    mutation: Callable[[Path, random.Random], None], tmp_path: Path
) -> None:
    found = set()
    for content in (b"", b"a", b'{"n":12}', bytes(range(256)) * 40):
        after = []
        for _ in "ab":
            (tmp_path / "file").write_bytes(content)
            (tmp_path / "other").write_bytes(content[::-1])
            mutation(tmp_path / "file", random.Random(content))
            after.append((tmp_path / "file").read_bytes())
        assert after[0] == after[1]
        found.add(after[0] == content)
    assert False in found
