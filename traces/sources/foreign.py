"""Formats that gapless does not read, known by their names: archives, and the logs of other brokers."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

from gapless.traces.problems import pasted

TARS = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2", ".tar.zst", ".tzst", ".tar.lz4")
ARCHIVES = {
    **dict.fromkeys(TARS, "tar xf {}"),
    ".zip": "unzip {}",
    ".jar": "unzip {}",
    ".7z": "7z x {}",
    ".rar": "unrar x {}",
    ".rpm": "rpm2archive {}",
    ".deb": "dpkg-deb -x {} .",
    ".gz": "gunzip {}",
    ".xz": "unxz {}",
    ".bz2": "bunzip2 {}",
    ".zst": "unzstd {}",
    ".lz4": "unlz4 {}",
    ".Z": "uncompress {}",
}
"""The command that unpacks a file, by the end of its name."""

MAGIC = {
    b"PK\x03\x04": ".zip",
    b"\x1f\x8b": ".gz",
    b"\xfd7zXZ": ".xz",
    b"BZh": ".bz2",
    b"7z\xbc\xaf": ".7z",
    b"Rar!": ".rar",
}
"""The kind of an archive by its first bytes."""

BROKERS = (
    ("a data directory of RabbitMQ", ("msg_stores", "rabbit_serial", "msg_store_persistent", "*.rdq", "*.segment")),
    ("a data directory of NATS JetStream", ("jetstream", "*/streams/*/meta.inf", "meta.inf", "*.blk")),
    ("a data directory of ActiveMQ", ("db.redo", "activemq-data-*.amq", "journal/activemq-data-*.amq")),
    ("a directory of BookKeeper", ("current/lastMark", "current/lastId", "lastMark")),
)
"""Folders of other systems, by names of which one is in them."""

PARTS = (".log", ".index", ".timeindex", ".snapshot", ".rdq", ".blk", ".amq", ".properties")
"""The ends of names of files in such folders."""

READS = (
    "gapless reads RocketMQ stores, Kafka data directories and recordings of Pulsar coordinators; for other brokers, "
    "record events: "
    "docs/own-system.md"
)


def archive(path: Path) -> str:
    """Advice to unpack a file, with the commands; empty where it is no archive."""
    suffix = _suffix(path)
    if not suffix:
        return ""
    unpacking = ARCHIVES[suffix].format(pasted(path))
    folder = _first_folder(path, suffix) or path.name[: -len(suffix)] or "FOLDER"
    if path.name.endswith(suffix) and suffix not in (*TARS, ".zip", ".jar", ".7z", ".rar", ".rpm", ".deb"):
        return f"a compressed file: unpack it first: {unpacking}"
    return f"an archive: unpack it first: {unpacking} && gapless check {pasted(folder)}"


def _suffix(path: Path) -> str:
    """The end of the name that says which archive a file is; by its first bytes, where its name says nothing."""
    name = path.name.lower()
    if found := next((suffix for suffix in ARCHIVES if name.endswith(suffix.lower())), ""):
        return found
    with path.open("rb") as file:
        begin = file.read(265)
    if begin[257:262] == b"ustar":
        return ".tar"
    return next((suffix for magic, suffix in MAGIC.items() if begin.startswith(magic)), "")


def _first_folder(path: Path, suffix: str) -> str:
    """The folder in which the first file of an archive lies; empty where that cannot be seen at once."""
    try:
        if suffix == ".zip":
            with zipfile.ZipFile(path) as packed:
                return packed.namelist()[0].partition("/")[0]
        if suffix in TARS:
            with tarfile.open(path, "r|*") as stream:
                first = stream.next()
                return first.name.removeprefix("./").partition("/")[0] if first else ""
    except (OSError, tarfile.TarError, zipfile.BadZipFile, IndexError, EOFError):
        pass
    return ""


def foreign(path: Path) -> str:
    """Advice for what another broker wrote; empty where nothing says so."""
    if not (path.is_dir() or path.suffix in PARTS):
        return ""
    folder = path if path.is_dir() else path.parent
    for name, marks in BROKERS:
        if any(next(folder.glob(mark), None) is not None for mark in marks):
            return f"this looks like {name}: {READS}"
    logs, indexes = ({found.stem for found in folder.glob(f"*{end}")} for end in (".log", ".index"))
    deeper = {found.stem for found in folder.glob("*/*.log")} & {found.stem for found in folder.glob("*/*.index")}
    return f"this looks like a Kafka log directory (*.log, *.index): {READS}" if logs & indexes or deeper else ""
