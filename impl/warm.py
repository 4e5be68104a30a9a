"""Compiles every kernel of the implementation once, so that the first store need not: `python -m gapless.impl.warm`."""

from __future__ import annotations

from gapless.impl.recorder.rows import ROW_CODE
from gapless.impl.store.store import STORE_CODE
from gapless.impl.store.transaction_code import TRANSACTION_CODE
from gapless.impl.store.view import VIEW_CODE


def main() -> None:
    """All native code is loaded, and so it is compiled."""
    for code in (STORE_CODE, VIEW_CODE, TRANSACTION_CODE, ROW_CODE):
        code.load()


if __name__ == "__main__":
    main()
