"""Damage of any kind, to any file of a store: what no broker would do."""

import random
import re
import shutil
import struct
from pathlib import Path

from tests.support.rocketmq.stores import BLANK


def mutate(store: Path, choose: random.Random) -> str:
    """Do something to a file that no broker would do, and say what."""
    files = sorted(path for path in store.rglob("*") if path.is_file())
    if not files:
        return "nothing is left"
    file = choose.choice(files)
    mutation = choose.choice(MUTATIONS)
    mutation(file, choose)
    return f"{mutation.__name__} {file.relative_to(store)}"


def flip(file: Path, choose: random.Random) -> None:
    """Flip some bits."""
    data = bytearray(file.read_bytes())
    for _ in range(choose.choice((1, 1, 8))):
        if data:
            data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
    file.write_bytes(data)


def overwrite(file: Path, choose: random.Random) -> None:
    """Put a number that matters to the format somewhere, on a border of four bytes or not."""
    data = bytearray(file.read_bytes())
    number = choose.choice((0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xDAA320A7, 0xDAA320AB, BLANK))
    at = choose.randrange(len(data) + 1)
    data[at : at + 4] = struct.pack(">I", number)
    file.write_bytes(data)


def truncate(file: Path, choose: random.Random) -> None:
    """Cut the file off."""
    file.write_bytes(file.read_bytes()[: choose.randrange(file.stat().st_size + 1)])


def extend(file: Path, choose: random.Random) -> None:
    """Add bytes at the end."""
    file.write_bytes(file.read_bytes() + choose.randbytes(choose.randrange(1, 100)))


def shorten(file: Path, choose: random.Random) -> None:
    """Cut the file off where what is written ends, or some bytes before: what reads on reads beyond it."""
    data = file.read_bytes()
    file.write_bytes(data[: max(0, len(data.rstrip(b"\0")) - choose.choice((0, 0, 1, 3, 8, choose.randrange(120))))])


def reach(file: Path, choose: random.Random) -> None:
    """Put a size somewhere that ends with the file, or a little beyond it."""
    data = bytearray(file.read_bytes())
    at = choose.randrange(max(len(data.rstrip(b"\0")), 1))
    width = choose.choice((2, 4, 8))
    size = max(len(data) - at + choose.choice((0, 1, 2, -1, choose.randrange(-200, 200))), 0)
    data[at : at + width] = (size & ((1 << 8 * width) - 1)).to_bytes(width, "big")
    file.write_bytes(data)


def delete(file: Path, choose: random.Random) -> None:
    """Delete the file, at times with all that lies next to it."""
    if choose.random() < 0.2:
        shutil.rmtree(file.parent)
    else:
        file.unlink()


def duplicate(file: Path, choose: random.Random) -> None:
    """Lay a copy of the file where the next one might be."""
    if file.name.isdigit():
        base = int(file.name) + choose.choice((file.stat().st_size, 1, 20))
        shutil.copy(file, file.with_name(f"{base:020}"))


def splice(file: Path, choose: random.Random) -> None:
    """Move a stretch of bytes to another place."""
    data = bytearray(file.read_bytes())
    begin, to = (choose.randrange(len(data) + 1) for _ in "ab")
    stretch = data[begin : begin + choose.randrange(300)]
    data[to : to + len(stretch)] = stretch
    file.write_bytes(data)


def insert(file: Path, choose: random.Random) -> None:
    """Put bytes between others, so that all behind them lie elsewhere."""
    data = bytearray(file.read_bytes())
    at = choose.randrange(len(data) + 1)
    data[at:at] = choose.randbytes(choose.choice((1, 2, 4, choose.randrange(1, 60))))
    file.write_bytes(data)


def cut_out(file: Path, choose: random.Random) -> None:
    """Take bytes out from between others."""
    data = bytearray(file.read_bytes())
    at = choose.randrange(len(data) + 1)
    del data[at : at + choose.choice((1, 2, 4, choose.randrange(1, 300)))]
    file.write_bytes(data)


def swap(file: Path, choose: random.Random) -> None:
    """Exchange two stretches of one length."""
    data = bytearray(file.read_bytes())
    length = choose.choice((8, 20, 512, 4096))
    one, other = sorted(choose.randrange(max(len(data) - 2 * length, 0) + 1) for _ in "ab")
    other += length
    data[one : one + length], data[other : other + length] = data[other : other + length], data[one : one + length]
    file.write_bytes(data)


def largest(file: Path, choose: random.Random) -> None:
    """Make a number as small or as large as it can be, in either order of its bytes, or in decimal digits."""
    data = bytearray(file.read_bytes())
    digits = [found.span() for found in re.finditer(rb"-?\d+", bytes(data))] if is_text(data) else []
    if digits:
        begin, end = choose.choice(digits)
        data[begin:end] = choose.choice(EXTREMES)
    else:
        width = choose.choice((1, 2, 4, 8))
        number = choose.choice((0, 1, -1, -(1 << 8 * width - 1), (1 << 8 * width - 1) - 1))
        fixed = number.to_bytes(width, choose.choice(("big", "little")), signed=True)
        text = choose.choice((fixed, choose.choice(VARINTS)))
        at = choose.randrange(len(data) + 1)
        data[at : at + len(text)] = text
    file.write_bytes(data)


def is_text(data: bytes | bytearray) -> bool:
    """True if a file is lines or JSON."""
    return b"\0" not in data and data.isascii()


def graft(file: Path, choose: random.Random) -> None:
    """Put a stretch of another file in its place, at the same offset or at any."""
    others = [path for path in sorted(file.parent.iterdir()) if path.is_file()]
    data, other = bytearray(file.read_bytes()), choose.choice(others).read_bytes()
    begin, length = choose.randrange(len(other) + 1), choose.choice((8, 200, 4096))
    to = begin if choose.random() < 0.5 else choose.randrange(len(data) + 1)
    data[to : to + length] = other[begin : begin + length]
    file.write_bytes(data)


VARINTS = tuple(bytes.fromhex(text) for text in ("feffffff0f", "ffffffff0f", "feffffffffffffffff01", "8080808008"))
"""The largest and the smallest numbers as Parquet and Protobuf write them: seven bits a byte, signs folded in."""
EXTREMES = (
    b"0", b"-1", b"2147483647", b"-2147483648", b"9223372036854775807", b"-9223372036854775808",
    b"18446744073709551616", b"1e400", b"1.5", b"9" * 5000,
)  # fmt: skip
OF_BYTES = (flip, flip, overwrite, truncate, shorten, extend, reach, splice, insert, cut_out, swap, largest, graft)
"""Functions that damage one file, and leave it where it is."""
MUTATIONS = (*OF_BYTES, delete, duplicate)
