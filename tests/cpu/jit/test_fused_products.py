"""Products with a bias and an activation whose epilogue LLVM compiles."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_cpu.jit.codegen.settings import JIT
from tensorplug_cpu.kernels.nn import fused

RNG = np.random.default_rng(3)
EPILOGUES = {
    "linear": lambda y: y,
    "relu": lambda y: np.where(y < 0, 0, y),
    "relu6": lambda y: np.clip(y, 0, 6),
    "sigmoid": lambda y: 1 / (1 + np.exp(-y)),
    "elu": lambda y: np.where(y < 0, np.expm1(y), y),  # not compiled
}


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(JIT, "always")
    with tp.use_backend("cpu"):
        yield


@pytest.mark.parametrize("activation", EPILOGUES)
@pytest.mark.parametrize("bias", [None, (7,), (1,), (5, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("before", [(), (2, 3)])
def test_products(activation, bias, dtype, before):
    a = (4 * RNG.standard_normal((*before, 5, 3))).astype(dtype)
    b = RNG.standard_normal((*before, 3, 7)).astype(dtype)
    c = None if bias is None else RNG.standard_normal(bias).astype(dtype)
    left, right = tp.asarray(a), tp.asarray(b)
    result = tp.nn.fused_matmul(
        left, right, bias=None if c is None else tp.asarray(c), activation=activation
    )
    y = a.astype(np.float64) @ b.astype(np.float64)
    expected = EPILOGUES[activation](y if c is None else y + c)
    assert (result.dtype, result.shape) == (left.dtype, expected.shape)
    tolerance = {2: 4e-3, 4: 2e-6, 8: 1e-14}[np.dtype(dtype).itemsize]
    np.testing.assert_allclose(result.numpy(), expected, rtol=tolerance, atol=4 * tolerance)
    np.testing.assert_array_equal(left.numpy(), a)  # only the product was overwritten
    np.testing.assert_array_equal(right.numpy(), b)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("lies", ["in rows", "in columns", "transposed"])
@pytest.mark.parametrize("rows", [1, 5])
def test_few_rows_read_the_matrix_where_it_lies(rows, lies, dtype, monkeypatch):
    """By loops, with the end in registers; BLAS is not asked."""
    monkeypatch.setattr(fused, "find_product", None)
    turned = lies == "transposed"
    a, b, bias, slopes = (
        tp.asarray(RNG.standard_normal(shape), dtype=dtype)
        for shape in ((rows, 700), (450, 700) if turned else (700, 450), (450,), (450,))
    )
    if lies == "in columns":
        b = tp.asarray(tp.asarray(b.numpy().T.copy()).numpy().T, copy=False)
        assert b.numpy().flags.f_contiguous
    ends = {"bias": bias, "prelu_activation_weights": slopes}
    y = tp.nn.fused_matmul(a, b, transpose_b=turned, activation="prelu", **ends)
    assert (y.shape, y.dtype.name) == ((rows, 450), dtype)
    wide = [tp.astype(x, "float64").numpy() for x in (a, b, bias, slopes)]
    sums = wide[0] @ (wide[1].T if turned else wide[1]) + wide[2]
    expected = np.where(sums < 0, sums * wide[3], sums)
    bound = {"float32": 1e-6, "bfloat16": 2**-8}[dtype]  # rounded once
    np.testing.assert_allclose(tp.astype(y, "float64").numpy(), expected, rtol=bound, atol=1e-3)


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        ("linear", [np.nan, -np.inf, np.inf, -1.0, -700.0]),
        ("relu", [np.nan, 0, np.inf, 0, 0]),
        ("relu6", [np.nan, 0, 6, 0, 0]),
        ("sigmoid", [np.nan, 0, 1, 1 / (1 + np.e), np.exp(-700.0)]),
    ],
)
def test_what_is_not_a_number_stays(activation, expected):
    x = np.array([[np.nan, -np.inf, np.inf, -1.0, -700.0]])
    one, zero = (tp.asarray(value, dtype=tp.float64) for value in ([[1.0]], [0.0]))
    result = tp.nn.fused_matmul(tp.asarray(x.T), one, bias=zero, activation=activation)
    np.testing.assert_allclose(result.numpy()[:, 0], expected, rtol=1e-14)


@pytest.mark.parametrize("alpha", [0.25, -0.5])
def test_weights_of_another_activation_change_nothing(alpha):
    """Both of a product and of a convolution with one tap, by native loops."""
    x, y = (RNG.integers(-8, 9, shape) / 8 for shape in ((32, 24), (24, 40)))
    bias, weights = RNG.integers(-8, 9, (2, 40)) / 8
    plain = x @ y + bias
    more = [tp.asarray(array) for array in (bias, weights)]
    options = {"bias": more[0], "prelu_activation_weights": more[1], "leakyrelu_alpha": alpha}
    options["activation"] = "leakyrelu"
    found = tp.nn.fused_matmul(tp.asarray(x), tp.asarray(y), **options)
    image, taps = tp.asarray(x.reshape(1, 4, 8, 24)), tp.asarray(y.reshape(1, 1, 24, 40))
    convolved = tp.nn.fused_conv2d(image, taps, 1, "valid", **options)
    expected = np.where(plain < 0, alpha * plain, plain)
    np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_array_equal(convolved.numpy().reshape(32, 40), expected)
