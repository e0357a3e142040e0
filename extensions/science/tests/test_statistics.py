"""Quantiles and covariances, against NumPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.testing import check_grads

from .comparing import near

NAN, INF = math.nan, math.inf
RANDOM = np.random.default_rng(7)
X = RANDOM.uniform(-3, 3, (3, 4, 5))
HOLED = np.where(RANDOM.random(X.shape) < 0.3, NAN, X)
HOLED[1, :, 2] = NAN


# Quantiles -------------------------------------------------------------------------------

METHODS = ["linear", "lower", "higher", "midpoint", "nearest"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (2, 1)])
@pytest.mark.parametrize("q", [0.5, 0, 1, 0.3, [0.25, 0.5, 1.0], []], ids=repr)
def test_quantiles(q, axis, method):
    for keep in (False, True):
        wanted = np.quantile(X, q, axis=axis, keepdims=keep, method=method)
        near(tp.quantile(X, q, axis=axis, keepdims=keep, method=method), wanted, "float64")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", range(1, 10))
def test_quantiles_at_every_kind_of_position(n, method):
    x, q = RANDOM.permutation(n) * 1.0, np.linspace(0, 1, 17)
    near(tp.quantile(x, q, method=method), np.quantile(x, q, method=method), "float64")


def test_quantiles_of_other_numbers():
    half = np.array([1.0, 60000.0, 65504.0, 65000.0], np.float16)
    near(tp.median(half), 62500, "float16")
    near(tp.quantile(half, 0.1), np.quantile(half.astype("f8"), 0.1), "float16")
    assert tp.quantile(np.array([0, 65504], np.float16), 1 / 3).item() == 21840
    near(tp.quantile([1.0, 2.0, INF], [0.25, 1.0]), [1.5, INF], "float32")
    near(tp.median([4, 1, 2]), 2, "float32")
    near(tp.median([True, False]), 0.5, "float32")
    near(tp.asarray([[1.0, 2.0], [5.0, 4.0]]).median(1), [1.5, 4.5], "float32")
    near(tp.quantile(X, tp.asarray([0.25, 0.5])), np.quantile(X, [0.25, 0.5]), "float64")
    for x, wanted in (
        ([INF, INF], INF),
        ([INF, 1.0], INF),
        ([-INF, INF], NAN),
        ([1.0, NAN, 2.0], NAN),
        ([-INF, 1.0, INF], 1),
        (np.zeros(0, "f4"), NAN),
    ):
        near(tp.median(x), wanted, "float32")
    near(tp.median([[1.0, NAN], [2.0, 3.0]], axis=1), [NAN, 2.5], "float32")
    near(tp.quantile([[1.0, NAN], [2.0, 3.0]], 0.0, axis=1), [NAN, 2], "float32")
    near(tp.quantile(np.zeros((0, 2), "f4"), [0.5], axis=0), [[NAN, NAN]], "float32")


def test_gradients_of_quantiles():
    check_grads(lambda x: tp.sum(tp.quantile(x, [0.3, 0.9], axis=(0, 2)) ** 2), [X], order=2)
    slope = tp.grad(lambda x: tp.sum(tp.median(x, axis=1)))(tp.asarray([[3.0, 1.0, 2.0, 9.0]]))
    assert slope.tolist() == [[0.5, 0, 0.5, 0]]
    lower = tp.grad(lambda x: tp.quantile(x, 0.4, method="lower"))(tp.asarray([3.0, 1.0, 2.0]))
    assert lower.tolist() == [0, 1, 0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("q", [50, 0, 100, 12.5, [25, 50.0, 99]], ids=repr)
def test_percentiles(q, axis, method):
    for keep in (False, True):
        wanted = np.percentile(X, q, axis=axis, keepdims=keep, method=method)
        near(tp.percentile(X, q, axis=axis, keepdims=keep, method=method), wanted, "float64")


@pytest.mark.filterwarnings("ignore:All-NaN")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (2, 1)])
@pytest.mark.parametrize("q", [0.5, 0, 1, 0.3, [0.25, 0.5, 1.0], []], ids=repr)
def test_quantiles_without_nan(q, axis, method):
    for keep in (False, True):
        given = {"axis": axis, "keepdims": keep, "method": method}
        wanted = np.nanquantile(HOLED, q, **given)
        near(tp.nanquantile(HOLED, q, **given), wanted, "float64")
        percent = np.asarray(q) * 100
        near(
            tp.nanpercentile(HOLED, percent, **given),
            np.nanpercentile(HOLED, percent, **given),
            "float64",
        )


@pytest.mark.filterwarnings("ignore:All-NaN")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
def test_medians_without_nan(axis, dtype):
    x = HOLED.astype(dtype)
    for keep in (False, True):
        wanted = np.nanmedian(x.astype("f8"), axis=axis, keepdims=keep)
        near(tp.nanmedian(x, axis=axis, keepdims=keep), wanted, dtype)


@pytest.mark.filterwarnings("ignore:All-NaN")
def test_quantiles_without_nan_at_the_edges():
    near(tp.nanmedian([1.0, NAN, INF]), INF, "float32")
    near(tp.nanmedian([4, 1, 2]), 2, "float32")
    near(tp.nanmedian(np.zeros((0, 2), "f4"), axis=0), [NAN, NAN], "float32")
    near(tp.nanquantile(np.array([NAN, 65504, 0], np.float16), 1 / 3), 21840, "float16")
    near(tp.nanmedian(np.full((2, 0), 1.0)), NAN, "float64")
    compiled = tp.compile(lambda x: tp.nanquantile(x, [0.2, 0.7], axis=1))
    wanted = np.nanquantile(HOLED, [0.2, 0.7], axis=1)
    near(compiled(tp.asarray(HOLED)), wanted, "float64")


@pytest.mark.parametrize("name", ["nanquantile", "nanmedian", "percentile"])
def test_gradients_of_quantiles_without_nan(name):
    fractions = {"nanquantile": ([0.3, 0.9],), "percentile": ([30, 90],)}.get(name, ())
    quantiles = getattr(tp, name)
    check_grads(lambda x: tp.sum(quantiles(x, *fractions, axis=(0, 2)) ** 2), [X], order=2)
    slope = tp.grad(lambda x: tp.sum(tp.nanmedian(x, axis=1)))(
        tp.asarray([[3.0, NAN, 1.0], [NAN, 5.0, NAN]])
    )
    assert slope.tolist() == [[0.5, 0, 0.5], [0, 1, 0]]


# Covariances -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_covariances(dtype):
    x = (X + 0.5j * X[..., ::-1]).astype(dtype) if dtype == "complex128" else X.astype(dtype)
    for correction in (0, 1, 0.5):
        wanted = [np.cov(item, ddof=0) * 5 / (5 - correction) for item in x]
        near(tp.cov(x, correction=correction), wanted, dtype)
        near(tp.cov(x[0, 0], correction=correction), wanted[0][0, 0], dtype)
    near(tp.corrcoef(x), [np.corrcoef(item) for item in x], dtype)
    near(tp.corrcoef(x[0, 0]), 1, dtype)


def test_covariances_at_the_edges():
    near(tp.cov([[1, 2], [1, 4]]), [[0.5, 1.5], [1.5, 4.5]], "float32")
    near(tp.cov([[1.0], [2.0]]), np.full((2, 2), NAN), "float32")
    near(tp.corrcoef([[1.0, 1.0], [0.0, 2.0]]), [[NAN, NAN], [NAN, 1]], "float32")


def test_gradients_of_covariances():
    weights = RANDOM.normal(size=(4, 4))
    for f in (tp.cov, tp.corrcoef):
        check_grads(lambda x, f=f: tp.sum(f(x) * weights), [X[0]], order=2)


BAD = [
    (lambda: tp.quantile(X, 1.5), ArgumentError, "quantile: q must lie between 0 and 1, got 1.5"),
    (lambda: tp.percentile(X, 101), ArgumentError, "percentile: q must lie between 0 and 100"),
    (lambda: tp.nanquantile(X, -1), ArgumentError, "nanquantile: q must lie between 0 and 1"),
    (lambda: tp.nanpercentile(X, 1j), DTypeError, "nanpercentile: q must hold real numbers"),
    (lambda: tp.nanmedian([1j]), DTypeError, "nanmedian: x must hold real numbers"),
    (lambda: tp.nanmedian(X, axis=3), ShapeError, "nanmedian: axis 3 is out of range"),
    (lambda: tp.quantile(X, [NAN]), ArgumentError, "q must lie between 0 and 1"),
    (lambda: tp.quantile(X, [[0.5]]), ShapeError, "a number or have rank 1"),
    (lambda: tp.quantile(X, 0.5, method="weibull"), ArgumentError, "of 'linear', .* 'weibull'"),
    (lambda: tp.median(X, axis=3), ShapeError, "median: axis 3"),
    (lambda: tp.median([1j]), DTypeError, "median: x must hold real numbers, got complex64"),
    (lambda: tp.cov(1.0), ShapeError, "cov: x must have at least rank 1"),
    (lambda: tp.cov(X, correction=None), ArgumentError, "cov: correction must be a real number"),
    (lambda: tp.corrcoef(1.0), ShapeError, "corrcoef: x must"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()
