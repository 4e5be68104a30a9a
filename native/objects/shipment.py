"""Object code on its way to other hosts: made once, where the work is asked for, and kept in the cache of each host.

It says for which processor it was made. A host with another one leaves it, and compiles as if nothing had come.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from gapless.native.objects.cache import cache_folder, content_of, files, used, write_whole
from gapless.native.objects.object_code import of_this_machine

MOST = 32 << 20  # bytes that travel: a check uses a hundredth of that


class Shipment(NamedTuple):
    """Whole files of the cache, by name, and the machine that they were made for."""

    machine: tuple[str, str, str]
    files: dict[str, bytes]


def packed() -> Shipment | None:
    """Pack all that this process has compiled or loaded, up to `MOST` bytes; None if that is nothing."""
    found: dict[str, bytes] = {}
    room = MOST
    for name in used():
        with suppress(OSError):  # the cache was emptied
            content = (cache_folder() / name).read_bytes()
            room -= len(content)
            if room >= 0 and content_of(content) is not None:
                found[name] = content
    return Shipment(of_this_machine(), found) if found else None


def unpack(shipment: Shipment) -> int:
    """Keep what has come and is not here yet, and return the number of files: none for another processor."""
    if shipment.machine != of_this_machine():
        return 0
    known, count = files(), 0
    for name, content in shipment.files.items():
        if name not in known and "/" not in name and content_of(content) is not None:
            with suppress(OSError):
                write_whole(cache_folder() / name, content)
                count += 1
    files.cache_clear()
    return count
