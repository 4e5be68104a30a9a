"""Damage of any kind, to any file of a store: what no broker would do."""

import random
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


MUTATIONS = (flip, flip, overwrite, truncate, shorten, extend, reach, delete, duplicate, splice)
