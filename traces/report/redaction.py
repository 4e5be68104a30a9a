"""A report without names: topics, groups, keys, hosts and client ids become keyed hashes, everywhere.

A word stays if it is one of our own, which is known from the texts of what judges and of every spec; a number stays; so
does the notation of a story, for steps have integers alone; and so do the names that the layout of a
source fixes (`Presentation.fixed`). Every other word is replaced, whether it is
known for a name or not, so that a text which is added later cannot let a name through. What a report has as a name is
replaced though it be a word of ours.

The same name has the same hash throughout, and under the same key in every report. Hashes are BLAKE2b, keyed: without
the key, names cannot be tried out.
"""

from __future__ import annotations

import ast
import hashlib
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from gapless.spec.catalog import SPECS
from gapless.traces.report.pictures.entries import QueueEntries
from gapless.traces.report.pictures.kinds import Picture
from gapless.traces.report.pictures.lanes import TransactionLanes
from gapless.traces.report.pictures.swimlane import Swimlane
from gapless.traces.report.sections import PRESENTATIONS
from gapless.traces.report.values import WORST, Finding, Report, ReportRow

TOKEN = re.compile(r"\w(?:[\w.@%$~#-]*\w)?")
NUMBERED = re.compile(r".+-\d+")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:ms|s|h|d|kB)?")
SUFFIX = re.compile(r"\.(?:ndjson|jsonl|parquet|json|conf|gz|zst|bak)$")
OURS = re.compile(r"commitlog|tc\d+|[A-Z0-9]+(?:_[A-Z0-9]+)+")
"""Names that are no secret: those that we give to traces, and, if they are words of ours, system topics of brokers."""
FILE = re.compile(r"\d{20}\.(?:log|index|timeindex|txnindex|snapshot)")
"""Files of a log, which are named by an offset: no secret either."""

# Lines of a story that have nothing but steps, values and the words of a spec.
NOTATION = re.compile(r'\s*\d+\. \w+\(|Here: |\w+ breaks the rule "|Rule: |Consequence: |[\d,]+ of [\d,]+ events ')
LONG = 6  # digits of a name that is a number: such a one is replaced wherever it stands
OF_A_NAME = r"(?:--trace |^|\b(?:transaction|trace|queue|coordinator|in|called|of topic|keys?|{specs}) )"


def new_key() -> str:
    """A new random key."""
    return secrets.token_hex(16)


def redacted(report: Report, key: str) -> Report:
    """The report without names. Its verdict, its counts and its places are as they were."""
    return Redactor(report, key).report()


class Redactor:
    """Replaces the names of one report. `more`: names other than those that the report has."""

    def __init__(self, report: Report, key: str, more: Sequence[str] = ()) -> None:
        self.given = report
        self.key = hashlib.sha256(key.encode()).digest()
        self.names = {
            token for name in (*_names(report), *more) for token in (*TOKEN.findall(name), name) if _is_secret(token)
        }
        self.numbered = frozenset(_numbered(report))
        self.words = frozenset(_words_of_specs(report))
        self.odd = sorted((n for n in self.names if not TOKEN.fullmatch(n) and "/" not in n), key=len, reverse=True)
        words = "|".join(map(re.escape, {*SPECS, *(finding.spec for finding in report.findings)}))
        before = OF_A_NAME.replace("{specs}", words)
        self.short = re.compile(rf"(?P<before>{before})(?P<name>\d{{1,{LONG - 1}}})(?![\d,])")

    def hashed(self, name: str) -> str:
        """The word that replaces a name."""
        return "n" + hashlib.blake2b(name.encode("utf-8", "surrogatepass"), key=self.key, digest_size=5).hexdigest()

    def name(self, name: str) -> str:
        """A name as a whole: of a trace, a topic, a file. Its parts are replaced one by one: `orders/3` keeps its 3."""
        if NUMBER.fullmatch(name) and name in self.names:
            return self.hashed(name)
        return self.text(name)

    def text(self, text: str) -> str:
        """Any text with the names in it replaced."""
        for name in self.odd:
            text = text.replace(name, self.hashed(name))
        text = self.short.sub(self._short, text)
        return TOKEN.sub(self._token, text)

    def line(self, line: str) -> str:
        """A line of a story."""
        return line if NOTATION.match(line) else self.text(line)

    def line_of_file(self, line: str) -> str:
        """A line of a .story file: those for people have names."""
        return f"# {self.line(line[2:])}" if line.startswith("# ") else line

    def _short(self, found: re.Match[str]) -> str:
        name = found["name"]
        return found["before"] + (self.hashed(name) if name in self.names else name)

    def _token(self, found: re.Match[str]) -> str:
        token = found[0]
        if token in self.names and not (NUMBER.fullmatch(token) and len(token) < LONG):
            return self._replaced(token)
        known = NUMBER.fullmatch(token) or _is_ours(token) or token.lower() in self.words or self._is_hash(token)
        return token if known else self._replaced(token)

    def _replaced(self, token: str) -> str:
        if token in self.numbered:
            stem, dash, number = token.rpartition("-")
            return self.hashed(stem) + dash + number
        suffix = SUFFIX.search(token)
        stem = token[: suffix.start()] if suffix else token
        return self.hashed(stem) + (suffix[0] if suffix else "")

    def _is_hash(self, token: str) -> bool:
        return re.fullmatch("n[0-9a-f]{10}", token) is not None and token not in self.names

    # -- the report ----------------------------------------------------------------------------------------------------

    def report(self) -> Report:
        """All of it."""
        given = self.given
        return given.model_copy(
            update={
                "sources": [
                    source.model_copy(
                        update={
                            "path": self.text(source.path),
                            "owner": self.text(source.owner),
                            "reasons": [*map(self.text, source.reasons)],
                            "notes": [*map(self.text, source.notes)],
                        }
                    )
                    for source in given.sources
                ],
                "findings": [*map(self._finding, given.findings)],
                "not_exercised": [*map(self.text, given.not_exercised)],
                "parts": {part: [*map(self._row, rows)] for part, rows in given.parts.items()},
                "marks": [
                    mark.model_copy(
                        update={
                            "source": self.text(mark.source),
                            "log": self.name(mark.log),
                            "label": self.text(mark.label),
                        }
                    )
                    for mark in given.marks
                ],
                "life": [*map(self.line, given.life)],
            }
        )

    def _finding(self, finding: Finding) -> Finding:
        where = finding.where.model_copy(update={"file": self.text(finding.where.file)})
        return finding.model_copy(
            update={
                "trace": self.name(finding.trace),
                "source": self.text(finding.source),
                "where": where,
                "message": self._sentence(finding.message, finding.trace),
                "summary": self._sentence(finding.summary, finding.trace),
                "story": [*map(self.line, finding.story)],
                "traces": [*map(self.name, finding.traces)],
                "keys": [*map(self.name, finding.keys)],
                "picture": self._picture(finding.picture),
            }
        )

    def _sentence(self, text: str, trace: str) -> str:
        """A sentence about a trace, whose name may be a short number: at its beginning, or after *of*."""
        about = text.removeprefix(trace)
        parts = (self.text(part) for part in about.split(f" of {trace}"))
        return (self.name(trace) if about != text else "") + f" of {self.name(trace)}".join(parts)

    def _picture(self, picture: Picture | None) -> Picture | None:
        if isinstance(picture, Swimlane):
            return picture.model_copy(update={"axis": self.text(picture.axis)})
        if isinstance(picture, QueueEntries):
            records = [one.model_copy(update={"queue": self.name(one.queue)}) for one in picture.records]
            return picture.model_copy(update={"title": self.text(picture.title), "records": records})
        if isinstance(picture, TransactionLanes):
            items = [one.model_copy(update={"says": self.text(one.says)}) for one in picture.items]
            return picture.model_copy(update={"lanes": [*map(self.name, picture.lanes)], "items": items})
        return picture

    def _row(self, row: ReportRow) -> ReportRow:
        return row.model_copy(update={name: self._value(getattr(row, name)) for name in type(row).model_fields})

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return value if value in WORST else self.name(value)
        if isinstance(value, dict):
            return {self._value(key): self._value(item) for key, item in value.items()}
        return [self._value(item) for item in value] if isinstance(value, list) else value


def _names(report: Report) -> Iterator[str]:
    """Yields the names in a report: of traces, and in the rows of its sources. The words of a path may be ours."""
    for finding in report.findings:
        yield from finding.keys
        fixed = ["/".join(shows.fixed[finding.spec]) for shows in PRESENTATIONS.values() if finding.spec in shows.fixed]
        yield from (
            name
            for name in (finding.trace, *finding.traces)
            if not any(re.fullmatch(pattern, name) for pattern in fixed)
        )
    for rows in report.parts.values():
        for row in rows:
            for name in type(row).model_fields:
                value = getattr(row, name)
                if name not in ("source", "path", "verdict") and isinstance(value, str):
                    yield value


def _numbered(report: Report) -> Iterator[str]:
    """Yields the names that end in a number which says nothing of anybody, such as that of a partition."""
    for shows in PRESENTATIONS.values():
        part, field = shows.numbered or ("", "")
        for row in report.parts.get(part, ()):
            name = str(getattr(row, field, "")).rpartition("/")[2]
            if NUMBERED.fullmatch(name):
                yield name


def _words_of_specs(report: Report) -> Iterator[str]:
    """The words of the specs that judged, a user's among them: their steps, and what findings say that they need."""
    for step in report.coverage:
        yield from (step.lower(), *step.lower().split("."))
    for finding in report.findings:
        yield from (token.lower() for text in (finding.needs, finding.otherwise) for token in TOKEN.findall(text))


def _is_secret(name: str) -> bool:
    """True if a known name is to be replaced."""
    return not (OURS.fullmatch(name) and (_is_ours(name) or name.startswith("tc")))


def _is_ours(token: str) -> bool:
    """True if a word is one of ours, alone or in the plural."""
    word = token.lower()
    if FILE.fullmatch(token):
        return True
    if word in vocabulary() or word.removesuffix("s") in vocabulary():
        return True
    return any(re.fullmatch(head, token) for head in (r"tc\d+", *_heads()))


def _heads() -> Iterator[str]:
    """Yields the names that layouts give to their files, as patterns."""
    return (head for shows in PRESENTATIONS.values() for head, _ in shows.fixed.values())


@cache
def vocabulary() -> frozenset[str]:
    """Every word of our own texts, small: what specs, sources and reports say, without docstrings."""
    rooms = [Path(__file__).parents[1], *(Path(spec.module.__file__ or "").parent for spec in SPECS.values())]
    files = sorted({path for room in dict.fromkeys(rooms) for path in room.rglob("*.py")})
    steps = frozenset(f"{spec.name}.{action}" for spec in SPECS.values() for action in spec.actions)
    return steps | frozenset(word.lower() for path in files for text in _texts(path) for word in TOKEN.findall(text))


def _texts(path: Path) -> Iterable[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name.replace("_", " ")
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):  # fields of states, members of enums
            yield node.id
