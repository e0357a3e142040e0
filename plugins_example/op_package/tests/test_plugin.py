"""What the core knows of this distribution, and what importing it costs."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import tensorplug as tp
from tensorplug_example_swish import SWISH

DISTRIBUTION = "tensorplug-example-swish"
OWNER = f"{DISTRIBUTION} {version(DISTRIBUTION)}"
README = Path(__file__).parents[1] / "README.md"


def test_the_kernel_is_known_as_ours():
    explained = tp.explain("Swish", backend="cpu")
    assert (explained.how, explained.owner) == ("native", OWNER)
    assert explained.steps == (("native", f"kernel of {OWNER}"),)
    assert "Swish" in tp.kernels_for("cpu")


def test_the_decomposition_is_known_as_ours():
    tp.unregister_kernel("Swish", "cpu")
    explained = tp.explain("Swish", [tp.asarray([1.0])])
    assert (explained.how, explained.owner) == ("decomposed", OWNER)


def test_the_gradient_is_known_as_ours():
    with pytest.raises(tp.errors.RegistrationError, match=f"registered already by {OWNER}"):
        tp.register_gradient("Swish", "x", lambda dy: dy)


def test_no_backend_is_imported_before_it_is_used():
    script = """
import sys
import tensorplug as tp
import tensorplug_example_swish.plugin
print(*sorted(name for name in sys.modules if name.startswith("tensorplug_")))
"""
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in found.stdout.split()}
    assert loaded == {"tensorplug_example_swish"}


def test_by_name_and_by_spec_it_is_the_same_kernel():
    x = tp.asarray([-1.0, 0.5])
    by_name = tp.run_kernel("Swish", {"x": x}, {"beta": 2.0})
    assert by_name.tolist() == tp.run_kernel(SWISH, [x], {"beta": 2.0}).tolist()


@pytest.mark.parametrize(
    "block", re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
)
def test_the_readme_says_what_happens(block):
    exec(block, {})
