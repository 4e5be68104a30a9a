"""The invariants of Kafka's files, checked one by one on a data directory by the tests' own reader.

Each has a name; `Tally` counts how often it was asked, and where it was broken. It judges at rest and in motion alike:
what only a stop in order promises is asked of directories that have `.kafka_cleanshutdown`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.support.kafka import files
from tests.support.kafka.batches import Batch, Walk, records, walk
from tests.support.kafka.files import INTERNAL, Folder
from tests.support.kafka.metadata import compacted_topics
from tests.support.kafka.replay import Replay


@dataclass
class Tally:
    """Counts of the questions for each invariant, and the places where it is broken."""

    asked: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    broken: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    numbers: dict[str, Any] = field(default_factory=dict)

    def ask(self, name: str, holds: object, place: str) -> bool:
        """Count one question."""
        self.asked[name] += 1
        if not holds:
            self.broken[name].append(place)
        return bool(holds)


def judged(directory: Path, *, only: str = "", deep: bool = True, checksums: bool = True) -> Tally:
    """Every invariant on one data directory, or on one partition of it."""
    tally = Tally()
    compacted = compacted_topics(directory) | set(INTERNAL)
    compacted |= {topic for topic, _ in files.checkpoint(directory / "cleaner-offset-checkpoint")}
    for folder in files.folders(directory):
        if only and folder.name != only:
            continue
        Partition(
            directory, folder, tally, is_compacted=folder.topic in compacted, deep=deep, checksums=checksums
        ).judge()
    return tally


class Partition:
    """One partition as it is judged."""

    def __init__(
        self, directory: Path, folder: Folder, tally: Tally, *, is_compacted: bool, deep: bool, checksums: bool
    ) -> None:
        self.directory, self.folder, self.tally = directory, folder, tally
        self.is_compacted, self.deep, self.checksums = is_compacted, deep, checksums
        self.is_stopped = files.is_stopped(directory)
        self.is_raft = folder.topic == "__cluster_metadata"
        self.walks: list[tuple[int, Path, Walk]] = [(int(path.stem), path, walk(path)) for path in folder.logs]
        self.end = max(
            [base for base, _, _ in self.walks] + [w.batches[-1].last + 1 for _, _, w in self.walks if w.batches],
            default=0,
        )
        self.starts = files.checkpoint(directory / "log-start-offset-checkpoint")
        self.start = max(self.walks[0][0] if self.walks else 0, self.starts.get((folder.topic, folder.number), 0))

    def ask(self, name: str, holds: object, place: object = "") -> bool:
        """Count one question about this partition."""
        return self.tally.ask(name, holds, f"{self.folder.name}/{place}")

    def judge(self) -> None:
        """Ask all."""
        self.tally.numbers[self.folder.name] = self.counts()
        if not self.walks:
            return
        self.batches()
        self.epochs()
        for base, path, walked in self.walks:
            self.offset_index(base, path, walked)
            self.time_index(base, path, walked)
        if not self.is_raft:
            self.tally.numbers[self.folder.name]["open"] = Replay(self).run()
        self.checkpoints()

    def counts(self) -> dict[str, int]:
        """Return the numbers of this partition."""
        batches = [b for _, _, w in self.walks for b in w.batches]
        return {
            "batches": len(batches),
            "records": sum(b.record_count for b in batches),
            "control": sum(b.is_control for b in batches),
            "producers": len({b.producer for b in batches if b.producer >= 0}),
            "start": self.start,
            "end": self.end,
        }

    def batches(self) -> None:
        """Segments and batches."""
        before: Batch | None = None
        for number, (base, path, walked) in enumerate(self.walks):
            is_last = number == len(self.walks) - 1
            tail = walked.stop in {"end", "zeros"} or (is_last and not self.is_stopped)
            self.ask("whole batches tile the segment", tail, f"{path.name}+{walked.end} {walked.stop}")
            self.ask(
                "a segment is not named behind its first batch",
                not walked.batches or walked.batches[0].base >= base,
                path.name,
            )
            if before is not None:
                self.ask(
                    "a segment is named at or behind the end before",
                    base >= before.last + 1 or (self.is_compacted and base > before.base),
                    f"{path.name} after {before.last}",
                )
                if not self.is_compacted:
                    self.ask(
                        "a segment is named by the end before (not compacted)",
                        base == before.last + 1,
                        f"{path.name} after {before.last}",
                    )
            for batch in walked.batches:
                self.batch(batch, before, f"{path.name}+{batch.position}")
                before = batch

    def batch(self, batch: Batch, before: Batch | None, at: str) -> None:
        """One batch."""
        if self.checksums:
            self.ask("checksum", batch.is_sound, at)
        self.ask(
            "head",
            0 <= batch.delta
            and 0 <= batch.record_count <= batch.delta + 1
            and batch.codec <= 4
            and not batch.attributes & ~0x7F,
            at,
        )
        self.ask(
            "producer fields go together",
            (batch.producer < 0) == (batch.epoch < 0)
            and (batch.sequence < 0 or batch.producer >= 0 or self.folder.topic in INTERNAL),
            at,
        )
        self.ask(
            "a control batch has no sequence, one record, no codec",
            not batch.is_control
            or (
                batch.sequence == -1
                and batch.codec == 0
                and (batch.record_count == 1 or self.is_compacted or self.is_raft)
            ),
            at,
        )
        if before is not None:
            self.ask("offsets go up", batch.base > before.last, at)
            self.ask("leader epochs do not go back", batch.leader_epoch >= before.leader_epoch, at)
            self.ask("times go up (N1)", batch.max_time >= before.max_time, at)
            if not self.is_compacted:
                self.ask("no gap (not compacted)", batch.base == before.last + 1, at)
        if not self.is_compacted:
            self.ask("count = delta + 1 (not compacted)", batch.record_count == batch.delta + 1, at)
        if self.deep:
            self.records(batch, at)

    def records(self, batch: Batch, at: str) -> None:
        """The records of one batch."""
        try:
            found = records(batch)
        except (ValueError, IndexError, OSError) as problem:
            self.ask("records parse", holds=False, place=f"{at} {problem}")
            return
        self.ask("records parse", holds=True)
        offsets = [r.offset for r in found]
        self.ask("offsets go up within a batch", all(a < b for a, b in pairwise(offsets)), at)
        if not offsets:
            self.ask("an empty batch is of a compacted topic", self.is_compacted, at)
            return
        self.ask("offsets lie within the batch", batch.base <= offsets[0] and offsets[-1] <= batch.last, at)
        if not self.is_compacted:
            self.ask(
                "first at base, last at last (not compacted)",
                offsets[0] == batch.base and offsets[-1] == batch.last,
                at,
            )
        self.ask(
            "maximum time is that of a record", batch.is_append_time or batch.max_time == max(r.time for r in found), at
        )
        self.ask(
            "base time is that of the first record",
            bool(batch.attributes & 64)
            or batch.is_append_time
            or self.is_compacted
            or batch.base_time == found[0].time,
            at,
        )

    def epochs(self) -> None:
        """The epoch checkpoint against the batches."""
        entries = files.epochs(self.folder.path)
        for (a, b), (c, d) in pairwise(entries):
            self.ask("epoch checkpoint goes up", a < c and b < d, f"{a} {b} then {c} {d}")
        self.ask("no epoch starts beyond the end", not entries or entries[-1][1] <= self.end, entries[-1:])
        for _, path, walked in self.walks:
            for batch in walked.batches:
                if batch.base >= self.start:
                    of = [epoch for epoch, start in entries if start <= batch.base]
                    self.ask(
                        "a batch has the checkpoint's epoch",
                        bool(of) and of[-1] == batch.leader_epoch,
                        f"{path.name}+{batch.position} epoch {batch.leader_epoch}, {entries}",
                    )

    def offset_index(self, base: int, path: Path, walked: Walk) -> None:
        """One offset index."""
        index = path.with_suffix(".index")
        if not self.ask("a segment has an index", index.exists(), path.name):
            return
        entries = files.offset_index(index, base)
        by_position = {b.position: b for b in walked.batches}
        lasts = {b.last for b in walked.batches}
        for number, (offset, position) in enumerate(entries):
            at = f"{index.name} entry {number} ({offset}, {position})"
            if number:
                self.ask(
                    "offset index goes up", offset > entries[number - 1][0] and position > entries[number - 1][1], at
                )
            if position >= walked.end and not self.is_stopped:
                self.ask("offset index ends within the log (not stopped)", holds=False, place=at)
                continue
            batch = by_position.get(position)
            if self.ask("offset index points at a batch", batch is not None, at) and batch is not None:
                self.ask("offset index: batch at or before the entry's offset", batch.base <= offset, at)
                self.ask("offset index names the batch's last offset (N4)", batch.last == offset, at)
                self.ask("offset index ends a batch", offset in lasts, at)

    def time_index(self, base: int, path: Path, walked: Walk) -> None:
        """One time index."""
        index = path.with_suffix(".timeindex")
        if not self.ask("a segment has a time index", index.exists(), path.name):
            return
        entries = files.time_index(index, base)
        for number, (time, offset) in enumerate(entries):
            at = f"{index.name} entry {number} ({time}, {offset})"
            if number:
                self.ask("time index: times go up", time > entries[number - 1][0], at)
                self.ask(
                    "time index: offsets go up",
                    offset > entries[number - 1][1] or (number == 1 and entries[0][1] == base),
                    at,
                )
            if offset >= self.end and not self.is_stopped:
                self.ask("time index ends within the log (not stopped)", holds=False, place=at)
                continue
            batch = next((b for b in reversed(walked.batches) if b.base <= offset), None)
            if (
                self.ask("time index: a batch has the offset", batch is not None and offset <= batch.last, at)
                and batch is not None
            ):
                self.ask("time index: the batch has this maximum", batch.max_time == time, at)
                self.ask(
                    "time index: it is the first with it",
                    not any(b.max_time >= time for b in walked.batches if b.base < batch.base),
                    at,
                )
                self.ask(
                    "time index: nothing newer at or before",
                    all(b.max_time <= time for b in walked.batches if b.base <= batch.base),
                    at,
                )
                self.ask("time index names the batch's last offset (N5)", batch.last == offset, at)
        is_last = path == self.walks[-1][1]
        if walked.batches and (not is_last or self.is_stopped):
            newest = max(b.max_time for b in walked.batches)
            self.ask(
                "time index: at rest the last entry is the greatest time",
                bool(entries) and entries[-1][0] == newest,
                f"{index.name} {entries[-1:]} greatest {newest}",
            )
            if not is_last or not self.is_raft:
                self.ask("an index at rest has no blanks (N6)", not index.read_bytes().endswith(bytes(12)), index.name)

    # -- checkpoints -------------------------------------------------------------------------------------------------
    def checkpoints(self) -> None:
        """Watermark, recovery point, start, cleaner."""
        key = (self.folder.topic, self.folder.number)
        high = files.checkpoint(self.directory / "replication-offset-checkpoint").get(key)
        recovery = files.checkpoint(self.directory / "recovery-point-offset-checkpoint").get(key)
        cleaned = files.checkpoint(self.directory / "cleaner-offset-checkpoint").get(key)
        kind = "stopped" if self.is_stopped else "not stopped"
        what = f"high {high} recovery {recovery} start {self.starts.get(key)} end {self.end}"
        if recovery is not None:
            self.ask(f"recovery point ≤ end ({kind})", recovery <= self.end, what)
        if high is not None:
            self.ask(f"high watermark ≤ end ({kind})", high <= self.end, what)
            self.ask(f"start ≤ high watermark ({kind})", high >= self.start, what)
        if self.is_stopped and not self.is_raft:
            self.ask("stopped: high watermark = end", high == self.end, what)
            self.ask("stopped: recovery point = end", recovery == self.end, what)
        self.ask(f"start ≤ end ({kind})", self.start <= self.end, what)
        if cleaned is not None:
            self.ask(f"cleaned ≤ end ({kind})", cleaned <= self.end, f"cleaned {cleaned} end {self.end}")
            opened = list(self.tally.numbers[self.folder.name].get("open", {}).values())
            self.ask(
                f"cleaned ≤ stable ({kind})",
                cleaned <= min(opened, default=self.end),
                f"cleaned {cleaned}, open {opened}",
            )
            self.cleaned(cleaned)

    def cleaned(self, point: int) -> None:
        """Below the cleaner's point a key has one record."""
        if not self.deep:
            return
        keys: dict[bytes, int] = {}
        for _, path, walked in self.walks:
            for batch in walked.batches:
                if batch.last >= point or batch.is_control:
                    continue
                for record in records(batch):
                    if record.key is not None:
                        self.ask(
                            "one record of a key below the cleaner's point",
                            record.key not in keys,
                            f"{path.name}+{batch.position} offset {record.offset}, as at {keys.get(record.key)}",
                        )
                        keys[record.key] = record.offset
                    else:
                        self.ask(
                            "no record without a key below the cleaner's point",
                            holds=False,
                            place=f"{path.name}+{batch.position} offset {record.offset}",
                        )
