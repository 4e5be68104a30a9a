"""Compiles every kernel once, so that the first check need not: `python -m gapless.traces.warm`."""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from gapless.spec.catalog import SPECS
from gapless.traces.check import check
from gapless.traces.events.files import write_events
from gapless.traces.events.schema import Event
from gapless.traces.sources.rocketmq.store.layout import CLIENT_LOG, HALF_TOPIC


def main() -> None:
    """Compile every kernel, several at once; those of a store take as long as the largest of the others."""
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        for done in [pool.submit(of_stores), *(pool.submit(of_events, name) for name in SLOWEST_FIRST)]:
            done.result()


SLOWEST_FIRST = sorted(SPECS, key=lambda name: name not in {"coordinator", "broker"})


def of_stores() -> None:
    """Check an empty log, and what one client asked of it."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "store" / "commitlog"
        log.mkdir(parents=True)
        (log.parent / "consumequeue" / HALF_TOPIC / "0").mkdir(parents=True)
        (log / f"{0:020d}").write_bytes(bytes(4096))
        asked = Path(folder) / CLIENT_LOG
        asked.write_text('{"op":"end","uniq":"A","half":0,"phys":0,"decision":"commit","result":"ok"}\n')
        check([folder])


def of_events(name: str) -> None:
    """Check events of one spec, in several stretches."""
    if name in {"log", "queue", "transaction", "checkpoint", "op_batch"}:
        return  # a store has them
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder) / "events.ndjson"
        write_events(events, [_opened(name, "a"), _opened(name, "b")])
        check([events], split=1)


def _opened(spec: str, trace: str) -> Event:
    args = dict.fromkeys(SPECS[spec].parameters["open"], 0)
    return Event(source="", spec=spec, trace=trace, position=0, action="open", args=args)


if __name__ == "__main__":
    main()
