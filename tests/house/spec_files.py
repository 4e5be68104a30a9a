"""The spec files: which they are, and which of them are made of others."""

from tests.house.project import Module, modules

COMPOSED = {"broker.py": ("gapless.spec.log", "gapless.spec.transaction")}
"""Spec files that are made of other specs, and which: they may call the steps of these."""

BEHIND_THE_SPECS = ("__init__.py", "catalog.py", "forking.py", "language.py")
"""What the spec files are written in, and read with."""


def spec_files() -> list[Module]:
    return [module for module in modules("spec") if module.path.name not in BEHIND_THE_SPECS]
