"""Situations of the index of a DLedger log."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.blame.situation import POWER_LOSS, accuse, doubt, pass_by, situation

NO_FILE = situation(
    "dledger_index/has-no-file", "rocketmq.md#dledger-index-start", "{name}/ has no file",
    doubt("whether entries have their units is not known"),
)  # fmt: skip
NO_UNITS = situation(
    "dledger_index/last-entries-have-no-units", "rocketmq.md#dledger-index",
    "{name}/: {count:entry|entries} from {first:,} on {count:?has no unit|have no units of theirs}",
    accuse("stopped"),
    doubt(", further back than the {files} files that a start writes units of again: " + POWER_LOSS,
          "killed or copied or running, on"),
    pass_by("killed or copied or running, off", text=", as a kill or a power loss leaves it"),
    on="they are further back than a start looks", off="a start writes them again",
)  # fmt: skip
