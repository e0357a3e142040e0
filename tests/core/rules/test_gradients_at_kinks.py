"""Gradients where there is no derivative, or a formula divides 0 by 0: the conventions by value.

The conformance suite has some of them; here are the others.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.core.support.gradient_conventions import CONVENTIONS
from tests.core.support.gradient_points import SUITE_KINKS
from tests.core.support.tensors import total

import tensorplug as tp
from tensorplug.errors import DTypeError, NotConnectedError

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


EDGES = [  # where a slope changes, is infinite, or the formula of the rule divides 0 by 0
    ("Relu6", {}, [0.0, 6.0, -1.0, 7.0], [0, 1, 0, 0]),
    ("LeakyRelu", {"alpha": 0.25}, [0.0, -0.0, 1.0], [0.25, 0.25, 1]),
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
    ("Mod", [4.0, -4.0], [2.0, 2.0], [1, 1], [-2, 2]),
    ("SquaredDifference", [1.0, 2.0], [1.0, 5.0], [0, -6], [0, 6]),
    ("Atan2", [0.0, -0.0, 0.0, 2.0], [0.0, 0.0, -2.0, 0.0], [0, 0, -0.5, 0], [0, 0, 0, -0.5]),
    ("Hypot", [0.0, 0.0, 3.0], [0.0, -2.0, 4.0], [0, 0, 0.6], [0, -1, 0.8]),
    ("LogAddExp", [INF, -INF, 1.0], [INF, -INF, 1.0], [0.5, 0.5, 0.5], [0.5, 0.5, 0.5]),
    ("DivNoNan", [1.0, 0.0, 1.0], [0.0, 0.0, 2.0], [0, 0, 0.5], [0, 0, -0.25]),
    ("Prelu", [0.0, -2.0, 2.0], [0.5, 0.5, 0.5], [0.5, 0.5, 1], [0, -2, 0]),
    ("CopySign", [0.0, 0.0, -0.0], [1.0, -0.0, -1.0], [1, -1, 1], [0, 0, 0]),
]


@pytest.mark.parametrize(("name", "a", "b", "wrt_a", "wrt_b"), TWO_INPUTS)
def test_two_inputs(name: str, a: Any, b: Any, wrt_a: Any, wrt_b: Any) -> None:
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
        tp.grad(total(through))(double([1.0, 2.0]))
    same(tp.grad(total(through), unconnected="zeros")(double([1.0, 2.0])), [0, 0])
    # Beside the path a stop changes nothing.
    same(tp.grad(total(lambda x: x * through(x) * 0 + x))(double([1.0, 2.0])), [1, 1])


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
        tp.grad(total(f))(double([1.5, 2.5]))
    same(tp.grad(total(f), unconnected="zeros")(double([1.5, 2.5])), [0, 0])


def test_one_of_two_arguments_unconnected() -> None:
    x, y = double([1.0, 2.0]), double(3.0)
    with pytest.raises(NotConnectedError, match=r"float64\[\]"):
        tp.grad(total(lambda x, _: x * 2), (0, 1))(x, y)
    both = tp.grad(total(lambda x, _: x * 2), (0, 1), unconnected="zeros")(x, y)
    same(both[0], [2, 2])
    same(both[1], 0)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "int64"])
def test_only_floats_can_be_differentiated(dtype: str) -> None:
    with pytest.raises(DTypeError, match=rf"argument 0 is {dtype}\[2\].*floating"):
        tp.grad(lambda x: tp.astype(x, tp.float32))(tp.asarray([0, 1], dtype=dtype))


def test_where_sends_the_gradient_to_the_branch_taken() -> None:
    f = lambda x: tp.where(x > 0, x**2, -3.0 * x)  # noqa: E731  # as in the scenario
    same(tp.grad(total(f))(double([-1.0, 0.0, 2.0])), [-3, -3, 4])


def test_where_leaves_a_nan_of_the_branch_not_taken() -> None:
    # The slope of log at 0 is infinite, and 0 * inf is NaN: where cannot repair that.
    same(tp.grad(total(lambda x: tp.where(x > 0, tp.log(x), 0.0)))(double([0.0, 2.0])), [NAN, 0.5])


def test_where_with_a_safe_operand_hides_an_infinite_branch() -> None:
    def f(x: tp.Tensor) -> tp.Tensor:
        safe = tp.where(x > 0, x, 1.0)
        return tp.where(x > 0, tp.sqrt(safe), 0.0)

    same(tp.grad(total(f))(double([0.0, 4.0])), [0, 0.25])


# Equal elements keep their order: dy is not shared, but follows the index.
ORDERED = [  # kernel, attributes, x, dy, gradient
    ("Sort", {}, [2.0, 1.0, 2.0, 1.0], [10, 20, 30, 40], [30, 10, 40, 20]),
    ("Sort", {"descending": True}, [2.0, 1.0, 2.0, 1.0], [10, 20, 30, 40], [10, 30, 20, 40]),
    ("TopK", {"k": 3}, [5.0, 7.0, 7.0, 5.0], [10, 20, 30], [30, 10, 20, 0]),
]


@pytest.mark.parametrize(("name", "attributes", "x", "dy", "expected"), ORDERED)
def test_equals_keep_their_order(
    name: str, attributes: dict[str, Any], x: Any, dy: Any, expected: Any
) -> None:
    def first(x: tp.Tensor) -> tp.Tensor:
        y = kernel(name, attributes)(x)
        return y[0] if isinstance(y, list) else y

    _, vjp = tp.vjp(first, double(x))
    same(vjp(double(dy))[0], expected)


SQUARES = np.array([0.0, 1, 4, 9, 16]).reshape(1, 1, 5, 1)
OTHERS = [  # kernel, inputs, attributes, by which of them, gradient of the sum of the result
    (
        "Dilation2D",
        {"x": np.ones((1, 1, 3, 1)), "filter": np.zeros((1, 2, 1))},
        {"strides": 1, "pad": "valid"},
        "x",
        [[[[1], [1], [0]]]],
    ),
    (
        "Dilation2D",
        {"x": np.ones((1, 1, 3, 1)), "filter": np.zeros((1, 2, 1))},
        {"strides": 1, "pad": "valid"},
        "filter",
        [[[2], [0]]],
    ),
    # The sum of the last output, which is of vectors; of equal values any turned ones would do.
    ("SelfAdjointEigV2", {"input": np.eye(2)}, {}, "input", np.zeros((2, 2))),
    ("Svd", {"input": np.eye(2)}, {}, "input", np.zeros((2, 2))),
    *(
        (
            "TensorScatterReduce",
            {"tensor": np.ones(1), "indices": np.zeros((4, 1), int), "updates": updates},
            {"reduction": reduction},
            "updates",
            wanted,
        )
        for reduction, updates, wanted in (
            ("max", np.array([0.0, 1, -1, 1]), [0, 1 / 3, 0, 1 / 3]),
            ("multiply", np.array([2.0, 0, 3, 4]), [0, 24, 0, 0]),
            ("multiply", np.array([2.0, 0, 0, 4]), [0, 0, 0, 0]),
        )
    ),
    (
        "TensorScatterUpdate",
        {"tensor": np.zeros(3), "indices": np.array([[1], [1]]), "updates": np.ones(2)},
        {},
        "updates",
        [0, 1],
    ),
    (
        "SparseToDense",
        {"sparse_indices": np.array([1, 1, 0]), "sparse_values": np.ones(3)},
        {"output_shape": (3,)},
        "sparse_values",
        [0, 1, 1],
    ),
    (
        "Select",
        {"condition": np.array([True, False]), "t": np.array([1.0, INF]), "e": np.array([NAN, 2])},
        {},
        "t",
        [1, 0],
    ),
    (
        "Transform",
        {"image": SQUARES, "transforms": np.array([[1.0, 0, 1, 0, 1, 0, 0, 0]])},
        {"interpolation": "bilinear", "output_shape": (1, 1)},
        "transforms",
        [[0, 0, 3, 0, 0, -1, 0, 0]],
    ),
    *(
        (  # on the last pixel
            "Transform",
            {"image": SQUARES, "transforms": np.array([[1.0, 0, 4, 0, 1, 0, 0, 0]])},
            {
                "interpolation": "bilinear",
                "fill_mode": mode,
                "fill_value": 100,
                "output_shape": (1, 1),
            },
            "transforms",
            [[0, 0, slope, 0, 0, down, 0, 0]],
        )
        for mode, slope, down in (
            ("constant", 84, 84),
            ("nearest", 7, 0),
            ("reflect", 7, 0),
            ("wrap", 7, 0),
        )
    ),
    (
        "NonMaxSuppressionV5",
        {"boxes": np.array([[0.0, 0, 1, 1], [0, 0, 1, 1]]), "scores": np.array([1.0, 1])},
        {"max_output_size": 2},
        "scores",
        [1, 0],
    ),
]


@pytest.mark.parametrize(("name", "inputs", "attributes", "wrt", "expected"), OTHERS)
def test_one_of_several_inputs(
    name: str, inputs: dict[str, Any], attributes: dict[str, Any], wrt: str, expected: Any
) -> None:
    def total(x: tp.Tensor) -> tp.Tensor:
        y = tp.run_kernel(name, {**inputs, wrt: x}, attributes)
        return tp.sum(y[-1] if isinstance(y, list) else y)

    same(tp.grad(total)(double(inputs[wrt])), expected)


COMPOSED = {  # function, x, gradient of its sum
    "norm at 0": (tp.linalg.vector_norm, [0.0, 0.0], [0, 0]),
    "norm 1": (lambda x: tp.linalg.vector_norm(x, ord=1), [0.0, -2.0], [0, -1]),
    "norm inf": (lambda x: tp.linalg.vector_norm(x, ord=INF), [1.0, -1.0, 0.5], [0.5, -0.5, 0]),
    "norm 1/2": (lambda x: tp.linalg.vector_norm(x, ord=0.5), [0.0, 4.0, 4.0], [0, 2, 2]),
    "norm -1": (lambda x: tp.linalg.vector_norm(x, ord=-1), [0.0, 4.0], [0, 0]),
    "std of equals": (tp.std, [2.0, 2.0], [0, 0]),
    "softplus": (tp.nn.softplus, [0.0, INF, -INF], [0.5, 1, 0]),
    "clip, the bounds tensors": (
        lambda x: tp.clip(x, double([0.0, 0.0, 2.0]), 1.0),
        [0.0, 0.5, 1.0],
        [0.5, 1, 0],
    ),
}


@pytest.mark.parametrize("name", sorted(COMPOSED))
def test_composites(name: str) -> None:
    f, x, expected = COMPOSED[name]
    same(tp.grad(lambda x: tp.sum(f(x)))(double(x)), expected)


def test_each_convention_is_tested_and_each_tested_one_stated() -> None:
    tables: tuple[list[Any], ...] = (ONE_INPUT, EDGES, TWO_INPUTS, ORDERED, OTHERS)
    tested = {row[0] for table in tables for row in table} | {case.kernel for case in SUITE_KINKS}
    # Ordinary derivatives: among the others, or by value where differences are inaccurate.
    special = {"Betainc", "Digamma", "Erfinv", "Igamma", "Igammac", "Lgamma", "Ndtri", "Polygamma"}
    plain = {"RealDiv", "Softplus", *special}
    assert tested - plain - set(CONVENTIONS) == set()
    assert set(CONVENTIONS) - tested == {"ComplexAbs"}  # by test_complexes
