"""Reports about Pulsar's transaction coordinator and its clients."""

from __future__ import annotations

from tests.support.pulsar_recordings import Line
from tests.support.reports.report import PublicReport, altered_trace, trace_as_recorded

LIMITED, RECOVERED, TIMED = "coord-limit", "coord-recover", "broker-timeouts"
HOUR = 3_600_000_000  # microseconds


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


def one_stays_committing(lines: list[Line]) -> list[Line]:
    """The last commit has no end; its coordinator lives an hour more, and clients are not asked."""
    end = _records(lines, new="COMMITTED")[-1]
    closes = max(at for at, line in enumerate(lines) if line["k"] == "epoch" and line["ev"] == "closing")
    ends = {"txn": end["txn"], "new": "COMMITTED"}
    calls = {line["c"] for line in lines if line["k"] == "call" and ends.items() <= line.items()}
    return [
        line | {"t": line["t"] + HOUR * (at >= closes)}
        for at, line in enumerate(lines)
        if not (line["k"] == "log" and ends.items() <= line.items())
        and not (line["k"] in ("call", "ret") and line["c"] in calls)
        and line["k"] not in ("op_call", "op_done", "op_blocked")
    ]


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
        "One that was decided has no end, and an hour passes",
        altered_trace(TIMED, one_stays_committing),
        "conforms", "anomaly", "overdue", f"`{TIMED}`, altered",
        remark="by an hour ([late](operator.md#overdue)); `--fail-on overdue=60s`",
    ),
    PublicReport(
        "pulsar 10306",
        "A transaction is open for ever after its timeout",
        "OPEN at an orderly close, 22 s after its time",
        trace_as_recorded("pulsar_clock_never_ends"),
        "conforms", "anomaly", "overdue", "`reports/pulsar_clock_never_ends`: 4.2.4, less what its clock did to one",
        remark="by 22 s; `--fail-on overdue=20s`",
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
