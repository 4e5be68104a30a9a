"""Store directories of RocketMQ brokers as a source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gapless.traces.engines.engine import Progress
from gapless.traces.evidence import Evidence
from gapless.traces.options import Options
from gapless.traces.sources.following import LogGauge, RecordingFollower, SavedState
from gapless.traces.sources.rocketmq import PROFILE
from gapless.traces.sources.rocketmq.report import KIND, PRESENTATION
from gapless.traces.sources.source import Recording
from gapless.traces.sources.verbs import JsonSchema, Replicas

if TYPE_CHECKING:
    from gapless.traces.report.outputs.verdict_table import TableRows
    from gapless.traces.sources.tables import SparkTable


class RocketMQ:
    """Store directories, known by their `commitlog/`."""

    kind = KIND
    presentation = PRESENTATION
    profile = PROFILE
    evidence = frozenset({"config", "client", "trace_topics", "only_broker"})
    expected_folder = "a RocketMQ store: there is no commitlog/ in it, nor in a store/ below it"
    table_format = KIND
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
        from gapless.traces.sources.rocketmq.log.append_evidence import records_in  # noqa: PLC0415 - see above
        from gapless.traces.sources.rocketmq.segments import tasks  # noqa: PLC0415 - see above

        files = (path for log in ("commitlog", "dledger-*/data") for path in found.glob(f"{log}/*"))
        with expecting(records_in(files)):
            tasks.prepare(options)

    def open(self, path: Path, found: Path, options: Options, evidence: Evidence, table: TableRows | None) -> Recording:
        """Implements `Source`: settings and client log are found next to the store too."""
        from gapless.traces.sources.rocketmq import check  # noqa: PLC0415 - see above

        return check.opened(path, found, options, evidence, listed=table is not None)

    def export(
        self, path: Path, found: Path, out: Path, options: Options, evidence: Evidence, progress: Progress | None  # noqa: ARG002 - as `Source` says
    ) -> int:  # fmt: skip
        """Implements `Source`: needs memory for one segment, and 128 bytes of every step of a transaction."""
        from gapless.traces.sources.rocketmq.export import export  # noqa: PLC0415 - see above
        from gapless.traces.sources.rocketmq.store.opening import open_store  # noqa: PLC0415 - see above

        return export(path, open_store(found, evidence.config, copied=evidence.copied), out, progress)

    def table(self, paths: Sequence[Path], split: int) -> SparkTable:
        """Implements `TableSource`: a row for each record of the log, and for each queue that it is in."""
        from gapless.traces.sources.rocketmq.table import store_table  # noqa: PLC0415 - see above

        return store_table(paths, split, self.expected_folder)

    def replicas(self, evidence: Evidence) -> Replicas:
        """Implements `ComparingSource`: masters and slaves, as of HA, of controllers and of DLedger."""
        from gapless.traces.sources.rocketmq.replicas.store_replicas import StoreReplicas  # noqa: PLC0415 - see above

        return StoreReplicas(evidence)

    def follow(
        self, path: Path, found: Path, options: Options, evidence: Evidence, checkpoint: Any, clock: Callable[[], float]
    ) -> RecordingFollower:
        """Implements `FollowingSource`: which follower it is depends on where queues lie."""
        from gapless.traces.sources.rocketmq.watching.factory import make_follower  # noqa: PLC0415 - see above

        return make_follower(path, found, options, evidence.config, checkpoint, clock)

    def gauge(self, path: Path, followed: RecordingFollower | None = None) -> LogGauge:
        """Implements `FollowingSource`: by the names and ends of files."""
        from gapless.traces.sources.rocketmq.watching.factory import gauge_of  # noqa: PLC0415 - see above

        return gauge_of(path, followed)

    def read_state(self, file: Path, name: str, options: Options, version: str) -> SavedState | None:
        """Implements `FollowingSource`."""
        from gapless.traces.sources.rocketmq.watching.state_file import read_state  # noqa: PLC0415 - see above

        return read_state(file, name, options.profile, options.ignored, version)

    def write_state(self, file: Path, kept: SavedState, version: str) -> None:
        """Implements `FollowingSource`."""
        from gapless.traces.sources.rocketmq.watching.state_file import write_state  # noqa: PLC0415 - see above

        write_state(file, kept, version)

    def schemas(self) -> Mapping[str, Callable[[], JsonSchema]]:
        """Implements `SchemaSource`: client logs are written by users."""
        return {"client": _client_schema}


def _client_schema() -> JsonSchema:
    """Build the schema of a line in a client log."""
    from gapless.traces.sources.rocketmq.clients.requests.request_lines import LINE  # noqa: PLC0415 - see above

    return {**LINE.json_schema(by_alias=True), "title": "a line of a client log"}


SOURCE = RocketMQ()
