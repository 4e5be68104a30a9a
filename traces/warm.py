"""Compiles every kernel, so that the first check need not: `python -m gapless.traces.warm`."""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from gapless.spec.catalog import SPECS, text_of
from gapless.traces.check import check
from gapless.traces.events.schema import Event, write_events
from gapless.traces.native import Native
from gapless.traces.replay.kernels import Loop
from gapless.traces.sources.registry import sources


def main() -> None:
    """Compile every kernel, several at once: those of each source, and of each spec as event files need them."""
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        jobs = [pool.submit(of_source, number) for number in range(len(sources()))]
        for done in [*jobs, *(pool.submit(of_events, name) for name in sorted(SPECS, key=_size) if not _warmed(name))]:
            done.result()


def _size(spec: str) -> int:
    """The larger the spec, the longer its kernel takes: those begin first."""
    return -len(text_of(SPECS[spec].module))


def _warmed(spec: str) -> bool:
    """Whether a source warms the spec's kernel."""
    return any(spec in source.warms for source in sources())


def of_source(number: int) -> None:
    """Compile what a check of this source needs."""
    Loop.few = 0
    Native.few = -1  # on nothing, too
    sources()[number].warm()


def of_events(name: str) -> None:
    """Check events of one spec, in several stretches."""
    Loop.few = 0
    Native.few = -1  # on nothing, too
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder) / "events.ndjson"
        write_events(events, [_opened(name, "a"), _opened(name, "b")])
        check([events], split=1)


def _opened(spec: str, trace: str) -> Event:
    first = next(iter(SPECS[spec].actions))
    args = dict.fromkeys(SPECS[spec].parameters[first], 0)
    return Event(source="", spec=spec, trace=trace, position=0, action=first, args=args)


if __name__ == "__main__":
    main()
