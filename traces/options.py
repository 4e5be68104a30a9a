"""The options of a check: what is judged, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from gapless.spec.catalog import SPECS, Spec

Depth = Literal["shallow", "deep"]
DEPTHS: tuple[Depth, ...] = get_args(Depth)
"""Shallow: without what each record costs. A source that has no depths reads everything."""


@dataclass(frozen=True)
class Options:
    """The options of a check; they travel to every worker."""

    profile: str = "rocketmq"  # whose deviations count as anomalies; a check always says which
    topic: str | None = None  # judge only this topic's queues
    trace: str | None = None  # judge only this trace, by the name that its source gives it
    ignored: frozenset[str] = frozenset()  # ids of rules that may be broken
    listed: bool = False  # the verdict of every trace is wanted
    split: int | None = None  # bytes that one task reads; None: what usually does best
    depth: Depth | None = None  # None: as the source chooses by size
    specs: tuple[Spec, ...] = ()  # that the user brings

    @property
    def every_spec(self) -> Mapping[str, Spec]:
        """Our specs by name, and those that the user brings."""
        return {**SPECS, **{spec.name: spec for spec in self.specs}} if self.specs else SPECS


EVERYTHING = Options(profile="")
"""The options of a check that leaves nothing out, by the profile of each source."""
