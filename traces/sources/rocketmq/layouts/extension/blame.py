"""Situations of the extensions of queues."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.blame.situation import accuse, doubt, note, situation

NOT_WHOLE = situation(
    "extension/unit-is-not-whole", "rocketmq.md#extended", "an entry of {queue} names a unit in consumequeue_ext/",
    accuse("stopped"),
    note("the extension of {queue} was copied before its queue, whose entries name units behind its end from "
         "{position:,} of the log on: their tag codes are not judged", "copied, on", alone=True),
    doubt(" that is not whole: legal after a power loss, for queue and extension are flushed each on its own; damage "
          "otherwise"),
    on="nothing is written in it from there on", off="something is",
)  # fmt: skip
