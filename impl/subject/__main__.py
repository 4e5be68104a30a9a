"""Speaks the protocol of `docs/black-box.md` until its input ends: `python -m gapless.impl.subject`."""

from __future__ import annotations

from gapless.impl.subject.speaking import Subject

if __name__ == "__main__":
    Subject(0, 1).serve()
