"""The nightly profile: `make night` sets it, while `make test` has ten minutes."""

import os
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")

NIGHT = os.environ.get("HYPOTHESIS_PROFILE") == "night"


def by_day(cases: Sequence[T], share: float = 1 / 5) -> list[T]:
    """All cases at night, and by day a share of them: the same ones every time, in their order."""
    if NIGHT:
        return list(cases)
    chosen = Random(len(cases)).sample(range(len(cases)), max(1, round(share * len(cases))))
    return [cases[at] for at in sorted(chosen)]
