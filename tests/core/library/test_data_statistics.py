"""Running log-sums, against NumPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError, TensorplugError
from tensorplug.testing import check_grads

pytestmark = pytest.mark.usefixtures("on_the_cpu")

NAN, INF = math.nan, math.inf
RANDOM = np.random.default_rng(7)
X = RANDOM.uniform(-3, 3, (3, 4, 5))


def near(actual, expected, dtype):
    wanted = np.asarray(expected)
    assert (actual.dtype.name, actual.shape) == (dtype, wanted.shape)
    tolerance = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(
        actual.numpy(), wanted.astype(dtype), rtol=tolerance, atol=tolerance
    )


# Running log-sums ------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shift", [0.0, 1000.0, -1000.0])
def test_running_log_sums(axis, shift):
    wanted = np.logaddexp.accumulate(X + shift, axis=axis)
    near(tp.cumulative_log_sum_exp(X + shift, axis=axis), wanted, "float64")
    first = np.insert(wanted, 0, -INF, axis=axis)
    near(tp.cumulative_log_sum_exp(X + shift, axis=axis, include_initial=True), first, "float64")


def test_running_log_sums_at_the_edges():
    near(tp.cumulative_log_sum_exp([-INF, -INF, 1.0]), [-INF, -INF, 1], "float32")
    near(tp.cumulative_log_sum_exp([INF, 1.0, -INF]), [INF, INF, INF], "float32")
    near(tp.cumulative_log_sum_exp([1.0, NAN, 1.0]), [1, NAN, NAN], "float32")
    near(tp.cumulative_log_sum_exp([0, 0]), [0, np.log(2)], "float32")
    near(tp.cumulative_log_sum_exp(np.zeros(0, "f4")), np.zeros(0), "float32")
    many = np.zeros(1 << 16, np.float32)
    near(tp.cumulative_log_sum_exp(many), np.log(np.arange(1, many.size + 1)), "float32")


def test_gradients_of_running_log_sums():
    weights = RANDOM.normal(size=X.shape)
    for axis in (0, 2):
        f = lambda x, axis=axis: tp.sum(tp.cumulative_log_sum_exp(x, axis=axis) * weights)  # noqa: E731
        check_grads(f, [X], order=2)
    x = tp.asarray([-INF, -INF, 1.0])
    slope = tp.grad(lambda x: tp.cumulative_log_sum_exp(x)[2])(x)
    assert slope.tolist() == [0, 0, 1]


BAD = [
    (lambda: tp.cumulative_log_sum_exp(X), ArgumentError, "axis is required"),
    (lambda: tp.cumulative_log_sum_exp(1.0), ShapeError, "at least rank 1"),
    (lambda: tp.cumulative_log_sum_exp([1j]), DTypeError, "must hold real numbers"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_calls(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, TensorplugError)
