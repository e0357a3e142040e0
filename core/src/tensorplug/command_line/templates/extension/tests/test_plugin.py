"""The distribution as the core sees it, and what importing it loads."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import tensorplug as tp

DISTRIBUTION = "tensorplug-acme"
OWNER = f"{DISTRIBUTION} {version(DISTRIBUTION)}"
README = Path(__file__).parents[1] / "README.md"


def test_owner_of_the_kernel():
    explained = tp.explain("Acme", backend="cpu")
    assert (explained.how, explained.owner) == ("native", OWNER)


def test_owner_of_the_decomposition():
    tp.unregister_kernel("Acme", "cpu")
    explained = tp.explain("Acme", [tp.asarray([1.0])])
    assert (explained.how, explained.owner) == ("decomposed", OWNER)


def test_no_backend_is_imported_before_use():
    script = """
import sys
import tensorplug_acme.plugin
print(*sorted(name for name in sys.modules if name.startswith("tensorplug_")))
"""
    found = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True
    )
    (loaded,) = {name.partition(".")[0] for name in found.stdout.split()}
    assert loaded == "tensorplug_acme"


@pytest.mark.parametrize(
    "block", re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
)
def test_readme(block):
    exec(block, {})
