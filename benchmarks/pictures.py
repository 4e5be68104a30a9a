"""Pictures of the measurements: SVG, from the templates next to this module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def drawn(template: str, **given: Any) -> str:
    """A template with what it is given. Raises jinja2.UndefinedError where it wants more."""
    pages = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=True,
        keep_trailing_newline=True,
    )
    return pages.get_template(template).render(given)
