"""Follows a log for the positions of its records, some at a time, and looks into files of tokens."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.layouts.layout import LayoutFollower
from gapless.traces.sources.rocketmq.segments.log_reader import LogPoint, LogReader
from gapless.traces.sources.rocketmq.segments.results import Subject
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.file_access import Space, file_of
from tests.support.toy_layout.judge import FOLDER
from tests.support.toy_layout.worker import ROWS, SOUGHT

AT_ONCE = 1000  # bytes of the log in each round


@dataclass(frozen=True)
class TokenProgress:
    """The positions of records up to a point."""

    point: LogPoint
    positions: tuple[int, ...] = ()


class TokenFollower(LayoutFollower):
    """Follows one store."""

    def __init__(self, options: Options, start: int, saved: TokenProgress | None = None) -> None:
        super().__init__(options, start, saved)
        self.begun_at = saved.point.at if saved else start
        self.progress, self.space = saved or TokenProgress(LogPoint(start)), Space()

    def follow(self, store: StoreDirectory, reached: int, queues: Collection[Subject]) -> bool:  # noqa: ARG002 - of all
        """Reads on in the log."""
        reader, positions = LogReader(self.progress.point, self.space), list(self.progress.positions)
        file = file_of(store, reader.point.at)
        if file is not None and reader.point.at < reached:
            end = min(reached, reader.point.at + AT_ONCE)
            for scanned in reader.segments(store, file, end, sought=(SOUGHT,)):
                positions += scanned.columns.found[SOUGHT.name][0, ::ROWS].tolist()
            self.progress = TokenProgress(reader.point, tuple(positions))
        self.departed |= any(path.read_text() == "0" for path in Path(store.path, FOLDER).glob("*"))
        return self.progress.point.at < reached

    def snapshot(self) -> TokenProgress:
        """Returns what it has found."""
        return self.progress

    def known(self, store: StoreDirectory, reached: int) -> list[int]:  # noqa: ARG002 - the judge reads no more
        """Returns the positions of records."""
        return list(self.progress.positions)


FOLLOWER = TokenFollower
