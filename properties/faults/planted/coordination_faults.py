"""Faults in a coordinator and its clients: the limit, silence, outcomes, the log and its recovery, permits."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from gapless.impl.coordinator import log as coordinator_log
from gapless.impl.coordinator.client import CoordinatorClient
from gapless.impl.coordinator.coordinator import Coordinator
from gapless.impl.coordinator.core import CoordinatorCore
from gapless.impl.coordinator.log import CoordinatorLog
from gapless.impl.coordinator.permits import Permits
from gapless.impl.coordinator.steps import ENDING, Add, Decide, Finish, Key, Next, Status, Step
from gapless.impl.records.errors import Refused, StoreError
from gapless.properties.faults.planted.fault_injection import Faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gapless.impl.coordinator.connections.frames import Content, IsDone
    from gapless.impl.environment.mapped_file import Bytes
    from gapless.impl.environment.operating_system import File

COORDINATOR, PERMITS = Faults(), Faults()
"""Those of the coordinator and its log, and those of a client."""

fault, permit_fault = COORDINATOR.plant, PERMITS.plant

_ask, _apply, _needed, _begin = (
    CoordinatorCore.ask,
    CoordinatorCore._apply,
    CoordinatorCore._needed,
    CoordinatorCore._begin,
)
_end_flush, _replay, _take_back = CoordinatorCore.end_flush, CoordinatorCore._replay, CoordinatorCore._take_back
_time_out = CoordinatorCore.time_out
_coordinator_ask = Coordinator.ask
_roll = CoordinatorLog.roll
_reply, _permits_time_out, _due, _ask_permit = Permits.reply, Permits.time_out, Permits.due, Permits.ask
_disconnect, _acquire, _answered = Permits.disconnect, Permits._acquire, CoordinatorClient._answered


# -- the limit, and silence --------------------------------------------------------------------------------------------


@fault("the limit is answered with an error", Coordinator, "ask", "P01")
def _refuses_at_the_limit(coordinator: Coordinator, session: Any, request: int, content: Content) -> None:
    """Clients try again and again."""
    before = coordinator.core.ignored
    _coordinator_ask(coordinator, session, request, content)
    if before < coordinator.core.ignored:
        raise Refused("too many transactions are active")


@fault("who met silence is served later", CoordinatorCore, "end_flush", "P01")
def _serves_later(core: CoordinatorCore) -> None:
    """A slot is taken by a transaction that no client waits for."""
    _end_flush(core)
    for client, mine in core._asked.items():
        for request in [request for request, number in mine.items() if number < 0 and core._has_room()]:
            del mine[request]
            _ask(core, Key(client, request), 100, 1_700_000_000_000)


@fault("one more than the limit", CoordinatorCore, "_has_room", "P01")
def _one_more(core: CoordinatorCore) -> bool:
    """More transactions are active than there is room for."""
    return core.limit == 0 or core.active + core.admitted <= core.limit


@fault("no limit admits no client", CoordinatorCore, "_has_room", "P01")
def _none_at_all(core: CoordinatorCore) -> bool:
    """Every client times out."""
    return core.active + core.admitted < core.limit


@fault("only what is on disk counts", CoordinatorCore, "_has_room", "P01")
def _soft(core: CoordinatorCore) -> bool:
    """A crowd passes the limit together, as in Pulsar."""
    return core.limit == 0 or core.active < core.limit


@fault("a slot is free with the decision", CoordinatorCore, "_apply")
def _frees_early(core: CoordinatorCore, step: Step) -> None:
    """The limit counts fewer than there are."""
    _apply(core, step)
    core.active += {Decide: -1, Finish: 1}.get(type(step), 0)


@fault("after a recovery only open ones count", CoordinatorCore, "_replay")
def _counts_open_ones(core: CoordinatorCore) -> None:
    """The limit counts fewer than there are."""
    _replay(core)
    core.active = sum(found.status == Status.OPEN for found in core.table.values())


@fault("what was burnt keeps its slot", CoordinatorCore, "_take_back", "P06")
def _keeps_the_slot(core: CoordinatorCore, why: str) -> None:
    """In the end every request is ignored."""
    admitted = core.admitted
    _take_back(core, why)
    core.admitted = admitted


@fault("a request that is sent again is a new one", CoordinatorCore, "ask")
def _begins_another(core: CoordinatorCore, key: Key, *more: Any, **named: Any) -> bool:
    """A client holds two slots, and works in one."""
    core._asked.get(key.client, {}).pop(key.request, None)
    return _ask(core, key, *more, **named)


@fault("silence is forgotten", CoordinatorCore, "ask")
def _forgets_silence(core: CoordinatorCore, key: Key, *more: Any, **named: Any) -> bool:
    """A client that met silence is answered after a reconnect."""
    mine = core._asked.get(key.client, {})
    if mine.get(key.request, 0) < 0:
        del mine[key.request]
    return _ask(core, key, *more, **named)


# -- outcomes ----------------------------------------------------------------------------------------------------------


@fault("a timeout does not look whether a commit is on its way", CoordinatorCore, "time_out", "P22")
def _races(core: CoordinatorCore, number: int, now: int) -> None:
    """Committed, and timed out."""
    found = core.table.get(number)
    if found is not None and found.status == Status.OPEN and found.time + found.life <= now:
        found.ahead = Status.OPEN
    _time_out(core, number, now)


@fault("nothing is kept of what ended", CoordinatorCore, "_keep", "P10")
def _keeps_nothing(_core: CoordinatorCore, _number: int, _status: Status) -> None:
    """A client that commits again hears that there is no such transaction."""


@fault("the newest outcome is dropped", CoordinatorCore, "_keep", "P11")
def _drops_the_newest(core: CoordinatorCore, number: int, status: Status) -> None:
    """A client that commits again hears that there is no such transaction."""
    if len(core.outcomes) < core.settings.keep:
        core.outcomes[number] = status


@fault("what is not kept counts as aborted", CoordinatorCore, "status", "P12")
def _unknown_is_aborted(core: CoordinatorCore, number: int) -> Status:
    """A client acts on an outcome that never was."""
    found = core.table.get(number)
    return core.outcomes.get(number, Status.ABORTED) if found is None else found.status


@fault("a decision that could not be written stays", CoordinatorCore, "_take_back", "K05")
def _stays_decided(core: CoordinatorCore, why: str) -> None:
    """The transaction can never be ended."""
    ahead = {number: found.ahead for number, found in core.table.items()}
    _take_back(core, why)
    for number, found in core.table.items():
        found.ahead = ahead[number]


@fault("a full disk ends everything", CoordinatorCore, "_take_back", "P28")
def _ends_everything(core: CoordinatorCore, why: str) -> None:
    """One error that passes, and nothing is possible any more."""
    _take_back(core, why)
    core.fail()


@fault("finished before those who take part know", CoordinatorCore, "finish")
def _finishes_early(core: CoordinatorCore, number: int) -> None:
    """A topic never learns the outcome."""
    found = core._known(number)
    if found.ahead not in ENDING:
        raise Refused("nothing is decided")
    found.ahead = ENDING[found.ahead]
    core._deciding.pop(number, None)
    core._waiting.append((Finish(number), None))


@fault("an open transaction is dropped where there are many", CoordinatorCore, "_begin", "G04")
def _drops_open_ones(core: CoordinatorCore, number: int, key: Key, time: int, life: int) -> None:
    """A client hears that there is no such transaction."""
    _begin(core, number, key, time, life)
    if len(core.table) > 2:
        core.deadlines.pop(next(iter(core.table)), None)
        del core.table[next(iter(core.table))]


@fault("a life ends a tick early", CoordinatorCore, "ask")
def _too_short(core: CoordinatorCore, key: Key, life: int, *more: Any, **named: Any) -> bool:
    """The work of a client that is in time is thrown away."""
    return _ask(core, key, max(1, life - 1), *more, **named)


# -- the log and its recovery ------------------------------------------------------------------------------------------


@fault("reported before it is on disk", CoordinatorLog, "sync")
def _not_synced(log: CoordinatorLog) -> None:
    """A crash takes an outcome that a client believes in."""
    log._mark_safe(log.end)


@fault("a torn group counts", coordinator_log, "_get")
def _anything_counts(data: Bytes, at: int, _place: int) -> bytes | None:
    """The bytes that are read were never written."""
    length = int.from_bytes(data[at : at + 4].tobytes(), "big")
    return data[at + 8 : at + 8 + length].tobytes() if 0 < length <= len(data) - at - 8 else None


@fault("a file is safe before it is whole", CoordinatorLog, "_make", "P32")
def _safe_at_once(log: CoordinatorLog, place: int, length: int, groups: Sequence[bytes]) -> File:
    """A crash leaves a file that is believed, and does not tell all."""
    file = log._disk.create(coordinator_log._name(place), length)
    head = coordinator_log._HEAD.pack(coordinator_log.MAGIC, coordinator_log.VERSION, place)
    file.data[: len(head)] = np.frombuffer(head, np.uint8)
    end = coordinator_log.START
    for content in groups:
        end = coordinator_log._put(file.data, end, content, place)
    coordinator_log._put_safe(file, 0, end, place)
    file.sync()
    return file


@fault("the file before goes first", CoordinatorLog, "roll")
def _deletes_first(log: CoordinatorLog, needed: Any) -> None:
    """A crash between leaves nothing."""
    log._disk.delete(coordinator_log._name(log.place))
    _roll(log, needed)


@fault("the next number comes from what is read again", CoordinatorCore, "_replay", "P25")
def _numbers_again(core: CoordinatorCore) -> None:
    """Two transactions have one number."""
    _replay(core)
    core.end = core._next = max(core.table, default=-1) + 1


@fault("a new file does not say which number comes next", CoordinatorCore, "_needed", "P25")
def _no_next(core: CoordinatorCore) -> Iterator[Step]:
    """Two transactions have one number."""
    return (Next(0) if isinstance(step, Next) else step for step in _needed(core))


@fault("a new file does not say who takes part", CoordinatorCore, "_needed", "K11")
def _no_names(core: CoordinatorCore) -> Iterator[Step]:
    """A topic never learns the outcome."""
    return (step for step in _needed(core) if not isinstance(step, Add))


@fault("recovery takes what is ending for open", CoordinatorCore, "_replay", "P23")
def _open_again(core: CoordinatorCore) -> None:
    """A transaction that its client committed is aborted by its timeout."""
    _replay(core)
    for number, found in core.table.items():
        found.status = found.ahead = Status.OPEN
        core.deadlines[number] = found.time + found.life
    core._deciding.clear()


@fault("recovery resumes nothing", CoordinatorCore, "_replay", "P20")
def _resumes_nothing(core: CoordinatorCore) -> None:
    """A decision stays undone, and its slot is taken for ever."""
    _replay(core)
    core._deciding.clear()


@fault("recovery starts no timers", CoordinatorCore, "_replay", "P20")
def _no_timers(core: CoordinatorCore) -> None:
    """A client that is gone holds its slot for ever."""
    _replay(core)
    core._heap.clear()
    core.deadlines.clear()


# -- permits -----------------------------------------------------------------------------------------------------------


@permit_fault("a timeout gives no permit back", Permits, "time_out", "P06")
def _leaks(permits: Permits, number: int, now: int) -> list[int]:
    """In the end every caller waits."""
    woken = _permits_time_out(permits, number, now)
    if permits.count > 1:
        permits.count -= 1
    return woken


@permit_fault("an error gives no permit back", CoordinatorClient, "_answered", "P06")
def _leaks_on_errors(client: CoordinatorClient, request: int, answer: IsDone | StoreError) -> None:
    """In the end every caller waits."""
    if isinstance(answer, StoreError) and request in client._calls:
        client.permits.in_use[request] = 1 << 60  # no timeout finds it
        client._tell(request, answer, [])
        return
    _answered(client, request, answer)


@permit_fault("a late answer gives a permit back", Permits, "reply", "G07")
def _twice(permits: Permits, number: int, now: int) -> list[int] | None:
    """There are more and more permits."""
    woken = _reply(permits, number, now)
    permits.count += woken is None
    return woken


@permit_fault("an answer gives a permit back twice", Permits, "reply", "P07")
def _two_for_one(permits: Permits, number: int, now: int) -> list[int] | None:
    """There are more and more permits."""
    woken = _reply(permits, number, now)
    permits.count += woken is not None
    return woken


@permit_fault("a timeout wakes no caller", Permits, "time_out", "P07")
def _wakes_no_caller(permits: Permits, number: int, now: int) -> list[int]:
    """A caller waits for ever, and a permit is free."""
    waiting, permits.waiting = permits.waiting, deque()
    _permits_time_out(permits, number, now)
    permits.waiting = waiting
    return []


@permit_fault("an answer wakes no caller", Permits, "reply", "P03")
def _lost_wake_up(permits: Permits, number: int, now: int) -> list[int] | None:
    """A caller waits for ever, and a permit is free."""
    waiting, permits.waiting = permits.waiting, deque(n for n in permits.waiting if n == number)
    try:
        return _reply(permits, number, now)
    finally:
        permits.waiting = waiting


@permit_fault("a lost connection frees all permits", Permits, "disconnect")
def _frees_all(permits: Permits) -> None:
    """A client doubles its requests whenever its connection is cut."""
    _disconnect(permits)
    permits.in_use.clear()


@permit_fault("a timer gives up another request", Permits, "due", "P08")
def _the_wrong_one(permits: Permits, now: int) -> list[int]:
    """A request fails that would have been answered at once."""
    return list(permits.in_use)[-1:] if _due(permits, now) else []


@permit_fault("the clock of a request starts before it has a permit", Permits, "_acquire")
def _too_early(permits: Permits, number: int, now: int) -> None:
    """Requests that waited are given up at once, and a silent coordinator is asked the more."""
    _acquire(permits, number, now)
    permits.in_use[number] = max(0, now - permits.timeout // 2) if permits.cuts or len(permits.in_use) > 1 else now


@permit_fault("who comes later goes first", Permits, "ask")
def _barges_in(permits: Permits, now: int) -> tuple[int, bool]:
    """The limit on requests is passed."""
    number, has_permit = _ask_permit(permits, now)
    if not has_permit:
        permits.waiting.remove(number)
        permits._acquire(number, now)
    return number, True


@permit_fault("a caller that was cancelled keeps its place", CoordinatorClient, "_send")
def _does_not_wait(client: CoordinatorClient, number: int) -> None:
    """A permit is lost with every caller that goes away."""
    call = client._calls[number]
    if call.answer.cancelled():
        del client._calls[number]
        return
    if client._ready and client._wire is not None:
        client._wire.send(number, call.content)
    client._set_timer()
