"""Links for citations such as `docs/rocketmq.md#old-slots`, to the public documentation.

A report is read far from the checkout, so its citations are addresses. `SITE` is the only place that knows where the
site is published; `make docs` makes it.
"""

from __future__ import annotations

import re

from markupsafe import Markup, escape

SITE = "https://gapless.readthedocs.io/en/latest"
"""The address of the published site; the page NAME of docs/ is docs/NAME.html below it."""

TRACKER = "https://github.com"
TITLES = {
    "defects": "Documented defects of message brokers",
    "design": "The design",
    "explanation": "Why it can be believed",
    "found": "What was found in Pulsar, and in RocketMQ",
    "proposals": "What the proposals promise",
    "pulsar": "The Pulsar transaction coordinator, and its clients",
    "rocketmq": "The RocketMQ store",
    "rocketmq-protocol": "Running a RocketMQ broker, and talking to it",
    "rocketmq-tiered": "Tiered storage of RocketMQ, in a folder",
    "rocketmq-traces": "What RocketMQ clients trace",
    "rocketmq-transactions": "RocketMQ transactions, as they landed",
}
"""The titles of the pages that specs and reports cite."""

CITATION = re.compile(
    r"docs/(?P<page>[a-z-]+)\.md(?:#(?P<anchor>[\w-]+))?(?P<more>(?:, #[\w-]+)*)"
    r"|(?P<repository>apache/[\w-]+)#(?P<issue>\d+)"
)


def linked(text: str) -> Markup:
    """The text as HTML, with a link for each citation in it."""
    parts, end = [], 0
    for found in CITATION.finditer(text):
        parts += [escape(text[end : found.start()]), _link(found)]
        end = found.end()
    return Markup("").join([*parts, escape(text[end:])])


def _link(found: re.Match[str]) -> Markup:
    if found["issue"]:
        address = f"{TRACKER}/{found['repository']}/issues/{found['issue']}"
        return _anchor(address, f"{found['repository']}#{found['issue']}")
    page = found["page"]
    if page not in TITLES:
        return escape(found[0])
    address = f"{SITE}/docs/{page}.html"
    first = _anchor(*_place(address, found["anchor"] or "", TITLES[page]))
    others = [_anchor(*_place(address, anchor, "")) for anchor in re.findall(r"#([\w-]+)", found["more"])]
    return Markup(", ").join([first, *others])


def _place(address: str, anchor: str, title: str) -> tuple[str, str]:
    """The address of a place in a page, and its name."""
    if not anchor:
        return address, title
    return f"{address}#{anchor}", f"{title} #{anchor}".lstrip()


def _anchor(address: str, text: str) -> Markup:
    return Markup('<a href="{}">{}</a>').format(address, text)
