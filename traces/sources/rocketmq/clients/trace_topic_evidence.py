"""Evidence from trace topics, in addition to a client log, or in place of one."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt

from gapless.traces.sources.rocketmq.clients import trace_bodies as bodies
from gapless.traces.sources.rocketmq.clients import trace_topics
from gapless.traces.sources.rocketmq.clients.decision_index import no_decisions
from gapless.traces.sources.rocketmq.clients.evidence import ClientEvidence
from gapless.traces.sources.rocketmq.clients.requests.request_lines import OK
from gapless.traces.sources.rocketmq.clients.requests.request_rows import AnsweredSends
from gapless.traces.sources.rocketmq.clients.trace_topics import TraceTopicAnswers
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import distinct
from gapless.traces.sources.rocketmq.report_rows import TraceTopicRow
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory

BEFORE = 2000  # ms that a client's clock may be behind the broker's, where messages of an earlier log are left out


def with_trace_topics(store: StoreDirectory, client: ClientEvidence | None, source: str) -> ClientEvidence | None:
    """Adds the evidence of the store's trace topics to a client log's; None if there is neither."""
    answers = trace_topics.read(store)
    if answers is None or not answers.messages:
        return client
    promised, untimely = promises_of(store, answers)
    what = answers.rows[bodies.WHAT]
    row = TraceTopicRow(
        source=source,
        topics=", ".join(answers.names),
        promised=len(promised),
        expired=int((promised.position < store.start).sum()),
        commits=_keys(answers, what == bodies.COMMIT_ASKED),
        rollbacks=_keys(answers, what == bodies.ROLL_BACK_ASKED),
        **counts_of(answers, untimely),
    )
    merged = _merged(client or no_evidence(), promised, answers.topics, row)
    return replace(merged, handed=deliveries_of(store, answers))


def counts_of(answers: TraceTopicAnswers, untimely: int) -> dict[str, int]:
    """Returns those counts of trace messages that add up, by their names in a `TraceTopicRow`."""
    counts = answers.counts.tolist()
    return {
        "messages": answers.messages, "damaged": answers.damaged, "contexts": counts[bodies.CONTEXTS],
        "strange": counts[bodies.STRANGE], "elsewhere": counts[bodies.ELSEWHERE], "placeless": counts[bodies.NOWHERE],
        "doubtful": counts[bodies.DOUBTFUL], "untimely": counts[bodies.LATER] + untimely,
        "handed": int((answers.rows[bodies.WHAT] == bodies.HANDED).sum()),
    }  # fmt: skip


def deliveries_of(store: StoreDirectory, answers: TraceTopicAnswers) -> Ints:
    """The messages that consumers were handed, by their keys: as far as it was this log that was read."""
    what = answers.rows[bodies.WHAT]
    rows = answers.rows[:, (what == bodies.HANDED) | (what == bodies.DONE_WITH)]
    rows = rows[:, (rows[bodies.TIME] == 0) | _timely(store, rows)]
    order = np.lexsort([rows[bodies.WITNESS], rows[bodies.KEY]])
    keys, first = np.unique(rows[bodies.KEY, order], return_index=True)
    return np.stack([keys, rows[bodies.WITNESS, order][first]])


def _timely(store: StoreDirectory, rows: Ints) -> npt.NDArray[np.bool_]:
    """Returns the mask of rows that are not older than the log's first record."""
    timely: npt.NDArray[np.bool_] = rows[bodies.TIME] + BEFORE >= file_access.header_of(store, store.start).time
    return timely


def _keys(answers: TraceTopicAnswers, chosen: Ints) -> int:
    """Returns the number of messages that these rows are about."""
    return len(distinct(answers.rows[bodies.KEY, chosen]))


def promises_of(store: StoreDirectory, answers: TraceTopicAnswers) -> tuple[AnsweredSends, int]:
    """Returns each message that was answered with a place in this log, and the number of an earlier log's.

    An answer that is older than the log's first record came from a broker whose log is gone: a client still sent its
    trace when there was another.
    """
    answered = answers.rows[:, answers.rows[bodies.WHAT] == bodies.ANSWERED]
    timely = _timely(store, answered)
    rows = answered[:, timely]
    rows = rows[:, np.lexsort([rows[bodies.WITNESS], rows[bodies.KEY], rows[bodies.PLACE]])]
    if rows.shape[1]:
        again = (rows[bodies.PLACE, 1:] == rows[bodies.PLACE, :-1]) & (rows[bodies.KEY, 1:] == rows[bodies.KEY, :-1])
        rows = rows[:, np.concatenate([[True], ~again])]
    return as_answers(rows), int((~timely).sum())


def as_answers(rows: Ints) -> AnsweredSends:
    """Returns answers in trace messages as rows like those of a client log; other fields are unknown."""
    answers = {
        "position": rows[bodies.PLACE], "key": rows[bodies.KEY], "topic": rows[bodies.TOPIC],
        "half": rows[bodies.IS_HALF], "witness": rows[bodies.WITNESS], "line": 0, "count": 1, "result": OK,
    }  # fmt: skip
    columns = {}
    for column in fields(AnsweredSends):
        values = columns[column.name] = np.empty(rows.shape[1], AnsweredSends.width_of(column.name))
        values[:] = answers.get(column.name, -1)
    return AnsweredSends(**columns)


def no_evidence() -> ClientEvidence:
    """Returns evidence without content."""
    return ClientEvidence(
        decisions=no_decisions(),
        sends=AnsweredSends.empty(),
        keys=np.zeros(0, np.int64),
        half_keys=np.zeros(0, np.int64),
        topics=(),
        complete=False,
        summary=None,
        sent_to=frozenset(),
    )


def _merged(
    client: ClientEvidence, promised: AnsweredSends, names: tuple[str, ...], row: TraceTopicRow
) -> ClientEvidence:
    """Merges both by position. Of equal answers, the line of the client log stays, for it has more fields."""
    topics = tuple(dict.fromkeys((*client.topics, *names)))
    index = np.array([topics.index(name) for name in names], np.int64)
    if len(promised):
        promised.topic[:] = index[promised.topic]
    sends = client.sends.with_others(promised)
    sends = sends.some(np.lexsort([-sends.line, sends.position]))
    line, key = sends.line, sends.key
    twice = np.flatnonzero(
        (sends.position[1:] == sends.position[:-1])
        & ((key[1:] == key[:-1]) | (key[1:] == 0) | (key[:-1] == 0))
        & (line[1:] == 0)
        & (line[:-1] > 0)
    )
    sends.witness[twice] = sends.witness[twice + 1]
    rest = np.ones(len(sends), np.bool_)
    rest[twice + 1] = False
    return replace(client, sends=sends.some(rest), topics=topics, testimony=row)
