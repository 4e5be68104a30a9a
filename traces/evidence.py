"""The evidence of a check: what a user brings in addition to a recording."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Evidence:
    """Files in addition to a recording, and what its user knows of it. A source names those that it uses."""

    config: Path | None = None  # the broker's settings
    client: Path | None = None  # what clients were answered
    copied: bool = False  # the recording was copied file by file while it was written
    trace_topics: tuple[str, ...] = ()  # topics that clients trace to, besides the default ones
    only_broker: bool = False  # the clients of a broker have no other, so that what they were handed was its

    @classmethod
    def of(
        cls,
        config: str | os.PathLike[str] | None = None,
        client: str | os.PathLike[str] | None = None,
        *,
        copied: bool = False,
        trace_topics: Sequence[str] = (),
        only_broker: bool = False,
    ) -> Evidence:
        """Return the evidence, as users and command lines name it."""
        broker, clients = (Path(file) if file else None for file in (config, client))
        return cls(broker, clients, copied, tuple(trace_topics), only_broker)


NO_EVIDENCE = Evidence()
"""The evidence where a user brings none."""
