"""A spec with one place of its steps changed: a fault planted by hand."""

from __future__ import annotations

from gapless.properties.faults import operators
from gapless.spec.catalog import Spec, text_of


def changed(spec: Spec, old: str, new: str) -> Spec:
    """Return the spec with other steps and the same properties."""
    text = text_of(spec.module)
    assert text.count(old) == 1, old
    return operators.changed(spec, text.replace(old, new))
