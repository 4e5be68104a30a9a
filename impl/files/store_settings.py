"""The settings that belong to a store and not to a run of it: kept in `config/gapless.json`, which no broker reads.

A program that opens a store need not know them, and one that contradicts them is refused: a synchronous store that is
opened as another one would break promises in silence, and other delays would give old messages new times. How much a
store keeps, and whether it lets go of the rest by itself, is the store's, too: whichever of several programs opens it,
it does not fill the disk because one of them has not heard of that, and loses nothing because one of them is mistaken.
A new store lets nothing go by itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from gapless.impl.environment.operating_system import Disk
from gapless.impl.files.segments import asked
from gapless.impl.records.errors import Damaged, Refused
from gapless.impl.records.record import DELAYS

KEPT = "config/gapless.json"


@dataclass(frozen=True, slots=True)
class KeptSettings:
    """The kept settings, explained in `Settings`. The sizes count as long as no file has its own."""

    file_size: int
    queue_file_size: int
    synchronous: bool = False
    delays: tuple[int, ...] = DELAYS
    reserved_hours: int = 72
    reserved_bytes: int = 0
    expire_interval: int = 0
    checksums: bool = True


NAMES = tuple(field.name for field in fields(KeptSettings))
_FLAGS = ("synchronous", "checksums")


def read_kept(disk: Disk) -> dict[str, Any]:
    """The kept settings by name; none in a store that is new or a broker's. Raises Damaged, StoreError."""
    content = asked(lambda: disk.read(KEPT), KEPT)
    if content is None:
        return {}
    try:
        kept = {name: value for name, value in json.loads(content).items() if name in NAMES}
    except (ValueError, AttributeError, RecursionError) as error:
        raise Damaged(f"{KEPT}: expected settings as JSON ({error}); restore the file, or remove it") from error
    for name, value in kept.items():
        if not _is_sound(name, value):
            raise Damaged(f"{KEPT}: {name} is {value!r}, which is none; restore the file, or remove it")
    return kept | ({"delays": tuple(kept["delays"])} if "delays" in kept else {})


def _is_sound(name: str, value: object) -> bool:
    if name == "delays":
        return isinstance(value, list) and bool(value) and all(type(delay) is int for delay in value)
    return type(value) is bool if name in _FLAGS else isinstance(value, int) and value >= int(name.endswith("size"))


def agreed(kept: Mapping[str, Any], given: Mapping[str, Any], usual: Mapping[str, Any]) -> KeptSettings:
    """The effective settings: given, else kept, else usual. Raises Refused if given and kept differ.

    `given`: None where the caller says nothing.
    """
    stated = {name: tuple(value) if name == "delays" else value for name, value in given.items() if value is not None}
    for name, value in stated.items():
        if kept.get(name, value) != value:
            raise Refused(
                f"settings: {name}={value!r}, and the store was made with {kept[name]!r} ({KEPT}); leave it out, or "
                "say change=True to have it so from now on"
            )
    return KeptSettings(**{**usual, **kept, **stated})


def write_kept(disk: Disk, settings: KeptSettings) -> None:
    """These are kept now; what else the file says stays. Raises StoreError."""
    try:
        before = json.loads(asked(lambda: disk.read(KEPT), KEPT) or b"{}")
    except (ValueError, RecursionError):
        before = {}
    after = {**before, **json.loads(json.dumps(asdict(settings)))}
    if after != before:
        text = json.dumps(after, indent="\t")
        asked(lambda: disk.write(KEPT, text.encode()), KEPT)
