"""Judges one partition: its log, and all of its producers."""

from __future__ import annotations

from collections.abc import Sequence

from gapless.traces.options import Options
from gapless.traces.replay.exact import Event
from gapless.traces.sources.kafka.joining.abort_judge import AbortJudge
from gapless.traces.sources.kafka.joining.findings import LogFindings, PartitionSummary
from gapless.traces.sources.kafka.joining.log_judge import LogJudge
from gapless.traces.sources.kafka.joining.places import KEPT_ONCE
from gapless.traces.sources.kafka.joining.producer_judge import ProducerJudge
from gapless.traces.sources.kafka.joining.reporter import Reporter
from gapless.traces.sources.kafka.joining.tails import describe_tail
from gapless.traces.sources.kafka.judging.key_judge import KeyJudge
from gapless.traces.sources.kafka.judging.part_results import PartResult
from gapless.traces.sources.kafka.judging.parts import NONE, PartitionTerms


class PartitionJudge:
    """Judges one partition, part by part, in the order of their offsets."""

    def __init__(self, terms: PartitionTerms, found: LogFindings, options: Options, *, listed: bool = False) -> None:
        """`listed`: a row of each producer is wanted."""
        self.terms = terms
        self.listed = listed
        self.reporter = Reporter(terms, found, options)
        self.log = LogJudge(self.reporter)
        self.producers = ProducerJudge(self.reporter)
        self.aborts = AbortJudge(self.reporter)
        self.keys = KeyJudge()
        self.last: PartResult | None = None
        self.snapped = NONE  # the offset of the last snapshot that was read

    @property
    def summary(self) -> PartitionSummary:
        """The partition in numbers."""
        return self.reporter.summary

    @property
    def end(self) -> int:
        """The offset behind the last record, as far as the log was read."""
        return self.last.end if self.last else self.terms.start

    @property
    def undecided(self) -> int:
        """The first offset of the earliest transaction that is open; -1 if none is.

        Of a compacted log markers may be gone. There, older transactions are open only if the snapshot at the active
        segment, which no cleaner touches, has them.
        """
        active = self.last.part.segment.base if self.last else self.terms.start
        if not self.terms.compacted or self.snapped >= active:
            return self.producers.table.undecided()
        return self.producers.table.undecided(min(active, self.terms.judged_from))

    def add(self, result: PartResult) -> None:
        """Adds the result of the next part."""
        self.summary.batches += result.batches
        self.summary.records += result.records
        self.summary.segments += result.part.opens
        if result.part.opens:
            self.summary.bases.append(result.part.segment.base)
            if result.part.segment.offset_index is not None:
                self.summary.last_index = result.part.segment.offset_index, result.part.segment.base
        self.last = result
        self.snapped = max([self.snapped, *(one.offset for one in result.producers.snapshots)])
        self.log.add(result)
        self.producers.add(result)
        self.aborts.add(result)
        self.keys.add(result.part, result.keys)

    def repeated_key(self) -> int:
        """Returns the offset of a record below the cleaner's point whose key comes again there; -1 if none has to go.

        Of a topic that is not compacted any more, and in a directory that was not stopped in order, the point may be
        another log's or a younger one's. Raises OSError.
        """
        if self.log.state is None or not self.terms.deep:
            return NONE
        found, name = self.keys.repeated(), self.terms.name
        if not self.keys.is_whole:
            share = f": keys were compared of which the hash ends in {self.keys.zeros} zeros" if self.keys.zeros else ""
            self.reporter.found.not_exercised.append(f"{KEPT_ONCE}: {name}: not all keys were compared{share}")
        if found is None:
            return NONE
        if not self.terms.is_cleaned:
            self.reporter.found.doubt(
                f"{name}: the records at {found.offset:,} and {found.later:,} have one key, and the cleaner's point is "
                f"{self.terms.cleaned:,}: legal if the log was copied before its point, or the topic is no longer "
                "compacted; damage otherwise"
            )
            return NONE
        self.log.repeated = found
        return found.offset

    def finish(self, events: Sequence[Event]) -> None:
        """Judges what checkpoints say of the partition, as events behind its last part."""
        table = self.producers.table
        self.summary.producers = len(table.ids)
        self.summary.departed = table.ended.tolist()
        if self.listed:
            self.summary.listed = list(zip(table.ids.tolist(), table.events.tolist(), strict=True))
        self.summary.end = self.end
        if self.last is not None:
            describe_tail(self.last, self.reporter.found)
            self.log.finish(self.last, events)
            if table.lost_transaction():
                self.summary.stable = NONE
