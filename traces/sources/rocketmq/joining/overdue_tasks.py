"""The tasks of a store's broker whose time has come, and that wait at the end of the log.

A half is to be asked about, a decision is to be named by an op, a delayed message or a timer is to be handed out. How
late each is, the spec `deadline` judges; here they are found, and it is found how long the broker has lived since.

Source: docs/operator.md#overdue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.spec.deadline import DAY, TaskKind
from gapless.traces.judging.building import Events, states
from gapless.traces.judging.findings.lateness import LISTED, SPEC, LateTask
from gapless.traces.options import Options
from gapless.traces.replay.kernels import kernel
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import among, distinct
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.segments.lifetime import Lifetime
from gapless.traces.sources.rocketmq.store.file_access import header_of, name_of_record, read_slot
from gapless.traces.sources.rocketmq.store.flush_times import timer_times
from gapless.traces.sources.rocketmq.store.group_cursors import level_cursors
from gapless.traces.sources.rocketmq.store.names import SCHEDULE_TOPIC
from gapless.traces.sources.rocketmq.store.settings import is_slave, number_set
from gapless.traces.sources.rocketmq.transactions.transaction_rows import (
    BORN,
    BY_PLACE,
    FINAL,
    HALF,
    IMMUNE,
    KEY,
    KIND,
    MARK,
    NAMES,
    NUMBER,
    PARKED,
    PLACE,
    TIME,
)

CHECK_INTERVAL, CHECK_TIMEOUT = 60_000, 6_000  # ms, the longest that are any broker's defaults
OP_INTERVAL, SHORTEST = 3_000, 1_000  # ms, the default; and a round that a loaded machine may keep
LEVELS_SAVED = 10_000  # ms, after which a broker writes down how far it has come in each delay level
OF_ONE_LEVEL = 1 << 10  # messages of a delay level that are looked at
ANOTHER_BROKER = "enableSlaveActingMaster"  # with it, another broker may do what this one is late with


@dataclass(frozen=True)
class WaitingTasks:
    """Tasks of one kind: when each is due in ms, and the log position of what it is about.

    `period`: ms between two looks of the broker · `name`: of a task, by its index · `lived`: the life that counts.
    """

    kind: TaskKind
    due: Ints
    places: Ints
    period: int
    name: Callable[[int], str]
    lived: Lifetime


def lived_on(judged: StoreFindings) -> Lifetime:
    """Returns the life of the broker up to the last turn of its timer wheel, if it is a master.

    A slave has that time from its master; in a copy it may be younger than the log.
    """
    store, found = judged.store, judged.lived
    if not store.settings or is_slave(store.settings) or store.of_moments:
        return found
    turned, *_ = timer_times(Path(store.path)) or (0,)
    return found.followed_by(Lifetime(np.array([[turned], [0]]), turned)) if turned > found.now > 0 else found


class OverdueTasks:
    """Judges how late the tasks of one store are."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        self.judged = judged
        self.store = judged.store
        self.options = options

    @property
    def is_judged(self) -> bool:
        """True if all of the store is judged, and no damage may contain what seems not to be done."""
        asked = self.options.topic is None and self.options.trace is None
        return asked and not self.judged.damage and not self.store.setting(ANOTHER_BROKER)

    def judge(self, tasks: WaitingTasks) -> None:
        """Replays all tasks whose time has come by a kernel; the worst of those that are overdue are remembered."""
        late = tasks.lived.since(tasks.due, in_one_life=self.store.first_life)
        (some,) = np.nonzero(late > 0)
        if not len(some) or not self.is_judged:
            return
        spec, of = SPECS[SPEC], kernel(SPEC, self.options.ignored)
        events = Events.room(spec, 3 * len(some))
        events.action[:] = np.tile([spec.codes[step] for step in ("open", "live", "wait")], len(some))
        for argument, values in (("task", int(tasks.kind)), ("due", tasks.due[some]), ("period", tasks.period)):
            events.column(argument)[::3] = np.minimum(values, DAY) if argument == "period" else values
        events.column("time")[1::3] = late[some]
        replayed = of.replay(
            np.arange(0, 3 * len(some) + 1, 3), events.action, events.args, states(spec, len(some)),
            profile=self.options.profile,
        )  # fmt: skip
        self.judged.cover(SPEC, dict(zip(spec.actions, replayed.covered.tolist(), strict=True)))
        if self.judged.exported:
            for at, task in enumerate(some.tolist()):
                steps = [events.at(number) for number in range(3 * at, 3 * at + 3)]
                self.judged.joint(self.judged.end, SPEC, tasks.name(task), steps)
        (found,) = np.nonzero(replayed.deviant)
        if len(found):
            self._remember(tasks, some[found], replayed.state[:, found])

    def _remember(self, tasks: WaitingTasks, some: Ints, state: Ints) -> None:
        """Counts those that are overdue, and keeps the worst of them."""
        scalars = SPECS[SPEC].scalars
        worst = np.argsort(-state[scalars.index("found")], kind="stable")[:LISTED]
        for at in worst.tolist():
            values = dict(zip(scalars, state[:, at].tolist(), strict=True))
            self.judged.overdue.append((LateTask(tasks.name(int(some[at])), values), int(tasks.places[some[at]])))
        first = self.judged.overdue[-len(worst)]
        self.judged.anomaly("overdue", len(some), first[1], first[0].trace)

    # -- transactions ------------------------------------------------------------------------------------------------

    def judge_transactions(self, rows: Ints, half_cursor: int) -> None:
        """Judges the halves that wait for a check, and the decisions that wait for an op.

        `rows`: of all transactions that are not settled, in log order · `half_cursor`: -1 where it is not known.
        """
        if not self.is_judged or not rows.shape[1]:
            return
        kind = rows[KIND]
        halves = rows[:, (kind == HALF) & (rows[NUMBER] < BY_PLACE)]
        newest = halves[:, _last_of_each(halves[KEY])]
        named = distinct(rows[NAMES, kind == MARK])
        over = distinct(halves[KEY, among(halves[NUMBER], named)])
        newest = newest[:, ~among(newest[KEY], over) & ~among(newest[KEY], distinct(rows[KEY, kind == PARKED]))]
        finals = rows[:, kind == FINAL]
        decided = among(newest[KEY], distinct(finals[KEY]))
        self._judge_halves(newest[:, ~decided & (newest[NUMBER] >= half_cursor)])
        if self.store.first_life:  # otherwise the end of a life may have taken it
            self._judge_decisions(newest[:, decided], finals)

    def _judge_halves(self, halves: Ints) -> None:
        settings = self.store.settings
        timeout = number_set(settings, "transactionTimeOut", CHECK_TIMEOUT)
        due = np.maximum(halves[TIME], halves[BORN]) + np.maximum(halves[IMMUNE], timeout)
        interval = number_set(settings, "transactionCheckInterval", CHECK_INTERVAL, least=1)
        self.judge(self._of_transactions(TaskKind.HALF, due + interval, halves[PLACE], max(interval, SHORTEST)))

    def _judge_decisions(self, halves: Ints, finals: Ints) -> None:
        """Judges finals that no op names, unless their half was put back since: then the check service has it."""
        last = finals[:, _last_of_each(finals[KEY])]
        last = last[:, among(last[KEY], distinct(halves[KEY]))]
        put_back = halves[TIME, np.argsort(halves[KEY])][np.sort(halves[KEY]).searchsorted(last[KEY])]
        last = last[:, put_back <= last[TIME]]
        interval = number_set(self.store.settings, "transactionOpBatchInterval", OP_INTERVAL, least=1)
        self.judge(self._of_transactions(TaskKind.OP, last[TIME], last[PLACE], max(interval, SHORTEST)))

    def _of_transactions(self, kind: TaskKind, due: Ints, places: Ints, period: int) -> WaitingTasks:
        def name(task: int) -> str:
            return name_of_record(self.store, int(places[task]))

        return WaitingTasks(kind, due, places, period, name, self.judged.lived)

    # -- delayed messages ----------------------------------------------------------------------------------------------

    def judge_levels(self) -> None:
        """Judges the messages of each delay level that the level's cursor has not passed."""
        if self.store.live or self.store.of_moments or not self.is_judged:
            return
        period = SHORTEST if self.store.clean else LEVELS_SAVED
        for cursor in level_cursors(self.store, []):
            run = self.judged.queues.get((cursor.topic, cursor.queue))
            if run is None or run.departs or cursor.to < run.first:
                continue
            self._judge_level(cursor.queue, range(cursor.to, min(run.indexed, cursor.to + OF_ONE_LEVEL)), period)

    def _judge_level(self, queue: int, numbers: Sequence[int], period: int) -> None:
        slots = np.array([read_slot(self.store, SCHEDULE_TOPIC, queue, number) for number in numbers], np.int64)
        if not len(slots):
            return
        (there,) = np.nonzero(slots[:, 1] > 0)
        places = slots[there, 0]
        stored = np.array([header_of(self.store, place).time for place in places.tolist()], np.int64)
        # The tag code is the time that it is for; one that is none is handed out at once (docs/rocketmq.md#entry).
        due = np.maximum(slots[there, 2], stored)

        def name(task: int) -> str:
            return f"{SCHEDULE_TOPIC}/{queue}+{numbers[int(there[task])]}"

        self.judge(WaitingTasks(TaskKind.DELAY, due, places, period, name, self.judged.lived))


def _last_of_each(keys: Ints) -> Ints:
    """Returns the place of the last of equal keys, for each key; they come in log order."""
    _, last = np.unique(keys[::-1], return_index=True)
    return np.sort(len(keys) - 1 - last)
