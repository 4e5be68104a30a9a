"""What transactions cost, swept over their rate, as a table and a plot of docs/figures.md.

python -m benchmarks.transactions           # print the tables
python -m benchmarks.transactions --write   # and put them into docs/figures.md and docs/transactions.svg

Halves per op, bytes and hit rates are counted in virtual time, so they are the same on every machine, and a test holds
the page to them. How soon a committed message is visible is measured.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import log10
from pathlib import Path
from random import Random
from threading import Thread

from benchmarks.implementation import BATCH, columns
from benchmarks.pictures import drawn
from benchmarks.rows import answer
from gapless.impl.environment.memory import MemoryDisk
from gapless.impl.records.record import properties_bytes
from gapless.impl.store.core import Core
from gapless.impl.store.core import Settings as CoreSettings
from gapless.impl.store.groups import GroupCursors
from gapless.impl.transactions.settings import TransactionSettings
from gapless.impl.transactions.transactions import Transactions
from gapless.store import Settings, Store

RATES = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)  # transactions a second
COUNT = 6_000  # transactions at each rate
BODY = bytes(300)
PROPERTIES = {"TAGS": "paid"}
CAPACITY = 1_000  # of the cache whose hits are counted; only how many times that are open matters
ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- transactions: python -m benchmarks.transactions --write -->", "<!-- end of transactions -->"


@dataclass(frozen=True)
class BatchCost:
    """The results of so many transactions a second.

    `ops`: bytes of ops a transaction · `amplification`: bytes of the log a transaction, to those of a plain message ·
    `…alone`: the same with one op a half.
    """

    rate: int
    halves_per_op: float
    ops: float
    ops_alone: float
    amplification: float
    amplification_alone: float


@contextmanager
def _core() -> Iterator[tuple[Core, GroupCursors]]:
    disk = MemoryDisk()
    core = Core.open(disk, CoreSettings(file_size=1 << 26, queue_file_size=6_000_000, workers=0))
    yield core, GroupCursors(disk, core.queues.all)
    core.abandon()


def batching(rate: int) -> BatchCost:
    """Transactions that are committed as soon as they are begun, at an even rate."""
    ops, halves_per_op, whole = _written(rate, TransactionSettings())
    alone, _, whole_alone = _written(rate, TransactionSettings(op_batch_bytes=1))
    plain = _plain()
    return BatchCost(rate, halves_per_op, ops, alone, whole / plain, whole_alone / plain)


def _written(rate: int, settings: TransactionSettings) -> tuple[float, float, float]:
    """Bytes of ops a transaction, halves that an op names, and bytes of the log a transaction."""
    with _core() as (core, cursors):
        tx = Transactions.open(core.log, core.queues, cursors, settings)
        begin, others, now = core.log.end, 0, 0
        for number in range(COUNT):
            now = 1_000 * number // rate
            if tx.op_is_due(now):
                tx.write_op(now)
            half = tx.prepare("orders", 0, BODY, PROPERTIES, "producers", now)
            others += half.size + core.log.at(tx.commit(half.number, now).position).size
        tx.write_ops(now)
        counts, size = tx.counts(), core.log.end - begin
        return (size - others) / COUNT, counts.named / counts.ops, size / COUNT


def _plain() -> int:
    """Bytes of the same message without a transaction."""
    with _core() as (core, _):
        return core.append(core.queues.named("orders", 0), BODY, properties_bytes(PROPERTIES), 0)[1]


def hit_rate(times: int, order: str) -> float:
    """The share of decisions that find their half in the cache, with so many times its capacity open.

    `order`: in which they are decided: the eldest first, or any of them.
    """
    chance, among = Random(0), times * CAPACITY
    with _core() as (core, cursors):
        settings = TransactionSettings(cache_capacity=CAPACITY)
        tx = Transactions.open(core.log, core.queues, cursors, settings)
        undecided: list[int] = []
        for now in range(4 * among):
            if len(undecided) == among:
                at = 0 if order == "eldest" else chance.randrange(among)
                tx.commit(undecided.pop(at), now)
            undecided.append(tx.prepare("orders", 0, b"", {}, "producers", now).number)
        counts = tx.counts()
        return counts.cache_hits / (counts.cache_hits + counts.cache_misses)


def visible(capacity: int, folder: Path, count: int = 2_000) -> list[float]:
    """Measure the time from `commit` to a visible message, in ms, of many, one after the other."""
    took = []
    with Store.open(folder, Settings(file_size=1 << 26)) as store:
        settings = TransactionSettings(cache_capacity=capacity)
        with store.transactions("producers", settings=settings) as tx:
            for number in range(count):
                half = tx.begin("orders", 0, BODY).half
                began = time.perf_counter()
                tx.commit(half.number)
                store.wait_for("orders", 0, number)
                took.append(1_000 * (time.perf_counter() - began))
    return took


# -- rows of `make bench` --------------------------------------------------------------------------------------------


def batched(folder: str, count: int) -> None:
    """Transactions ten thousand at a time: begun as columns, and committed."""
    messages = columns()

    def send(store: Store) -> None:
        with store.transactions("producers") as tx:
            for _ in range(count // BATCH):
                tx.commit_batch(tx.begin_batch(messages))

    _timed(folder, count, send, Settings())


def one_by_one(folder: str, count: int, threads: int) -> None:
    """Transactions of several threads, each on disk before it is committed, and when it is."""

    def send(store: Store) -> None:
        with store.transactions("producers") as tx:
            _side_by_side(threads, lambda: [tx.begin("orders", 0, BODY).commit() for _ in range(count // threads)])

    _timed(folder, count, send, Settings(synchronous=True))


def two_appends(folder: str, count: int, threads: int) -> None:
    """Append two messages each without a transaction, one after the other: the limit that the disk sets."""

    def send(store: Store) -> None:
        def ask() -> None:
            for _ in range(2 * (count // threads)):
                store.append("orders", 0, BODY, tag="paid")

        _side_by_side(threads, ask)

    _timed(folder, count, send, Settings(synchronous=True))


def check_round(folder: str, count: int) -> None:
    """One round over undecided halves, whose producers do not know yet: all are put back, and asked about."""
    with tempfile.TemporaryDirectory(dir=folder) as made, Store.open(made) as store:
        settings = TransactionSettings(transaction_timeout=0, check_interval=1 << 30)
        with store.transactions("producers", lambda _half: None, settings) as tx:
            for _ in range(count // BATCH):
                tx.begin_batch(columns())
            time.sleep(0.01)  # they have had their time
            service = store._service  # noqa: SLF001 - a round comes by itself otherwise
            assert service is not None  # noqa: S101 - for mypy
            began = time.perf_counter()
            service.check_round()
            answer(time.perf_counter() - began, tx.counts().put_back)


def _timed(folder: str, count: int, send: Callable[[Store], None], settings: Settings) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as made:
        with Store.open(Path(made, "before"), settings) as store:
            send(store)
        with Store.open(Path(made, "store"), settings) as store:
            began = time.perf_counter()
            send(store)
            answer(time.perf_counter() - began, count)


def _side_by_side(threads: int, ask: Callable[[], object]) -> None:
    clients = [Thread(target=ask) for _ in range(threads)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()


# -- shown -----------------------------------------------------------------------------------------------------------


def batching_table(found: Sequence[BatchCost]) -> str:
    """The sweep over rates, in Markdown."""
    head = [
        "| transactions/s | halves an op names | bytes of ops | one op a half | log, to plain ones | one op a half |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    return "\n".join([*head, *map(batching_row, found)])


def batching_row(at: BatchCost) -> str:
    """Its row for a rate."""
    return (
        f"| {at.rate:,} | {at.halves_per_op:,.0f} | {at.ops:,.1f} | {at.ops_alone:,.0f} | {at.amplification:.2f} | "
        f"{at.amplification_alone:.2f} |"
    )


def cache_table() -> str:
    """Hit rates of the cache, in Markdown."""
    head = ["| halves open, to the cache's capacity | decided in any order | the eldest first |", "|--:|--:|--:|"]
    return "\n".join([*head, *map(cache_row, (1, 2, 4))])


def cache_row(times: int) -> str:
    """Its row for so many times the capacity."""
    return f"| {times} × | {hit_rate(times, 'any'):.0%} | {hit_rate(times, 'eldest'):.0%} |"


def visible_line() -> str:
    """Format the measured times until messages are visible."""
    parts = []
    with tempfile.TemporaryDirectory() as made:
        for what, capacity in (("from the cache", TransactionSettings().cache_capacity), ("from the log", 0)):
            took = sorted(visible(capacity, Path(made) / what))
            parts.append(
                f"{what} {statistics.median(took):.2f} ms at the median, {took[len(took) * 99 // 100]:.1f} ms at p99"
            )
    return f"From `commit` to visible, the half taken {'; '.join(parts)}."


def plot(found: Sequence[BatchCost]) -> str:
    """The sweep as a picture: SVG."""
    rates = [log10(at.rate / RATES[0]) / log10(RATES[-1] / RATES[0]) for at in found]
    panels = [
        ("halves an op names", [("batched", [at.halves_per_op for at in found])]),
        (
            "bytes of ops a transaction",
            [("batched", [at.ops for at in found]), ("one op a half", [at.ops_alone for at in found])],
        ),
    ]
    return drawn(
        "transactions.svg.jinja",
        rates=[f"{at.rate:,}" for at in found],
        across=rates,
        panels=[
            (name, [(label, values, [log10(max(value, 0.1) / 0.1) / 4 for value in values]) for label, values in lines])
            for name, lines in panels
        ],
    )


def section(found: Sequence[BatchCost], measured: str) -> str:
    """The part of docs/figures.md."""
    picture = "![halves per op, and bytes of ops, by rate](transactions.svg)"
    return "\n\n".join([BEGIN, batching_table(found), picture, cache_table(), measured, END])


def main() -> None:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--write", action="store_true", help="rewrite the part of docs/figures.md, and docs/transactions.svg"
    )
    asked = parser.parse_args()
    found = [batching(rate) for rate in RATES]
    text = section(found, visible_line())
    if not asked.write:
        print(text)
        return
    page = ROOT / "docs" / "figures.md"
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(f"{before}{text}{rest.partition(END)[2]}")
    (ROOT / "docs" / "transactions.svg").write_text(plot(found))


if __name__ == "__main__":
    main()
