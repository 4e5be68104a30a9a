"""Data directories of real Kafka brokers, judged: whole, cut into parts, exported, and with a fault of each kind."""

from functools import cache
from pathlib import Path
from zlib import crc32

import pytest

from gapless import check
from gapless.traces.evidence import Evidence
from gapless.traces.export import export
from gapless.traces.options import Options
from gapless.traces.report.values import Report
from gapless.traces.sources.kafka.check import LogCheck
from tests.support.kafka.damage import FAULTS
from tests.support.kafka.detection import SHORT, Outcome, Trial, outcome, page, tried
from tests.support.kafka.recordings import NAMES, manifest, recording
from tests.support.night import NIGHT, by_day

DIRECTORIES = [(name, directory) for name in NAMES for directory in manifest(name)["expected"]]


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


@pytest.mark.parametrize(("name", "directory"), by_day(DIRECTORIES, 1 / 3))
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


@pytest.mark.parametrize("above", ["", "n1"])
def test_directories_of_one_cluster_that_are_named_one_by_one_are_judged_as_the_folder_above(
    above: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recording("3.7.2-jbod") / ("" if above else "n1"))
    folder = Path(above)
    named = [folder / one for one in ("d2", "d1", "d3")]
    whole, report = check(folder, jobs=1), check(named, jobs=1)
    assert len(report.sources) == 1
    assert report.model_copy(update={"seconds": whole.seconds, "compiling": whole.compiling}) == whole
    assert len(check(named[:2], jobs=1).sources) == 2  # the third one is missing


def test_copies_of_one_broker_and_directories_of_other_clusters_are_judged_apart(tmp_path: Path) -> None:
    assert len(check([recording("3.5.2-policy-turns") / one for one in ("between", "n1")], jobs=1).sources) == 2
    for node, cluster in enumerate(("a", "b")):
        (tmp_path / cluster / "t-0").mkdir(parents=True)
        (tmp_path / cluster / "meta.properties").write_text(f"node.id={node}\ncluster.id={cluster}\n", encoding="utf-8")
    assert len(check([tmp_path / "a", tmp_path / "b"], jobs=1).sources) == 2


def test_processes_find_what_one_finds() -> None:
    path = recording("3.5.2-policy-turns") / "n1"
    one, two = check(path, jobs=1), check(path, jobs=2)
    assert (one.verdict, one.coverage, one.partitions) == (two.verdict, two.coverage, two.partitions)


# -- faults ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", sorted({*by_day(list(FAULTS), 1 / 8), "checksum_bit", "sequence_gap", "snapshot_damaged"})
)
@pytest.mark.parametrize("name", NAMES if NIGHT else ("3.5.2-policy-turns", "4.4.0-kill"))
def test_a_fault_is_found_where_it_lies(name: str, kind: str, tmp_path: Path) -> None:
    source = recording(name) / "n1"
    room = (source / "meta.properties").exists()
    made = tried(source, kind, crc32(name.encode()), tmp_path) if room else None
    if made is None:
        pytest.skip("the recording has no room for it")
    label, report = made
    assert outcome(label, source, name, report) not in {Outcome.ELSEWHERE, Outcome.MISSED}, (label, report.violations)
    assert max((len(finding.story) for finding in report.violations), default=0) <= SHORT


def test_the_page_of_faults_says_how_many_are_detected_and_placed() -> None:
    trials = [
        Trial("a/n1", kind, became, 5, why)
        for kind, became, why in [
            *[("drop", Outcome.PLACED, "")] * 6,
            ("drop", Outcome.ELSEWHERE, ""),
            ("drop", Outcome.DOUBTED, ""),
            ("cut", Outcome.ANOMALY, ""),
            ("cut", Outcome.MISSED, ""),
            ("cut", Outcome.EQUIVALENT, "it may be lost"),
        ]
    ]
    text = page(trials)
    assert "9 of 10 faults are detected (90.00%), and 6 of 7 at the right place (85.71%)." in text
    assert "- cut, 1: it may be lost\n" in text
    assert "| drop | 8 | 6 | 1 |  | 1 |  |  |\n" in text
    renewed = page([Trial("a/n1", "cut", Outcome.PLACED, 7, "")], text)
    assert "9 of 9 faults are detected (100.00%), and 7 of 8 at the right place (87.50%)." in renewed
    assert "it may be lost" not in renewed
