"""A store whose process dies."""

from itertools import count
from pathlib import Path

from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store
from tests.support.visible_messages import visible

SMALL = Settings(file_size=4096, queue_file_size=2000, flush_interval=1)


def killed(folder: Path, messages: int = 30) -> Store:
    """A store that was let go as when its process dies. Its messages are a second apart: three log files and more."""
    clock = count(1_700_000_000_000, 1000)
    store = Store.open(folder, SMALL, clock=lambda: next(clock))
    for _ in range(messages):
        store.append("orders", 0, bytes(300))
    visible(store)
    store.flush()
    store.core.flush_queues()
    store.core.write_checkpoint(next(clock))
    store.abandon()
    return store
