"""The notebooks of the tutorials: their cells are the pages' blocks, and they run."""

from __future__ import annotations

import subprocess
from typing import Any

import nbformat
import notebooks
import pytest

from . import guide_runner

SITE = "https://example.org/"
MADE = {page: notebooks.notebook(page, SITE) for page in notebooks.TUTORIALS}


@pytest.mark.parametrize("page", MADE)
def test_a_notebook_is_valid_and_has_each_block_of_its_page(page: str) -> None:
    made = MADE[page]
    nbformat.validate(made)
    text = (notebooks._DOCS / f"{page}.md").read_text("utf-8")
    code = "\n".join(cell.source for cell in made.cells if cell.cell_type == "code")
    found = list(guide_runner.blocks(text))
    assert len(found) > 5
    for block in found:
        if block.kind == "console":
            for command, _ in guide_runner.COMMAND.findall(block.text):
                assert command in code
        else:
            assert block.text.rstrip() in code


@pytest.mark.parametrize("page", MADE)
def test_links_of_a_notebook_lead_to_the_site(page: str) -> None:
    prose = "\n".join(cell.source for cell in MADE[page].cells if cell.cell_type == "markdown")
    links = notebooks._LINK.findall(prose)
    assert links == []  # none is left that is relative
    assert prose.count(f"]({SITE}") > 1
    assert ".md" not in prose.replace("README.md", "")


def test_an_error_that_a_page_shows_does_not_stop_its_notebook() -> None:
    tagged = [cell for cell in MADE["start/arrays"].cells if cell.metadata.get("tags")]
    assert [cell.source for cell in tagged] == ["tp.matmul(table, table)"]


def printed(cell: Any) -> str:
    return "".join(out.text for out in cell.outputs if out.get("name") == "stdout")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", MADE)
def test_a_notebook_runs(page: str, tmp_path: Any) -> None:
    environment = guide_runner.make_environment(tmp_path / "environment")
    path = tmp_path / "tutorial.ipynb"
    nbformat.write(MADE[page], path)
    execute = "import sys; from nbclient.cli import main; sys.exit(main())"
    command = ["python", "-c", execute, "--inplace", "--timeout=1500", str(path)]
    environment |= {"IPYTHONDIR": str(tmp_path), "JUPYTER_RUNTIME_DIR": str(tmp_path)}
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    cells = nbformat.read(path, as_version=4).cells
    assert len(cells) == len(MADE[page].cells)
    for cell, before in zip(cells, MADE[page].cells, strict=True):
        if cell.cell_type == "code":
            assert cell.execution_count, cell.source
            tags = before.metadata.get("tags")
            if printed(before) and not tags and not cell.source.startswith("%"):
                assert guide_runner.matches(printed(before), printed(cell)), cell.source
