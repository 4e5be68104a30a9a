"""Files of every kind that `gapless check` reads, damaged at random: what may never happen, whatever the bytes are.

    python -m tests.support.mutated_files [KIND …] [--count 3000] [--seed 0] [--minutes 10]

A check of a damaged file ends, within bounds of time and memory, with a verdict and without a traceback; and it says
*conforms* of no log in which bytes under the checksum of a record are other ones. Each case is judged in a process of
its own, forked from one that has everything loaded, so that thousands of them take minutes.

Exit codes: 0 if nothing was found, 1 if something was.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

import pyarrow as pa
from rich.console import Console

from gapless import check
from tests.support import pulsar_recordings, rooms
from tests.support.kafka import checksums
from tests.support.kafka.recordings import recording as kafka_recording
from tests.support.rocketmq.any_damage import OF_BYTES
from tests.support.rocketmq.recordings import recording, recording_with_client
from tests.support.rocketmq.stores import SEAL, log_files, read_log

SECONDS = 20  # of processor time that a check may take
PATIENCE = 6 * SECONDS  # of the clock: other processes run
MEMORY = 1 << 30  # bytes that a check may have in memory
MENDED = 0.5  # of the cases in which checksums can be made right again, those in which they are
CODECS: dict[str, Literal["gzip", "zstd"]] = {"gz": "gzip", "zst": "zstd"}  # of lines, by the end of a name
ROOM = 1 << 34  # bytes of addresses that it may ask for: far beyond, but not for ever

Ranges = dict[str, list[tuple[int, int]]]
"""By file: the bytes of records that carry a checksum of themselves."""


@dataclass(frozen=True)
class FileKind:
    """One kind of file: inputs that have it, and the files among them that are damaged, by patterns of their paths."""

    bases: tuple[Callable[[], Path], ...]
    files: tuple[str, ...]
    alone: bool = False  # each file is an input by itself
    mend: Callable[[Path], None] | None = None  # makes the checksums in a file right again, so that more of it is read


@dataclass
class Tally:
    """The results of the cases of one kind."""

    verdicts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    memory: int = 0
    bad: int = 0

    def add(self, outcome: Outcome) -> None:
        """Count one."""
        self.verdicts[outcome.verdict or "none"] += 1
        self.seconds, self.memory = max(self.seconds, outcome.seconds), max(self.memory, outcome.memory)
        self.bad += bool(outcome.wrong)

    def __str__(self) -> str:
        """In a line."""
        verdicts = ", ".join(f"{count:,} {verdict}" for verdict, count in self.verdicts.most_common())
        most = f"at most {self.seconds:.1f} s and {self.memory >> 20} MiB"
        return f"{self.verdicts.total():,} cases, {self.bad} bad; {verdicts}; {most}"


# -- what is damaged -----------------------------------------------------------------------------------------------


def of(name: str) -> Callable[[], Path]:
    """A store of the recordings, with its `broker.conf`."""
    return lambda: recording(name).parent


def with_client(name: str) -> Callable[[], Path]:
    """A store with the log of its clients."""
    return lambda: recording_with_client(name)


def of_pulsar(name: str) -> Callable[[], Path]:
    """A recording of a coordinator."""
    return lambda: pulsar_recordings.recording(name)


def of_kafka(name: str) -> Callable[[], Path]:
    """A data directory of a broker."""
    return lambda: kafka_recording(name) / "n1"


@cache
def _room() -> Path:
    return rooms.room("mutated")


@cache
def own_store() -> Path:
    """A store that our own implementation wrote: plain messages, delayed ones and transactions."""
    from gapless.store import Settings, Store  # noqa: PLC0415 - it compiles

    path = _room() / "own" / "store"
    with (
        Store.open(path, Settings(file_size=1 << 15, queue_file_size=2000)) as store,
        store.transactions("group") as halves,
    ):
        for k in range(120):
            store.append("orders", k % 2, b"body %d" % k * (k % 7), tag="ab"[k % 2], properties={"KEYS": f"order-{k}"})
            if k % 8 == 0:
                half = halves.begin("orders", 0, b"half %d" % k)
                (half.commit if k % 16 else half.roll_back)()
        store.wait_for("orders", 1, 59)
    return path.parent


@cache
def killed_own_store() -> Path:
    """The same, as a kill leaves it."""
    path = Path(shutil.copytree(own_store(), _room() / "own-killed"))
    (path / "store" / "abort").write_bytes(b"")
    return path


@cache
def events(suffix: str) -> Path:
    """The events of a store and of a store of our own, as one file each."""
    from tests.support.command_line import gapless  # noqa: PLC0415

    kind, _, codec = suffix.partition(".")
    folder = _room() / f"events-{suffix}"
    folder.mkdir()
    for name, store in (("pop", recording("pop_retry")), ("own", own_store() / "store")):
        path = folder / f"{name}.{kind}"
        ran = gapless("trace", store, "--out", path)
        assert ran.exit_code == 0, ran.stderr
        if codec:
            with pa.CompressedOutputStream(str(path) + f".{codec}", CODECS[codec]) as out:
                out.write(path.read_bytes())
            path.unlink()
    return folder


KINDS: dict[str, FileKind] = {
    "commit log": FileKind(
        (of("pop_retry"), of("odd_clients"), of("layouts/checksums_switched_5.5.0")), ("*/commitlog/*",)
    ),
    "consume queue": FileKind(
        (of("pop_retry"), of("layouts/ext_first_5.5.0"), of("layouts/batchcq_lives_5.5.0")),
        ("*/consumequeue/*", "*/consumequeue_ext/*", "*/batchconsumequeue/*"),
    ),
    "hash index": FileKind((of("layouts/index_first_5.5.0"), of("layouts/index_lives_5.3.3")), ("*/index/*",)),
    "timer": FileKind((of("layouts/timer_lives_5.5.0"),), ("*/timerwheel*", "*/timerlog/*")),
    "tiered": FileKind((of("layouts/tieredindex_lives_5.5.0"), of("layouts/tiered_lives_5.3.3")), ("*/tieredstore/*",)),
    "RocksDB": FileKind(
        (of("layouts/cursors_rocksdb_5.5.0"), of("layouts/indexdb_first_5.5.0"), of("layouts/both_lives_5.5.0")),
        ("*/MANIFEST-*", "*/CURRENT", "*/OPTIONS-*", "*.sst", "*.log"),
    ),
    "configuration": FileKind(
        (of("pop_retry"), of("layouts/timer_lives_5.5.0"), of("odd_clients")), ("*/config/*", "broker.conf")
    ),
    "checkpoint": FileKind(
        (of("pop_retry"), of("layouts/dledger_lives_5.5.0"), own_store),
        ("*/checkpoint", "*/abort*", "*/epochFileCheckpoint", "*/dledger-*/checkpoint"),
    ),
    "DLedger and compaction": FileKind(
        (of("layouts/dledger_uncommitted_5.5.0"), of("layouts/compacted_lives_5.5.0")),
        ("*/dledger-*/data/*", "*/dledger-*/index/*", "*/compaction/*"),
    ),
    "own store": FileKind(
        (own_store, killed_own_store), ("*/commitlog/*", "*/consumequeue/*", "*/config/*", "*/check*")
    ),
    "NDJSON": FileKind(
        (lambda: events("ndjson"), lambda: events("ndjson.zst"), lambda: events("ndjson.gz")),
        ("*.ndjson*",),
        alone=True,
    ),
    "Parquet": FileKind((lambda: events("parquet"),), ("*.parquet",), alone=True),
    "Pulsar": FileKind(
        (of_pulsar("coord-limit"), of_pulsar("broker-timeouts")), ("*.ndjson", "*.conf", "*.json", "*.properties")
    ),
    "Kafka log": FileKind(
        (of_kafka("3.3.2-codecs-txn"), of_kafka("4.4.0-append-time"), of_kafka("4.4.0-kill")),
        ("*-?/*.log",),
        mend=checksums.mend,
    ),
    "Kafka index": FileKind(
        (of_kafka("3.3.2-codecs-txn"), of_kafka("4.4.0-kill")), ("*/*.index", "*/*.timeindex", "*/*.txnindex")
    ),
    "Kafka snapshot": FileKind(
        (of_kafka("3.3.2-codecs-txn"), of_kafka("4.4.0-kill")), ("*/*.snapshot", "*/*.checkpoint"), mend=checksums.mend
    ),
    "Kafka checkpoint": FileKind(
        (of_kafka("3.5.2-compact"), of_kafka("4.4.0-kill")), ("*-checkpoint", "*/leader-epoch-checkpoint")
    ),
    "Kafka properties": FileKind(
        (of_kafka("3.5.2-compact"), of_kafka("4.4.0-kill")),
        ("meta.properties", "*/partition.metadata", ".kafka_cleanshutdown"),
    ),
    "client log": FileKind((with_client("lmq"), with_client("pop_retry")), ("client.ndjson",)),
}


def sealed(folder: Path) -> Ranges:
    """The places of all records that carry a checksum of themselves, by the plain reader."""
    found: Ranges = {}
    for store in {file.parent.parent for file in folder.glob("**/commitlog/*")}:
        datas = {int(file.name): file for file in log_files(store)}
        for record in read_log(store):
            base = max(base for base in datas if base <= record.position)
            begin, name = record.position - base, str(datas[base].relative_to(folder))
            data = datas[base].read_bytes()[begin : begin + record.size]
            digits = data[-11:-1]
            carried = data[-20:-11] == SEAL[:9] and digits.isdigit()
            if carried and int(digits[::-1]) == zlib.crc32(data[:-20]) & 0x7FFFFFFF:
                found.setdefault(name, []).append((begin, begin + record.size))
    return found | checksums.covered(folder)


def is_broken(before: bytes, after: bytes, ranges: Sequence[tuple[int, int]]) -> bool:
    """True if a byte of these ranges is another one now."""
    return any(before[low:high] != after[low:high] for low, high in ranges)


# -- one case ------------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """The verdict of one case, its seconds of processor time, its bytes of memory, and what was wrong."""

    verdict: str
    seconds: float
    memory: int
    wrong: str


def judged_apart(path: Path) -> Outcome:
    """Check it in a forked process."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.close(out)
        _child(path, into)
    os.setpgid(child, child)  # it has not begun, perhaps; what it starts is ended with it
    os.close(into)
    ended, text = _read_all(out)
    if not ended:
        os.killpg(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    seconds = used.ru_utime + used.ru_stime
    if not ended:
        return Outcome("", seconds, 0, f"it does not end within {PATIENCE} s")
    if os.WIFSIGNALED(status):
        return Outcome("", seconds, 0, f"it was ended by {signal.Signals(os.WTERMSIG(status)).name}")
    verdict, wrong, memory = json.loads(text)
    if memory > MEMORY:
        wrong = wrong or f"it took {memory >> 20} MiB"
    if seconds > SECONDS:
        wrong = wrong or f"it took {seconds:.0f} s"
    return Outcome(verdict, seconds, memory, wrong)


def _read_all(out: int) -> tuple[bool, bytes]:
    """All that comes through a pipe; False if it does not end in time."""
    text, began = b"", time.monotonic()
    with open(out, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(began + PATIENCE - time.monotonic(), 0))[0]:
            some = pipe.read(1 << 16)
            text += some
            if not some:
                return True, text
    return False, text


def _child(path: Path, into: int) -> NoReturn:
    for limit, most in (resource.RLIMIT_CPU, 2 * SECONDS), (resource.RLIMIT_AS, ROOM), (resource.RLIMIT_CORE, 0):
        resource.setrlimit(limit, (most, most))
    verdict, wrong, before = "", "", _peak(begins=True)
    try:
        report = check([path], jobs=1)
        verdict = report.verdict
        json.loads(report.model_dump_json())
    except BaseException:  # noqa: BLE001 - whatever it is, it is a finding
        wrong = traceback.format_exc()
    of_children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    memory = max(_peak() - before, of_children - before, 0)  # a process of one inherits what that had
    os.write(into, json.dumps([verdict, wrong, memory]).encode())
    os._exit(0)


def _peak(*, begins: bool = False) -> int:
    """The most bytes that this process had in memory, since this was called to begin."""
    if begins:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


class DamageBench:
    """Copies of the inputs of one kind, in which one file at a time is damaged."""

    def __init__(self, kind: FileKind, room: Path) -> None:
        self.kind = kind
        self.copies = [Path(shutil.copytree(base(), room / str(n))) for n, base in enumerate(kind.bases)]
        self.files = [
            [path for path in sorted(copy.rglob("*")) if path.is_file() and _is_of(path, copy, kind.files)]
            for copy in self.copies
        ]
        if not all(self.files):
            raise ValueError(f"no file is damaged: none is of {kind.files}")
        self.sealed = [sealed(copy) for copy in self.copies]
        for copy in self.copies:
            check([copy], jobs=1)  # compiles

    def case(self, choose: random.Random) -> tuple[str, Outcome]:
        """Damage a file, check, and put it back: what was done, and what came of it."""
        at = choose.randrange(len(self.copies))
        copy, file = self.copies[at], choose.choice(self.files[at])
        before = file.read_bytes()
        done = [choose.choice(OF_BYTES) for _ in range(choose.choice((1, 1, 1, 2, 4)))]
        try:
            for mutation in done:
                mutation(file, choose)
            is_mended = self.kind.mend is not None and choose.random() < MENDED
            if self.kind.mend is not None and is_mended:
                self.kind.mend(file)
            after = file.read_bytes()
            outcome = judged_apart(file if self.kind.alone else copy)
        finally:
            file.write_bytes(before)
        ranges = [] if is_mended else self.sealed[at].get(str(file.relative_to(copy)), [])
        if outcome.verdict == "conforms" and is_broken(before, after, ranges):
            outcome = outcome._replace(wrong=outcome.wrong or "it conforms, though bytes under a checksum are others")
        what = " + ".join([*(one.__name__ for one in done), *(["mend"] if is_mended else [])])
        return f"{what} in {file.relative_to(copy.parent)}", outcome


def _is_of(path: Path, copy: Path, patterns: Sequence[str]) -> bool:
    return any(fnmatch(str(path.relative_to(copy)), pattern) for pattern in patterns)


def cases(name: str, seed: int, count: int) -> Iterator[tuple[int, str, Outcome]]:
    """Yield so many cases of a kind, each by its own seed."""
    with tempfile.TemporaryDirectory(prefix="gapless-mutated-") as room:
        bench = DamageBench(KINDS[name], Path(room))
        for n in range(seed, seed + count):
            yield (n, *bench.case(random.Random(f"{name} {n}")))


def main() -> int:
    """Damage files of each kind that is named, or of all, and print what came of it."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.mutated_files", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("kinds", nargs="*", choices=[[], *KINDS], metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--count", type=int, default=3000, help="cases of each kind")
    parser.add_argument("--seed", type=int, default=0, help="the first case")
    parser.add_argument("--minutes", type=float, default=10, help="that a kind may take")
    chosen = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True, markup=False)
    tallies: dict[str, Tally] = {}
    for name in chosen.kinds or KINDS:
        tally, ends = tallies.setdefault(name, Tally()), time.monotonic() + 60 * chosen.minutes
        for n, what, outcome in cases(name, chosen.seed, chosen.count):
            tally.add(outcome)
            if outcome.wrong:
                console.print(f"{name} {n}: {what}: {outcome.wrong}")
            if time.monotonic() > ends:
                break
        console.print(f"{name}: {tally}")
    return int(any(tally.bad for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
