"""Documents: their Python runs and gives what its comments say, and what they name exists."""

from __future__ import annotations

import ast
import importlib
import io
import re
import tokenize
from contextlib import suppress
from pathlib import Path

import pytest

import tensorplug as tp
from tensorplug.engine import settings
from tensorplug.errors import SettingsError
from tensorplug.testing import isolated_engine

DOCS = Path(__file__).parents[3] / "docs"
COMING = DOCS / "coming_from/tfjs.md"
EXECUTED = [
    *("array_api.md", "coming_from/tfjs.md", "forward_mode.md", "gradients.md"),
    *("dtypes.md", "index.md", "memory.md", "mixed_precision.md", "networks.md"),
    *("quantization.md", "random.md", "../README.md"),
]


def blocks(name):
    """Return the fenced Python of a document, with the lines at which the blocks begin."""
    text = (DOCS / name).read_text(encoding="utf-8")
    result = re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [(text[: item.start()].count("\n") + 2, item[1]) for item in result]


def comments(code):
    """Return the comments by the lines on which they stand."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}


def run(code, names, where):
    """Run a block; the comment behind an expression is its value."""
    said = comments(code)
    for statement in ast.parse(code).body:
        if isinstance(statement, ast.Expr) and statement.end_lineno in said:
            expected = ast.literal_eval(said[statement.end_lineno].removeprefix("# "))
            value = eval(compile(ast.Expression(statement.value), where, "eval"), names)
            assert value == expected, f"{where}: {ast.unparse(statement)}"
        else:
            exec(compile(ast.Module([statement], []), where, "exec"), names)


@pytest.mark.parametrize("name", EXECUTED)
def test_the_python_runs_and_gives_what_is_said(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # where files are saved
    names = {"__name__": "document"}
    result = blocks(name)
    assert result
    with isolated_engine():
        for line, code in result:
            run(code, names, f"{name}:{line}")


def test_a_wrong_comment_is_found():
    with pytest.raises(AssertionError, match="here: 1 \\+ 1"):
        run("x = 1  # anything\n1 + 1  # 3\n", {}, "here")


# What TensorFlow.js does, row by row ------------------------------------------------------


def spans(document=COMING):
    """Return the code of the text and the tables, without that of the blocks."""
    text = document.read_text(encoding="utf-8")
    without = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`]+)`", without)


def named(pattern, *documents):
    result = [span for document in documents or [COMING] for span in spans(document)]
    return sorted({item for span in result for item in re.findall(pattern, span)})


DOCUMENTS = [DOCS / name for name in EXECUTED]


@pytest.mark.parametrize("name", named(r"\btp\.([a-zA-Z_][\w.]*)", *DOCUMENTS))
def test_the_functions_it_names_exist(name):
    value = tp
    for part in name.split("."):
        value = getattr(value, part)


@pytest.mark.parametrize("name", named(r"\btensorplug\.([a-z_][\w.]*)"))
def test_the_modules_it_names_exist(name):
    module, *rest = name.split(".")
    value = importlib.import_module(f"tensorplug.{module}")
    for part in rest:
        value = getattr(value, part)


@pytest.mark.parametrize("name", named(r"\b[A-Z]\w+(?:Error|Warning)\b"))
def test_the_errors_it_names_exist(name):
    assert issubclass(getattr(tp.errors, name), Exception)


@pytest.mark.parametrize("name", named(r"\b[xv]\.([a-z_]+)\b"))
def test_the_methods_it_names_exist(name):
    assert hasattr(tp.Tensor, name) or name in ("data", "array")  # of TensorFlow.js


@pytest.mark.parametrize("name", named(r"\bTENSORPLUG_[A-Z_]+\b"))
def test_the_variables_it_names_are_known(name):
    with suppress(SettingsError):  # of one that is known, but not with this value
        settings.read({name: "?"})  # warns of one that is not known


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#:]+)", COMING.read_text(encoding="utf-8")))
def test_its_links_lead_somewhere(link):
    assert (COMING.parent / link).is_file()


def test_every_row_stands_once_and_in_order():
    rows = re.findall(r"^\| (\d+) \|", COMING.read_text(encoding="utf-8"), re.MULTILINE)
    assert list(map(int, rows)) == list(range(1, 104))
