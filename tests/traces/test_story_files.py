"""Story files: a saved finding replays as it is, and any difference is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapless import check
from gapless.traces.options import Options
from gapless.traces.stories import story
from gapless.traces.stories.playing import differences, text_of
from gapless.traces.stories.saving import saved_story
from gapless.traces.stories.shortening import NotATale
from tests.support.command_line import ROOT, gapless
from tests.support.event_files import QUEUE, UnplacedEvent, append, in_log, index, opened, record, step, write

WRONG_ENTRY = """\
gapless story 1
spec: queue
profile: strict

  1. append(number=0, count=1, position=0, size=340, tag=0)     end 0 → 1, sizes[0] 0 → 340
  2. append(number=1, count=1, position=340, size=340, tag=0)   end 1 → 2, positions[1] 0 → 340, sizes[1] 0 → 340
  3. index(number=0, position=0, size=340, tag=0)               indexed 0 → 1, entry_sizes[0] 0 → 340
  4. index(number=1, position=7, size=340, tag=0)               not allowed

index breaks the rule "the entry points at its message".
Here: number = 1, position = 7, positions[1] = 340.
Consequence: consumers receive another message in its place, one twice, or none.
"""
MANY = [opened(), *(e for n in range(300) for e in (append(n, 340 * n), index(n, 340 * n)))]


def saved(folder: Path, events: list[UnplacedEvent]) -> tuple[str, list[str]]:
    """The story of a recording's first finding without its notes, and what differs when it is played."""
    path = folder / "recorded.ndjson"
    write(path, events)
    finding = check(path).violations[0]
    text = saved_story(path, finding.trace, finding, Options(profile="strict"))
    return text.partition("\n#")[0], list(differences(story.parsed(text, path)))


def test_a_finding_becomes_a_story_of_the_steps_that_matter(tmp_path: Path) -> None:
    text, wrong = saved(tmp_path, [*QUEUE[:4], index(1, 7)])
    assert text.strip() == WRONG_ENTRY.strip()
    assert wrong == []


def test_a_long_trace_becomes_a_story_that_begins_in_a_state(tmp_path: Path) -> None:
    text, wrong = saved(tmp_path, [*MANY, append(300, 102_000), index(300, 7)])
    assert wrong == []
    assert text.splitlines()[3:8] == [
        "given: indexed = 300, end = 301, positions[300] = 102000",
        "",
        "  1. index(number=300, position=7, size=340, tag=0)   not allowed",
        "",
        'index breaks the rule "the entry points at its message".',
    ]


@pytest.mark.parametrize(
    ("events", "call", "need"),
    [
        (
            [opened(), append(0, 0, outcome="refused")],
            " refused   refused, though the spec allows it",
            'append breaks the rule "only what',
        ),
        (
            [opened(), append(0, 0, saw={"end": 7})],
            " saw(end=7)   taken, but another state was",
            "append breaks the rule",
        ),
        (
            [in_log("open", 0, 1024), record(0), in_log("flush", 100, outcome="unknown"), in_log("acknowledge", 200)],
            "flush(to=100) unknown",
            "acknowledge breaks the rule",
        ),
    ],
)
def test_outcomes_and_what_was_seen_follow_the_call(
    events: list[UnplacedEvent], call: str, need: str, tmp_path: Path
) -> None:
    text, wrong = saved(tmp_path, events)
    assert call in text
    assert f"\n{need}" in text
    assert wrong == []


WRONG_REFUSAL = (
    "  4. index(number=1, position=340, size=340, tag=0) refused   the broker refused it, and the model allows it"
)
OLD_STORIES = {
    "a rule": (
        ("  4. index(number=1, position=7, size=340, tag=0)   not allowed",),
        ("index needs: the entry points at its message.", "Here: number = 1, position = 7, positions[1] = 340.",
         "Otherwise consumers receive another message in its place, one twice, or none."),
    ),
    "a refusal": (
        (WRONG_REFUSAL,),
        ("Not so: the broker refuses only what is not allowed.",
         "Otherwise a client is turned away for no reason, and what it wanted done stays undone."),
    ),
    "a recorded state": (
        ("  4. index(number=9, position=340, size=340, tag=0) refused   the broker refused it, as the model does",
         "  5. index(number=1, position=340, size=340, tag=0) saw(end=7)   taken, and then seen otherwise",
         "  6. append(number=2, count=1, position=680, size=340, tag=0)   not reached: the step above departs"),
        ("Not so: what the broker saw is what its steps made.", "Here: end: the broker saw 7, the state has 2.",
         "Otherwise the broker goes on from a state that its own steps do not lead to."),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", OLD_STORIES)
def test_a_story_in_the_words_of_an_older_version_is_still_a_test(kind: str) -> None:
    steps, closing = OLD_STORIES[kind]
    old = "\n".join([*WRONG_ENTRY.splitlines()[:7], *steps, "", *closing])
    assert list(differences(story.parsed(old, Path("x.story")))) == []
    for line in (*steps, *closing):
        worse = old.replace(line, line.replace("the broker saw 7", "the broker saw 8").replace("not", "was"))
        wrong = list(differences(story.parsed(worse, Path("x.story"))))
        assert bool(wrong) == (worse != old), line


def test_what_conforms_is_no_tale(tmp_path: Path) -> None:
    path = tmp_path / "recorded.ndjson"
    write(path, [*QUEUE[:4], index(1, 7)])
    finding = check(path).violations[0]
    write(path, QUEUE)
    with pytest.raises(NotATale, match="conform"):
        saved_story(path, finding.trace, finding, Options(profile="strict"))


def test_the_page_shows_a_story_that_is_so(tmp_path: Path) -> None:
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    (text,) = (block.partition("```")[0] for block in page.split("```text\n")[1:] if block.startswith("gapless story"))
    assert list(differences(story.parsed(text, tmp_path / "x.story"))) == []
    assert len(list(differences(story.parsed(text.replace("0 → 1", "0 → 2"), tmp_path / "x.story")))) == 1


def test_what_a_story_leaves_out_is_not_asked() -> None:
    lines = [line.partition("   ")[0] if "append" in line else line for line in WRONG_ENTRY.splitlines()[:8]]
    assert "end 0" not in "\n".join(lines)
    assert list(differences(story.parsed("\n".join(lines), Path("x.story")))) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("end 0 → 1, sizes", "end 0 → 2, sizes", "line 5 says 'end 0 → 2, sizes[0] 0 → 340', and it is 'end 0 → 1, si"),
        ("position=7", "position=340", "line 8 says 'not allowed', and it is 'indexed 1 → 2"),
        ("   not allowed", "", "line 8 says 'that the step is allowed', and it is 'not allowed'"),
        ("position=0, size=340, tag=0)               indexed", "position=9, size=340, tag=0)   indexed", "line 7 says"),
        ("points at its message", "is there", "line 10 says 'index breaks the rule \"the entry is there\".', and"),
        ("positions[1] = 340", "positions[1] = 341", "line 11 says"),
    ],
)
def test_whatever_goes_otherwise_is_caught(old: str, new: str, complaint: str) -> None:
    assert WRONG_ENTRY.count(old) == 1
    wrong = list(differences(story.parsed(WRONG_ENTRY.replace(old, new), Path("x.story"))))
    assert wrong[0].startswith(complaint), wrong


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("gapless story 1", "a story", "line 1: expected 'gapless story 1', as every story begins"),
        ("spec: queue", "spec: q", "line 2: there is no spec 'q': choose among"),
        ("spec: queue", "", "line 1: there is no spec, expected spec: one of aborted_index"),
        ("strict", "stern", "line 3: no such profile: stern, expected one of strict"),
        ("profile: strict", "given: ends = 1", "line 3: given is 'ends', expected one of start"),
        ("profile: strict", "who: me", "line 3: there is a 'who', expected spec, profile or given"),
        ("tag=0)     end", "tag=none)   end", "line 5: append, tag is 'none', expected a whole number"),
        ("number=0, count=1, ", "", "line 5: arguments of append are position, size, tag, expected number, count"),
        ("3. index", "3. indexes", "line 7: no step 'indexes', expected one of queue: open"),
        ("  3. index(", "  3. index ", "line 7: '3. index number=0, position=0"),
    ],
)
def test_what_is_no_story_is_reported_with_its_line(old: str, new: str, complaint: str) -> None:
    assert old in WRONG_ENTRY
    with pytest.raises(story.NoStory) as wrong:
        story.parsed(WRONG_ENTRY.replace(old, new, 1), Path("x.story"))
    assert str(wrong.value).startswith(f"x.story, {complaint}"), wrong.value


def test_values_have_names_and_a_spec_may_lie_next_to_it(tmp_path: Path) -> None:
    text = f"""\
gapless story 1
spec: {ROOT / "examples/lease.py"}

  1. grant(worker=0, token=1)
  2. expire()
"""
    found = story.parsed(text, tmp_path / "x.story")
    assert list(differences(found)) == []
    assert "taken 0 → 1" in text_of(found)
    coordinator = text.replace(f"{ROOT / 'examples/lease.py'}", "coordinator").partition("  1.")[0]
    expected = f"{coordinator}  1. load(number=1, status=OPEN)   not allowed\n"
    assert list(differences(story.parsed(expected, tmp_path / "x.story"))) == []


def test_explain_saves_it(tmp_path: Path) -> None:
    path, out = tmp_path / "recorded.ndjson", tmp_path / "stories" / "wrong.story"
    out.parent.mkdir()
    write(path, [*QUEUE[:4], index(1, 7)])
    done = gapless("explain", path, "--trace", "TopicTest/3", "--save", out)
    assert done.exit_code == 1
    assert done.stdout.endswith(f"story: {out}\n")
    assert out.read_text().startswith(WRONG_ENTRY)
    assert gapless("explain", path, "--trace", "TopicTest/3", "--save", tmp_path / "x.txt").exit_code == 2
    write(path, [*QUEUE, step("settle", 680)])
    done = gapless("explain", path, "--trace", "TopicTest/3", "--save", tmp_path / "y.story")
    assert (done.exit_code, (tmp_path / "y.story").exists()) == (2, False)
    assert "does not depart" in done.stderr
