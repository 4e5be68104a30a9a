"""Compiles every kernel of the implementation once, so that the first store need not: `python -m gapless.impl.warm`."""

from __future__ import annotations

import tempfile

from gapless.impl.records.record import Messages
from gapless.impl.store.store import Store


def main() -> None:
    """Append, build, flush, read, find everything again, and view it."""
    with tempfile.TemporaryDirectory() as folder:
        with Store.open(folder) as store:
            store.append("orders", 0, b"one", tag="new")
            store.append_batch(Messages.of_list([("orders", 0, b"many", {})]))
            store.wait_for("orders", 0, 1)
            store.flush()
            store.read_batch("orders", 0, 0)
            list(store.find("orders", 0, "key"))
        Store.open(folder).close()
        with Store.open_read_only(folder) as view:
            view.read_batch("orders", 0, 0)


if __name__ == "__main__":
    main()
