"""The tests' reader of Kafka's files, compared with Kafka's own tool, and with faults."""

from pathlib import Path
from zlib import crc32

import pytest

from tests.support.kafka.damage import FAULTS, damaged, seen
from tests.support.kafka.faults import decisions, ends
from tests.support.kafka.invariants import judged
from tests.support.kafka.recordings import ARCHIVES, NAMES, manifest, recording
from tests.support.night import NIGHT, by_day

NUMBERS = ("batches", "records", "control", "producers")
STOPPED = NAMES if NIGHT else ("4.4.0-kill", "3.5.2-policy-turns", "3.5.2-compact")  # whose `n1` faults are planted in
ELSEWHERE = {
    kind.__name__
    for kind in (
        *decisions.FAULTS,
        ends.marker_is_a_record, ends.offsets_of_an_aborted_transaction, ends.offsets_of_a_committed_transaction,
    )
}  # fmt: skip
"""Faults that break no invariant of their partition: only rules of a transaction, which has several."""
RARE = {"marker_epoch_back"}  # not every recording has room


def test_every_recording_is_described() -> None:
    text = (ARCHIVES / "README.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"| {name} |" not in text] == []


@pytest.mark.parametrize("name", by_day(NAMES))
def test_a_recording_has_what_kafkas_own_tool_counts_and_keeps_all_but_what_is_lawful(name: str) -> None:
    for called in manifest(name)["expected"]:
        found = judged(recording(name) / called)
        for partition, counted in manifest(name)["dumped"].get(called, {}).items():
            assert {key: found.numbers[partition][key] for key in NUMBERS} == counted, (called, partition)
        broken = {rule for rule in found.broken if "(N" not in rule}
        assert broken == set(manifest(name)["lawful"].get(called, {})), called


@pytest.mark.parametrize(
    "kind", sorted({*by_day([kind for kind in FAULTS if kind not in ELSEWHERE]), "checksum_bit", "sequence_gap"})
)
def test_a_fault_breaks_an_invariant(kind: str, tmp_path: Path) -> None:
    tried = 0
    for name in STOPPED:
        source = recording(name) / "n1"
        label = damaged(source, tmp_path / name / "n1", kind, crc32(name.encode())) if source.exists() else None
        if label is not None:
            tried += 1
            assert label.equivalent or label.tail or seen(source, tmp_path / name / "n1", label.partition), label
    assert tried or kind in RARE
