"""Writing of event files, as Parquet or NDJSON, without a check; `schema.write` also checks the events."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from gapless.traces.events import parquet
from gapless.traces.events.compressed import compressed
from gapless.traces.events.event import UNSAID, Origin, Vocabulary
from gapless.traces.events.files import codec_of, is_parquet
from gapless.traces.events.lines import ndjson

_origin: ContextVar[Origin] = ContextVar("origin", default=UNSAID)


@contextmanager
def coming_from(origin: Origin) -> Iterator[None]:
    """Set the origin of event files written within the block: sources need not pass it on."""
    token = _origin.set(origin)
    try:
        yield
    finally:
        _origin.reset(token)


@contextmanager
def undecided(reasons: Iterable[str]) -> Iterator[None]:
    """Add reasons why not everything could be judged to files written within the block."""
    lines = "\n".join(" ".join(reason.split()) for reason in reasons)
    with coming_from(replace(_origin.get(), undecided=lines)):
        yield


def write(
    path: Path, batches: Iterable[pa.RecordBatch], vocabulary: Vocabulary, *, origin: Origin | None = None
) -> int:
    """Write batches of the vocabulary's schema to a form by suffix, and return the number of events.

    `origin`: the metadata of all events; default: as `coming_from` has it. The file appears whole or not at all.
    """
    write_form = parquet.write if is_parquet(path) else ndjson.write
    with _whole(path) as file, compressed(file, codec_of(path)) as out:
        return write_form(out, batches, vocabulary, _origin.get() if origin is None else origin)


@contextmanager
def _whole(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that takes its name when it is completely written."""
    path = path.resolve()
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    replaced = path.is_file() or not path.exists()  # a device or a pipe is written to, never replaced
    try:
        with (unfinished if replaced else path).open("wb") as file:
            yield file
        if replaced:
            unfinished.replace(path)
    except OSError as error:
        if error.filename in {
            None,
            str(unfinished),
        }:  # a full disk names no file, and the temporary name means nothing to a user
            error.filename = str(path)
        raise
    finally:
        if replaced:
            unfinished.unlink(missing_ok=True)
