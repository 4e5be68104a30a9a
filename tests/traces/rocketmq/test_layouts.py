"""A layout is a folder and a line: one that lies elsewhere is asked for, judged, explained and exported."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gapless import check
from gapless.traces.export import export
from gapless.traces.sources.rocketmq.layouts import registry
from gapless.traces.sources.rocketmq.layouts.layout import Layout
from tests.support.rocketmq.played_store import PlayedStore
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import Record
from tests.support.rocketmq.watched import Clock, Heard, checked, layout_of, same, until_idle, watch
from tests.support.toy_layout import judge

RECORDS, RECORD = 90, Record("orders", b"body")
PARTS = "opening", "worker", "follow", "export", "explain"
TOY = Layout("toy_layout", "permits", "the heap", ("tokens", r"\w+"),
    works=True, follows=True, exports=True, package="tests.support")  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with one file of tokens."""
    builder = StoreBuilder()
    for number in range(RECORDS):
        builder.append(replace(RECORD, queue=number % 3))
    made = builder.write(tmp_path / "store")
    (made / "tokens").mkdir()
    (made / "tokens/heap").write_text("7")
    return made


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line in the registry."""
    monkeypatch.setattr(registry, "LAYOUTS", (*registry.LAYOUTS, TOY))


def test_without_its_line_it_is_nothing(store: Path) -> None:
    report = check([store], split=4096)
    assert (report.verdict, report.coverage["permits.open"]) == ("conforms", 0)
    assert not [text for source in report.sources for text in source.notes if "tokens" in text]
    assert check([store], trace="tokens/heap").verdict == "inconclusive"


@pytest.mark.usefixtures("line")
def test_with_its_line_workers_look_for_its_records_and_it_is_judged(store: Path) -> None:
    report = check([store], split=4096)
    assert (report.verdict, report.coverage["permits.open"]) == ("conforms", 1)
    notes = [text for source in report.sources for text in source.notes if text.startswith("tokens: ")]
    assert notes == [f"tokens: {RECORDS} records, the last one at {(RECORDS - 1) * RECORD.size}"]
    assert "tokens: no file" not in report.not_exercised
    assert check([store], trace="tokens/heap").verdict == "conforms"
    (store / "tokens/heap").unlink()
    assert "tokens: no file" in check([store]).not_exercised


@pytest.mark.usefixtures("line")
def test_what_departs_is_explained_by_the_layout(store: Path) -> None:
    (store / "tokens/heap").write_text("0")
    (finding,) = check([store]).findings
    assert finding.rule == "permits/there-are-permits"
    assert finding.message == f"tokens/heap: there are 0 tokens; the log has {RECORDS} records"
    assert (finding.where.file, finding.where.offset) == ("tokens/heap", 1)
    assert finding.story[0] == "the heap tokens/heap departs at tokens/heap+1."


@pytest.mark.usefixtures("line")
def test_its_files_are_opened_once_to_judge_and_to_explain_them(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (store / "tokens/heap").write_text("0")
    opens, calls = judge.tokens_in, list[Path]()

    def counted(folder: Path) -> dict[str, int]:
        calls.append(folder)
        return opens(folder)

    monkeypatch.setattr(judge, "tokens_in", counted)
    assert len(check([store]).findings) == 1
    assert calls == [store / "tokens"]


@pytest.mark.usefixtures("line")
def test_its_events_are_exported(store: Path, tmp_path: Path) -> None:
    export(store, tmp_path / "events.ndjson")
    events = [json.loads(row) for row in (tmp_path / "events.ndjson").read_text().splitlines()]
    (found,) = [event for event in events if event.get("spec") == "permits"]
    assert (found["trace"], found["action"], found["args"]["permits"]) == ("tokens/heap", "open", 7)


@pytest.mark.usefixtures("line")
def test_it_is_followed_while_the_store_grows_and_from_a_saved_place_on(store: Path, tmp_path: Path) -> None:
    heard, clock, state = Heard(), Clock(), tmp_path / "state"
    played = PlayedStore(store, tmp_path / "played/store")
    shutil.copytree(store / "tokens", tmp_path / "played/store/tokens")
    watched, place = watch(played.folder, heard, clock, state=state), 0
    for end in played.records()[20::30]:
        played.append(end)
        played.dispatch(end)
        clock.now += 3
        until_idle(watched)
        followed = layout_of(watched, "toy_layout")
        assert (followed.begun_at, followed.progress.point.at) == (place, end)
        watched.keep()
        watched, place = watch(played.folder, heard, clock, state=state), end
    played.append(played.end)
    played.dispatch(played.end)
    played.stop()
    until_idle(watched)
    same(watched.end(), checked(played.folder))
    assert not heard.found


@pytest.mark.usefixtures("line")
def test_what_departs_is_reported_while_the_broker_runs(store: Path) -> None:
    heard, clock = Heard(), Clock()
    watched = watch(store, heard, clock)
    until_idle(watched)
    (store / "tokens/heap").write_text("0")
    clock.now += 3
    until_idle(watched)
    assert [found.rule for found in heard.found] == ["permits/there-are-permits"]


def test_every_folder_has_its_line() -> None:
    there = Path(registry.__file__).parent.glob("*/judge.py")
    folders = {judge.parent.name: [judge.with_name(f"{part}.py").is_file() for part in PARTS] for judge in there}
    assert folders == {
        layout.name: [layout.opens, layout.works, layout.follows, layout.exports, True] for layout in registry.LAYOUTS
    }
    assert len({layout.spec for layout in registry.LAYOUTS}) == len(folders)
    for layout in registry.LAYOUTS:
        assert all((layout.worker, layout.join, layout.explanation, layout.exporter)), "each can be loaded"
