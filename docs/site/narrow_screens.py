"""Pages for every width of screen: tables that become lists, and places where long names break.

On a narrow screen, ``site.css`` shows each row of a table of three columns or more as a list. So
each cell carries the name of its column. A long name in a cell or a heading may break after a dot
or an underscore and before a capital letter, which ``<wbr>`` marks: copied text has no trace of
it. Output whose columns stand below one another keeps its lines, and is marked for a scroll bar.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any, Final

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_LIST: Final = 3
"""A table of so many columns becomes a list."""
_KEPT: Final = re.compile(
    r"(<pre\b.*?</pre>|<(?:span|div) class=\"math\b.*?</(?:span|div)>|<[^>]*>)", re.DOTALL
)
_BREAKING: Final = re.compile(r"<(t[dh]|h[1-4]|dt)\b.*?</\1>", re.DOTALL)
_LONG: Final = re.compile(r"[\w.,()\[\]=/:-]{16,}")
_BREAK: Final = re.compile(r"(?<=[._,(\[=/:])(?=\w)|(?<=[a-z0-9])(?=[A-Z])")
_OUTPUT: Final = {"text", "console"}
_BOX: Final = re.compile(r"[\u2500-\u257f]")
_COLUMNS: Final = re.compile(r"^.*\S {3,}\S.*$", re.MULTILINE)


def name_columns(_app: Sphinx, doctree: nodes.document, _page: str) -> None:
    """Give each cell of a table the name of its column."""
    for table in doctree.findall(nodes.table):
        head = table.next_node(nodes.thead)
        body = table.next_node(nodes.tbody)
        names = [entry.astext() for entry in head.findall(nodes.entry)] if head else []
        if len(names) < _LIST or body is None or table.next_node(nodes.literal_block):
            continue
        table["classes"].append("narrow-list")
        above = ""
        for row in body.findall(nodes.row):
            first, *others = row.findall(nodes.entry)
            if text := first.astext():
                above = text
                _label(first, names[0])
            elif not first.next_node(nodes.image):  # it is that of the row above
                _label(first, names[0], above)
            for name, entry in zip(names[1:], others, strict=True):
                if entry.astext():
                    _label(entry, name)


def _label(entry: nodes.entry, *texts: str) -> None:
    """Put texts, which only a narrow screen shows, before what a cell holds."""
    spans = (f'<span class="column" data-name="{html.escape(text)}"></span>' for text in texts)
    entry.insert(0, nodes.raw("", "".join(spans), format="html"))


def keep_columns(_app: Sphinx, doctree: nodes.document, _page: str) -> None:
    """Mark the blocks of output whose columns stand below one another."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext()
        if block.get("language") not in _OUTPUT:
            continue
        if _BOX.search(text) or len(_COLUMNS.findall(text)) >= _LIST:
            block["classes"].append("columns")


def break_names(text: str) -> str:
    """Return HTML in which long names may break; blocks of code and formulas stay."""
    parts = _KEPT.split(text)
    for at in range(0, len(parts), 2):
        parts[at] = _LONG.sub(lambda name: _BREAK.sub("<wbr>", name[0]), parts[at])
    return "".join(parts)


def _break(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: nodes.document
) -> None:
    if "body" in context:
        context["body"] = _BREAKING.sub(lambda part: break_names(part[0]), context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", name_columns)
    app.connect("doctree-resolved", keep_columns)
    app.connect("html-page-context", _break)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
