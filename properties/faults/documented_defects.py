"""Documented defects of real brokers, planted in the specs by hand, each with its noticing property.

The codes are those of docs/defects.md (`docs/defects.md#t10` is T10), which says what went wrong, where that is
documented, and what shows. What a spec cannot express is not here: threads that die, what a network does, bytes.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gapless.properties.faults import operators
from gapless.spec.catalog import SPECS, Spec, text_of


@dataclass(frozen=True)
class Defect:
    """One defect: in which step of which spec, what stands there instead of what, and what notices it.

    `written`: a piece of the step's text, or the id of a need, which is left out then · `instead`:
    what stands there; None for a need.
    """

    code: str
    spec: str
    step: str
    written: str
    instead: str | None
    noticed_by: str

    @property
    def citation(self) -> str:
        """The reference to its documentation."""
        return f"docs/defects.md#{self.code.lower()}"

    def planted(self) -> Spec:
        """The spec with the defect. Raises LookupError where the step does not say what it is to be planted in."""
        return planted(self)


def planted(*defects: Defect) -> Spec:
    """The spec with several defects of it at once, all in the file of the design. Raises LookupError."""
    spec = SPECS[defects[0].spec]
    text = text_of(spec.module)
    for defect in defects:
        begin, end = _span(text, defect.step)
        step = text[begin:end]
        part = step.replace(*_change(step, defect), 1)
        if part == step:
            raise LookupError(f"{defect.code}: {defect.spec}.{defect.step} does not say {defect.written!r}")
        text = text[:begin] + part + text[end:]
    return operators.changed(spec, text)


def _change(step: str, defect: Defect) -> tuple[str, str]:
    """The replaced part of a step's text, and the new text: of a need all of it."""
    if defect.instead is not None:
        return defect.written, defect.instead
    for node in ast.walk(ast.parse(step)):
        match node:
            case ast.Call(func=ast.Name(id="require"), args=[_, ast.Constant(value=rule)]) if rule == defect.written:
                return ast.get_source_segment(step, node) or "", "None"
    raise LookupError(f"{defect.code}: {defect.spec}.{defect.step} does not need {defect.written!r}")


def _span(text: str, function: str) -> tuple[int, int]:
    """The begin and end of a function."""
    lines = text.splitlines(keepends=True)
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            begin = sum(map(len, lines[: node.lineno - 1]))
            return begin, begin + sum(map(len, lines[node.lineno - 1 : node.end_lineno]))
    raise LookupError(f"no function {function}")


def _without(code: str, step: str, rule: str, noticed_by: str) -> Defect:
    """A need that a broker did not keep. `step`: of which spec, and its name."""
    spec, _, name = step.partition(".")
    return Defect(code, spec, name, rule, None, noticed_by)


def _instead(code: str, step: str, written: str, instead: str, noticed_by: str) -> Defect:
    spec, _, name = step.partition(".")
    return Defect(code, spec, name, written, instead, noticed_by)


PREPARED = "s.phase == Phase.PREPARED"
TRANSACTION = "kafka_transaction"
ONGOING = "s.phase == TxnStatus.ONGOING"
KNOWN = "what_is_undecided_is_known_to_the_coordinator"

DEFECTS: tuple[Defect, ...] = (
    # -- transactions of RocketMQ ----------------------------------------------------------------------------------
    _without(
        "T01", "checkpoint.advance", "half-cursor-passes-no-undecided-half", "what_the_half_cursor_passes_is_resolved"
    ),
    _without("T03", "check_service.put_back", "half-is-undecided", "nobody_is_asked_about_what_is_decided"),
    _without("T08", "transaction.check", "counter-goes-up-by-one", "a_producer_is_asked_step_by_step"),
    _without("T09", "transaction.park", "transaction-is-undecided", "an_outcome_is_final"),
    _without("T10", "transaction.commit", "transaction-is-undecided", "a_final_is_seen_once"),
    _instead(
        "T11", "transaction.commit", PREPARED, f"{PREPARED} or s.phase == Phase.ROLLED_BACK", "there_is_one_outcome"
    ),
    _instead("T13", "transaction.commit", PREPARED, f"{PREPARED} or s.phase == Phase.PARKED", "an_outcome_is_final"),
    _without("T17", "broker.commit", "final-goes-where-its-half-was-meant-to-go", "the_message_goes_where_it_was_sent"),
    _without(
        "T21",
        "checkpoint.advance_ops",
        "op-cursor-passes-no-op-that-is-still-needed",
        "what_the_op_cursor_passes_is_consumed",
    ),
    _without("T24", "broker.check", "who-is-asked-is-of-the-group-that-sent-the-half", "who_is_asked_knows"),
    _without("G01", "transaction.marked", "decision-came-before-the-op", "an_op_follows_a_decision"),
    _without("G10", "op_batch.written", "op-names-what-waits", "a_body_is_bounded"),
    # -- the commit log, consume queues and their dispatch ----------------------------------------------------------
    _without("C03", "queue.index", "no-entry-before-it-is-missing", "an_entry_is_its_message"),
    _instead("C05", "queue.index", "number == s.indexed", "number <= s.indexed", "numbers_are_ordered"),
    _instead("C06", "queue.append", "number == s.end", "s.end <= number", "an_inner_batch_owns_all_its_numbers"),
    _without("C09", "broker.dispatch", "final-is-on-disk", "what_consumers_saw_survives_every_crash"),
    _instead("C11", "queue.index", "number < s.end", "number <= s.end", "numbers_are_ordered"),
    _instead("C13", "queue.append", "number == s.end", "number <= s.end", "a_message_keeps_its_place"),
    _without("C21", "queue.index", "entry-points-at-its-message", "an_entry_is_its_message"),
    _instead(
        "C22",
        "queue.truncate",
        "indexed=s.indexed if s.indexed < number else number",
        "indexed=s.indexed",
        "numbers_are_ordered",
    ),
    _instead("C23", "queue.expire", "first=number", "first=s.first", "an_entry_may_outlive_its_message"),
    _without("C25", "log.acknowledge", "bytes-are-on-disk", "positions_are_ordered"),
    _without("C30", "ring.dispatch", "batch-lies-in-its-slot", "dispatch_never_passes_a_gap"),
    _without("C33", "dispatch.take", "no-worker-has-the-number", "what_is_written_was_taken_once"),
    _without("C36", "log.flush", "bytes-are-written", "positions_are_ordered"),
    _instead(
        "K09",
        "broker.dispatch",
        "position < s.flushed",
        "position <= s.flushed",
        "what_consumers_saw_survives_every_crash",
    ),
    _without(
        "G02",
        "dispatch.commit",
        "every-entry-before-the-commit-position-is-written",
        "the_commit_position_never_passes_a_gap",
    ),
    _without("G04", "half_cache.deny", "only-a-half-that-is-not-in-the-log-is-unknown", "a_miss_falls_back_to_disk"),
    _without("G05", "half_cache.put", "half-was-not-in-the-cache-before", "a_half_is_put_in_once"),
    _instead("G08", "ring.decode", "batch < s.cut", "batch <= s.cut", "a_slot_holds_the_batch_that_belongs_there"),
    # -- transactions of Pulsar, and some of Kafka --------------------------------------------------------------------
    _without("P01", "coordinator.hand", "transaction-began-for-the-request", "a_transaction_is_its_requests"),
    _without(
        "P10", "coordinator.finish", "outcome-is-the-one-that-was-decided-and-the-first", "an_end_has_one_outcome"
    ),
    _without("P12", "coordinator.acknowledge", "outcome-that-is-told-is-in-the-log", "a_client_is_told_the_truth"),
    _without("P20", "coordinator.recover", "every-active-transaction-comes-back", "no_active_transaction_is_forgotten"),
    _without("P22", "coordinator.decide", "transaction-is-open", "an_outcome_is_the_one_that_was_decided"),
    _without("P23", "coordinator.load", "transaction-comes-back-as-it-was", "nothing_that_ended_comes_back"),
    _without("P25", "coordinator.begin", "number-is-new", "a_number_is_used_once"),
    _instead(
        "P34", "coordinator.decide", "timers=s.timers.set(number, 0)", "timers=s.timers", "no_timer_is_left_behind"
    ),
    _instead(
        "K04",
        "coordinator.finish",
        "to == Status.COMMITTED)",
        "to == Status.COMMITTED and s.active < 0)",
        "what_is_decided_ends",
    ),
    _instead("K05", "coordinator.burn", "admitted=s.admitted - 1, ", "", "all_who_are_admitted_are_counted"),
    _instead("K11", "coordinator.load", "table=s.table.set(number, status), ", "", "what_the_log_holds_comes_back"),
    _without("K06", "partition.truncate", "what-is-committed-stays", "offsets_are_ordered"),
    _without("K12", "producer.snapshot", "snapshot-is-not-ahead-of-its-log", "a_snapshot_knows_no_more_than_the_log"),
    _without("K13", "producer.mark", "epoch-of-the-coordinator-does-not-go-back", "coordinators_epochs_rise"),
    _without("K14", "partition.lead", "epoch-of-the-leader-goes-up", "epochs_and_their_starts_rise_together"),
    _without("K15", "partition.delete", "only-what-is-committed-is-deleted", "offsets_are_ordered"),
    _without("K16", "partition.raise_watermark", "high-watermark-stays-within-the-log", "offsets_are_ordered"),
    _without("K17", "aborted_index.abort", "every-abort-is-in-the-index", "an_abort_is_hidden_before_the_next"),
    _without("K18", "partition.append", "offset-fits-its-segment", "an_index_has_room_for_every_offset"),
    # -- Kafka's transactions, and the offsets of its groups ---------------------------------------------------------
    _without("K01", f"{TRANSACTION}.write", "records-belong-to-an-open-transaction", KNOWN),
    _instead("K02", f"{TRANSACTION}.write", ONGOING, f"{ONGOING} or is_prepared(s)", KNOWN),
    _instead("K08", f"{TRANSACTION}.time_out", "epoch == s.epoch + 1", "s.epoch < epoch", "a_time_out_fences"),
    _without(
        "K19",
        f"{TRANSACTION}.acknowledge",
        "answer-to-a-producer-is-what-was-decided",
        "an_answer_to_a_producer_is_true",
    ),
    _instead(
        "K20",
        f"{TRANSACTION}.decide",
        "s.epoch + 1 if protocol == 2",
        "s.epoch + 2 if protocol == 2",
        "a_decision_has_the_epoch_of_its_protocol",
    ),
    _instead("K21", f"{TRANSACTION}.time_out", "epoch == s.epoch + 1", "epoch == s.epoch", "a_time_out_fences"),
    _without(
        "K22",
        "group_offsets.settle",
        "no-offset-waits-for-what-is-decided",
        "what_waits_at_the_end_is_undecided",
    ),
    _without(
        "K23",
        "group_offsets.tombstone",
        "group-with-an-offset-that-waits-is-not-deleted",
        "a_group_is_deleted_when_nothing_waits",
    ),
    _instead("K24", "group_offsets.mark", "commit and s.at < s.places[pid]", "commit", "what_counts_only_moves_on"),
    _without(
        "K25",
        "group_offsets.expire",
        "offset-is-forgotten-when-its-time-has-come",
        "a_group_is_deleted_when_nothing_waits",
    ),
    _without("K26", f"{TRANSACTION}.received", "record-that-is-received-is-committed", "what_is_received_is_committed"),
    _without("K27", f"{TRANSACTION}.init", "epoch-of-a-known-id-counts-from-0", "a_status_is_one_of_seven"),
    _without("K28", f"{TRANSACTION}.mark", "partition-has-one-marker-of-a-decision", "a_partition_is_marked_once"),
    _instead(
        "G11",
        "group_offsets.mark",
        "counts = waits and commit and",
        "counts = waits and",
        "an_aborted_offset_never_counts",
    ),
    # -- permits of clients ------------------------------------------------------------------------------------------
    _without("P03", "permits.rest", "nobody-waits-while-a-permit-is-free", "nobody_waits_for_a_free_permit"),
    _instead(
        "P06", "permits.time_out", "in_use=others", "in_use=s.in_use", "a_permit_is_held_while_its_request_is_out"
    ),
    _without("P07", "permits.time_out", "request-holds-a-permit", "a_permit_is_given_back_once"),
    _without("P08", "permits.time_out", "timeout-has-passed", "nobody_is_given_up_before_the_timeout"),
    _without("G07", "permits.reply", "request-holds-a-permit", "a_permit_is_given_back_once"),
)
"""All of them. Where one notices several, or several notice one, one is named."""

DECIDED_FOR_EVER, BURNT_SLOT, TIMER_LEFT = (
    next(defect for defect in DEFECTS if defect.code == code) for code in ("K04", "K05", "P34")
)
ONE_NUMBER = _instead(
    "G02", "queue.append", "end=Number(number + count)", "end=Number(number + 1)", "an_inner_batch_owns_all_its_numbers"
)
NO_OP = _instead(
    "T27",
    "op_batch.tick",
    "return replace(s, clock=time)",
    "return replace(s, clock=time, entered=s.written, size=0)",
    "entries_leave_only_by_an_op_or_a_crash",
)
AHEAD = _without(
    "C11", "checkpoint.save", "what-the-saved-cursors-passed-is-on-disk", "no_saved_cursor_is_ahead_of_what_is_flushed"
)
UNNOTICED: tuple[Defect, ...] = (NO_OP, ONE_NUMBER, AHEAD, BURNT_SLOT, DECIDED_FOR_EVER, TIMER_LEFT)
"""Faults that, planted together, proofs and exploration once passed as *all hold*: each has a property of its own."""
