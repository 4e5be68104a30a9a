"""The files of a walk over transactions, judged by the strict check."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gapless.properties.simulation.simulated_disk import SimulatedDisk
from gapless.traces.check import check
from gapless.traces.report.values import Report


def judged(
    disk: SimulatedDisk, folder: Path, max_checks: int, op_bytes: int, client: Iterable[dict[str, Any]] | None = None
) -> Report:
    """Check a disk strictly, with limits that a store does not contain, and a client log."""
    (folder / "store").mkdir(parents=True)
    disk.save(folder / "store")
    (folder / "broker.conf").write_text(f"transactionCheckMax={max_checks}\ntransactionOpMsgMaxSize={op_bytes}\n")
    if client is not None:
        (folder / "client.ndjson").write_text("".join(json.dumps(line) + "\n" for line in client))
    return check([folder], profile="strict")
