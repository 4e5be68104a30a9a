"""Compiles every kernel of the implementation once, so that the first store need not: `python -m gapless.impl.warm`."""

from __future__ import annotations

import tempfile

from gapless.impl.environment.real import RealDisk
from gapless.impl.store.store import use_everything
from gapless.impl.store.transaction_code import use_transactions


def main() -> None:
    """Use a store in a folder as programs do."""
    for use in (use_everything, use_transactions):
        with tempfile.TemporaryDirectory() as folder:
            use(RealDisk(folder))


if __name__ == "__main__":
    main()
