"""The page about the next start: its tables are those of the measured cells, and its words say what was measured."""

from collections import Counter

from tests.interop.starts import cells, page, plan
from tests.interop.starts.bases import LINES
from tests.interop.starts.cells import LOSES, REFUSES, REPAIRS, STARTS, Cell, Outcome

FOREIGN = Cell("5.5.0", "files", "stopped", "commitlog", "stray notes.txt")
KILLED = Cell("5.5.0", "files", "killed", "commitlog", "stray notes.txt")
OLDER = Cell("4.9.7", "files", "stopped", "commitlog", "stray notes.txt")


def test_the_page_has_the_measured_cells() -> None:
    """`python -m tests.interop.starts.page` writes it again."""
    text = page.PAGE.read_text("utf-8")
    assert page.written(text, cells.read()) == text


def test_each_line_was_booted_on_many_cells() -> None:
    measured = cells.read()
    assert {outcome.result for outcome in measured.values()} == {REFUSES, LOSES, REPAIRS, STARTS}
    assert min(Counter(cell.line for cell in measured).values()) >= 50
    assert set(measured) <= {cell for line in LINES for cell in plan.cells(line)}


def test_a_row_says_what_each_line_does() -> None:
    table = page.tables(
        "log",
        {
            FOREIGN: Outcome(REFUSES, "253", "/store/commitlog/notes.txt 100 length not matched", remedy="delete it"),
            KILLED: Outcome(LOSES, lost="messages: changed orders/0 100 0123abcd -> 90 0123abce"),
            OLDER: Outcome(STARTS),
        },
    )
    assert (
        "| `commitlog` | `stray notes.txt` | after a stop: **no start**; after a kill: "
        "**loses:** messages of orders/0 100 → 90 | – | starts | delete it" in table
    )
    assert "| `FILE N length not matched` | 5.5.0 |" in table
