"""The entries of the reference: where their source stands, and what their parameters mean."""

from __future__ import annotations

import inspect
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from docutils import nodes
from narrow_screens import break_names, name_columns
from parameter_tables import meanings
from source_links import place
from sphinx.application import Sphinx
from tests.core.support.public_functions import PUBLIC

import tensorplug as tp
import tensorplug.plugin

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "site"


def source(module: str, name: str) -> str:
    """Return the lines to which an entry leads."""
    match = re.fullmatch(r"(\S+)#L(\d+)-L(\d+)", place(module, name))
    assert match, name
    path, first, last = match.groups()
    lines = (ROOT / path).read_text("utf-8").splitlines()
    return "\n".join(lines[int(first) - 1 : int(last)])


def test_each_public_name_leads_to_its_definition() -> None:
    wrong = []
    for public, value in PUBLIC.items():
        home, _, name = public.rpartition(".")
        text = source(home.replace("tp", "tensorplug", 1), name)
        defined = re.escape(getattr(inspect.unwrap(value), "__name__", name))
        if not re.search(rf"^ *(?:def|class) {defined}\b|^{name}\b.* = ", text, re.MULTILINE):
            wrong.append(public)
    assert len(PUBLIC) > 500
    assert wrong == []


@pytest.mark.parametrize(
    ("module", "name", "starts"),
    [
        ("tensorplug", "Tensor.sin", "def sin("),  # the function itself
        ("tensorplug", "Tensor.shape", "@property"),
        ("tensorplug.nn", "Moments.variance", "    variance: "),
        ("tensorplug.typing", "PerAxis", "PerAxis: TypeAlias = "),
        ("tensorplug.plugin", "Buffer", "Buffer"),  # passed on, and a name of another type
    ],
)
def test_members_and_constants_lead_to_their_lines(module: str, name: str, starts: str) -> None:
    lines = [line for line in source(module, name).splitlines() if not line.startswith("@chained")]
    assert "\n".join(lines).lstrip().startswith(starts.lstrip())


def test_a_name_that_python_defines_has_no_source_here() -> None:
    assert place("tensorplug.errors", "TensorplugError.with_traceback") == ""


@pytest.mark.parametrize(
    ("function", "parameter", "expected"),
    [
        (tp.asarray, "device", r"of the result, such as ``\"cpu\"`` .* active device\."),
        (tp.nn.avg_pool, "strides", r"how far it moves\."),  # in a sentence
        (tp.losses.huber_loss, "reduction", r".*\"none\".*"),  # compute_weighted_loss says it
        (tp.fft.ifft, "n", r"the length to which the axis is cut.*"),  # fft says it
        (tp.fft.ifft, "norm", ""),  # the text says what differs from fft
        (tp.abs, "x", ""),
    ],
)
def test_meanings(function: object, parameter: str, expected: str) -> None:
    homes = {name.rpartition(".")[2]: value for name, value in PUBLIC.items()}
    assert re.fullmatch(expected, meanings(function, homes).get(parameter, ""), re.DOTALL)


PAGE = """
Page
====

.. autofunction:: tensorplug.asarray

.. autofunction:: tensorplug.abs

.. autofunction:: tensorplug.train.adam

.. autoclass:: tensorplug.Variable
   :members: assign
"""


def built(folder: Path, settings: dict[str, Any]) -> Sphinx:
    """Build the page of a folder."""
    app = Sphinx(
        folder,
        None,
        folder / "out",
        folder / "doctrees",
        "pseudoxml",
        confoverrides=settings,
        status=None,
    )
    app.build()
    return app


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[str]]]:
    """The tables of a small page, by entry, and each entry's signature under ``name()``."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "index.rst").write_text(PAGE, "utf-8")
    chosen = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "parameter_tables"]
    settings = {"napoleon_use_rtype": False, "autodoc_typehints_format": "short"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Sphinx warns of what its own extensions do
        app = built(folder, settings | {"extensions": chosen, "root_doc": "index"})
    found = {}
    for entry in app.env.get_doctree("index").findall(nodes.Element):
        if entry.tagname != "desc":
            continue
        signature = entry.next_node(
            condition=lambda node: node.__class__.__name__ == "desc_signature"
        )
        name = signature["fullname"]
        found[f"{name}()"] = [[signature.astext()]]
        for table in entry.findall(nodes.table):
            rows = [[cell.astext() for cell in row] for row in table.findall(nodes.row)]
            found.setdefault(name, rows)
    return found


@pytest.mark.parametrize(
    ("name", "head", "row"),
    [
        ("abs", ["parameter", "type"], ["x", "ArrayLike"]),
        ("train.adam", ["parameter", "type", "default"], ["beta2", "float", "0.999"]),
        (
            "asarray",
            ["parameter", "type", "default", "meaning"],
            ["copy", "bool | None", "None", "True gives a tensor a new handle"],
        ),
        ("Variable.assign", ["parameter", "type", "meaning"], ["value"]),
    ],
)
def test_the_table_of_an_entry(
    tables: dict[str, list[list[str]]], name: str, head: list[str], row: list[str]
) -> None:
    rows = tables[name.removeprefix("train.")]
    assert rows[0] == head
    assert any(
        all(cell.startswith(expected) for cell, expected in zip(found, row, strict=False))
        for found in rows[1:]
    )
    value = getattr(tp.train if name.startswith("train.") else tp, name.rpartition(".")[2], None)
    if value is not None:
        assert [found[0] for found in rows[1:]] == list(inspect.signature(value).parameters)
        assert "ArrayLike" not in tables[f"{name.removeprefix('train.')}()"][0][0]


def test_long_names_break_in_sentences_not_in_code() -> None:
    text = (
        "<td>DepthwiseConv2dNative<code>a.b</code> max_pool_with_argmax <pre>a_b_c_d_e_f_g_h</pre>"
    )
    broken = break_names(text)
    assert broken.replace("<wbr>", "") == text
    assert "Depthwise<wbr>Conv2d<wbr>Native" in broken
    assert "max_<wbr>pool_<wbr>with_<wbr>argmax" in broken
    assert "a_b_c_d_e_f_g_h" in broken
    assert "a.b<" in broken  # short enough


def test_cells_carry_the_names_of_their_columns() -> None:
    def row(*texts: str) -> nodes.row:
        return nodes.row("", *(nodes.entry("", nodes.paragraph(text, text)) for text in texts))

    head = nodes.thead("", row("kernel", "input", "a < b"))
    body = nodes.tbody("", row("Add", "a", "1"), row("", "b", ""))
    document = nodes.section("", nodes.table("", nodes.tgroup("", head, body, cols=3)))
    name_columns(None, document, "page")
    labels = [
        re.findall('data-name="(.*?)"', node.astext()) for node in document.findall(nodes.raw)
    ]
    assert labels == [["kernel"], ["input"], ["a &lt; b"], ["kernel", "Add"], ["input"]]
