"""The report: its contents, and its limits: it never obeys a name, loads files, grows without end, or varies."""

import io
import json
import re
import shutil
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from rich.console import Console

from gapless import check
from gapless.spec.catalog import SPECS
from gapless.traces.report import charts, sections
from gapless.traces.report.charts import Chart
from gapless.traces.report.outputs import text as texts
from gapless.traces.report.page import budget, log_map
from gapless.traces.report.page import html as pages
from gapless.traces.report.sections import Presentation, Section, SectionRow
from gapless.traces.report.values import Counts, Finding, Mark, Report, ReportRow, SourceRow, VerdictName, Where
from gapless.traces.sources.rocketmq import report as rocketmq
from gapless.traces.sources.rocketmq.report_rows import ClientRow, QueueRow, TransactionsRow
from tests.support.command_line import ROOT
from tests.support.night import by_day
from tests.support.rocketmq.damage import Pick, entry_zeroed
from tests.support.rocketmq.recordings import recording

MEGABYTE = 1_000_000
PUBLIC_SITES = ("https://github.com", "https://issues.apache.org")  # which passages link
FILE = 1 << 20
HOSTILE = "<script>alert('x')</script>\"&[bold red]\x1b[31m\x07\u202e\ud800"
EXTREME = 1 << 62


def finding(number: int = 77, position: int = 774_437, **changed: Any) -> Finding:
    trace = f"orders/{number % 4}"
    place = Where(file=f"consumequeue/{trace}/{0:020}", offset=20 * number)
    found = Finding(
        rule="queue/no-entry-before-it-is-missing",
        severity="violation",
        spec="queue",
        trace=trace,
        source="store",
        position=position,
        where=place,
        message=f"{trace}: entry {number} is missing; its message lies at {position}",
        needs="no entry before it is missing",
        otherwise="a message is in the log and no consumer ever receives it",
        here={"number": number + 1, "indexed": number},
        story=[
            f"queue {trace} departs at {place.file}+{place.offset}.",
            "",
            f"  1. index(number={number - 1}, size=2177)   indexed {number - 1} → {number}",
            f"  2. index(number={number + 1}, size=1817)   not allowed",
            "",
            'index breaks the rule "no entry before it is missing".',
            f"Here: number = {number + 1}, indexed = {number}.",
            "Consequence: a message is in the log and no consumer ever receives it.",
            f"Again: gapless explain store --trace {trace}",
        ],
    )
    return found.model_copy(update=changed)


def anomaly(**changed: Any) -> Finding:
    return finding(
        severity="anomaly",
        message="append anew (docs/rocketmq.md#cl3)",
        needs="append to a queue made anew",
        story=[],
        here={},
        count=3,
        **changed,
    )


def source(**changed: Any) -> SourceRow:
    whole = SourceRow(
        path="store",
        kind="rocketmq-store",
        bytes=4 * FILE,
        records=4897,
        clean=True,
        verdict="departs",
        notes=["settings from broker.conf next to the store"],
    )
    return whole.model_copy(update=changed)


def row(number: int = 1, **changed: Any) -> QueueRow:
    whole = QueueRow(
        source="store",
        topic="orders",
        queue=number,
        messages=306,
        first=0,
        end=306,
        indexed=306,
        verdict="conforms",
    )
    return whole.model_copy(update=changed)


def transactions(**changed: Any) -> TransactionsRow:
    whole = TransactionsRow(
        source="store",
        transactions=796,
        halves=1205,
        renewals=409,
        finals=731,
        ops=41,
        marks=788,
        parked=3,
        outcomes={"committed": 731, "rolled back": 57, "parked": 3, "undecided": 5},
        decided_within={250: 512, 1000: 190, 16_000: 80, 300_000: 6},
        back_checks={0: 596, 1: 150, 2: 40, 3: 7, 15: 3},
        batches={1: 3, 32: 28, 100: 10},
        half_cursor=1131,
        half_end=1205,
        op_cursor=40,
        op_end=41,
    )
    return whole.model_copy(update=changed)


def client(**changed: Any) -> ClientRow:
    whole = ClientRow(
        source="store",
        path="client.ndjson",
        lines=9000,
        sends=4200,
        acknowledged=4150,
        unknown=50,
        decisions=790,
        back_checks=409,
    )
    return whole.model_copy(update=changed)


def transactional(**changed: Any) -> Report:
    """A report of a store with transactions, and of what its clients know."""
    return conforming(**{"transactions": [transactions()], "clients": [client()], **changed})


def log_files(count: int, size: int = FILE) -> list[Mark]:
    bounds = [(n * size, n * size + size) for n in range(count)]
    return [Mark(source="store", low=low, high=high, kind="file", label=f"commitlog/{low:020}") for low, high in bounds]


def report(**changed: Any) -> Report:
    whole: dict[str, Any] = {
        "verdict": "departs",
        "profile": "rocketmq",
        "engine": "local",
        "sources": [source()],
        "counts": Counts(events=14_710, traces=3, queues=2, by_spec={"log": 4901, "queue": 9809}),
        "coverage": {"log.append": 4897, "log.flush": 0},
        "not_exercised": ["log.flush: a store does not show it", "log.crash: a store does not show it"],
        "anomalies": {"append_to_a_queue_made_anew": 3},
        "findings": [finding(count=12, traces=["orders/1", "orders/3"]), anomaly()],
        "findings_total": 12,
        "queues": [row(0), row(1, verdict="departs")],
        "marks": [
            *log_files(4),
            Mark(source="store", low=0, high=3_615_346, kind="log", label="4,897 records"),
            Mark(source="store", low=FILE, high=FILE + 9000, kind="damage", label="no record"),
        ],
        "seconds": 0.0241,
    }
    return Report.model_validate({**whole, **changed})


def conforming(**changed: Any) -> Report:
    quiet = {"verdict": "conforms", "sources": [source(verdict="conforms")], "findings": [], "findings_total": 0}
    return report(**{**quiet, "anomalies": {}, "queues": [row(0), row(1)], **changed})


def piped(whole: Report, *, verbose: bool = False, width: int = 80) -> str:
    out = io.StringIO()
    texts.text(whole, Console(file=out, width=width, legacy_windows=False), verbose=verbose)
    return out.getvalue()


def on_a_terminal(whole: Report) -> str:
    out = io.StringIO()
    texts.text(whole, Console(file=out, force_terminal=True, color_system="truecolor", legacy_windows=False))
    return out.getvalue()


class Page(HTMLParser):
    """A page as a browser sees it: its elements, and the text without them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Text between elements."""
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All text, one space between words."""
        return " ".join("".join(self.texts).split())

    def values(self, attribute: str) -> list[str]:
        """Every value of an attribute."""
        return [attributes[attribute] or "" for _, attributes in self.elements if attribute in attributes]


# Text


def test_a_pipe_gets_the_whole_story_and_the_verdict_last() -> None:
    assert (
        piped(report())
        == """\
store: RocketMQ store, 4,897 records, 4.0 MiB, clean: departs
  note: settings from broker.conf next to the store

2 rules or steps not checked:
  log.flush, log.crash: a store does not show it

lawful under the rocketmq profile, forbidden by the design; counted, not judged:
  3 × append anew (docs/rocketmq.md#cl3), first in orders/1 at consumequeue/orders/1/00000000000000000000+1540

1. orders/1: entry 77 is missing; its message lies at 774437
   consumequeue/orders/1/00000000000000000000+1540 (queue/no-entry-before-it-is-missing)
   12 like this, in orders/1, orders/3

     queue orders/1 departs at consumequeue/orders/1/00000000000000000000+1540.

       1. index(number=76, size=2177)   indexed 76 → 77
       2. index(number=78, size=1817)   not allowed

     index breaks the rule "no entry before it is missing".
     Here: number = 78, indexed = 77.
     Consequence: a message is in the log and no consumer ever receives it.
     Again: gapless explain store --trace orders/1

what to do now:
  keep a copy of store before anything else
  do not restart the broker before you have the copy and know the cause: its start cuts off a damaged log and writes \
queues again, and the evidence is gone
  then read docs/operator.md#departs

departs: 12 violations found, in 1 story. 4,897 records, 2 queues read, \
14,710 events checked in 0.02 s (rocketmq profile)
"""
    )


def test_what_conforms_is_stated_in_one_sentence() -> None:
    assert (
        piped(conforming()).splitlines()[-1] == "conforms: No violation found. 4,897 records, 2 queues read, "
        "14,710 events checked in 0.02 s (rocketmq profile)"
    )


@pytest.mark.parametrize(
    ("compiling", "says"),
    [
        (0.0, "0.02 s (rocketmq"),
        (2.1, "0.02 s, with 2.10 s of processor time for compiling native code, once (rocketmq"),
    ],
)
def test_the_time_of_compiling_is_reported_next_to_that_of_the_check_and_kept_nowhere(
    compiling: float, says: str
) -> None:
    json = conforming().as_json()
    one = conforming().model_copy(update={"compiling": compiling})
    assert f"events checked in {says} profile)" in piped(one)
    assert one.as_json() == json


@pytest.mark.parametrize("verbose", [False, True])
def test_a_pipe_is_the_same_twice_at_any_width_and_plain(*, verbose: bool) -> None:
    output = piped(report(), verbose=verbose)
    assert output == piped(report(), verbose=verbose, width=20)
    assert "\x1b" not in output
    assert all(line == line.rstrip() for line in output.splitlines())


def test_a_terminal_gets_colours_and_the_same_words() -> None:
    output = on_a_terminal(report())
    assert "\x1b[" in output
    assert re.sub(r"\x1b\[[\d;]*m", "", output) == piped(report())


def test_the_table_of_queues_is_for_terminals_unless_asked_for() -> None:
    assert "orders/0" in on_a_terminal(conforming())
    assert "orders/0" not in piped(conforming())
    assert "orders/0       306             0  306            306  conforms" in piped(conforming(), verbose=True)
    many = conforming(queues=[row(n) for n in range(200)])
    assert "orders/0" not in on_a_terminal(many), "the verdict would scroll away"
    assert "orders/0" not in on_a_terminal(report()), "the story would scroll away"


def test_queues_that_depart_are_not_at_the_end_of_a_long_table() -> None:
    queues = [row(n, verdict="departs" if n == 150 else "conforms") for n in range(200)]
    lines = piped(report(queues=queues), verbose=True).splitlines()
    assert lines.index(next(x for x in lines if "orders/150 " in x)) < lines.index(
        next(x for x in lines if "orders/0 " in x)
    )


def test_a_name_is_shown_and_not_obeyed_by_rich_or_a_terminal() -> None:
    name = "[bold red]topic[/]:smile:\x1b[31m\r\x07\u202e\ud800"
    output = piped(report(findings=[finding(message=name)], sources=[source(path=name, notes=[name])]))
    assert output.count(r"[bold red]topic[/]:smile:\x1b[31m\r\x07\u202e\ud800") == 4, "and where to copy it from"
    assert all(line.isprintable() for line in output.splitlines())


def test_an_ascii_console_gets_ascii() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    texts.text(report(findings=[finding(message="déjà vu")]), Console(file=out))
    out.flush()
    assert b"indexed 76 -> 77" in raw.getvalue()
    assert rb"d\xe9j\xe0 vu" in raw.getvalue()


def test_transactions_and_promises_are_reported_in_a_few_lines() -> None:
    assert (
        piped(transactional())
        == """\
store: RocketMQ store, 4,897 records, 4.0 MiB, clean: conforms
  note: settings from broker.conf next to the store

store: 796 transactions, 1,205 halves (409 put back), 731 finals, 41 ops with 788 marks, 3 parked
  committed    731     92%
  rolled back   57    7.2%
  parked         3    0.4%
  undecided      5    0.6%
  decided: 50% within 250 ms, 90% within 16 s, all within 5 min
  put back: 596 never, 150 once, 40 twice, 10 up to 15 times
  halves per op: 50% at most 32, all at most 100
  half cursor 1,131 of 1,205, op cursor 40 of 41

client.ndjson: 4,200 messages sent, 4,150 acknowledged, 50 never answered; 790 decisions, 409 back-checks

2 rules or steps not checked:
  log.flush, log.crash: a store does not show it

conforms: No violation found. 4,897 records, 2 queues, 796 transactions read, \
14,710 events checked in 0.02 s (rocketmq profile)
"""
    )


def test_a_terminal_gets_bars_and_a_pipe_the_same_words_without_them() -> None:
    output = re.sub(r"\x1b\[[\d;]*m", "", on_a_terminal(transactional(queues=[])))
    assert "\n  committed    731     92%  ████████████████████████\n  rolled back   57    7.2%  █▉\n" in output
    assert "\n  parked         3    0.4%  ▏\n" in output
    assert re.sub("  [█▉▊▋▌▍▎▏]+\n", "\n", output) == piped(transactional(queues=[]))


def test_an_ascii_terminal_gets_bars_of_ascii() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    console = Console(file=out, force_terminal=True, color_system=None, legacy_windows=False)
    texts.text(transactional(clients=[client(path="déjà/vu")]), console)
    out.flush()
    assert b"  committed    731     92%  ########################\n  rolled back   57    7.2%  ##\n" in raw.getvalue()
    assert b"  parked         3    0.4%  |\n" in raw.getvalue()
    assert rb"d\xe9j\xe0/vu: 4,200 messages sent" in raw.getvalue()


def test_what_a_store_does_not_have_is_not_made_up() -> None:
    whole = transactions(half_cursor=None, op_cursor=None, ops=0, marks=0, parked=0, renewals=0, batches={})
    lines = piped(transactional(transactions=[whole]))
    assert "store: 796 transactions, 1,205 halves, 731 finals, 0 ops\n" in lines
    assert "  half cursor – of 1,205, op cursor – of 41\n" in lines
    assert "per op" not in lines
    page = Page(pages.html(transactional(transactions=[whole]))).text
    assert "– of 1,205no half cursor" in page
    assert "– of 41no op cursor" in page


def test_many_stores_have_a_line_each_and_many_outcomes_are_counted() -> None:
    few = [transactions(source=f"store-{n}") for n in range(3)]
    assert piped(transactional(transactions=few)).count("  committed ") == 3
    many = transactional(
        transactions=[transactions(source=f"store-{n}") for n in range(30)],
        clients=[client(path=f"log-{n}") for n in range(30)],
    )
    output = piped(many)
    assert "committed" not in output
    assert output.count(": 796 transactions, ") == texts.FEW_LINES
    assert "\nand 6 more transactional stores (--verbose)\n" in output
    assert "\nand 6 more client logs (--verbose)\n" in output
    assert piped(many, verbose=True).count("  committed ") == 30
    odd = transactional(transactions=[transactions(outcomes={f"outcome {n}": 5 for n in range(100)})])
    assert "  outcome 4            5    1.0%\n  95 other outcomes  475     95%\n" in piped(odd)
    assert "  outcome 18           5    1.0%\n  81 other outcomes  405     81%\n" in piped(odd, verbose=True)


def test_of_many_inputs_those_that_do_not_conform_have_a_line_and_others_are_counted() -> None:
    sources = [source(path=f"{verdict}-{n}", verdict=verdict) for verdict in get_args(VerdictName) for n in range(25)]
    output = piped(report(sources=sources))
    assert output.count(": departs\n") == texts.FEW_ROWS
    assert "and 76 more inputs: 25 conforming, 25 inconclusive, 25 unreadable, 1 departing (--verbose)\n" in output
    assert piped(report(sources=sources), verbose=True).count(": departs\n") == 25
    fine = piped(conforming(sources=[one for one in sources[:25] if one.verdict == "conforms"]))
    assert fine.count(": conforms\n") == texts.FULLY_SHOWN
    assert "and 22 more inputs: 22 conforming (--verbose)\n" in fine


def test_of_several_stores_the_one_that_departs_comes_first() -> None:
    sources = [source(path="fine", verdict="conforms"), source(path="broken")]
    stores = [transactions(source="fine"), transactions(source="broken")]
    logs = [client(source="fine"), client(source="broken")]
    whole = report(sources=sources, transactions=stores, clients=logs)
    assert piped(whole).index("\nbroken: 796 tr") < piped(whole).index("\nfine: 796 tr")
    assert "\nfine: client.ndjson: 4,200" in piped(whole)
    page = Page(pages.html(whole)).text
    assert page.index("broken 796transactions") < page.index("fine 796transactions")


def test_many_stories_and_notes_are_counted_rather_than_shown() -> None:
    findings = [finding(n) for n in range(1000)]
    output = piped(report(findings=findings, sources=[source(notes=[f"note {n}" for n in range(100)])]))
    assert output.count("breaks the rule") == texts.STORIES
    assert "980 more stories (--verbose)" in output
    assert "and 95 more notes (--verbose)" in output
    assert piped(report(findings=findings), verbose=True).count("breaks the rule") == 1000


def test_rules_with_many_reasons_are_counted_unless_asked_for() -> None:
    whole = conforming(not_exercised=[f"log/rule-{n}: reason {n}" for n in range(9)])
    assert "9 groups of rules were not checked (--verbose lists them)\n" in piped(whole)
    assert "  log/rule-7: reason 7\n" in piped(whole, verbose=True)
    alike = [f"log/rule-{n % 2}: not in file {n}" for n in range(9)]
    several = conforming(sources=[source(path=f"file {n}") for n in range(9)], not_exercised=alike)
    assert "2 rules or steps not checked in some inputs (--verbose lists them)\n" in piped(several)


def test_several_sources_are_reported_apart() -> None:
    broken = source(path="b", kind="unknown", clean=None, records=0, bytes=0, verdict="unreadable", notes=[])
    sources = [source(path="a"), broken.model_copy(update={"reasons": ["no such file or directory"]})]
    output = piped(report(sources=sources, findings=[finding(source="a"), anomaly(source="a")]))
    assert "\nb: not recognised: unreadable\n  reason: no such file or directory\n" in output
    assert "\n   a: consumequeue/orders/1/" in output
    assert "(docs/rocketmq.md#cl3), first in orders/1 at a: consumequeue/orders/1/" in output


# Both


@pytest.mark.parametrize("verdict", get_args(VerdictName))
def test_every_verdict_has_its_word_everywhere(verdict: VerdictName) -> None:
    whole = conforming(verdict=verdict, sources=[source(verdict=verdict, reasons=["there is a reason"])])
    assert piped(whole).splitlines()[-1].startswith(f"{verdict}: ")
    page = Page(pages.html(whole))
    assert page.text.startswith(f"{verdict}: store · gapless")
    assert ("body", {"class": verdict}) in page.elements
    assert "there is a reason" in page.text.lower()


def test_anomalies_come_before_the_verdict() -> None:
    output = piped(report())
    assert output.index("lawful under") < output.rindex("departs: ")
    page = Page(pages.html(report())).text
    assert page.index("profile allows: counted, not judged") < page.index("Findings 1 story")


def test_an_anomaly_without_a_story_says_so_and_a_violation_tells_what_is_known() -> None:
    whole = report(findings=[finding(story=[]), anomaly()])
    known = [
        "Rule: no entry before it is missing.",
        "Here: number = 78, indexed = 77.",
        "Consequence: a message is in the log and no consumer ever receives it.",
    ]
    page = Page(pages.html(whole)).text
    assert "they have no story" in page
    for line in known:
        assert f"\n     {line}\n" in piped(whole)
    assert "No entry before it is missing." in page
    assert "number = 78 indexed = 77" in page
    assert "A message is in the log and no consumer ever receives it." in page


def test_an_anomaly_with_a_story_tells_it() -> None:
    again = {"needs": "commit again", "message": "commit again (docs/rocketmq-transactions.md#n1)", "trace": "7F00-0A"}
    second = anomaly(position=9).model_copy(update={**again, "story": ["transaction 7F00-0A", "  1. commit(number=1)"]})
    given = {"append_to_a_queue_made_anew": 3, "commit_again": 2}
    whole = report(findings=[anomaly(), second], anomalies=given)
    page = Page(pages.html(whole)).text
    assert "a2 2commit again (RocketMQ transactions, as they landed #n1)7F00-0A at consumequeue/orders/1/" in page
    assert "transaction 7F00-0A 1. commit(number=1)" in page
    assert "they have no story" not in page
    assert "commit(number=1)" not in piped(whole)
    assert "  2 × commit again (docs/rocketmq-transactions.md#n1), first in 7F00-0A at consumequeue" in piped(whole)
    assert "\n     transaction 7F00-0A\n       1. commit(number=1)\n" in piped(whole, verbose=True)


def test_stories_of_anomalies_that_do_not_fit_are_counted() -> None:
    long = ["transaction 7F00-0A", *["  1. commit(number=1)"] * 2000]
    found = [strange(n, f"step {n}", "7F00-0A").model_copy(update={"story": long[: n * 900 + 2]}) for n in range(3)]
    text = Page(pages.html(report(findings=found, anomalies={f"step_{n}": 1 for n in range(3)}))).text
    assert "2 more stories left out here" in text
    assert "they have no story" not in text
    assert all(f"1step {n} (reference)" in text for n in range(3))


def test_more_queues_than_rows_are_counted_right() -> None:
    counts = Counts(events=1, traces=10_797, queues=10_000)
    assert "10,000 queues" in piped(conforming(counts=counts))
    assert "10,000 queues" in Page(pages.html(conforming(counts=counts))).text


def test_the_queues_of_several_stores_are_counted_where_they_are_judged() -> None:
    whole = check([recording("lmq"), recording("midlife"), Path("no-such-place")])
    assert whole.counts.queues == len(whole.queues) > 10
    others = sum(row.transactions + row.ops + 1 for row in whole.transactions)
    assert whole.counts.traces == whole.counts.queues + 2 + others, "each log is a trace, and so are cursors"


def test_transactions_are_named_in_the_sentence_where_there_are_any() -> None:
    last = (
        "conforms: No violation found. 4,897 records, 2 queues, 796 transactions read, "
        "14,710 events checked in 0.02 s (rocketmq profile)"
    )
    assert piped(transactional()).splitlines()[-1] == last
    assert Page(pages.html(transactional())).text.count("796transactions") == 1, "above the charts"
    one = transactional(transactions=[transactions(transactions=1)])
    assert "2 queues, 1 transaction read, 14,710" in piped(one)


def test_a_store_without_transactions_says_nothing_of_them() -> None:
    nothing = dict.fromkeys(("transactions", "halves", "renewals", "finals", "ops", "marks", "parked"), 0)
    empty: dict[str, Any] = {name: {} for name in ("outcomes", "decided_within", "back_checks", "batches")}
    whole = conforming(transactions=[transactions(**nothing, **empty, half_end=0, op_end=0)])
    assert piped(whole) == piped(conforming())
    assert pages.html(whole) == pages.html(conforming())


def test_what_is_left_of_an_expired_half_queue_is_reported_without_charts() -> None:
    """Nothing is divided by the nothing that is left."""
    spread = {name: {0: 0} for name in ("decided_within", "back_checks", "batches")}
    gone = transactions(transactions=0, halves=0, renewals=0, outcomes={"committed": 0}, **spread)
    assert piped(transactional(transactions=[gone], clients=[])).startswith(
        """\
store: RocketMQ store, 4,897 records, 4.0 MiB, clean: conforms
  note: settings from broker.conf next to the store

store: 0 transactions, 0 halves, 731 finals, 41 ops with 788 marks, 3 parked
  half cursor 1,131 of 1,205, op cursor 40 of 41

"""
    )
    page = Page(pages.html(transactional(transactions=[gone])))
    assert page.text.count("nothing to count") == 4
    assert "img" not in page.values("role")


def test_a_real_store_with_one_entry_zeroed_is_reported(tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(recording("lmq"), store)
    entry_zeroed(store, Pick("any", "7"))
    whole = check([store])
    assert whole.verdict == "departs"
    page = pages.html(whole)
    for line in whole.violations[0].story:
        assert line in piped(whole)
    for part in parts_of(whole.violations[0].story):
        assert part in Page(page).text
    assert page == pages.html(whole)


# What sources show


class Tide(ReportRow):
    """A row that no broker has."""

    part: ClassVar[str] = "tides"

    harbour: str
    high: int


def tides(parts: sections.RowsByPart) -> list[Section]:
    rows = [
        SectionRow(
            row.source,
            row.harbour,
            f"{row.high} m",
            (row.high, "of 9"),
            lines=("a moon is up",),
            figures=(("7", "waves"),),
            charts=(Chart("waves", "Waves", ("wave", "waves"), "by size", [("small", 2)], {"small": "parked"}),),
        )
        for row in parts["tides"]
    ]
    lines = [SectionRow(row.source, row.name, row.line) for row in rows]
    return [
        Section("tides", "Tides", "tide", rows, "twice a day", "harbour, metres, most", total=(3, "tide")),
        Section("words", "Words", "word", lines),
        Section("depths", "Depths", "depth", rows, headings="harbour, metres, most", detail=True),
    ]


@pytest.fixture
def tidal(monkeypatch: pytest.MonkeyPatch) -> Report:
    """A report with rows of a source that this test has made up."""
    monkeypatch.setitem(sections.PRESENTATIONS, "sea", Presentation("a sea", "wave", ("tides",), tides))
    whole = conforming(sources=[source(kind="sea", verdict="conforms")], queues=[]).model_dump(by_alias=True)
    return Report.model_validate(whole | {"tides": [{"source": "store", "harbour": "Brest", "high": 8}]})


def test_a_section_of_any_source_is_reported_on_a_page_and_in_a_pipe(tidal: Report) -> None:
    output = piped(tidal, verbose=True)
    assert output.startswith("store: a sea, 4,897 waves, 4.0 MiB, clean: conforms\n")
    assert "\nharbour  metres  most\nBrest         8  of 9\n" in output
    assert "\nBrest: 8 m\n  small  2    100%\n  a moon is up\n\nBrest: 8 m\n" in output
    assert "conforms: No violation found. 3 traces, 3 tides read, 14,710 events" in output
    page = Page(pages.html(tidal)).text
    for words in ("Tides twice a day Brest 7waves Waves 2 waves", "Words Brest: 8 m Depths"):
        assert words in page
    assert "depth" not in page, "it has been drawn: nothing is left out, and there is no table"


def test_json_has_the_rows_of_every_source_next_to_the_rest(tidal: Report) -> None:
    found = json.loads(tidal.as_json())
    assert found["tides"] == [{"source": "store", "harbour": "Brest", "high": 8}]
    assert tidal.tides == [Tide(source="store", harbour="Brest", high=8)]
    assert Report.model_validate_json(tidal.as_json()) == tidal
    with pytest.raises(AttributeError, match="no 'ebbs'"):
        _ = tidal.ebbs
    with pytest.raises(ValidationError, match="ebbs"):
        Report.model_validate(found | {"ebbs": []})


def test_json_has_a_key_for_every_kind_of_row_even_if_there_is_none() -> None:
    found = list(json.loads(check([]).as_json()))
    after = found.index("findings_total")
    rows = ["queues", "transactions", "clients", "testimony", "coordinators", "partitions", "overdue"]
    assert found[after + 1 :] == [*rows, "marks", "life", "seconds", "interrupted"]


# The page


def test_a_page_tells_every_story_and_marks_the_step_that_departs() -> None:
    findings = [finding(n) for n in range(50)]
    page = pages.html(report(findings=findings, findings_total=50))
    cards = re.findall(r'<article class="card finding".*?</article>', page, re.DOTALL)
    assert len(cards) == 50
    for card, one in zip(cards, findings, strict=True):
        text = Page(card).text
        for part in parts_of(one.story):
            assert part in text, (part, text)
        assert one.needs.capitalize() in text
        assert card.count('<li class="departs"') == 1


def parts_of(story: list[str]) -> Iterator[str]:
    """The parts of a story that a page must show: calls, changes, values, and the command to see it again."""
    for line in story[2:]:
        if step := re.match(r"  \d+\. (.*?\))(?: at line \d+)?   +(.*)", line):
            yield step[1]
            for change in step[2].split(", "):
                yield from change.split(" 0 → ")
        elif line.startswith("Here: "):
            yield from line[6:-1].split(", ")
        elif line.startswith("Again: "):
            yield line[7:]


def test_the_first_screen_answers() -> None:
    """The verdict, what happened and what follows, what is intact, what was checked and what was not."""
    counts = Counts(events=14_710, rules=41, traces=3, queues=2)
    told = report(
        findings=[finding(summary="entry 77 of orders/1 points at byte 1293519; its message is at 7"), anomaly()],
        counts=counts,
        sources=[source(newest=1_700_000_000)],
    )
    text = Page(pages.html(told)).text
    order = [
        "✗ departs 12 violations found, in 1 story.",
        "Entry 77 of orders/1 points at byte 1,293,519; its message is at 7.",
        "A message is in the log and no consumer ever receives it.",
        "4,897 messages in the log 8.8 KiB without a record",
        "2 queues 1 broken",
        "14,710 events checked 12 not allowed",
        "Input store",
        "Checked RocketMQ store, 4.0 MiB, clean stop",
        "Newest file 2023-11-14 22:13:20 UTC",
        f"Checked by gapless {version('gapless')}, rocketmq profile, local engine",
        "Not checked",
        "rules without evidence, for 1 reason",
        "3 steps that the design forbids and the rocketmq profile allows",
        "Findings",
        "Entry 77 of orders/1 points at byte 1,293,519; its message is at 7.",
        "Expected Observed No entry before it is missing.",
        "Coverage",
        "Words",
    ]
    at = 0
    for words in order:
        assert words in text[at:], (words, text[at : at + 600])
        at = text.index(words, at)
    assert "nothing was left out" not in text
    quiet = conforming(not_exercised=[], counts=counts)
    assert "nothing was left out" in Page(pages.html(quiet)).text


def test_a_tile_claims_no_more_than_the_report_has() -> None:
    """Of many queues a report has some rows, and of many places a finding names the first few."""
    many = Counts(events=9, traces=9000, queues=8000)
    broken = [finding(n, count=40, traces=[f"orders/{n}", f"orders/{n + 4}"]) for n in range(3)]
    told = report(findings=broken, findings_total=120, counts=many, queues=[row(0), row(1)])
    assert "8,000 queues 6 or more broken" in Page(pages.html(told)).text
    assert "2 queues 2 broken" in Page(pages.html(report(queues=[row(n, verdict="departs") for n in range(2)]))).text
    unsure = conforming(verdict="inconclusive", sources=[source(verdict="inconclusive", reasons=["a torn end"])])
    assert "2 queues no violation found" in Page(pages.html(unsure)).text
    assert "none broken" not in Page(pages.html(unsure)).text


def test_a_fact_is_told_once() -> None:
    """The consequence of the first finding stands in the headline, and not above its story again."""
    one = finding(summary="entry 77 of orders/1 is gone")
    text = Page(pages.html(report(findings=[one, finding(1)]))).text
    assert text.count("ntry 77 of orders/1 is gone") == 2, "in the headline, and as the title of the story"
    assert text.count("A message is in the log and no consumer ever receives it.") == 2
    assert text.count("14,710 events") == 1


def test_what_was_not_checked_is_grouped_by_what_would_change_it() -> None:
    told = conforming(
        not_exercised=[
            "queue/a-rule, queue/b-rule: no client log: add --client",
            "transaction.roll_back: no client log: add --client",
            "ring: no batches",
            "5 messages: not judged as finals",
            "log.flush: no such step",
        ]
    )
    page = pages.html(told)
    text = Page(page[page.index('id="not-checked"') :]).text
    rules = len(SPECS["ring"].rules)
    assert f"no batches {rules} rules ring" in text
    assert "no client log: add --client 2 rules and 1 step queue/a-rule, queue/b-rule, transaction.roll_back" in text
    assert "5 messages: not judged as finals" in text
    assert "rules without evidence, for 4 reasons" in Page(page).text
    assert f"{rules + 5} rules or steps not checked" in piped(told)


def test_an_own_system_is_not_called_a_broker() -> None:
    examples = ROOT / "examples"
    page = Page(pages.html(check([examples / "lease.ndjson"], specs=[examples / "lease.py"]))).text
    assert "broker" not in page
    assert 'bills, line 14: write breaks the rule "the token is no older than that of the last write".' in page
    assert "2 traces 1 broken" in page
    assert "queue" not in page.partition("Words as this page")[0], "specs that are not used are not named"


def test_a_page_can_be_walked_without_seeing_it() -> None:
    for page in (*(Page(pages.html(whole)) for whole in (report(), conforming(), transactional())), big_page()):
        tags = [tag for tag, _ in page.elements]
        for landmark in ("header", "main", "nav", "footer"):
            assert tags.count(landmark) == 1, landmark
        assert tags.count("table") == tags.count("caption")
        assert all(attributes.get("scope") in ("col", "row") for tag, attributes in page.elements if tag == "th")
        assert tags.count("h1") == 1
        scrolled = [a for _, a in page.elements if "wide" in (a.get("class") or "").split()]
        assert all(a.get("tabindex") == "0" and a.get("role") == "region" and a.get("aria-label") for a in scrolled)
        named = {attributes["id"]: tag for tag, attributes in page.elements if "id" in attributes}
        for attributes in (a for _, a in page.elements if a.get("role") == "img"):
            assert [named[name] for name in (attributes["aria-labelledby"] or "").split()] == ["title", "desc"]
        assert not {"script", "link", "iframe"} & set(tags)


def test_words_that_not_everybody_knows_are_explained_where_they_stand_and_at_the_end() -> None:
    page = Page(pages.html(transactional()))
    marked = {attributes["title"] for tag, attributes in page.elements if tag == "abbr"}
    meaning = "a message of a transaction that is not decided: no consumer sees it"
    assert meaning in marked
    end = page.text.rindex("Words as this page uses them")
    assert all(whole in page.text[end:] for whole in marked if whole), "each of them is at the end, too"
    assert meaning not in Page(pages.html(conforming())).text, "no explanation is without its word"


def test_a_step_with_many_changes_shows_those_that_the_rule_reads_and_folds_the_others() -> None:
    long = "  1. begin(number=1) at line 7   " + ", ".join(f"field[{n}] 0 → {n}" for n in range(40))
    whole = report(findings=[finding(story=["queue departs at x.", "", long], here={"field[9]": 9, "end seen": 3})])
    page = pages.html(whole)
    line, _, table = page.partition('<li value="1">')[2].partition("</summary>")
    assert Page(line).text == "begin(number=1) line 7 field[9] 0 → 9 40 changes"
    assert table.partition("</table>")[0].count("<tr>") == 40, "39 changes, and the headings"
    assert table.count('<tr class="read">') == 1


def test_coverage_tells_the_steps_that_were_never_taken_of_specs_that_are_used() -> None:
    whole = conforming(coverage={"log.append": 4897, "log.flush": 0, "ring.put": 0, "ring.take": 0})
    page = Page(pages.html(whole)).text
    assert "log 1 of 2 steps append 4,897 flush never" in page
    assert "ring" not in page.partition("Coverage which steps")[2]


def test_queues_that_lag_are_drawn_and_those_that_depart_are_not() -> None:
    queues = [row(0, end=400), row(1, end=310), row(2), row(3, end=999, verdict="departs")]
    page = Page(pages.html(report(queues=queues))).text
    assert "Queue lag messages without an entry yet" in page
    assert "98messages" in page
    assert "orders/094 · 96% orders/14 · 4.1%" in page
    assert "store: 98 messages without an entry yet, in 2 queues" in piped(report(queues=queues))
    assert "Queue lag" not in Page(pages.html(report())).text


def test_a_page_is_the_same_twice() -> None:
    assert pages.html(report()) == pages.html(report())


def hostile(value: Any) -> Any:
    """Replace every free text of a report by a hostile name."""
    if isinstance(value, dict):
        keep = {"verdict", "kind", "severity", "schema"}
        return {key: item if key in keep else hostile(item) for key, item in value.items()}
    if isinstance(value, list):
        return [hostile(item) for item in value]
    return f"{value}{HOSTILE}" if isinstance(value, str) else value


def hostile_report() -> Report:
    story = ["why", "  1. commit()"]
    kinds = [finding(), anomaly().model_copy(update={"story": story, "needs": "x", "message": "x"})]
    whole = report(
        sources=[source(reasons=["why"])], findings=kinds, transactions=[transactions()] * 9, clients=[client()]
    )
    dumped = hostile(whole.model_dump(by_alias=True))
    odd = transactions(source=f"store{HOSTILE}", outcomes={HOSTILE: 1, "committed": 1})
    return Report.model_validate(
        dumped
        | {
            "anomalies": {HOSTILE: 1, f"x{HOSTILE}": 1},
            "coverage": {HOSTILE: 1},
            "transactions": [odd, *dumped["transactions"]],
        }
    )


def test_names_with_html_in_them_are_text() -> None:
    html = pages.html(hostile_report())
    html.encode()
    page = Page(html)
    assert not {tag for tag, _ in page.elements} & {
        "script",
        "iframe",
        "img",
        "link",
        "object",
        "embed",
        "base",
        "form",
    }
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert "<script>alert('x')</script>\"&[bold red]\\x1b[31m\\x07\\u202e\\ud800" in page.text
    assert "<script" not in html
    assert "\x1b" not in html
    assert "<script>alert('x')</s…1 · 50% committed1 · 50%" in page.text, "an outcome next to its bar"


def test_hostile_names_are_shown_by_a_terminal_too() -> None:
    plain = piped(hostile_report(), verbose=True)
    assert all(line.isprintable() for line in plain.splitlines())
    assert "  <script>alert('x')</script>\"&[bold red]…  1     50%\n" in plain
    for where in ("store", "client.ndjson"):
        assert f"{where}<script>alert('x')</script>\"&[bold red]\\x1b[31m\\x07\\u202e\\ud800: " in plain


def test_a_page_needs_no_other_file() -> None:
    for whole in (report(), hostile_report(), conforming(), transactional()):
        html = pages.html(whole)
        assert not re.search(r"@import|\bsrc\s*=", html)
        assert set(re.findall(r'(?:[\w-]+=")?https?://[\w.]+', html)) <= {f'href="{site}' for site in PUBLIC_SITES}
        assert set(re.findall(r"url\((.)", html)) <= {"#"}
        assert all(link.startswith(("#", *PUBLIC_SITES)) for link in Page(html).values("href"))


def test_every_link_leads_somewhere_and_no_two_things_have_one_name() -> None:
    few = report(), transactional(transactions=[transactions()] * 3)
    for page in (*(Page(pages.html(whole)) for whole in few), big_page()):
        names = page.values("id")
        assert len(names) == len(set(names))
        assert {link[1:] for link in page.values("href") if link.startswith("#")} <= set(names)


def strange(number: int, what: str, text: str) -> Finding:
    story = [f"transaction {text} departs at x.", *(f"  {n}. {text}" for n in range(9))]
    whole = {"source": f"{text}-{number}", "needs": what, "message": f"{what} (reference)", "story": story}
    return anomaly().model_copy(update=whole)


def busy(name: str, source: str) -> TransactionsRow:
    """More outcomes, times and sizes than anybody wants to see, and counts as large as they can be."""
    return transactions(
        source=source,
        transactions=EXTREME,
        outcomes={f"{name} {n}": EXTREME - n for n in range(100)},
        decided_within={2**n: EXTREME for n in range(63)},
        back_checks=dict.fromkeys(range(1000), EXTREME),
        batches=dict.fromkeys(range(5000), 1),
        half_end=EXTREME,
    )


def big_report(name: str = "orders", notes: int = 1) -> Report:
    broken = [finding(n, n * 9999, message=f"{name}/{n}: missing", trace=f"{name}/{n}") for n in range(5000)]
    return report(
        sources=[source(path=f"{name}/store-{n}", notes=[name] * notes, reasons=[name] * notes) for n in range(500)]
        + [source()],
        findings=broken + [strange(n, f"{name} {n}", name) for n in range(500)],
        findings_total=5000,
        queues=[row(n, topic=f"{name}-{n // 8}", source=f"{name}/store-{n}") for n in range(10_000)],
        transactions=[busy(name, f"{name}/store-{n}") for n in range(budget.ROWS[0] + 1)]
        + [transactions(source=f"{name}/few-{n}") for n in range(400)],  # more rows than there is room for
        clients=[client(path=name, source=f"{name}/store-{n}", sends=EXTREME) for n in range(500)],
        not_exercised=[f"{name}-{n}: because of {name} {n}" for n in range(1000)],
        anomalies={f"{name} {n}": n for n in range(1000)},
        coverage={f"{name}-{n}.step": n + 1 for n in range(1000)},
        marks=[
            *log_files(1000),
            *(Mark(source="store", low=n * 9000, high=n * 9000 + 900, kind="damage", label=name) for n in range(5000)),
        ],
    )


@cache
def big_page() -> Page:
    """The page of a big report, written and read once."""
    return Page(pages.html(big_report()))


@pytest.mark.parametrize("name", by_day(["orders", '"<&>' * 60, "題" * 200, '"' * 8_000], 1 / 4), ids=len)
def test_a_page_stays_below_a_megabyte(name: str) -> None:
    html = pages.html(big_report(name, notes=30))
    assert len(html.encode()) < MEGABYTE
    text = Page(html).text
    for what in ("input", "queue", "finding", "spec", "reason", "kind", "transactional store", "client log"):
        assert re.search(rf"[\d,]+ more {what}s? left out here", text), what


def test_a_page_uses_the_room_it_has() -> None:
    text = big_page().text
    assert text.count("Expected Observed") == budget.STORIES[0] == 200
    assert "9,200 more queues left out here" in text
    assert "4,650 more findings left out here" in text


# Charts


def charted(whole: TransactionsRow) -> dict[str, charts.Chart]:
    return {chart.name: chart for chart in rocketmq.charts(whole)}


def test_a_chart_says_counts_and_shares_next_to_its_bars_and_to_those_who_do_not_see_them() -> None:
    page = Page(pages.html(transactional()))
    expected = "committed731 · 92% rolled back57 · 7.2% parked3 · 0.4% undecided5 · 0.6%"
    assert expected in page.text
    assert "Time to decision 788 transactions, by the time that it took, up to" in page.text
    assert "250 ms512 · 65% 1 s190 · 24% 16 s80 · 10% 5 min6 · 0.8%" in page.text
    assert "0596 · 75% 1150 · 19% 240 · 5.0% 37 · 0.9% 153 · 0.4%" in page.text
    assert "committed: 731 (92%); rolled back: 57 (7.2%); parked: 3 (0.4%); undecided: 5 (0.6%)" in page.text
    pictures = [attributes for _, attributes in page.elements if attributes.get("role") == "img"]
    assert len(pictures) == 4
    named = {attributes["id"]: tag for tag, attributes in page.elements if "id" in attributes}
    for picture in pictures:
        assert [named[name] for name in (picture["aria-labelledby"] or "").split()] == ["title", "desc"]


def test_what_a_page_knows_of_transactions_is_on_it() -> None:
    page = Page(pages.html(transactional(clients=[client(expired=8)]))).text
    for figure in (
        "796transactions",
        "1,205halves (409 put back)",
        "731finals",
        "41ops with 788 marks",
        "3parked",
        "1,131 of 1,205half cursor",
        "40 of 41op cursor",
        "client.ndjson 9,0004,2004,150850790409",
    ):
        assert re.sub(r"\s", "", figure) in re.sub(r"\s", "", page), figure


def test_outcomes_have_colours_and_an_unknown_one_is_grey() -> None:
    bars = charted(transactions(outcomes={"committed": 2, "rolled back": 1, "neither": 1}))["outcomes"].bars
    assert [bar.tone for bar in bars] == ["committed", "rolled-back", "other"]
    rects = [a["class"] for tag, a in Page(pages.html(transactional())).elements if tag == "rect" and "class" in a]
    for tone in ("committed", "rolled-back", "parked", "undecided"):
        assert f"bar {tone}" in rects
        assert f".chart .{tone} " in pages.html(transactional())


def test_many_values_share_bars_and_none_is_lost() -> None:
    whole = charted(
        transactions(
            back_checks=dict.fromkeys(range(45), 1),
            decided_within=dict.fromkeys(range(21, 0, -1), 2),
            outcomes={f"outcome {n}": 3 for n in range(100)},
        )
    )
    assert [bar.label for bar in whole["checks"].bars][:2] == ["0–2", "3–5"]
    assert [bar.label for bar in whole["time"].bars][-2:] == ["20 ms", "21 ms"]
    assert [bar.name for bar in whole["outcomes"].bars][-2:] == ["outcome 18", "81 other outcomes"]
    assert [whole[name].total for name in ("checks", "time", "outcomes")] == [45, 42, 300]
    assert all(len(chart.bars) <= charts.BARS for chart in whole.values())


def test_stores_that_are_not_drawn_have_their_numbers_in_a_table() -> None:
    sources = [source(path=f"store-{n}", verdict="conforms") for n in range(9)]
    stores = [transactions(source=f"store-{n}", half_cursor=None) for n in range(9)]
    page = Page(pages.html(transactional(sources=sources, transactions=stores, clients=[])))
    assert page.values("role").count("img") == 4 * budget.DRAWN[0]
    assert "store-87961,205409731417883– of 1,20540 of 41" in page.text
    assert "left out" not in page.text


@pytest.mark.parametrize(
    ("count", "total", "expected"),
    [
        (0, 5, "0%"),
        (5, 5, "100%"),
        (1, 3, "33%"),
        (1, 20, "5.0%"),
        (1, 10_000, "<0.1%"),
        (9_999, 10_000, ">99.9%"),
        (996, 1000, "99.6%"),
        (EXTREME, 4 * EXTREME, "25%"),
    ],
)
def test_a_share_is_never_nothing_nor_all_unless_it_is(count: int, total: int, expected: str) -> None:
    assert charts.share(count, total) == expected


@given(st.integers(0, EXTREME), st.integers(1, EXTREME))
def test_a_share_that_says_nothing_or_all_is_that(count: int, more: int) -> None:
    total = count + more
    assert (charts.share(count, total) in {"0%", "0.0%"}) == (count == 0)
    assert charts.share(count, total) not in {"100%", "100.0%"}


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [
        (0, "0 ms"),
        (250, "250 ms"),
        (512, "512 ms"),
        (1000, "1 s"),
        (1024, "1 s"),
        (1500, "1.5 s"),
        (16_384, "16 s"),
        (65_536, "1.1 min"),
        (262_144, "4.4 min"),
        (300_000, "5 min"),
        (3_600_000, "1 h"),
        (9_960, "10 s"),
        (7 * 86_400_000, "7 d"),
        (EXTREME, "53,375,995,584 d"),
    ],
)
def test_times_are_stated_as_people_say_them(milliseconds: int, expected: str) -> None:
    assert charts.span(milliseconds) == expected


def test_neighbours_among_powers_of_two_have_different_labels() -> None:
    labels = [charts.span(2**n) for n in range(63)]
    assert len(set(labels)) == len(labels)


def test_how_far_half_and_nine_tenths_reach() -> None:
    assert charts.reached({}) == []
    assert charts.reached({8: 0}) == []
    assert charts.reached({8: 4}) == [("all", 8)]
    assert charts.reached({1: 5, 2: 4, 4: 1}) == [("50%", 1), ("90%", 2), ("all", 4)]
    assert charts.reached({4: 1, 2: 9}) == [("90%", 2), ("all", 4)]


@pytest.mark.parametrize(
    ("length", "letters"), [(0, ""), (1e-9, "▏"), (1 / 16, "▌"), (0.5, "████"), (0.99, "███████▉"), (1, "████████")]
)
def test_a_bar_of_letters_is_as_long_as_it_should_be(length: float, letters: str) -> None:
    assert charts.blocks(length, 8) == letters


COUNTS = st.integers(0, 9) | st.integers(0, EXTREME)
SPREAD = st.dictionaries(st.integers(0, EXTREME), COUNTS, max_size=60)


@given(st.dictionaries(st.text(max_size=60), COUNTS, max_size=30), SPREAD, SPREAD, SPREAD)
def test_whatever_is_counted_the_bars_stay_in_their_chart(
    outcomes: dict[str, int], times: dict[int, int], checks: dict[int, int], batches: dict[int, int]
) -> None:
    whole = transactions(outcomes=outcomes, decided_within=times, back_checks=checks, batches=batches)
    counts = [list(outcomes.values()), list(times.values()), list(checks.values()), list(batches.values())]
    for chart, expected in zip(rocketmq.charts(whole), counts, strict=True):
        assert bool(chart.bars) == any(expected)
        assert chart.total == (sum(expected) if chart.bars else 0)
        for bar in chart.bars:
            assert (bar.length > 0) == (bar.count > 0)
            assert chart.left + bar.length * chart.room + 8 + 6 * len(bar.caption) <= chart.width
        assert max((bar.length for bar in chart.bars), default=1) == 1
    page = Page(pages.html(transactional(transactions=[whole])))
    assert page.values("role").count("img") == sum(map(any, counts))
    assert all(line.isprintable() for line in piped(transactional(transactions=[whole])).splitlines())


# The picture


def pictures(whole: Report) -> list[log_map.LogMap]:
    return log_map.log_maps(whole, 9, set())


def test_a_picture_of_one_file_shows_where_the_records_end() -> None:
    log = Mark(source="store", low=0, high=FILE // 2, kind="log", label="")
    (picture,) = pictures(conforming(marks=[*log_files(1), log]))
    assert [box.label for box in picture.boxes] == ["0" * 20]
    assert log_map.FRAME.left < picture.records < log_map.FRAME.right
    assert not picture.pins


def test_a_file_with_little_in_it_is_drawn_short() -> None:
    log = Mark(source="store", low=0, high=400_000, kind="log", label="")
    (picture,) = pictures(report(marks=[*log_files(2, 1 << 30), log], findings=[finding(position=200_000)]))
    assert picture.high == 500_000
    assert picture.more == (2 << 30) - 500_000
    assert len(picture.boxes) == 1
    assert picture.pins[0].x == 402  # two fifths of the way, in pixels


def test_a_thousand_files_share_boxes_and_a_lost_one_still_shows() -> None:
    lost = Mark(source="store", low=500 * FILE, high=501 * FILE, kind="damage", label="no record")
    files = [mark for mark in log_files(1000) if mark.low != lost.low]
    findings = [finding(n, n * 5 * FILE) for n in range(200)]
    (picture,) = pictures(report(marks=[*files, lost], findings=findings))
    assert 20 <= len(picture.boxes) <= 2 * log_map.BOXES
    assert sum(box.files for box in picture.boxes) == 999
    assert [stretch.width for stretch in picture.stretches] == [3]
    assert "524,288,000 to 525,336,576" in picture.stretches[0].title
    assert picture.pins[0].label.startswith("1–")
    assert picture.pins[-1].label.endswith("–200")


@pytest.mark.parametrize(
    ("names", "label"),
    [
        (["3"], "3"),
        (["3", "4", "5"], "3–5"),
        (["5", "3"], "3 +1"),
        (["a1"], "a1"),
        (["3", "a1", "4", "a2"], "3–4, a1–2"),
    ],
)
def test_a_pin_names_its_findings(names: list[str], label: str) -> None:
    assert log_map._pin_label(names) == label


def test_a_pin_leads_to_a_story() -> None:
    page = Page(pages.html(report(findings=[finding(), finding(79, 800_000), finding(5, 2_000_000)])))
    assert [link for link in page.values("href") if "finding-" in link] == ["#finding-1", "#finding-3"]


def test_a_trace_without_a_log_has_no_picture() -> None:
    assert "The log" not in Page(pages.html(report(marks=[]))).text


POSITIONS = st.integers(-1, 4 * FILE) | st.integers(-EXTREME, EXTREME)


@st.composite
def marks(draw: st.DrawFn) -> list[Mark]:
    def stretches() -> Iterator[Mark]:
        for _ in range(draw(st.integers(0, 60))):
            low, high = sorted((draw(POSITIONS), draw(POSITIONS)))
            kind = draw(st.sampled_from(get_args(Mark.model_fields["kind"].annotation)))
            yield Mark(source="store", low=low, high=high, kind=kind, label="x")

    return [*stretches(), *log_files(draw(st.integers(0, 50)))]


@given(marks(), st.lists(POSITIONS, max_size=60))
def test_whatever_the_marks_the_picture_stays_in_its_frame(drawn: list[Mark], positions: list[int]) -> None:
    frame = log_map.FRAME
    whole = report(marks=drawn, findings=[finding(n, position) for n, position in enumerate(positions)])
    for picture in pictures(whole):
        for x, width in [(s.x, s.width) for s in picture.boxes] + [(s.x, s.width) for s in picture.stretches]:
            assert frame.left <= x <= x + width <= frame.right + 3
        for pin in picture.pins:
            assert frame.left <= pin.x - pin.width / 2 < pin.x + pin.width / 2 <= frame.right
        for one, other in zip(picture.pins, picture.pins[1:], strict=False):
            assert one.x + one.width / 2 <= other.x - other.width / 2
        assert all(frame.left <= stem <= frame.right for stem in (*picture.stems, picture.records))
    assert Page(pages.html(whole)).values("id")
