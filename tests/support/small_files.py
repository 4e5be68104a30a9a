"""Folders of small files of events, of every kind, some of which are damaged."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

from gapless.traces.events import schema
from gapless.traces.events.event import Origin
from gapless.traces.sources.event_files.small_files import SMALL
from tests.support.event_files import LOG, ODD, QUEUE, UnplacedEvent, mixed_traces, step

SUFFIXES = (".ndjson", ".ndjson", ".ndjson", ".ndjson.gz", ".ndjson.zst", ".parquet")
ORIGINS = (
    None,
    None,
    Origin("rocketmq-store", "rocketmq"),
    Origin(undecided="a half\nanother half"),
    Origin("", "strange"),
)
INFERRED: list[UnplacedEvent] = [*QUEUE[:2], step("index", 0, 0, 340, 0, outcome="inferred")]
KINDS = range(len(ODD))
FALLING: list[UnplacedEvent] = [partial(lambda event, at: event(9 - at), event) for event in QUEUE]


def damaged(text: bytes, how: str) -> bytes:
    """The bytes of a file of lines, broken in one way."""
    header, newline, lines = text.partition(b"\n")
    found: dict[str, bytes] = {
        "cut off": text[:-1],
        "no header": lines,
        "only a header": header + newline,
        "half a header": header,
        "nothing": b"",
        "not JSON": text + b"{\n",
        "no event": text + b'{"source":"a"}\n',
        "an empty line": header + newline + b"\n" + lines,
        "of another spec": text.replace(b'"queue"', b'"qeueu"'),
        "no UTF-8": text.replace(b"T/", b"T\xff/").replace(b"Topic", b"Top\xffic"),
        "too large": text + lines * (1 + SMALL // max(1, len(lines))),
    }
    return found[how]


DAMAGE = (
    *("cut off", "no header", "only a header", "half a header", "nothing", "not JSON", "no event", "an empty line"),
    *("of another spec", "no UTF-8", "too large"),
)


def folder_of(folder: Path, count: int, chance: random.Random, damage: float = 0.2) -> Path:
    """A folder of files of every kind, some of which are damaged."""
    folder.mkdir()
    for number in range(count):
        path = folder / f"{number:03d}{chance.choice(SUFFIXES)}"
        alike, mixed = (
            [chance.choice([0, chance.randrange(len(ODD))])] * chance.randrange(4),
            chance.choices(KINDS, k=3),
        )
        kinds = alike if chance.random() < 0.7 else mixed
        events = mixed_traces(kinds, mingled=chance.choice([1, 3]))
        events = chance.choice([events, [*events, *QUEUE], [*LOG, *events], INFERRED, FALLING])
        written = [tell(at) for at, tell in enumerate(events)]
        schema.write_events(path, written, origin=chance.choice(ORIGINS))
        if path.suffix == ".ndjson" and chance.random() < damage:
            path.write_bytes(damaged(path.read_bytes(), chance.choice(DAMAGE)))
        elif path.suffix != ".ndjson" and chance.random() < damage:
            path.write_bytes(path.read_bytes()[: chance.choice([-1, 20])])
    return folder
