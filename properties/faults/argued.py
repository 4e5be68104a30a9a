"""Why no property catches some faults that are planted in specs, each by name.

An argument that is needed no more, or is about no fault, is an error of whoever plants them (`spec_mutants.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

_REASONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "a field that counts up from 0, or is set to 0, 1 or more, is below 0 in no state that steps lead to": {
        "checkpoint": ("advance: s.how[Number(n)] != 0 → s.how[Number(n)] > 0",),
        "op_batch": ("enqueue: s.restarted != 0 → s.restarted > 0",),
    },
}
"""The argument, and of each spec the faults that it is about."""

ARGUED: Mapping[tuple[str, str], str] = {
    (spec, fault): why for why, specs in _REASONS.items() for spec, faults in specs.items() for fault in faults
}
"""Of a spec and a fault: why no property catches it."""
