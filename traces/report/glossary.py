"""Words that a page explains where they stand and at its end, for a reader without our documentation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from markupsafe import Markup, escape


class Gloss(NamedTuple):
    """A word, what it means in a sentence without its end, and its other forms."""

    word: str
    meaning: str
    forms: tuple[str, ...] = ()


COMMON = (
    Gloss("anomaly", "a step that the design forbids and real brokers take, as is documented: counted, not judged",
        ("anomalies",)),
    Gloss("conforms", "no violation found: every rule for which there is evidence is kept"),
    Gloss("departs", "a violation was found: a step that the spec does not allow"),
    Gloss("event", "one recorded step, with its arguments", ("events",)),
    Gloss("hazard", "sound now, and broken by the broker's next start", ("hazards",)),
    Gloss("inconclusive", "not enough evidence for a verdict: this is no pass"),
    Gloss("profile", "the system whose known deviations are counted as anomalies; strict allows none"),
    Gloss("rule", "one condition that a step needs, with an id that no rewording changes", ("rules",)),
    Gloss("step", "one action of the system, such as appending a record", ("steps",)),
    Gloss("story", "the fewest steps that show a finding, in their order", ("stories",)),
    Gloss("assumed", "treated as if it were allowed, so that later steps are judged by themselves"),
    Gloss("trace", "the events of one subject, such as a queue, in the order in which they took effect", ("traces",)),
    Gloss("unreadable", "this input cannot be judged at all"),
    Gloss("violation", "a rule that is broken", ("violations",)),
)  # fmt: skip


class Glossary:
    """The terms that a page may meet, and those that it met."""

    def __init__(self, terms: Iterable[Gloss]) -> None:
        self.terms = {term.word: term for term in terms}
        self.known = {form: term for term in self.terms.values() for form in (term.word, *term.forms)}
        longest = sorted(self.known, key=len, reverse=True)
        self.pattern = re.compile(rf"\b({'|'.join(map(re.escape, longest))})\b")
        self.met = {"rule", "step", "story", "trace"}

    def explained(self, text: str) -> Markup:
        """The text with every term in it marked, and its meaning at hand."""
        parts: list[str] = []
        for number, part in enumerate(self.pattern.split(text)):
            if number % 2:
                term = self.known[part]
                self.met.add(term.word)
                parts.append(f'<abbr title="{escape(term.meaning)}">{escape(part)}</abbr>')
            else:
                parts.append(str(escape(part)))
        return Markup("".join(parts))  # noqa: S704 - every part of it is escaped above

    def used(self) -> list[Gloss]:
        """The terms that were met, by name."""
        return [self.terms[word] for word in sorted(self.met)]
