"""Gradients where there is no derivative, or a formula divides 0 by 0: the conventions by value.

The conformance suite has some of them; here are the others.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensorplug as tp

NAN, INF = math.nan, math.inf


pytestmark = pytest.mark.usefixtures("on_the_cpu")


def same(actual: tp.Tensor, expected: Any) -> None:
    wanted = np.array(expected, np.float64)
    assert (actual.dtype, actual.shape) == (tp.float64, wanted.shape)
    np.testing.assert_array_equal(actual.numpy(), wanted)


def kernel(name: str, attributes: dict[str, Any] | None = None) -> Any:
    return lambda *inputs: tp.run_kernel(name, inputs, attributes or {})


def double(values: Any) -> tp.Tensor:
    return tp.asarray(values, dtype=tp.float64)


ONE_INPUT = [  # kernel, attributes, x, gradient of the sum of the result
    ("Abs", {}, [NAN, INF, -INF], [NAN, 1, -1]),
    ("Relu", {}, [INF, -INF], [1, 0]),
    ("Sqrt", {}, [0.0, 4.0], [INF, 0.25]),
    ("Log", {}, [0.0, 2.0], [INF, 0.5]),
    ("Min", {"axis": 0}, [[2.0, 2.0], [2.0, 1.0]], [[0.5, 0], [0.5, 1]]),
    ("Max", {}, [-INF, -INF], [0.5, 0.5]),
    ("Max", {}, [INF, 0.0], [1, 0]),
    ("Prod", {}, [2.0, 3.0, 4.0], [12, 8, 6]),
    ("Prod", {}, [2.0, 0.0, 4.0], [0, 8, 0]),
    ("Prod", {}, [0.0, 3.0, 0.0], [0, 0, 0]),
    ("Prod", {"axis": 0}, [[0.0, 2.0], [5.0, 0.0], [3.0, 7.0]], [[15, 0], [0, 14], [0, 0]]),
    ("Softmax", {}, [0.0, -INF], [0, 0]),
    ("Sigmoid", {}, [-INF, 0.0, INF, -1000.0], [0, 0.25, 0, 0]),
    ("Tanh", {}, [-INF, 0.0, INF], [0, 1, 0]),
    ("TopK", {"k": 2}, [5.0, 7.0, 7.0, 5.0, 7.0], [0, 1, 1, 0, 0]),
    (
        "MaxPool",
        {"filter_size": 2, "strides": 2},
        np.ones((1, 2, 2, 1)),
        [[[[1], [0]], [[0], [0]]]],
    ),
    # Overlapping windows of equal elements: each gives to the first that it sees.
    (
        "MaxPool",
        {"filter_size": (1, 2), "strides": 1},
        np.ones((1, 1, 4, 1)),
        [[[[1], [1], [1], [0]]]],
    ),
    (
        "MaxPool",
        {"filter_size": (1, 3), "strides": 1, "pad": "same"},
        np.zeros((1, 1, 3, 1)),
        [[[[2], [1], [0]]]],
    ),
    # A NaN is the maximum, and the first of several.
    (
        "MaxPool",
        {"filter_size": (1, 4), "strides": 1},
        [[[[9.0], [NAN], [INF], [NAN]]]],
        [[[[0], [1], [0], [0]]]],
    ),
    # Padding never wins, not even against the smallest element there is.
    (
        "MaxPool",
        {"filter_size": (1, 2), "strides": 2, "pad": ((0, 0), (0, 0), (1, 0), (0, 0))},
        [[[[-INF], [-INF], [5.0]]]],
        [[[[1], [0], [1]]]],
    ),
]


EDGES = [  # where a slope changes, is infinite, or the formula of the rule divides 0 by 0
    ("Elu", {}, [0.0, -0.0, INF, -INF], [1, 1, 1, 0]),
    ("Selu", {}, [0.0, 1.0], [1.7580993408473766, 1.0507009873554805]),
    ("Rsqrt", {}, [0.0, 4.0], [-INF, -0.0625]),
    ("Reciprocal", {}, [0.0, 2.0], [-INF, -0.25]),
    ("Log1p", {}, [-1.0, 0.0], [INF, 1]),
    ("Asin", {}, [1.0, -1.0, 0.0], [INF, INF, 1]),
    ("Acos", {}, [1.0, -1.0, 0.0], [-INF, -INF, -1]),
    ("Acosh", {}, [1.0, INF], [INF, 0]),
    ("Atanh", {}, [1.0, -1.0], [INF, INF]),
    ("LogSoftmax", {}, [-INF, 0.0, 0.0], [1, -0.5, -0.5]),
    ("Cumprod", {}, [0.0, 2.0, 0.0], [3, 0, 0]),
    ("Cumprod", {}, [2.0, 0.0, 3.0], [1, 8, 0]),
    ("Cumprod", {"exclusive": True}, [0.0, 0.0, 3.0], [1, 0, 0]),
    ("MatrixDeterminant", {}, [[0.0]], [[1]]),
    ("MatrixDeterminant", {}, [[1.0, 2.0], [2.0, 4.0]], [[4, -2], [-2, 1]]),
    ("MatrixDeterminant", {}, np.diag([0.0, 2.0, 3.0]), np.diag([6, 0, 0])),
    ("MatrixDeterminant", {}, np.zeros((3, 3)), np.zeros((3, 3))),
    (
        "AvgPool",
        {"filter_size": 1, "strides": 1, "pad": ((0, 0), (0, 0), (1, 1), (0, 0))},
        np.ones((1, 1, 1, 1)),
        [[[[1]]]],
    ),
    (
        "MaxPool3D",
        {"filter_size": (1, 1, 2), "strides": 1, "pad": "valid"},
        np.ones((1, 1, 1, 3, 1)),
        [[[[[1], [1], [0]]]]],
    ),
    (
        "MaxPoolWithArgmax",
        {"filter_size": (1, 2), "strides": 1, "pad": "valid"},
        np.ones((1, 1, 3, 1)),
        [[[[1], [1], [0]]]],
    ),
    (
        "Pool",
        {"window_shape": 2, "pooling_type": "max", "pad": "valid"},
        np.ones((1, 3, 1)),
        [[[1], [1], [0]]],
    ),
]


@pytest.mark.parametrize(("name", "attributes", "x", "expected"), [*ONE_INPUT, *EDGES])
def test_kinks_of_kernels_of_one_input(
    name: str, attributes: dict[str, Any], x: Any, expected: Any
) -> None:
    f = kernel(name, {"pad": "valid", **attributes} if name == "MaxPool" else attributes)

    def total(x: tp.Tensor) -> tp.Tensor:
        y = f(x)
        return tp.sum(y[0] if isinstance(y, list) else y)

    same(tp.grad(total)(double(x)), expected)


TWO_INPUTS = [  # kernel, a, b, gradients of the sum of the result
    ("Maximum", [0.0, -0.0], [-0.0, 0.0], [0.5, 0.5], [0.5, 0.5]),
    ("Maximum", [INF, -INF], [INF, -INF], [0.5, 0.5], [0.5, 0.5]),
    ("Maximum", [2.0, 2.0], 2.0, [0.5, 0.5], 1.0),
    ("Pow", [0.0, 0.0, 0.0], [0.0, 1.0, 2.0], [0, 1, 0], [0, 0, 0]),
    ("Pow", [2.0, 2.0, 2.0], [0.0, 1.0, 2.0], [0, 1, 4], [math.log(2) * p for p in (1, 2, 4)]),
    ("Pow", [-2.0, -2.0, -2.0], [0.0, 1.0, 2.0], [0, 1, -4], [0, 0, 0]),
    ("Pow", [0.0, 0.0], [0.5, 3.0], [INF, 0], [0, 0]),
    ("RealDiv", [1.0, 0.0], [2.0, 4.0], [0.5, 0.25], [-0.25, 0]),
    ("Mod", [5.0, -5.0], [3.0, 3.0], [1, 1], [-1, 2]),
    ("Mod", [4.0, -4.0], [2.0, 2.0], [1, 1], [-2, 2]),
    ("SquaredDifference", [1.0, 2.0], [1.0, 5.0], [0, -6], [0, 6]),
    ("Atan2", [0.0, -0.0, 0.0, 2.0], [0.0, 0.0, -2.0, 0.0], [0, 0, -0.5, 0], [0, 0, 0, -0.5]),
    ("Hypot", [0.0, 0.0, 3.0], [0.0, -2.0, 4.0], [0, 0, 0.6], [0, -1, 0.8]),
    ("Prelu", [0.0, -2.0, 2.0], [0.5, 0.5, 0.5], [0.5, 0.5, 1], [0, -2, 0]),
    ("CopySign", [0.0, 0.0, -0.0], [1.0, -0.0, -1.0], [1, -1, 1], [0, 0, 0]),
]


@pytest.mark.parametrize(("name", "a", "b", "wrt_a", "wrt_b"), TWO_INPUTS)
def test_kinks_of_kernels_of_two_inputs(name: str, a: Any, b: Any, wrt_a: Any, wrt_b: Any) -> None:
    f = kernel(name)
    both = tp.grad(lambda a, b: tp.sum(f(a, b)), (0, 1), unconnected="zeros")
    gradients = both(double(a), double(b))
    same(gradients[0], wrt_a)
    same(gradients[1], wrt_b)


SECOND_ORDER = [  # function, x, gradient of the sum of its gradient
    ("x**0", lambda x: x ** double(0.0), [0.0, 2.0], [0, 0]),
    ("x**1", lambda x: x ** double(1.0), [0.0, 2.0], [0, 0]),
    ("x**2", lambda x: x ** double(2.0), [0.0, 2.0, -3.0], [2, 2, 2]),
    ("x**3", lambda x: x ** double(3.0), [0.0, 2.0, -3.0], [0, 12, -18]),
    ("x**0 near 0", lambda x: x**0.0, [1e-300, -1e-200, 1e-160], [0, 0, 0]),
    ("abs", tp.abs, [0.0, 2.0, -3.0], [0, 0, 0]),
    ("elu", tp.nn.elu, [0.0, -0.0, 2.0, -math.inf], [1, 1, 0, 0]),
    ("silu", tp.nn.silu, [0.0, -math.inf, math.inf], [0.5, 0, 0]),
    ("sigmoid", tp.nn.sigmoid, [0.0, -math.inf, math.inf], [0, 0, 0]),
    ("relu", tp.nn.relu, [0.0, 2.0, -3.0], [0, 0, 0]),
    # The sum of d(xyz)/dx + d/dy + d/dz = yz + xz + xy; its gradient is (y+z, x+z, x+y).
    ("prod, one zero", tp.prod, [0.0, 3.0, 5.0], [8, 5, 3]),
    ("prod, two zeros", tp.prod, [0.0, 3.0, 0.0], [3, 0, 3]),
    ("prod, three zeros", tp.prod, [0.0, 0.0, 0.0], [0, 0, 0]),
    ("max, tied, squared", lambda x: tp.max(x) ** 2, [3.0, 3.0, 1.0], [1, 1, 0]),
    ("det of zeros", tp.linalg.det, [[0.0, 0.0], [0.0, 0.0]], [[1, -1], [-1, 1]]),
    ("maximum with itself", lambda x: tp.maximum(x, x) ** 2, [3.0], [2]),
]


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [row[1:] for row in SECOND_ORDER],
    ids=[row[0] for row in SECOND_ORDER],
)
def test_second_derivatives_at_kinks(f: Any, x: Any, expected: Any) -> None:
    first = tp.grad(lambda x: tp.sum(f(x)))
    # Where the first gradient is constant, as relu's, nothing leads back from it to x.
    second = tp.grad(lambda x: tp.sum(first(x)), unconnected="zeros")
    same(second(double(x)), expected)


def test_pow_has_one_mixed_second_derivative_at_power_0() -> None:
    # d2/dadb a**b = a**(b-1) * (1 + b ln a), which is 1/a at b = 0, in either order.
    def wrt(first: int, second: int) -> tp.Tensor:
        inner = tp.grad(lambda a, b: a**b, first)
        return tp.grad(inner, second)(double(4.0), double(0.0))

    same(wrt(0, 1), 0.25)
    same(wrt(1, 0), 0.25)


def test_a_small_number_has_a_slope_of_its_logarithm() -> None:
    x = double([3e-309])  # 1 / x is infinite, 1 / (x ln 10) is not
    slope = tp.grad(lambda x: tp.sum(tp.log10(x)))(x).numpy()
    np.testing.assert_allclose(slope, [1 / np.log(10) * 1e300 / 3e-9], rtol=1e-14)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_the_third_derivatives_of_powers_near_0_are_0(power: float) -> None:
    f: Any = lambda x: x**power  # noqa: E731  # replaced by its derivatives
    for _ in range(3):
        f = tp.grad(lambda x, f=f: tp.sum(f(x)), unconnected="zeros")
    same(f(double([1e-160, -1e-200, 0.0])), [0, 0, 0])
