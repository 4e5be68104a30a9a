"""The abstraction function of transactions: states of the specs, by the bytes of the log, and by the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapless.impl.environment.operating_system import Disk
from gapless.impl.files.cursors import CURSORS, read
from gapless.impl.records.record import MAGIC_BLANK, Record
from gapless.impl.store.core import Core, Settings
from gapless.impl.store.groups import GroupCursors
from gapless.impl.transactions import half_table, names
from gapless.impl.transactions.settings import TransactionSettings
from gapless.impl.transactions.transactions import Transactions
from gapless.properties.machines.mismatch import expect
from gapless.properties.machines.spec_refinement import require_same
from gapless.properties.reference_store.transactional.models import TransactionModels, key_of, named_by, times_of
from gapless.spec import transaction
from gapless.spec.language import Number, Position, replace
from gapless.spec.transaction import Phase

PHASES = {
    half_table.UNDECIDED: Phase.PREPARED,
    half_table.COMMITTED: Phase.COMMITTED,
    half_table.ROLLED_BACK: Phase.ROLLED_BACK,
    half_table.PARKED: Phase.PARKED,
}


def opened(disk: Disk, files: Settings, settings: TransactionSettings) -> tuple[Core, Transactions]:
    """The store on a disk, and its transactions."""
    core = Core.open(disk, files)
    return core, Transactions.open(core.log, core.queues, GroupCursors(disk, core.queues.all), settings)


def records(core: Core, low: int = 0) -> Iterator[Record]:
    """Every record of the log from `low` on. Raises Refused where no record begins."""
    at = max(low, core.log.start)
    while at < core.log.end:
        data, base = core.log.view(at)
        if data[at - base + 4 : at - base + 8].tobytes() == MAGIC_BLANK.to_bytes(4, "big"):
            at = base + core.log.file_size
            continue
        record = core.log.at(at)
        yield record
        at += record.size


def transactions(
    tx: Transactions, whole_log: Sequence[Record], models: TransactionModels
) -> dict[str, transaction.State]:
    """Each transaction, by its key: what lies in the log, and what the table says has become of it.

    What only a history knows (what was asked for, and of halves that are forgotten whether they were rolled back) is
    the model's.
    """
    found: dict[str, transaction.State] = {}
    versions: dict[int, str] = {}
    for record in whole_log:
        key = key_of(record)
        if record.topic == names.HALF_TOPIC:
            number, position, times = Number(record.number), Position(record.position), times_of(record)
            s = found.get(key) or transaction.INITIAL
            s = replace(s, positions=s.positions.set(number, position), times=s.times.set(number, times))
            found[key], versions[record.number] = replace(s, newest=number, checks=times, phase=Phase.PREPARED), key
        elif record.topic == names.OP_TOPIC:
            for named in named_by(record):
                key, number = versions[named], Number(named)
                found[key] = replace(found[key], marks=found[key].marks.set(number, found[key].marks[number] + 1))
        elif record.topic == names.PARKED_TOPIC:
            found[key] = replace(found[key], phase=Phase.PARKED)
        elif record.sys_flag & names.COMMITTED:
            s = found[key]
            number = next(n for n in s.positions.entries if s.positions[n] == record.half)
            commits = s.commits.set(number, s.commits[number] + 1)
            found[key] = replace(s, phase=Phase.COMMITTED, finals=s.finals + 1, commits=commits)
    return {key: _with_table(tx, s, models.halves[key]) for key, s in found.items()}


def _with_table(tx: Transactions, s: transaction.State, model: transaction.State) -> transaction.State:
    """The same with what the table says. Raises Mismatch where the two contradict one another."""
    s = replace(
        s, start=model.start, max_checks=model.max_checks, witnessed=model.witnessed,
        commits_reported=model.commits_reported,
        commits_asked=model.commits_asked, rollbacks_asked=model.rollbacks_asked,
    )  # fmt: skip
    if s.newest < tx.table.base:
        return replace(s, phase=model.phase, rollbacks=model.rollbacks)
    for number in s.positions.entries:
        if number >= tx.table.base:
            at = number - tx.table.base
            newest = tx.table.newest(number)
            expect(newest == s.newest, f"half {number}: the table's newest version is {newest}, the log's {s.newest}")
            expect(tx.table.position[at] == s.positions[number], f"half {number} is looked for elsewhere")
            expect(tx.table.checks[at] == s.times[number], f"half {number} has another counter")
    phase = PHASES[int(tx.table.status[s.newest - tx.table.base])]
    if phase == Phase.ROLLED_BACK:
        expect(s.phase == Phase.PREPARED, f"half {s.newest} counts as rolled back, and the log says {s.phase!r}")
        return replace(s, phase=phase, rollbacks=s.rollbacks.set(s.newest, 1))
    expect(s.phase == phase, f"half {s.newest} counts as {phase!r}, and the log says {s.phase!r}")
    return s


def compare(tx: Transactions, whole_log: Sequence[Record], models: TransactionModels) -> None:
    """The implementation is in the state of the models. Raises Mismatch."""
    for key, state in transactions(tx, whole_log, models).items():
        require_same(state, models.halves[key], f"transaction {key}: ")
    waiting, _ = tx.batcher.batch()
    expect(waiting == models.waiting, f"{waiting} wait for their op, expected {models.waiting}")
    expect(tx.batcher.size == models.batcher.size, f"they take {tx.batcher.size} bytes, not {models.batcher.size}")
    if waiting:
        expect(tx.batcher.since == models.batcher.since, f"since {tx.batcher.since}, not {models.batcher.since}")
    cached = list(tx.cache.numbers())
    expect(cached == models.line(), f"the cache holds {cached}, expected {models.line()}")
    cursors = (tx.half_cursor, tx.op_cursor)
    expected = (models.cursors.half_cursor, models.cursors.op_cursor)
    expect(cursors == expected, f"the cursors are {cursors}, expected {expected}")
    expect(tx.table.end == models.cursors.half_end, f"halves end at {tx.table.end}, not {models.cursors.half_end}")


def saved_cursors(disk: Disk) -> tuple[int, int]:
    """The cursors as their file has them."""
    table, _ = read(disk, CURSORS)
    return (
        table.get(f"{names.HALF_TOPIC}@{names.CHECKING_GROUP}", {}).get(0, 0),
        table.get(f"{names.OP_TOPIC}@{names.CHECKING_GROUP}", {}).get(0, 0),
    )
