"""The watch of a store in a test: its messages, by a clock that is set."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from gapless import check
from gapless.traces.report.values import Finding, Report
from gapless.traces.sources.rocketmq.watching.follower import Follower
from gapless.traces.watch import Listeners, StoreWatch
from tests.support.rocketmq.played_store import PlayedStore
from tests.support.rocketmq.recordings import recording


@dataclass
class Clock:
    """A clock that is set by hand."""

    now: float = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@dataclass
class Heard:
    """The messages of a watch."""

    says: list[str] = field(default_factory=list)
    found: list[Finding] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)

    def listeners(self) -> Listeners:
        """Return the callbacks of a watch."""
        return Listeners(self.says.append, self.found.append, self.reports.append)


def watch(path: Path, heard: Heard, clock: Clock | None = None, **options: Any) -> StoreWatch:
    """A watch that tells `heard`."""
    return StoreWatch(path, heard.listeners(), clock=clock or Clock(), **options)


def follower_of(watched: StoreWatch) -> Follower:
    """The follower of a store that is open."""
    assert isinstance(watched.follower, Follower)
    return watched.follower


def layout_of(watched: StoreWatch, name: str) -> Any:
    """The follower of a layout of a store that is open."""
    return follower_of(watched).others[name]


def watch_all_of(
    played: PlayedStore, heard: Heard, clock: Clock, chance: Random, behind: Callable[[int], None], most: int = 60_000,
    passes: Sequence[float] = (0.1, 1.0, 4.0),
) -> StoreWatch:  # fmt: skip
    """Watch a store while its log is written piece by piece, by one watch after another; the last of these.

    `behind`: writes what comes behind the log, which ends at a position · `most`: bytes of a piece · `passes`: seconds
    that may pass between two.
    """
    store = played.folder
    state = store.parent / "state"
    watched = watch(store, heard, clock, state=state)
    while played.written < played.end:
        played.append(min(played.end, played.written + chance.randrange(1, most)))
        behind(played.written)
        clock.now += chance.choice(passes)
        until_idle(watched)
        if chance.random() < 0.2:
            watched.keep()
            watched = watch(store, heard, clock, state=state)
    return watched


def halfway(tmp_path: Path, heard: Heard, clock: Clock, **options: Any) -> tuple[PlayedStore, StoreWatch]:
    """A store that was written, and watched, up to some record."""
    played = PlayedStore(recording("normal"), tmp_path / "store")
    played.append(played.records()[2000])
    played.dispatch(played.written)
    watched = watch(tmp_path / "store", heard, clock, **options)
    until_idle(watched)
    return played, watched


def a_later_entry(played: PlayedStore, before: int) -> tuple[str, int, bytes]:
    """File, number and bytes of an entry that is written, so many before the last."""
    _position, name, at, entry = played.entries[played.indexed - before]
    return name, at // 20, entry


def put_in_place(written: Path, store: Path) -> None:
    """A store as it was written elsewhere takes the place of what is watched."""
    shutil.rmtree(store, ignore_errors=True)
    shutil.copytree(written, store)


def until_idle(watched: StoreWatch) -> None:
    """Look until nothing is new."""
    while watched.look():
        pass


def same(watched: Report, checked: Report) -> None:
    """But for how long it took, and that a check says itself what engine it had."""
    assert watched.model_dump(exclude={"seconds"}) == checked.model_dump(exclude={"seconds"})


def checked(path: Path) -> Report:
    """The report of a check."""
    return check([path], engine="local", jobs=1)
