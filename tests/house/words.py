"""Words that a reader in a second language stumbles over, and the places where they stand.

    python -m tests.house.words [PATH…] [--rule NAME]

lists the places. `debts.WORDS` has how many each area may have.
"""

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.house.project import ROOT, parsed, project_files

LETTERS = 100  # of a docstring's first sentence
QUESTION = re.compile(r"(what|whether|where|who|whose|whom|how|why|which|when|of|as)\b", re.IGNORECASE)
SENTENCE = re.compile(r"(.*?[.:;!?])(?=\s|$)", re.DOTALL)
PARTICIPLE = re.compile(r"(ed|en|ing)$")

ARGUED = {
    "invariants hold": "so it is said of invariants in every book",
    "all hold": "the verdict of an exploration, as TLC's users expect it",
    "hold the lock": "the term for it",
    "lock is held": "the term for it",
    "while held": "of locks",
    "compaction-anew": "an anchor, which is stable",
    "slave topic made anew": "a recording, whose name is stable",
    "compacted anew": "as before",
    "made anew.tar": "as before",
}
"""Phrases with words that are to be avoided elsewhere, and why they stay."""

NOUNS = {
    "String": "a noun",
    "Ring": "a noun",
    "Recording": "a noun",
    "Token": "a noun",
    "Finding": "a noun",
    "Warning": "a noun",
    "Damaged": "an error, named as errors of the public interface are: by what is wrong",
    "Refused": "as Damaged",
    "Stopped": "as Damaged",
    "Closed": "as Damaged",
}
"""Class names that end as participles do and stay."""


def _words(*words: str) -> re.Pattern[str]:
    """Finds words and phrases in prose, and in names, whose parts are joined by underscores."""
    parts = "|".join(word.replace(" ", r"[\s_]+") for word in words)
    return re.compile(rf"(?<![A-Za-z])(?:{parts})(?![A-Za-z])", re.IGNORECASE)


PERSONS = _words("nobody", "somebody", "whoever")
RIDDLES = _words("told", "said", "held", "hold", "beside", "anew", "once more", "goes on")
IDS = [
    name
    for line in (ROOT / "tests/spec/rule_ids.txt").read_text("utf-8").split()
    if PERSONS.search(name := line.partition("/")[2]) or RIDDLES.search(name.replace("-", "_"))
]
"""Ids of rules, by which users ignore a rule: they stay, and so do the functions that they are named after."""
ID = rf"(?<![A-Za-z-])(?:(?:an?|the)_)?(?:{'|'.join(name.replace('-', '[-_ ]') for name in IDS[::-1])})(?![\w-])"
PERMITTED = re.compile(f"{_words(*ARGUED).pattern}|{ID}", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """A line that breaks a rule of words."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Page:
    """A Python file or a page of Markdown, by its path from the root."""

    path: Path
    source: str

    @property
    def area(self) -> str:
        """The folder whose count it enters: a room, or the part of the project that users see."""
        if self.path.suffix == ".md" and (len(self.path.parts) == 1 or self.path.parts[0] == "docs"):
            return "docs"
        return "traces/report" if self.path.parts[:2] == ("traces", "report") else self.path.parts[0]

    @cached_property
    def definitions(self) -> list[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
        """All that may have a docstring, in any order; they are statements, so that expressions are not walked."""
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if self.path.suffix != ".py":
            return []
        met: list[ast.AST] = [parsed(self.source)]
        for node in met:
            met.extend(inner for name in BLOCKS for inner in getattr(node, name, ()))
        return [node for node in met if isinstance(node, kinds)]

    @property
    def docstrings(self) -> Iterator[tuple[int, str]]:
        """Each docstring with its line."""
        for node in self.definitions:
            if text := ast.get_docstring(node):
                yield node.body[0].lineno, text

    def matches(self, pattern: re.Pattern[str]) -> Iterator[Place]:
        """The places of a pattern, without the phrases that are argued."""
        if self.path in WITHOUT or not pattern.search(self.source):
            return
        blank = PERMITTED.sub(lambda found: " " * len(found[0]), self.source)
        lines = self.source.splitlines()
        for found in pattern.finditer(blank):
            line = blank.count("\n", 0, found.start()) + 1
            yield Place(self.path, line, f"{found[0]!r}: {lines[line - 1].strip()[:110]}")


BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
"""Fields of a node that have statements."""
WITHOUT = {Path("tests/house/words.py"), Path("tests/house/test_words.py")}
"""Files that name the words in order to forbid them."""


def questions(page: Page) -> Iterator[Place]:
    """Docstrings that begin with a clause instead of a verb or a noun."""
    for line, text in page.docstrings:
        if QUESTION.match(text):
            yield Place(page.path, line, text.splitlines()[0])


def long_sentences(page: Page) -> Iterator[Place]:
    """Docstrings whose first sentence has too many letters."""
    for line, text in page.docstrings:
        first = text.split("\n\n")[0]
        found = SENTENCE.match(first)
        if len(found[1] if found else first) > LETTERS:
            yield Place(page.path, line, first.splitlines()[0])


def persons(page: Page) -> Iterator[Place]:
    """Persons without a name in place of a role, such as a consumer or an operator."""
    return page.matches(PERSONS)


def riddles(page: Page) -> Iterator[Place]:
    """Words of many senses."""
    return page.matches(RIDDLES)


def participles(page: Page) -> Iterator[Place]:
    """Classes that are named by no noun."""
    for node in page.definitions:
        if isinstance(node, ast.ClassDef) and PARTICIPLE.search(node.name) and node.name not in NOUNS:
            yield Place(page.path, node.lineno, f"class {node.name}")


RULES: dict[str, Callable[[Page], Iterator[Place]]] = {
    "questions": questions,
    "long": long_sentences,
    "persons": persons,
    "riddles": riddles,
    "participles": participles,
}


def pages() -> Iterator[Page]:
    """Every Python file and Markdown page of the project; recordings and other data are none."""
    for file in project_files():
        path = file.relative_to(ROOT)
        if path.suffix in {".py", ".md"} and path.parts[:2] != ("tests", "recordings"):
            yield Page(path, file.read_text(encoding="utf-8"))


def counts() -> dict[str, dict[str, int]]:
    """By area and rule, the number of places; what has none is left out."""
    found: dict[str, Counter[str]] = {}
    for page in pages():
        tally = found.setdefault(page.area, Counter())
        for name, rule in RULES.items():
            tally[name] += sum(1 for _ in rule(page))
    return {
        area: {name: n for name, n in tally.items() if n}
        for area, tally in sorted(found.items())
        if any(tally.values())
    }


def main() -> None:
    """List the places below some paths, by one rule or by all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--rule", choices=RULES, action="append")
    parser.add_argument("--counts", action="store_true", help="only how many, by area")
    chosen = parser.parse_args()
    if chosen.counts:
        for area, tally in counts().items():
            sys.stdout.write(f"{area:15}{', '.join(f'{name} {n:,}' for name, n in tally.items())}\n")
        return
    for page in pages():
        if chosen.paths and not any(page.path.is_relative_to(path) for path in chosen.paths):
            continue
        for name in chosen.rule or RULES:
            for place in RULES[name](page):
                sys.stdout.write(f"{place}\n")


if __name__ == "__main__":
    main()
