"""What the core knows of this distribution, what importing it costs, and what is certified."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import tensorplug as tp
from tensorplug.plugin import specs

DISTRIBUTION = "tensorplug-attention"
OWNER = f"{DISTRIBUTION} {version(DISTRIBUTION)}"
README = Path(__file__).parents[1] / "README.md"


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    "spec",
    [specs.ATTENTION, specs.ATTENTION_GRAD],
    ids=lambda spec: spec.name,
)
def test_the_kernels_are_ours_and_the_decompositions_are_not(spec):
    native = tp.explain(spec.name, backend="cpu")
    assert (native.how, native.owner) == ("native", OWNER)
    tp.unregister_kernel(spec, "cpu")
    decomposed = tp.explain(spec.name, backend="cpu")
    assert (decomposed.how, decomposed.owner) == ("decomposed", f"tensorplug {tp.__version__}")


def test_no_backend_is_imported_before_use():
    script = """
import sys
import tensorplug as tp
import tensorplug_attention.plugin
print(*sorted(name for name in sys.modules if name.startswith("tensorplug_")))
"""
    found = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True
    )
    assert {name.partition(".")[0] for name in found.stdout.split()} == {"tensorplug_attention"}


@pytest.mark.slow
def test_the_cpu_kernels_are_certified_in_one_dtype(tmp_path):
    """All dtypes and backends take a minute: the README holds their verdicts.

    `make conformance` certifies them too, with the whole catalogue.
    """
    command = [sys.executable, "-m", "tensorplug_conformance", "run", "--backend", "cpu"]
    selection = ["--level", "3", "--kernels", "ScaledDot*", "--dtypes", "float32"]
    ended = subprocess.run(
        [*command, *selection, "--report", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    rows = json.loads((tmp_path / "report.json").read_text("utf-8"))["rows"]
    ours = {(row["kernel"], row["mode"]): row["status"] for row in rows}
    passed = {
        "native": "pass native",
        "decomposed": "pass decomposed",
        "gradient": "pass gradient",
    }
    assert ours == {
        (spec.name, mode): status
        for spec in (specs.ATTENTION, specs.ATTENTION_GRAD)
        for mode, status in passed.items()
    }


@pytest.mark.parametrize(
    "block", re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
)
def test_readme(block):
    exec(block, {})
