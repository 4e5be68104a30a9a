"""Sentences about wrong entries, for messages and for the headline of a page."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gapless.spec.catalog import rule

ENTRY_STATES = {
    "position": "points at byte {}; its message is at {}",
    "size": "states a size of {} bytes; its message has {}",
    "tag": "has tag code {}; its message has {}",
}
"""By the value of an entry, what it states and what its message has."""


def by_rule(begin: str, sentences: Mapping[str, str]) -> dict[str, str]:
    """The sentences by the ids of their rules; each name continues `begin`, such as `tiered/tiered-`."""
    return {rule(f"{begin}{name}").id: sentence for name, sentence in sentences.items()}


def headline(trace: str, sentence: str) -> str:
    """The sentence with the name of what it is about: `entry 120 of orders/1 points at byte 7`."""
    if about := re.match(r"(entry|message) -?\d+|(all|the last) [\d,]+ entries", sentence):
        return f"{about[0]} of {trace}{sentence[about.end() :]}"
    return f"{trace}: {sentence}"
