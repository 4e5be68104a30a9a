"""`gapless serve`: a coordinator that runs until it is interrupted."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from gapless.impl.coordinator.coordinator import Coordinator
from gapless.impl.coordinator.coordinator_recorder import StepTape
from gapless.impl.coordinator.coordinator_values import CoordinatorSettings


def run_coordinator(folder: Path, most: int, host: str, port: int, keep: int, record: Path | None) -> None:
    """Run it. Raises StoreError, OSError: it cannot be opened, cannot listen there, or its disk failed."""
    tape = StepTape(record.resolve().parent) if record else None
    try:
        asyncio.run(_serve(folder, CoordinatorSettings(most, keep), host, port, tape))
    finally:
        if tape is not None and record is not None:
            tape.write(record)


async def _serve(folder: Path, settings: CoordinatorSettings, host: str, port: int, tape: StepTape | None) -> None:
    loop, interrupted = asyncio.get_running_loop(), asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(each, interrupted.set)
    observer = tape.coordinator() if tape is not None else None
    async with await Coordinator.open(folder, settings, observer=observer) as coordinator:
        address, number = await coordinator.listen(host, port)
        sys.stdout.write(f"{address}:{number}\n")
        sys.stdout.flush()
        stop = asyncio.ensure_future(interrupted.wait())
        await asyncio.wait([stop, coordinator.failed], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if coordinator.failed.done():
            raise coordinator.failed.result()
