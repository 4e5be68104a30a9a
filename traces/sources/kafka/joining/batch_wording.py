"""A batch in words: its offsets, its producer, and the record in it that is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from gapless.traces.report.wording import plural
from gapless.traces.sources.kafka.log.batches import Batches, Chunk
from gapless.traces.sources.kafka.log.records import ContentFault, Contents, contents

CODECS = ("uncompressed", "gzip", "snappy", "lz4", "zstd")


def batch_in_words(chunk: Chunk, *, deep: bool) -> tuple[str, ...]:
    """Return sentences on the first batch of a chunk, and on its records if they are judged."""
    heads = chunk.batches
    return (_head(heads), *(_records(heads, contents(chunk)) if deep and heads.is_sound[0] else ()))


def _head(heads: Batches) -> str:
    codec = int(heads.codec[0])
    what = "marker" if heads.is_control[0] else "batch"
    base, last = int(heads.base[0]), int(heads.last[0])
    offsets = f"offset {base:,}" if base == last else f"offsets {base:,} to {last:,}"
    line = f"The {what} has the {offsets}: {plural(int(heads.count[0]), 'record')}"
    line += f" in {plural(int(heads.size[0]), 'byte')}, {CODECS[codec] if codec < len(CODECS) else f'codec {codec}'}"
    if heads.producer[0] < 0:
        return f"{line}."
    line += f", of producer {heads.producer[0]} in epoch {heads.producer_epoch[0]}"
    if heads.sequence[0] < 0:
        return f"{line}."
    return f"{line}, sequences {heads.sequence[0]:,} to {heads.last_sequence[0]:,}."


def _records(heads: Batches, found: Contents) -> Iterator[str]:
    """Yield a sentence for each thing that is wrong with the records of the first batch."""
    base, parsed, fault = int(heads.base[0]), int(found.parsed[0]), ContentFault(int(found.fault[0]))
    match fault:
        case ContentFault.CODEC:
            yield "Its records cannot be unpacked."
        case ContentFault.LARGE:
            yield "Its records unpack to more than is read."
        case ContentFault.RECORDS:
            yield f"Its record {parsed + 1} does not end where its length says, or not within the batch."
        case ContentFault.COUNT:
            more = " or more" if parsed > heads.count[0] else ""
            yield f"It has {plural(parsed, 'record')}{more}, and its head says {int(heads.count[0]):,}."
        case ContentFault.CONTROL:
            yield "Its record is none of a marker."
        case ContentFault.OK if parsed:
            last = base + int(found.last[0])
            if not found.rising[0] or last > heads.last[0]:
                yield f"Its records go from offset {base + int(found.first[0]):,} to {last:,}, and do not all go up."
            if found.max_time[0] != heads.max_time[0]:
                at = base + int(found.max_at[0])
                greatest, written = int(found.max_time[0]), int(heads.max_time[0])
                yield f"The greatest time is {greatest}, of the record at offset {at:,}; its head says {written}."
