"""A log of the answers to Kafka's clients, in columns: records sent, transactions ended, records received.

Source: docs/kafka-clients.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.json as pj

from gapless.traces.judging.building import Ints
from gapless.traces.problems import Unreadable, side_file_problem
from gapless.traces.sources.kafka.clients.log_lines import (
    LISTS,
    NUMBERS,
    OPS,
    TEXTS,
    bad_line,
    first_incomplete,
    line_numbers,
)
from gapless.traces.sources.kafka.clients.sessions import ReaderSessions, reader_sessions
from gapless.traces.sources.kafka.files.names import PartitionName
from gapless.traces.sources.kafka.log.tables import Flags, different

_arrow: Any = pa
_compute: Any = pyarrow.compute
SCHEMA: Any = _arrow.schema(
    [(name, _arrow.string()) for name in TEXTS]
    + [(name, _arrow.int64()) for name in NUMBERS]
    + [(name, _arrow.list_(_arrow.int64())) for name in LISTS]
)
"""The fields that are read; others are for people."""
BLOCK = 1 << 26
"""Bytes of a line at most."""
READ_COMMITTED = ("committed", "read_committed")
"""The isolation of consumers to which only committed records are promised."""
BY_ALL = ("all", "-1")
"""The `acks` of producers that are answered when every replica in sync has the record."""
NONE = -1
Column = Any  # of pyarrow, which ships no types


class AnsweredRecords(NamedTuple):
    """Records that answers name. `client`: number of a transaction or consumer · `line`: of the file, from 1.

    `epoch`: of the leader, where the answer has it, or -1 · `session`: number of the reader's session, or -1.
    """

    client: Ints
    partition: Ints
    offset: Ints
    line: Ints
    epoch: Ints
    session: Ints

    def of(self, rows: Ints | Flags) -> AnsweredRecords:
        """Return some of them."""
        return AnsweredRecords(*(column[rows] for column in self))


class GroupAnswers(NamedTuple):
    """Offsets of groups that answers call committed. `name`: number of the group and partition in `names`."""

    names: Sequence[str]
    name: Ints
    offset: Ints
    line: Ints
    is_fetched: Flags


class AnswerLog(NamedTuple):
    """All answers. `sent`: all that was acknowledged · `written`: of it, in transactions whose end was answered.

    `ends`: of a transaction, 1 commit, 0 abort, -1 no answer · `end_line`: the line of that answer ·
    `received`: by consumers that read what is committed · `by_all`: of a line, every replica in sync had the record ·
    `groups`: offsets of groups.
    """

    path: Path
    partitions: Sequence[PartitionName]
    transactions: Sequence[str]
    ends: Ints
    end_line: Ints
    consumers: Sequence[str]
    sent: AnsweredRecords
    written: AnsweredRecords
    received: AnsweredRecords
    sessions: ReaderSessions
    by_all: Flags
    groups: GroupAnswers


def client_log(path: Path) -> AnswerLog:
    """Read a client log. Raises Unreadable."""
    try:
        rows = pj.read_json(
            path,
            read_options=pj.ReadOptions(block_size=BLOCK),
            parse_options=pj.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="ignore"),
        ).combine_chunks()
    except (OSError, pa.ArrowInvalid) as problem:
        raise side_file_problem("client log", path, Unreadable(bad_line(path, problem))) from problem
    is_op = {op: _is(rows["op"], op) for op in OPS}
    missing = {name: _compute.is_null(rows[name]).to_numpy() for name in (*TEXTS, *NUMBERS, *LISTS)}
    line = line_numbers(path, rows.num_rows)
    if reason := first_incomplete(is_op, missing, _is(rows["res"], "ok"), line):
        raise side_file_problem("client log", path, Unreadable(reason))
    return _columns(path, rows, is_op, line)


def _columns(path: Path, rows: Any, is_op: dict[str, Flags], line: Ints) -> AnswerLog:
    numbers = {name: _numbers(rows[name]) for name in NUMBERS}
    is_ok = _is(rows["res"], "ok")
    topics, topic = _codes(rows["topic"])
    places, place = _places(topics, topic, numbers["partition"])
    sent = is_op["send"] & is_ok & (numbers["offset"] >= 0)
    ended = (is_op["commit"] | is_op["abort"]) & is_ok
    clients, client = _together(rows["p"], numbers["txn"])
    ends = _ends(client, is_op["commit"], ended, len(clients))
    end_line = np.zeros(len(clients), np.int64)
    end_line[client[ended]] = line[ended]
    named = _compute.is_valid(rows["p"]).to_numpy()
    none = np.full(len(line), NONE)
    records = AnsweredRecords(client, place, numbers["offset"], line, none, none)
    consumers, consumer = _codes(rows["c"])
    consumer = np.where(consumer < 0, len(consumers), consumer)
    committed = _is(rows["isolation"], *READ_COMMITTED)
    sessions, session = reader_sessions(
        {name: flags & committed for name, flags in is_op.items()}, consumer, place, numbers, line
    )
    by_all = np.zeros(int(line[-1]) + 1, np.bool_)
    by_all[line] = _is(rows["acks"], *BY_ALL)
    groups = _groups(rows["group"], places, is_op, records)
    received = AnsweredRecords(consumer, place, numbers["offset"], line, numbers["epoch"], session)
    return AnswerLog(
        path, places, clients, ends, end_line, [*consumers, "a consumer"], records.of(sent),
        records.of(sent & (ends[client] >= 0) & (numbers["txn"] > 0) & named),
        _received(received, is_op["received"] & committed, is_op["read"] & committed, rows["offsets"].combine_chunks()),
        sessions, by_all, groups,
    )  # fmt: skip


def _received(every: AnsweredRecords, single: Flags, reads: Flags, lists: Any) -> AnsweredRecords:
    """The records that readers received, in the order of their lines: one in a line, or many."""
    counts = _compute.fill_null(_compute.list_value_length(lists), 0).to_numpy(zero_copy_only=False) * reads
    (one,), many = np.nonzero(single), np.repeat(np.arange(len(reads)), counts)
    rows = np.concatenate([one, many])
    found = every.of(rows)._replace(offset=np.concatenate([every.offset[one], _flat(lists, reads)]))
    return found.of(np.argsort(rows, kind="stable"))


def _groups(
    column: Column, places: Sequence[PartitionName], is_op: dict[str, Flags], every: AnsweredRecords
) -> GroupAnswers:
    """The answers about offsets of groups, each named GROUP/TOPIC-N; a group without an offset has -1."""
    groups, group = _codes(column)
    (rows,) = np.nonzero((is_op["committed"] | is_op["fetched"]) & (group >= 0) & (every.offset >= 0))
    found, name = different(group[rows], every.partition[rows])
    names = [f"{groups[of]}/{places[at]}" for of, at in found.T.tolist()]
    return GroupAnswers(names, name, every.offset[rows], every.line[rows], is_op["fetched"][rows])


def _numbers(column: Column) -> Ints:
    found: Ints = _compute.fill_null(column, NONE).to_numpy()
    return found


def _is(column: Column, *values: str) -> Flags:
    found: Flags = _compute.is_in(column, _arrow.array(values, _arrow.string())).to_numpy()
    return found


def _codes(column: Column) -> tuple[list[str], Ints]:
    """The different values of a column, and the number of each row's value; -1 for none."""
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.dictionary.to_pylist(), _compute.fill_null(encoded.indices, NONE).to_numpy().astype(np.int64)


def _together(producer: Column, transaction: Ints) -> tuple[list[str], Ints]:
    """The different transactions, and the number of each row's."""
    producers, by = _codes(producer)
    found, number = different(by, transaction)
    names = [_name(producers[p] if p >= 0 else "a producer", n) for p, n in found.T.tolist()]
    return names, number


def _name(producer: str, transaction: int) -> str:
    return f"transaction {transaction} of {producer}" if transaction > 0 else producer


def _ends(client: Ints, commits: Flags, ended: Flags, count: int) -> Ints:
    """The answer to each transaction: 1 commit, 0 abort, -1 none, or one that contradicts another."""
    committed = np.bincount(client[ended & commits], minlength=count) > 0
    aborted = np.bincount(client[ended & ~commits], minlength=count) > 0
    return np.where(committed == aborted, NONE, committed.astype(np.int64))


def _flat(lists: Any, chosen: Flags) -> Ints:
    found: Ints = (
        _compute.list_flatten(lists.filter(_arrow.array(chosen))).fill_null(NONE).to_numpy(zero_copy_only=False)
    )
    return found


def _places(topics: Sequence[str], topic: Ints, number: Ints) -> tuple[list[PartitionName], Ints]:
    """The different partitions, and the number of each row's."""
    found, place = different(topic, number)
    names = [PartitionName(topics[of] if of >= 0 else "", n) for of, n in found.T.tolist()]
    return names, place
