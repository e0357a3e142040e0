"""Every example of a docstring runs and gives what it says.

Three forms are in use: sessions (``>>>``), in any module; ``Example::`` with code, whose bare
expressions end in a comment with their value or type; and sentences "``call`` is ``value``".
"""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.core.public_functions import FUNCTIONS

import tensorplug as tp

_SOURCES = Path(tp.__file__).parent
_SECTION = re.compile(r"^Examples?:(:?)(.*(?:\n(?:[ ].*)?)*)", re.MULTILINE)
_SENTENCE = re.compile(r"``([^`]+)``\s+is\s+``([^`]+)``")
_TYPE = re.compile(r"[a-z]+\d*\[[\d,]*\]")

SECTIONS: dict[str, tuple[str, str]] = {
    name: (found[1], inspect.cleandoc(found[2]))
    for name, function in FUNCTIONS.items()
    if (found := _SECTION.search(inspect.getdoc(function) or "")) and ">>>" not in found[2]
}
CODE = {name: text for name, (colon, text) in SECTIONS.items() if colon}
SENTENCES = {name: text for name, (colon, text) in SECTIONS.items() if not colon}
SESSIONS = sorted(
    ".".join(("tensorplug", *path.relative_to(_SOURCES).with_suffix("").parts))
    for path in _SOURCES.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


def test_there_are_examples_of_each_form() -> None:
    assert (len(CODE) >= 30, len(SENTENCES) >= 25, len(SESSIONS) >= 6) == (True, True, True)


def assert_is(result: Any, said: str) -> None:
    """Compare a result with a literal, to the digits that a text gives, or with a type."""
    if _TYPE.fullmatch(said):
        assert str(result.type) == said
        return
    wanted = ast.literal_eval(said)
    if not isinstance(result, tp.Tensor):
        assert result == wanted
        return
    assert result.shape == np.shape(wanted)
    np.testing.assert_allclose(result.numpy(), np.asarray(wanted), rtol=1e-5, atol=0)


@pytest.mark.parametrize("name", CODE)
def test_code(name: str) -> None:
    text = CODE[name]
    lines, names = text.splitlines(), {"tp": tp}
    for statement in ast.parse(text).body:
        source = ast.get_source_segment(text, statement)
        assert source is not None
        if not isinstance(statement, ast.Expr):
            exec(source, names)
            continue
        rest = lines[(statement.end_lineno or 1) - 1][statement.end_col_offset :].strip()
        assert rest.startswith("# "), f"say what {source} is"
        assert_is(eval(source, names), rest.removeprefix("# "))


@pytest.mark.parametrize("name", SENTENCES)
def test_sentences(name: str) -> None:
    function = FUNCTIONS[name]
    found = _SENTENCE.findall(SENTENCES[name])
    assert found, "no sentence has the form ``call`` is ``value``"
    for call, value in found:
        assert_is(eval(call, vars(tp) | {"tp": tp, function.__name__: function}), value)


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testmod(importlib.import_module(name), report=True)
    assert (failed, tried > 0) == (0, True)
