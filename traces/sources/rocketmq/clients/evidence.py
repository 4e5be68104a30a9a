"""What clients say, held against the messages of the log: acknowledged and lost, and sent by nobody.

The columns of a client log are sorted by where its answers say that messages lie, and a worker looks up those of its
own split. What clients say of transactions is sorted by their keys, and goes into the transactions' events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gapless.traces.options import Options
from gapless.traces.problems import shown
from gapless.traces.replay.exact import Event
from gapless.traces.replay.kernels import Kernel, Replayed, kernel
from gapless.traces.sources.rocketmq.report import ClientRow
from gapless.traces.sources.rocketmq.store import scan
from gapless.traces.sources.rocketmq.store.layout import HALF_TOPIC
from gapless.traces.sources.rocketmq.store.scan import Ints
from gapless.traces.sources.rocketmq.transactions import lineage

if TYPE_CHECKING:
    from gapless.traces.sources.rocketmq.clients.client_log import ClientLog, Sends, Truths

# Rows of `sends`.
POSITION, NUMBER, KEY, CRC, LENGTH, TOPIC, QUEUE, IS_HALF, LINE, SEND_ROWS = range(10)
STORIES = 40  # suspects of one segment and one kind that are told; more are counted with them

NOBODY = (np.zeros(0, np.int64), np.zeros(0, np.int64))
DIVERTED = ("SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer")  # where a delayed message waits, under another queue's number


@dataclass(frozen=True, eq=False)
class Evidence:
    """A client log, as workers look things up in it.

    `said`: what clients said of transactions, by key (see `lineage`) · `sends`: acknowledged messages by position,
    int64 [SEND_ROWS, messages] · `keys`: of all messages that were sent, sorted · `topics`: by their index.
    """

    said: Ints
    sends: Ints
    keys: Ints
    topics: tuple[str, ...]
    complete: bool  # every message that was sent has its key
    summary: ClientRow

    @cached_property
    def sent_to(self) -> frozenset[str]:
        """The topics that any client sent to."""
        return frozenset(self.topics)


def read(path: Path, source: str) -> Evidence:
    """A client log as evidence. Raises Unreadable, NothingThere."""
    from gapless.traces.sources.rocketmq.clients import client_log  # noqa: PLC0415 - pyarrow loads slowly, and most stores have no log

    log = client_log.read(path)
    sends = log.sends
    return Evidence(
        said=_said(log),
        sends=_placed(sends, sends.result == client_log.OK),
        keys=scan.distinct(sends.key),
        topics=log.topics,
        complete=log.complete,
        summary=ClientRow(
            source=shown(source),
            path=shown(path),
            lines=log.lines,
            sends=int(sends.count.sum()),
            acknowledged=int(sends.count[sends.result == client_log.OK].sum()),
            unknown=int(sends.count[sends.result == client_log.UNKNOWN].sum()),
            decisions=int((log.ends.decision != client_log.UNDECIDED).sum()),
            back_checks=len(log.checks),
        ),
    )


def _placed(sends: Sends, answered: Truths) -> Ints:
    """The sends that an answer gave a place, by position; a column at a time, for there may be millions."""
    placed = np.flatnonzero((sends.position >= 0) & answered)
    order = placed[np.argsort(sends.position[placed], kind="stable")]
    found = np.empty((SEND_ROWS, len(order)), np.int64)
    columns = (
        sends.position, sends.number, sends.key, sends.crc, sends.length, sends.topic, sends.queue, sends.half,
        sends.line,
    )  # fmt: skip
    for row, column in enumerate(columns):
        found[row] = column[order]
    return found


def _said(log: ClientLog) -> Ints:
    """Decisions that were asked for, those that were acknowledged, and back-checks that came in, by key."""
    from gapless.traces.sources.rocketmq.clients import client_log  # noqa: PLC0415 - as above

    ends, checks = log.ends, log.checks
    parts = []
    for what, mine in (
        (lineage.COMMIT, ends.decision == client_log.COMMIT),
        (lineage.ROLL_BACK, ends.decision == client_log.ROLL_BACK),
        (lineage.COMMIT_TOLD, (ends.decision == client_log.COMMIT) & (ends.result == client_log.OK)),
    ):
        count = int(mine.sum())
        parts.append(np.stack([ends.key[mine], ends.position[mine], np.full(count, what), ends.number[mine]]))
    parts.append(np.stack([checks.key, checks.position, np.full(len(checks), lineage.ASKED_BACK), checks.number]))
    said = np.concatenate(parts, axis=1)
    return np.ascontiguousarray(said[:, np.argsort(said[lineage.CLIENT_KEY], kind="stable")])


# -- messages of one segment ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Suspect:
    """A message that is not what clients say: whose it is, its row in the log, the step that was refused, the line."""

    subject: tuple[str, int]
    message: tuple[int, ...]  # number, count, position, size, tag
    event: Event
    line: int  # of the client log; 0 for a message of which it says nothing


@dataclass(frozen=True)
class Kept:
    """What a segment showed of promises.

    `low`, `high`: which sends were looked up · `covered`: accepted steps of `queue` · `suspects`: the first of them,
    `more`: how many others there are, by need · `lost`: which sends have no record where the answer said.
    """

    low: int
    high: int
    covered: Mapping[str, int]
    suspects: list[Suspect]
    more: Mapping[str, int]
    lost: Ints


@dataclass(frozen=True, eq=False)
class Messages:
    """The messages of a segment, for those who look them up.

    `log`: its records · `keys`: of these, [3, records]: digest of UNIQ_KEY, CRC and length of the body · `rows`: of
    its queues, `subjects`: their names.
    """

    log: Ints
    keys: Ints
    rows: Ints
    subjects: list[tuple[str, int]]

    @cached_property
    def row(self) -> Ints:
        """The first queue row of every record, or -1 where it is in no queue."""
        first = np.searchsorted(self.rows[scan.PLACE], self.log[scan.POSITION])
        inside = np.minimum(first, max(self.rows.shape[1] - 1, 0))
        queued = self.rows[scan.PLACE, inside] == self.log[scan.POSITION] if self.rows.shape[1] else first < 0
        return np.where(queued, first, -1)

    def of_subject(self, fact: Callable[[str, int], int]) -> Ints:
        """A fact about the subject of every queue row."""
        facts: Ints = np.array([fact(*subject) for subject in self.subjects] or [0], np.int64)
        of_rows: Ints = facts[self.rows[scan.SUBJECT]]
        return of_rows


def judge_messages(
    evidence: Evidence, messages: Messages, span: tuple[int, int], options: Options, *, live: bool
) -> Kept:
    """Hold the messages that lie in `span` against what clients sent, and against what they were answered.

    While a broker is `live`, messages may be newer than the client log: nobody is asked who sent them.
    """
    low, high = (int(at) for at in np.searchsorted(evidence.sends[POSITION], span))
    whose, sent = _senders(evidence, messages, options) if evidence.complete and not live else NOBODY
    told, same, lost = _answers(evidence, messages, low, high)
    of = kernel("queue", options.ignored)
    accounts = _pairs(
        of, messages.rows[:, whose], "account", {"number": messages.rows[scan.NUMBER, whose], "sent": sent}
    )
    sends = evidence.sends[:, told[0]]
    answers = _pairs(
        of, messages.rows[:, told[1]], "acknowledge",
        {"number": sends[NUMBER], "position": sends[POSITION], "same": same},
    )  # fmt: skip
    covered: dict[str, int] = {}
    suspects: list[Suspect] = []
    more: dict[str, int] = {}
    for pairs, rows, lines in ((accounts, whose, np.zeros_like(whose)), (answers, told[1], sends[LINE])):
        found = pairs.replay(of, options)
        for name in ("account", "acknowledge"):
            covered[name] = covered.get(name, 0) + int(found.covered[of.spec.codes[name]])
        _suspect(of, messages, pairs, found, rows, lines, suspects, more)
    return Kept(low, high, covered, suspects, more, low + lost)


def _senders(evidence: Evidence, messages: Messages, options: Options) -> tuple[Ints, Ints]:
    """Queue rows of the messages that somebody must have sent, and whether anybody did."""
    known = messages.of_subject(
        lambda topic, queue: options.wants(topic, queue) and (topic in evidence.sent_to or topic == HALF_TOPIC)
    )
    records = np.flatnonzero(messages.row >= 0)
    records = records[known[messages.row[records]] == 1]
    return messages.row[records], scan.among(messages.keys[0, records], evidence.keys).astype(np.int64)


def _answers(evidence: Evidence, messages: Messages, low: int, high: int) -> tuple[Ints, Ints, Ints]:
    """Which sends have a record where the answer said, and its queue row; whether it is theirs; which have none."""
    sends = evidence.sends[:, low:high]
    record = np.searchsorted(messages.log[scan.POSITION], sends[POSITION])
    inside = np.minimum(record, max(messages.log.shape[1] - 1, 0))
    if not messages.log.shape[1]:
        return np.zeros((2, 0), np.int64), np.zeros(0, np.int64), np.arange(high - low)
    found = messages.log[scan.POSITION, inside] == sends[POSITION]
    there = found & (messages.row[inside] >= 0)  # flags that a client set itself keep a message out of all queues
    record, sends = inside[there], sends[:, there]
    row = messages.row[record]
    key, crc, length = messages.keys[:, record]
    same = (
        ((sends[KEY] == 0) | (key == sends[KEY]))
        & ((sends[CRC] < 0) | (crc == sends[CRC]))
        & ((sends[LENGTH] < 0) | (length == sends[LENGTH]))
    )
    codes = {topic: code for code, topic in enumerate(evidence.topics)}
    topic = messages.of_subject(lambda topic, _: codes.get(topic, -1))[row]
    queue = messages.of_subject(lambda _, queue: queue)[row]
    elsewhere = messages.of_subject(lambda topic, _: topic in DIVERTED)[row] == 1
    half = messages.of_subject(lambda topic, _: topic == HALF_TOPIC)[row] == 1
    in_place = (topic == sends[TOPIC]) & ((sends[QUEUE] < 0) | (queue == sends[QUEUE]))
    same &= elsewhere | np.where(sends[IS_HALF] == 1, half, in_place)
    return np.stack([low + np.flatnonzero(there), row]), same.astype(np.int64), np.flatnonzero(~found)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Events of `queue`, two for each message: that it is in the log, and what clients say of it."""

    action: npt.NDArray[np.int8]
    args: Ints
    numbers: Ints

    def replay(self, of: Kernel, options: Options) -> Replayed:
        claims = [self.numbers if n in ("first", "indexed", "end") else self.numbers * 0 for n in of.spec.scalars]
        return of.replay(
            np.arange(0, len(self.action) + 1, 2), self.action, self.args, np.array(claims, np.int64),
            origins=self.numbers, widths=np.ones_like(self.numbers), profile=options.profile,
        )  # fmt: skip


MESSAGE = {"number": scan.NUMBER, "count": scan.COUNT, "position": scan.PLACE, "size": scan.LENGTH, "tag": scan.TAG}


def _pairs(of: Kernel, rows: Ints, action: str, said: Mapping[str, Ints]) -> _Pairs:
    actions = np.tile(np.array([of.spec.codes["append"], of.spec.codes[action]], np.int8), rows.shape[1])
    args = np.zeros((len(of.spec.arguments), len(actions)), np.int64)
    for name, row in MESSAGE.items():
        args[of.spec.arguments.index(name), 0::2] = rows[row]
    for name, values in said.items():
        args[of.spec.arguments.index(name), 1::2] = values
    return _Pairs(actions, args, rows[scan.NUMBER])


def _suspect(
    of: Kernel, messages: Messages, pairs: _Pairs, found: Replayed, rows: Ints, lines: Ints,
    suspects: list[Suspect], more: dict[str, int],
) -> None:  # fmt: skip
    """Add the messages that were refused."""
    told: dict[str, int] = {}
    for at in np.flatnonzero(found.bad_at >= 0).tolist():
        why = int(found.bad_why[at])
        rule = of.reasons[why - 1].rule if why > 0 else ""
        told[rule] = told.get(rule, 0) + 1
        if told[rule] > STORIES:
            more[rule] = more.get(rule, 0) + 1
            continue
        row = messages.rows[:, rows[at]]
        message = tuple(int(row[column]) for column in MESSAGE.values())
        name = list(of.spec.actions)[pairs.action[2 * at + 1]]
        event = name, tuple(int(pairs.args[of.spec.arguments.index(a), 2 * at + 1]) for a in of.spec.parameters[name])
        suspects.append(Suspect(messages.subjects[int(row[scan.SUBJECT])], message, event, int(lines[at])))
