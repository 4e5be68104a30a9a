"""The base of the Hypothesis machines: each drives a subject of its own in every run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self, TypeVar

from hypothesis import event
from hypothesis.stateful import RuleBasedStateMachine

from gapless.properties.subject import Subject, require_all_verbs

M = TypeVar("M", bound="SubjectMachine")


class SubjectMachine(RuleBasedStateMachine):
    """A machine for one class of subjects: `LogMachine.of(MyStore).TestCase` is a test."""

    make: Callable[[], Subject]
    subject: Subject

    @classmethod
    def of(cls, make: Callable[[], Subject]) -> type[Self]:
        """The machine for these subjects. Raises TypeError: one lacks a verb, and does not say why."""
        require_all_verbs(make())
        return type(cls.__name__, (cls,), {"make": staticmethod(make)})

    def begin(self) -> None:
        """A new subject, which is recorded if it can be."""
        self.subject = type(self).make()
        if self.has("record"):
            self.subject.record()

    def has(self, verb: str) -> bool:
        """True if the subject has an optional verb; Hypothesis counts, and shows, how often one was missed."""
        why = self.subject.absent.get(verb)
        if why is not None:
            event(f"left out: {verb}, for {type(self.subject).__name__} has none: {why}")
        return why is None
