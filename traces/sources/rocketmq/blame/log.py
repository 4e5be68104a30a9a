"""Situations of the log: its end, its gaps, and what may be left of another one."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.blame.situation import SAY_SO, accuse, doubt, note, pass_by, situation

GAP = situation(
    "log/record-behind-a-gap", "operator.md#copies", "a record does not follow the one before it",
    accuse("stopped or copied or running"),
    accuse("killed", unless=f"unless this is a copy whose oldest files expired while others were copied: {SAY_SO}"),
)  # fmt: skip
FILE_ENDS_EARLY = situation(
    "log/file-ends-before-the-next-begins", "operator.md#copies", "a file ends without its blank",
    accuse("stopped or copied or running"),
    accuse("killed", unless=f"unless this is a copy whose next file is younger: {SAY_SO}"),
)  # fmt: skip
LEFT_OUT = situation(
    "log/file-is-missing-behind-others", "operator.md#copies",
    "{count:log file|} left out, since the one before {base:,} is missing",
    accuse("stopped or killed or running"),
    doubt("legal in a copy, for the oldest files may expire while others are copied; damage otherwise", "copied"),
)  # fmt: skip
OLD_BYTES = situation(
    "log/records-behind-the-end", "rocketmq.md#truncation", "{count:record|} behind the log's end at {end}",
    doubt(", where a clean stop leaves zeros: they were left by an append that broke off, or the log was cut off",
          "stopped, on"),
    note(" are old bytes of an earlier truncation"),
    on="the strict profile", off="another profile",
)  # fmt: skip
OLD_BYTES_OR_DAMAGE = situation(
    "log/records-behind-an-end-without-a-time", "rocketmq.md#thrown-away", OLD_BYTES.found,
    doubt(", whose last record has no store time: they are old bytes, over which a broker with duplicationEnable "
          "writes from the beginning on, or the record there is damaged"),
)  # fmt: skip
TORN_AT_THE_END = situation(
    "log/torn-record-behind-the-end", "rocketmq.md#recovery-clean",
    "a record behind the last one names its own place, and is torn",
    accuse("stopped, off", "stopped, first life"), pass_by(),
    on="it is younger than the checkpoint", off="it is not",
)  # fmt: skip
TORN_WITHOUT_TIME = situation(
    "log/torn-record-behind-an-end-without-a-time", "rocketmq.md#thrown-away",
    "what lies at {position} is the rest of an old record, or a damaged one",
    doubt("there is no store time to decide it", "stopped"), pass_by("killed or copied or running"),
)  # fmt: skip
CHECKPOINT_AHEAD = situation(
    "log/checkpoint-is-younger-than-the-log", "rocketmq.md#checkpoint",
    "the checkpoint knows of a record stored at {time} ms, later than any in the log",
    accuse("stopped, on"),
    accuse("killed, on", unless="unless this is a copy of a running broker, with a checkpoint that is younger than the "
                                f"log: {SAY_SO}"),
    doubt(", and no entry names one: either the log lost its last records with their entries, or the checkpoint is "
          "damaged", "stopped or killed, off"),
    note("the checkpoint was copied after the log: it knows of a record that is younger than any in it", "copied",
         alone=True),
    pass_by("running"),
    on="an entry names a record beyond the log's end", off="none does",
)  # fmt: skip
NAMED_BEYOND = situation(
    "log/entry-names-a-record-beyond-the-end", "rocketmq.md#old-slots", "{queues} entries beyond the log's end {end}",
    note("the broker drops them at its next start", "killed or copied or running"),
    accuse("stopped, first life", unless="the entry behind the last one of {queue}"),
    doubt("{queues} an entry behind the last message that points at {position}, beyond the log's end {end}: either the "
          "log lost its last records, or these are old bytes of a truncation at an earlier start",
          "stopped, later life", alone=True),
)  # fmt: skip
LAST_RECORD = situation(
    "log/last-record-departs", "rocketmq.md#recovery-unclean", "the last record departs",
    note("the last record is torn: the broker drops it at its next start", "killed or copied or running", alone=True),
    note("what lies behind is no record of it", "stopped, off", alone=True), accuse("stopped, on"),
    on="only its tag code does", off="in another rule",
)  # fmt: skip
END_OF_LAST_START = situation(
    "log/departs-where-it-ended-at-the-last-start", "rocketmq.md#recovery-clean",
    "the log ended at {end:,} when the broker started last, and no record follows there",
    doubt("either nothing was written since, and what lies behind is old, or the first record that was is damaged",
          "stopped"),
    pass_by("killed or copied or running"),
)  # fmt: skip
TORN_PAGE = situation(
    "log/page-ends-in-zeros", "rocketmq.md#power-loss", "the page at {page:,} ends in zeros",
    accuse("stopped, first life", "running", "stopped or killed, on"),
    doubt(", and the log continues behind it: legal in a copy whose files are of different moments; damage otherwise",
          "copied"),
    doubt(", where the checkpoint does not know the log to be on disk: legal after a power loss, for pages reach the "
          "disk in any order; damage otherwise", "stopped, later life, off", "killed, off"),
    on="the checkpoint knows the log behind it to be on disk", off="it does not",
)  # fmt: skip
CHANGED = situation(
    "log/queue-is-another-when-read-again", "rocketmq.md#deleted-topics", "{trace}",
    doubt(" was deleted, or created again, while it was read: check again"),
)  # fmt: skip
BARE_RECORDS = situation(
    "log/few-records-without-their-checksum", "rocketmq.md#property-crc",
    "{count:record|} from {first} on without a checksum of their own, next to records that carry one",
    doubt("either they were stored in a life of the broker with enabledAppendPropCRC=false, or their properties were "
          "changed (docs/rocketmq.md#property-crc)"),
)  # fmt: skip
