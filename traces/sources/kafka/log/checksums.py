"""CRC-32C, the checksum of batches and of producers' snapshots: by the processor's instruction, or by tables.

Its polynomial is Castagnoli's, 0x1EDC6F41 (https://www.rfc-editor.org/rfc/rfc3720#appendix-B.4). x86-64 has an
instruction for it since SSE4.2, which takes eight bytes at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.native import BYTES, by_library, function, native, uint32, uint64, word
from gapless.native.kinds import BOOL, U64
from gapless.native.swar import eight

Bytes = npt.NDArray[np.uint8]

POLYNOMIAL = 0x82F63B78  # the lowest bit is that of the highest power
FEATURE = "+sse4.2"
ALL = 0xFFFF_FFFF


def _table() -> npt.NDArray[np.uint64]:
    """Eight tables of 256 numbers: of a byte at the end, of a byte with one zero behind it, and so on."""
    alone = np.arange(256, dtype=np.uint64)
    for _ in range(8):
        alone = (alone >> np.uint64(1)) ^ np.where(alone & np.uint64(1), np.uint64(POLYNOMIAL), np.uint64(0))
    tables = [alone]
    while len(tables) < 8:
        tables.append((tables[-1] >> np.uint64(8)) ^ alone[tables[-1] & np.uint64(255)])
    return np.concatenate(tables)


TABLES = _table()
FIRST_TABLE: list[int] = TABLES[:256].tolist()
_8, _BYTE = np.uint64(8), np.uint64(255)


@word(llvm="  ret i1 1", kinds=(), answer=BOOL, needs=FEATURE, otherwise="  ret i1 0")
def _has_instruction() -> bool:
    """True if the processor that code is made for has the instruction: known when it is compiled."""
    return True


@word(
    llvm="  %found = call i64 @llvm.x86.sse42.crc32.64.64(i64 %register, i64 %bits)\n  ret i64 %found",
    kinds=(U64, U64), answer=U64, declares=("declare i64 @llvm.x86.sse42.crc32.64.64(i64, i64)",),
    needs=FEATURE, otherwise="  ret i64 0",
)  # fmt: skip
def _behind_eight(register: Any, bits: Any) -> Any:
    """The register behind eight bytes more, of which the first is the lowest."""
    return np.uint64(_by_bytes(int(register), int(bits).to_bytes(8, "little")))


@word(
    llvm="  %short = trunc i64 %register to i32\n  %last = trunc i64 %byte to i8\n"
    "  %found = call i32 @llvm.x86.sse42.crc32.32.8(i32 %short, i8 %last)\n"
    "  %wide = zext i32 %found to i64\n  ret i64 %wide",
    kinds=(U64, U64), answer=U64, declares=("declare i32 @llvm.x86.sse42.crc32.32.8(i32, i8)",),
    needs=FEATURE, otherwise="  ret i64 0",
)  # fmt: skip
def _behind_byte(register: Any, byte: Any) -> Any:
    """The register behind one byte more."""
    return np.uint64(_by_bytes(int(register), bytes([int(byte)])))


def _by_bytes(register: int, data: bytes) -> int:
    for byte in data:
        register = FIRST_TABLE[(register ^ byte) & 255] ^ (register >> 8)
    return register


@function(inline=True)
def _by_tables(bits: Any) -> Any:
    """The register behind eight bytes, to the first four of which the register before them is added."""
    found = uint64(0)
    for at in range(8):
        found ^= TABLES[uint64(256 * (7 - at)) + ((bits >> uint64(8 * at)) & _BYTE)]
    return found


@function
def crc32c(b: Bytes, begin: int, end: int) -> int:
    """The CRC-32C of the bytes from `begin` to `end`."""
    register, p = uint64(ALL), begin
    if _has_instruction():
        while p + 8 <= end:
            register = _behind_eight(register, eight(b, p))
            p += 8
        while p < end:
            register = _behind_byte(register, uint64(b[p]))
            p += 1
    else:
        while p + 8 <= end:
            register = _by_tables(register ^ eight(b, p))
            p += 8
        while p < end:
            register = TABLES[(register ^ uint64(b[p])) & _BYTE] ^ (register >> _8)
            p += 1
    return int(uint32(register) ^ uint32(ALL))


@by_library(crc32c)
def _crc32c(b: Any, begin: int, end: int) -> int:
    return _by_bytes(ALL, bytes(b[begin:end])) ^ ALL


@native(lambda b: len(b) >> 6, kinds=(BYTES,))
def _checksum(b: Bytes) -> int:
    return crc32c(b, 0, len(b))


def checksum(data: bytes) -> int:
    """The CRC-32C of some bytes."""
    return int(_checksum(np.frombuffer(data, np.uint8)))
