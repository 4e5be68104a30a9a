"""Sphinx' settings for the site and the man pages. `python -m manual` runs it."""

from __future__ import annotations

import re
from typing import Any

from gapless import __version__
from manual.commands import FOLDER, command_pages

project = "gapless"
author = "the developers of gapless"
release = version = __version__

extensions = ["myst_parser"]
smartquotes = False  # of `--option` it would make a dash
root_doc = "index"
nitpicky = True
myst_heading_anchors = 6  # slugs, as GitHub makes them
myst_enable_extensions = ["deflist"]
myst_links_external_new_tab = False
suppress_warnings = [
    "misc.highlighting_failure",  # lines of a page that are left out, …, are no Python
    "myst.header",  # a page may begin a part with a smaller heading
]

html_theme = "furo"
html_title = "gapless"
html_show_copyright = False
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}

man_pages = [(f"{FOLDER}/{page.name}", page.name, page.says, author, 1) for page in command_pages()]
man_show_urls = False

AN_ID = re.compile(r'<a id="([^"]+)">')


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("doctree-read", anchors_of_html)


def anchors_of_html(app: Any, document: Any) -> None:
    """Anchors that a page gives in HTML can be linked to, as everywhere else; MyST knows those of headings alone."""
    slugs = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for node in document.findall(lambda node: node.tagname == "raw"):
        for name in AN_ID.findall(node.astext()):
            slugs.setdefault(name, (None, name, ""))
