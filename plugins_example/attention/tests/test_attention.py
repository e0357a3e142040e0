"""Values and gradients beside the decomposition, which other backends run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import specs
from tensorplug.testing import check_grads, isolated_engine

pytest.importorskip("tensorplug_example_minimal")

attend = tp.nn.scaled_dot_product_attention
rng = np.random.default_rng(20)
README = Path(__file__).parents[1] / "README.md"

CALLS = {  # shapes of q and of k and v, options
    "one head": ((5, 4), (7, 4), {}),
    "heads": ((2, 3, 4, 8), (2, 3, 6, 8), {"scale": 0.3}),
    "causal": ((2, 6, 3), (2, 6, 3), {"is_causal": True}),
    "causal, more keys": ((3, 3), (6, 3), {"is_causal": True}),
    "several blocks": ((2, 180, 4), (2, 170, 4), {"is_causal": True}),
}


@pytest.fixture(autouse=True)
def _minimal():
    with isolated_engine("minimal"):
        yield


def run(name):
    q_shape, shape, options = CALLS[name]
    q, k, v = (tp.asarray(rng.standard_normal(s)) for s in (q_shape, shape, shape))
    return attend(q, k, v, **options), (q, k, v), options


@pytest.mark.parametrize("name", CALLS)
def test_values(name):
    y, qkv, options = run(name)
    found = tp.explain(specs.ATTENTION, [*qkv, None, None, None])
    assert (found.how, found.owner) == (
        "native",
        f"tensorplug-attention {version('tensorplug-attention')}",
    )
    tp.unregister_kernel(specs.ATTENTION, "minimal")
    expected = attend(*qkv, **options)
    assert (y.shape, y.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=1e-13, atol=1e-13)
    assert tp.explain(specs.ATTENTION, [*qkv, None, None, None]).how == "decomposed"


def test_gradients():
    _, qkv, options = run("causal, more keys")
    check_grads(lambda *qkv: attend(*qkv, **options), qkv, order=2)


def test_declined():
    q, k, v = (rng.standard_normal((4, 3)) for _ in "qkv")
    mask = np.tri(4, dtype=bool)
    np.testing.assert_allclose(
        attend(q, k, v, mask).numpy(), attend(q, k, v, is_causal=True).numpy(), rtol=1e-13
    )
    assert tp.explain(specs.ATTENTION, [q, k, v, None, mask, None]).how == "decomposed"


@pytest.mark.slow
def test_certified(tmp_path):
    command = [sys.executable, "-m", "tensorplug_conformance", "run", "--backend", "minimal"]
    selection = ["--level", "3", "--kernels", "ScaledDot*", "--report", str(tmp_path)]
    ended = subprocess.run([*command, *selection], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
    rows = json.loads((tmp_path / "report.json").read_text("utf-8"))["rows"]
    status = {(row["kernel"], row["mode"]): row["status"] for row in rows}
    assert status["ScaledDotProductAttention", "native"] == "pass native"


@pytest.mark.parametrize(
    "block", re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
)
def test_readme(block):
    exec(block, {})
