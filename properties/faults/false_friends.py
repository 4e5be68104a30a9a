"""Invariants that look true and are not, each with the shortest story in which it breaks.

They are what one would write down first, and what a checker must not assert: most of them are broken by real brokers,
lawfully, some even by the design. Each is kept as an expected failure, so that a spec in which it becomes true is
noticed: then either the spec has lost a behaviour, or the friend is one at last and belongs among the invariants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import getdoc, signature
from itertools import product
from typing import Any

from gapless.properties.proof.symbolic import State
from gapless.spec import checkpoint, coordinator, dispatch, half_cache, log, op_batch, permits, queue, ring, transaction
from gapless.spec.catalog import SPECS
from gapless.spec.coordinator import takes_a_slot
from gapless.spec.language import Number, implies, replace
from gapless.spec.ring import Batch
from gapless.spec.transaction import Phase
from gapless.traces.replay.exact import Event, call, named
from gapless.traces.replay.notation import changes, changes_text, column

AROUND = range(-1, 8)  # the numbers that a universal parameter is tried on


@dataclass(frozen=True)
class FalseFriend:
    """A plausible but false property, and events that lead to where it is false.

    `profile`: whose steps these are; `strict` where the design itself allows them · `landed`: steps that look right and
    are no actions, for what they break is shown here.
    """

    spec: str
    looks_true: Callable[..., Any]
    profile: str
    events: tuple[Event, ...]
    seen: str
    landed: tuple[Callable[..., Any], ...] = ()

    @property
    def sentence(self) -> str:
        """The plausible claim, in words."""
        return self.looks_true.__name__.replace("_", " ")

    @property
    def states(self) -> int:
        """The number of states that it looks at."""
        return 2 if "after" in signature(self.looks_true).parameters else 1

    def along(self) -> Iterator[tuple[Event, State, State, bool]]:
        """Every event of the story, the states around it, and whether what looks true still holds behind it."""
        state = SPECS[self.spec].initial
        for event in self.events:
            after = self._taken(state, event)
            yield event, state, after, self.holds(state, after)
            state = after

    def _taken(self, state: State, event: Event) -> State:
        for step in self.landed:
            if step.__name__ == event[0]:
                return step(state, *event[1])
        return SPECS[self.spec].step(state, event[0], named(self.spec, event), self.profile)[0]

    def holds(self, before: State, after: State) -> bool:
        """True if it holds for every number in reach."""
        looked_at = (before, after)[2 - self.states :]
        free = len(signature(self.looks_true).parameters) - self.states
        return all(self.looks_true(*looked_at, *numbers) for numbers in product(AROUND, repeat=free))

    def story(self) -> list[str]:
        """The events as lines, in the notation of all stories."""
        lines = [f"{self.spec}: it looks as if {self.sentence}. It is not so ({self.seen}).", ""]
        landed = {step.__name__ for step in self.landed}
        calls = [
            (f"{event[0]}()" if event[0] in landed else call(self.spec, event), changes_text(changes(a, b)))
            for event, a, b, _ in self.along()
        ]
        width = column(calls)
        lines += [f"  {number}. {text:<{width}}   {what}" for number, (text, what) in enumerate(calls, 1)]
        return [*lines, "", getdoc(self.looks_true) or ""]


# -- commit log and queue ------------------------------------------------------------------------------------------


def what_is_in_the_log_stays_there(before: log.State, after: log.State) -> bool:
    """A crash takes what was not flushed; only what was acknowledged is promised."""
    return before.end <= after.end


def records_stand_in_the_order_of_time(before: log.State, after: log.State) -> bool:
    """The wall clock belongs to the machine, and may be set back."""
    return before.clock <= after.clock


def numbers_of_a_queue_never_start_again(before: queue.State, after: queue.State) -> bool:
    """A topic that is deleted and created again counts from 0."""
    return before.end <= after.end


def a_queue_begins_where_its_log_does(s: queue.State) -> bool:
    """Slots that were filled with blanks have no message, though the log has the number."""
    return implies(s.start == 0, s.first == 0)


# -- ordered parallel dispatch -------------------------------------------------------------------------------------


def what_is_written_is_visible(s: dispatch.State, number: Number) -> bool:
    """An entry behind a gap waits until the gap is closed: that is the point of it."""
    return implies(s.written[number] > 0, number < s.committed)


def what_consumers_have_seen_stays(before: dispatch.State, after: dispatch.State) -> bool:
    """An entry may be visible before it is flushed. A crash takes it; it is built again, and is the same."""
    return before.committed <= after.committed


def every_write_brings_the_commit_position_nearer(before: dispatch.State, after: dispatch.State) -> bool:
    """The naive rank: entries given and not visible. Only a commit lowers it, and only writing the first gap helps."""
    written = before.scanned == after.scanned and before.at != after.at and after.at == -1
    return implies(written, after.scanned - after.committed < before.scanned - before.committed)


def a_half_that_was_cached_is_found(s: half_cache.State, number: Number) -> bool:
    """Not if it grew too old, or was read: then there is the disk, or, before the flush, nothing yet."""
    return implies(s.puts[number] > 0, s.places[number] != half_cache.NOWHERE)


# -- the ring ------------------------------------------------------------------------------------------------------


def truncate_as_landed(s: ring.State) -> ring.State:
    """The broker's own way: the new service numbers its batches from 0, and keeps the old ring and its pointer.

    Looks right, and is not: no action. Old batches lie where new ones belong, and new ones lie where the pointer has
    been. Source: docs/rocketmq.md#ring-truncation (29 of 68 entries were missing).
    """
    return replace(
        s,
        services=s.services + 1,
        cut=Batch(0),
        decoded=s.decoded.cleared(),
        dispatched=s.dispatched.cleared(),
    )


# -- transactions --------------------------------------------------------------------------------------------------


def a_half_has_one_final(s: transaction.State) -> bool:
    """Commit is not idempotent: a repeated commit writes another final."""
    return s.finals <= 1


def commit_and_rollback_exclude_each_other(s: transaction.State, number: Number) -> bool:
    """Nothing looks at the ops when a decision comes in."""
    return implies(s.commits[number] > 0, s.rollbacks[number] == 0)


def every_version_of_a_decided_half_has_an_op(s: transaction.State, number: Number) -> bool:
    """Versions that were put back get none; nor does what a crash took from memory."""
    return implies(s.marks[s.newest] > 0 and 0 <= s.positions[number], s.marks[number] > 0)


def a_decided_half_is_never_put_back(before: transaction.State, after: transaction.State) -> bool:
    """The op is late, or lost: the check service has not seen it."""
    return implies(before.phase == Phase.COMMITTED, before.newest == after.newest)


def ops_name_a_half_once(s: transaction.State, number: Number) -> bool:
    """Every decision that is accepted has its op, also a repeated one."""
    return s.marks[number] <= 1


def what_is_parked_stays_invisible(before: transaction.State, after: transaction.State) -> bool:
    """It stays committable: a producer that answers late is heard."""
    return implies(before.phase == Phase.PARKED, after.finals == before.finals)


def versions_are_a_chain(s: transaction.State, number: Number, other: Number) -> bool:
    """After a restart with an older cursor the same version is put back again: two branches, and each can commit."""
    there = 0 <= s.positions[number] and 0 <= s.positions[other]
    return implies(there and number != other, s.times[number] != s.times[other])


def an_acknowledged_commit_has_its_op(s: transaction.State, number: Number) -> bool:
    """The op waits in memory, and may be lost there. The final is what was promised."""
    return implies(s.commits_reported[number] > 0, s.marks[number] > 0)


def a_rollback_is_final(before: transaction.State, after: transaction.State) -> bool:
    """It leaves no trace but its op: a crash before that undoes it, and the producer is asked again."""
    return implies(before.phase == Phase.ROLLED_BACK, after.phase == Phase.ROLLED_BACK)


def an_op_is_done_with_when_its_halves_are_passed(
    before: checkpoint.State, after: checkpoint.State, number: Number
) -> bool:
    """An immune half takes its op with it, whatever other halves that names: the op cursor may pass what is needed."""
    return implies(before.consumed[number] != after.consumed[number], before.reaches[number] <= before.half_cursor)


def a_body_is_no_longer_than_its_limit(before: op_batch.State, after: op_batch.State) -> bool:
    """It ends with the entry that fills it, and that one may reach over."""
    written = before.size - after.size
    return implies(before.ops < after.ops and 0 < after.max_size, written <= after.max_size)


def what_waits_is_written_in_the_end(before: op_batch.State, after: op_batch.State) -> bool:
    """Entries younger than the interval are lost even in an orderly stop; back-check repairs it, and nothing else."""
    return implies(after.entered - after.written < before.entered - before.written, before.ops < after.ops)


def no_entry_waits_longer_than_the_interval(before: op_batch.State, after: op_batch.State) -> bool:
    """An entry that comes right after a tick misses the next one too."""
    waited = 0 < before.interval and before.written < before.entered and after.written == before.written
    return implies(waited and after.entered == before.entered, after.clock - before.since <= before.interval)


# -- coordinator and client ----------------------------------------------------------------------------------------


def no_more_are_active_than_the_limit(s: coordinator.State) -> bool:
    """The limit is checked first and the log written later: concurrent requests pass it."""
    return implies(0 < s.limit, s.active <= s.limit)


def a_restart_brings_the_active_within_the_limit(s: coordinator.State) -> bool:
    """All that the log holds is loaded, however low the limit is by now."""
    return implies(0 < s.running and 0 < s.limit, s.active <= s.limit)


def numbers_of_transactions_are_dense(s: coordinator.State, number: Number) -> bool:
    """A number is drawn before the log is written, and burned if that fails."""
    return implies(0 <= number and number < s.end, s.begun[number] == 1)


def a_transaction_has_its_time(s: coordinator.State, number: Number) -> bool:
    """With less to live than a tick of the clock, it is aborted as soon as it begins."""
    return s.left[number] <= 0


def a_decision_frees_the_slot(s: coordinator.State, number: Number) -> bool:
    """Only the outcome does: all that take part must know it first."""
    return implies(takes_a_slot(s.log[number]), s.log[number] < 2)


def a_lost_connection_frees_all_permits(before: permits.State, after: permits.State) -> bool:
    """Requests that are out keep theirs, and go out again."""
    return implies(before.cuts < after.cuts, after.in_use == 0)


def who_waits_is_woken(s: permits.State) -> bool:
    """A continuation of an answer asks again, and waits on the only thread that gives permits back."""
    return s.stuck == 0


LOG = ("open", (0, 100))
RECORD = (1, 1, 1, 1)  # known, fits, intact, sealed
HALF = (("open", (0, 0, 0)), ("prepare", (0, 40, 1)))
QUEUE = (("open", (0, 0)), ("append", (0, 1, 0, 91, 0)))
TWO_SCANNED = (("open", (0, 1)), ("scan", (0,)), ("scan", (1,)))

FALSE_FRIENDS: tuple[FalseFriend, ...] = (
    FalseFriend(
        "log", what_is_in_the_log_stays_there, "strict",
        (LOG, ("append", (0, 50, 0, *RECORD, 1)), ("crash", (0,))),
        "docs/rocketmq.md#cl1: a process crash keeps the page cache, an OS crash does not",
    ),
    FalseFriend(
        "log", records_stand_in_the_order_of_time, "rocketmq",
        (LOG, ("append", (0, 20, 0, *RECORD, 5)), ("append", (20, 20, 20, *RECORD, 4))),
        "docs/rocketmq.md#cl4",
    ),
    FalseFriend(
        "queue", numbers_of_a_queue_never_start_again, "rocketmq",
        (*QUEUE, ("append", (1, 1, 91, 91, 0)), ("append", (0, 1, 182, 91, 0))),
        "docs/rocketmq.md#cl3",
    ),
    FalseFriend(
        "queue", a_queue_begins_where_its_log_does, "rocketmq",
        (*QUEUE, ("append", (1, 1, 91, 91, 0)), ("index", (0, 0, 0x7FFFFFFF, 0))),
        "docs/rocketmq.md#pre-blank, #n20",
    ),
    FalseFriend(
        "dispatch", what_is_written_is_visible, "strict",
        (*TWO_SCANNED, ("take", (1,)), ("write", (1,))),
        "docs/proposals.md#parallel-dispatch-example: m5 is written, and the commit position stays at m2",
    ),
    FalseFriend(
        "dispatch", what_consumers_have_seen_stays, "strict",
        (*TWO_SCANNED, ("take", (0,)), ("write", (0,)), ("commit", (1,)), ("crash", (0,))),
        "docs/rocketmq.md#cq2: across an OS crash",
    ),
    FalseFriend(
        "dispatch", every_write_brings_the_commit_position_nearer, "strict",
        (*TWO_SCANNED, ("take", (1,)), ("write", (1,))),
        "docs/design.md#liveness: a rank needs a witness",
    ),
    FalseFriend(
        "ring", ring.dispatch_never_passes_a_gap, "rocketmq",
        (
            ("open", (3,)), ("cut", (0,)), ("cut", (1,)), ("decode", (1,)), ("truncate_as_landed", ()),
            ("cut", (0,)), ("decode", (0,)), ("dispatch", (0,)), ("dispatch", (1,)),
        ),
        "docs/rocketmq.md#ring-truncation: the old ring and its pointer stay; 29 of 68 entries were missing",
        landed=(truncate_as_landed,),
    ),
    FalseFriend(
        "ring", ring.every_batch_is_dispatched_once, "rocketmq",
        (
            ("open", (3,)), ("cut", (0,)), ("decode", (0,)), ("dispatch", (0,)), ("truncate_as_landed", ()),
        ),
        "docs/rocketmq.md#ring-truncation: the pointer has passed the slot of the new batch 0",
        landed=(truncate_as_landed,),
    ),
    FalseFriend(
        "half_cache", a_half_that_was_cached_is_found, "strict",
        (("open", (0, 0, 1)), ("append", (0, 7)), ("put", (0, 7)), ("append", (1, 8)), ("evict", (0,))),
        "docs/proposals.md#half-cache-capacity: the eldest goes",
    ),
    FalseFriend(
        "transaction", a_half_has_one_final, "rocketmq",
        (*HALF, ("commit", (0, 40, 90, 1, 0)), ("commit", (0, 40, 140, 1, 0))),
        "docs/rocketmq-transactions.md#n1; apache/rocketmq#5574",
    ),
    FalseFriend(
        "transaction", commit_and_rollback_exclude_each_other, "rocketmq",
        (*HALF, ("roll_back", (0,)), ("commit", (0, 40, 90, 1, 0))),
        "docs/rocketmq-transactions.md#n2; apache/rocketmq#8158",
    ),
    FalseFriend(
        "transaction", every_version_of_a_decided_half_has_an_op, "strict",
        (*HALF, ("check", (1, 0, 90, 1, 1, 1)), ("commit", (1, 90, 140, 1, 0)), ("mark", (1,))),
        "docs/rocketmq-transactions.md#n3",
    ),
    FalseFriend(
        "transaction", a_decided_half_is_never_put_back, "rocketmq",
        (*HALF, ("commit", (0, 40, 90, 1, 0)), ("check", (1, 0, 140, 1, 1, 1))),
        "docs/rocketmq-transactions.md#n4",
    ),
    FalseFriend(
        "transaction", ops_name_a_half_once, "rocketmq",
        (*HALF, ("commit", (0, 40, 90, 1, 0)), ("commit", (0, 40, 140, 1, 0)), ("mark", (0,)), ("mark", (0,))),
        "docs/rocketmq-transactions.md#n5",
    ),
    FalseFriend(
        "transaction", what_is_parked_stays_invisible, "rocketmq",
        (*HALF, ("park", (0, 90, 0, 1, 0)), ("commit", (0, 40, 140, 1, 0))),
        "docs/rocketmq-transactions.md#n10; apache/rocketmq#8158",
    ),
    FalseFriend(
        "transaction", versions_are_a_chain, "rocketmq",
        (*HALF, ("check", (1, 0, 90, 1, 1, 1)), ("check", (2, 0, 140, 1, 1, 1))),
        "docs/rocketmq-transactions.md#n11",
    ),
    FalseFriend(
        "transaction", an_acknowledged_commit_has_its_op, "strict",
        (*HALF, ("commit", (0, 40, 90, 1, 0)), ("acknowledge", (0,))),
        "docs/rocketmq-transactions.md#n14",
    ),
    FalseFriend(
        "transaction", a_rollback_is_final, "strict",
        (*HALF, ("roll_back", (0,)), ("crash", ())),
        "docs/rocketmq-transactions.md#n14, #op-crash",
    ),
    FalseFriend(
        "checkpoint", an_op_is_done_with_when_its_halves_are_passed, "rocketmq",
        (("open", (0, 0)), ("half", (0,)), ("op", (0, 1)), ("consume_op", (0,))),
        "docs/rocketmq-transactions.md#n16; apache/rocketmq#7240",
    ),
    FalseFriend(
        "op_batch", a_body_is_no_longer_than_its_limit, "strict",
        (("open", (4, 0)), ("enqueue", (1, 3, 1)), ("enqueue", (2, 3, 1)), ("write", (2, 6, 3, 1, 1))),
        "docs/rocketmq-transactions.md#n28",
    ),
    FalseFriend(
        "op_batch", what_waits_is_written_in_the_end, "rocketmq",
        (("open", (op_batch.MAX_SIZE, op_batch.INTERVAL)), ("enqueue", (1, 3, 1)), ("stop", ())),
        "docs/rocketmq-transactions.md#op-stop, #n14",
    ),
    FalseFriend(
        "op_batch", no_entry_waits_longer_than_the_interval, "rocketmq",
        (("open", (op_batch.MAX_SIZE, op_batch.INTERVAL)), ("enqueue", (1, 3, 1)), ("tick", (5875,))),
        "docs/rocketmq-transactions.md#op-interval: 5875 ms seen; apache/rocketmq#10199",
    ),
    FalseFriend(
        "coordinator", no_more_are_active_than_the_limit, "pulsar",
        (("open", (1,)), ("admit", (0,)), ("admit", (1,)), ("begin", (0, 0, 0, 60000)), ("begin", (1, 1, 0, 60000))),
        "docs/pulsar.md#n-1, #p-10",
    ),
    FalseFriend(
        "coordinator", a_restart_brings_the_active_within_the_limit, "strict",
        (
            ("open", (2,)), ("admit", (0,)), ("begin", (0, 0, 0, 60000)), ("admit", (1,)), ("begin", (1, 1, 0, 60000)),
            ("unload", ()), ("load", (0, 1)), ("load", (1, 1)), ("recover", (1,)),
        ),
        "docs/pulsar.md#n-2",
    ),
    FalseFriend(
        "coordinator", numbers_of_transactions_are_dense, "strict",
        (("open", (2,)), ("admit", (0,)), ("begin", (3, 0, 0, 60000))),
        "docs/pulsar.md#n-17",
    ),
    FalseFriend(
        "coordinator", a_transaction_has_its_time, "pulsar",
        (("open", (2,)), ("admit", (0,)), ("begin", (0, 0, 0, 50)), ("time_out", (0, 1))),
        "docs/pulsar.md#n-14",
    ),
    FalseFriend(
        "coordinator", a_decision_frees_the_slot, "strict",
        (("open", (2,)), ("admit", (0,)), ("begin", (0, 0, 0, 60000)), ("decide", (0, 2))),
        "docs/pulsar.md#n-12",
    ),
    FalseFriend(
        "permits", a_lost_connection_frees_all_permits, "strict",
        (("open", (2, 30000)), ("acquire", (1,)), ("disconnect", ())),
        "docs/pulsar.md#n-7",
    ),
    FalseFriend(
        "permits", who_waits_is_woken, "pulsar",
        (("open", (2, 30000)), ("wait", (1,)), ("rest", (1,))),
        "docs/pulsar.md#n-6; apache/pulsar#14866",
    ),
)  # fmt: skip


def of_spec(name: str) -> Sequence[FalseFriend]:
    """Those of one spec."""
    return [friend for friend in FALSE_FRIENDS if friend.spec == name]


__all__ = ["FALSE_FRIENDS", "FalseFriend", "of_spec"]
