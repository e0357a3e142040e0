"""Kronecker products and logarithmic scales. NumPy is the oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError
from tensorplug.testing import check_grads

pytestmark = pytest.mark.usefixtures("on_the_cpu")

RANDOM = np.random.default_rng(11)
DTYPES = ["bool", "int8", "int32", "uint16", "float32", "float64", "complex64", "complex128"]


def near(actual, expected, dtype):
    wanted = np.asarray(expected)
    assert (actual.dtype.name, actual.shape) == (dtype, wanted.shape)
    eps = np.finfo(dtype).eps if np.dtype(dtype).kind in "fc" else 0
    size = np.abs(wanted).max(initial=1.0)
    np.testing.assert_allclose(actual.numpy(), wanted, rtol=0, atol=4 * eps * size)


def draw(shape, dtype):
    x = RANDOM.uniform(-9, 9, shape)
    if dtype.startswith("complex"):
        return (x + 1j * RANDOM.uniform(-9, 9, shape)).astype(dtype)
    if dtype == "bool":
        return x > 5
    return (np.abs(x) if dtype.startswith("uint") else x).astype(dtype)


SHAPES = [((), ()), ((3,), ()), ((2,), (3,)), ((2, 3), (2,)), ((2,), (3, 2)), ((2, 3), (4, 1))]


@pytest.mark.parametrize("shapes", [*SHAPES, ((0, 2), (3,)), ((2, 1, 2), (1, 3, 2))], ids=repr)
@pytest.mark.parametrize("dtype", DTYPES)
def test_kronecker_products(dtype, shapes):
    a, b = draw(shapes[0], dtype), draw(shapes[1], dtype)
    near(tp.kron(a, b), np.kron(a, b), dtype)


def test_kronecker_products_of_two_dtypes_and_gradients():
    near(tp.kron([1, 2], [True, False]), [1, 0, 2, 0], "int32")
    near(tp.compile(tp.kron)(tp.asarray([1, 2]), tp.asarray([0.5])), [0.5, 1], "float32")
    operands = [RANDOM.uniform(-1, 1, (2, 3)), RANDOM.uniform(-1, 1, 2)]
    check_grads(lambda a, b: tp.sum(tp.kron(a, b) ** 2), operands, order=2)


@pytest.mark.parametrize(
    "arguments", [(0, 3), (0, 3, 4), (-2.5, 2, 7), (2, 0, 3), (1, 1, 3), (0, 1, 0), (5, 9, 1)]
)
@pytest.mark.parametrize(
    "options", [{}, {"base": 2}, {"endpoint": False}, {"base": np.float32(0.5)}]
)
def test_logarithmic_scales(arguments, options):
    wanted = np.logspace(*arguments, **options)
    for dtype in ("float32", "float64"):
        found = tp.logspace(*arguments, dtype=dtype, **options)
        assert (found.dtype.name, found.shape) == (dtype, wanted.shape)
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(found.numpy(), wanted, rtol=eps)
    assert tp.logspace(*arguments, **options).dtype is tp.float32


def test_logarithmic_scales_at_the_edges():
    assert tp.logspace(0, 39, 2).tolist() == [1, math.inf]
    assert tp.logspace(tp.asarray(0), np.array(2.0), 3).tolist() == [1, 10, 100]
    assert math.isnan(tp.logspace(0.5, 1, 2, base=-2.0)[0].item())
    assert tp.logspace(0, 1, 2, device="cpu").device == "cpu"


BAD = [  # call, error, what the message says
    (lambda: tp.kron(["a"], [1]), DTypeError, "string"),
    (lambda: tp.logspace(0, 1, -1), ArgumentError, "logspace: num must be at least 0, got -1"),
    (lambda: tp.logspace(0, [1]), ArgumentError, "logspace: stop must be a real number, got [1]"),
    (lambda: tp.logspace(0, 1, base="e"), ArgumentError, "logspace: base must be a real number"),
    (lambda: tp.logspace(0, 1j), ArgumentError, "logspace: stop must be a real number, got 1j"),
    (lambda: tp.logspace(0, 1, dtype="int32"), DTypeError, "logspace: dtype must be floating"),
    (lambda: tp.logspace(0, 1, endpoint=0), ArgumentError, "logspace: endpoint must be True"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_input(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
