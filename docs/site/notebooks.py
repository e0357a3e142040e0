"""Each tutorial is also a notebook, which its page offers below the title.

The blocks of a page become cells by the rules of ``tests/docs/guide_runner.py``; what a block
prints is the output of its cell, unless it differs from run to run. Links lead to the site.
"""

from __future__ import annotations

import inspect
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import nbformat
from docutils import nodes
from nbformat import v4 as form
from tests.docs import guide_runner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

TUTORIALS: Final = ("start/arrays", "start/network", "guides/backend_in_an_afternoon")
_DOCS: Final = Path(__file__).parents[1]
_LINK: Final = re.compile(r"\]\((?!https?:|#)([^)\s#]+?)(?:\.md|\.rst)?(#[^)\s]*)?\)")
_ERROR: Final = re.compile(r"^\w+(?:\.\w+)+: ", re.MULTILINE)

_CHANGE: Final = """\
# The cells that begin with %%change change a file: "-" marks lines that go, "+" lines that come.
import re
from pathlib import Path

from IPython.core.magic import register_cell_magic


{changed}

@register_cell_magic
def change(line, cell):
    path = Path(line)
    path.write_text(changed(path.read_text("utf-8"), cell), "utf-8")
"""
_INSTALLED: Final = """\
import site, sysconfig
site.addsitedir(sysconfig.get_path("purelib"))  # new packages can be imported at once
"""


def notebook(page: str, address: str) -> Any:
    """Return a page as a notebook.

    Args:
        page: its name, without the suffix.
        address: that of the site, which ends with a slash.

    """
    text = (_DOCS / f"{page}.md").read_text("utf-8")
    here = posixpath.dirname(page)

    def absolute(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, match[1]))
        return f"]({address}{target}.html{match[2] or ''})"

    cells, end = [], 0
    for match in guide_runner.BLOCK.finditer(text):
        made = list(_cells(match))
        if made:
            cells += [form.new_markdown_cell(text[end : match.start()].strip()), *made]
            end = match.end()
    cells.append(form.new_markdown_cell(text[end:].strip()))
    cells = [cell for cell in cells if cell.source]
    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source = _LINK.sub(absolute, cell.source)
    if any(cell.source.startswith("%%change") for cell in cells):
        source = _CHANGE.format(changed=inspect.getsource(guide_runner.changed))
        cells.insert(1, form.new_code_cell(source))
    for at, cell in enumerate(cells):  # not drawn by chance: the same page gives the same file
        cell.id = f"cell-{at}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return form.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def _cells(block: re.Match[str]) -> Iterator[Any]:
    """Yield the cells of a block; none if the block is only read."""
    kind, file, text = block["kind"], block["file"], block["text"]
    if kind == "diff" and file:
        yield form.new_code_cell(f"%%change {file}\n{text.rstrip()}")
    elif file:
        yield form.new_code_cell(f"%%writefile {file}\n{text.rstrip()}")
    elif kind == "python":
        printed = block["printed"] or ""
        cell = _code(text, printed)
        if _ERROR.search(printed):
            cell.metadata["tags"] = ["raises-exception"]
        yield cell
    elif kind == "console":
        for command, printed in guide_runner.COMMAND.findall(text):
            if command.startswith("cd "):
                yield _code(f"%{command}", "")
            elif command.startswith("pip "):
                yield _code(f"%{command}\n{_INSTALLED}", printed)
            else:
                fails = " --no-raise-error" if guide_runner.EXIT.search(printed) else ""
                yield _code(f"%%bash{fails}\n{command}", guide_runner.EXIT.sub("", printed))


def _code(source: str, printed: str) -> Any:
    exact = printed and "..." not in printed
    outputs = [form.new_output("stream", name="stdout", text=printed)] if exact else []
    return form.new_code_cell(source.rstrip(), outputs=outputs)


def _offer(_app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Put the link to its notebook below a tutorial's title."""
    if page not in TUTORIALS:
        return
    file = f"{posixpath.basename(page)}.ipynb"
    link = nodes.reference("", "Download this page as a notebook", refuri=file)
    title = doctree.next_node(nodes.title)
    title.parent.insert(title.parent.index(title) + 1, nodes.paragraph("", "", link))


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        for page in TUTORIALS:
            made = notebook(page, app.config.urls["Documentation"])
            nbformat.write(made, Path(app.outdir) / f"{page}.ipynb")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", _offer)
    app.connect("build-finished", _write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
