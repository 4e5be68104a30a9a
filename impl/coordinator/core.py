"""A coordinator without threads, clock or network: a step a call, the time passed in.

A step that changes a transaction waits in memory first (`ask`, `add`, `decide`, `time_out`, `finish`). `begin_flush`
writes all that wait as one group, the caller syncs the log, and `end_flush` lets the group take
effect: what is not on disk has not happened, and is not reported. Meanwhile others wait for the next group.

The limit is exact. A slot is promised when a request is admitted, and free again when the outcome is on disk.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from gapless.impl.coordinator.connections.access import is_token_of
from gapless.impl.coordinator.errors import ForeignTransaction, OutcomeConflict, UnknownTransaction
from gapless.impl.coordinator.log import CoordinatorLog
from gapless.impl.coordinator.observer import CoordinatorObserver, Found
from gapless.impl.coordinator.steps import (
    ENDING,
    Add,
    Begin,
    Decide,
    Finish,
    Kept,
    Key,
    Next,
    Owner,
    Status,
    Step,
    check_name,
    decoded,
    encoded,
)
from gapless.impl.coordinator.values import ActiveTransaction, CoordinatorSettings, Reply
from gapless.impl.environment.operating_system import Disk
from gapless.impl.records.errors import Damaged, InUse, Refused, Stopped

IGNORED = -1  # what became of a request that was met with silence
REMEMBERED = 10_000  # requests of one client that are distinguished from new ones


class CoordinatorCore:
    """A coordinator on a disk, from its recovery to its end.

    `active`: transactions that take a slot. `admitted`: requests that were promised one. `loaded`, `peak`, `crowd`,
    `ignored`: since it was opened, how many were active then, the most that were active or admitted at once, the most
    that were admitted at once, and how many requests met silence. `end`: exclusive end of the numbers in
    the log. `table`: the transactions that take a slot, and those on their way. `outcomes`: of those that ended.
    `owners`: of each of both, the digest of its token.
    """

    def __init__(
        self, disk: Disk, settings: CoordinatorSettings | None = None, observer: CoordinatorObserver | None = None
    ) -> None:
        """Opens it: all that its log holds comes back.

        Raises InUse; Damaged, NotAStore; DiskFull, StoreError, OSError.
        """
        self.settings = settings or CoordinatorSettings()
        self.limit = self.settings.max_active
        self.table: dict[int, ActiveTransaction] = {}
        self.outcomes: dict[int, Status] = {}
        self.owners: dict[int, bytes] = {}
        self.deadlines: dict[int, int] = {}  # of each open transaction: ms since 1970
        self.active = self.admitted = self.ignored = self.crowd = self.end = 0
        self.running = True
        self.taken_back = 0
        """Steps that could not be written."""
        self._next = 0  # the number that is given next
        self._heap: list[tuple[int, int]] = []  # deadlines and numbers; some are out of date
        self._asked: dict[bytes, dict[int, int]] = {}  # of a client's requests: the number given, or IGNORED
        self._deciding: dict[int, None] = {}  # those whose end has begun, and that are not to be finished yet
        self._waiting: list[tuple[Step, object]] = []
        self._group: list[tuple[Step, object]] = []
        self._replies: list[Reply] = []
        self._observer = observer
        self._disk = disk
        try:
            disk.lock()
        except BlockingIOError as error:
            raise InUse(f"{error.strerror}; a folder has one coordinator at a time") from error
        try:
            self._log = CoordinatorLog(disk, self.settings.file_size)
            self._replay()
        except BaseException:
            disk.unlock()
            raise
        self.loaded = self.peak = self.active
        if observer is not None:
            observer.recovered(self.limit, list(self.found()))

    # -- requests ----------------------------------------------------------------------------------------------------

    def ask(self, key: Key, life: int, now: int, waiter: object = None, owner: bytes = b"") -> bool:
        """A client asks for a transaction that may stay open for `life` ms; whether it is answered at all.

        At the limit it is not, now or later. One that asks again gets the same answer. `owner`: the digest of its
        token. Raises Refused: it may not stay open so long; ForeignTransaction: another token asks again.
        """
        self._check_running()
        mine = self._asked.setdefault(key.client, {})
        before = mine.get(key.request)
        if before is not None:
            return self._ask_again(before, waiter, owner)
        longest = round(self.settings.max_life * 1000)
        if not 0 < life <= longest:
            raise Refused(f"a life of {life} ms, expected 1 to {longest}, the coordinator's max_life")
        if len(mine) >= REMEMBERED:
            del mine[next(iter(mine))]
        if not self._has_room():
            mine[key.request] = IGNORED
            self.ignored += 1
            self._tell("ignored", key)
            return False
        number, self._next = self._next, self._next + 1
        mine[key.request] = number
        self.admitted += 1
        self.crowd = max(self.crowd, self.admitted)
        self.peak = max(self.peak, self.active + self.admitted)
        self.table[number] = ActiveTransaction(number, key, now, life, asker=waiter)
        self._tell("admitted", key)
        self._waiting.append((Begin(number, key, now, life), None))
        if owner:
            self.owners[number] = owner
            self._waiting.append((Owner(number, owner), None))
        return True

    def _has_room(self) -> bool:
        return self.limit == 0 or self.active + self.admitted < self.limit

    def _ask_again(self, number: int, waiter: object, owner: bytes) -> bool:
        if number == IGNORED:
            return False
        if owner != self.owners.get(number, owner):
            raise ForeignTransaction(f"transaction {number} was asked for with another token")
        found = self.table.get(number)
        if found is not None and found.status == Status.ABSENT:
            found.asker = waiter
        else:
            self._replies.append(Reply(waiter, number, self.status(number)))
        return True

    def check_owner(self, number: int, token: bytes) -> None:
        """Check that it is the token of a transaction, where there is such a transaction. Raises ForeignTransaction."""
        known = number in self.table or number in self.outcomes
        if known and not is_token_of(token, self.owners.get(number, b"")):
            raise ForeignTransaction(f"transaction {number} is another client's: its token is needed")

    def hand(self, number: int) -> None:
        """Its client is given the transaction. Raises Refused: it is not on disk, or has ended."""
        self._check_running()
        found = self._known(number)
        self._tell("handed", number, found.key)

    def add(self, number: int, name: bytes, waiter: object = None) -> None:
        """A topic or a subscription takes part. Raises Refused, UnknownTransaction, OutcomeConflict."""
        self._check_running()
        check_name(name)
        found = self._known(number)
        if found.ahead != Status.OPEN:
            raise OutcomeConflict(f"transaction {number} is {found.ahead.name}, expected OPEN: it takes no more")
        found.names.setdefault(name, False)
        self._waiting.append((Add(number, name), waiter))

    def decide(self, number: int, *, commit: bool, waiter: object = None) -> None:
        """Its client ends it; the answer comes once the outcome is on disk, and is the same if asked again.

        Raises UnknownTransaction, OutcomeConflict.
        """
        self._check_running()
        to = Status.COMMITTING if commit else Status.ABORTING
        outcome = self.outcomes.get(number)
        if outcome is not None:
            if outcome != ENDING[to]:
                raise OutcomeConflict(f"transaction {number} is {outcome.name}, and stays so")
            self._replies.append(Reply(waiter, number, outcome))
            return
        found = self._known(number)
        if found.ahead == Status.OPEN:
            found.ahead = to
            self._deciding[number] = None
            self._waiting.append((Decide(number, to, None), None))
        elif found.ahead not in {to, ENDING[to]}:
            raise OutcomeConflict(f"transaction {number} is {found.ahead.name}: it ends otherwise")
        found.waiters.append(waiter)

    def status(self, number: int) -> Status:
        """The status of a transaction by the log on disk. Raises UnknownTransaction."""
        outcome = self.outcomes.get(number)
        return self._known(number).status if outcome is None else outcome

    def acknowledge(self, number: int) -> Status:
        """The outcome for the client. Raises Refused: there is none yet, or none that is known."""
        self._check_running()
        outcome = self.outcomes.get(number)
        if outcome is None:
            raise OutcomeConflict(f"transaction {number} is {self._known(number).status.name}: it has not ended")
        self._tell("acknowledged", number, outcome)
        return outcome

    def forget(self, client: bytes, below: int | None = None) -> None:
        """The client asks no more by requests below this one; by none of those so far, where none is named."""
        if below is None:
            self._asked.pop(client, None)
            return
        mine = self._asked.get(client, {})
        while mine and (eldest := next(iter(mine))) < below:
            del mine[eldest]

    def remembered(self, client: bytes) -> int:
        """The number of requests of a client that are known again."""
        return len(self._asked.get(client, ()))

    # -- steps of its own --------------------------------------------------------------------------------------------

    @property
    def newest_time(self) -> int:
        """The latest time at which one began that takes a slot, in ms since 1970; 0 where none does."""
        return max((found.time for found in self.table.values()), default=0)

    def next_deadline(self) -> int | None:
        """The time at which the next transaction expires, in ms since 1970."""
        heap = self._heap
        while heap and self.deadlines.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def due(self, now: int) -> list[int]:
        """The open transactions that have expired, and whose end was not requested."""
        found = []
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            number = heapq.heappop(self._heap)[1]
            found.append(number)
        for number in found:
            heapq.heappush(self._heap, (self.deadlines[number], number))
        return [number for number in found if self.table[number].ahead == Status.OPEN]

    def time_out(self, number: int, now: int) -> None:
        """The coordinator aborts a transaction that has had its time. Raises Refused, UnknownTransaction."""
        self._check_running()
        found = self._known(number)
        if found.ahead != Status.OPEN:
            raise OutcomeConflict(f"transaction {number} is {found.ahead.name}: its end was asked for in time")
        if now < found.time + found.life:
            raise Refused(f"transaction {number} may stay open for {found.time + found.life - now} ms more")
        found.ahead = Status.ABORTING
        self._deciding[number] = None
        self._waiting.append((Decide(number, Status.ABORTING, now), None))

    def undelivered(self) -> Iterator[tuple[int, Status, Sequence[bytes]]]:
        """The transactions whose end has begun, with the decision and the participants to inform."""
        for found in [self.table[number] for number in self._deciding]:
            if found.status == found.ahead or not found.names:
                yield found.number, found.ahead, list(found.names)

    def finish(self, number: int) -> None:
        """All participants know the decision. Raises Refused: none is on disk, and there are participants."""
        self._check_running()
        found = self._known(number)
        if found.ahead not in ENDING or (found.names and found.status != found.ahead):
            raise Refused(f"transaction {number} is {found.ahead.name}, expected a decision that is on disk")
        found.ahead = ENDING[found.ahead]
        del self._deciding[number]
        self._waiting.append((Finish(number), None))

    # -- the log -----------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Steps that wait to be written."""
        return len(self._waiting)

    def begin_flush(self) -> bool:
        """All that waits is in the log, as one group; False if nothing is. Sync the log, then call `end_flush`.

        What the disk has no room for is taken back, and reported.
        """
        self._check_running()
        if not self._waiting or self._group:
            return bool(self._group)
        content = encoded(step for step, _ in self._waiting)
        try:
            if len(content) > self._log.room:
                self._log.roll([encoded(self._needed()), content])
            else:
                self._log.append(content)
        except OSError as error:
            self._take_back(error.strerror or str(error))
            return False
        self._group, self._waiting = self._waiting, []
        return True

    def sync(self) -> None:
        """Make the log durable; may run during all calls but flushes. Raises OSError: then `fail`."""
        self._log.sync()

    def end_flush(self) -> None:
        """The group is on disk: its steps take effect."""
        self._check_running()
        group, self._group = self._group, []
        for step, waiter in group:
            found = self.table[step.number]
            self._apply(step)
            self._follow(step, found, waiter)

    def flush(self) -> list[Reply]:
        """The three together; returns the replies to send. Raises Stopped: the disk failed."""
        if self.begin_flush():
            try:
                self.sync()
            except OSError as error:
                self.fail()
                raise Stopped(f"the log could not be flushed ({error.strerror or error}): open it again") from error
            self.end_flush()
        return self.replies()

    def replies(self) -> list[Reply]:
        """The replies to send; each once."""
        replies, self._replies = self._replies, []
        return replies

    def fail(self) -> None:
        """The disk failed while it flushed: its content is unknown, so nothing is promised any more."""
        self._end()

    def close(self) -> None:
        """Ends in order, all that waits included. Raises Stopped."""
        if not self.running:
            return
        while self._waiting or self._group:
            self.flush()
        self._end()
        if self._observer is not None:
            self._observer.closed(at_rest=self.active == 0)

    def _end(self) -> None:
        self.running = False
        self._log.close()
        self._disk.unlock()

    def found(self) -> Iterator[Found]:
        """Every transaction that the log tells of, in the order of their numbers."""
        for number in sorted({*self.outcomes, *self.table}):
            found = self.table.get(number)
            if found is None:
                yield Found(number, self.outcomes[number], None, 0, 0, 0)
            elif found.status != Status.ABSENT:
                yield Found(number, found.status, found.key, found.time, found.life, found.added)

    # -- within ------------------------------------------------------------------------------------------------------

    def _replay(self) -> None:
        for group in self._log.found:
            try:
                for step in decoded(group):
                    self._apply(step)
            except ValueError as error:
                raise Damaged(f"{self._log.file_name}: a step that follows from none before it: {error}") from error
        self._log.found.clear()
        for found in self.table.values():
            found.ahead = found.status
            if found.status in ENDING:
                self._deciding[found.number] = None
            self._asked.setdefault(found.key.client, {})[found.key.request] = found.number

    def _apply(self, step: Step) -> None:
        """Apply a step that is on disk: the same for new steps and those read again. Raises ValueError."""
        match step:
            case Begin(number, key, time, life):
                self._begin(number, key, time, life)
            case Add(number, name):
                found = self._in(number, Status.OPEN)
                found.names[name] = True
                found.added += 1
            case Decide(number, to, _):
                self._in(number, Status.OPEN).status = to
                del self.deadlines[number]
            case Finish(number):
                found = self._in(number, *ENDING)
                del self.table[number]
                found.status = ENDING[found.status]
                self._keep(number, found.status)
                self.active -= 1
            case Next(number):
                self._number_given(number - 1)
            case Kept(number, status):
                self._keep(number, status)
            case Owner(number, digest):
                if number not in self.table and number not in self.outcomes:
                    raise ValueError(f"the owner of transaction {number}, which is not there")
                self.owners[number] = digest

    def _begin(self, number: int, key: Key, time: int, life: int) -> None:
        if number < self.end:
            raise ValueError(f"number {number} is given twice")
        self._number_given(number)
        found = self.table.setdefault(number, ActiveTransaction(number, key, time, life))
        found.status = Status.OPEN
        self.active += 1
        self.deadlines[number] = time + life
        heapq.heappush(self._heap, (time + life, number))
        if len(self._heap) > 2 * len(self.deadlines) + 64:
            self._heap = [(deadline, of) for of, deadline in self.deadlines.items()]
            heapq.heapify(self._heap)

    def _number_given(self, number: int) -> None:
        self.end = max(self.end, number + 1)
        self._next = max(self._next, self.end)

    def _in(self, number: int, *statuses: Status) -> ActiveTransaction:
        found = self.table.get(number)
        if found is None or found.status not in statuses:
            raise ValueError(f"transaction {number} is {found.status.name if found else 'not there'}")
        return found

    def _keep(self, number: int, status: Status) -> None:
        self.outcomes[number] = status
        while len(self.outcomes) > self.settings.keep:
            eldest = next(iter(self.outcomes))
            del self.outcomes[eldest]
            self.owners.pop(eldest, None)

    def _follow(self, step: Step, found: ActiveTransaction, waiter: object) -> None:
        """Reply to the clients that a step concerns, once it took effect."""
        match step:
            case Begin(number, key, time, life):
                self.admitted -= 1
                self._tell("begun", number, key, time, life)
                self._replies.append(Reply(found.asker, number, Status.OPEN))
                found.asker = None
            case Add(number, _):
                self._tell("added", number)
                self._replies.append(Reply(waiter, number, Status.OPEN))
            case Decide(number, to, time):
                self._tell("decided", number, to, time)
            case Finish(number):
                self._tell("finished", number, found.status)
                self._replies += [Reply(one, number, found.status) for one in found.waiters]

    def _take_back(self, why: str) -> None:
        """Drop waiting steps that cannot be written, as if they had never been requested."""
        problem = f"the log cannot be written ({why}): nothing was changed"
        for step, waiter in reversed(self._waiting):
            found = self.table[step.number]
            match step:
                case Begin(_, key):
                    self.admitted -= 1
                    del self.table[found.number]
                    self.owners.pop(found.number, None)
                    self._asked.get(key.client, {}).pop(key.request, None)
                    self._tell("burnt", key)
                    self._replies.append(Reply(found.asker, found.number, Status.ABSENT, problem))
                case Add(_, name):
                    if not found.names.get(name, True):
                        del found.names[name]
                    self._replies.append(Reply(waiter, found.number, found.status, problem))
                case Decide():
                    found.ahead = Status.OPEN
                    del self._deciding[found.number]
                    self._replies += [Reply(one, found.number, found.status, problem) for one in found.waiters]
                    found.waiters.clear()
                case Finish():
                    found.ahead = Status.COMMITTING if found.ahead == Status.COMMITTED else Status.ABORTING
                    self._deciding[found.number] = None
        self.taken_back += len(self._waiting)
        self._waiting.clear()

    def _needed(self) -> Iterator[Step]:
        """All that the next file must begin with: the log in as few steps as tell the same."""
        for number, status in self.outcomes.items():
            yield Kept(number, status)
        for found in self.table.values():
            if found.status != Status.ABSENT:
                yield Begin(found.number, found.key, found.time, found.life)
                yield from (Add(found.number, name) for name, known in found.names.items() if known)
                if found.status in ENDING:
                    yield Decide(found.number, found.status, None)
        for number, digest in self.owners.items():
            if number in self.outcomes or self.table[number].status:
                yield Owner(number, digest)
        yield Next(self.end)  # behind those that take a slot: numbers are given in order

    def _known(self, number: int) -> ActiveTransaction:
        found = self.table.get(number)
        if found is not None and found.status != Status.ABSENT:
            return found
        if number in self.outcomes:
            raise OutcomeConflict(f"transaction {number} is {self.outcomes[number].name}")
        why = "its outcome is not kept any more, or it never began" if 0 <= number < self.end else "it never began"
        raise UnknownTransaction(f"transaction {number} is not known: {why}")

    def _tell(self, what: str, *of: object) -> None:
        if self._observer is not None:
            getattr(self._observer, what)(*of)

    def _check_running(self) -> None:
        if not self.running:
            raise Stopped("the coordinator was closed, or its disk failed; open it again")
