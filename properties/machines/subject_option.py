"""The subject that a command line names: `package.module:Class`."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from gapless.properties.subject import Subject, require_all_verbs

OURS = "gapless.properties.reference_store.store_subject:ReferenceStore"


@dataclass(frozen=True)
class NamedSubject:
    """A class of subjects by its name. Other processes import it by that: its module may change a class of another."""

    name: str

    def __call__(self) -> Subject:
        """A new subject."""
        return _kind(self.name)()

    @property
    def option(self) -> str:
        """The option of a command line that names it; none for ours."""
        return "" if self.name == OURS else f" --subject {self.name}"

    def left_out(self) -> Iterable[str]:
        """The steps without a check, since the subject has no such verb; a line for each."""
        subject = self()
        yield from (f"left out: {verb}: {why}" for verb, why in sorted(subject.absent.items()))
        flawless = sorted(subject.flawless.items())
        yield from (f"left out: records with the flaw {flaw!r}: {why}" for flaw, why in flawless)


@cache
def _kind(name: str) -> Callable[[], Subject]:
    module, _, kind = name.partition(":")
    found: Callable[[], Subject] = getattr(import_module(module), kind)
    return found


def subject_by_name(text: str) -> NamedSubject:
    """The class of that name. Raises ArgumentTypeError: there is none, or it lacks a verb and does not say why."""
    try:
        require_all_verbs(_kind(text))
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{text!r}: expected a subject as package.module:Class: {error}") from error
    return NamedSubject(text)


def add_subject(parser: ArgumentParser) -> None:
    """Let the command line name a subject."""
    parser.add_argument(
        "--subject", metavar="MODULE:CLASS", type=subject_by_name, default=OURS, help="the store (default: ours)"
    )
