"""Numbers in groups are arguments of LLVM's functions: one module serves all of them."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_cpu.jit.codegen import compiler

pytestmark = pytest.mark.skipif(not compiler.is_available(), reason="llvmlite is not installed")

X = np.random.default_rng(3).standard_normal((300, 400)) * 4


def leaky(x, slope):
    return np.where(x > 0, x, x * slope)


# The function of x and a number, and what it is in NumPy.
ROWS = {
    "clip": (lambda x, v: tp.clip(x, -v, v), lambda x, v: np.clip(x, -v, v)),
    "leaky_relu": (tp.nn.leaky_relu, leaky),
    "rows": (
        tp.compile(lambda x, v: tp.max(tp.clip(x * 3, -v, v), axis=1), static_floats=True),
        lambda x, v: np.clip(x * 3, -v, v).max(1),
    ),
    "a column and an output": (
        tp.compile(
            lambda x, v: tp.nn.leaky_relu(x - tp.max(x, axis=0), v) * 7, static_floats=True
        ),
        lambda x, v: leaky(x - x.max(0), v) * 7,
    ),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("what", ROWS)
def test_a_module_serves_all_numbers(monkeypatch, what, dtype):
    ours, expected = ROWS[what]
    texts = set()
    load = compiler._find_object

    def noted(text):
        texts.add(text)
        return load(text)

    monkeypatch.setattr(compiler, "_find_object", noted)
    compiler._engines.clear()
    with tp.use_backend("cpu"):
        counts = []
        x = tp.asarray(X.astype(dtype))
        for number in np.array([0.31, 0.77, 1.9, 5.1], dtype):
            found = ours(x, float(number)).numpy()
            counts.append(len(texts))
            right = expected(X.astype(dtype), number)
            assert (found.shape, found.dtype) == (right.shape, dtype)
            np.testing.assert_array_equal(found, right)
    assert counts[0] > 0
    assert counts == counts[:1] * 4
