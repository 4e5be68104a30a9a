"""Cursors of consumer groups, in a broker's `config/consumerOffset.json` (docs/rocketmq.md#config).

`offsetTable` has, for every `topic@group`, the numbers at which the group continues, by queue. Whatever else is in the
file stays in it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from gapless.impl.environment.operating_system import Disk
from gapless.impl.files.segments import asked
from gapless.impl.records.errors import Damaged

CURSORS = "config/consumerOffset.json"
CURSORS_WITH_LIGHT_QUEUES = "config/lmqConsumerOffset.json"  # in place of the other, where a broker has such queues
HIGHEST = 1 << 62

Table = dict[str, dict[int, int]]
"""For each `topic@group`, the cursor of each queue."""


def path_of(disk: Disk) -> str:
    """The path of this store's cursor file, of the two possible ones. Raises StoreError."""
    light = asked(lambda: disk.read(CURSORS_WITH_LIGHT_QUEUES), CURSORS_WITH_LIGHT_QUEUES)
    return CURSORS if light is None else CURSORS_WITH_LIGHT_QUEUES


def read(disk: Disk, path: str) -> tuple[Table, dict[str, Any]]:
    """The cursors, and all else that the file says. Raises Damaged, StoreError."""
    content = asked(lambda: disk.read(path), path)
    if not content:
        return {}, {}
    try:
        found = json.loads(_quoted(content.decode()))
        table = {
            name: {int(queue): _cursor(cursor) for queue, cursor in cursors.items()}
            for name, cursors in found.pop("offsetTable", {}).items()
        }
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise Damaged(
            f"{path}: no table of consumer groups ({error}); restore it from {path}.bak, if there is one, or move it "
            "away: groups begin with the first message then"
        ) from error
    return table, found


def write(disk: Disk, path: str, table: Table, others: dict[str, Any]) -> None:
    """The file says this now, at once or not at all. Queues' numbers stand without quotes, as brokers write them.

    Raises DiskFull, StoreError.
    """
    sorted_table = {
        name: {str(queue): cursors[queue] for queue in sorted(cursors)} for name, cursors in sorted(table.items())
    }
    text = json.dumps({**others, "offsetTable": sorted_table}, indent="\t", separators=(",", ":"))
    content = _QUOTED.sub(r"\1:", text).encode()
    asked(lambda: disk.write(path, content), path)


_QUOTED = re.compile(r'(?<=[\t{,])"(\d+)":')  # within a text, quotes are escaped
_TEXT_OR_BARE = re.compile(r'("(?:[^"\\]|\\.)*")|(?<=[{,\s])(\d+)(?=\s*:)')


def _quoted(text: str) -> str:
    """The same with quotes around keys that are numbers."""
    return _TEXT_OR_BARE.sub(lambda found: found[1] or f'"{found[2]}"', text)


def _cursor(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < HIGHEST:
        raise ValueError(f"the cursor {value!r}, expected a number from 0 on")
    return value
