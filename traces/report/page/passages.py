"""Passages of the documentation: the paragraph, list item, table row or section that has an anchor, as HTML.

The pages that rules and findings cite are a part of the installation. They are read as Markdown; what is shown of a
passage is bounded, and its links lead to public pages, or to other passages of the same report.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from gapless.traces.report.public_links import with_links

LETTERS = 1500
"""The letters of a passage that are shown at most."""

BLOCKS = ("blockquote", "bullet_list", "fence", "ordered_list", "paragraph", "table")


@dataclass(frozen=True)
class Passage:
    """A place of the documentation with its text."""

    page: str
    anchor: str
    index: int  # of the block among those of its page
    title: str  # of the page
    section: str
    tokens: tuple[Token, ...]

    @property
    def name(self) -> str:
        """Its id on the page of a report."""
        return _name(self.page, self.anchor)

    @property
    def citation(self) -> str:
        """The citation of it, as text and JSON have it."""
        return f"docs/{self.page}.md" + (f"#{self.anchor}" if self.anchor else "")

    def html(self, names: Container[str] = ()) -> Markup:
        """The text as HTML. `names`: the passages on the same page of a report, to which links may lead."""
        simple = [one for token in _named(self.tokens) for one in _simple(token, self, names)]
        shown = simple if _letters(simple) <= LETTERS else _cut(simple, LETTERS)
        rendered = _markdown().renderer.render([*map(_drawn, shown)], _markdown().options, {})
        return Markup(rendered)  # noqa: S704 - pages of ours, whose raw HTML is left out; other text is escaped


@lru_cache(maxsize=1024)
def passage(page: str, anchor: str) -> Passage | None:
    """The passage of an anchor, or how a page begins if it is empty; None if it is not installed."""
    tokens = _tokens(page)
    texts = [n for n, token in enumerate(tokens) if token.type == "inline"]
    at = next((n for n in texts if _has(tokens[n], anchor)), None) if anchor else next(iter(texts[1:]), None)
    if at is None:
        return None
    return Passage(page, anchor, at, _text(tokens[texts[0]]), _section(tokens[: at + 1]), _around(tokens, at, anchor))


def _name(page: str, anchor: str) -> str:
    return f"source-{page}.{anchor}"


# -- pages -----------------------------------------------------------------------------------------------------------


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


@cache
def _tokens(page: str) -> Sequence[Token]:
    """A page in tokens; none if it is not installed."""
    try:
        text = files("gapless").joinpath("docs", f"{page}.md").read_text(encoding="utf-8")
    except OSError:
        return ()
    return _markdown().parse(text)


def _has(token: Token, anchor: str) -> bool:
    return any(_is_anchor(child, anchor) for child in token.children or ())


def _is_anchor(token: Token, anchor: str) -> bool:
    return token.type == "html_inline" and token.content == f'<a id="{anchor}">'


def _text(token: Token) -> str:
    """The text of a line without its marks."""
    return "".join(child.content or " " for child in token.children or () if child.type in TEXTS)


TEXTS = ("text", "code_inline", "softbreak")


def _section(before: Sequence[Token]) -> str:
    """The heading under which a passage is; empty under the title of a page."""
    heads = [n for n, token in enumerate(before) if token.type == "heading_open"]
    return _text(before[heads[-1] + 1]) if heads[1:] else ""


# -- blocks ----------------------------------------------------------------------------------------------------------


def _around(tokens: Sequence[Token], at: int, anchor: str) -> tuple[Token, ...]:
    """The tokens of the block that a line with an anchor belongs to."""
    parents = [*_parents(tokens, at)][::-1]
    block, outer = tokens[parents[-1]], [tokens[n].type for n in parents]
    if block.type == "heading_open":
        return tuple(_below(tokens, parents[-1]))
    if block.type in {"td_open", "th_open"}:
        return tuple(_row(tokens, parents[outer.index("table_open")], parents[-2]))
    if outer[-2:-1] == ["list_item_open"] and parents[-2] == parents[-1] - 1 and _begins(tokens[at], anchor):
        return tuple(_item(tokens, parents[-3], parents[-2]))
    return tuple(_paragraph(tokens, parents[-1], anchor))


def _parents(tokens: Sequence[Token], at: int) -> Iterator[int]:
    """The openings of the blocks around a token, from the inside."""
    level = tokens[at].level
    for n in range(at - 1, -1, -1):
        if tokens[n].nesting == 1 and tokens[n].level < level:
            yield n
            level = tokens[n].level


def _end(tokens: Sequence[Token], start: int) -> int:
    """The index behind a block."""
    if tokens[start].nesting != 1:
        return start + 1
    level = tokens[start].level
    return next(n for n in range(start + 1, len(tokens)) if tokens[n].nesting == -1 and tokens[n].level == level) + 1


def _below(tokens: Sequence[Token], heading: int) -> Iterator[Token]:
    """The section below a heading, with its subsections."""
    for token in tokens[_end(tokens, heading) :]:
        if token.type == "heading_open" and token.tag <= tokens[heading].tag:
            return
        yield token


def _row(tokens: Sequence[Token], table: int, row: int) -> Iterator[Token]:
    """A row of a table, under the table's head."""
    body = next((n for n in range(table, row) if tokens[n].type == "tbody_open"), row)
    yield from tokens[table:body]
    if body < row:
        yield from (tokens[body], *tokens[row : _end(tokens, row)], Token("tbody_close", "tbody", -1))
    else:
        yield from tokens[row : _end(tokens, row)]
        yield Token("thead_close", "thead", -1)
    yield Token("table_close", "table", -1)


def _item(tokens: Sequence[Token], listed: int, item: int) -> Iterator[Token]:
    """One item of a list, with its number."""
    opened = tokens[listed]
    yield replace(opened, attrs={"start": tokens[item].info} if opened.tag == "ol" else {})
    yield from tokens[item : _end(tokens, item)]
    yield replace(opened, type=opened.type.replace("open", "close"), nesting=-1, attrs={})


def _paragraph(tokens: Sequence[Token], start: int, anchor: str) -> Iterator[Token]:
    """A paragraph from its anchor on; with the list or table that it introduces."""
    opened, line, closed = tokens[start : start + 3]
    children = line.children or []
    first = next((n for n, child in enumerate(children) if _is_anchor(child, anchor)), 0)
    yield from (replace(opened, hidden=False), replace(line, children=children[first:]), replace(closed, hidden=False))
    follows = start + 3
    if _text(line).endswith(":") and follows < len(tokens) and tokens[follows].type.removesuffix("_open") in BLOCKS:
        yield from tokens[follows : _end(tokens, follows)]


def _begins(line: Token, anchor: str) -> bool:
    return _is_anchor((line.children or [line])[0], anchor)


# -- simple HTML -----------------------------------------------------------------------------------------------------


def _named(tokens: Sequence[Token]) -> Iterator[Token]:
    """The blocks, in which a head of a column without a name is a plain cell: screen readers read heads out."""
    for n, token in enumerate(tokens):
        name = {"th_open": n + 1, "th_close": n - 1}.get(token.type)
        yield replace(token, tag="td") if name is not None and not tokens[name].content else token


def _simple(token: Token, of: Passage, names: Container[str]) -> Iterator[Token]:
    """A block without raw HTML and headings, for the end of a page that has headings of its own."""
    if token.type == "inline":
        yield replace(token, children=list(_simple_line(token.children or (), of, names)))
    elif token.type.startswith("heading"):
        yield replace(token, tag="p", attrs={"class": "subtitle"} if token.nesting == 1 else {})
    elif token.type == "th_open":
        yield replace(token, attrs={"scope": "col"} if token.tag == "th" else {})
    elif token.type != "html_block":
        yield replace(token, attrs={"start": token.attrs["start"]} if "start" in token.attrs else {}, info="")
    if token.type == "table_open":
        caption = Markup('<caption class="unseen">{}</caption>\n').format(
            ": ".join(filter(None, (of.title, of.section)))
        )
        yield Token("html_block", "", 0, content=str(caption))


def _simple_line(children: Iterable[Token], of: Passage, names: Container[str]) -> Iterator[Token]:
    """The parts of a line, with links that lead somewhere."""
    inside = False
    for child in children:
        if child.type == "link_open":
            if inside := bool(address := _address(str(child.attrs["href"]), of, names)):
                yield replace(child, attrs={"href": address})
        elif child.type == "link_close":
            if inside:
                yield child
            inside = False
        elif child.type == "image":
            yield Token("text", "", 0, content=child.content)
        elif child.type != "html_inline":
            yield child if inside or child.type != "text" else replace(child, meta={"public": True})


def _address(target: str, of: Passage, names: Container[str]) -> str:
    """The address of a link: a public page, or a passage on the same page of the report; empty for others."""
    if target.startswith(("https://", "http://")):
        return target
    page, _, anchor = target.partition("#")
    name = _name(page.removesuffix(".md") if page else of.page, anchor)
    return f"#{name}" if name in names else ""


def _cut(tokens: Iterable[Token], left: int) -> Iterator[Token]:
    """The tokens up to so many letters; what is open then is closed."""
    dropped = 0
    for token in tokens:
        if left <= 0 and (dropped or token.nesting != -1):
            dropped += token.nesting
            continue
        if token.type == "inline":
            children = list(_cut(token.children or (), left))
            yield replace(token, children=children)
            left -= _letters(children)
        elif token.type in CONTENT and len(token.content) >= left:
            yield replace(token, content=f"{token.content[:left]}…")
            left = 0
        else:
            yield token
            left -= _letters([token])


CONTENT = ("text", "code_inline", "fence", "code_block")


def _letters(tokens: Iterable[Token]) -> int:
    """The letters of tokens that a reader sees."""
    every = [part for token in tokens for part in ((token.children or ()) if token.type == "inline" else (token,))]
    return sum(len(token.content) for token in every if token.type in CONTENT)


def _drawn(token: Token) -> Token:
    """A block as it is rendered: public references in plain text are links."""
    return replace(token, children=[*map(_drawn_part, token.children)]) if token.children else token


def _drawn_part(child: Token) -> Token:
    if not child.meta.get("public"):
        return child
    return Token("html_inline", "", 0, content=str(with_links(child.content)))
