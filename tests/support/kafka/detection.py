"""Labelled faults in Kafka's files: how many of them are detected, and at the right place.

`python -m tests.support.kafka.detection` tries every kind on every whole data directory of the recordings, on a copy;
`--write` keeps the figures in `docs/kafka-detection.md`. The exit code is 1 if too few are detected or placed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from zlib import crc32

from gapless import Report, check
from gapless.properties.processes import workers
from gapless.traces.report.values import Finding
from tests.support import rooms
from tests.support.command_line import ROOT
from tests.support.kafka import files
from tests.support.kafka.damage import FAULTS, damaged
from tests.support.kafka.faults.case import Label
from tests.support.kafka.recordings import NAMES, recording

PAGE = ROOT / "docs" / "kafka-detection.md"
DETECTED, PLACED = 0.97, 0.99
"""The least shares."""
SHORT = 25
"""Lines of a story at most."""
ENTRY = 12
"""Bytes of an entry in an index: of two that follow one another, either may be called wrong."""
LAWFUL_OF_OLD = frozenset({"marker_coordinator_back", "marker_epoch"})
"""Faults that released versions have by themselves: anomalies."""
ANOTHER_FOLDER = frozenset({"two_folders"})
"""Faults that only the folder above shows."""
ALIKE = frozenset({"decision_of_another_id"})
"""Faults that leave a marker too many, where markers of one epoch are known by their order alone."""
LOST = frozenset({"cut_batches", "cut_last", "epochs_missing", "snapshot_beyond"})
"""Faults at the end of a log that was not stopped in order: that much may be lost, or not yet written."""
MOVED = "clients may move a log's start, and a kill takes the new start back, and not where its first epoch begins"
CLEANED = "its decision was cleaned out of the table, and the next marker of its producer ends both"
ARGUED = {
    ("marker_of_another", ""): "the next marker of its producer ends both; how soon others are forgotten is a setting",
    ("epochs_late", ""): MOVED,
    ("epochs_missing", ""): MOVED,
    ("watermark_behind", "3.3.2-retention-live"): "it lies below the log's start, where the start is what departs",
    ("epochs_swapped", "4.3.0-kills"): "the broker was killed, and the log may have lost its end",
    ("marker_is_a_record", "3.9.2-coordinators"): CLEANED,
    (
        "marker_before_its_records",
        "",
    ): "by protocol 1 its records then are of the next transaction",
    ("shift_base", "3.3.2-retention-live"): "of the first batch of a log, whose epoch then begins at another offset",
}
"""Reasons for which a fault is not found, or elsewhere: by kind, and the recording if it is not so in all."""


class Outcome(Enum):
    """The ways in which a fault is noticed, or is not."""

    PLACED = "at its place"
    ELSEWHERE = "elsewhere"
    ANOMALY = "as an anomaly"
    DOUBTED = "as a doubt"
    EQUIVALENT = "lawful"
    MISSED = "missed"


class Trial(NamedTuple):
    """A fault in a data directory, and its outcome. `lines`: of the longest story · `why`: it is lawful."""

    directory: str
    kind: str
    outcome: Outcome
    lines: int
    why: str


def is_placed(label: Label, finding: Finding) -> bool:
    """True if a finding lies where a fault does."""
    if any(also in finding.where.file for also in label.also):
        return True
    if finding.where.file != label.file and not finding.where.file.endswith(f"/{label.file}"):
        return False
    if label.position < 0 or not label.file.endswith(("log", "index")):  # other files are small, and named as a whole
        return True
    near = 0 if label.file.endswith(".log") else ENTRY
    return label.position - near <= finding.where.offset <= max(label.end, label.position) + near


def argued(label: Label, name: str) -> str:
    """Return the reason for which a fault is lawful, or departs elsewhere; or nothing."""
    lost = "power may have been lost there: that much may be missing" if label.tail and label.kind in LOST else ""
    return label.equivalent or ARGUED.get((label.kind, ""), "") or ARGUED.get((label.kind, name), "") or lost


def outcome(label: Label, source: Path, name: str, report: Report) -> Outcome:
    """Return the outcome of a fault in a directory of a recording."""
    if report.violations:
        placed = any(is_placed(label, finding) for finding in report.violations)
        if placed or not argued(label, name):
            return Outcome.PLACED if placed else Outcome.ELSEWHERE
    elif label.kind in LAWFUL_OF_OLD and report.anomalies:
        return Outcome.ANOMALY
    elif report.verdict != "conforms" and (
        label.tail or label.kind in ANOTHER_FOLDER | ALIKE or not files.is_stopped(source)
    ):
        return Outcome.DOUBTED
    return Outcome.EQUIVALENT if argued(label, name) else Outcome.MISSED


def tried(source: Path, kind: str, seed: int, room: Path) -> tuple[Label, Report] | None:
    """Plant a fault in a copy of a data directory, and check it; None where the directory has no room for it.

    Several directories of one broker are checked together, as one of them alone has the metadata.
    """
    label = damaged(source, room / source.name, kind, seed)
    if label is None:
        return None
    others = [one for one in siblings(source) if one != source]
    for one in others:
        shutil.copytree(one, room / one.name, copy_function=os.link)
    return label, check(room if others or kind in ANOTHER_FOLDER else room / source.name, jobs=1)


def siblings(source: Path) -> list[Path]:
    """The directories of the broker that a directory is of."""
    is_alone = (source.parent / "manifest.json").exists()
    return [source] if is_alone else [one.parent for one in sorted(source.parent.glob("*/meta.properties"))]


@cache
def _room() -> Path:
    return rooms.room("kafka-faults")


def trial(at: tuple[str, Path, str], rounds: int) -> list[Trial]:
    """Try one kind on one data directory, with so many seeds."""
    name, source, kind = at
    found = []
    for number in range(rounds):
        with TemporaryDirectory(dir=_room()) as room:
            made = tried(source, kind, crc32(f"{source.name} {name} {number}".encode()), Path(room))
        if made is None:
            break
        label, report = made
        lines = max((len(finding.story) for finding in report.violations), default=0)
        became = outcome(label, source, name, report)
        within = "/".join(source.parts[source.parts.index(name) + 1 :])
        found.append(Trial(f"{name}/{within}", kind, became, lines, argued(label, name)))
    return found


def sources(folders: Iterable[Path]) -> list[tuple[str, Path]]:
    """The data directories of some recordings in which nothing is doubtful before."""
    found = [(folder.name, one) for folder in folders for one in files.directories(folder)]
    return [one for one in found if check(one[1], jobs=1).verdict == "conforms"]


# -- the page ----------------------------------------------------------------------------------------------------------

INTRODUCTION = """# Labelled faults in Kafka's files

Made by `python -m tests.support.kafka.detection --write`. Each kind is planted in a copy of each data directory of the
[recordings](../tests/recordings/kafka/README.md) that conforms and has room for it: a fault puts a new file in the
place of one, under a checksum that is right where the kind says so.

*Detected*: the directory departs; or it is inconclusive where the broker was not stopped in order and power may have
been lost there, where a partition lies twice, and where markers may be taken for one another; or there is an anomaly
where released versions do that. *Placed*: of those that depart, a finding has the file, and in logs and indexes the
byte. A row of the coordinators' table that is wrong shows there or in the next two rows of its id, or in a partition
that its producer wrote to.

`--kinds` renews the figures of some kinds.
"""


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def shares(trials: Sequence[Trial]) -> tuple[float, float]:
    """Return the share that is detected, lawful ones aside, and that of departures at their place."""
    of = Counter(one.outcome for one in trials)
    faulty = len(trials) - of[Outcome.EQUIVALENT]
    departs = of[Outcome.PLACED] + of[Outcome.ELSEWHERE]
    return _share(faulty - of[Outcome.MISSED], faulty), _share(of[Outcome.PLACED], departs)


class Kept(NamedTuple):
    """The figures of the page. `outcomes`: how often by kind · `reasons`: how often, by kind and reason."""

    outcomes: dict[str, Counter[Outcome]]
    reasons: Counter[tuple[str, str]]
    directories: int
    lines: int

    def renewed(self, by: Kept) -> Kept:
        """The figures with those of the kinds that were tried again."""
        reasons = Counter({key: count for key, count in self.reasons.items() if key[0] not in by.outcomes})
        directories, lines = max(self.directories, by.directories), max(self.lines, by.lines)
        return Kept(self.outcomes | by.outcomes, reasons + by.reasons, directories, lines)


def tallied(trials: Sequence[Trial]) -> Kept:
    """The figures of some trials."""
    kinds = sorted({one.kind for one in trials})
    return Kept(
        {kind: Counter(one.outcome for one in trials if one.kind == kind) for kind in kinds},
        Counter((one.kind, one.why) for one in trials if one.outcome is Outcome.EQUIVALENT),
        len({one.directory for one in trials}),
        max(one.lines for one in trials),
    )


COUNTED = re.compile(r"in ([\d,]+) directories; the longest story has (\d+) lines")
REASON = re.compile(r"- (\w+), (\d+): (.+)")


def read(text: str) -> Kept:
    """The figures of a page."""
    found = COUNTED.search(text)
    outcomes = {}
    for line in text.splitlines():
        kind, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == len(Outcome) + 1 and cells[0].isdigit():
            outcomes[kind] = Counter({one: int(cell or 0) for one, cell in zip(Outcome, cells[1:], strict=True)})
    reasons = Counter({(kind, why): int(count) for kind, count, why in REASON.findall(text)})
    return Kept(outcomes, reasons, *(int(one.replace(",", "")) for one in found.groups()) if found else (0, 0))


def page(trials: Sequence[Trial], before: str = "") -> str:
    """The page that is kept. Kinds that were not tried keep their figures."""
    kept = read(before).renewed(tallied(trials))
    of = sum(kept.outcomes.values(), Counter[Outcome]())
    faulty, departs = of.total() - of[Outcome.EQUIVALENT], of[Outcome.PLACED] + of[Outcome.ELSEWHERE]
    detected, placed = _share(faulty - of[Outcome.MISSED], faulty), _share(of[Outcome.PLACED], departs)
    found = f"{faulty - of[Outcome.MISSED]:,} of {faulty:,} faults are detected ({detected:.2%})"
    kinds_of = f"They are of {len(kept.outcomes)} kinds, in {kept.directories} directories"
    place = f"{of[Outcome.PLACED]:,} of {departs:,} at the right place ({placed:.2%})"
    lines = [
        *INTRODUCTION.splitlines(),
        "",
        f"{found}, and {place}.",
        "",
        f"{kinds_of}; the longest story has {kept.lines} lines.",
        f"{of[Outcome.EQUIVALENT]} more leave what a broker may leave by right:",
        "",
        *(f"- {kind}, {number}: {why}" for (kind, why), number in sorted(kept.reasons.items())),
        "",
        "| kind | planted | " + " | ".join(one.value for one in Outcome) + " |",
        "|---|--:|" + "--:|" * len(Outcome),
    ]
    for kind, mine in sorted(kept.outcomes.items()):
        lines.append(f"| {kind} | {mine.total()} | " + " | ".join(str(mine[one] or "") for one in Outcome) + " |")
    return "\n".join([*lines, ""])


def main() -> int:
    """Try all of them; 1 where too few are detected or placed, or a story is too long."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.kafka.detection", description=str(__doc__).split("\n")[0]
    )
    parser.add_argument("recordings", nargs="*", type=Path, help="folders of other recordings (default: ours)")
    parser.add_argument("--kinds", nargs="*", default=list(FAULTS))
    parser.add_argument("--rounds", type=int, default=1, help="tries with other random choices (default: 1)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name}")
    chosen = parser.parse_args()
    found = sources(chosen.recordings or map(recording, NAMES))
    cases = [(name, source, kind) for name, source in found for kind in chosen.kinds]
    with workers(chosen.jobs) as pool:
        trials = [one for some in pool.map(partial(trial, rounds=chosen.rounds), cases, chunksize=8) for one in some]
    for one in trials:
        if one.outcome in {Outcome.MISSED, Outcome.ELSEWHERE} or one.lines > SHORT:
            sys.stdout.write(f"{one.directory}: {one.kind}: {one.outcome.value}, a story of {one.lines} lines\n")
    text = page(trials, PAGE.read_text("utf-8") if set(chosen.kinds) < set(FAULTS) else "")
    sys.stdout.write(text)
    if chosen.write:
        PAGE.write_text(text, encoding="utf-8")
    detected, placed = shares(trials)
    return int(detected < DETECTED or placed < PLACED or max(one.lines for one in trials) > SHORT)


if __name__ == "__main__":
    sys.exit(main())
