"""Packages that the plain install leaves out: a spec of one's own needs them, and a broker host does not."""

from __future__ import annotations

OF_SPECS = frozenset({"hypothesis", "scipy", "z3"})
"""The names that are imported; the extra `spec` brings them."""


def remedy(error: ModuleNotFoundError) -> str:
    """The sentence for a package that the extra brings; empty for any other."""
    package = (error.name or "").partition(".")[0]
    if package not in OF_SPECS:
        return ""
    return f"{package} is not installed; prove, explore, audit and machine_for need it: pip install 'gapless[spec]'"
