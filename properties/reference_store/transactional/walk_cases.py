"""Walks over transactions by their seeds."""

from __future__ import annotations

from collections import Counter
from random import Random

from gapless.properties.machines.mismatch import Mismatch
from gapless.properties.reference_store.transactional.faulty_walk import FaultyWalk
from gapless.properties.reference_store.transactional.walk import TransactionWalk

PART = 50  # walks that a process takes at once


def failure(seed: int, *, faults: bool = False) -> tuple[str | None, Counter[str]]:
    """The error of one walk, if any, and its events. `faults`: on a disk that fills and fails."""
    choose = Random(seed).randrange  # noqa: S311 - a schedule, no secret
    one = FaultyWalk(choose) if faults else TransactionWalk(choose)
    try:
        one.run()
    except Mismatch as mismatch:
        return f"seed {seed}: {mismatch}", one.tally
    except Exception as error:  # noqa: BLE001 - whatever it is, the seed is reported with it
        return f"seed {seed}: {type(error).__name__}: {error}\n" + "\n".join(one.story), one.tally
    return None, one.tally


def part(seeds: range, *, faults: bool = False) -> tuple[list[str], Counter[str]]:
    """The errors of some walks, and their events."""
    found = [failure(seed, faults=faults) for seed in seeds]
    return [wrong for wrong, _ in found if wrong], sum((tally for _, tally in found), Counter[str]())
