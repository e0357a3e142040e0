"""Histograms against NumPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.testing import check_grads

NAN, INF = math.nan, math.inf
RANDOM = np.random.default_rng(3)
X = RANDOM.uniform(-3, 3, (6, 7))
DATA = {
    "float32": X.astype("f4"),
    "float64": X,
    "int32": (X * 10).astype("i4"),
    "uint8": (X + 3).astype("u1"),
    "rank 0": np.array(2.0),
    "empty": np.zeros((0, 3)),
    "constant": np.full(5, 2.0),
    "on the edges": np.arange(11.0),
    "one": np.array([-1]),
}
OPTIONS = [
    {},
    {"bins": 1},
    {"bins": np.int64(7)},
    {"bins": 4, "range": (-1.5, 2)},
    {"bins": 3, "range": (1, 1)},
    {"bins": [-2.0, -1.0, 0.5, 0.5, 3.0]},
    {"bins": [0, 1, 5, 10, 10]},
    {"bins": np.array([-10, 0, 2])},
    {"bins": 5, "range": (50, 60)},
]


def expect(actual, expected, dtype):
    assert (actual.dtype.name, actual.shape) == (dtype, expected.shape)
    eps = np.finfo(dtype).eps if dtype.startswith("float") else 0
    np.testing.assert_allclose(actual.numpy(), expected, rtol=8 * eps, atol=8 * eps)


def kind_of(x, options):
    """Return the dtype of edges: that of explicit ones, else a floating one."""
    bins = options.get("bins")
    if isinstance(bins, list):
        return tp.asarray(bins).dtype.name
    if isinstance(bins, np.ndarray):
        return bins.dtype.name
    return x.dtype.name if x.dtype.kind == "f" else "float32"


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("kind", DATA)
def test_counts(kind, options):
    x = DATA[kind]
    found = tp.histogram(x, **options)
    counts, edges = np.histogram(x, **options)
    expect(found.bin_edges, edges, kind_of(x, options))
    expect(found.hist, counts, "int32")
    compiled = tp.compile(lambda x: tuple(tp.histogram(x, **options)))(tp.asarray(x))
    expect(compiled[0], counts, "int32")


def test_booleans():
    found = tp.histogram([True, False, True], 2)
    assert (found.hist.tolist(), found.bin_edges.tolist()) == ([1, 2], [0, 0.5, 1])
    assert tp.histogram([1, 1, 0], [False, True, True]).hist.tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64", "bool"])
def test_weights(dtype):
    weights = (RANDOM.uniform(0, 5, X.shape)).astype(dtype)
    found = tp.histogram(X, 5, weights=weights)
    wide = weights.astype("c16" if dtype == "complex64" else "f8")
    wanted = np.histogram(X, 5, weights=wide)[0]
    assert found.hist.dtype.name == ("int32" if dtype == "bool" else dtype)
    np.testing.assert_allclose(found.hist.numpy(), wanted, rtol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bins", [6, [-3.0, -1.0, 0.0, 3.0]], ids=repr)
def test_densities(bins, weighted):
    weights = np.abs(X) if weighted else None
    for x, dtype in ((X, "float64"), (X.astype("f4"), "float32")):
        found = tp.histogram(x, bins, density=True, weights=weights)
        wanted = np.histogram(x, bins, density=True, weights=weights)[0]
        assert found.hist.shape == wanted.shape
        assert found.hist.dtype.name == (
            "float64" if weighted or (dtype == "float64" and bins == 6) else "float32"
        )
        np.testing.assert_allclose(found.hist.numpy(), wanted, rtol=1e-5)
    halves = tp.histogram(np.ones(70000, np.float16), [0.0, 2.0], density=True).hist
    assert halves.tolist() == [0.5]  # 70000 is no float16


def test_what_is_not_counted():
    x = np.array([NAN, INF, -INF, 0.5, 2.0])
    assert tp.histogram(x, 2, (0, 2)).hist.tolist() == [1, 1]
    found = tp.histogram(x, 2)
    assert found.hist.tolist() == [0, 0]
    assert np.isnan(found.bin_edges.numpy()).all()


def test_gradients():
    check_grads(
        lambda w: tp.sum(tp.histogram(X, 5, weights=w).hist ** 2), [np.abs(X) + 1], order=2
    )
    check_grads(lambda x: tp.sum(tp.histogram(x, 4).bin_edges ** 2), [X], order=2)
    density = tp.grad(
        lambda w: tp.histogram([0.5, 1.5], [0, 1, 2], density=True, weights=w).hist[0]
    )
    # w0 / (w0 + w1): the derivatives are w1 and -w0 over the square of the sum
    np.testing.assert_allclose(density(tp.asarray([1.0, 3.0])).numpy(), [3 / 16, -1 / 16])


BAD = [  # arguments, error, what the message says
    (([1.0], 0), ArgumentError, "histogram: bins must be at least 1, got 0"),
    (([1.0], 2.5), ArgumentError, "histogram: bins must be an integer, got 2.5"),
    (([1.0], "auto"), ArgumentError, "histogram: bins must be an integer, got 'auto'"),
    (([1.0], [1.0]), ShapeError, "at least two edges of rank 1, got float32[1]"),
    (([1.0], [[1.0, 2.0]]), ShapeError, "at least two edges of rank 1, got float32[1,2]"),
    (([1.0], [2, 1]), ArgumentError, "the edges of bins must ascend, got [2, 1]"),
    (([1.0], [0, NAN]), ArgumentError, "the edges of bins must ascend, got [0, nan]"),
    (([1.0], 2, (1, 0)), ArgumentError, "range must be finite and ascend, got (1, 0)"),
    (([1.0], 2, (0, INF)), ArgumentError, "range must be finite and ascend"),
    (([1.0], 2, (0, NAN)), ArgumentError, "range must be finite and ascend"),
    (([1.0], 2, 3), ArgumentError, "range must be a pair (low, high), got 3"),
    (([1.0], 2, (0, 1, 2)), ArgumentError, "range must be a pair (low, high)"),
    (([1.0], 2, ("a", "b")), ArgumentError, "range must be two real numbers"),
    (([1j],), DTypeError, "histogram: x must hold real numbers, got complex64[1]"),
    ((["a"],), DTypeError, "histogram: x must hold real numbers, got string[1]"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD)
def test_bad_input(arguments, error, message):
    with pytest.raises(error) as caught:
        tp.histogram(*arguments)
    assert message in str(caught.value)


def test_bad_options():
    with pytest.raises(ShapeError, match=r"weights must have the shape of x, \[2\], got float32"):
        tp.histogram([1.0, 2.0], weights=[1.0])
    with pytest.raises(DTypeError, match="weights must hold numbers"):
        tp.histogram([1.0], weights=["a"])
    with pytest.raises(ArgumentError, match="density must be True or False, got 1"):
        tp.histogram([1.0], density=1)
