"""Markdown pages as text: where their code and their links are."""

from __future__ import annotations

import re

FENCED = re.compile(r"^( *)(`{3,}|~{3,}).*?(?:^ *\2`*~* *$|\Z)", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
LINK = re.compile(r"\]\(<?([^()\s<>]+)>?(?:\s+\"[^\"]*\")?\)|^ {0,3}\[[^\]]+\]:\s+<?([^\s<>]+)", re.MULTILINE)
"""A link's target is its first group, or that of a definition its second."""
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
"""How a target begins that is no place in this repository."""


def blanked(pattern: re.Pattern[str], text: str) -> str:
    """The text with spaces where the pattern matches, every line in its place."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def without_code(page: str) -> str:
    """The page with spaces in place of its code."""
    return blanked(INLINE_CODE, blanked(FENCED, page))
