"""Statistics against exact fractions and NumPy in wider arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.random.default_rng(2).uniform(-3, 3, (3, 4, 5))
INF, NAN = np.inf, np.nan


def near(actual, expected, dtype, shape=None):
    wanted = np.asarray(expected)
    assert (actual.dtype.name, actual.shape) == (dtype, wanted.shape if shape is None else shape)
    tolerance = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(
        actual.numpy(), wanted.astype(dtype), rtol=tolerance, atol=tolerance
    )


def variance(x, axis, correction, *, keep):
    away = x - np.mean(x, axis=axis, keepdims=True)
    count = away.size // np.sum(away, axis=axis).size - correction
    with np.errstate(all="ignore"):
        return np.sum(away**2, axis=axis, keepdims=keep) / (count if count > 0 else NAN)


@pytest.mark.parametrize("correction", [0, 1, 0.5, 3.0])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_variance_and_deviation(dtype, axis, correction):
    x = X.astype(dtype)
    given = {"axis": axis, "correction": correction}
    for keep in (False, True):
        wanted = variance(x.astype(np.longdouble), axis, correction, keep=keep)
        near(tp.var(x, keepdims=keep, **given), wanted, dtype)
        near(tp.std(x, keepdims=keep, **given), np.sqrt(wanted), dtype)


def test_variance_at_the_edges():
    near(tp.var([1, 2, 4]), 14 / 9, "float32")
    near(tp.std([True, False]), 0.5, "float32")
    near(tp.var(np.array([30000, -30000], np.float16)), INF, "float16")  # 9e8 is no float16
    near(tp.std(np.array([300, -300], np.float16)), 300, "float16")  # and 9e4 on the way neither
    near(tp.var(np.zeros((2, 0), np.float32), axis=1), [NAN, NAN], "float32")
    near(tp.var(np.array([1e8, 1e8 + 1, 1e8 + 2])), 2 / 3, "float64")
    near(tp.std([1.0, NAN]), NAN, "float32")


def test_the_gradient_of_a_deviation_of_0_is_0():
    x = tp.asarray([[2.0, 2.0], [1.0, 3.0]])
    slope = tp.grad(lambda x: tp.sum(tp.std(x, axis=1)))(x)
    near(slope, [[0, 0], [-0.5, 0.5]], "float32")


LOG_SUMS = {
    "large": ([1000.0, 1000.0], 1000 + np.log(2)),
    "small": ([-1000.0, -1000.0], -1000 + np.log(2)),
    "minus infinity": ([-INF, -INF], -INF),
    "some minus infinity": ([-INF, 3.0], 3),
    "infinity": ([INF, 0.0], INF),
    "both infinities": ([INF, -INF], INF),
    "NaN": ([NAN, INF], NAN),
    "nothing": (np.zeros(0, np.float32), -INF),
    "integers": ([0, 0, 0, 0], np.log(4)),
}


@pytest.mark.parametrize("what", LOG_SUMS)
def test_log_sum_exp(what):
    x, wanted = LOG_SUMS[what]
    near(tp.log_sum_exp(x), wanted, "float32")


@pytest.mark.parametrize("axis", [None, 1, (0, -1), ()])
def test_log_sum_exp_along_axes(axis):
    for keep in (False, True):
        wanted = np.log(np.sum(np.exp(X), axis=axis, keepdims=keep))
        near(tp.log_sum_exp(X, axis=axis, keepdims=keep), wanted, "float64")


BAD = [
    (lambda: tp.var(X, correction="1"), ArgumentError, "var: correction must be a real number"),
    (lambda: tp.std(X, axis=3), ShapeError, "std: axis 3"),
    (lambda: tp.std([1j]), DTypeError, "std: x must hold real numbers, got complex64"),
    (lambda: tp.log_sum_exp(X, axis=(0, 0)), ShapeError, "log_sum_exp: axis .* twice"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()
