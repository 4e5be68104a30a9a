"""The check of a store's export returns the results of the store's check."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gapless import check
from gapless.traces.export import export
from gapless.traces.report.values import Report
from tests.support.night import NIGHT
from tests.support.rocketmq.recordings import RECORDINGS, copy_of

LAYOUTS = sorted(path.name.removesuffix(".tar.xz") for path in (RECORDINGS / "layouts").glob("*.tar.xz"))
BY_DAY = {  # one of each layout that has events of its own
    "cursors_rocksdb_5.3.3", "ext_killed_5.3.3", "halfdb_first_5.5.0", "index_killed_5.5.0", "tiered_rolled_5.5.0",
    "timer_killed_5.5.0", "compacted_killed_5.5.0", "dledger_killed_5.3.3", "tieredindex_killed_5.3.3",
}  # fmt: skip
SPECS = (
    "log",
    "transaction",
    "hash_index",
    "extension",
    "cursor",
    "timer",
    "half_table",
    "tiered",
    "compaction",
    "dledger_index",
)
BEGIN = ("open", "restart")  # steps that begin a trace, of which a store's check has many without counting them


def counts(report: Report) -> dict[str, int]:
    """Accepted events by step.

    Those of queues and of the check service's cursors are counted otherwise where pieces are joined.
    """
    spec_and_step = {name: name.split(".") for name in report.coverage}
    return {
        name: report.coverage[name]
        for name, (spec, step) in spec_and_step.items()
        if spec in SPECS and step not in BEGIN and report.coverage[name]
    }


def findings(report: Report) -> dict[str, int]:
    return {found.rule: found.count for found in report.findings if found.severity == "violation"}


def both(folder: Path, room: Path) -> tuple[Report, Report]:
    """Check a store, and its export; neither has a client log."""
    export(folder, room / "events.parquet")
    return check([folder]), check([room / "events.parquet"])


@pytest.mark.parametrize("name", LAYOUTS if NIGHT else sorted(BY_DAY))
def test_an_export_is_judged_as_its_store_is(name: str, tmp_path: Path) -> None:
    of_store, of_export = both(copy_of(f"layouts/{name}", tmp_path).parent, tmp_path)
    assert of_export.verdict == of_store.verdict
    assert findings(of_export) == findings(of_store)
    assert counts(of_export) == counts(of_store)


def test_what_a_check_cannot_decide_its_export_leaves_undecided(tmp_path: Path) -> None:
    """Two halves were sent with a delay, and are not judged; the queues depart."""
    of_store, of_export = both(copy_of("layouts/dledger_truncated_5.5.0", tmp_path).parent, tmp_path)
    assert findings(of_export) == findings(of_store)
    assert all(rule.startswith("queue/") for rule in findings(of_export))
    reasons = of_store.sources[0].reasons
    assert any("sent with a delay cannot be judged" in reason for reason in reasons)
    assert set(reasons) <= set(of_export.sources[0].reasons)


def altered(store: Path, pattern: str, at: int) -> None:
    """One bit of the first file of a pattern is another."""
    path = min(store.glob(pattern))
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def slot_of_index(store: Path) -> None:
    path = min(store.glob("index/*"))
    data = path.read_bytes()
    at = next(at for at in range(40, len(data), 4) if any(data[at : at + 4]))
    path.write_bytes(data[:at] + bytes(4) + data[at + 4 :])


def item_of_index(store: Path) -> None:
    altered(store, "index/*", 40 + 40 * 4 + 20 * 5 + 2)  # the hash of item 5


def unit_of_extension(store: Path) -> None:
    altered(store, "consumequeue_ext/orders/0/*", 11)  # the store time of the first unit


def cursor_of_levels(store: Path) -> None:
    path = store / "config" / "delayOffset.json"
    path.write_text('{"offsetTable":{1:99999}}')


FAULTS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "slot": ("index_first_5.5.0", slot_of_index),
    "item": ("index_first_5.5.0", item_of_index),
    "unit": ("ext_first_5.5.0", unit_of_extension),
    "cursor": ("ext_first_5.5.0", cursor_of_levels),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_in_the_export_too(fault: str, tmp_path: Path) -> None:
    name, damage = FAULTS[fault]
    store = copy_of(f"layouts/{name}", tmp_path)
    damage(store)
    of_store, of_export = both(store.parent, tmp_path)
    assert of_store.verdict == of_export.verdict == "departs"
    assert findings(of_export) == findings(of_store) != {}
