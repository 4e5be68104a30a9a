"""Compares the deliveries to consumers, as traces report them, with the messages of the log.

The trace of a delivery names no broker, and a message that is not here may be on another one. So a delivery accuses
only if the user says that there is no other broker, and only a log from which nothing has expired.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gapless.traces.sources.rocketmq.clients.evidence import ClientEvidence, SegmentMessages
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import distinct
from gapless.traces.sources.rocketmq.log import scan
from gapless.traces.sources.rocketmq.store.names import HALF_TOPICS

NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True)
class DeliveryResult:
    """The delivered messages that a segment has, by their index in `ClientEvidence.handed`.

    `seen`: those with a record that consumers can read · `halves`: those with a half · `places`: the position of one.
    """

    seen: Ints
    halves: Ints
    places: Ints


def look_for_deliveries(evidence: ClientEvidence, messages: SegmentMessages) -> DeliveryResult:
    """Look for all that was handed out among the messages of a segment."""
    known = evidence.handed[0]
    if not len(known) or not messages.log.shape[1]:
        return DeliveryResult(NOTHING, NOTHING, NOTHING)
    half = messages.of_subject(lambda topic, _: topic in HALF_TOPICS) == 1
    is_half = (messages.row >= 0) & half[messages.row] if len(half) else messages.row >= 0
    seen, halves, places = [], NOTHING, NOTHING
    for keys in (messages.keys[0], messages.keys[3]):
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        mine = known[at] == keys
        seen.append(at[mine & ~is_half])
        if not len(halves):
            halves, first = np.unique(at[mine & is_half], return_index=True)
            places = messages.log[scan.POSITION, np.flatnonzero(mine & is_half)[first]]
    return DeliveryResult(distinct(np.concatenate(seen)), halves, places)
