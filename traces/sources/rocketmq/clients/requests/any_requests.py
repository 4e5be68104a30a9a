"""Reads lines of a client log one by one into columns by kind, and reports the first wrong one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError
from pydantic_core import from_json

from gapless.traces.problems import Unreadable, may_repeat, shown, twice
from gapless.traces.sources.rocketmq.clients.requests.plain_requests import KINDS
from gapless.traces.sources.rocketmq.clients.requests.request_lines import (
    DECISIONS,
    LINE,
    OK,
    RESULTS,
    RESUME,
    AdminRequest,
    BatchRequest,
    CheckRequest,
    EndRequest,
    Request,
    SendRequest,
    first_error,
    resumed,
)
from gapless.traces.sources.rocketmq.clients.requests.request_rows import AnyRows, Checks, Ends, Found, Resumes, Sends
from gapless.traces.sources.rocketmq.columns.bytes import Ints, digests


def read_requests(path: Path, lines: Iterable[bytes], before: int, topics: dict[str, int]) -> Found:
    """Reads whole lines without their newlines; `before` come before them. Raises Unreadable for the first wrong one.

    The topics of what was sent are added to `topics`.
    """
    rows: tuple[list[tuple[Any, ...]], ...] = [], [], [], []
    sends, ends, checks, resumes = rows
    for number, line in enumerate(lines, before + 1):
        match _request(path, line, number):
            case SendRequest() | BatchRequest() as sent:
                topic = topics.setdefault(sent.topic, len(topics))
                sends += [(number, *values) for values in _messages(sent, topic)]
            case EndRequest() as end:
                decision, result = DECISIONS.index(end.decision), RESULTS.index(end.result)
                ends.append((number, end.key, end.number, end.position, decision, result, end.from_check))
            case CheckRequest() as check:
                times = -1 if check.times is None else int(check.times)
                checks.append((number, check.key, check.number, check.position, times))
            case AdminRequest(request=code, result=result, message_id=message) if code == RESUME:
                resumes.append((number, resumed(message), RESULTS.index(result)))
    return _columns(Sends, sends), _columns(Ends, ends), _columns(Checks, checks), _columns(Resumes, resumes)


def _messages(sent: SendRequest | BatchRequest, topic: int) -> Iterable[tuple[Any, ...]]:
    """The rows of a request without its line: one for each message; one for a batch that does not name its messages.

    In a batch, numbers follow one another from that of the first.
    """
    result = RESULTS.index(sent.result)
    first = -1 if sent.number is None or result != OK else sent.number
    last = topic, sent.queue, sent.op == "half", result
    if isinstance(sent, SendRequest):
        position = -1 if sent.position is None or result != OK else sent.position
        crc = -1 if sent.crc is None else sent.crc & 0x7FFFFFFF  # a broker drops the top bit
        yield position, first, 1, sent.key, crc, -1 if sent.length is None else sent.length, *last
    elif sent.keys is None and sent.positions is None:
        yield -1, first, sent.count, None, -1, -1, *last
    else:
        for at in range(sent.count):
            position = -1 if sent.positions is None or result != OK else sent.positions[at]
            key = None if sent.keys is None else sent.keys[at]
            yield position, -1 if first < 0 else first + at, 1, key, -1, -1, *last


def _columns(kind: type[AnyRows], rows: Sequence[tuple[Any, ...]]) -> AnyRows:
    """Rows as columns, with the digests of keys in place of their texts."""
    if not rows:
        return kind.empty()
    columns: dict[str, Any] = dict(zip((field.name for field in fields(kind)), zip(*rows, strict=True), strict=True))
    if "key" in columns:
        columns["key"] = _digests(columns["key"])
    return kind(**{name: np.array(column, kind.width_of(name)) for name, column in columns.items()})


def _digests(keys: Sequence[str | None]) -> Ints:
    """The digest of every key; 0 for a missing one."""
    texts = [(key or "").encode() for key in keys]
    return digests(np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)]))


def _request(path: Path, line: bytes, number: int) -> Request:
    """Reads one line. Raises Unreadable."""
    try:
        given = from_json(line, cache_strings="keys")
    except ValueError as error:
        why = str(error).replace("line 1 column", "column")
        raise unreadable(path, number, f"not JSON ({why}), expected one request as an object") from error
    if may_repeat(line, given) and (name := _twice(line)):
        raise unreadable(path, number, f"the key {name!r} stands there twice, expected each once")
    try:
        return LINE.validate_python(given)
    except ValidationError as error:
        raise unreadable(path, number, first_error(error, given)) from error


def _twice(line: bytes) -> str | None:
    """A key that is read and stands twice in a sound line."""
    given = json.loads(line, object_pairs_hook=tuple, parse_int=str)  # an object is a tuple then, and a list is a list
    pairs = given if isinstance(given, tuple) else ()
    inner = [name for outer, value in pairs if outer == "ext" and isinstance(value, tuple) for name, _ in value]
    names = [name for name, _ in pairs if name in KINDS] + [name for name in inner if name == "msgId"]
    return twice(names)


def unreadable(path: Path, number: int, what: str) -> Unreadable:
    """The problem of a line, with the remedy."""
    return Unreadable(
        f"{shown(path)}, line {number}: {shown(what)} (gapless schema client describes a line; "
        "without the log, the store can be judged alone)"
    )
