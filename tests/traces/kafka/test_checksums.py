"""CRC-32C of a processor with the instruction, of one without, and by Python."""

import random

import numpy as np
import pytest

from gapless.native import BYTES
from gapless.native.objects import convention
from gapless.native.objects.convention import ENTRY
from gapless.native.objects.object_code import assembled, link, llvm_text
from gapless.traces.sources.kafka.log import checksums
from gapless.traces.sources.kafka.log.checksums import checksum

KNOWN = {b"123456789": 0xE3069283, bytes(32): 0x8A9136AA, b"\xff" * 32: 0x62A8AB43, bytes(range(32)): 0x46DD794E}
"""From RFC 3720 (https://www.rfc-editor.org/rfc/rfc3720#appendix-B.4), and the check value of the catalogue."""


@pytest.mark.parametrize("text", KNOWN)
def test_known_checksums(text: bytes) -> None:
    assert checksum(text) == KNOWN[text]
    assert checksums._checksum.by_python(np.frombuffer(text, np.uint8)) == KNOWN[text]


def test_all_ways_give_the_same() -> None:
    of = checksums._checksum.compiled
    text, imports = llvm_text(of, (BYTES,), features="")
    assert "call i64 @llvm.x86" not in text
    library = link("tables", assembled(text), [ENTRY], imports)
    tables, alive = convention.callable_at(library[ENTRY], "tables", library)
    chance = random.Random(1)
    for length in [*range(40), 1000, 4097]:
        data = np.frombuffer(chance.randbytes(length), np.uint8)
        assert of(data) == tables(data) == checksums._checksum.by_python(data)
    assert alive
