"""Store directories of RocketMQ brokers as a source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gapless.traces.engines.engine import Progress
from gapless.traces.options import Options
from gapless.traces.sources.rocketmq import PROFILE
from gapless.traces.sources.rocketmq.report import KIND, PRESENTATION
from gapless.traces.sources.source import Recording, SideInputs

if TYPE_CHECKING:
    from gapless.traces.report.verdict_table import TableRows


class RocketMQ:
    """Store directories, known by their `commitlog/`."""

    kind = KIND
    presentation = PRESENTATION
    profile = PROFILE
    side = frozenset({"config", "client"})
    expected_folder = "a RocketMQ store: there is no commitlog/ in it, nor in a store/ below it"
    expected_file = "a directory: a RocketMQ store is one, with commitlog/ and consumequeue/ in it"

    def recognise(self, path: Path) -> Path | None:
        """Implements `Source`: the store itself, or the `store/` in a folder."""
        if not path.is_dir():
            return None
        from gapless.traces.sources.rocketmq.store.directory import store_folder  # noqa: PLC0415 - a check of something else need not load it

        return store_folder(path)

    def advice(self, path: Path) -> str:
        """Implements `Source`: a broker's home, its settings, its own logs, or a store without its log."""
        from gapless.traces.sources.rocketmq.advice import advice  # noqa: PLC0415 - see above

        return advice(path)

    def prepare(self, found: Path, options: Options) -> None:
        """Implements `Source`: compiles if the log is long."""
        from gapless.native import expecting  # noqa: PLC0415 - see above
        from gapless.traces.sources.rocketmq.segments import tasks  # noqa: PLC0415 - see above
        from gapless.traces.sources.rocketmq.store.append_evidence import records_in  # noqa: PLC0415 - see above

        files = (path for log in ("commitlog", "dledger-*/data") for path in found.glob(f"{log}/*"))
        with expecting(records_in(files)):
            tasks.prepare(options)

    def open(self, path: Path, found: Path, options: Options, side: SideInputs, table: TableRows | None) -> Recording:
        """Implements `Source`: settings and client log are found next to the store too."""
        from gapless.traces.sources.rocketmq import check  # noqa: PLC0415 - see above

        return check.opened(path, found, options, side, listed=table is not None)

    def export(self, path: Path, found: Path, out: Path, side: SideInputs, progress: Progress | None) -> int:
        """Implements `Source`: needs memory for one segment, and 128 bytes of every step of a transaction."""
        from gapless.traces.sources.rocketmq.export import export  # noqa: PLC0415 - see above
        from gapless.traces.sources.rocketmq.store.directory import open_store  # noqa: PLC0415 - see above

        return export(path, open_store(found, side.config, copied=side.copied), out, progress)


SOURCE = RocketMQ()
