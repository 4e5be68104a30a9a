"""The files of a store: which there are, found once, and their bytes."""

from __future__ import annotations

import errno
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapless.traces.problems import Gone, NothingThere, Unreadable, pasted, shown
from gapless.traces.sources.foreign import ARCHIVES
from gapless.traces.sources.rocketmq.columns.bytes import REMEMBERED, Bytes, Ints
from gapless.traces.sources.rocketmq.log.records import BLANK
from gapless.traces.sources.rocketmq.store.settings import number_set

PAGE = 4096  # bytes that a file without a map is written in
ENTRY = 20  # bytes of a consume-queue entry
SLOT = np.dtype([("position", ">i8"), ("size", ">i4"), ("tag", ">i8")])  # of a consume queue: ENTRY bytes
FARTHEST = 2**62  # positions from here on are no broker's
TWENTY_DIGITS = re.compile(r"\d{20}")
A_NUMBER = re.compile(r"[0-9]{1,18}")  # the longest number that a broker writes within 64 bits
NAME_MAX = 255  # bytes of a folder's name
SEPARATORS = re.compile(r"[,:]")  # between the paths of a log in several folders; the broker is set to one of them


@dataclass(frozen=True)
class LogFile:
    """One file of the commit log, or of a queue: its bytes are those of the whole from `base` on."""

    path: str
    base: int
    length: int
    at: int = 0  # where in the file it begins: entries out of a database lie in one file together
    wrapped: int = 0  # bytes of the header before each record: those of a DLedger log's entries

    def holds(self, positions: Ints, sizes: Ints) -> npt.NDArray[np.bool_]:
        """Returns the mask of stretches that lie in the file; a sum of claimed numbers may exceed 64 bits."""
        within = (positions >= self.base) & (positions <= self.base + self.length)
        found: npt.NDArray[np.bool_] = within & (sizes > 0) & (sizes <= self.base + self.length - positions)
        return found


class QueueFile(NamedTuple):
    """One file of a consume queue, in its queue's folder: its bytes are the queue's from `base` on.

    `at`: as in `LogFile`.
    """

    base: int
    length: int
    at: int = 0


Queue = tuple[str, int]
"""Topic and queue id."""
QueueFiles = Mapping[Queue, tuple[QueueFile, ...]]
"""The files of every consume queue that has a folder, by base."""


def read_exactly(file: LogFile, low: int, into: memoryview) -> None:
    """Fills `into` with the file's bytes from `low` on. Raises Unreadable if it became shorter, or is gone."""
    try:
        handle = os.open(file.path, os.O_RDONLY)
    except FileNotFoundError as error:
        raise Gone(
            f"{shown(file.path)}: was there when the check began, and is gone; check again, or a copy"
        ) from error
    except OSError as error:
        raise Unreadable(f"{shown(file.path)}: cannot be opened ({error.strerror})") from error
    try:
        done = 0
        while done < len(into):
            got = os.preadv(handle, [into[done:]], file.at + low + done)
            if got == 0:
                raise Unreadable(
                    f"{shown(file.path)}: ends at {low + done}, but was {file.length} bytes long when the check began; "
                    "something is changing it: stop the writer, or check a copy"
                )
            done += got
    except OSError as error:
        raise Unreadable(f"{shown(file.path)}: cannot be read at {low} ({error.strerror})") from error
    finally:
        os.close(handle)


def mapped(file: LogFile) -> Bytes:
    """Maps all bytes of a log file; none of an empty file. Raises OSError."""
    if Path(file.path).stat().st_size:
        return np.memmap(file.path, np.uint8, "r")
    nothing = np.zeros(0, np.uint8)
    nothing.flags.writeable = False  # like mapped files: kernels are compiled separately for writable arrays
    return nothing


class Maps:
    """A cache of the files that were mapped last."""

    MOST = 4

    def __init__(self) -> None:
        self.kept: dict[str, Bytes] = {}

    def of(self, file: LogFile) -> Bytes:
        """All bytes of a file, as long as it is now. Raises OSError."""
        known = self.kept.pop(file.path, None)
        if known is None or len(known) != Path(file.path).stat().st_size:
            known = mapped(file)
        self.kept[file.path] = known
        if len(self.kept) > self.MOST:
            del self.kept[next(iter(self.kept))]
        return known


def is_hole(file: LogFile, low: int, high: int) -> bool:
    """True if the file system knows `low:high` to be a hole in a file created at full length."""
    with Path(file.path).open("rb") as handle:
        try:
            return os.lseek(handle.fileno(), low, os.SEEK_DATA) >= high
        except OSError as error:
            return error.errno == errno.ENXIO  # no data up to the end; where a file system cannot say, reading tells


# -- the log ---------------------------------------------------------------------------------------------------------


def log_folders(
    root: Path, settings: Mapping[str, str], notes: list[str], *, before_dledger: bool = False
) -> list[Path]:
    """Returns the folders with files of the log: `commitlog/`, or by the settings. Raises Unreadable.

    `before_dledger`: the log lies in a DLedger log, and in these folders only what was written before; or nothing.

    Settings may tell of another machine, or of a broker that this store was copied from. So a `commitlog/` with files
    in it is the store's own, unless it is one of several.
    """
    own = root / "commitlog"
    settings_of_it = (settings.get(name, "") for name in ("storePathCommitLog", "readOnlyCommitLogStorePaths"))
    named = list(dict.fromkeys(path for setting in settings_of_it for path in _paths(setting, root)))
    filled = _holds_log_files(own)
    if not named or (filled and named == [own]):
        return [own]
    missing = [path for path in named if not path.is_dir()]
    if any(_same(path, own) for path in named) or not filled:
        if missing and (before_dledger or (filled and len(named) == 1)):
            return [path for path in named if path.is_dir()] or [own]
        if missing:
            raise Unreadable(
                f"{missing[0]}: no such directory, and broker.conf says that files of the log lie there; give a "
                "broker.conf whose storePathCommitLog names where they are (--config), or put them into commitlog/"
            )
        notes.append(f"the log lies where broker.conf says, in {', '.join(map(str, named))}")
        return named
    if len(named) > 1:
        raise Unreadable(
            f"broker.conf names {len(named)} paths of the log ({', '.join(map(str, named))}), and {own} is none of "
            "them: it can have a part only. Name the paths as they are here (--config), or take storePathCommitLog "
            "out of it if all files were put into commitlog/"
        )
    if not missing:
        notes.append(f"commitlog/ in the store is read, not {named[0]}, where broker.conf says that the log lies")
    return [own]


def _paths(setting: str, root: Path) -> list[Path]:
    """The paths in a setting: one, or several joined by commas or colons."""
    text = setting.strip()
    if not text or (root / text).is_dir():
        return [root / text] if text else []
    return [root / part.strip() for part in SEPARATORS.split(text) if part.strip()]


def _same(one: Path, other: Path) -> bool:
    return one.is_dir() and other.is_dir() and one.samefile(other)


def _holds_log_files(folder: Path) -> bool:
    return folder.is_dir() and any(TWENTY_DIGITS.fullmatch(path.name) for path in folder.iterdir())


def log_files(
    folders: Sequence[Path], settings: Mapping[str, str], notes: list[str], wrapped: Mapping[Path, int]
) -> tuple[LogFile, ...]:
    """The commit log's files by position. Raises Unreadable on a length that no broker gives, NothingThere.

    `wrapped`: bytes of the header before each record, in folders where there is one.
    """
    found = []
    for path in sorted(path for folder in folders if folder.is_dir() for path in folder.iterdir()):
        if TWENTY_DIGITS.fullmatch(path.name) and int(path.name) >= FARTHEST:
            raise Unreadable(f"{path}: no log reaches that position; remove the file, or check a copy without it")
        if TWENTY_DIGITS.fullmatch(path.name) and path.is_file():
            length = path.stat().st_size
            found.append(LogFile(str(path), int(path.name), length, wrapped=wrapped.get(path.parent, 0)))
        else:
            _refuse_a_broken_link(path)
            notes.append(f"{path.parent.name}/{path.name} is not a log file and was left out")
    found.sort(key=lambda file: file.base)
    for one, other in pairwise(found):
        if one.base == other.base:
            raise Unreadable(f"{other.path}: the same file lies in {one.path}; a log has it once")
    if found and found[-1].length == 0:
        notes.append(f"the last log file, {found[-1].base:020d}, is empty: the broker deletes it at its next start")
        found.pop()
    _refuse_packed_files(folders, found)
    if not found:
        raise NothingThere(f"{', '.join(map(str, folders))}: no log file in it (a name of 20 digits each)")
    expected = _log_file_size(found)
    notes.extend(_other_size(expected, settings))
    for file in found:
        if file.length != expected:
            raise Unreadable(
                f"{file.path}: {file.length} bytes long, expected {expected}, as other files say; "
                f"a broker would refuse to start. {_remedy(file.length, expected)}"
            )
    return tuple(found)


def _remedy(length: int, expected: int) -> str:
    """Says how a log file of another length is mended."""
    if length == -(-expected // PAGE) * PAGE:
        return (
            f"A broker with writeWithoutMmap makes a full file so long, to whole pages: cut it off "
            f"(truncate -s {expected}), for the rest is no part of the log (docs/rocketmq.md#no-maps)"
        )
    return "Copy the file again, or check without it"


def _refuse_packed_files(folders: Sequence[Path], found: Sequence[LogFile]) -> None:
    """Raises Unreadable for a compressed file that is missing in the log; older ones are those that expired."""
    there = {file.base for file in found}
    for path in sorted(path for folder in folders if folder.is_dir() for path in folder.iterdir()):
        name, dot, ending = path.name.partition(".")
        unpacking = ARCHIVES.get(f"{dot}{ending}")
        if (
            unpacking
            and TWENTY_DIGITS.fullmatch(name)
            and not there & {int(name)}
            and int(name) > min(there, default=-1)
        ):
            raise Unreadable(
                f"{path}: a compressed file of the log, which has no other copy of it: unpack it first: "
                f"{unpacking.format(pasted(path))}"
            )


def _refuse_a_broken_link(path: Path) -> None:
    """Raises Unreadable for a link in place of a file of the log that leads nowhere: all depends on the log."""
    if TWENTY_DIGITS.fullmatch(path.name) and path.is_symlink() and not path.exists():
        raise Unreadable(
            f"{path}: a link to {path.readlink()}, which is not there, and all depends on the log; mount what it "
            "names, or copy the file"
        )


def _other_size(length: int, settings: Mapping[str, str]) -> Iterator[str]:
    """Yields a note if settings give log files another length: they are of another broker, or were changed since."""
    wanted = number_set(settings, "mappedFileSizeCommitLog")
    if wanted not in (0, length):
        yield f"settings say mappedFileSizeCommitLog={wanted}, and the log's files have {length} bytes"


def _log_file_size(files: list[LogFile]) -> int:
    """Returns the common length of log files: the most frequent one, or by their names."""
    lengths = Counter(file.length for file in files)
    (common, count), *others = lengths.most_common()
    if others and others[0][1] == count:  # a tie: the names know how far apart files begin
        return min(b.base - a.base for a, b in pairwise(files))
    if common <= BLANK:
        raise Unreadable(f"{files[0].path}: {common} bytes long, too short for any record")
    return common


# -- consume queues --------------------------------------------------------------------------------------------------


def can_be_a_folder(topic: str) -> bool:
    """True if a folder can have the name of this topic; no broker has queues of another topic."""
    return topic not in ("", ".", "..") and not {"/", "\0"} & set(topic) and len(os.fsencode(topic)) <= NAME_MAX


def queue_files(root: Path, broken: list[str] | None = None, strays: list[str] | None = None) -> QueueFiles:
    """The files of every queue that has a folder under `root`, found in one pass: {(topic, queue): files by base}.

    `broken` gets the paths of links that lead nowhere; without it, one in place of a file raises FileNotFoundError.
    `strays` gets the paths of files and folders that are not called by a number.
    """
    found: dict[Queue, tuple[QueueFile, ...]] = {}
    same: dict[tuple[QueueFile, ...], tuple[QueueFile, ...]] = {}  # most queues have files alike: they are kept once
    for topic, queue, path in _queue_folders(root, broken):
        there = files_in(path, broken, strays)
        found[topic, queue] = same.setdefault(there, there)
    return found


def files_in(folder: str, broken: list[str] | None = None, strays: list[str] | None = None) -> tuple[QueueFile, ...]:
    """The files of one queue, by base. `broken`, `strays`: as of `queue_files`."""
    found = []
    with os.scandir(folder) as files:
        for file in files:
            base = _base_of(file.name)
            if base >= 0 and not (broken is not None and _leads_nowhere(file, broken)):
                found.append(QueueFile(base, file.stat().st_size))
            elif base < 0 and strays is not None:
                strays.append(file.path)
    return tuple(sorted(found) if len(found) > 1 else found)


@lru_cache(maxsize=REMEMBERED)  # most queues have files of the same names, and most topics queues
def _base_of(name: str) -> int:
    """The begin of the file of this name in its queue; -1 for any other name."""
    return int(name) if TWENTY_DIGITS.fullmatch(name) and int(name) < FARTHEST else -1


@lru_cache(maxsize=REMEMBERED)
def _queue_of(name: str) -> int:
    """Returns the queue whose folder has this name; -1 for any other name."""
    return int(name) if name.isdecimal() and str(int(name)) == name else -1


def links_to_nowhere(folder: Path | str, deep: int, besides: str = "", name: str = "") -> Iterator[tuple[str, str]]:
    """Yields the links without a target in a folder, and so deep below it: the path of each, and what it names.

    `besides`: the path of a folder that is passed over · `name`: begins the paths.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            path = f"{name}{entry.name}"
            if path == besides and entry.is_dir():
                continue
            if leads_nowhere(entry):
                yield path, os.readlink(entry.path)  # noqa: PTH115 - of very many
            elif deep and entry.is_dir():
                yield from links_to_nowhere(entry.path, deep - 1, besides, f"{path}/")


def leads_nowhere(entry: os.DirEntry[str]) -> bool:
    """True if it is a link without a target."""
    return entry.is_symlink() and not os.path.exists(entry.path)  # noqa: PTH110 - of very many


def _leads_nowhere(entry: os.DirEntry[str], broken: list[str]) -> bool:
    """Checks the same, and records the link."""
    nowhere = leads_nowhere(entry)
    if nowhere:
        broken.append(entry.path)
    return nowhere


def _queue_folders(root: Path, broken: list[str] | None) -> Iterator[tuple[str, int, str]]:
    if not root.is_dir():
        return
    broken_links = [] if broken is None else broken
    with os.scandir(root) as topics:
        for topic in topics:
            if not _leads_nowhere(topic, broken_links) and topic.is_dir():
                with os.scandir(topic) as queues:
                    for queue in queues:
                        number = _queue_of(queue.name)
                        if number >= 0 and not _leads_nowhere(queue, broken_links) and queue.is_dir():
                            yield topic.name, number, queue.path


def queue_file_size(queues: QueueFiles, wanted: int, entry: int = ENTRY) -> int:
    """The length that files of queues are born with, as at least two say, or one and the setting; 0 if unknown.

    A setting alone says nothing about the files: it may have been changed since, and counts at the next start.
    """
    wanted = -(-wanted // entry) * entry
    lengths = Counter(file.length for files in queues.values() for file in files)
    agree = {length: count for length, count in lengths.items() if length and length % entry == 0}
    if wanted in agree:
        agree[wanted] += 1
    length, count = max(agree.items(), key=lambda one: one[::-1], default=(0, 0))
    return length if count > 1 else 0


def born_with(files: Sequence[QueueFile], others: int) -> int:
    """The length that the files of one queue are born with: by their own names, or that of `others`."""
    if len(files) > 1:
        apart = min(two.base - one.base for one, two in pairwise(files))
        if any(file.length == apart for file in files):
            return apart
    return others
