"""The DLedger log of a store, and its committed index (docs/rocketmq.md#dledger)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gapless.traces.problems import Unreadable
from gapless.traces.sources.rocketmq.store.files import A_NUMBER, TWENTY_DIGITS


@dataclass(frozen=True)
class Dledger:
    """A DLedger log: `data/` has its entries, `index/` a unit for each of them."""

    data: Path
    index: Path
    last: int | None  # the index of the last entry, as its checkpoint says; None where it does not
    last_committed: int | None  # likewise, of the last entry that was known to be committed

    @property
    def name(self) -> str:
        """Its folder in the store."""
        return self.data.parent.name

    @property
    def index_name(self) -> str:
        """Its index, as a trace: the folder in the store."""
        return f"{self.name}/{self.index.name}"

    @property
    def settled(self) -> bool:
        """True if all entries were known to be committed at the stop: then all of them are in queues."""
        return self.last is not None and self.last == self.last_committed

    @property
    def committed(self) -> str:
        """The committed index, in words."""
        if self.last is None or self.last_committed is None:
            return "its checkpoint does not say how far it was"
        return f"its checkpoint has entry {self.last:,} as the last one, and {self.last_committed:,} as committed"


def has_dledger(store: Path) -> bool:
    """True if a store has a DLedger log, or the folders of an empty one."""
    return bool(_folders(store) or empty_dledger(store))


def empty_dledger(store: Path) -> str:
    """Returns the folder of a DLedger log whose `data/` has no bytes; an empty text without one."""
    there = [folder for folder in sorted(store.glob("dledger-*")) if folder.is_dir()]
    return there[0].name if there and not _folders(store) else ""


def dledger_of(store: Path, settings: Mapping[str, str]) -> Dledger | None:
    """Returns the DLedger log in a store. Raises Unreadable if there are several, and no setting selects one."""
    folders = _folders(store)
    named = [folder for folder in folders if folder.name == f"dledger-{settings.get('dLegerSelfId', '')}"]
    if not folders:
        return None
    if len(folders) > 1 and not named:
        raise Unreadable(
            f"{store}: DLedger logs of {len(folders)} brokers lie in it ({', '.join(f.name for f in folders)}); a "
            "broker.conf whose dLegerSelfId names one of them says which is to be read (--config)"
        )
    folder = (named or folders)[0]
    known = _properties(folder / "checkpoint")
    return Dledger(folder / "data", folder / "index", known.get("endIndex"), known.get("committedIndex"))


def _folders(store: Path) -> list[Path]:
    """The folders of DLedger logs that have a file with something in it."""
    return [
        data.parent
        for data in sorted(store.glob("dledger-*/data"))
        if data.is_dir() and any(TWENTY_DIGITS.fullmatch(file.name) and file.stat().st_size for file in data.iterdir())
    ]


def _properties(file: Path) -> dict[str, int]:
    """The numbers in a properties file; none where it is missing."""
    if not file.is_file():
        return {}
    pairs = (line.partition("=") for line in file.read_text(errors="replace").splitlines())
    return {name.strip(): int(value) for name, _, value in pairs if A_NUMBER.fullmatch(value.strip())}
