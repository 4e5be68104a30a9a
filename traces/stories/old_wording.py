"""Translates the wording of older story files, so that they remain regression tests."""

from __future__ import annotations

import re

from gapless.traces.replay.event_rules import OF_EVENTS, REFUSED, SEEN
from gapless.traces.replay.exact import CLAIMED
from gapless.traces.replay.notation import BROKER_REFUSED, SEEN_OTHERWISE, SHOWN_AS_TAKEN, TURNED_AWAY, breach

OLD_FATES = {
    "the broker refused it, as the model does; and then seen otherwise": SEEN_OTHERWISE["refused"],
    "the broker refused it, as the model does": BROKER_REFUSED,
    "the broker refused it, and so does the model": BROKER_REFUSED,
    "the broker refused it, and the model allows it": TURNED_AWAY,
    "taken, and then seen otherwise": SEEN_OTHERWISE["ok"],
    "nobody knows whether it was taken; what the broker saw fits neither": SEEN_OTHERWISE["unknown"],
    "its outcome is unknown; told as taken": SHOWN_AS_TAKEN,
    "nobody was told what came of it; here it": "its outcome is unknown; here it",
    "nobody saw it; what came after shows it": "inferred from later events",
    " (refused, and taken over as claimed)": CLAIMED,
}
"""Fates of steps; of two that begin alike, the longer is first."""

OLD_RULES = {
    "Not so: the broker refuses only what is not allowed.": REFUSED,
    "Not so: what the broker saw is what its steps made.": SEEN,
}
OLD_CONSEQUENCES = {
    "Otherwise a client is turned away for no reason, and what it wanted done stays undone.": REFUSED,
    "Otherwise the broker goes on from a state that its own steps do not lead to.": SEEN,
}
OLD_LINES = (
    (r"^(\w+) needs: (.*)\.$", r'\1 breaks the rule "\2".'),
    (r"^Otherwise ", "Consequence: "),
    (r": asked (\S+), the state has ", r": the step says \1, the state has "),
    (r": the broker saw (\S+), the state has ", r": recorded \1, expected "),
    (r"^So are others, each taken over as claimed: ", "Other steps break it too, and are assumed for what follows: "),
    (
        r"^(\d+) states were possible, for outcomes before this are unknown, and none explains it\.$",
        r"\1 states were possible, since earlier outcomes are unknown; none of them allows this.",
    ),
    (r"^The story is told for one of them\.$", "The story shows one of them."),
)


def fate(text: str) -> str:
    """The text that stands behind a step, in today's words."""
    for old, new in OLD_FATES.items():
        text = text.replace(old, new)
    return text


def closing(text: str, step: str) -> str:
    """A line behind the steps, in today's words. `step`: the one that departs."""
    if text in OLD_RULES:
        return f"{breach(step, OF_EVENTS[OLD_RULES[text]][0])}."
    if text in OLD_CONSEQUENCES:
        return f"Consequence: {OF_EVENTS[OLD_CONSEQUENCES[text]][1]}."
    for old, new in OLD_LINES:
        text = re.sub(old, new, text)
    return text
