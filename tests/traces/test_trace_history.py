"""`gapless explain` of one trace in a file of events: its life, its story, or that there is none."""

from pathlib import Path
from typing import Any

import pytest

from gapless.spec.catalog import State
from gapless.traces.events import schema
from gapless.traces.events.event import Origin
from gapless.traces.replay import trace_history
from gapless.traces.replay.notation import changes
from gapless.traces.replay.trace_history import LONGEST_HISTORY
from tests.support.command_line import gapless
from tests.support.event_files import LOG, QUEUE, UnplacedEvent, append, cut, index, opened, step


def explained(
    path: Path, recorded: list[UnplacedEvent], trace: str, *, suffix: str = ".ndjson"
) -> tuple[int, list[str]]:
    file = path / f"events{suffix}"
    events = [tell(at) for at, tell in enumerate(recorded)]
    schema.write_events(file, events, origin=Origin(profile="rocketmq"))
    if suffix == ".parquet":
        cut(file, 2)
    ran = gapless("explain", file, "--trace", trace)
    return ran.exit_code, ran.stdout.splitlines()


@pytest.mark.parametrize("suffix", [".ndjson", ".parquet"])
def test_a_trace_that_departs_nowhere_tells_its_life(tmp_path: Path, suffix: str) -> None:
    mingled = [event for pair in zip([*QUEUE, step("end")], LOG, strict=False) for event in pair]
    code, lines = explained(tmp_path, mingled, "TopicTest/3", suffix=suffix)
    assert code == 0
    assert lines == [
        "TopicTest/3 conforms: 7 events.",
        "",
        "  1. open(number=0, start=0)                                    nothing changes",
        "  2. append(number=0, count=1, position=0, size=340, tag=0)     end 0 → 1, sizes[0] 0 → 340",
        f"  3. append(number=1, count=1, position=340, size=340, tag=0)   {SECOND}",
        "  4. index(number=0, position=0, size=340, tag=0)               indexed 0 → 1, entry_sizes[0] 0 → 340",
        f"  5. index(number=1, position=340, size=340, tag=0)             {ENTRY}",
        "  6. settle(upto=680)                                           nothing changes",
        "  7. end()                                                      nothing changes",
    ]


SECOND = "end 1 → 2, positions[1] 0 → 340, sizes[1] 0 → 340"
ENTRY = "indexed 1 → 2, entry_positions[1] 0 → 340, entry_sizes[1] 0 → 340"


def test_a_life_says_what_is_not_observed(tmp_path: Path) -> None:
    events = [
        opened(),
        append(0, 0, outcome="unknown"),  # the next one carries its number: it did not happen
        append(0, 50, outcome="inferred"),
        append(1, 390, outcome="unknown"),  # the next one follows it
        append(2, 730),
        index(1, 390, outcome="refused"),
        append(0, 1070),
    ]
    code, lines = explained(tmp_path, events, "TopicTest/3")
    assert code == 0
    results = [line.split("   ")[-1].strip() for line in lines[2:]]
    assert results[1] == "its outcome is unknown; here it did not happen"
    assert results[2].endswith("(inferred from later events)")
    assert results[3].endswith("(its outcome is unknown; here it happened)")
    assert results[5] == "refused, as the spec requires"
    assert results[6].endswith("(append to a queue made anew)")


def test_subjects_of_one_name_are_reported_apart(tmp_path: Path) -> None:
    both = [opened(trace="T/0"), step("open", 0, 1, spec="dispatch", trace="T/0")]
    code, lines = explained(tmp_path, both, "T/0")
    assert code == 0
    assert [line for line in lines if line.startswith("As a")] == ["As a trace of dispatch:", "As a trace of queue:"]


def test_a_long_life_leaves_out_its_middle(tmp_path: Path) -> None:
    long = [opened(), *(append(number, 340 * number) for number in range(LONGEST_HISTORY + 99))]
    _, lines = explained(tmp_path, long, "TopicTest/3")
    assert len(lines) == 2 + LONGEST_HISTORY + 1
    assert "     100 steps are left out here" in lines
    assert lines[-1].startswith(f"{LONGEST_HISTORY + 100}. append(number={LONGEST_HISTORY + 98},")


def test_only_what_is_reported_of_a_long_life_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The changes of a step are found by a scan of whole Maps, which grow with the trace."""
    looked: list[State] = []

    def counted(before: State, after: State) -> Any:
        looked.append(before)
        return changes(before, after)

    monkeypatch.setattr(trace_history, "changes", counted)
    long = [opened(), *(append(number, 340 * number) for number in range(LONGEST_HISTORY + 99))]
    code, _ = explained(tmp_path, long, "TopicTest/3")
    assert (code, len(looked)) == (0, LONGEST_HISTORY)


def test_a_trace_that_is_not_there_is_stated_not_to_be(tmp_path: Path) -> None:
    broken = [*QUEUE[:4], index(1, 680)]
    code, lines = explained(tmp_path, broken, "missing")
    assert (code, lines) == (
        3,
        [f"{tmp_path}/events.ndjson: no trace called missing in it: nothing was checked; there: TopicTest/3"],
    )


def test_a_trace_next_to_one_that_departs_has_its_life_and_that_one_its_story(tmp_path: Path) -> None:
    events = [*QUEUE[:4], index(1, 680), *LOG]
    code, lines = explained(tmp_path, events, "commitlog")
    assert (code, lines[0]) == (0, "commitlog conforms: 9 events.")
    assert len(lines) == 2 + len(LOG)
    code, lines = explained(tmp_path, events, "TopicTest/3")
    assert (code, lines[0]) == (1, "queue TopicTest/3 departs at events.ndjson, line 6.")


def test_who_does_not_begin_with_open_tells_no_life(tmp_path: Path) -> None:
    code, lines = explained(tmp_path, [append(0, 0), index(0, 0)], "TopicTest/3")
    assert (code, len(lines)) == (3, 1)
    assert "do not begin with open, and were not judged" in lines[0]
