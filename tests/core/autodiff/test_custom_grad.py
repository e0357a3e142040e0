"""Gradients that users write: of functions, and of kernels of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.support.tensors import total

import tensorplug as tp
from tensorplug import Attribute, KernelSpec, TensorType
from tensorplug.errors import (
    ArgumentError,
    GradientError,
    RegistrationError,
)
from tensorplug.testing import check_grads

pytestmark = pytest.mark.usefixtures("own_engine")


def same(actual: tp.Tensor, expected: Any) -> None:
    wanted = np.array(expected, np.float32)
    assert (actual.dtype, actual.shape) == (tp.float32, wanted.shape)
    np.testing.assert_allclose(actual.numpy(), wanted, rtol=1e-6)


# custom_grad ----------------------------------------------------------------------------


@tp.custom_grad
def odd_square(x: tp.Tensor) -> Any:
    """x**2, with dy*|x| for its gradient, so that one sees whose it is."""
    return x * x, lambda dy: dy * tp.abs(x)


def test_its_gradient_is_used_every_time() -> None:
    x = tp.asarray([-1.0, -2.0, 3.0])
    for _ in range(2):
        same(tp.grad(total(odd_square))(x), [1, 2, 3])
    same(odd_square(x), [1, 4, 9])


def test_a_custom_gradient_composes_with_rules() -> None:
    x = tp.asarray([-1.0, 2.0])
    # d/dx [2 (3x)^2] with the odd rule: 2 * |3x| * 3.
    same(tp.grad(total(lambda x: 2.0 * odd_square(3.0 * x)))(x), [18, 36])


def test_second_derivative_goes_through_backward() -> None:
    x = tp.asarray([-2.0, 3.0])
    first = tp.grad(total(odd_square))
    same(tp.grad(lambda x: tp.sum(first(x)))(x), [-1, 1])  # d|x|/dx
    # dy reaches the inner rule as a value that may itself be differentiated: here dy = 5x, and
    # the derivative of 5x |x| is 10 |x|.
    same(tp.grad(total(lambda x: tp.grad(odd_square)(x, dy=5.0 * x)))(x), [20, 30])


def test_values_computed_by_f_may_be_saved() -> None:
    @tp.custom_grad
    def exp(x: tp.Tensor) -> Any:
        y = tp.exp(x)
        return y, lambda dy: dy * y

    check_grads(exp, [np.array([0.5, -1.0])], order=2)


def test_several_arguments_of_which_one_is_an_integer() -> None:
    @tp.custom_grad
    def power(x: tp.Tensor, n: tp.Tensor, scale: tp.Tensor) -> Any:
        count = tp.astype(n, x.dtype)
        y = scale * x**count
        return y, lambda dy: (dy * scale * count * x ** (count - 1.0), None, dy * y / scale)

    x, n = tp.asarray([1.0, 2.0]), tp.asarray([2, 3])
    value, gradients = tp.value_and_grad(power, (0, 2))(x, n, tp.asarray(10.0), dy=tp.ones_like(x))
    same(value, [10, 80])
    same(gradients[0], [20, 120])
    same(gradients[1], 9)  # summed back over the axis along which it was broadcast


def test_without_a_tape_only_the_value_is_left() -> None:
    y = odd_square(tp.asarray([2.0]))
    assert y._node is None
    same(y, [4])


BAD_BACKWARD = [
    (lambda dy: (dy, dy), "returned 2 gradients for 1 argument"),
    (lambda _: (), "returned 0 gradients for 1 argument"),
    (lambda _: None, "NoneType"),
    (lambda _: 3.0, "float"),
    (lambda dy: dy.numpy(), "ndarray"),
    (lambda dy: (None, dy)[:1], "argument 0 is NoneType"),
    (lambda dy: tp.astype(dy, tp.int32), r"argument 0 is int32\[2\], but must be float32\[2\]"),
    (
        lambda dy: tp.astype(dy, tp.float64),
        r"argument 0 is float64\[2\], but must be float32\[2\]",
    ),
    (lambda dy: dy[:1], r"argument 0 is float32\[1\], but must be float32\[2\]"),
    (tp.sum, r"argument 0 is float32\[\], but must be float32\[2\]"),
]


@pytest.mark.parametrize(("backward", "message"), BAD_BACKWARD)
def test_a_wrong_backward_is_named(backward: Any, message: str) -> None:
    @tp.custom_grad
    def mine(x: tp.Tensor) -> Any:
        return x * 2.0, backward

    with pytest.raises(GradientError, match=f"mine.*{message}"):
        tp.grad(total(mine))(tp.asarray([1.0, 2.0]))
    same(tp.grad(total(tp.sin))(tp.asarray([0.0])), [1])  # the engine is as usable as before


@pytest.mark.parametrize(
    "result", [None, 1.0, lambda dy: dy, "xy", (1.0, lambda dy: dy), (None, None)]
)
def test_a_wrong_result_is_named(result: Any) -> None:
    with pytest.raises(ArgumentError, match=r"must return \(tensor, backward function\)"):
        tp.custom_grad(lambda _: result)(tp.asarray(1.0))


def test_not_a_function() -> None:
    with pytest.raises(ArgumentError, match="custom_grad: f must be a function, got int"):
        tp.custom_grad(3)  # type: ignore[arg-type]  # the mistake under test


# Kernels of one's own -------------------------------------------------------------------

FIVE = Attribute(lambda value, _types: int(value))
MIXED = KernelSpec(
    "Mixed",
    ("x",),
    lambda x: TensorType(x.dtype, (3, 3)),
    attributes={"a": FIVE},
)


def _mixed(x: np.ndarray) -> np.ndarray:
    return np.full((3, 3), x.sum(), x.dtype)


def test_a_rule_gets_what_it_names_and_nothing_else() -> None:
    seen: dict[str, Any] = {}

    def rule(dy: tp.Tensor, x: tp.Tensor, out: tp.Tensor, a: int, x_type: TensorType) -> Any:
        seen.update(dy=dy.numpy(), x=x.shape, out=out.shape, a=a, type=str(x_type))
        return tp.ones_like(x) * tp.sum(dy)

    tp.register_kernel(MIXED, "cpu", _mixed)
    tp.register_gradient(MIXED, "x", rule)
    x = tp.ones((2, 2))
    gradient = tp.grad(total(lambda x: tp.run_kernel("Mixed", {"x": x}, {"a": 5})))(x)
    same(gradient, [[9, 9], [9, 9]])
    np.testing.assert_array_equal(seen.pop("dy"), np.ones((3, 3)))
    assert seen == {"x": (2, 2), "out": (3, 3), "a": 5, "type": "float32[2,2]"}


def test_a_rule_may_ask_only_for_what_there_is() -> None:
    with pytest.raises(
        RegistrationError, match=r"has unknown parameters y; possible are dy, x, x_type, out"
    ):
        tp.register_gradient(MIXED, "x", lambda dy, y: dy * y)
    with pytest.raises(RegistrationError, match="'z' is not an input; inputs are x"):
        tp.register_gradient(MIXED, "z", lambda dy: dy)


BAD_RULES = [
    (lambda dy: tp.astype(dy, tp.int32), r"'Square' with respect to 'x' is int32\[2\]"),
    (lambda dy: tp.astype(dy, tp.float64), r"'Square' with respect to 'x' is float64\[2\]"),
    (lambda dy: tp.concat([dy, dy]), r"is float32\[4\], but must be float32\[2\]"),
    (lambda dy: tp.sum(dy, axis=0), r"is float32\[\], but must be float32\[2\]"),
    (lambda dy: None, r"'Square' with respect to 'x' is NoneType, not a tensor"),  # noqa: ARG005
    (lambda dy: dy.numpy(), "'Square' with respect to 'x' is ndarray, not a tensor"),
    (lambda dy: [dy], "'Square' with respect to 'x' is list, not a tensor"),
]


@pytest.mark.parametrize(("rule", "message"), BAD_RULES)
def test_a_wrong_gradient_names_kernel_and_input(rule: Any, message: str) -> None:
    with (
        tp.register_gradient("Square", "x", rule, override=True),
        pytest.raises(GradientError, match=message),
    ):
        tp.grad(total(tp.square))(tp.asarray([1.0, 2.0]))
    same(tp.grad(total(tp.square))(tp.asarray([1.0, 2.0])), [2, 4])  # the override is gone


# Several inputs under one name, multiple outputs -----------------------------------------

WEIGHTED = KernelSpec("Weighted", ("xs[]",), lambda xs: xs[0])


def _weighted(xs: list[np.ndarray]) -> np.ndarray:
    return np.asarray(sum(weight * x for weight, x in enumerate(xs, start=1)))


def test_a_list_of_inputs_gets_a_list_of_gradients() -> None:
    def rule(dy: tp.Tensor, xs: list[tp.Tensor]) -> list[tp.Tensor]:
        assert [tensor.shape for tensor in xs] == [(3, 3), (3, 3)]
        return [dy * float(weight) for weight in range(1, len(xs) + 1)]

    tp.register_kernel(WEIGHTED, "cpu", _weighted)
    tp.register_gradient(WEIGHTED, "xs", rule)
    f = lambda xs: tp.run_kernel(WEIGHTED, {"xs": xs})  # noqa: E731  # as in the scenario
    gradients = tp.grad(total(f))([tp.ones((3, 3)), tp.ones((3, 3))])
    assert isinstance(gradients, list)
    same(gradients[0], np.full((3, 3), 1))
    same(gradients[1], np.full((3, 3), 2))
    # Only the second is differentiated, and one tensor may stand in both places.
    same(tp.grad(total(lambda x: f([tp.ones((3, 3)), x])))(tp.ones((3, 3))), np.full((3, 3), 2))
    same(tp.grad(total(lambda x: f([x, x])))(tp.ones((3, 3))), np.full((3, 3), 3))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda dy: [dy], "'Weighted' with respect to 'xs' is 1 tensors, but the input has 2"),
        (lambda dy: dy, "'xs' is Tensor, but must be a list"),
        (lambda dy: [dy, None], "'Weighted' with respect to 'xs' is NoneType"),
        (lambda dy: None, "'Weighted' with respect to 'xs' is NoneType"),  # noqa: ARG005
    ],
)
def test_a_wrong_list_of_gradients(rule: Any, message: str) -> None:
    tp.register_kernel(WEIGHTED, "cpu", _weighted)
    tp.register_gradient(WEIGHTED, "xs", rule)
    with pytest.raises(GradientError, match=message):
        tp.grad(total(lambda xs: tp.run_kernel(WEIGHTED, {"xs": xs})))([tp.ones(2), tp.ones(2)])


SIN_COS = KernelSpec("SinCos", ("x",), lambda x: (x, x), outputs=("sine", "cosine"))


@pytest.fixture
def sin_cos() -> Any:
    tp.register_kernel(SIN_COS, "cpu", lambda x: (np.sin(x), np.cos(x)))
    tp.register_gradient(
        SIN_COS,
        "x",
        lambda dy_sine, dy_cosine, sine, cosine: dy_sine * cosine - dy_cosine * sine,
    )
    return lambda x: tp.run_kernel(SIN_COS, {"x": x})


USES = {
    "first": (lambda s, c: s, np.cos, lambda x: -np.sin(x)),  # noqa: ARG005
    "second": (lambda s, c: c, lambda x: -np.sin(x), lambda x: -np.cos(x)),  # noqa: ARG005
    "product": (lambda s, c: s * c, lambda x: np.cos(2 * x), lambda x: -2 * np.sin(2 * x)),
    "first, twice": (lambda s, c: s * s, lambda x: np.sin(2 * x), lambda x: 2 * np.cos(2 * x)),  # noqa: ARG005
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_outputs_of_a_kernel_with_two(use: str, sin_cos: Any) -> None:
    combine, first, second = USES[use]
    x = np.array([0.3, 1.1, -2.0], np.float32)
    f = lambda x: tp.sum(combine(*sin_cos(x)))  # noqa: E731  # differentiated twice
    same(tp.grad(f)(x), first(x))
    derivative = tp.grad(f)
    same(tp.grad(lambda x: tp.sum(derivative(x)))(x), second(x))
    check_grads(f, [x], order=2)
