"""The look at the workers before a first job: gapless is sent to those that lack it, and all else is a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

from gapless.traces.engines.spark import probe as spark_probe
from gapless.traces.engines.spark.archive import archive
from gapless.traces.engines.spark.probe import Needs
from gapless.traces.engines.spark.session import made_folder
from gapless.traces.engines.spark.tasks import LACK
from gapless.traces.files.remote import RemotePath, access_problems
from gapless.traces.problems import EngineFailure, shown

LOOK = "gapless: a look at the workers"  # as the job's description
LACKS = 5  # of which a failure tells, at most

States = Iterable[dict[str, Any]]


class Workers(Protocol):
    """The workers of a cluster."""

    def asked(self, what: Callable[[object], dict[str, Any]]) -> list[dict[str, Any]]:
        """The answers of the workers, of each some times; the function travels by value. Raises EngineFailure."""

    def send_gapless(self, file: Path) -> None:
        """Send this package as an archive. Raises EngineFailure."""


def look(workers: Workers, needs: Needs) -> None:
    """Look at the workers, and send them gapless if they lack it, or have another version. Raises EngineFailure."""
    found = workers.asked(partial(spark_probe.state, needs))
    _refuse(lack for state in found for lack in state["lacks"])
    if all(_is_ours(state) for state in found):
        return
    workers.send_gapless(archived())
    again = workers.asked(partial(spark_probe.state, Needs()))
    _refuse(_stranger(state) for state in again if not _is_ours(state))


def needs_on_disks(reads: Sequence[Path], writes: Sequence[Path]) -> Needs:
    """Return the needs of a check: packages, and what lies on disks."""
    on_disks = ([str(path) for path in paths if not isinstance(path, RemotePath)] for paths in (reads, writes))
    return Needs(spark_probe.NEEDED, *on_disks)


def look_elsewhere(workers: Workers, reads: Sequence[Path], writes: Sequence[Path]) -> None:
    """Look if workers, which have gapless, reach the stores that they read and write. Raises EngineFailure."""
    there, into = ([path for path in paths if isinstance(path, RemotePath)] for paths in (reads, writes))
    if there or into:
        _refuse(lack for state in workers.asked(partial(_access, there, into)) for lack in state["lacks"])


def _access(reads: Sequence[RemotePath], writes: Sequence[RemotePath], _item: object) -> dict[str, Any]:
    return {"lacks": access_problems(reads, writes)}


@cache
def archived() -> Path:
    """The archive of this package, in a folder that stays until this process ends: workers come to fetch it."""
    return archive(made_folder())


def _is_ours(state: dict[str, Any]) -> bool:
    """True if a worker has this version: as its own, or by the archive."""
    found = str(state["gapless"])
    return found == (archived().name if found.endswith(".zip") else spark_probe.version())


def _stranger(state: dict[str, Any]) -> str:
    """The sentence for a worker that loads another gapless than the one that was sent."""
    return (
        f"{state['host']}: {state['python']} has gapless {state['gapless']} ({state['place']}), which goes before the "
        f"{spark_probe.version()} that was sent: install the same version there, or none"
    )


def _refuse(lacks: Iterable[str]) -> None:
    """Raise EngineFailure for what workers lack, host by host, of each in the order of the look."""
    if found := sorted(dict.fromkeys(lacks), key=lambda lack: lack.partition(":")[0]):
        raise EngineFailure(f"{LACK}: {shown('; '.join(found[:LACKS]))}")
