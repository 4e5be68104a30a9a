"""Why no property catches some faults that are planted in specs, each by name.

An argument that is needed no more, or is about no fault, is an error of whoever plants them (`spec_mutants.py`).
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
}
"""The argument, and of each spec the faults that it is about."""

ARGUED: Mapping[tuple[str, str], str] = {
    (spec, fault): why for why, specs in _REASONS.items() for spec, faults in specs.items() for fault in faults
}
"""Of a spec and a fault: why no property catches it."""
