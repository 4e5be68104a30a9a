"""Links to public trackers: `apache/rocketmq#5574` and `KAFKA-9777` in a text become links."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

GITHUB, JIRA = "https://github.com", "https://issues.apache.org/jira/browse"
PUBLIC = re.compile(r"\b(?P<repository>apache/[\w-]+)#(?P<issue>\d+)\b|\b(?P<ticket>KAFKA-\d+)\b")


def with_links(text: str) -> Markup:
    """The text as HTML, with a link for each public reference in it."""
    parts, end = [], 0
    for found in PUBLIC.finditer(text):
        parts += [escape(text[end : found.start()]), link(_address(found), found[0])]
        end = found.end()
    return Markup("").join([*parts, escape(text[end:])])


def link(address: str, text: str) -> Markup:
    """A link to an address."""
    return Markup('<a href="{}">{}</a>').format(address, text)


def _address(found: re.Match[str]) -> str:
    if found["ticket"]:
        return f"{JIRA}/{found['ticket']}"
    return f"{GITHUB}/{found['repository']}/issues/{found['issue']}"
