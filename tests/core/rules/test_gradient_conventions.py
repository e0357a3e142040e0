"""Conventions of gradients: ties, stops, and paths that do not connect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.rules.test_gradients_at_kinks import (
    EDGES,
    INF,
    NAN,
    ONE_INPUT,
    TWO_INPUTS,
    double,
    kernel,
    same,
)
from tests.core.support.gradient_conventions import CONVENTIONS
from tests.core.support.gradient_points import SUITE_KINKS
from tests.core.support.tensors import total

import tensorplug as tp
from tensorplug.errors import DTypeError, NotConnectedError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


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
    *(
        (
            "SoftmaxCrossEntropy",
            {"labels": np.array([0.0, 1.0, 0.0]), "logits": np.array([-INF, 0.0, 0.0])},
            {},
            wrt,
            wanted,
        )
        for wrt, wanted in (("logits", [0, -0.5, 0.5]), ("labels", [INF, np.log(2), np.log(2)]))
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
def test_kinks_of_composed_functions(name: str) -> None:
    f, x, expected = COMPOSED[name]
    same(tp.grad(lambda x: tp.sum(f(x)))(double(x)), expected)


def test_each_convention_is_tested_and_each_tested_one_stated() -> None:
    tables: tuple[list[Any], ...] = (ONE_INPUT, EDGES, TWO_INPUTS, ORDERED, OTHERS)
    tested = {row[0] for table in tables for row in table} | {case.kernel for case in SUITE_KINKS}
    # Ordinary derivatives: among the others, or by value where differences are inaccurate.
    plain = {"RealDiv", "Softplus"}
    assert tested - plain - set(CONVENTIONS) == set()
    assert set(CONVENTIONS) - tested == {"ComplexAbs"}  # by test_complexes
