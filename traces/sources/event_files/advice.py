"""Advice about files that are no files of events by their names: the kind of file, and the way to make it one."""

from __future__ import annotations

from pathlib import Path

from gapless.traces.events.event import NAME
from gapless.traces.problems import pasted, shown

READS = (
    "events are read from files named .ndjson, .ndjson.gz, .ndjson.zst or .parquet (gapless schema "
    "events describes a line); a store is a directory"
)
NAMED = {
    ".csv": "a CSV file",
    ".tsv": "a table of text",
    ".json": "a JSON file",
    ".json5": "a JSON file",
    ".yaml": "a YAML file",
    ".yml": "a YAML file",
    ".xml": "an XML file",
    ".log": "a log of text",
    ".out": "a log of text",
    ".txt": "a text file",
    ".md": "a text file",
    ".xlsx": "a spreadsheet",
    ".xls": "a spreadsheet",
    ".sqlite": "an SQLite database",
    ".db": "a database",
    ".avro": "an Avro file",
    ".orc": "an ORC file",
    ".arrow": "an Arrow file",
    ".feather": "an Arrow file",
    ".pcap": "a network capture",
    ".pcapng": "a network capture",
    ".proto": "a description of messages",
}
OTHERS = {
    ".py": "a Python file: events are checked by a spec with gapless check EVENTS --spec {}; the spec itself is proved "
    "with gapless prove {}",
    ".story": "a story: pytest runs it (pytest {})",
    ".html": "a page, not a recording: open it in a browser; a check needs the store or the events that it is about",
    ".pdf": "a document, not a recording: a check needs the store or the events that it is about",
    ".sarif": "a report, not a recording: a check needs the store or the events that it is about",
    ".toml": "settings, not a recording: [tool.gapless] in pyproject.toml is read by itself",
}
MAGIC = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"SQLite": ".sqlite", b"Obj\x01": ".avro", b"ORC": ".orc"}
BEGIN = 4096  # bytes that are looked at


def advice(path: Path) -> str:
    """The kind of a file that is no file of events by its name, and the way to make it one."""
    with path.open("rb") as file:
        begin = file.read(BEGIN)
    suffix = next((suffix for magic, suffix in MAGIC.items() if begin.startswith(magic)), path.suffix.lower())
    first = begin.partition(b"\n")[0]
    if b'"schema"' in first and NAME.encode() in first:
        return _rename(path, ".ndjson")
    if suffix == ".parquet":
        return _rename(path, ".parquet")
    if b'"findings_total"' in begin or (b'"verdict"' in begin and b'"sources"' in begin):
        return "a report of gapless, not a recording: name the store or the events that it is about"
    if suffix in OTHERS:
        return OTHERS[suffix].replace("{}", pasted(path))
    kind = NAMED.get(suffix) or _by_content(begin)
    return f"{kind}: {READS}"


def _rename(path: Path, suffix: str) -> str:
    stem = path.name.removesuffix(path.suffix) if len(path.suffix) < len(path.name) else path.name
    return f"events, but its name does not say so: rename it to {shown(stem)}{suffix}"


def _by_content(begin: bytes) -> str:
    if begin.lstrip()[:1] in (b"{", b"["):
        return "a JSON file"
    try:
        begin.decode()
    except UnicodeDecodeError as error:
        if error.start < len(begin) - 4:
            return "a file of unknown bytes"
    return "a text file"
