"""Gradients of kernels with optional inputs, with multiple outputs and with lists of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.support.tensors import same, tensor, total

import tensorplug as tp
from tensorplug import KernelSpec, TensorType
from tensorplug.dispatch.context import current_context
from tensorplug.errors import GradientNotFoundError, NotConnectedError

X = np.array([2.0, 3.0, 5.0], np.float32)


# Optional inputs ------------------------------------------------------------------------

AFFINE = KernelSpec("Affine", ("x", "scale?", "offset?"), lambda x, scale, offset: x)  # noqa: ARG005  # named by the spec


def _affine(x: Any, scale: Any, offset: Any) -> np.ndarray:
    return np.asarray(x * (1 if scale is None else scale) + (0 if offset is None else offset))


@pytest.fixture
def affine(own_engine: None) -> Any:
    asked: list[str] = []

    def rule_of_x(dy: tp.Tensor, scale: tp.Tensor | None, offset: tp.Tensor | None) -> tp.Tensor:
        asked.append(f"{'no ' * (scale is None)}scale, {'no ' * (offset is None)}offset")
        return dy * 1.0 if scale is None else dy * scale

    tp.register_kernel(AFFINE, "cpu", _affine)
    tp.register_gradient(AFFINE, "x", rule_of_x)
    tp.register_gradient(AFFINE, "scale", lambda dy, x: dy * x)
    tp.register_gradient(AFFINE, "offset", lambda dy, offset_type: dy * float(offset_type.size))

    def call(**inputs: Any) -> Any:
        return tp.run_kernel(AFFINE, inputs)

    call.asked = asked
    return call


@pytest.mark.parametrize(
    ("given", "asked", "gradient"),
    [
        ({}, "no scale, no offset", [1, 1, 1]),
        ({"scale": X}, "scale, no offset", X),
        ({"offset": X}, "no scale, offset", [1, 1, 1]),
        ({"scale": X, "offset": X}, "scale, offset", X),
    ],
)
def test_a_rule_may_ask_for_an_input_that_is_absent(
    affine: Any, given: Any, asked: str, gradient: Any
) -> None:
    tensors = {name: tensor(value) for name, value in given.items()}
    same(tp.grad(total(lambda x: affine(x=x, **tensors)))(tensor(X)), gradient)
    assert affine.asked == [asked]
    # Absent inputs, told or not, are the same.
    every = {"scale": None, "offset": None, **tensors}
    same(tp.grad(total(lambda x: affine(x=x, **every)))(tensor(X)), gradient)


def test_gradients_of_optional_inputs_that_are_there(affine: Any) -> None:
    f = lambda p: affine(x=tensor(X), **p)  # noqa: E731  # differentiated twice
    gradient = tp.grad(total(f))({"scale": tensor([1.0, 1.0, 1.0]), "offset": None})
    same(gradient["scale"], X)
    assert gradient["offset"] is None
    gradient = tp.grad(total(f))({"scale": None, "offset": tensor([1.0, 1.0, 1.0])})
    same(gradient["offset"], [3, 3, 3])
    assert affine.asked == []  # x is not differentiated
    slope = tp.grad(
        lambda x, s: tp.sum(tp.grad(total(lambda x: affine(x=x * x, scale=s)))(x)), (0, 1)
    )
    dx, ds = slope(tensor(X), tensor([1.0, 2.0, 3.0]))  # of 2 x s
    same(dx, [2, 4, 6])
    same(ds, 2 * X)


# Multiple outputs ------------------------------------------------------------------------

PARTS = KernelSpec(
    "Parts",
    ("x",),
    lambda x: tuple(TensorType(x.dtype, (1, *x.shape[1:])) for _ in range(x.shape[0])),
    outputs=("parts[]",),
)


@pytest.fixture
def parts(own_engine: None) -> Any:
    seen: list[list[tuple[int, ...]]] = []

    def rule(dy: list[tp.Tensor]) -> tp.Tensor:
        seen.append([tensor.shape for tensor in dy])
        return tp.concat(dy, axis=0)

    tp.register_kernel(PARTS, "cpu", lambda x: [x[at : at + 1] for at in range(len(x))])
    tp.register_gradient(PARTS, "x", rule)

    def call(x: tp.Tensor) -> Any:
        return tp.run_kernel(PARTS, {"x": x})

    call.seen = seen
    return call


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_list_of_outputs_is_a_list_however_long(parts: Any, length: int) -> None:
    x = X[:length]
    f = lambda x: tp.sum(parts(x)[-1] * parts(x)[0])  # noqa: E731  # differentiated twice
    expected = np.zeros(length)
    expected[0] += x[-1]
    expected[-1] += x[0]
    same(tp.grad(f)(tensor(x)), expected)
    assert parts.seen == [[(1,)] * length] * 2
    same(tp.hessian(f)(tensor(x)), np.array([[2.0]] if length == 1 else _antidiagonal(length)))


def _antidiagonal(length: int) -> np.ndarray:
    matrix = np.zeros((length, length))
    matrix[0, -1] = matrix[-1, 0] = 1
    return matrix


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (lambda p: p[1], [0, 1, 0]),
        (lambda p: p[0] + p[2] * 2.0, [1, 0, 2]),
        (lambda p: p[0] * p[0], [4, 0, 0]),
        (lambda p: tp.concat(p, axis=0), [1, 1, 1]),
        (lambda p: tp.concat([p[2], p[2]], axis=0), [0, 0, 2]),
    ],
)
def test_unused_outputs_count_as_zero(parts: Any, use: Any, expected: Any) -> None:
    same(tp.grad(total(lambda x: use(parts(x))))(tensor(X)), expected)


def test_outputs_as_a_tree_of_results(parts: Any) -> None:
    y, vjp = tp.vjp(parts, tensor(X))
    assert [tensor.shape for tensor in y] == [(1,)] * 3
    same(vjp([[1], [10], [100]])[0], [1, 10, 100])


MIXED = KernelSpec(
    "Mixed",
    ("x",),
    lambda x: (x, TensorType(tp.int32, x.shape)),
    outputs=("twice", "order"),
)


def test_an_output_that_is_not_floating(own_engine: None) -> None:
    tp.register_kernel(MIXED, "cpu", lambda x: (x * 2, np.argsort(x).astype(np.int32)))
    tp.register_gradient(MIXED, "x", lambda dy_twice: dy_twice * 2.0)
    same(tp.grad(total(lambda x: tp.run_kernel(MIXED, [x])[0]))(tensor(X)), [2, 2, 2])
    with pytest.raises(NotConnectedError, match=r"int32\[\]"):
        tp.grad(lambda x: tp.run_kernel(MIXED, [x])[1][0])(tensor(X))


# Rules that are missing -----------------------------------------------------------------


def test_one_rule_of_two_is_missing(own_engine: None) -> None:
    spec = KernelSpec("Half", ("a", "b"), lambda a, b: a)  # noqa: ARG005  # named by the spec
    tp.register_kernel(spec, "cpu", lambda a, b: a * b)
    tp.register_gradient(spec, "a", lambda dy, b: dy * b)
    f = lambda a, b: tp.run_kernel(spec, [a, b])  # noqa: E731  # differentiated three times
    x, y = tensor(X), tensor([7.0, 7.0, 7.0])
    same(tp.grad(total(f))(x, y), [7, 7, 7])
    with pytest.raises(GradientNotFoundError, match=r"'Half' has no gradient .* input 'b'"):
        tp.grad(total(f), 1)(x, y)
    # Off the path its absence does no harm, and on it an outer tape does not ask.
    same(tp.grad(lambda b: tp.sum(f(x, tp.stop_gradient(b)) + b * b))(y), [14, 14, 14])
    same(tp.grad(lambda b: tp.sum(tp.grad(total(lambda a: f(a, b)))(x)))(y), [1, 1, 1])


def test_comparisons_on_the_path_and_beside_it(own_engine: None) -> None:
    x = tensor([-1.0, 2.0])
    with pytest.raises(NotConnectedError, match=r"bool\[\]"):
        tp.grad(lambda x: tp.all(tp.logical_and(x > 0, x < 3)))(x)
    with pytest.raises(NotConnectedError):
        tp.grad(total(lambda x: tp.astype(x > 0, tp.float32) * 2.0))(x)
    for compare in (tp.greater, tp.greater_equal, tp.not_equal):
        same(
            tp.grad(total(lambda x, c=compare: tp.where(c(x, 0.0), x * x, 0.0)))(x),
            [-2 if compare is tp.not_equal else 0, 4],
        )


def test_a_graph_may_be_deep(own_engine: None) -> None:
    def f(x: tp.Tensor) -> tp.Tensor:
        for _ in range(20_000):
            x = x * 1.0
        return x

    same(tp.grad(f)(tensor(2.0)), 1)
    y, vjp = tp.vjp(f, tensor(2.0))
    del y, vjp  # node after node, and no recursion


# Rules that raise -------------------------------------------------------------------------


def test_an_exception_in_a_rule_says_which_and_leaves_nothing_behind(own_engine: None) -> None:
    class RuleError(Exception):
        pass

    def failing(dy: tp.Tensor) -> tp.Tensor:
        raise RuleError("no gradient today")

    x = tensor(X)
    with (
        tp.register_gradient("Exp", "x", failing, override=True),
        pytest.raises(RuleError, match="no gradient today") as caught,
    ):
        tp.grad(total(lambda x: tp.exp(x * 2.0)))(x)
    assert "in the gradient of 'Exp' with respect to 'x'" in caught.value.__notes__
    assert current_context().recording is None
    same(tp.grad(total(tp.exp))(x), np.exp(X))
