"""Products by dequantized weights: which become products by the weights, and what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp

pytest.importorskip("llvmlite")  # without it, no kernel multiplies floats by integers
pytestmark = pytest.mark.usefixtures("on_the_cpu")

RNG = np.random.default_rng(8)
ROWS, INNER, COLUMNS = 3, 64, 48


@pytest.fixture(autouse=True)
def _compiled(monkeypatch):
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", "always")  # for few elements, too


def _plain(x: Any, q: Any, s: Any) -> Any:
    return x @ tp.dequantize(q, s)


def _turned(x: Any, q: Any, s: Any) -> Any:
    return x @ tp.dequantize(q, s).T


def _along_rows(x: Any, q: Any, s: Any) -> Any:
    return x @ tp.dequantize(q, s, axis=0).T


def _flagged(x: Any, q: Any, s: Any) -> Any:
    return tp.linalg.matmul(x, tp.dequantize(q, s), transpose_b=True)


def _off_zero(x: Any, q: Any, s: Any) -> Any:
    return x @ tp.dequantize(q, s, q[:1, :1])


def _shifted(x: Any, q: Any, s: Any) -> Any:
    return x @ tp.dequantize(q, s, offset=s * -3.0).T


def _rounded(x: Any, q: Any, s: Any) -> Any:
    return x @ tp.dequantize(q, s, dtype=x.dtype)


def _twice(x: Any, q: Any, s: Any) -> Any:
    w = tp.dequantize(q, s)
    return x @ w + tp.sum(w)


def _first(x: Any, q: Any, s: Any) -> Any:
    return tp.dequantize(q, s) @ x.T


def _moved(x: Any, q: Any, s: Any) -> Any:
    return x @ tp.permute_dims(tp.dequantize(q, s), (1, 0, 2))


K_N, N_K = (INNER, COLUMNS), (COLUMNS, INNER)
FOLDED = {  # the function, the shapes of the weights and of their scales
    "one scale": (_plain, K_N, ()),
    "columns": (_plain, K_N, (COLUMNS,)),
    "blocks": (_plain, K_N, (2, COLUMNS)),
    "turned": (_turned, N_K, (COLUMNS, 1)),
    "turned, blocks": (_turned, N_K, (COLUMNS, 2)),
    "along an axis": (_along_rows, N_K, (COLUMNS,)),
    "by a flag": (_flagged, N_K, (COLUMNS, 2)),
    "blocks of columns": (_plain, K_N, (2, COLUMNS // 2)),
    "zero point": (_off_zero, K_N, (COLUMNS,)),
    "offset": (_shifted, N_K, (COLUMNS, 2)),
    "stack": (_plain, (2, *K_N), (2, 1, COLUMNS)),
}
KEPT = {  # also the dtypes of x and of the scales
    "rounded before": (_rounded, K_N, (COLUMNS,), "float16", "float16"),
    "rounded scales": (_rounded, K_N, (COLUMNS,), "float32", "float64"),
    "read twice": (_twice, K_N, (COLUMNS,), "float32", "float32"),
    "the first factor": (_first, N_K, (COLUMNS, 1), "float32", "float32"),
    "moved": (_moved, (ROWS, INNER, 2), (2,), "float32", "float32"),
}


def _inputs(shape, of_scale, dtype="float32", of_scales="float32", rows=ROWS):
    lead = shape[:-2] if shape[0] == 2 else ()
    inner = INNER
    x = tp.asarray(RNG.standard_normal((*lead, rows, inner)), dtype=dtype)
    if shape == KEPT["moved"][1]:
        x = tp.asarray(RNG.standard_normal((INNER, rows, ROWS)), dtype=dtype)
    q = tp.asarray(RNG.integers(-127, 128, shape).astype(np.int8))
    return x, q, tp.asarray(RNG.uniform(0.5, 2, of_scale), dtype=of_scales)


def _kernels(f, inputs):
    compiled = tp.compile(f)
    y = compiled(*inputs)
    with tp.profile() as profile:
        compiled(*inputs)
    return y, [kernel.name for kernel in profile.kernels]


def _check(f, inputs, y):
    """Compare with the same computation in float64, of what was rounded before."""
    x, q, s = inputs
    expected = f(x, q, s)
    assert (y.shape, y.dtype) == (expected.shape, expected.dtype)
    if y.dtype.name == "float16":
        assert tp.all(y == expected)
        return
    x, s = (tp.astype(each, "float64") for each in (x, s))
    exact = f(x, q, s).numpy()
    np.testing.assert_allclose(y.numpy(), exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize("name", FOLDED)
def test_weights_are_read_where_they_lie(name):
    f, *shapes = FOLDED[name]
    inputs = _inputs(*shapes)
    y, kernels = _kernels(f, inputs)
    moving = ("Slice", "Reshape", "Multiply")
    assert [each for each in kernels if each not in moving] == ["QuantizedMatMul"]
    _check(f, inputs, y)


@pytest.mark.parametrize("name", KEPT)
def test_other_products_stay_as_they_are(name):
    f, *rest = KEPT[name]
    inputs = _inputs(*rest)
    y, kernels = _kernels(f, inputs)
    assert "QuantizedMatMul" not in kernels
    assert len(kernels) > 1
    _check(f, inputs, y)


def test_constant_weights_are_dequantized_once():
    x, q, s = _inputs(K_N, (COLUMNS,))
    y, kernels = _kernels(lambda x: _plain(x, q, s), (x,))
    assert kernels == ["BatchMatMul"]
    _check(_plain, (x, q, s), y)


@pytest.mark.parametrize("shapes", [(K_N, (COLUMNS,)), (K_N, (2, COLUMNS // 2))], ids=str)
def test_other_numbers_of_rows(shapes):
    """One trace may serve all; what it makes of the product is found for each."""
    compiled = tp.compile(_plain)
    for rows in (2, 5, 300, 7):
        inputs = _inputs(*shapes, rows=rows)
        _check(_plain, inputs, compiled(*inputs))


def test_layers_of_a_loop():
    """Each step reads other weights; what no step changes is dequantized once, before the loop."""
    size, layers = 1024, 3
    x, q, s = _inputs((layers, size, size), (layers, size))
    x, s = tp.asarray(RNG.standard_normal((1, size)), dtype="float32"), s / size / 127

    def run(x, q, s):
        return tp.scan(lambda x, of: (tp.tanh(_plain(x, *of)), 0), x, (q, s))[0]

    y, kernels = _kernels(run, (x, q, s))
    assert kernels.count("QuantizedMatMul") == layers
    assert "BatchMatMul" not in kernels
    exact = x.numpy().astype("f8")
    for weights, scale in zip(q.numpy(), s.numpy(), strict=True):
        exact = np.tanh(exact @ (weights * scale.astype("f8")))
    np.testing.assert_allclose(y.numpy(), exact, atol=1e-5)


def test_gradients():
    x, q, s = _inputs(K_N, (COLUMNS,))

    def loss(x, s):
        return tp.sum(tp.square(_plain(x, q, s)))

    compiled = tp.compile(tp.grad(loss, argnums=(0, 1)))
    for got, expected in zip(compiled(x, s), tp.grad(loss, argnums=(0, 1))(x, s), strict=True):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-4, atol=1e-2)


def test_weights_that_are_constant_beside_others_that_are_not():
    q = np.arange(-4, 4, dtype=np.int8).reshape(2, 4)
    added = tp.compile(lambda x: tp.dequantize(x, 0.5) + tp.dequantize(q, 0.25))
    np.testing.assert_array_equal(added(q).numpy(), q * 0.75)
