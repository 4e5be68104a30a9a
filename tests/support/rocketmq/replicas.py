"""Replicas of stores, compared."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gapless.traces import compare as door
from gapless.traces.sources.rocketmq.replicas.comparison import Comparison


def compare(master: Path, slaves: Sequence[Path], **options: Any) -> Comparison:
    """The result of comparing stores, with its rows."""
    found = door.compare(master, slaves, **options)
    assert isinstance(found, Comparison)
    return found
