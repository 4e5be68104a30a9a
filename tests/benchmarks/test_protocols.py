"""The protocols of peers' suites: each has the states that its peer publishes, is proved, and shows a planted bug."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import protocols
from benchmarks.protocols import FOLDER, Protocol
from gapless.traces.specs import load
from tests.support.night import NIGHT, by_day

SUITE = protocols.suite()
LONG = ("paxos_commit",)  # whose proof takes a quarter of a minute: at night
every = pytest.mark.parametrize("protocol", SUITE.values(), ids=SUITE)
some = pytest.mark.parametrize("protocol", by_day([*SUITE.values()], share=1 / 4), ids=by_day([*SUITE], share=1 / 4))


def test_the_suite_has_every_file() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == SUITE.keys()


@every
def test_there_are_as_many_states_as_the_peer_publishes(protocol: Protocol, tmp_path: Path) -> None:
    counts = protocol.counts if NIGHT else protocol.count
    found = {size: protocols.explored(protocol.spec(tmp_path, size)) for size in counts}
    assert {size: one.states - protocol.more for size, one in found.items()} == counts
    assert {one.result for one in found.values()} <= {"holds"}


@every
def test_a_planted_bug_is_refuted_by_a_shortest_run(protocol: Protocol, tmp_path: Path) -> None:
    broken = protocols.explored(protocol.spec(tmp_path, wrong=True)).broken
    assert broken is not None
    assert (broken.sentence, len(broken.path)) == (protocol.planted.breaks, protocol.planted.steps)


@some
def test_its_properties_are_proved(protocol: Protocol, tmp_path: Path) -> None:
    if protocol.proved == "no" or (protocol.name in LONG and not NIGHT):
        pytest.skip("it is not, or takes long")
    spec = protocol.spec(tmp_path)
    assert protocols.unproved(spec) == []
    if protocol.constant:
        assert spec.starts or protocols.unproved_at_first(spec, protocol.constant) == []
        assert protocols.changed(spec, protocol.constant) == []


def test_what_depends_on_the_size_is_not_proved_for_any(tmp_path: Path) -> None:
    text = SUITE["lock"].text()
    path = tmp_path / "lock.py"
    wrong = protocols.replaced(text, "return implies(inside(s.place[process]), s.locked)", "return s.processes == 2")
    path.write_text(wrong, encoding="utf-8")
    assert protocols.unproved_at_first(load(path), "processes") == ["who_is_inside_has_the_lock"]
    path.write_text(protocols.replaced(text, "locked=False)", "locked=False, processes=3)"), encoding="utf-8")
    assert protocols.changed(load(path), "processes") == ["leave"]


def test_the_page_has_every_row() -> None:
    page = protocols.PAGE.read_text(encoding="utf-8")
    rows = [protocols.cells(protocol, size) for protocol in SUITE.values() for size in protocol.counts]
    assert [row for row in rows if f"| {' | '.join(row)} | " not in page] == []
    assert page.count("\n| [") == len(rows)
