"""Gradient rules of several inputs: one call for all that are on the way."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.contract import inference
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import dispatch
from tensorplug.errors import ArgumentError, GradientError, NonFiniteError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

RATIO = KernelSpec(
    "JointRatio",
    ("a", "b", "c?"),
    lambda a, b, c: inference.broadcast(a, b),  # noqa: ARG005  # the interface of a rule
    promote=("a", "b", "c"),
)

A, B, C = (np.array(numbers) for numbers in ([1.0, -2.0, 3.0], [2.0, 4.0, -5.0], [0.5, 1.5, 2.5]))


def ratio(a, b, c):
    return a / b if c is None else a / b + c


def gradients_of(dy, a, b):
    return {"a": dy / b, "b": -dy * a / (b * b), "c": dy}


@pytest.fixture
def calls():
    """Register the kernel with a joint rule; return what was wanted in each call of it."""
    noted = []

    def joint(wanted, dy, a, b):
        noted.append(wanted)
        return {name: gradients_of(dy, a, b)[name] for name in wanted}

    with (
        tp.register_decomposition(RATIO, ratio),
        tp.register_gradient(RATIO, ("a", "b", "c"), joint),
    ):
        yield noted


def run(a, b, c=None):
    return dispatch(RATIO, a, b, c)


@pytest.mark.parametrize(
    ("which", "wanted"), [((0, 1, 2), {"a", "b", "c"}), ((0, 1), {"a", "b"}), ((2,), {"c"})]
)
def test_one_call_for_the_inputs_on_the_way(calls, which, wanted):
    given = [A, B, C]

    def f(*moving):
        inputs = [tp.asarray(x) for x in given]
        for at, tensor in zip(which, moving, strict=True):
            inputs[at] = tensor
        return tp.sum(run(*inputs))

    gradients = tp.grad(f, argnums=tuple(range(len(which))))(
        *(tp.asarray(given[at]) for at in which)
    )
    assert calls == [frozenset(wanted)]
    right = (1 / B, -A / B**2, np.ones(3))
    for at, gradient in zip(which, gradients, strict=True):
        np.testing.assert_allclose(gradient.numpy(), right[at], rtol=1e-15)


def test_broadcast_inputs_and_second_derivatives(calls):
    a = tp.asarray(3.0, dtype=tp.float64)
    f = lambda a, b: tp.sum(run(a, b))  # noqa: E731
    of_a, of_b = tp.grad(f, argnums=(0, 1))(a, tp.asarray(B))
    assert (of_a.shape, of_b.shape) == ((), (3,))
    np.testing.assert_allclose(of_a.numpy(), (1 / B).sum(), rtol=1e-15)
    second = tp.hessian(lambda b: f(a, b))(tp.asarray(B))
    np.testing.assert_allclose(second.numpy(), np.diag(6.0 / B**3), rtol=1e-14)


def test_in_compiled_functions(calls):
    f = tp.compile(tp.grad(lambda a, b: tp.sum(run(a, b)), argnums=(0, 1)))
    for gradient, right in zip(f(tp.asarray(A), tp.asarray(B)), (1 / B, -A / B**2), strict=True):
        np.testing.assert_allclose(gradient.numpy(), right, rtol=1e-15)
    assert frozenset({"a", "b"}) in calls


def test_the_rule_of_one_input_may_be_replaced(calls):
    with tp.register_gradient(RATIO, "b", lambda dy: dy * 7.0, override=True):
        of_a, of_b = tp.grad(lambda a, b: tp.sum(run(a, b)), argnums=(0, 1))(
            tp.asarray(A), tp.asarray(B)
        )
    assert calls == [frozenset({"a"})]
    np.testing.assert_allclose(of_a.numpy(), 1 / B, rtol=1e-15)
    np.testing.assert_array_equal(of_b.numpy(), np.full(3, 7.0))


WRONG = {
    "not a mapping": (lambda wanted, dy: [dy for _ in wanted], r"got list"),
    "too little": (lambda wanted, dy: {min(wanted): dy}, r"keys \['a', 'b'\], got \['a'\]"),
    "too much": (
        lambda wanted, dy: dict.fromkeys((*wanted, "c"), dy),
        r"got \['a', 'b', 'c'\]",
    ),
    "not a tensor": (lambda wanted, dy: dict.fromkeys(wanted, 1.0), "is float, not a tensor"),  # noqa: ARG005
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_results(name):
    rule, message = WRONG[name]
    with (
        tp.register_decomposition(RATIO, ratio),
        tp.register_gradient(RATIO, ["a", "b", "c"], rule),
        pytest.raises(GradientError, match=message),
    ):
        tp.grad(lambda a, b: tp.sum(run(a, b)), argnums=(0, 1))(tp.asarray(A), tp.asarray(B))


def test_names_of_inputs_are_checked():
    with pytest.raises(ArgumentError, match="wrt must be the name of an input of Add"):
        tp.register_gradient("Add", ("a", "b"), None)
    with pytest.raises(ArgumentError, match="wrt must be the name of an input of Add"):
        tp.register_gradient("Add", 3, lambda dy: dy)


def test_nonfinite_gradients_are_found():
    def joint(wanted, dy, b):
        return dict.fromkeys(wanted, dy / b)

    tiny, huge = (tp.asarray(np.full(3, number)) for number in (1e-300, 1e300))
    with (
        tp.register_decomposition(RATIO, ratio),
        tp.register_gradient(RATIO, ("a", "b"), joint),
        tp.debug(),
    ):
        _, vjp = tp.vjp(run, tiny, tiny)
        message = "gradient of 'JointRatio' with respect to 'a, b'"
        with pytest.raises(NonFiniteError, match=message):
            vjp(huge)
