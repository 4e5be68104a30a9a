"""Damage to a store: one file that a start reads, or one setting, is not what it was."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.interop.starts.cells import Cell

SETTINGS = "broker.conf"
FOREIGN = b"this is not what belongs here\n"
BROKEN = 100  # bytes of a backup, all NUL


def damage(store: Path, cell: Cell) -> None:
    """Damage the store as the cell says; a setting is left to `settings`."""
    if cell.file == SETTINGS:
        return
    file = find(store, cell.file)
    _set_backup(file, cell.backup)
    kind, _, name = cell.damage.partition(" ")
    DAMAGES[kind](file, name)


def settings(cell: Cell) -> dict[str, str | int]:
    """The settings that the cell changes."""
    if cell.file != SETTINGS:
        return {}
    name, _, value = cell.damage.partition("=")
    return {name: value}


def find(store: Path, name: str) -> Path:
    """The file that the name stands for."""
    found = store
    for part in name.split("/"):
        if part in PICKED:
            files = sorted(path for path in found.iterdir() if path.is_file())
            found = PICKED[part](files)
        elif "*" in part:
            found = min(found.glob(part))
        else:
            found /= part
    return found


PICKED: dict[str, Callable[[list[Path]], Path]] = {
    "FIRST": lambda files: files[0],
    "MIDDLE": lambda files: files[1],
    "LAST": lambda files: files[-1],
}


def _set_backup(file: Path, state: str) -> None:
    backup = file.with_name(f"{file.name}.bak")
    if state == "absent":
        backup.unlink(missing_ok=True)
    elif state == "broken":
        backup.write_bytes(bytes(BROKEN))
    elif state == "sound" and file.exists():
        shutil.copyfile(file, backup)


def _missing(file: Path, _: str) -> None:
    if file.is_dir():
        shutil.rmtree(file)
    else:
        file.unlink(missing_ok=True)


def _empty(file: Path, _: str) -> None:
    if file.is_dir():
        shutil.rmtree(file)
        file.mkdir()
    else:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")


def _nul(file: Path, _: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    size = file.stat().st_size if file.exists() else BROKEN
    with file.open("wb") as opened:
        opened.truncate(size)


def _truncated(file: Path, _: str) -> None:
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size // 2)


def _extended(file: Path, _: str) -> None:
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size + 100)


def _foreign(file: Path, _: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    size = file.stat().st_size if file.exists() else BROKEN
    file.write_bytes((FOREIGN * (size // len(FOREIGN) + 1))[:size])


def _folder(file: Path, _: str) -> None:
    _missing(file, "")
    file.mkdir()


def _stray(folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes((FOREIGN * 4)[:100])


def _stray_empty(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"")


def _stray_folder(folder: Path, name: str) -> None:
    (folder / name).mkdir(parents=True)


def _ahead(folder: Path, _: str) -> None:
    """One more file behind the last, of its size, all zeros."""
    last = max(path for path in folder.iterdir() if path.is_file())
    size = last.stat().st_size
    with (folder / f"{int(last.name) + size:020}").open("wb") as opened:
        opened.truncate(size)


def _ahead_empty(folder: Path, _: str) -> None:
    last = max(path for path in folder.iterdir() if path.is_file())
    (folder / f"{int(last.name) + last.stat().st_size:020}").write_bytes(b"")


def _renamed(file: Path, name: str) -> None:
    file.rename(file.with_name(name))


def _content(file: Path, text: str) -> None:
    """This text."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


DAMAGES: dict[str, Callable[[Path, str], None]] = {
    "missing": _missing,
    "empty": _empty,
    "nul": _nul,
    "truncated": _truncated,
    "extended": _extended,
    "foreign": _foreign,
    "folder": _folder,
    "stray": _stray,
    "stray-empty": _stray_empty,
    "stray-folder": _stray_folder,
    "zeros-ahead": _ahead,
    "empty-ahead": _ahead_empty,
    "renamed": _renamed,
    "content": _content,
}
