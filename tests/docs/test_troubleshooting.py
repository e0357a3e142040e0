"""The messages that the troubleshooting page quotes are those of the code.

``test_guides.py`` runs the blocks that can be run. The others quote what only another machine
would print; here their words are looked up in the sources.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import tensorplug as tp

from . import guide_runner

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "start" / "troubleshooting.md"
_QUOTE = re.compile(r"(?<!```\n\n)^```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CLASS = re.compile(r"^(?:\.\.\.|tensorplug\.errors\.)(\w+): (.*)$", re.DOTALL)


def quotes(text: str) -> list[str]:
    """Return the messages of a page that no block above them prints."""
    return [quote.strip() for quote in _QUOTE.findall(text)]


@cache
def literals() -> frozenset[str]:
    """Return the texts in the code of the core and of the backends."""
    return frozenset(
        node.value
        for folder in ("core/src", "backends/cpu/src", "backends/gpu_opencl/src")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def unknown(quote: str) -> list[str]:
    """Return what a quoted message says that the code does not: its class, or its words."""
    match = _CLASS.match(quote)
    assert match, quote
    name, message = match.groups()
    parts = [part.strip() for part in message.split("...")]
    found = [name] if not hasattr(tp.errors, name) else []
    return found + [
        part for part in parts if part and not any(part in text for text in literals())
    ]


def test_words_that_the_code_lacks_are_found() -> None:
    text = "```text\n...LostError: ... no OpenCL device was found...lost...\n```\n"
    (quote,) = quotes(f"before\n\n{text}")
    assert unknown(quote) == ["LostError"]
    assert unknown(quote.replace("OpenCL", "Open CL")) == [
        "LostError",
        "no Open CL device was found",
    ]
    assert quotes(f"```python\nf()\n```\n\n{text}") == []


def test_the_page_has_blocks_that_are_run() -> None:
    assert len(list(guide_runner.blocks(PAGE.read_text("utf-8")))) > 5


@pytest.mark.parametrize("quote", quotes(PAGE.read_text("utf-8")), ids=lambda quote: quote[:40])
def test_a_quoted_message_is_in_the_code(quote: str) -> None:
    assert unknown(quote) == []
