"""The tables of `docs/next-start.md`, made of `cells.csv`: `python -m tests.interop.starts.page` writes them again."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.interop.starts import cells as table
from tests.interop.starts.bases import ENDINGS, LINES
from tests.interop.starts.cells import ABSENT, AS_IT_IS, BROKEN, LOSES, REFUSES, REPAIRS, SOUND, STARTS, Cell, Outcome
from tests.interop.starts.remedies import remedy_of

PAGE = Path(__file__).parents[3] / "docs" / "next-start.md"
MARK = re.compile(r"(<!-- starts: ([a-z ]+) -->\n).*?(<!-- end of starts -->)", re.DOTALL)
NOT_TRIED = "–"
SHOWN = {REFUSES: "**no start**", REPAIRS: "repairs", STARTS: "starts"}
BACKUPS = (AS_IT_IS, SOUND, BROKEN, ABSENT)
AFTER_A_KILL = {"stopped": "after a stop", "killed": "after a kill"}

Cells = Mapping[Cell, Outcome]


def written(page: str, cells: Cells) -> str:
    """The page with its tables as the cells have them."""
    return MARK.sub(lambda found: f"{found[1]}{tables(found[2], cells)}\n{found[3]}", page)


def tables(name: str, cells: Cells) -> str:
    """The text between two marks: a count, or the tables of a group of files."""
    if name == "count":
        return _count(cells)
    of_group = {cell: outcome for cell, outcome in cells.items() if group_of(cell) == name}
    if not of_group:
        return "Not tried."
    return "\n".join([*_outcomes(of_group), "", *_exceptions(of_group)]).strip()


def group_of(cell: Cell) -> str:
    """The part of the page in which a cell stands."""
    if cell.base != "files":
        return {"rocksdb": "databases", "compacted": "compaction"}.get(cell.base, cell.base)
    return next(name for prefix, name in GROUPS.items() if cell.file.startswith(prefix))


GROUPS = {
    "broker.conf": "settings",
    "commitlog": "log",
    "consumequeue": "queues",
    "config/timer": "timers",
    "timer": "timers",
    "index": "index",
    "rocksdbstore": "databases",
    "config": "tables",
    "": "marks",
}
"""Groups by the beginning of a path."""


def _count(cells: Cells) -> str:
    of_lines = ", ".join(f"{sum(cell.line == line for cell in cells)} of {line}" for line in LINES)
    classes = ((REFUSES, "do not start"), (LOSES, "lose something"), (REPAIRS, "repair"), (STARTS, "start as ever"))
    counts = ", ".join(f"{sum(one.result == kind for one in cells.values())} {says}" for kind, says in classes)
    cured = [one for one in cells.values() if one.remedy]
    sound = sum(one.after == table.NOTHING_LOST for one in cured)
    return (
        f"{len(cells)} starts: {of_lines}. Of them {counts}. "
        f"A remedy was tried {len(cured)} times; after {sound} of these starts nothing was lost."
    )


def _outcomes(cells: Cells) -> Iterator[str]:
    """A row for each file, state of its backup and outcome, with the kinds of damage that have it."""
    alike: dict[tuple[str, str, str], dict[Cell, Outcome]] = {}
    for cell, outcome in cells.items():
        alike.setdefault((cell.file, cell.damage, cell.backup), {})[cell] = outcome
    damages: dict[tuple[str, ...], list[str]] = {}
    for (file, kind, backup), here in sorted(alike.items(), key=lambda item: (item[0][0], BACKUPS.index(item[0][2]))):
        columns = [_of_line({cell: one for cell, one in here.items() if cell.line == line}) for line in LINES]
        damages.setdefault((file, backup, *columns, _remedy(here, cells)), []).append(kind)
    with_backups = any(key[1] != AS_IT_IS for key in damages)
    yield f"| file | damage |{' its `.bak` |' * with_backups} {' | '.join(LINES)} | remedy |"
    yield f"|---|---|{'---|' * with_backups}{'---|' * len(LINES)}---|"
    for (file, backup, *columns), kinds in damages.items():
        shown = ", ".join(f"`{kind}`" if "=" in kind or " " in kind else kind for kind in kinds)
        yield f"| `{file}` | {shown} |{f' {backup} |' * with_backups} {' | '.join(columns)} |"


def _of_line(cells: Cells) -> str:
    """The outcome of a line, after a stop and after a kill."""
    by_ending = {cell.ending: _in_words(outcome) for cell, outcome in cells.items()}
    if len(set(by_ending.values())) <= 1:
        return next(iter(by_ending.values()), NOT_TRIED)
    return "; ".join(f"{AFTER_A_KILL[ending]}: {by_ending[ending]}" for ending in ENDINGS)


def _in_words(outcome: Outcome) -> str:
    return SHOWN.get(outcome.result) or f"**loses:** {loss(outcome.lost)}"


def loss(lost: str) -> str:
    """Say in words which contents differ from the undamaged store."""
    parts = dict(part.split(": ", 1) for part in lost.split("; ") if ": " in part)
    if "topic" in parts:
        parts.pop("messages", "")  # that a topic is gone says it
    found = [says(parts[kind]) for kind, says in WORDS.items() if kind in parts]
    return ", ".join(text for text in found if text) or "order of messages"


def _counted(noun: str) -> Callable[[str], str]:
    def say(part: str) -> str:
        return f"{noun} {re.sub(r'^changed ', '', part)}".replace("->", "→")

    return say


def _messages(part: str) -> str:
    """The counts of messages, without checksums."""
    plain = re.sub(r" [0-9a-f]{8}\b", "", part).removeprefix("changed ")
    moved = [text for text in plain.split(" + ") if not re.fullmatch(r"\S+ (\d+) -> \1", text)]
    shown = [re.sub(r", stuck at (\d+) of \d+ \((.*)\)", r" (a pull at \1: \2)", text) for text in moved]
    return f"messages of {', '.join(shown)}".replace("->", "→") if moved else ""


def _keys(part: str) -> str:
    return f"{1 + part.count(' + ')} of 4 keys find other messages"


WORDS: dict[str, Callable[[str], str]] = {
    "serves nothing": lambda part: f"serves nothing ({part})",
    "topic": _counted("topics"),
    "group": _counted("groups"),
    "cursor": _counted("cursors"),
    "delay-level": _counted("delay cursors"),
    "messages": _messages,
    "key": _keys,
    "table": _counted("what the table has of"),
    "timer-count": _counted("counts of timers"),
}


def _remedy(here: Cells, cells: Cells) -> str:
    """The remedy of a row, and what is lost all the same, by starts on any damage to the same file."""
    needed = [cell for cell, outcome in here.items() if outcome.result in (REFUSES, LOSES)]
    if not needed:
        return ""
    says = remedy_of(needed[0])[0]
    wanted = (needed[0].file, needed[0].backup, says)
    tried = [one for cell, one in cells.items() if (cell.file, cell.backup, one.remedy) == wanted]
    rest = dict.fromkeys(_rest(one) for one in tried if one.after != table.NOTHING_LOST)
    return says + f" ({'; '.join(rest)})" * bool(rest) + " (not tried)" * (not tried)


def _rest(outcome: Outcome) -> str:
    result, _, lost = outcome.after.partition(": ")
    return "then no start" if result == REFUSES else f"then it loses {loss(lost)}"


def _exceptions(cells: Cells) -> Iterator[str]:
    """The first complaint of those that do not start, by line."""
    found: dict[str, list[str]] = {}
    for cell, outcome in cells.items():
        if outcome.result == REFUSES and outcome.exception:
            known = found.setdefault(_pattern(outcome.exception.split(" | ")[0]), [])
            known += [cell.line] * (cell.line not in known)
    if found:
        yield "| of those that do not start, the log says | in |"
        yield "|---|---|"
        for text, lines in found.items():
            yield f"| `{text}` | {', '.join(line for line in LINES if line in lines)} |"


def _pattern(text: str) -> str:
    """A complaint without the names and numbers of one store."""
    text = re.sub(r"(JSONException: [^,:]*).*", r"\1 …", text)
    text = re.sub(r"/store/\S+|/store\b", "FILE", text.replace("|", "/").replace("`", "'"))
    return re.sub(r"\b\d+\b(?!\.)", "N", text)


def main() -> int:
    """Write the page."""
    PAGE.write_text(written(PAGE.read_text("utf-8"), table.read()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
