"""Suggests the names that a mistyped name may stand for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

CUTOFF = 0.6  # of the similarity that difflib measures
AT_MOST = 20_000  # names that are compared: a store may have very many topics


def nearest(name: str, names: Iterable[str], count: int = 1) -> list[str]:
    """Names that are similar to `name`, the most similar first; case, `_` and `-` make no difference."""
    known: dict[str, str] = {}
    for other in names:
        known.setdefault(_plain(other), other)
        if len(known) == AT_MOST:
            break
    asked = _plain(name)
    found = get_close_matches(asked, known, count, CUTOFF)
    found += [other for other in known if asked and other not in found and _contains(other, asked)]
    return [known[one] for one in found[:count]]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A clause in parentheses, with a blank before it, that suggests a name; empty where none is similar."""
    found = nearest(name, names)
    return f" (did you mean {found[0]}?)" if found else ""


def one_of(names: Iterable[str], word: str = "or") -> str:
    """Names as prose lists them: *a, b or c*."""
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last


def first_of(names: Sequence[str], count: int = 10) -> str:
    """The first of many names, and how many there are besides."""
    more = len(names) - count
    return ", ".join(names[:count]) + (f" and {more:,} more" if more > 0 else "")


def _plain(name: str) -> str:
    return name.strip().casefold().replace("_", "-")


def _contains(name: str, asked: str) -> bool:
    """True if a name begins or ends with what was asked, of three letters at least."""
    return len(asked) > 2 and (name.startswith(asked) or name.endswith(asked))
