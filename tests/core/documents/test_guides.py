"""The guides' code runs, and prints the output shown below it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.core.support import guides

from tensorplug.testing import isolated_engine

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(
    "name",
    [
        *("compile.md", "control_flow.md", "data.md", "debugging.md"),
        *("training.md", "transformations.md", "trees.md", "vmap.md"),
    ],
)
def test_the_code_of_a_guide(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for the files that it writes
    shutil.copy(DOCS / "examples/digits/digits.npz", tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    names = {}
    result = guides.blocks((DOCS / name).read_text(encoding="utf-8"))
    assert len(result) > 2
    with isolated_engine("cpu"):
        for code, expected in result:
            printed = guides.run(code, names)
            assert guides.comparable(printed) == guides.comparable(expected), code
