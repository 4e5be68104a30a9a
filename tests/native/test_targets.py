"""Object code for other processors than this one: without the newest features of x86-64, with them, and for aarch64."""

from __future__ import annotations

from random import Random
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from gapless.impl.records import kernels as records
from gapless.native import Native
from gapless.native.kinds import kind_of
from gapless.native.language import LanguageError
from gapless.native.objects.object_code import assembled, llvm_text
from gapless.native.program_generator import program
from gapless.traces.sources.rocketmq.columns import bytes as of_bytes

TARGETS = {
    "aarch64": ("aarch64-unknown-linux-gnu", "", ""),
    "aarch64 with vectors": ("aarch64-unknown-linux-gnu", "neoverse-v1", ""),
    "x86-64 of 2003": ("x86_64-unknown-linux-gnu", "x86-64", ""),
    "x86-64 without AVX-512": ("x86_64-unknown-linux-gnu", "x86-64-v3", "+pclmul,-avx512f"),
    "x86-64 with AVX-512": ("x86_64-unknown-linux-gnu", "x86-64-v4", "+pclmul,+avx512f,+avx512bw,+avx512vl"),
}
MACHINES = {"aarch64": 183, "x86_64": 62}  # as ELF numbers them
DATA, ROWS = np.zeros(64, np.uint8), np.zeros(4, np.int64)
CHECKSUM = records.crc_from, (0, DATA, 0, 64, records.CRC_TABLES)
ENTRIES = {
    "checksum": CHECKSUM,
    "digests": (of_bytes.fill_digests, (DATA, ROWS, ROWS, ROWS)),
    "crc31": (of_bytes.crc31, (DATA, 0, 9, of_bytes.CRC_TABLES)),
    "hash": (of_bytes.java_hash, (DATA, 0, 9)),
}


@pytest.fixture(scope="module", params=list(TARGETS.values()), ids=list(TARGETS))
def target(request: pytest.FixtureRequest) -> tuple[Any, str, str]:
    """LLVM's machine, its name, and its features."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple, cpu, features = request.param
    of = llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", codemodel="small"
    )
    return of, triple.partition("-")[0], features


def text_for(of: Any, kinds: tuple[Any, ...], features: str) -> str:
    """The LLVM text of a function for a processor with these features."""
    return llvm_text(getattr(of, "compiled", of), kinds, features=features)[0]


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_are_assembled(target: tuple[Any, str, str], name: str) -> None:
    machine, architecture, features = target
    of, args = ENTRIES[name]
    text = text_for(of, tuple(map(kind_of, args)), features)
    code = assembled(text, target=machine)
    assert code[:4] == b"\x7fELF"
    assert int.from_bytes(code[18:20], "little") == MACHINES[architecture]
    if name == "checksum":
        assert ("x86.pclmulqdq(<2 x i64> %" in text) == ("+pclmul" in features.split(","))


def test_programs_at_random_are_assembled(target: tuple[Any, str, str]) -> None:
    machine, _, features = target
    assembled_ones = 0
    for seed in range(12):
        made = program(Random(seed), is_risky=True)
        try:
            text = text_for(made.function, tuple(map(kind_of, made.arguments())), features)
        except LanguageError:
            continue
        assert assembled(text, target=machine)[:4] == b"\x7fELF"
        assembled_ones += 1
    assert assembled_ones > 6


def test_code_for_another_processor_is_noticed() -> None:
    """A word of x86-64 is nothing that aarch64 has: that is what `otherwise` is for."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    of, args = CHECKSUM
    assert not isinstance(of, Native)
    assert "@llvm.x86.pclmulqdq(<2 x i64> %" in text_for(of, tuple(map(kind_of, args)), "+pclmul")
    assert "@llvm.x86.pclmulqdq(<2 x i64> %" not in text_for(of, tuple(map(kind_of, args)), "")
