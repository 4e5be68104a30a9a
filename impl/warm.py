"""Compiles every kernel of the implementation once, so that the first store need not: `python -m gapless.impl.warm`."""

from __future__ import annotations

import tempfile

from gapless.impl.environment.real import RealDisk
from gapless.impl.store.store import use_everything


def main() -> None:
    """Use a store in a folder as programs do."""
    with tempfile.TemporaryDirectory() as folder:
        use_everything(RealDisk(folder))


if __name__ == "__main__":
    main()
