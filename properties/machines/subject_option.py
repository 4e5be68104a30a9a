"""The subject that a command line names: `package.module:Class`."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import NamedTuple

from gapless.properties.subject import Subject, require_all_verbs

OURS = "gapless.properties.reference_store.store_subject:ReferenceStore"


class NamedSubject(NamedTuple):
    """A class of subjects. `option`: by which a command line names it; none for ours."""

    make: Callable[[], Subject]
    option: str

    def left_out(self) -> Iterable[str]:
        """The steps without a check, since the subject has no such verb; a line for each."""
        subject = self.make()
        yield from (f"left out: {verb}: {why}" for verb, why in sorted(subject.absent.items()))
        flawless = sorted(subject.flawless.items())
        yield from (f"left out: records with the flaw {flaw!r}: {why}" for flaw, why in flawless)


def subject_by_name(text: str) -> NamedSubject:
    """The class of that name. Raises ArgumentTypeError: there is none, or it lacks a verb and does not say why."""
    module, _, name = text.partition(":")
    try:
        found: Callable[[], Subject] = getattr(import_module(module), name)
        require_all_verbs(found)
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{text!r}: expected a subject as package.module:Class: {error}") from error
    return NamedSubject(found, "" if text == OURS else f" --subject {text}")


def add_subject(parser: ArgumentParser) -> None:
    """Let the command line name a subject."""
    parser.add_argument(
        "--subject", metavar="MODULE:CLASS", type=subject_by_name, default=OURS, help="the store (default: ours)"
    )
