"""Rates of reading Kafka's segments: heads and checksums alone, and records as well.

    python -m benchmarks.kafka_logs [--records 4000000] [--dir DIR] [--jars DIR]

Segments are made with batches of 16 KiB, plain and by each codec, and with batches of one record; they are used again.
A rate is that of one core, the best of three runs. *unpacking alone*: the library's own time for the same batches.
`--jars`: a folder with Kafka's jars, whose `DumpLogSegments` then reads the same segments, by the clock.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import struct
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pyarrow as pa

from gapless.native import Native
from gapless.traces.sources.kafka.log.batches import GZIP, HEAD, LZ4, PLAIN, SNAPPY, ZSTD, chunks
from gapless.traces.sources.kafka.log.checksums import checksum
from gapless.traces.sources.kafka.log.codecs import Unpacker
from gapless.traces.sources.kafka.log.records import contents

BATCH, SIZE, PATTERNS, RUNS = 163, 90, 16, 3
CODECS = {"none": PLAIN, "lz4": LZ4, "snappy": SNAPPY, "zstd": ZSTD, "gzip": GZIP}
ONE = "one record a batch"
LINKED, INDEPENDENT = bytes.fromhex("04224d184040c0"), bytes.fromhex("04224d18604082")
"""Heads of LZ4 frames with blocks of 64 KiB: as Arrow writes it, and the only one that Kafka's clients read."""
TOOL = "org.apache.kafka.tools.DumpLogSegments"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir(), "gapless-benchmarks"))
    parser.add_argument("--jars", type=Path)
    options = parser.parse_args()
    Native.few = -1
    for name, codec in {**CODECS, ONE: PLAIN}.items():
        log = segment(
            options.dir / "kafka" / name.replace(" ", "-"), options.records, 1 if name == ONE else BATCH, codec
        )
        print(f"{name:20} {measured(log, codec)}", flush=True)
        if options.jars is not None:
            print(f"{'':20} {dumped(log, options.jars)}", flush=True)


def segment(folder: Path, records: int, each: int, codec: int) -> Path:
    """A segment with so many records, `each` in a batch."""
    log = folder / f"{0:020}.log"
    if (folder / str(records)).exists():
        return log
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    chance = random.Random(46)
    made = [_batch(chance, each, codec) for _ in range(PATTERNS)]
    with log.open("wb") as file:
        for number in range(records // each):
            batch = made[number % PATTERNS]
            file.write(struct.pack(">q", number * each) + batch[8:])  # the checksum does not cover the offset
    (folder / str(records)).touch()
    return log


def _batch(chance: random.Random, count: int, codec: int) -> bytes:
    body = b"".join(record(chance, number) for number in range(count))
    covered = struct.pack(">hiqqqhii", codec, count - 1, 1 << 40, (1 << 40) + count, -1, -1, -1, count) + packed(
        body, codec
    )
    return bytes(struct.pack(">qiibI", 0, len(covered) + 9, 0, 2, checksum(covered)) + covered)


def record(chance: random.Random, number: int) -> bytes:
    """A record of about a hundred bytes, `number` in its batch."""
    order = {"order": chance.randrange(10**6), "customer": f"c-{chance.randrange(10**4)}", "amount": chance.random()}
    value = json.dumps(order | {"state": chance.choice(["new", "paid", "sent"])}).encode()[:SIZE]
    body = b"\0" + _varint(number) + _varint(number) + _varint(-1) + _varint(len(value)) + value + b"\0"
    return _varint(len(body)) + body


def _varint(value: int) -> bytes:
    bits = (value << 1) ^ (value >> 63)
    return bytes([bits]) if bits < 128 else bytes([bits & 127 | 128, bits >> 7])


def packed(body: bytes, codec: int) -> bytes:
    """The records of a batch as a producer packs them."""
    if codec == SNAPPY:
        return bytes(pa.compress(body, "snappy", asbytes=True))
    if codec == GZIP:
        return zlib.compress(body, wbits=31)
    streams: dict[int, Literal["lz4", "zstd"]] = {LZ4: "lz4", ZSTD: "zstd"}
    if codec not in streams:
        return body
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, streams[codec]) as stream:
        stream.write(body)
    return bytes(sink.getvalue().to_pybytes()).replace(LINKED, INDEPENDENT, 1)


def measured(log: Path, codec: int) -> str:
    """The rates of a segment."""
    heads, count, batches = best(lambda: shallow(log))
    found, _, _ = best(lambda: deep(log))
    line = f"heads and checksums {count / heads / 1e6:6.1f} M records/s, {batches / heads / 1e6:5.2f} M batches/s, "
    line += f"{log.stat().st_size / heads / 1e9:4.1f} GB/s · records as well {count / found / 1e6:5.1f} M records/s"
    if codec != PLAIN:
        alone, _, _ = best(lambda: unpacked(log))
        line += f" · unpacking alone {count / alone / 1e6:5.1f}: {100 * alone / found:.0f} % of its rate"
    return line


def best(run: Callable[[], tuple[float, int, int]]) -> tuple[float, int, int]:
    """The fastest of some runs."""
    return min(run() for _ in range(RUNS))


def shallow(log: Path) -> tuple[float, int, int]:
    """Seconds, records and batches of a pass over heads."""
    began, records, batches = time.process_time(), 0, 0
    for chunk in chunks(log):
        if not chunk.batches.is_sound.all():
            raise SystemExit(f"{log}: a checksum is another one: remove the folder, and it is made again")
        records += int(chunk.batches.count.sum())
        batches += len(chunk.batches)
    return time.process_time() - began, records, batches


def deep(log: Path) -> tuple[float, int, int]:
    """The same of a pass over records."""
    began, records, batches, unpacker = time.process_time(), 0, 0, Unpacker()
    for chunk in chunks(log):
        found = contents(chunk, unpacker)
        if found.fault.any():
            raise SystemExit(f"{log}: records cannot be read: remove the folder, and it is made again")
        records += int(found.parsed.sum())
        batches += len(found)
    return time.process_time() - began, records, batches


def unpacked(log: Path) -> tuple[float, int, int]:
    """The same of the library alone."""
    taken, unpacker = 0.0, Unpacker()
    for chunk in chunks(log):
        codec, begin = chunk.batches.codec.tolist(), chunk.batches.position - chunk.position
        places = zip(codec, (begin + HEAD).tolist(), (begin + chunk.batches.size).tolist(), strict=True)
        began = time.process_time()
        for kind, low, high in places:
            unpacker.add(kind, chunk.data[low:high].data)
            unpacker.clear()
        taken += time.process_time() - began
    return taken, 0, 0


def dumped(log: Path, jars: Path) -> str:
    """The same by Kafka's own tool, with the start of its JVM."""
    java = shutil.which("java") or "java"
    seconds = []
    for words in ([], ["--deep-iteration"]):
        began = time.perf_counter()
        command = [java, "-Xmx1g", "-cp", f"{jars}/*", TOOL, *words, "--files", str(log)]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        seconds.append(time.perf_counter() - began)
    return f"kafka-dump-log {seconds[0]:.1f} s, with --deep-iteration {seconds[1]:.1f} s"


if __name__ == "__main__":
    main()
