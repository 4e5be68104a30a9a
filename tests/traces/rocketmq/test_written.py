"""The written part of a log file: neither its length nor its room on disk counts as work."""

import os
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from gapless.traces.sources.rocketmq.log.append_evidence import records_in, written_end
from tests.support.rocketmq.recordings import recording_as_left

MIB = 1 << 20
LOGS = {"normal": 4897, "midlife": 2473, "lmq": 649, "v4": 5541}  # recordings, and the records of each


@pytest.mark.parametrize("seed", range(40))
def test_the_end_is_the_last_byte_that_is_not_zero(seed: int, tmp_path: Path) -> None:
    chance, path = Random(seed), tmp_path / "log"
    for length in (0, 1, 4095, 4096, 4097, 12_287, chance.randrange(300_000)):
        content = bytearray(chance.randbytes(chance.randrange(length + 1)))
        if len(content) > 10_000:  # a body of zeros
            at = chance.randrange(len(content) - 3000)
            content[at : at + 2500] = bytes(2500)
        path.write_bytes(bytes(content).ljust(length, b"\0"))
        end = len(bytes(content).rstrip(b"\0"))
        assert [written_end(path, known) for known in (0, end // 2, end)] == [end] * 3


@pytest.mark.parametrize("filled", [True, False], ids=["zeros on disk", "sparse"])
@pytest.mark.parametrize("length", [16 * MIB, 64 * MIB])
def test_a_file_made_in_advance_has_no_more_records_than_were_written(
    length: int,
    filled: bool,  # noqa: FBT001 - as pytest gives it
    tmp_path: Path,
) -> None:
    log = tmp_path / f"{0:020d}"
    written = (recording_as_left("lmq") / "store/commitlog" / log.name).read_bytes().rstrip(b"\0")
    log.write_bytes(written)
    alone = records_in([log])
    if filled:
        log.write_bytes(written.ljust(length, b"\0"))
    else:
        os.truncate(log, length)
    assert alone == records_in([log])
    assert 0 < alone < len(written) // 200


@pytest.mark.parametrize("name", LOGS)
def test_the_estimate_is_near_the_number_of_records(name: str) -> None:
    files = sorted((recording_as_left(name) / "store/commitlog").iterdir())
    assert LOGS[name] / 2 < records_in(files) < LOGS[name] * 2
    begins = [int(file.name) for file in files]
    rest = [records_in(files, begin) for begin in [*begins, begins[-1] + files[-1].stat().st_size]]
    assert all(more > less for more, less in pairwise(rest))
    assert rest[-1] == 0


def test_what_cannot_be_read_has_no_records(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"x")
    assert records_in([tmp_path / "other", tmp_path / f"{0:020d}"]) == 0
