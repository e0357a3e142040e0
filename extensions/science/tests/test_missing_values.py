"""Reductions without NaN, and numbers in its place, against NumPy's."""

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


NAN_OPS = ["nansum", "nanmean", "nanmax", "nanmin", "nanprod", "nanvar", "nanstd"]


@pytest.mark.filterwarnings("ignore:All-NaN", "ignore:Mean of empty", "ignore:Degrees of freedom")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
@pytest.mark.parametrize("name", NAN_OPS)
def test_reductions_without_nan(name, axis, dtype):
    x = HOLED.astype(dtype)
    for keep in (False, True):
        wanted = getattr(np, name)(x.astype("f8"), axis=axis, keepdims=keep)
        near(getattr(tp, name)(x, axis=axis, keepdims=keep), wanted, dtype)


def test_missing_values_at_the_edges():
    assert tp.nanmax([-INF, NAN]).item() == -INF
    assert tp.nanmin([INF, NAN]).item() == INF
    assert math.isnan(tp.nanmax([NAN, NAN]).item())
    assert math.isnan(tp.nanmean([NAN]).item())
    assert tp.nansum([NAN]).item() == 0
    assert tp.nansum([1, 2]).dtype is tp.int32
    assert tp.nansum([1.0, NAN], dtype="float64").dtype is tp.float64
    assert tp.nanmax([1, 2]).dtype is tp.int32
    near(tp.nanmean([1, 2]), 1.5, "float32")
    assert tp.nansum(np.array([1j, complex(NAN, 1)])).item() == 1j
    many = np.full(5000, 100, np.float16)
    near(tp.nanmean(many), 100, "float16")  # the sum is no float16, nor is the count exact


@pytest.mark.filterwarnings("ignore:Degrees of freedom")
@pytest.mark.parametrize("correction", [0, 1, 0.5, 3, np.float32(1)])
@pytest.mark.parametrize("name", ["nanvar", "nanstd"])
def test_corrections_without_nan(name, correction):
    for axis in (None, 0, (1, 2)):
        wanted = getattr(np, name)(HOLED, axis=axis, ddof=correction)
        wanted = np.where(np.isinf(wanted), NAN, wanted)  # of a division by zero
        near(getattr(tp, name)(HOLED, axis=axis, correction=correction), wanted, "float64")
    near(getattr(tp, name)([1, 3, 5], correction=1), {"nanvar": 4, "nanstd": 2}[name], "float32")
    assert math.isnan(getattr(tp, name)(np.zeros(0, "f4")).item())
    assert math.isnan(getattr(tp, name)([1.0, INF]).item())
    flat = tp.grad(tp.nanstd)(tp.asarray([2.0, NAN, 2.0]))
    assert flat.tolist() == [0, 0, 0]


def test_products_without_nan():
    assert tp.nanprod([NAN]).item() == 1
    assert tp.nanprod([2, 3]).dtype is tp.int32
    assert tp.nanprod([2.0, NAN, 4.0], dtype="float64").item() == 8


def test_nan_to_num():
    x = np.array([NAN, INF, -INF, 2.0], np.float32)
    near(tp.nan_to_num(x), np.nan_to_num(x), "float32")
    given = {"nan": 1.0, "posinf": 5.0, "neginf": -6.0}
    near(tp.nan_to_num(x, **given), np.nan_to_num(x, **given), "float32")
    assert tp.nan_to_num([1, 2]).tolist() == [1, 2]
    slope = tp.grad(lambda x: tp.sum(tp.nan_to_num(x) * 3))(tp.asarray(x))
    assert slope.tolist() == [0, 0, 0, 3]


@pytest.mark.parametrize("name", NAN_OPS)
def test_gradients_without_nan(name):
    f = getattr(tp, name)
    x = tp.asarray([[1.0, NAN, 4.0], [2.0, 7.0, NAN]])
    slope = tp.grad(lambda x: tp.sum(f(x, axis=1)))(x).tolist()
    wanted = {
        "nansum": [[1, 0, 1], [1, 1, 0]],
        "nanmean": [[0.5, 0, 0.5], [0.5, 0.5, 0]],
        "nanmax": [[0, 0, 1], [0, 1, 0]],
        "nanmin": [[1, 0, 0], [1, 0, 0]],
        "nanprod": [[4, 0, 1], [7, 2, 0]],
        "nanvar": [[-1.5, 0, 1.5], [-2.5, 2.5, 0]],  # ((a - b) / 2)**2 of two numbers
        "nanstd": [[-0.5, 0, 0.5], [-0.5, 0.5, 0]],
    }
    assert slope == wanted[name]
    check_grads(lambda x: tp.sum(f(x, axis=(0, 2)) ** 2), [X], order=2)


BAD = [
    (lambda: tp.nanvar([1j]), DTypeError, "nanvar: x must hold real numbers"),
    (lambda: tp.nanstd(X, correction="a"), ArgumentError, "nanstd: correction must be a real"),
    (lambda: tp.nanvar(X, axis=3), ShapeError, "nanvar: axis 3 is out of range"),
    (lambda: tp.nanprod(["a"]), DTypeError, "nanprod: x must hold numbers"),
    (lambda: tp.nanmax([1j]), DTypeError, "nanmax: x must hold real"),
    (lambda: tp.nanmax(X[:0]), ShapeError, "the reduced axes must not be empty"),
    (lambda: tp.nansum(["a"]), DTypeError, "nansum: x must hold numbers, got string"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()
