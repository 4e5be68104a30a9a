"""Citations of a report: each leads to its passage in the same page, which opens without a network."""

import re
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gapless.traces.report.page import budget, html, passages
from gapless.traces.report.page.citations import CITATION, linked
from gapless.traces.report.page.passages import LETTERS, passage
from gapless.traces.report.values import Counts, Report, SourceRow
from gapless.traces.rules import rules
from tests.support.command_line import ROOT

DOCS = "docs"  # a part of its own: the house test opens every path that stands in one piece
A_PAGE = """# The `title` & more

Intro.

## <a id="section"></a>A section

First, see [below](#row), [elsewhere](https://github.com/apache/rocketmq) and [nowhere](gone.md).

<div>raw</div>

### <a id="inner"></a>An inner one

```text
<code> & more
```

## Others

| code | holds | |
|---|---|---|
| R0 | not this row | |
| <a id="row"></a>R1 | KAFKA-9777, `apache/rocketmq#1` and apache/rocketmq#5574 | <b>bold</b> |

Text before. <a id="middle"></a>It follows:

* an item
* <a id="item"></a>another item,
  in two lines

1. one
2. <a id="numbered"></a>two <script>alert(1)</script>

<a id="long"></a>LONG

<a id="last"></a>Last.
"""


class Links(HTMLParser):
    """The ids and links of a page, and its text by the element with an id that it is in."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_data(self, data: str) -> None:
        """Text between elements."""
        self.texts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for name, value in attrs if name == "href" and value]
        self.open += [] if tag in {"meta", "path", "rect", "br"} else [tag]

    def handle_endtag(self, tag: str) -> None:
        """An element ends, which is the last that began."""
        if tag not in {"meta", "path", "rect", "br"}:
            assert self.open.pop() == tag


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder from which the pages of the documentation are read."""
    (tmp_path / "docs").mkdir()
    (tmp_path / DOCS / "toy.md").write_text(A_PAGE.replace("LONG", "a word <&> `code` " * 400), encoding="utf-8")
    monkeypatch.setattr(passages, "files", lambda _: tmp_path)
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    passages._tokens.cache_clear()
    passage.cache_clear()


def text_of(anchor: str, *names: str) -> str:
    found = passage("toy", anchor)
    assert found
    return str(found.html(names))


def plain(markup: str) -> str:
    return " ".join("".join(Links(markup).texts).split())


def report(*notes: str) -> Report:
    row = SourceRow(path="store", kind="rocketmq-store", verdict="conforms", notes=list(notes))
    return Report(
        verdict="conforms", profile="strict", engine="local", sources=[row], counts=Counts(), coverage={},
        not_exercised=[], anomalies={}, findings=[], findings_total=0, seconds=0.0,
    )  # fmt: skip


# -- passages --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("installed")
def test_a_passage_is_the_block_of_its_anchor() -> None:
    found = passage("toy", "row")
    assert found
    assert (found.title, found.section, found.citation) == ("The title & more", "Others", f"{DOCS}/toy.md#row")
    assert plain(text_of("")) == "Intro."
    assert plain(text_of("section")) == "First, see below, elsewhere and nowhere. An inner one <code> & more"
    assert plain(text_of("inner")) == "<code> & more"
    assert "R0" not in text_of("row"), "a row alone, under the head of its table"
    assert plain(text_of("row")).startswith("The title & more: Others code holds R1")
    assert plain(text_of("middle")) == "It follows: an item another item, in two lines"
    assert plain(text_of("item")) == "another item, in two lines"
    assert text_of("numbered").startswith('<ol start="2">\n<li>two ')
    assert plain(text_of("last")) == "Last."
    assert passage("toy", "none") is None
    assert passage("none", "row") is None


@pytest.mark.usefixtures("installed")
def test_a_passage_has_no_markup_of_its_own_and_no_dead_link() -> None:
    assert "<script" not in text_of("numbered")
    assert "raw" not in text_of("section")
    assert "<b>" not in text_of("row")
    assert text_of("row").count('<th scope="col">') == 2, "the head of the third column is empty"
    assert "&lt;code&gt; &amp; more" in text_of("inner")
    assert Links(text_of("section")).links == ["https://github.com/apache/rocketmq"]
    assert "#source-toy.row" in Links(text_of("section", "source-toy.row")).links
    assert Links(text_of("row")).links == [
        "https://issues.apache.org/jira/browse/KAFKA-9777",
        "https://github.com/apache/rocketmq/issues/5574",
    ], "what stands in code is code"


@pytest.mark.usefixtures("installed")
def test_a_passage_is_bounded() -> None:
    text = plain(text_of("long"))
    assert LETTERS - 2 <= len(text) <= LETTERS + 1
    assert text.endswith("…")
    assert not plain(text_of("section")).endswith("…")
    assert not Links(text_of("long")).open, "what is open is closed"


@pytest.mark.usefixtures("installed")
def test_a_section_that_is_too_long_ends_within_its_blocks(installed: Path) -> None:
    rows = "\n".join(f"| {n} | *{'word ' * 20}* |" for n in range(100))
    (installed / DOCS / "table.md").write_text(
        f"# T\n\n## <a id='x'></a>X\n\n## <a id=\"t\"></a>T\n\n| n | w |\n|-|-|\n{rows}\n"
    )
    found = passage("table", "t")
    assert found
    assert not Links(found.html()).open
    assert "…" in found.html()
    assert "<td>99</td>" not in found.html()


# -- citations -------------------------------------------------------------------------------------------------------


def sources() -> Iterator[str]:
    """The texts of the product that cite the documentation: rules, deviations, specs, messages."""
    yield from (rule.source for rule in rules())
    yield from (path.read_text(encoding="utf-8") for room in ("spec", "traces") for path in (ROOT / room).rglob("*.py"))


def citations() -> set[tuple[str, str]]:
    """Every page and anchor that is cited."""
    cited: set[tuple[str, str]] = set()
    for text in sources():
        for found in CITATION.finditer(re.sub(r"\n[ #]*", " ", text)):
            anchors = [found["anchor"] or "", *re.findall(r"#[\w-]+", found["more"])]
            cited |= {(found["page"], anchor.removeprefix("#")) for anchor in anchors}
    return cited


def test_every_citation_has_a_passage_with_text() -> None:
    cited = citations()
    assert len(cited) > 200
    assert {("pulsar", "p-10"), ("proposals", "back-check"), ("rocketmq", "cl3")} <= cited
    for page, anchor in sorted(cited):
        found = passage(page, anchor)
        assert found, f"docs/{page}.md#{anchor} has no passage"
        text = str(found.html())
        assert 5 < len(plain(text)) < 2 * LETTERS, f"docs/{page}.md#{anchor}: {text}"
        assert not Links(text).open
        assert found.title


def test_every_page_that_is_cited_is_a_part_of_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shipped = {name for name in project["tool"]["setuptools"]["package-data"]["gapless"] if name.startswith("docs/")}
    assert shipped == {f"docs/{page}.md" for page, _ in citations()}, "name each page that is cited, and no other"


def test_citations_and_public_references_are_links() -> None:
    both = linked("(docs/pulsar.md#n-1, #p-10: as apache/pulsar#15157 and KAFKA-9777 <say>)")
    assert re.findall(r'<a href="([^"]*)">(.*?)</a>', both) == [
        ("#source-pulsar.n-1", "The Pulsar transaction coordinator, and its clients #n-1"),
        ("#source-pulsar.p-10", "#p-10"),
        ("https://github.com/apache/pulsar/issues/15157", "apache/pulsar#15157"),
        ("https://issues.apache.org/jira/browse/KAFKA-9777", "KAFKA-9777"),
    ]
    assert both.endswith("&lt;say&gt;)")
    assert (
        linked("docs/pulsar.md") == '<a href="#source-pulsar.">The Pulsar transaction coordinator, and its clients</a>'
    )
    assert linked(f"{DOCS}/pulsar.md#no-such, #p-10").startswith(f"{DOCS}/pulsar.md#no-such, <a ")


def test_a_page_carries_the_passages_that_it_cites_and_no_others() -> None:
    page = html.html(report("see docs/rocketmq.md#cl3, #ring", f"and docs/pulsar.md; and <{DOCS}/none.md#x>"))
    found = Links(page)
    sources = ["source-pulsar.", "source-rocketmq.ring", "source-rocketmq.cl3"]
    assert [name for name in found.ids if name.startswith("source-")] == sources
    assert {link[1:] for link in found.links if link.startswith("#")} <= set(found.ids)
    assert "#passages" in found.links
    assert "or expired queues cleaned, start at 0 again" in plain(page)
    assert f"&lt;{DOCS}/none.md#x&gt;" in page
    assert 'id="passages"' not in html.html(report())


def test_a_page_that_cites_everything_is_below_a_megabyte_and_always_the_same() -> None:
    pages = {page: (ROOT / f"docs/{page}.md").read_text(encoding="utf-8") for page, _ in citations()}
    places = [
        f"docs/{page}.md#{name}" for page, text in pages.items() for name in re.findall(r'<a id="([^"]+)">', text)
    ]
    notes = [" ".join(places[n : n + 8]) for n in range(0, len(places), 8)]
    whole = report(*notes[:10])
    whole.sources.extend(report(*notes[n : n + 10]).sources[0] for n in range(10, len(notes), 10))
    page = html.html(whole)
    assert page == html.html(whole.model_copy(deep=True))
    found = Links(page)
    assert {link[1:] for link in found.links if link.startswith("#")} <= set(found.ids)
    end = page[page.index('<h2 id="passages">') :]
    assert re.search(r"[234]\d\d more passages left out here", end)
    assert len(re.findall(r' id="source-', end)) == len(places)
    assert len(end.encode()) < 1_000_000 - budget.PAGE - 30_000, "style and headings take the rest"


def test_citations_of_a_stripped_install_are_plain_text(installed: Path) -> None:
    (installed / DOCS / "toy.md").unlink()
    (installed / "docs").rmdir()
    text = "see docs/rocketmq.md#cl3, #ring & docs/pulsar.md"
    assert linked(text) == "see docs/rocketmq.md#cl3, #ring &amp; docs/pulsar.md"
    page = html.html(report(text))
    assert "docs/rocketmq.md#cl3" in page
    assert 'id="passages"' not in page
