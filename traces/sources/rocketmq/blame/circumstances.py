"""The circumstances of a store: how its broker ended, and whether one was ever started on these files again."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.blame.situation import KNOWN, Circumstance
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory


def circumstances(store: StoreDirectory) -> Circumstance:
    """Returns those of a store."""
    stopped = KNOWN.STOPPED if store.clean else KNOWN.KILLED
    end = KNOWN.RUNNING if store.live else KNOWN.COPIED if store.copied else stopped
    return end | (KNOWN.FIRST_LIFE if store.first_life else KNOWN.LATER_LIFE)
