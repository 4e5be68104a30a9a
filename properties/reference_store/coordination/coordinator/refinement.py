"""A coordinator and its model: both take each step, or both refuse it, and then their states are compared.

The model's log is what is on disk. What the implementation was asked for and has not flushed yet is `on_its_way`: steps
that the model takes when the flush is over. A crash keeps all of a group or none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import immutables

from gapless.impl.coordinator.core import CoordinatorCore
from gapless.impl.coordinator.observer import CoordinatorObserver
from gapless.impl.coordinator.steps import Key
from gapless.impl.coordinator.values import CoordinatorSettings
from gapless.impl.records.errors import Refused
from gapless.properties.machines.mismatch import Mismatch, expect
from gapless.properties.machines.spec_refinement import SpecRefinement, followed, over
from gapless.properties.reference_store.coordination.log_on_disk import LoggedTransaction, logged
from gapless.properties.simulation.choices import Choose, plainest
from gapless.properties.simulation.simulated_disk import PowerLost, SimulatedDisk
from gapless.spec import coordinator as spec
from gapless.spec.coordinator import Request, State, Status
from gapless.spec.language import Map, Number, accepts, replace

CLIENT = b"client-of-a-test"
NO_REQUEST = Request(-1)
DECISIONS: dict[int, int] = {Status.COMMITTED: Status.COMMITTING, Status.ABORTED: Status.ABORTING}


class OnItsWay(NamedTuple):
    """A step that is in memory, or in the log and not flushed."""

    action: Callable[..., State]
    arguments: tuple[int, ...]


class CoordinatorRefinement(SpecRefinement[State]):
    """One coordinator on a simulated disk, through all its lives, and the model."""

    refused = (Refused,)

    def __init__(self, settings: CoordinatorSettings, observer: CoordinatorObserver | None = None) -> None:
        super().__init__(spec.open(spec.INITIAL, settings.max_active))
        self.settings = settings
        self.disk = SimulatedDisk(page=64, sector=16)
        self.observer = observer
        self.now = 1_700_000_000_000
        self.requests: dict[Key, Request] = {}  # those of which the coordinator knows what became of them
        self.names = 0  # of those who take part, so far
        self.asked = 0  # requests so far, as the model numbers them
        self.newest = -1  # of these, as their client numbers them
        self.owners: dict[int, bytes] = {}  # of each transaction: the digest of its token
        self.ended: list[int] = []  # transactions, in the order in which they ended
        self.on_its_way: list[OnItsWay] = []
        self.core = CoordinatorCore(self.disk, settings, observer)
        self.compare()

    # -- the steps of the model --------------------------------------------------------------------------------------

    def ask(self, which: int, life: int) -> None:
        """A request to begin; a repeated one is distinguished from a new one."""
        key = Key(CLIENT, which)
        self.newest = max(self.newest, which)
        before = self.requests.get(key)
        if before is None:
            self._ask_first(key, life)
        else:
            self._ask_again(key, before)
        self.compare()

    def _ask_first(self, key: Key, life: int) -> None:
        owner = self.asked.to_bytes(16)
        accepted = self.core.ask(key, life, self.now, owner=owner)
        s, request = self.model, Request(self.asked)
        self.asked += 1
        room = s.limit == 0 or s.active + s.admitted < s.limit
        expect(accepted == room, f"{s.active} active and {s.admitted} admitted of {s.limit}: answered: {accepted}")
        self.take(spec.admit if accepted else spec.ignore, request)
        self.requests[key] = request
        if accepted:
            number = max(self.core.table)
            self.owners[number] = owner
            self.on_its_way.append(OnItsWay(spec.begin, (number, request, self.now, life)))

    def _ask_again(self, key: Key, request: Request) -> None:
        """Nothing happens but the same answer again, or none, as before."""
        fate, owner = self.model.fates[request], int(request).to_bytes(16)
        s = self.model
        begun = [n for n in map(Number, range(s.first, s.end)) if s.begun[n] and s.owners[n] == request]
        forgotten = any(self._is_forgotten(number) for number in begun)
        answers: list[bool] = []
        self.both(lambda: answers.append(self.core.ask(key, 1, self.now, owner=owner)), taken=not forgotten)
        replies = self.core.replies()
        expect(answers == [fate != spec.Fate.IGNORED] or forgotten, f"{key} was {fate!r}, and hears otherwise now")
        expect([reply.number for reply in replies] == ([] if forgotten else begun), f"{key}: {replies}")
        self.tally["asked again"] += 1

    def hand(self, number: int) -> None:
        """The client of an active transaction is given it; asked again, it is the same one."""
        active = spec.takes_a_slot(self.model.log[Number(number)])
        self.both(lambda: self.core.hand(number), taken=active)
        if active and not self.model.handed[Number(number)]:
            self.take(spec.hand, number, self.model.owners[Number(number)])

    def add(self, number: int) -> None:
        """A participant joins whose name is new."""
        self.names += 1
        name = b"%d" % self.names
        self._offer(spec.add, number, lambda: self.core.add(number, name))

    def decide(self, number: int, *, commit: bool) -> None:
        """Its client asks for the end; a repetition does no harm, and otherwise is refused."""
        to = Status.COMMITTING if commit else Status.ABORTING
        so_far = self._judged(number).log[Number(number)]
        if DECISIONS.get(so_far, so_far) == to:
            self.both(lambda: self.core.decide(number, commit=commit), taken=not self._is_forgotten(number))
            replies = [(reply.number, reply.status) for reply in self.core.replies()]
            known = Status.COMMITTED <= so_far and so_far == self.model.log[Number(number)]
            expected = [(number, so_far)] if known and not self._is_forgotten(number) else []
            expect(
                replies == expected, f"transaction {number} is {so_far!r}, and a repeated request is answered {replies}"
            )
            self.tally["decided again"] += 1
        else:
            self._offer(spec.decide, number, lambda: self.core.decide(number, commit=commit), int(to))

    def time_out(self, number: int) -> None:
        """The coordinator's own clock asks for it."""
        late = self._judged(number).times[Number(number)] + self._judged(number).lives[Number(number)] <= self.now
        is_open = self._judged(number).log[Number(number)] == Status.OPEN
        due = number in self.core.due(self.now)
        expect(due == (late and is_open), f"transaction {number} is due: {due}")
        self._offer(spec.time_out, number, lambda: self.core.time_out(number, self.now), self.now)

    def finish(self, number: int) -> None:
        """All that take part know."""
        decision = self._judged(number).log[Number(number)]
        to = {Status.COMMITTING: Status.COMMITTED}.get(Status(decision), Status.ABORTED)
        takes_part = self._judged(number).added[Number(number)] > 0
        known = not takes_part or accepts(spec.finish, self.model, number, to)
        self._offer(spec.finish, number, lambda: self.core.finish(number), int(to), possible=known)

    def acknowledge(self, number: int) -> None:
        """A client hears the outcome, if it is still known."""
        outcome = self.model.log[Number(number)]
        replies: list[int] = []
        can = accepts(spec.acknowledge, self.model, number, outcome) and not self._is_forgotten(number)
        self.both(lambda: replies.append(self.core.acknowledge(number)), taken=can)
        if replies:
            expect(replies == [outcome], f"transaction {number} is {outcome!r}, and a client hears {replies}")
            self.take(spec.acknowledge, number, outcome)

    def flush(self, *, full: bool = False) -> None:
        """The pending group is on disk, or (`full`) is taken back where it wants another file."""
        if full:
            self.disk.fail(28, verb="create", path="log/*")
        before = self.core.taken_back
        replies = self.core.flush()
        self.disk.heal()
        if self.core.taken_back > before:
            expect(full, "steps were taken back, and the disk had room")
            begins = [step for step in self.on_its_way if step.action is spec.begin]
            for step in reversed(begins):
                request = Request(step.arguments[1])
                self.take(spec.burn, request)
                self.requests = {key: other for key, other in self.requests.items() if other != request}
            expect(all(reply.problem for reply in replies), f"{replies}: reported as done, and the disk was full")
            self.tally["burnt"] += len(begins)
            self.on_its_way.clear()
        else:
            self._take_effect()
        self.compare()

    def wait(self, by: int) -> None:
        """Time goes by."""
        self.now += by

    # -- what a life ends with ---------------------------------------------------------------------------------------

    def crash(self, how: str, limit: int, choose: Choose = plainest) -> None:
        """This life ends, and another begins with another limit.

        `how`: close; or kill or lose (the power), between two steps or `… in a flush`; `lose in a use`: of the disk.
        """
        if how == "close":
            self.core.close()
            self._take_effect()
        else:
            if how.endswith("in a use"):
                self.disk.lose_power_at(self.disk.operations + 1 + choose(4))
            if how.endswith(("in a flush", "in a use")):
                with suppress(PowerLost):
                    self.core.begin_flush()
            self.disk = self.disk.kill(choose) if how.startswith("kill") else self.disk.crash(choose)
            if choose(3) == 2:
                self._lose_power_while_recovering(choose)
            if self._is_as(self._ahead(), logged(self.disk.files())):
                self.tally["a group survived without a reply"] += bool(self.on_its_way)
                self._take_effect()
            self.on_its_way.clear()
        self.recover(limit)

    def _lose_power_while_recovering(self, choose: Choose) -> None:
        self.disk.lose_power_at(self.disk.operations + 1 + choose(3))
        try:
            CoordinatorCore(self.disk, self.settings).fail()
        except PowerLost:
            self.disk = self.disk.crash(choose)
            self.tally["the power was lost while it was opened"] += 1
        else:
            self.disk = self.disk.crash(choose)

    def recover(self, limit: int) -> None:
        """The coordinator is opened again."""
        self.settings = CoordinatorSettings(limit, self.settings.keep, self.settings.file_size)
        self.core = CoordinatorCore(self.disk, self.settings, self.observer)
        s = spec.unload(self.model)
        for number, found in self.core.table.items():
            s = followed(s, spec.load, number, int(found.status))
        self.model = followed(s, spec.recover, limit)
        known = {found.key for found in self.core.table.values()}
        self.requests = {key: request for key, request in self.requests.items() if key in known}
        self.compare()

    def rest(self) -> None:
        """Faults are over, and time advances: every transaction ends, and every slot is free."""
        self.now += 10**9
        for _ in range(3):
            for number in self.core.due(self.now):
                self.time_out(number)
            self.flush()
            for number, _, _ in list(self.core.undelivered()):
                self.finish(number)
        self.flush()
        self.require(spec.AT_REST)
        expect(not self.core.table, f"{list(self.core.table)} are left at rest")
        self.core.close()

    # -- within ------------------------------------------------------------------------------------------------------

    def _take_effect(self) -> None:
        for step in self.on_its_way:
            self.take(step.action, *step.arguments)
            if step.action is spec.finish:
                self.ended.append(step.arguments[0])
        self.on_its_way.clear()

    def _ahead(self) -> State:
        """The model as it will be when all that is on its way is on disk."""
        s = self.model
        for step in self.on_its_way:
            s = followed(s, step.action, *step.arguments)
        return s

    def _judged(self, number: int) -> State:
        """The state that decides about a step: a transaction whose beginning is pending is unknown."""
        return self._ahead() if self.model.begun[Number(number)] else self.model

    def _is_forgotten(self, number: int) -> bool:
        return number in self.ended[: -self.settings.keep]

    def _offer(
        self, action: Callable[..., State], number: int, step: Callable[[], object], *others: int, possible: bool = True
    ) -> None:
        """Both take the step, or both refuse it; it takes effect with the flush."""
        can = possible and accepts(action, self._judged(number), number, *others)
        self.both(step, taken=can)
        if can:
            self.on_its_way.append(OnItsWay(action, (number, *others)))
        self.compare()

    def compare(self) -> None:
        """The implementation's state means the model's, and each transaction has its owner. Raises Mismatch."""
        owners = {number: self.owners[number] for number in (*self.core.table, *self.core.outcomes)}
        if self.core.owners != owners:
            raise Mismatch(f"owners: the implementation has {self.core.owners}, expected {owners}")
        super().compare()

    def as_spec(self) -> State:
        """The meaning of the coordinator's state. History that it does not keep is the model's."""
        core, model, on_disk = self.core, self.model, logged(self.disk.files())
        active = {Number(n): t for n, t in core.table.items() if t.status}
        loaded = {n: int(t.status) for n, t in active.items()}
        ended_here = {n: int(core.outcomes.get(n, status)) for n, status in _ended(model.table)}
        whole = {n: int(one.status) for n, one in on_disk.items() if one.begun or n in core.outcomes}
        # A group may be in the log and not flushed: until then the model's log is the one before.
        return replace(
            model,
            running=int(core.running),
            limit=core.limit,
            loaded=core.loaded,
            active=core.active,
            admitted=core.admitted,
            crowd=core.crowd,
            peak=core.peak,
            ignored=core.ignored,
            end=Number(core.end),
            log=over(model.log, whole),
            table=_map({**ended_here, **loaded}),
            timers=_map(dict.fromkeys(map(Number, core.deadlines), 1)),
            begun=over(model.begun, {n: one.begun for n, one in on_disk.items() if one.begun}),
            times=over(model.times, {n: one.time for n, one in on_disk.items() if one.begun}),
            lives=over(model.lives, {n: t.life for n, t in active.items()}),
            added=over(model.added, {n: t.added for n, t in active.items()}),
            outcomes=over(model.outcomes, {n: int(s >= Status.COMMITTED) for n, s in whole.items()}),
            owners=over(model.owners, {n: self.requests.get(t.key, NO_REQUEST) for n, t in active.items()}),
            pending=_map({self.requests[t.key]: 1 for t in core.table.values() if not t.status}),
        )

    def _is_as(self, s: State, on_disk: dict[int, LoggedTransaction]) -> bool:
        """True if a log on disk is this state's."""
        seen = {n: (int(one.status), one.added) for n, one in on_disk.items() if one.begun}
        known = {n: (s.log[Number(n)], s.added[Number(n)]) for n in seen}
        return seen == known and all(n in on_disk for n in range(s.first, s.end) if spec.takes_a_slot(s.log[Number(n)]))


def _ended(table: Map[Number, int]) -> list[tuple[Number, int]]:
    return [(n, status) for n, status in table.entries.items() if status >= Status.COMMITTED]


def _map(entries: dict[Any, int]) -> Map[Any, int]:
    return Map(0, immutables.Map({key: value for key, value in entries.items() if value}))
