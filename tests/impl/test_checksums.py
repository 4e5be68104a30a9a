"""Checksums in native code are those of zlib: with the processor's instruction, and without it."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from pathlib import Path
from random import Random

import numpy as np
import pytest

from gapless.impl.records import crc32_pclmul, kernels
from gapless.impl.records.record import Bytes
from gapless.native import function

PROGRAM = """
from tests.impl import test_checksums as t
assert t.has_the_instruction() == {has}
t.test_every_length_has_zlibs_checksum()
"""


@function
def has_the_instruction() -> bool:
    return crc32_pclmul.has_pclmul()


@function
def of(b: Bytes, p: int, n: int, before: int, tables: kernels.Tables) -> int:
    return kernels.crc_from(before, b, p, n, tables)


def test_every_length_has_zlibs_checksum() -> None:
    raw = Random(0).randbytes(70_000)
    data = np.frombuffer(raw, np.uint8)
    for count in (*range(600), 4095, 4096, 65_537):
        for begin, before in ((0, 0), (count % 17, 1), (3, 0x80000000), (1, 0xFFFFFFFF)):
            expected = zlib.crc32(raw[begin : begin + count], before)
            assert of(data, begin, count, before, kernels.CRC_TABLES) == expected, (begin, count, before)


def test_every_flipped_bit_is_noticed() -> None:
    raw = bytearray(Random(1).randbytes(337))
    whole = of(np.frombuffer(raw, np.uint8), 0, len(raw), 0, kernels.CRC_TABLES)
    for bit in range(8 * len(raw)):
        raw[bit // 8] ^= 1 << bit % 8
        assert of(np.frombuffer(raw, np.uint8), 0, len(raw), 0, kernels.CRC_TABLES) != whole
        raw[bit // 8] ^= 1 << bit % 8


@pytest.mark.parametrize("features", [None, ""], ids=["as it is", "no instruction"])
def test_a_processor_without_the_instruction_uses_tables(features: str | None, tmp_path: Path) -> None:
    if features is None and not has_the_instruction():
        pytest.skip("this processor has no carry-less multiplication")
    environment = {**os.environ, "GAPLESS_CACHE": str(tmp_path)}
    if features is not None:
        environment |= {"GAPLESS_PROCESSOR": "generic", "GAPLESS_FEATURES": features}
    program = PROGRAM.format(has=features is None)
    subprocess.run([sys.executable, "-c", program], env=environment, timeout=120, check=True)


def test_a_number_that_is_eight_digits() -> None:
    digits = np.frombuffer(b"0123456789", np.uint8)
    for number in (0, 7, 12_345_678, 99_999_999, *(10**power for power in range(8))):
        assert _eight(digits[[number // 10**at % 10 for at in range(8)]]) == number
    for at in range(8):
        for wrong in (0, 47, 58, 0xB0, 0xFF):
            word = np.full(8, 49, np.uint8)
            word[at] = wrong
            assert _eight(word) == -1


def _eight(word: Bytes) -> int:
    found: int = kernels.eight_digits(np.ascontiguousarray(word).view(np.uint64)[0])
    return found
