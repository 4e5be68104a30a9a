"""A transactional id of Kafka is the transaction of the proposals, up to its first completion."""

import pytest

from gapless.properties.proof import refinement
from gapless.properties.proof.counterexamples import settled, story
from gapless.spec.catalog import SPECS
from tests.support.kafka import transaction_view
from tests.support.night import NIGHT

KAFKA = SPECS["kafka_transaction"]
AGAIN = "transaction refuses what {} is there, and needs: the half is the first of its transaction."
REFUTED = {
    "add": AGAIN.format("add"),
    "decide": AGAIN.format("decide"),
    "init": "phase COMMITTED → ABSENT",
    "expire": "phase COMMITTED → ABSENT",
    "end": "needs: the transaction is decided or set aside.",
}
"""Steps behind a completion, and rest with an open transaction: what the story of each says."""
STEPS = ["INITIAL", *KAFKA.actions] if NIGHT else ["write"]


@pytest.mark.parametrize("step", STEPS)
def test_one_transaction_of_an_id_is_that_of_the_proposals(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {one.__name__: (one,) for one in transaction_view.STEPS}
    view = refinement.Refinement(
        KAFKA, SPECS["transaction"], transaction_view.transaction_of, steps, (transaction_view,)
    )
    monkeypatch.setattr(refinement, "of", lambda _: iter([view]))
    (asked,) = (one for one in refinement.obligations(KAFKA) if one.step == step)
    answer = settled(asked)
    assert answer.verdict == ("refuted" if step in REFUTED else "proved")
    assert REFUTED.get(step, "") in "\n".join(story(answer) if step in REFUTED else [])
