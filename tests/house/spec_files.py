"""The spec files: which they are, and which of them are made of others."""

from tests.house.project import Module, modules

BEHIND_THE_SPECS = ("__init__.py", "catalog.py", "forking.py", "language.py")
"""What the spec files are written in, and read with."""


def made_of(module: Module) -> tuple[str, ...]:
    """The specs whose steps a spec file may call: those that it deviates from, is composed of, or relates."""
    if module.floor == "refinements":
        return tuple(f"gapless.spec.{name}" for name in module.path.stem.split("_as_"))
    composed = {"broker": ("log", "transaction"), "check_service": ("checkpoint", "op_batch", "transaction")}
    own = (module.path.stem,) if module.floor in {"deviations", "laws"} else ()
    return tuple(f"gapless.spec.{name}" for name in (*own, *composed.get(module.path.stem, ())))


def spec_files() -> list[Module]:
    spec = (module for module in modules("spec") if module.floor != "reading")
    return [module for module in spec if module.path.name not in BEHIND_THE_SPECS]
