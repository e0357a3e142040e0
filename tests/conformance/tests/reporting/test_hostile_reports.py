"""A report comes from strangers: no text in it becomes code, markup or a terminal's commands."""

from __future__ import annotations

import ast
import copy
import io
import json
from collections import Counter
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt
from rich.console import Console
from tests.conformance.tests.reports import EVIDENCE, sample

from tensorplug_conformance.cli import main
from tensorplug_conformance.reporting import terminal
from tensorplug_conformance.reporting.differences import differences
from tensorplug_conformance.reporting.rendering import render
from tensorplug_conformance.reporting.rendering.badge import badge
from tensorplug_conformance.reporting.rendering.junit import junit
from tensorplug_conformance.reporting.rendering.page import page
from tensorplug_conformance.reporting.rendering.summary import summary
from tensorplug_conformance.reporting.rendering.support import write_support
from tensorplug_conformance.reporting.report import ReportError, read
from tensorplug_conformance.reporting.reproduction import script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Report = dict[str, Any]

PAYLOADS = {
    "an expression": "__import__('os').system('touch owned')",
    "the end of a call": "1)); open('owned', 'w') #",
    "the end of a string": "'\"\"\"\\'); open('owned', 'w') #",
    "lines": "x\nopen('owned', 'w')\ry()\x0bz()\x0cw()\x85v()\u2028u()",
    "a line at the end": "cpu\n",
    "elements": "<script>owned()</script><img src=x onerror=owned()>",
    "the end of elements": "]]></pre></title></svg><svg onload=owned()>\"' onclick=owned()",
    "Markdown": "a | b\n\n# c\n![d](https://e) [f](javascript:g) `h` *i* _j_ ~~k~~ <b> &lt;",
    "a template": "{{ 7 * 7 }}{% set x = 1 %}",
    "a terminal's commands": "\x1b]0;owned\x07\x1b[2J\x9b31m[red]owned[/]",
    "a path": "../../owned",
    "a surrogate": "\ud800",
    "NUL": "a\x00b",
}

NAMES = {
    "np",
    "tp",
    "inf",
    "nan",
    "inputs",
    "print",
    "reproduce",
    "WHICH",
    "SystemExit",
    "Exception",
    "error",
    "repr",
    "complex",
}
"""Every name that a script may mention."""

ATTRIBUTES = {
    "array",
    "set_printoptions",
    "reshape",
    "dtypes",
    "StringDType",
    "use_backend",
    "run_kernel",
}


def strings(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every text in a report."""
    if isinstance(content, str):
        yield path
    elif isinstance(content, dict | list):
        for key, value in content.items() if isinstance(content, dict) else enumerate(content):
            yield from strings(value, (*path, key))


def complete() -> Report:
    """Return a report with text wherever the schema allows it."""
    content = sample()
    failure = content["rows"][2]["failures"][0]
    words = {"dtype": "StringDType()", "shape": [1], "elements": ["a"]}
    complexes = {"dtype": "complex64", "shape": [1], "elements": ["(1-infj)"]}
    failure["inputs"] = [failure["inputs"][0], None, [words, complexes]]
    failure["attributes"] = {"alpha": "0.25", "shape": "(2, -3)", "fill": "nan"}
    content["rows"][3]["reason"] = "why"
    content["checks"][0]["message"] = "said"
    content["checks"].append({**content["checks"][0], "check": "closes", "status": "fail"})
    content["totals"]["checks"]["fail"] = 1
    content["evidence"] = [copy.deepcopy(EVIDENCE)]
    return content


def changed(path: tuple[Any, ...], value: str) -> Report:
    content = copy.deepcopy(complete())
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return content


def written(content: Report, folder: Path) -> Path:
    path = folder / "report.json"
    path.write_text(json.dumps(content), "utf-8")
    return path


def failing(content: Report) -> Iterator[tuple[Any, Any]]:
    for row in content["rows"]:
        for failure in row["failures"]:
            yield row, failure


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[tuple[Any, ...]] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found[tag, *(name for name, _ in attrs)] += 1


def html_elements(content: Report) -> Any:
    parser = _Elements()
    parser.feed(page(content))
    return parser.found


def svg_elements(content: Report) -> Any:
    return [node.tag for node in ET.fromstring(badge(content)).iter()]


def xml_elements(content: Report) -> Any:
    return [
        (node.tag, *node.keys())
        for node in ET.fromstring(junit(content).partition("\n")[2]).iter()
    ]


def markdown_elements(content: Report) -> Any:
    markdown = MarkdownIt("commonmark", {"html": True, "linkify": False}).enable("table")
    tokens = markdown.parse(summary(content))
    inner = [child.type for token in tokens for child in token.children or ()]
    return [token.type for token in tokens], [
        kind for kind in inner if kind not in ("text", "text_special")
    ]


FORMS: dict[str, Callable[[Report], Any]] = {
    "page": html_elements,
    "badge": svg_elements,
    "junit": xml_elements,
    "summary": markdown_elements,
}
CLEAN = {name: form(complete()) for name, form in FORMS.items()}
# Of the rows, the one that fails and one with a reason, and likewise of the tests that others
# wrote: the rest are like them.
PATHS = [
    path
    for path in strings(complete())
    if (path[0] != "rows" or path[1] in (2, 3)) and (path[2:3] != ("tests",) or path[3] in (2, 4))
]


def check_scripts(content: Report) -> None:
    for row, failure in failing(content):
        tree = ast.parse(script(content, row, failure))
        nodes = list(ast.walk(tree))
        assert {node.id for node in nodes if isinstance(node, ast.Name)} <= NAMES
        assert {node.attr for node in nodes if isinstance(node, ast.Attribute)} <= ATTRIBUTES
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        assert len(imports) in (1, 4)


@pytest.mark.parametrize(
    ("path", "payload"),
    [
        # On each change every text is hostile in some way; in the others it is slow.
        pytest.param(path, payload, marks=pytest.mark.slow if (at + way) % 4 else ())
        for at, path in enumerate(PATHS)
        for way, payload in enumerate(PAYLOADS)
    ],
    ids=lambda part: part if isinstance(part, str) else "-".join(map(str, part)),
)
def test_no_text_of_a_report_is_code(path: tuple[Any, ...], payload: str, tmp_path: Path) -> None:
    """Each text in turn is hostile: the report is refused, or all made of it is as before."""
    file = written(changed(path, PAYLOADS[payload]), tmp_path)
    refused = ""
    try:
        elements = read(file)
    except ReportError as error:
        refused = str(error)
    if refused:
        assert "report.json" in refused
        assert refused.isprintable()
        return
    check_scripts(elements)
    render(elements, tmp_path)
    for name, form in FORMS.items():
        assert form(elements) == CLEAN[name], name
    out = io.StringIO()
    console = Console(file=out, width=300, color_system=None)
    terminal.show(elements, console)
    terminal.show_differences(differences(complete(), elements), console)
    assert out.getvalue().replace("\n", "").isprintable()
    write_support([elements], tmp_path / "support")
    assert {file.parent for file in tmp_path.rglob("acme.*")} == {tmp_path / "support" / "badges"}


REFUSED = [
    ("backend", "name"),
    ("suite", "version"),
    ("tensorplug",),
    ("rows", 2, "kernel"),
    ("rows", 2, "dtype"),
    ("rows", 2, "mode"),
    ("rows", 2, "failures", 0, "inputs", 0, "dtype"),
    ("evidence", 0, "name"),
    ("evidence", 0, "tests", 0, "group"),
]


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("path", REFUSED, ids=lambda path: "-".join(map(str, path)))
def test_names_are_names(path: tuple[Any, ...], payload: str, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=rf"{path[-1]}|surrogate"):
        read(written(changed(path, PAYLOADS[payload]), tmp_path))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("0.25", "'alpha': 0.25"),
        ("(2, -3)", "'alpha': (2, -3)"),
        ("[True, None, 'a']", "'alpha': [True, None, 'a']"),
        ("-inf", "'alpha': -inf"),
        ("(1+2j)", "'alpha': 1 + 2j"),
    ],
)
def test_attributes_of_every_kind_are_written(text: str, line: str) -> None:
    content = complete()
    row, failure = next(failing(content))
    assert line in script(content, row, {**failure, "attributes": {"alpha": text}})


@pytest.mark.parametrize("text", ["f()", "[x for x in y]", "lambda: 0", "a.b", "2 ** 9", "f'{x}'"])
def test_a_call_with_an_attribute_that_is_no_literal_is_left_out(text: str) -> None:
    content = complete()
    row, failure = next(failing(content))
    source = script(content, row, {**failure, "attributes": {"alpha": text}})
    assert "run_kernel" not in source
    assert "reproduce" in source


def test_elements_are_read_back_exactly() -> None:
    content = complete()
    row, failure = next(failing(content))
    source = script(content, row, failure)
    assert "np.array([-0.0, inf, nan], 'float32').reshape((3,))" in source
    assert "np.array([complex(1.0, -inf)], 'complex64').reshape((1,))" in source
    assert "np.array(['a'], np.dtypes.StringDType()).reshape((1,))" in source


DEEP = {
    "lists": "[" * 100_000 + "]" * 100_000,
    "objects": '{"schema":' * 100_000 + "3" + "}" * 100_000,
    "a message": json.dumps(changed(("rows", 2, "reason"), "DEEP")).replace(
        '"DEEP"', "[" * 900 + "]" * 900
    ),
}


@pytest.mark.parametrize("deep", DEEP)
@pytest.mark.parametrize("command", ["verify", "report", "diff", "accept", "support"])
def test_a_deep_report_is_an_error_of_one_line(
    command: str, deep: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.json"
    path.write_text(DEEP[deep], "utf-8")
    more = {
        "diff": [str(path)],
        "accept": ["--reason", "x"],
        "support": ["--output", str(tmp_path)],
    }
    assert main([command, str(path), *more.get(command, [])]) in (1, 2)
    said = capsys.readouterr()
    assert said.err == ""
    assert "report.json" in said.out or "schema: " in said.out
    assert len(said.out) < 1000
