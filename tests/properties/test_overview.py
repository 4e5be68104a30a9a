"""The page of properties and their evidence is generated, and nothing on it is out of date."""

from __future__ import annotations

import pytest

from gapless.properties import overview
from gapless.properties.faults.false_friends import FALSE_FRIENDS
from gapless.properties.proof.claims import claims_of
from gapless.properties.proof.induction import theory
from gapless.spec.catalog import SPECS

TEXT = overview.PAGE.read_text(encoding="utf-8")


def test_the_page_is_what_would_be_written_now() -> None:
    """Except results from recordings, which `python -m gapless.properties.overview RECORDING…` computes."""
    assert overview.written(TEXT, overview.seen_on(TEXT)) == TEXT


def test_the_page_names_every_property_claim_and_false_friend() -> None:
    for spec in SPECS.values():
        for holds in (*spec.invariants(), *spec.step_properties()):
            assert f"| {holds.__name__.replace('_', ' ')} |" in TEXT
        assert all(claim.sentence in TEXT for claim in claims_of(spec))
    assert all(friend.sentence in TEXT for friend in FALSE_FRIENDS)


def test_what_recordings_show_is_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "touched", lambda *_: iter(()))  # expensive, and covered by the first test
    seen = overview.seen_on(TEXT)
    assert seen["log.append"] > 10_000
    assert seen["transaction.commit"] > 1_000
    assert "log.flush" not in seen
    assert overview.seen_on(overview.written(TEXT, {"log.append": 1_234})) == {"log.append": 1_234}


def test_a_step_touches_only_what_it_changes() -> None:
    spec = SPECS["log"]
    of = theory(spec, False, None)  # noqa: FBT003 - the design's own steps
    (clock,) = (holds for holds in spec.step_properties() if holds.__name__ == "the_clock_never_steps_back")
    assert list(overview.touched(of, clock, 2)) == ["append"]


def test_a_citation_is_a_link_on_the_page() -> None:
    assert overview.linked("docs/rocketmq.md#cl3, #cq1: numbers; apache/rocketmq#5574") == (
        "[rocketmq.md#cl3](../docs/rocketmq.md#cl3), [#cq1](../docs/rocketmq.md#cq1): numbers; "
        "[apache/rocketmq#5574](https://github.com/apache/rocketmq/issues/5574)"
    )
