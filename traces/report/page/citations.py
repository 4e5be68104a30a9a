"""Links for citations such as `docs/rocketmq.md#old-slots`: to the passage, which the same page carries at its end.

A report is read far from the checkout and without a network, so it brings its sources. A citation whose page is not
installed stays the text that it is.
"""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from gapless.traces.report.page.passages import Passage, passage
from gapless.traces.report.public_links import link, with_links

CITATION = re.compile(r"docs/(?P<page>[a-z-]+)\.md(?P<anchor>#[\w-]+)?(?P<more>(?:, #[\w-]+)*)")
LINK = re.compile(r'href="#source-([a-z-]+)\.([\w-]*)"')
"""A link to a passage: text of a report has no quotes that are not escaped."""


def linked(text: str) -> Markup:
    """The text as HTML, with a link for each citation in it."""
    parts, end = [], 0
    for found in CITATION.finditer(text):
        parts += [with_links(text[end : found.start()]), _links(found)]
        end = found.end()
    return Markup("").join([*parts, with_links(text[end:])])


def cited(html: str) -> list[Passage]:
    """The passages to which a page links, by the page of the documentation and their places in it."""
    found = [passage(page, anchor) for page, anchor in sorted(set(LINK.findall(html)))]
    return sorted((one for one in found if one), key=lambda one: (one.page, one.index))


def _links(found: re.Match[str]) -> Markup:
    """The links of one citation: to an anchor of a page, and to further ones."""
    first = found["anchor"] or ""
    links = [_link(found["page"], first, f"docs/{found['page']}.md{first}")]
    links += [_link(found["page"], anchor, anchor) for anchor in re.findall(r"#[\w-]+", found["more"])]
    return Markup(", ").join(links)


def _link(page: str, anchor: str, text: str) -> Markup:
    """A link to a passage; the text alone if there is none."""
    there = passage(page, anchor.removeprefix("#"))
    if there is None:
        return escape(text)
    return link(f"#{there.name}", f"{there.title} {anchor}".rstrip() if text.startswith("docs/") else anchor)
