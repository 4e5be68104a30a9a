"""Speaks the protocol of `docs/black-box.md` until its input ends: `python -m gapless.impl.subject`."""

from __future__ import annotations

from gapless.impl.subject.store_server import SpeakingStore

if __name__ == "__main__":
    SpeakingStore(0, 1).serve()
