"""The ends of logs: what a stop, a crash or a copy leaves behind the last whole batch.

Source: docs/kafka.md#recovery.
"""

from __future__ import annotations

from gapless.traces.replay.exact import Departure
from gapless.traces.report.wording import plural
from gapless.traces.sources.kafka.joining.findings import LogFindings
from gapless.traces.sources.kafka.judging.part_results import PartResult
from gapless.traces.sources.kafka.judging.parts import PartitionTerms
from gapless.traces.sources.kafka.log.batches import Stop

NEXT_TO_THE_LOG = frozenset({"index", "index_time", "seal", "save"})
"""Steps that leave the log as it is: what comes behind them is judged though they depart."""
OF_LOST_PAGES = frozenset({
    "partition/batch-has-its-checksum", "partition/batch-has-room-for-its-head",
    "partition/records-end-where-their-batch-ends", "partition/full-segment-is-whole-batches",
    "partition/segment-is-named-by-the-offset-that-comes-next", "partition/epoch-begins-where-the-log-ends",
})  # fmt: skip
"""Rules that are broken where pages of a log did not come to the disk, and the files behind them did."""


def may_be_lost(terms: PartitionTerms, departure: Departure, offset: int) -> bool:
    """True if a departure may be what a loss of power leaves: the next start mends it."""
    if terms.is_whole or departure.spec == "producer" or offset < terms.recovered:
        return False
    return departure.spec == "aborted_index" or departure.event[0] in NEXT_TO_THE_LOG or departure.rule in OF_LOST_PAGES


def describe_tail(last: PartResult, found: LogFindings) -> None:
    """Adds a note or a doubt on what lies behind the last whole batch of a partition."""
    terms = last.part.terms
    rest, place = last.size - last.reached, f"{terms.folder}/{last.part.segment.log.name}+{last.reached}"
    match last.stop:
        case Stop.OLD:
            found.doubt(f"{place}: messages of magic 0 or 1, as brokers before 0.11 wrote them, are not judged")
        case Stop.LARGE:
            found.doubt(f"{place}: a batch of more than 128 MiB is not read, nor what lies behind it")
        case Stop.SHORT if not terms.is_whole:
            found.note(
                f"{place}: the last batch is torn, {plural(rest, 'byte')} of it are there: the next start cuts them off"
            )
        case Stop.LENGTH | Stop.MAGIC if not terms.is_whole:
            found.doubt(
                f"{place}: {plural(rest, 'byte')} are no batch: legal if the power was lost, for the next start cuts "
                "them off; damage otherwise"
            )
        case Stop.ZEROS:
            found.note(f"{place}: zeros up to the end of the file: it was allocated beforehand, or pages were lost")
