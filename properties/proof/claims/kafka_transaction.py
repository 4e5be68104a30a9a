"""Liveness of Kafka's transactions: every open one is decided, and every decision completes.

The last takes two claims: each partition gets its marker, and there are finitely many; then the decision is complete.
"""

from __future__ import annotations

from typing import Any

from gapless.properties.proof.claims import HelpfulStep, RankedClaim
from gapless.spec.catalog import State
from gapless.spec.kafka_transaction import TxnStatus, is_prepared
from gapless.spec.language import all_between

ASKED_AGAIN = "the coordinator sends markers until every partition has answered, and another one does if it is lost"


def _finished(s: State, part: Any) -> Any:
    """True if a partition has its marker, or is no part of the transaction."""
    return s.added[part] == 0 or s.marked[part] == 1


EVERY_PARTITION_GETS_ITS_MARKER = RankedClaim(
    "every partition gets the marker of its decision",
    "readers of committed transactions wait for ever in a partition that has no marker",
    pending=lambda s, part: is_prepared(s) and not _finished(s, part),
    witness=lambda _s, _part, _none: True,
    rank=lambda _s, _part, _none: 1,
    helpful=(
        HelpfulStep(
            "mark",
            lambda s, part, _none: s.marked[part] == 0,
            lambda s, part, _none: {"part": part, "commit": s.phase == TxnStatus.PREPARE_COMMIT, "epoch": s.epoch},
            ASKED_AGAIN,
            given=lambda s, part, _none, offset: s.reached[part] <= offset,
            looks_first=True,
        ),
    ),
    done=lambda s, part: _finished(s, part) or not is_prepared(s),
    disturbances={},
)

EVERY_DECISION_COMPLETES = RankedClaim(
    "every decision completes, once every partition has its marker",
    "its producer cannot begin another transaction, for ever",
    pending=lambda s, _subject: is_prepared(s) and all_between(0, s.partitions, lambda part: _finished(s, part)),
    witness=lambda _s, _subject, _none: True,
    rank=lambda _s, _subject, _none: 1,
    helpful=(
        HelpfulStep(
            "complete",
            lambda _s, _subject, _none: True,
            lambda s, _subject, _none: {"pid": s.pid, "epoch": s.epoch},
            ASKED_AGAIN,
            looks_first=True,
        ),
    ),
    done=lambda s, _subject: not is_prepared(s),
    disturbances={},
)

EVERY_OPEN_TRANSACTION_IS_DECIDED = RankedClaim(
    "every open transaction is decided",
    "a producer that is gone keeps readers of committed transactions waiting for ever",
    pending=lambda s, _subject: s.phase == TxnStatus.ONGOING,
    witness=lambda _s, _subject, _none: True,
    rank=lambda _s, _subject, _none: 1,
    helpful=(
        HelpfulStep(
            "time_out",
            lambda _s, _subject, _none: True,
            lambda s, _subject, _none: {"epoch": s.epoch + 1, "whole": 1},
            "the coordinator aborts what is open for longer than its producer asked for",
            looks_first=True,
        ),
    ),
    done=lambda s, _subject: is_prepared(s),
    disturbances={},
)

CLAIMS = (EVERY_PARTITION_GETS_ITS_MARKER, EVERY_DECISION_COMPLETES, EVERY_OPEN_TRANSACTION_IS_DECIDED)
