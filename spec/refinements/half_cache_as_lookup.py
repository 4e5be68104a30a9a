"""The cache, seen as a log without one: a half is found early or late, and what is answered is what is so."""

from gapless.spec import half_cache, lookup
from gapless.spec.half_cache import Answer
from gapless.spec.language import Number, seen_as


def lookup_of(s: half_cache.State) -> lookup.State:
    """The log and the last answer; a half from the cache and a half from disk are the same here."""
    return seen_as(
        lookup.INITIAL,
        lives=s.lives,
        start=s.start,
        flushed=s.flushed,
        end=s.end,
        answers=s.answers,
        answer=_answer(s),
        messages=s.messages,
    )


def _answer(s: half_cache.State) -> int:
    if s.answer == Answer.FROM_CACHE or s.answer == Answer.FROM_DISK:
        return lookup.LookupAnswer.FOUND
    if s.answer == Answer.NOT_YET:
        return lookup.LookupAnswer.NOT_YET
    return lookup.LookupAnswer.UNKNOWN if s.answer == Answer.UNKNOWN else lookup.LookupAnswer.NONE


def open(  # noqa: A001 - the step's name in every trace.
    s: half_cache.State, start: Number, number: Number, capacity: int
) -> lookup.State:
    """The halves are found; the size of the cache makes no difference."""
    return lookup.open(lookup_of(s), start, number)


def append(s: half_cache.State, number: Number, message: int) -> lookup.State:
    """A half is written."""
    return lookup.append(lookup_of(s), number, message)


def hit(s: half_cache.State, number: Number, message: int) -> lookup.State:
    """A half is found early, or late."""
    return lookup.find(lookup_of(s), number, message)


def read(s: half_cache.State, number: Number, message: int) -> lookup.State:
    """A half is found late."""
    return lookup.find(lookup_of(s), number, message)


def wait(s: half_cache.State, number: Number) -> lookup.State:
    """The caller is to ask again."""
    return lookup.wait(lookup_of(s), number)


def deny(s: half_cache.State, number: Number) -> lookup.State:
    """There is no such half."""
    return lookup.deny(lookup_of(s), number)


def flush(s: half_cache.State, to: Number) -> lookup.State:
    """The same."""
    return lookup.flush(lookup_of(s), to)


def restart(s: half_cache.State, kept: Number) -> lookup.State:
    """The same, for the cache is empty then."""
    return lookup.restart(lookup_of(s), kept)


CONCRETE = half_cache
ABSTRACT = lookup
SEES = lookup_of
STEPS = (open, append, hit, read, wait, deny, flush, restart)
