"""Compares the evidence of clients with the log: lost acknowledgements, and messages without a sender.

The columns of a client log, and of trace topics, are sorted by the positions in the answers, and a worker looks up
those of its own split. Decisions about transactions are sorted by key, and become part of the transactions' events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gapless.native import handed
from gapless.traces.judging import building
from gapless.traces.judging.building import Events
from gapless.traces.options import Options
from gapless.traces.problems import shown
from gapless.traces.replay.exact import Event
from gapless.traces.replay.kernels import Kernel, ReplayResult, kernel
from gapless.traces.sources.rocketmq.clients.decision_index import DecisionIndex
from gapless.traces.sources.rocketmq.clients.matching_sends import (
    DELAYS,
    KNOWN,
    OF_HALVES,
    OF_QUEUE,
    OF_TAIL,
    OF_TOPIC,
    SUBJECT_FACTS,
    Matches,
    ReportEvents,
    SendColumns,
    find_rows,
    match_sends,
    sent,
    write_events,
)
from gapless.traces.sources.rocketmq.clients.requests import request_lines
from gapless.traces.sources.rocketmq.clients.requests.request_rows import AnsweredSends, Sends
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.columns.lookup import among, distinct
from gapless.traces.sources.rocketmq.log import scan
from gapless.traces.sources.rocketmq.report_rows import ClientRow, TraceTopicRow
from gapless.traces.sources.rocketmq.store.file_access import Space
from gapless.traces.sources.rocketmq.store.names import DELAYING, HALF_TOPICS
from gapless.traces.sources.rocketmq.store.selection import includes_queue

STORIES = 40  # doubtful messages of one segment and kind that are reported; more are only counted


@dataclass(frozen=True, eq=False)
class ClientEvidence:
    """A client log, trace topics or both, in the form in which workers look things up.

    `decisions`: and back-checks in a client log · `sends`: acknowledged messages by position · `keys`: of all messages
    in the client log · `half_keys`: of the halves among them, rising, each once · `topics`: by index.
    """

    decisions: DecisionIndex
    sends: AnsweredSends
    keys: Ints
    half_keys: Ints
    topics: tuple[str, ...]
    complete: bool  # there is a client log, and every message in it has its key
    summary: ClientRow | None  # of the client log; None where there is none
    sent_to: frozenset[str]  # the topics that the client log names
    testimony: TraceTopicRow | None = None  # the row of trace topics; None without any
    # [2, messages]: keys of messages that consumers received, rising, and the position of a trace message with it
    handed: Ints = field(default_factory=lambda: np.zeros((2, 0), np.int64))

    @cached_property
    def tails(self) -> Ints:
        """For each topic by its index: an index of its name without namespace (`tail_of`)."""
        return np.array([self._tail_codes[tail_of(topic)] for topic in self.topics], np.int64)

    def names(self, keys: Ints) -> npt.NDArray[np.bool_]:
        """Returns the mask of the keys that belong to a message in the client log.

        Most callers have finals, whose keys are those of their halves: to sort all others takes as long as reading a
        tenth of them.
        """
        found = among(keys, self.half_keys)
        rest = np.flatnonzero(~found)
        if len(rest):
            found[rest] = among(keys[rest], self._every_key)
        return found

    @cached_property
    def _every_key(self) -> Ints:
        return distinct(self.keys)

    @cached_property
    def delivered_keys(self) -> SendColumns:
        """`sends` as native code is given it. What has travelled to a worker is copied, once, if it has to be."""
        return sent(self.sends)

    def of_source(self, source: str) -> ClientEvidence:
        """Returns the same, of trace topics in a store that reports call so."""
        row = self.testimony.model_copy(update={"source": source}) if self.testimony else None
        return replace(self, testimony=row)

    @cached_property
    def _tail_codes(self) -> dict[str, int]:
        return {tail: code for code, tail in enumerate(dict.fromkeys(map(tail_of, self.topics)))}

    def tail_code(self, topic: str) -> int:
        """Returns the code in `tails` of a topic with this name, or -1."""
        return self._tail_codes.get(tail_of(topic), -1)


def tail_of(topic: str) -> str:
    """A topic without its namespace, which traces leave out: `MQ_INST_7%orders` is `orders` there."""
    return topic.rpartition("%")[2]


def read(path: Path, source: str) -> ClientEvidence:
    """A client log as evidence. Raises Unreadable, NothingThere."""
    from gapless.traces.sources.rocketmq.clients.requests import client_log  # noqa: PLC0415 - most stores have no log

    log = client_log.read(path)
    sends, placed = log.sends, _placed(log.sends)
    return ClientEvidence(
        decisions=DecisionIndex.of_log(log.ends, log.checks),
        sends=placed,
        keys=sends.key,
        half_keys=distinct(sends.key[sends.half == 1]),
        topics=log.topics,
        sent_to=frozenset(log.topics),
        complete=log.complete,
        summary=ClientRow(
            source=shown(source),
            path=shown(path),
            lines=log.lines,
            sends=int(sends.count.sum()),
            acknowledged=int(sends.count[sends.result == request_lines.OK].sum()),
            unknown=int(sends.count[sends.result == request_lines.UNKNOWN].sum()),
            decisions=int((log.ends.decision != request_lines.UNDECIDED).sum()),
            back_checks=len(log.checks),
        ),
    )


def _placed(sends: Sends) -> AnsweredSends:
    """Returns the sends with an answered position, sorted by it; unchanged if they are sorted."""
    placed = (sends.position >= 0) & (sends.result == request_lines.OK)
    if not placed.all():
        sends = sends.some(placed)
    if (sends.position[1:] < sends.position[:-1]).any():
        sends = sends.some(np.argsort(sends.position, kind="stable"))
    return AnsweredSends(**vars(sends), witness=np.broadcast_to(np.int64(-1), len(sends)))


# -- messages of one segment ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DoubtedMessage:
    """A message that contradicts a client: its queue, its values in the log, the refused step, the line."""

    subject: tuple[str, int]
    message: Event
    event: Event
    line: int  # of the client log; 0 where it does not tell
    witness: int  # the position of the trace message with the report; -1 without one


@dataclass(frozen=True)
class PromiseResult:
    """The result of a segment for the promises to clients.

    `low`, `high`: the range of sends that were looked up · `covered`: accepted steps of `queue` · `doubts`: the first
    refused messages · `more`: the number of others, by rule · `lost`: the sends without a record at the answered
    position · `kept`, `testified`: kept promises of the client log and of trace messages.
    """

    low: int
    high: int
    covered: Mapping[str, int]
    doubts: list[DoubtedMessage]
    more: Mapping[str, int]
    lost: Ints
    kept: int
    testified: int


@dataclass
class PromiseTally:
    """The results of many segments, of a check or of a watch: as in `PromiseResult`."""

    covered: Counter[str] = field(default_factory=Counter)
    doubts: list[DoubtedMessage] = field(default_factory=list)
    more: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    testified: int = 0

    def add(self, result: PromiseResult | PromiseTally) -> None:
        """Adds the result of a segment, or of some."""
        self.covered.update(result.covered)
        self.doubts += result.doubts
        self.more.update(result.more)
        self.kept += result.kept
        self.testified += result.testified

    def copy(self) -> PromiseTally:
        """Returns an independent copy."""
        return replace(self, covered=self.covered.copy(), doubts=self.doubts[:], more=self.more.copy())


@dataclass(frozen=True, eq=False)
class SegmentMessages:
    """The messages of a segment, for those who look them up.

    `log`: its records · `keys`: of these, as `records.find_keys` gives them · `rows`: of
    its queues, `subjects`: their names · `space`: where columns are made of them.
    """

    log: Ints
    keys: Ints
    rows: Ints
    subjects: list[tuple[str, int]]
    space: Space

    @cached_property
    def row(self) -> Ints:
        """The first queue row of every record, or -1 where it is in no queue."""
        row = np.empty(self.log.shape[1], np.int64)
        find_rows(self.log[scan.POSITION], self.rows, row)
        return row

    def of_subject(self, fact: Callable[[str, int], int]) -> Ints:
        """A fact about the subject of every queue row."""
        facts: Ints = np.array([fact(*subject) for subject in self.subjects] or [0], np.int64)
        of_rows: Ints = facts[self.rows[scan.SUBJECT]]
        return of_rows


def judge_messages(
    evidence: ClientEvidence, messages: SegmentMessages, span: tuple[int, int], options: Options, *, later: bool
) -> PromiseResult:
    """Compares the messages in `span` with what clients sent, and with the answers they got.

    If messages may be `later` than the client log, a missing sender is no departure.
    """
    low, high = (int(at) for at in np.searchsorted(evidence.sends.position, span))
    matches = _matched(evidence, messages, low, high, options, asked=evidence.complete and not later)
    asked, placed, lost = (int(count) for count in matches.counts)
    # As a rule all of them are placed: a slice copies nothing.
    sends = evidence.sends.some(slice(low, high) if placed == high - low else matches.placed[:placed])
    number = sends.number
    whose, there = messages.row[matches.whose[:asked]], matches.there[:placed]
    accounts = messages.rows[scan.NUMBER, whose], _sent(evidence, messages, matches)
    if (number < 0).any():
        number = np.where(number < 0, messages.rows[scan.NUMBER, there], number)
    answers = number, sends.position, matches.same[:placed]
    kept, testified = int((sends.line > 0).sum()), int((sends.witness >= 0).sum())
    of = kernel("queue", options.ignored)
    reports = (whose, there), (accounts, answers)
    heard = _heard(of, messages, *reports, options.profile)
    if heard.refused:  # reports behind a refused one are replayed separately
        heard = _heard(of, messages, *reports, options.profile, apart=True)
    doubts: list[DoubtedMessage] = []
    more: Counter[str] = Counter()
    refused: Counter[tuple[bool, str]] = Counter()
    for at in sorted(heard.refused, key=lambda at: heard.of[at] >= asked):
        answer = int(heard.of[at]) - asked
        line, witness = (int(sends.line[answer]), int(sends.witness[answer])) if answer >= 0 else (0, -1)
        kept -= line > 0
        testified -= witness >= 0
        why = int(heard.replayed.bad_why[at])
        rule = of.reasons[why - 1].rule if why > 0 else ""
        refused[answer >= 0, rule] += 1
        if refused[answer >= 0, rule] > STORIES:
            more[rule] += 1
            continue
        row = there[answer] if answer >= 0 else whose[heard.of[at]]
        subject = messages.subjects[int(messages.rows[scan.SUBJECT, row])]
        begin = int(heard.starts[at])
        doubts.append(DoubtedMessage(subject, heard.events.at(begin), heard.events.at(begin + 1), line, witness))
    covered = {action: int(heard.replayed.covered[of.spec.codes[action]]) for action in REPORTED}
    return PromiseResult(low, high, covered, doubts, more, matches.lost[:lost], kept, testified)


def _matched(
    evidence: ClientEvidence, messages: SegmentMessages, low: int, high: int, options: Options, *, asked: bool
) -> Matches:
    """Pairs messages with the answers `low:high`. `asked`: each message must have a sender."""
    codes = {topic: code for code, topic in enumerate(evidence.topics)}
    facts = np.zeros((SUBJECT_FACTS, max(1, len(messages.subjects))), np.int64)
    for at, (topic, queue) in enumerate(messages.subjects):
        of_clients = topic in evidence.sent_to or topic in HALF_TOPICS
        facts[OF_TOPIC, at], facts[OF_TAIL, at] = codes.get(topic, -1), evidence.tail_code(topic)
        facts[OF_QUEUE, at] = queue
        facts[DELAYS, at], facts[OF_HALVES, at] = topic in DELAYING, topic in HALF_TOPICS
        facts[KNOWN, at] = asked and of_clients and includes_queue(options, topic, queue)
    records = messages.log.shape[1]
    of_records, of_sends = np.empty((2, records), np.int64), np.empty((4, high - low), np.int64)
    found = Matches._make((*of_records, *of_sends, np.zeros(3, np.int64)))
    match_sends(
        messages.log[scan.POSITION], messages.row, messages.rows[scan.SUBJECT], messages.keys, facts,
        evidence.delivered_keys, low, high, evidence.tails, found,
    )  # fmt: skip
    return found


def _sent(evidence: ClientEvidence, messages: SegmentMessages, matches: Matches) -> Ints:
    """Returns the mask of messages that a client sent, among those that must have a sender.

    A message that no answer names may be another client's.
    """
    senders = matches.sent[: matches.counts[0]]
    others = np.flatnonzero(senders == 0)
    for row in (0, 3):
        keys = messages.keys[row, matches.whose[others]]
        senders[others] = evidence.names(keys)
        others = others[senders[others] == 0]
    return senders


MESSAGE = {"number": scan.NUMBER, "count": scan.COUNT, "position": scan.PLACE, "size": scan.LENGTH, "tag": scan.TAG}
REPORTED = {"account": ("number", "sent"), "acknowledge": ("number", "position", "same")}


@dataclass(frozen=True, eq=False)
class _MessageTraces:
    """Replayed reports about messages: a trace for each message, or for each report."""

    events: Events
    starts: Ints
    of: Ints
    replayed: ReplayResult

    @cached_property
    def refused(self) -> list[int]:
        """The traces that were refused."""
        found: list[int] = np.flatnonzero(self.replayed.bad_at >= 0).tolist()
        return found


def _heard(
    of: Kernel, messages: SegmentMessages, rows: tuple[Ints, Ints], reports: tuple[tuple[Ints, ...], tuple[Ints, ...]],
    profile: str, *, apart: bool = False,
) -> _MessageTraces:  # fmt: skip
    """Replays the messages of queue rows and what clients report of them. `apart`: as in `write_events`."""
    spec, many = of.spec, sum(map(len, rows))
    into = [np.array([spec.arguments.index(name) for name in names]) for names in (MESSAGE, *REPORTED.values())]
    args = messages.space.array("what clients say", (len(spec.arguments), 2 * many), np.int64)
    telling = ReportEvents(
        codes=np.array([spec.codes[action] for action in ("append", *REPORTED)]),
        columns=np.array([*MESSAGE.values()]),
        into=(into[0], into[1], into[2]),
        action=np.empty(2 * many, np.int8),
        args=args,
        starts=np.empty(many + 1, np.int64),
        of=np.empty(many, np.int64),
    )
    (whose, there), (accounts, answers) = rows, (tuple(map(handed, columns)) for columns in reports)
    count = write_events(messages.rows, whose, accounts, there, answers, int(apart), telling)
    starts, action = telling.starts[: count + 1], telling.action[: telling.starts[count]]
    numbers = args[into[0][0], starts[:-1]]
    state = building.states(spec, count, first=numbers, indexed=numbers, end=numbers)
    replayed = of.replay(
        starts, action, args, state, origins=numbers, widths=np.ones_like(numbers), profile=profile
    )  # fmt: skip
    return _MessageTraces(Events(spec, action, args), starts, telling.of, replayed)
