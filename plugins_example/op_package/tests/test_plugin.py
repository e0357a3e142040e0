"""The distribution as the core sees it, and what importing it loads."""

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


def test_owner_of_the_kernel():
    explained = tp.explain("Swish", backend="cpu")
    assert (explained.how, explained.owner) == ("native", OWNER)
    assert explained.steps == (("native", f"kernel of {OWNER}"),)
    assert "Swish" in tp.kernels_for("cpu")


def test_owner_of_the_decomposition():
    tp.unregister_kernel("Swish", "cpu")
    explained = tp.explain("Swish", [tp.asarray([1.0])])
    assert (explained.how, explained.owner) == ("decomposed", OWNER)


def test_owner_of_the_gradient():
    with pytest.raises(tp.errors.RegistrationError, match=f"already registered by {OWNER}"):
        tp.register_gradient("Swish", "x", lambda dy: dy)


def test_no_backend_is_imported_before_use():
    script = """
import sys
import tensorplug as tp
import tensorplug_example_swish.plugin
print(*sorted(name for name in sys.modules if name.startswith("tensorplug_")))
"""
    found = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in found.stdout.split()}
    assert loaded == {"tensorplug_example_swish"}


def test_kernel_by_name_and_by_spec():
    x = tp.asarray([-1.0, 0.5])
    by_name = tp.run_kernel("Swish", {"x": x}, {"beta": 2.0})
    assert by_name.tolist() == tp.run_kernel(SWISH, [x], {"beta": 2.0}).tolist()


@pytest.mark.parametrize(
    "block", re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
)
def test_readme(block):
    exec(block, {})
