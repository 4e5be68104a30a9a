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
from gapless.traces.problems import Unreadable, shown, side_file_problem
from gapless.traces.sources.kafka.files.names import PartitionName
from gapless.traces.sources.kafka.log.tables import Flags

_arrow: Any = pa
_compute: Any = pyarrow.compute
TEXTS = ("op", "p", "res", "c", "isolation", "topic")
NUMBERS = ("txn", "partition", "offset")
SCHEMA: Any = _arrow.schema(
    [(name, _arrow.string()) for name in TEXTS]
    + [(name, _arrow.int64()) for name in NUMBERS]
    + [("offsets", _arrow.list_(_arrow.int64()))]
)
"""The fields that are read; others are for people."""
BLOCK = 1 << 26
"""Bytes of a line at most."""
READ_COMMITTED = ("committed", "read_committed")
"""The isolation of consumers to which only committed records are promised."""
NONE = -1
Column = Any  # of pyarrow, which ships no types


class AnsweredRecords(NamedTuple):
    """Records that answers name. `client`: number of a transaction or consumer · `line`: of the file, from 1."""

    client: Ints
    partition: Ints
    offset: Ints
    line: Ints

    def of(self, rows: Ints | Flags) -> AnsweredRecords:
        """Return some of them."""
        return AnsweredRecords(*(column[rows] for column in self))


class AnswerLog(NamedTuple):
    """All answers. `sent`: all that was acknowledged · `written`: of it, in transactions whose end was answered.

    `ends`: of a transaction, 1 commit, 0 abort, -1 no answer · `end_line`: the line of that answer ·
    `received`: by consumers that read what is committed.
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


def client_log(path: Path) -> AnswerLog:
    """Read a client log. Raises Unreadable."""
    try:
        rows = pj.read_json(
            path,
            read_options=pj.ReadOptions(block_size=BLOCK),
            parse_options=pj.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="ignore"),
        ).combine_chunks()
    except (OSError, pa.ArrowInvalid) as problem:
        raise side_file_problem("client log", path, Unreadable(_reason(problem))) from problem
    return _columns(path, rows)


def _reason(problem: Exception) -> str:
    if "Empty JSON file" in str(problem):
        return 'it is empty, expected lines such as {"op":"send","topic":"t","partition":0,"offset":7}'
    return f"expected a JSON object in each line, with the fields of docs/kafka-clients.md: {shown(problem)}"


def _columns(path: Path, rows: Any) -> AnswerLog:
    line = np.arange(1, rows.num_rows + 1)
    numbers = {name: _numbers(rows[name]) for name in NUMBERS}
    is_op = {op: _is(rows["op"], op) for op in ("send", "commit", "abort", "received", "read")}
    is_ok = _is(rows["res"], "ok")
    reads = is_op["read"] & _is(rows["isolation"], *READ_COMMITTED)
    lists = rows["offsets"].combine_chunks()
    counts = _compute.fill_null(_compute.list_value_length(lists), 0).to_numpy(zero_copy_only=False) * reads
    topics, topic = _codes(rows["topic"])
    sent = is_op["send"] & is_ok & (numbers["offset"] >= 0) & (topic >= 0) & (numbers["partition"] >= 0)
    ended = (is_op["commit"] | is_op["abort"]) & is_ok
    clients, client = _together(rows["p"], numbers["txn"])
    ends = _ends(client, is_op["commit"], ended, len(clients))
    end_line = np.zeros(len(clients), np.int64)
    end_line[client[ended]] = line[ended]
    single = is_op["received"] & _is(rows["isolation"], *READ_COMMITTED) & (numbers["offset"] >= 0) & (topic >= 0)
    at = np.concatenate([np.flatnonzero(single), np.repeat(np.arange(len(line)), counts)])
    offsets = np.concatenate([numbers["offset"][single], _flat(lists, reads)])
    consumers, consumer = _codes(rows["c"])
    places, place = _places(topics, topic, numbers["partition"])
    named = _compute.is_valid(rows["p"]).to_numpy()
    records = AnsweredRecords(client, place, numbers["offset"], line)
    return AnswerLog(
        path, places, clients, ends, end_line, [*consumers, "a consumer"], records.of(sent),
        records.of(sent & (ends[client] >= 0) & (numbers["txn"] > 0) & named),
        AnsweredRecords(np.where(consumer[at] < 0, len(consumers), consumer[at]), place[at], offsets, line[at]),
    )  # fmt: skip


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
    found, number = np.unique(np.stack([by, transaction]), axis=1, return_inverse=True)
    names = [f"transaction {n} of {producers[p] if p >= 0 else 'a producer'}" for p, n in found.T.tolist()]
    return names, number.reshape(-1)


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
    found, place = np.unique(np.stack([topic, number]), axis=1, return_inverse=True)
    names = [PartitionName(topics[of] if of >= 0 else "", n) for of, n in found.T.tolist()]
    return names, place.reshape(-1)
