"""Needs of our specs that no run leaves unmet, so that no walk or exploration reports them."""

from __future__ import annotations

NEVER_UNMET = {
    ("checkpoint", "crash", "no-saved-cursor-is-beyond-what-the-crash-left"),  # only a deviation leaves it unmet
    ("check_service", "crash", "no-saved-cursor-is-beyond-what-the-crash-left"),  # a process that ends keeps the log
    ("check_service", "crash", "what-was-flushed-survives"),
    ("check_service", "save", "what-the-saved-cursors-passed-is-on-disk"),
    ("check_service", "save", "what-resolves-the-halves-that-were-passed-is-on-disk"),
    # Of the specs that a broker is made of: it gives them what it has made sure of, or refuses before they are asked.
    ("broker", "answer", "acknowledged-position-moves-on"),
    ("broker", "answer", "bytes-are-on-disk"),
    ("broker", "check", "version-has-a-number-of-its-own"),
    ("broker", "check", "version-has-its-place-in-the-log"),
    ("broker", "crash", "full-files-survive"),
    ("broker", "crash", "nothing-is-invented"),
    ("broker", "crash", "what-was-flushed-survives"),
    ("broker", "flush", "flushed-position-moves-on"),
    ("broker", "open", "transaction-is-new"),
    # Of a helper that several steps share: here a need before it asks for more.
    ("transaction", "check", "version-has-its-place-in-the-log"),
    ("transaction", "outlive", "version-has-a-number-of-its-own"),
}
"""Spec, action and need."""
