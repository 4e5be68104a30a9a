"""The lines of a client log: their fields, and the sentence on the first that is none.

Source: docs/kafka-clients.md#format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gapless.traces.judging.building import Ints
from gapless.traces.problems import shown
from gapless.traces.sources.kafka.log.tables import Flags

TEXTS = ("op", "p", "res", "c", "isolation", "topic", "acks", "group")
NUMBERS = ("txn", "partition", "offset", "session", "epoch", "from", "position")
LISTS = ("offsets",)
AT = ("topic", "partition", "offset")
OPS: Mapping[str, tuple[str, ...]] = {
    "send": ("res", *AT),
    "commit": ("p", "txn", "res"),
    "abort": ("p", "txn", "res"),
    "received": AT,
    "read": ("topic", "partition", "offsets"),
    "position": ("c", "session", *AT),
    "committed": AT,
    "fetched": ("group", *AT),
}
"""The kinds of answers that are read, by `op`, with the fields that each must have."""
OK = ("send",)
"""Answers that need all their fields only if they are `ok`."""
NEWLINE, RETURN = b"\n\r"
LONG = 60
"""Characters of a value that a message shows."""
EXAMPLE = '{"op":"send","res":"ok","topic":"t","partition":0,"offset":7}'
PAGE = "docs/kafka-clients.md has the fields, and recorders that write them"


def bad_line(path: Path, problem: Exception) -> str:
    """Return a sentence on the first line of a file that cannot be read."""
    if isinstance(problem, OSError):
        return shown(problem)
    number = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip() and (reason := _reason(line)):
                return f"line {number:,}: {reason}; {PAGE}"
    if not number:
        return f"it is empty, expected lines such as {EXAMPLE}"
    return f"expected a JSON object in each line, such as {EXAMPLE}: {shown(problem)}; {PAGE}"


def _reason(line: bytes) -> str:
    """The reason for which a line is no answer; empty if it is one."""
    try:
        values = json.loads(line)
    except ValueError:
        return f"expected a JSON object in each line, such as {EXAMPLE}, and this is no JSON: {_value(line)}"
    if not isinstance(values, dict):
        return f"expected a JSON object in each line, such as {EXAMPLE}, and this is {_value(line)}"
    for names, what, fits in (
        (TEXTS, "a text", _is_text), (NUMBERS, "a whole number of 64 bits", _is_number),
        (LISTS, "a list of whole numbers", _is_list),
    ):  # fmt: skip
        for name in names:
            if values.get(name) is not None and not fits(values[name]):
                return f"{name} is {_value(json.dumps(values[name]))}, expected {what}"
    return ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(one is None or _is_number(one) for one in value)


def _value(value: bytes | str) -> str:
    text = shown((value.decode(errors="replace") if isinstance(value, bytes) else value).strip())
    return text if len(text) <= LONG else f"{text[:LONG]}…"


def line_numbers(path: Path, count: int) -> Ints:
    """Return the number of each line that is not blank, of which a file has `count`."""
    data = np.memmap(path, np.uint8, "r")
    ends = np.append(np.flatnonzero(data == NEWLINE), len(data))
    begins = np.append(0, ends[:-1] + 1)
    blank = (ends <= begins) | ((ends == begins + 1) & (data[np.minimum(begins, len(data) - 1)] == RETURN))
    found = np.flatnonzero(~blank) + 1
    return found if len(found) == count else np.arange(1, count + 1)


def first_incomplete(is_op: Mapping[str, Flags], missing: Mapping[str, Flags], is_ok: Flags, line: Ints) -> str:
    """Return a sentence on the first answer that lacks a field, or on a log without answers; empty if all are whole.

    `is_op`, `missing`: of each line, by kind and by field · `is_ok`: the request succeeded · `line`: its number.
    """
    if not any(flags.any() for flags in is_op.values()):
        return f"no line is an answer: expected op {', '.join(OPS)} in some line, such as {EXAMPLE}; {PAGE}"
    found = [
        (int(line[np.flatnonzero(bad)[0]]), op, name)
        for op, names in OPS.items()
        for name in names
        if (bad := is_op[op] & missing[name] & (is_ok if op in OK and name != "res" else True)).any()
    ]
    if not found:
        return ""
    number, op, name = min(found)
    return f"line {number:,}: {op} without {name}, expected {', '.join(OPS[op])}; {PAGE}"
