"""Reports about Pulsar's transaction coordinator and its clients."""

from __future__ import annotations

from tests.support.pulsar_recordings import Line
from tests.support.reports.report import PublicReport, altered_trace, trace_as_recorded

LIMITED, RECOVERED, MIXED = "coord-limit", "coord-recover", "coord-mixed"


def _records(lines: list[Line], **wanted: object) -> list[Line]:
    return [line for line in lines if line["k"] == "log" and wanted.items() <= line.items()]


def number_given_twice(lines: list[Line]) -> None:
    new = _records(lines, op="NEW")
    answer = next(line for line in lines if line["k"] == "ret" and line.get("txn") == new[41]["txn"])
    new[41]["txn"] = answer["txn"] = new[40]["txn"]


def committing_is_aborted(lines: list[Line]) -> None:
    """A decision to commit ends as aborted, against the answer to its client."""
    _records(lines, new="COMMITTED")[40] |= {"exp": "ABORTING", "new": "ABORTED"}


def committed_and_timed_out(lines: list[Line]) -> list[Line]:
    end = _records(lines, new="COMMITTED")[40]
    timed_out = end | {"exp": "OPEN", "new": "ABORTING"}
    call = {**end, "k": "call", "c": 10**6, "op": "update", "exp": "OPEN", "new": "ABORTING", "timeout": True}
    at = lines.index(end) + 1
    return [*lines[:at], call, timed_out, {**end, "k": "ret", "c": 10**6, "res": "ok"}, *lines[at:]]


def last_one_stays_committing(lines: list[Line]) -> list[Line]:
    """The last transaction that was decided to commit has no end: no record, no answer, no try."""
    decided = _records(lines, new="COMMITTING")[-1]
    number, after = decided["txn"], lines.index(decided)
    calls = {line["c"] for line in lines[after:] if line["k"] == "call" and line.get("txn") == number}
    ends = {line["e"] for line in lines if line["k"] == "end_call" and line.get("txn") == number}

    def is_gone(line: Line) -> bool:
        of_it = line.get("txn") == number and line["k"] in ("log", "call", "append", "part", "del")
        answers = (line["k"] == "ret" and line["c"] in calls) or (line["k"] == "end_ret" and line["e"] in ends)
        return of_it or answers

    return [line for at, line in enumerate(lines) if at <= after or not is_gone(line)]


def not_found_after_all(lines: list[Line]) -> None:
    """A client whose transaction was committed is answered that there is none."""
    end = next(line for line in lines if line["k"] == "end_ret" and line["res"] == "ok")
    end |= {"res": "err", "err": "TransactionNotFoundException"}


COORDINATOR = (
    PublicReport(
        "pulsar 20150 · pulsar 20585",
        "With batched writes of the log, transactions that ended are open again after a restart",
        "16 of 47 transactions that two restarts load had ended",
        trace_as_recorded("broker-restart-batch"),
        "departs", "violation", "coordinator/transaction-comes-back-as-it-was",
        "`broker-restart-batch`, booted 4.2.4",
        remark="[found](found.md)",
    ),
    PublicReport(
        "pulsar 10224 · pulsar 13116",
        "After the log was trimmed, numbers began too low and were given twice",
        "A number of two transactions",
        altered_trace(RECOVERED, number_given_twice),
        "departs", "violation", "coordinator/number-is-new", f"`{RECOVERED}`, altered",
    ),
    PublicReport(
        "pulsar 10179",
        "A recovered transaction that was committing was treated as open, and aborted",
        "COMMITTING, then ABORTED, and the answer *committed*",
        altered_trace(LIMITED, committing_is_aborted),
        "departs", "violation", "coordinator/outcome-that-is-told-is-in-the-log", f"`{LIMITED}`, altered",
    ),
    PublicReport(
        "pulsar 14370",
        "A timeout came between a commit's check and its record",
        "COMMITTED, and timed out after it",
        altered_trace(LIMITED, committed_and_timed_out),
        "departs", "violation", "coordinator/transaction-has-had-its-time", f"`{LIMITED}`, altered",
    ),
    PublicReport(
        "pulsar 23550 · pulsar 19200 · pulsar 18923",
        "Transactions stay COMMITTING: requests of theirs were never sent, or the first try after a recovery failed",
        "The last one that was decided has no end",
        altered_trace(MIXED, last_one_stays_committing),
        "conforms", "nothing", "", f"`{MIXED}`, altered",
    ),
    PublicReport(
        "pulsar 19629 · pulsar 19744",
        "A commit that succeeded is answered *TransactionNotFound* when it is repeated",
        "That answer for a transaction that is COMMITTED",
        altered_trace(LIMITED, not_found_after_all),
        "conforms", "anomaly", "begin_above_the_limit", f"`{LIMITED}`, altered",
        remark="no promise ([docs](pulsar.md)): nothing is kept of what has ended. The anomaly is the next row's",
    ),
    PublicReport(
        "pulsar 15133",
        "At `maxActiveTransactionsPerCoordinator` requests are met with silence",
        "More active than the limit, for it is asked before the log is written",
        trace_as_recorded("broker-limit"),
        "conforms", "anomaly", "begin_above_the_limit", "`broker-limit`, booted 4.2.4",
        remark="`--profile strict` departs",
    ),
)  # fmt: skip
STAGES = {"Pulsar's transaction coordinator": COORDINATOR}
