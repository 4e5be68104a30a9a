"""Reasons why no property catches some planted faults, each by name.

An argument that is needed no more, or is about no fault, is an error when they are planted (`spec_mutants.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

_REASONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "no step reads the counter of a half that is set aside, and the one invariant that does is among those that the "
    "limits of an earlier life break": {
        "transaction": (
            "park_for_its_age: forgets checks=s.checks if transaction.is_decided(s) else times",
            "_park_all_the_same: forgets checks=before.checks if decided else times",
        ),
    },
    "no step reads it, and what invariants say of it holds of what it was before, too: it is for those who read a "
    "story": {
        "compaction": (
            "find_files: forgets first=Number(0)",
            "miss: forgets misses=s.misses + 1",
        ),
        "cursor": ("save: forgets reached=to", "deliver: forgets reached=to"),
        "delivery": ("hand: forgets handed=s.handed + 1",),
        "dledger_index": ("open: forgets first=first",),
        "index_table": ("pass_by: forgets passed=s.passed + 1",),
        "tiered": ("open: forgets first=number",),
        "timer_table": ("deliver: forgets delivered=s.delivered + copies",),
        "transaction": ("acknowledge: forgets commits_reported=s.commits_reported.set(number, 1)",),
    },
    "a step takes it for granted of its source, and properties are about such events alone": {
        "compaction": (
            "find_files: whether or not s.missed == 0",
            "find_files: s.missed == 0 → s.missed >= 0",
            "find_entry: 0 < size → 0 <= size",
            "miss: forgets missed=s.missed if number < s.missed else Number(number + 1)",
            "miss: number < s.missed → number <= s.missed",
        ),
        "delivery": (
            "open: whether or not start == 0",
            "open: start == 0 → start <= 0",
            "open: start == 0 → start >= 0",
            "open: start == 0 → start == 0 + 1",
            "open: start == 0 → start != 0",
        ),
        "dledger_index": ("find_unit: whether or not 0 < size", "find_unit: 0 < size → 0 <= size"),
        "queue": ("index_batch: count <= 32767 → count <= 32767 + 1",),
        "tiered": ("find_entry: 0 < size → 0 <= size",),
    },
}
"""The argument, and of each spec the faults that it is about."""

ARGUED: Mapping[tuple[str, str], str] = {
    (spec, fault): why for why, specs in _REASONS.items() for spec, faults in specs.items() for fault in faults
}
"""Of a spec and a fault: why no property catches it."""
