"""A picture as a figure of a page. Every text in it is escaped; the same picture makes the same bytes."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from gapless.traces.report.pictures.kinds import SHAPES, Picture
from gapless.traces.report.pictures.timeline import shown_value


def figure(picture: Picture | None, name: str) -> Markup:
    """The figure of a picture, or nothing without one. `name`: of its place on the page."""
    if picture is None:
        return Markup()
    template = _environment().get_template(f"picture_{picture.kind}.html.j2")
    text = template.render(drawn=SHAPES[picture.kind](picture, name))
    return Markup(text)  # noqa: S704 - the template escapes all values


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("gapless.traces.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["shown_value"] = shown_value
    return environment
