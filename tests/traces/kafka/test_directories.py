"""Data directories of real Kafka brokers, judged: whole, cut into parts, exported, and with a fault of each kind."""

from functools import cache
from pathlib import Path
from zlib import crc32

import pytest

from gapless import check
from gapless.traces.evidence import Evidence
from gapless.traces.export import export
from gapless.traces.options import Options
from gapless.traces.report.values import Finding, Report
from gapless.traces.sources.kafka.check import LogCheck
from tests.support.kafka.damage import FAULTS, damaged
from tests.support.kafka.faults.case import Label
from tests.support.kafka.recordings import NAMES, manifest, recording
from tests.support.night import NIGHT, by_day

DIRECTORIES = [(name, directory) for name in NAMES for directory in manifest(name)["expected"]]
LAWFUL_OF_OLD = frozenset({"marker_coordinator_back", "marker_epoch"})
"""Faults that released versions have by themselves: anomalies."""
ANOTHER_FOLDER = frozenset({"two_folders"})
"""Faults that only the folder above shows."""
ARGUED = frozenset({
    ("marker_of_another", ""),  # its producer's next marker ends both, and how soon others are forgotten is a setting
    ("watermark_behind", "3.3.2-retention-live"),  # below the log's start, where the start is what departs
    ("epochs_swapped", "4.3.0-kills"),  # of a broker that was killed: inconclusive, for the log may have lost its end
    ("shift_base", "3.3.2-retention-live"),  # the first batch of a log: its epoch then begins at another offset
})  # fmt: skip
"""Faults that are not found, or elsewhere, and why: a kind, and the recording if it is not so in all."""
LOST = frozenset({"cut_batches", "cut_last", "epochs_missing", "snapshot_beyond"})
"""Faults at the end of a log that was not stopped in order: that much may be lost, or not yet written."""
ENTRY = 12  # bytes of an entry in an index: of two that follow one another, either may be called wrong
SHORT = 25  # lines of a story


@cache
def _checked(name: str, directory: str) -> Report:
    return check(recording(name) / directory, jobs=1)


def _whole(path: Path, split: int | None) -> tuple[int, dict[str, int], list[tuple[str, str, str, int, int]]]:
    """The number of parts, the accepted events, and the findings of a check in this process."""
    made = LogCheck(path, path, Options(profile="kafka", split=split), Evidence())
    for bundle in made.splits:
        made.take(made.judge_bundle(bundle))
    parts = made.summarised()
    found = [(one.rule, one.trace, one.where.file, one.where.offset, one.count) for one in parts.findings]
    return sum(len(bundle.parts) for bundle in made.splits), dict(made.found.covered), found


@pytest.mark.parametrize(("name", "directory"), by_day(DIRECTORIES, 1 / 2))
def test_no_correct_broker_is_accused(name: str, directory: str) -> None:
    report = _checked(name, directory)
    assert not report.violations, [finding.story for finding in report.violations]
    if manifest(name)["expected"][directory] == "conforms":
        torn = [reason for source in report.sources for reason in source.reasons]
        assert report.verdict == "conforms" or all("was killed or the power was lost" in reason for reason in torn)


@pytest.mark.parametrize(("name", "directory"), by_day(DIRECTORIES, 1 / 3))
def test_all_batches_and_records_are_read_that_kafkas_own_tool_counts(name: str, directory: str) -> None:
    rows = {row.partition: row for row in _checked(name, directory).partitions}
    for partition, counted in manifest(name)["dumped"].get(directory, {}).items():
        row = rows.get(partition)
        if row is not None and row.verdict == "conforms":
            assert (row.batches, row.records) == (counted["batches"], counted["records"]), partition


@pytest.mark.parametrize("size", [300, 1500, 5000])
@pytest.mark.parametrize("name", NAMES if NIGHT else ("3.5.2-txn", "4.3.0-compact-zstd"))
def test_any_cut_works(name: str, size: int) -> None:
    (path, *_) = [recording(name) / one for one in manifest(name)["expected"] if one.startswith("n1")]
    parts, *whole = _whole(path, None)
    more, *cut = _whole(path, size)
    assert more > parts or size > 300
    assert cut == whole


@pytest.mark.parametrize("name", NAMES if NIGHT else ("3.3.2-retention-live", "4.4.0-kill"))
def test_exported_events_are_those_that_were_judged(name: str, tmp_path: Path) -> None:
    (directory, *_) = [one for one in manifest(name)["expected"] if one.startswith("n1")]
    of_files = _checked(name, directory)
    written = export(recording(name) / directory, tmp_path / "events.parquet")
    events = check(tmp_path / "events.parquet", profile="kafka", jobs=1)
    assert written == events.counts.events == of_files.counts.events
    assert (events.verdict, events.coverage) == (of_files.verdict, of_files.coverage)


def test_one_partition_is_judged_by_itself_and_without_its_cluster() -> None:
    report = check(recording("3.5.2-txn") / "n1" / "orders-0", jobs=1)
    assert (report.verdict, [row.partition for row in report.partitions]) == ("conforms", ["orders-0"])


def test_several_directories_of_one_broker_are_judged_together() -> None:
    report = check(recording("3.7.2-jbod") / "n1", jobs=1)
    assert report.verdict == "conforms"
    assert {row.partition.partition("/")[0] for row in report.partitions} == {"d1", "d2", "d3"}


def test_processes_find_what_one_finds() -> None:
    path = recording("3.5.2-policy-turns") / "n1"
    one, two = check(path, jobs=1), check(path, jobs=2)
    assert (one.verdict, one.coverage, one.partitions) == (two.verdict, two.coverage, two.partitions)


# -- faults ------------------------------------------------------------------------------------------------------------


def _is_placed(label: Label, finding: Finding) -> bool:
    if any(also in finding.where.file for also in label.also):
        return True
    if finding.where.file != label.file:
        return False
    if label.position < 0 or not label.file.endswith(("log", "index")):  # other files are small, and named as a whole
        return True
    near = 0 if label.file.endswith(".log") else ENTRY
    return label.position - near <= finding.where.offset <= max(label.end, label.position) + near


@pytest.mark.parametrize("kind", sorted({*by_day(list(FAULTS)), "checksum_bit", "sequence_gap", "snapshot_damaged"}))
@pytest.mark.parametrize("name", NAMES if NIGHT else ("3.5.2-policy-turns", "4.4.0-kill"))
def test_a_fault_is_found_where_it_lies(name: str, kind: str, tmp_path: Path) -> None:
    source = recording(name) / "n1"
    room = (source / "meta.properties").exists()
    label = damaged(source, tmp_path / "n1", kind, crc32(name.encode())) if room else None
    if label is None:
        pytest.skip("the recording has no room for it")
    report = check(tmp_path if kind in ANOTHER_FOLDER else tmp_path / "n1", jobs=1)
    if label.equivalent or {(kind, ""), (kind, name)} & ARGUED:
        return
    if kind in LAWFUL_OF_OLD and not report.violations:
        assert report.anomalies
    elif label.tail and not report.violations:
        assert report.verdict != "conforms" or kind in LOST
    else:
        assert report.verdict == "departs", label
        assert any(_is_placed(label, finding) for finding in report.violations), (label, report.violations)
        assert max(len(finding.story) for finding in report.violations) <= SHORT
