"""Where a function has no derivative, or its formula divides 0 by 0: our conventions, by value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import DTypeError, NotConnectedError

NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def on_the_cpu() -> Any:
    with tp.use_backend("cpu"):
        yield


def same(actual: tp.Tensor, expected: Any) -> None:
    wanted = np.array(expected, np.float64)
    assert (actual.dtype, actual.shape) == (tp.float64, wanted.shape)
    np.testing.assert_array_equal(actual.numpy(), wanted)


def kernel(name: str, attributes: dict[str, Any] | None = None) -> Any:
    return lambda *inputs: tp.run_kernel(name, inputs, attributes or {})


def double(values: Any) -> tp.Tensor:
    return tp.asarray(values, dtype=tp.float64)


ONE_INPUT = [  # kernel, attributes, x, gradient of the sum of the result
    ("Abs", {}, [-2.0, -0.0, 0.0, 3.0], [-1, 0, 0, 1]),
    ("Abs", {}, [NAN, INF, -INF], [NAN, 1, -1]),
    ("Relu", {}, [-1.0, -0.0, 0.0, 2.0], [0, 0, 0, 1]),
    ("Relu", {}, [INF, -INF], [1, 0]),
    ("Sqrt", {}, [0.0, 4.0], [INF, 0.25]),
    ("Log", {}, [0.0, 2.0], [INF, 0.5]),
    ("Max", {}, [3.0, 1.0, 3.0, 3.0], [1 / 3, 0, 1 / 3, 1 / 3]),
    ("Min", {}, [1.0, 3.0, 1.0], [0.5, 0, 0.5]),
    ("Max", {"reduction_indices": 1}, [[2.0, 2.0], [0.0, 1.0]], [[0.5, 0.5], [0, 1]]),
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


@pytest.mark.parametrize(("name", "attributes", "x", "expected"), ONE_INPUT)
def test_one_input(name: str, attributes: dict[str, Any], x: Any, expected: Any) -> None:
    f = kernel(name, {"pad": "valid", **attributes} if name == "MaxPool" else attributes)

    def total(x: tp.Tensor) -> tp.Tensor:
        y = f(x)
        return tp.sum(y[0] if isinstance(y, list) else y)

    same(tp.grad(total)(double(x)), expected)


TWO_INPUTS = [  # kernel, a, b, gradients of the sum of the result
    ("Maximum", [1.0, 2.0, 3.0], [1.0, 3.0, 2.0], [0.5, 0, 1], [0.5, 1, 0]),
    ("Minimum", [1.0, 2.0, 3.0], [1.0, 3.0, 2.0], [0.5, 1, 0], [0.5, 0, 1]),
    ("Maximum", [0.0, -0.0], [-0.0, 0.0], [0.5, 0.5], [0.5, 0.5]),
    ("Maximum", [INF, -INF], [INF, -INF], [0.5, 0.5], [0.5, 0.5]),
    ("Maximum", [2.0, 2.0], 2.0, [0.5, 0.5], 1.0),
    ("Pow", [0.0, 0.0, 0.0], [0.0, 1.0, 2.0], [0, 1, 0], [0, 0, 0]),
    ("Pow", [2.0, 2.0, 2.0], [0.0, 1.0, 2.0], [0, 1, 4], [math.log(2) * p for p in (1, 2, 4)]),
    ("Pow", [-2.0, -2.0, -2.0], [0.0, 1.0, 2.0], [0, 1, -4], [0, 0, 0]),
    ("Pow", [0.0, 0.0], [0.5, 3.0], [INF, 0], [0, 0]),
    ("RealDiv", [1.0, 0.0], [2.0, 4.0], [0.5, 0.25], [-0.25, 0]),
    ("Mod", [5.0, -5.0], [3.0, 3.0], [1, 1], [-1, 2]),
    ("SquaredDifference", [1.0, 2.0], [1.0, 5.0], [0, -6], [0, 6]),
]


@pytest.mark.parametrize(("name", "a", "b", "wrt_a", "wrt_b"), TWO_INPUTS)
def test_two_inputs(name: str, a: Any, b: Any, wrt_a: Any, wrt_b: Any) -> None:
    f = kernel(name)
    gradients = tp.grad(lambda a, b: tp.sum(f(a, b)), (0, 1))(double(a), double(b))
    same(gradients[0], wrt_a)
    same(gradients[1], wrt_b)


SECOND_ORDER = [  # function, x, gradient of the sum of its gradient
    ("x**0", lambda x: x ** double(0.0), [0.0, 2.0], [0, 0]),
    ("x**1", lambda x: x ** double(1.0), [0.0, 2.0], [0, 0]),
    ("x**2", lambda x: x ** double(2.0), [0.0, 2.0, -3.0], [2, 2, 2]),
    ("x**3", lambda x: x ** double(3.0), [0.0, 2.0, -3.0], [0, 12, -18]),
    ("abs", tp.abs, [0.0, 2.0, -3.0], [0, 0, 0]),
    ("relu", tp.nn.relu, [0.0, 2.0, -3.0], [0, 0, 0]),
    # The sum of d(xyz)/dx + d/dy + d/dz = yz + xz + xy; its gradient is (y+z, x+z, x+y).
    ("prod, one zero", tp.prod, [0.0, 3.0, 5.0], [8, 5, 3]),
    ("prod, two zeros", tp.prod, [0.0, 3.0, 0.0], [3, 0, 3]),
    ("prod, three zeros", tp.prod, [0.0, 0.0, 0.0], [0, 0, 0]),
    ("max, tied, squared", lambda x: tp.max(x) ** 2, [3.0, 3.0, 1.0], [1, 1, 0]),
    ("maximum with itself", lambda x: tp.maximum(x, x) ** 2, [3.0], [2]),
]


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [each[1:] for each in SECOND_ORDER],
    ids=[each[0] for each in SECOND_ORDER],
)
def test_second_order(f: Any, x: Any, expected: Any) -> None:
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


COMPARISONS = ["Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"]


@pytest.mark.parametrize("name", [*COMPARISONS, "FloorDiv"])
def test_a_path_through_a_stop_is_no_path(name: str) -> None:
    def through(x: tp.Tensor) -> tp.Tensor:
        return tp.astype(kernel(name)(x, double(1.0)), tp.float64)

    with pytest.raises(NotConnectedError, match=r"float64\[2\].*unconnected='zeros'"):
        tp.grad(through)(double([1.0, 2.0]))
    same(tp.grad(through, unconnected="zeros")(double([1.0, 2.0])), [0, 0])
    # Beside the path a stop changes nothing.
    same(tp.grad(lambda x: x * through(x) * 0 + x)(double([1.0, 2.0])), [1, 1])


@pytest.mark.parametrize(
    "f",
    [
        tp.floor,
        tp.argmax,
        lambda x: tp.any(x > 0),
        lambda x: tp.astype(x, tp.int32),
        lambda x: tp.topk(x, 1)[1],
        tp.zeros_like,
        tp.ones_like,
        tp.stop_gradient,
    ],
)
def test_other_stops(f: Any) -> None:
    with pytest.raises(NotConnectedError):
        tp.grad(f)(double([1.5, 2.5]))
    same(tp.grad(f, unconnected="zeros")(double([1.5, 2.5])), [0, 0])


def test_one_of_two_arguments_unconnected() -> None:
    x, y = double([1.0, 2.0]), double(3.0)
    with pytest.raises(NotConnectedError, match=r"float64\[\]"):
        tp.grad(lambda x, _: x * 2, (0, 1))(x, y)
    both = tp.grad(lambda x, _: x * 2, (0, 1), unconnected="zeros")(x, y)
    same(both[0], [2, 2])
    same(both[1], 0)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "int64"])
def test_only_floats_can_be_differentiated(dtype: str) -> None:
    with pytest.raises(DTypeError, match=rf"argument 0 is {dtype}\[2\].*floating"):
        tp.grad(lambda x: tp.astype(x, tp.float32))(tp.asarray([0, 1], dtype=dtype))


def test_where_sends_the_gradient_to_the_branch_taken() -> None:
    f = lambda x: tp.where(x > 0, x**2, -3.0 * x)  # noqa: E731  # the scenario as it is written
    same(tp.grad(f)(double([-1.0, 0.0, 2.0])), [-3, -3, 4])


def test_where_with_a_safe_operand_hides_an_infinite_branch() -> None:
    def f(x: tp.Tensor) -> tp.Tensor:
        safe = tp.where(x > 0, x, 1.0)
        return tp.where(x > 0, tp.sqrt(safe), 0.0)

    same(tp.grad(f)(double([0.0, 4.0])), [0, 0.25])
