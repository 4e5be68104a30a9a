"""The values in a story: the first counterexample, the requested and the actual value, and who refused a step.

Text, page and JSON have the same ones.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gapless import check
from gapless.spec.catalog import SPECS, Spec
from gapless.spec.language import Map, Refused, all_between, reader
from gapless.traces.events import schema
from gapless.traces.replay import provenance
from gapless.traces.replay.event_rules import OF_EVENTS
from gapless.traces.replay.exact import Departure, Event, named, replay, story
from gapless.traces.replay.notation import (
    BROKER_REFUSED,
    DEPARTING,
    NOT_ALLOWED,
    SEEN_OTHERWISE,
    SHOWN_AS_TAKEN,
    TURNED_AWAY,
    values_text,
)
from gapless.traces.report.outputs import text as texts
from gapless.traces.report.page import html as pages
from gapless.traces.report.values import Finding, Report
from gapless.traces.report.wording import line_kind
from tests.support.event_files import QUEUE, UnplacedEvent, append, index, opened, step, write
from tests.support.night import NIGHT
from tests.support.toy_spec import FENCE, toy
from tests.support.walks import SOME_SPECS, Offer, profiles_of, some_of_each, walks

# -- a made-up spec: quantifiers, and an argument that is called like a field ---------------------------------


@pytest.fixture
def fence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spec:
    spec = toy(tmp_path, "fence", FENCE)
    monkeypatch.setitem(SPECS, "fence", spec)
    return spec


def departing(spec: Spec, *events: Event) -> Departure:
    found = replay(spec.name, spec.initial, events, profile="strict").departure
    assert found is not None
    return found


def here_line(departure: Departure) -> str:
    lines = story(departure, title="", again="")
    return next(line for line in lines if line.startswith("Here: "))


BEGUN: tuple[Event, ...] = (("begin", (1,)), ("work", (0, 1, 2)), ("work", (2, 1, 1)))


def test_a_refused_quantifier_names_its_first_counterexample(fence: Spec) -> None:
    """Number 1 is the first of 0 to 5 that is not done, and neither 3 nor 4 is mentioned."""
    found = departing(fence, *BEGUN, ("finish", (5, 2)))
    assert found.here == {"bits[1]": 0, "to": 5, "done": 0}
    assert next(iter(found.here)) == "bits[1]", "the number that matters comes first"
    assert here_line(found) == "Here: bits[1] = 0, to = 5, done = 0."


def test_it_names_all_that_was_read_there_by_name(fence: Spec) -> None:
    """Also an argument that shares its name with a map; what has a name is called by it."""
    found = departing(fence, *BEGUN, ("finish", (1, 1)))
    assert found.rule == "fence/work-is-not-larger"
    assert found.here == {"kind[0]": 2, "kind asked": 1, "to": 1, "done": 0}
    assert here_line(found) == "Here: kind[0] = LARGE; kind: the step says SMALL; to = 1; done = 0."
    assert [s.number for s in found.steps] == [2], "the step that made it so"


def test_a_counterexample_that_no_key_names_is_named_itself(fence: Spec) -> None:
    found = departing(fence, *BEGUN, ("finish", (1, 2)), ("promise", (3,)))
    assert found.here == {"for n": 1, "done": 1, "to": 3}
    assert here_line(found) == "Here: for n = 1: done = 1, to = 3."


def test_an_argument_that_shares_its_name_with_a_field_is_reported_apart(fence: Spec) -> None:
    found = departing(fence, *BEGUN, ("begin", (2,)), ("work", (1, 1, 1)))
    assert found.here == {"epoch asked": 1, "epoch": 2}
    assert story(found, title="It departs.", again="try") == [
        "It departs.",
        "",
        "  1. begin(epoch=2)                        epoch 1 → 2",
        "  2. work(number=1, epoch=1, kind=SMALL)   not allowed",
        "",
        'work breaks the rule "the worker is of this epoch".',
        "Here: epoch: the step says 1, the state has 2.",
        "Consequence: a worker that was fenced off continues.",
        "3 of 5 events are not the last to change a value that the rule reads, and are left out.",
        "Again: try",
    ]


def test_only_what_the_failed_need_looked_at_is_named(fence: Spec) -> None:
    """Not the epoch, which another need looks at."""
    found = departing(fence, *BEGUN, ("work", (2, 1, 2)))
    assert found.rule == "fence/kind-stays"
    assert here_line(found) == "Here: number = 2; kind: the step says LARGE; kind[2] = SMALL."


def test_quantifiers_within_quantifiers_name_both() -> None:
    watch = provenance.ProvenanceReader()
    bits = provenance.ProvenanceMap(Map(0), "bits", watch, "")

    def holds(a: int) -> bool:
        return all_between(a, 4, lambda b: bits[10 * a + b] == (0 if a < 2 else 1))

    token = reader.set(watch)
    try:
        assert not all_between(0, 4, holds)
    finally:
        reader.reset(token)
    assert [read.label for read in watch.last] == ["for a", "for b", "bits[22]"]
    assert [read.value for read in watch.last] == [2, 2, 0]


# -- the reading ---------------------------------------------------------------------------------------------------


MOST = 100 if NIGHT else 4  # offers of a kind


@pytest.mark.slow
@SOME_SPECS
def test_watched_values_are_read_as_plain_ones_are(spec: Spec) -> None:
    """Steps of random walks, of every kind: the same refusal, or the same state."""
    offers = [offer for profile in profiles_of(spec) for offer in some_of_each(walks(spec, profile), MOST)]
    assert not list(disagreements(spec, offers))
    for offer in (offer for offer in offers if offer.rule):
        args = named(spec.name, offer.event)
        reads = provenance.refused_for(spec.actions[offer.event[0]], offer.after, args)
        assert {read.name for read in reads} <= {*args, *spec.scalars, *spec.maps, "n"}


@pytest.mark.slow
def test_a_reading_that_overlooks_the_first_counterexample_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, whole = SPECS["dispatch"], provenance.ProvenanceReader.all_between
    monkeypatch.setattr(
        provenance.ProvenanceReader, "all_between", lambda self, low, *more: whole(self, low + 1, *more)
    )
    assert any(disagreements(spec, walks(spec, "strict")))


def disagreements(spec: Spec, offers: Iterable[Offer]) -> Iterator[Offer]:
    """The offers at which a step does one thing with plain values, and another with watched ones."""
    for offer in offers:
        action, values = offer.event
        state = offer.after if offer.rule else before(spec, offer)
        if state is None:
            continue
        watch = provenance.ProvenanceReader()
        args = watch.arguments(named(spec.name, offer.event))
        if outcome(spec, watch, action, watch.state(state), args) != outcome(spec, None, action, state, values):
            yield offer


def before(spec: Spec, offer: Offer) -> Any:
    """The state before an offered step, where no deviation leads to it."""
    state = spec.initial
    for name, values in offer.path:
        try:
            state = spec.actions[name](state, *values)
        except Refused:
            return None
    return state


def outcome(spec: Spec, watch: provenance.ProvenanceReader | None, action: str, state: Any, args: Sequence[Any]) -> Any:
    """The rule that refuses, or the contents of the state after the step."""
    token = reader.set(watch)
    try:
        after = spec.actions[action](state, *args)
    except Refused as refusal:
        return refusal.rule
    finally:
        reader.reset(token)
    keys = range(-3, 12)
    return [
        [int(value[key]) for key in keys] if f.name in spec.maps else int(provenance.plain(value))
        for f in fields(spec.initial)
        for value in [getattr(after, f.name)]
    ]


# -- who refused it ------------------------------------------------------------------------------------------------

QUICK = [opened(), append(0, 0), append(1, 340)]
CASES: dict[str, tuple[list[UnplacedEvent], str, dict[str, int]]] = {
    "the model does not allow it": (
        [*QUEUE[:4], index(1, 680)], NOT_ALLOWED, {"number": 1, "position": 680, "positions[1]": 340}
    ),
    "a counterexample": (
        [*QUEUE[:5], step("expire", 2, 100)],
        NOT_ALLOWED,
        {"positions[1]": 340, "start asked": 100, "start": 0, "number": 2, "first": 0},
    ),
    "the broker alone refuses it": (
        [opened(), append(0, 0), append(1, 340, outcome="refused")], TURNED_AWAY, {"number": 1, "count": 1, "end": 1}
    ),
    "the broker refused it before": (
        [*QUICK, index(1, 340, outcome="refused"), append(9, 9, outcome="refused"), index(1, 340)],
        NOT_ALLOWED,
        {"number": 1, "indexed": 0},
    ),
    "it was seen otherwise": (
        [opened(), append(0, 0, saw={"end": 3})], SEEN_OTHERWISE["ok"], {"end": 1, "end seen": 3}
    ),
    "it was refused and seen otherwise": (
        [opened(), append(7, 0, outcome="refused", saw={"end": 3})],
        SEEN_OTHERWISE["refused"],
        {"end": 0, "end seen": 3},
    ),
    "unknown, and neither was observed": (
        [opened(), append(0, 0, outcome="unknown", saw={"end": 3})],
        SEEN_OTHERWISE["unknown"],
        {"end": 1, "end seen": 3},
    ),
    "its cause was unknown": (
        [opened(), append(0, 0, outcome="unknown"), append(1, 340), append(3, 680)],
        NOT_ALLOWED,
        {"number": 3, "end": 2},
    ),
}  # fmt: skip
EVERY_CASE = pytest.mark.parametrize("case", CASES)


def judged(folder: Path, events: list[UnplacedEvent]) -> Report:
    write(folder / "events.ndjson", events)
    return check([str(folder / "events.ndjson")], profile="strict")


def only(report: Report) -> Finding:
    (finding,) = report.findings
    return finding


def test_who_refused_what_has_a_phrase_of_its_own() -> None:
    """None ends with another, and those that say *refused* begin with it."""
    phrases = [*dict.fromkeys((*DEPARTING, BROKER_REFUSED))]
    assert not [(one, two) for one in phrases for two in phrases if one != two and one.endswith(two)]
    assert not any("refused" in one.removeprefix("refused, ") for one in phrases)
    assert "refused" not in NOT_ALLOWED
    for phrase in DEPARTING:
        assert line_kind(3, f"  1. step()   {phrase}") == "departs"
    assert line_kind(3, f"  1. step()   {BROKER_REFUSED}") == "step"


@EVERY_CASE
def test_the_step_that_departs_says_who_took_and_who_refused_it(case: str, tmp_path: Path) -> None:
    events, phrase, here = CASES[case]
    finding = only(judged(tmp_path, events))
    assert finding.here == here
    kinds = [line_kind(number, line) for number, line in enumerate(finding.story)]
    assert kinds.count("departs") == 1
    assert finding.story[kinds.index("departs")].endswith(f"   {phrase}")
    assert not [line for line in finding.story if line.endswith(" refused")]
    assert f'breaks the rule "{finding.needs}".' in "\n".join(finding.story)
    of_events = finding.rule.partition("/")[2] in OF_EVENTS
    assert of_events == (phrase != NOT_ALLOWED)


def test_a_refusal_that_shows_nothing_is_left_out(tmp_path: Path) -> None:
    found = only(judged(tmp_path, CASES["the broker refused it before"][0])).story
    assert not any(BROKER_REFUSED in line for line in found)


DECIDED = {
    "taken": [append(0, 0, outcome="unknown"), append(0, 0, outcome="refused"), append(0, 0)],
    "not taken": [append(0, 0, outcome="unknown"), index(0, 0, outcome="refused"), index(0, 0)],
}


@pytest.mark.parametrize("outcome", DECIDED)
def test_a_refusal_that_shows_the_outcome_of_an_unknown_step_is_in_the_story(outcome: str, tmp_path: Path) -> None:
    """Without it the recording conforms, by the other outcome."""
    steps = DECIDED[outcome]
    unknown, decider, last = only(judged(tmp_path, [opened(), *steps])).story[2:5]
    assert f"its outcome is unknown; shown as {outcome}" in unknown
    assert decider.endswith(f"{BROKER_REFUSED}; that it was refused here shows that step 1 was {outcome}")
    assert last.endswith(NOT_ALLOWED)
    (tmp_path / "without").mkdir()
    assert judged(tmp_path / "without", [opened(), steps[0], steps[2]]).verdict == "conforms"


def test_a_refusal_is_left_out_that_shows_an_outcome_of_no_matter(tmp_path: Path) -> None:
    """The last step departs whatever the outcome was."""
    steps = [append(0, 0, outcome="unknown"), index(0, 0, outcome="refused"), append(9, 0)]
    assert not any(BROKER_REFUSED in line for line in only(judged(tmp_path, [opened(), *steps])).story)


def test_the_model_is_not_quoted_where_it_was_not_asked(tmp_path: Path) -> None:
    write(tmp_path / "events.ndjson", CASES["the broker refused it before"][0])
    ignored = ["queue/broker-refuses-only-what-is-not-allowed"]
    found = only(check([str(tmp_path / "events.ndjson")], profile="strict", ignore=ignored))
    assert not any(BROKER_REFUSED in line for line in found.story)


def test_a_step_of_unknown_outcome_is_not_shown_as_if_it_were_known(tmp_path: Path) -> None:
    events = only(judged(tmp_path, [opened(), append(0, 50, outcome="unknown"), append(1, 390), index(0, 9)])).story
    assert events[2].startswith("  1. append(number=0,")
    assert events[2].endswith(f"positions[0] 0 → 50, sizes[0] 0 → 340 ({SHOWN_AS_TAKEN})")


# -- three forms of one report -------------------------------------------------------------------------------------


def shown_on_a_page(page: str) -> list[str]:
    """The text of every finding's card, one space between words."""
    cards = re.findall(r'<article class="card finding".*?</article>', page, re.DOTALL)
    return [" ".join(unescape(re.sub(r"<[^>]*>", " ", card)).split()) for card in cards]


def parts_of(story: Sequence[str]) -> Iterator[str]:
    """The parts of a story that every form must show: calls, fates, values, and the command to see it again."""
    for line in story[2:]:
        if step := re.match(r"  \d+\. (.*?\))(?: refused)?(?: at line \d+)?   +(.*)", line):
            yield step[1]
            if "→" not in step[2]:
                yield step[2]
            for name, after in re.findall(r"(\w+(?:\[-?\d+\])?) \S+ → ([^\s,]+)", step[2]):
                yield from (name, after)
        elif line.startswith("Here: "):
            yield from re.split("[;,] (?=[a-z])", line[6:-1]) if ": " not in line[6:] else line[6:-1].split("; ")
        elif line.startswith("Again: "):
            yield line[7:]


def every_case(folder: Path) -> Report:
    """One report with a finding of each case: a trace each, in a file each."""
    for number, (events, *_) in enumerate(CASES.values()):
        path = folder / f"{number}.ndjson"
        schema.write_events(path, [tell(at) for at, tell in enumerate(events)])
    return check([str(path) for path in sorted(folder.glob("*.ndjson"))], profile="strict")


def stories_in(lines: Sequence[str]) -> Iterator[list[str]]:
    """The stories of a text, each from its title to its last line."""
    found: list[str] = []
    for line in lines:
        if " departs at " in line or found:
            found.append(line.removeprefix("     "))
        if line.startswith("     Again: "):
            yield found
            found = []


def test_text_page_and_json_tell_the_same(tmp_path: Path) -> None:
    report = every_case(tmp_path)
    written = json.loads(report.as_json())["findings"]
    assert len(written) == len(CASES)
    stories = [finding["story"] for finding in written]

    page = shown_on_a_page(pages.html(report))
    assert len(page) == len(stories)
    for card, story_lines in zip(page, stories, strict=True):
        for part in parts_of(story_lines):
            assert part in card, (part, card)

    out = io.StringIO()
    texts.text(report, Console(file=out, width=400, force_terminal=False), verbose=True)
    assert list(stories_in(out.getvalue().splitlines())) == stories

    for finding, (_, phrase, here), card in zip(written, CASES.values(), page, strict=True):
        assert finding["here"] == here
        assert f"Here: {values_text(finding['here'])}." in finding["story"]
        assert phrase in card
        assert finding["message"] in out.getvalue()


def test_a_finding_without_a_story_says_the_same_of_its_values(tmp_path: Path) -> None:
    finding = only(judged(tmp_path, CASES["a counterexample"][0]))
    bare = finding.model_copy(update={"story": []})
    report = judged(tmp_path, CASES["a counterexample"][0]).model_copy(update={"findings": [bare]})
    (card,) = shown_on_a_page(pages.html(report))
    here = next(line for line in finding.story if line.startswith("Here: "))
    for part in parts_of(["", "", here]):
        assert part in card
