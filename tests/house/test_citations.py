"""A reader can open every citation: paths into `docs/`, and links between pages; nothing else is cited.

Each rule is a function from text to complaints, next to examples of what it catches. A complaint says what to write
instead.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from posixpath import basename, dirname, join, normpath

import pytest

from manual.markdown import ELSEWHERE, FENCED, LINK, blanked, without_code
from tests.house.project import ROOT, listed, project_files

Anchors = frozenset[str]
Pages = Mapping[str, Anchors]
"""The anchors of every Markdown page, by its path from the root."""

# --- The anchors of a page ----------------------------------------------------------------------------------

EXPLICIT = re.compile(r'<a (?:id|name)="([^"]+)">')
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)


def anchors(page: str) -> Anchors:
    """Return the anchors of a page: ids that it gives, and the slugs that GitHub makes of its headings."""
    return frozenset(EXPLICIT.findall(page)) | frozenset(slugs(page))


def slugs(page: str) -> Iterator[str]:
    """GitHub numbers a heading's later copies."""
    seen: dict[str, int] = {}
    for heading in HEADING.findall(blanked(FENCED, page)):
        text = re.sub(r"<[^>]*>", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading))
        plain = re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")
        times = seen[plain] = seen.get(plain, -1) + 1
        yield f"{plain}-{times}" if times else plain


def given_twice(page: str) -> list[str]:
    """Explicit ids that stand in a page more than once: a link opens the first of them."""
    ids = EXPLICIT.findall(page)
    return [f'`<a id="{name}">` stands there twice: give one of them a name of its own' for name in repeated(ids)]


def repeated(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def test_anchors_are_ids_and_slugs_of_headings() -> None:
    page = '# The `log`, read\n\n## <a id="cq"></a>Consume queues: what [holds](x.md)\n\n## Words\n\n## Words\n'
    assert anchors(page) == {"the-log-read", "cq", "consume-queues-what-holds", "words", "words-1"}


def test_what_stands_in_code_is_no_heading() -> None:
    assert anchors("```sh\n# a comment\n```\n\n# Title\n\n~~~\n# another\n") == {"title"}


def test_an_anchor_given_twice_is_caught() -> None:
    assert given_twice('<a id="n1"></a> <a id="n2"></a> <a id="n1"></a>') == [
        '`<a id="n1">` stands there twice: give one of them a name of its own'
    ]


# --- Paths into docs/ ---------------------------------------------------------------------------------------

INTO_DOCS = re.compile(r"(?<![\w/.-])(docs/[\w./-]+\.md)\b((?:#[\w-]+)?(?:,\s+#[a-z][\w-]*)*)")
"""A page, its anchor, and further anchors of the same page."""


def dead_paths(text: str, pages: Pages) -> list[str]:
    """Paths into `docs/`, with anchors or without, that do not open."""
    return [
        f"{line}: `{match[1]}{anchor and '#'}{anchor}` does not open: {instead}"
        for line, match in found(INTO_DOCS, text)
        for anchor in re.findall(r"#([\w-]+)", match[2]) or [""]
        if (instead := instead_of(match[1], anchor, pages))
    ]


def instead_of(page: str, anchor: str, pages: Pages) -> str:
    """Return the correction of a missing page or anchor; nothing if it exists."""
    if page not in pages:
        return f"say {nearest(page, pages)}"
    if anchor and anchor not in pages[page]:
        return f'say {page}#{nearest(anchor, pages[page])}, or give the place `<a id="{anchor}"></a>`'
    return ""


def nearest(name: str, names: Mapping[str, Anchors] | Anchors) -> str:
    return " or ".join(get_close_matches(name, sorted(names), n=2, cutoff=0.0)) or "what is there"


def found(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Every match, with the line on which it begins."""
    return ((text.count("\n", 0, match.start()) + 1, match) for match in pattern.finditer(text))


def plain(text: str) -> str:
    """An example, without the bars that keep this file from being the first to be caught."""
    return text.replace("|", "")


LOG, TAIL = plain("do|cs/log.md"), plain("do|cs/tail.md")
A_BOOK = {LOG: frozenset({"recovery", "cl1"}), "README.md": frozenset({"how-fast"})}


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("Source: do|cs/log.md#recover.", "1: `do|cs/log.md#recover` does not open: say do|cs/log.md#recovery"),
        ("first\nsecond (do|cs/logs.md)", "2: `do|cs/logs.md` does not open: say do|cs/log.md"),
        ('seen="do|cs/logs.md#cl1: torn"', "1: `do|cs/logs.md#cl1` does not open: say do|cs/log.md"),
        ("do|cs/log.md#cl2", '`<a id="cl2"></a>`'),
        ("do|cs/log.md#cl1, #recover; #7240", "`do|cs/log.md#recover` does not open"),
    ],
)
def test_a_dead_path_is_caught(text: str, instead: str) -> None:
    assert plain(instead) in "\n".join(dead_paths(plain(text), A_BOOK))


@pytest.mark.parametrize(
    "text",
    [
        "Source: do|cs/log.md#recovery, #cl1; do|cs/log.md, #7240.",
        "https://example.org/do|cs/logs.md",
        "the docs/ folder",
    ],
)
def test_a_path_that_opens_is_left_alone(text: str) -> None:
    assert dead_paths(plain(text), A_BOOK) == []


# --- Links between pages ------------------------------------------------------------------------------------


def dead_links(text: str, at: str, pages: Pages, there: frozenset[str]) -> list[str]:
    """Relative links of the Markdown page `at` that do not open; files and folders that are `there` by their path."""
    complaints = []
    for line, match in found(LINK, without_code(text)):
        target = match[1] or match[2]
        if ELSEWHERE.match(target):
            continue
        path, _, anchor = target.partition("#")
        to = normpath(join(dirname(at), path)) if path else at
        if to not in there:
            complaints.append(f"{line}: `{target}` does not open: say the way to {namesake(to, there)}")
        elif to in pages and (instead := instead_of(to, anchor, pages)):
            complaints.append(f"{line}: `{target}` does not open: {instead}")
    return complaints


def namesake(path: str, there: frozenset[str]) -> str:
    """Return a file of the same name or a similar one, in this folder or another."""
    by_name = {basename(one): one for one in sorted(there)}
    near = get_close_matches(basename(path), by_name, n=2, cutoff=0.8)
    return " or ".join(by_name[name] for name in near) or "a file that is there"


THERE = frozenset({"docs", *A_BOOK, TAIL, "spec/log.py"})


@pytest.mark.parametrize(
    ("link", "instead"),
    [
        ("[the end](log.md#ended)", "1: `log.md#ended` does not open: say do|cs/log.md#recovery"),
        ("see\n\n[`log`](logs.md#cl1)", "3: `logs.md#cl1` does not open: say the way to do|cs/log.md"),
        ("[fast](../README.md#how-slow)", "say README.md#how-fast"),
        ("[here](#there)", '`<a id="there"></a>`'),
        ("[code](spec/log.py)", "say the way to spec/log.py"),
        ("[log]: ../spec/logs.py", "`../spec/logs.py` does not open"),
        ("![picture](log.png)", "`log.png` does not open"),
    ],
)
def test_a_dead_link_is_caught(link: str, instead: str) -> None:
    pages = {**A_BOOK, TAIL: anchors(link)}
    assert plain(instead) in "\n".join(dead_links(link, TAIL, pages, THERE))


@pytest.mark.parametrize(
    "link",
    [
        "[the end](log.md#recovery) and [again](../docs/log.md), [fast](../README.md#how-fast 'or not')",
        "[code](../spec/log.py) in [its folder](../docs)",
        "# Here\n\n[here](#here) and [elsewhere](https://example.org/log.md#ended)",
        "`[a](b.md)` is a link",
        "```md\n[a](b.md)\n```",
    ],
)
def test_a_link_that_opens_is_left_alone(link: str) -> None:
    pages = {**A_BOOK, TAIL: anchors(link)}
    assert dead_links(link, TAIL, pages, THERE) == []


# --- What no reader has -------------------------------------------------------------------------------------

IN_DOCS = "say where it stands in docs/, path and anchor; docs/README.md lists pages and codes"
THE_DESIGN = "say which part of docs/design.md, with its anchor"
A_PROPOSAL = "say which promise of docs/proposals.md, with its anchor"
A_DEFECT = "say docs/defects.md and the code as its anchor"
CLOSED: dict[str, str] = {
    r"\b[Rr]eference,? (?:sections? )?(?:[A-J](?:\.\d+)?|\d+(?:\.\d+)?|(?:CL|CQ|CX|TX|N|P|C|V)-?\d+)(?![\w-])": IN_DOCS,
    r"\breference/[\w-]+\.md|\b(?:rocketmq|pulsar)-semantics\b": IN_DOCS,
    r"\bsections? [A-J](?:\.\d+)?(?![\w.-])": IN_DOCS,
    r"(?<![\w.-])[A-J]\.\d{1,2}(?![\w.-]*\w)": IN_DOCS,
    r"\b[Dd]esign,? sections? \d": THE_DESIGN,
    r"\b[Pp]roposals? \d": A_PROPOSAL,
    r"\b[Bb]ug zoo\b": A_DEFECT,
}
"""How notes that are not part of the project were cited, and what to write instead."""

BREAK = r"[\s#]+"  # between two words, also at a comment's line break
ITS_WORD = re.compile(r"eference|-semantics\b|\bsection|(?<![\w.-])[A-J]\.\d|ropos|ug[\s#]+zoo")
"""Every such citation has one of these in it: a text without them is not searched further."""
A_LINK = re.compile(r"\[[^\]]*\]\([^)]*\)")


def closed_books(text: str) -> list[str]:
    """Citations of what a reader of this project does not have. The words of a link are not looked at: it opens."""
    if not ITS_WORD.search(text):
        return []
    complaints, left = [], blanked(A_LINK, text)
    for cited, instead in CLOSED.items():
        pattern = re.compile(cited.replace(" ", BREAK))
        for line, match in found(pattern, left):
            what = re.sub(BREAK, " ", match[0])
            complaints.append((line, f"`{what}` cannot be opened by a reader: {instead}"))
        left = blanked(pattern, left)
    return [f"{line}: {complaint}" for line, complaint in sorted(complaints)]


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("Source: refer|ence D|.3, N14.", "1: `refer|ence D|.3` cannot be opened by a reader: say where it stands"),
        ("first\nsee (refer|ence CL3)", "2: `refer|ence CL3`"),
        ("refer|ence N-1, P-10: it asks first", "`refer|ence N-1`"),
        ("refer|ence 2.7", "`refer|ence 2.7`"),
        ("refer|ence F, messageDelayLevel", "`refer|ence F`"),
        ("codes are those of the refer|ence, sec|tion G|.3", "`refer|ence, sec|tion G|.3`"),
        ("as in `refer|ence/rocketmq-sem|antics.md`", "`refer|ence/rocketmq-sem|antics.md`"),
        ("or when it is due (A|.5)", "`A|.5`"),
        ("a torn record: des|ign section 4", "say which part of docs/design.md"),
        ("*adds to the des|ign, sections 1 and 3*", "say which part of docs/design.md"),
        ("Source: propo|sal 1 (new way, 5)", "say which promise of docs/proposals.md"),
        ("its code in the bug| zoo", "say docs/defects.md"),
        ("# see the bug|\n# zoo", "1: `bug| zoo`"),
    ],
)
def test_a_closed_book_is_caught(text: str, instead: str) -> None:
    assert plain(instead) in "\n".join(closed_books(plain(text)))


@pytest.mark.parametrize(
    "text",
    [
        "Source: docs/rocketmq.md#recovery (as the proposal has it); RIP-50.",
        "the [des|ign, section 4](design.md#sources) of it",
        "a reference to an entry, by reference: the design's sections; A, B and C; 5.3.3; Python 3.11",
        "see the reference model, and section 3 of any book",
    ],
)
def test_an_open_book_is_left_alone(text: str) -> None:
    assert closed_books(plain(text)) == []


# --- The project --------------------------------------------------------------------------------------------


@cache
def texts() -> Mapping[str, str]:
    """Every text file of the project, by its path."""
    read = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in project_files()}
    return {name: data.decode(errors="replace") for name, data in read.items() if b"\0" not in data}


@cache
def project_pages() -> Pages:
    return {name: anchors(text) for name, text in texts().items() if name.endswith(".md")}


def check_texts(complaints_of: Callable[[str, str], list[str]], *, pages_only: bool = False) -> None:
    """No file of the project, or no Markdown page, has a complaint."""
    if not texts():
        pytest.skip("no git, or not in a repository")
    looked_at = project_pages() if pages_only else texts()
    complaints = [f"{name}:{complaint}" for name in looked_at for complaint in complaints_of(name, texts()[name])]
    assert not complaints, listed(complaints)


def test_every_path_into_docs_opens() -> None:
    check_texts(lambda _, text: dead_paths(text, project_pages()))


def test_every_relative_link_opens() -> None:
    files = [path.relative_to(ROOT) for path in project_files()]
    there = frozenset(one.as_posix() for path in files for one in (path, *path.parents))
    check_texts(lambda name, text: dead_links(text, name, project_pages(), there), pages_only=True)


def test_every_anchor_is_given_once() -> None:
    check_texts(lambda _, text: given_twice(text), pages_only=True)


def test_no_citation_lacks_its_source() -> None:
    check_texts(lambda _, text: closed_books(text))
