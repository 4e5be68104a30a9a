"""A whole store in a folder, with its threads: reads beyond its end, closing and opening again."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store
from gapless.properties.machines.mismatch import expect

LIVES = 3


def life_of_a_store(seed: int) -> None:
    """A store through some lives, and a group that reads all of it. Raises Mismatch, and whatever the store raises."""
    choose, end, read = Random(seed), 0, 0  # noqa: S311 - a choice, no secret
    with TemporaryDirectory() as room:
        for _ in range(LIVES):
            store = Store.open(Path(room) / "store", Settings(file_size=4096, queue_file_size=400, workers=2))
            try:
                for _ in range(choose.randrange(1, 30)):
                    store.append("orders", 0, b"%d" % end)
                    end += 1
                store.wait_for("orders", 0, end - 1)
                group = store.group("readers")
                expect(group.cursor("orders", 0) == read, f"the cursor is {group.cursor('orders', 0)}, not {read}")
                group.seek("orders", 0, end + choose.randrange(1, 9))
                ahead = [record.number for record in group.poll("orders", 0)]
                expect(not ahead, f"who asks beyond {end} is given {ahead} again")
                group.seek("orders", 0, read)
                while found := group.poll("orders", 0):
                    expect([int(one.body) for one in found] == [*range(read, read + len(found))], f"{read}: {found}")
                    read += len(found)
                expect(read == end, f"{read} of {end} messages are found")
                group.commit("orders", 0)
            finally:
                store.close()
