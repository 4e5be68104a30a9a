"""The subject that a command line names: `package.module:Class`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module

from gapless.properties.subject import Subject, require_all_verbs

OURS = "gapless.properties.reference_store.store_subject:ReferenceStore"


def subject_by_name(text: str) -> Callable[[], Subject]:
    """The class of that name. Raises ValueError where there is none, or one that lacks a verb and does not say why."""
    module, _, name = text.partition(":")
    try:
        found: Callable[[], Subject] = getattr(import_module(module), name)
        require_all_verbs(found)
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        raise ValueError(f"{text!r}: expected a subject as package.module:Class: {error}") from error
    return found


def left_out(make: Callable[[], Subject]) -> Iterable[str]:
    """The steps without a check, since the subject has no such verb; a line for each."""
    subject = make()
    yield from (f"left out: {verb}: {why}" for verb, why in sorted(subject.absent.items()))
    yield from (f"left out: records with the flaw {flaw!r}: {why}" for flaw, why in sorted(subject.flawless.items()))
