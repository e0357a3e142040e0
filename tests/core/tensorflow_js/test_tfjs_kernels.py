"""TensorFlow.js's behaviour, scenarios 13 to 15, 21 and 27: kernels and gradients of one's own.

A scenario bears the number that it has in our list of what TensorFlow.js's engine does; comments
say where and why ours does otherwise. docs/coming_from/tfjs.md has the rows.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.engines import expect, spec_of
from tests.core.support.tensors import total

import tensorplug as tp
from tensorplug.errors import (
    ArgumentError,
    GradientError,
    GradientNotFoundError,
    NotConnectedError,
    RegistrationError,
)

pytestmark = pytest.mark.usefixtures("engine")

ANY_NUMBER = tp.Attribute(lambda value, _types: int(value))
MIXED = tp.KernelSpec(
    "Mixed", ("x",), lambda x: tp.TensorType(x.dtype, (3, 3)), attributes={"a": ANY_NUMBER}
)
TOTAL = tp.KernelSpec("Total", ("xs[]",), lambda xs: xs[0])
PRODUCT = spec_of("Product", ("a", "b"))


def floats(shape, start=1.0):
    size = int(np.prod(shape))
    return tp.asarray(np.arange(start, start + size, dtype=np.float32).reshape(shape))


# Scenario 13 ----------------------------------------------------------------------------


def test_scenario_13_a_rule_gets_what_it_names():
    """In the place of inputsToSave and outputsToSave: the parameters say what the tape keeps."""
    seen = {}

    def rule(dy, x, out, a):
        seen.update(dy=dy.tolist(), x=x.shape, out=out.shape, a=a)
        return tp.broadcast_to(tp.asarray(3.0), (2, 2))

    def f(x):
        return tp.run_kernel("Mixed", {"x": x}, {"a": 5})

    tp.register_kernel(MIXED, "memory", lambda x: np.full((3, 3), x.sum()))
    with pytest.raises(GradientNotFoundError, match="kernel 'Mixed' has no gradient"):
        tp.grad(total(f))(floats((2, 2)))
    tp.register_gradient(MIXED, "x", rule)
    expect(tp.grad(total(f))(floats((2, 2))), "float32", (2, 2), np.full((2, 2), 3))
    assert seen == {"dy": [[1] * 3] * 3, "x": (2, 2), "out": (3, 3), "a": 5}


def test_row_24_only_the_rules_that_are_needed_run():
    ran = []

    def wrt(name, other):
        def rule(dy, a, b):
            ran.append(name)
            return dy * {"a": a, "b": b}[other]

        return rule

    tp.register_kernel(PRODUCT, "memory", lambda a, b: a * b)
    tp.register_gradient(PRODUCT, "a", wrt("a", "b"))
    tp.register_gradient(PRODUCT, "b", wrt("b", "a"))
    x, y = floats((2,)), floats((2,), 3.0)
    expect(tp.grad(total(lambda x: tp.run_kernel(PRODUCT, [x, y])))(x), "float32", (2,), [3, 4])
    assert ran == ["a"]


# Scenario 14: TensorFlow.js saves all inputs only where they are a list. Ours asks for them by
# name like for anything else, so a map of inputs needs no error.


@pytest.mark.parametrize("form", ["list", "by name"])
def test_scenario_14_all_inputs_are_saved(form):
    seen = []

    def of_list(dy, xs):
        seen.extend(tensor.shape for tensor in xs)
        return [dy for _ in xs]

    def of_names(dy, a, b):
        seen.extend((a.shape, b.shape))
        return dy

    if form == "list":
        tp.register_kernel(TOTAL, "memory", lambda xs: np.add(*xs))
        tp.register_gradient(TOTAL, "xs", of_list)
    else:
        tp.register_kernel(PRODUCT, "memory", lambda a, b: a + b)
        tp.register_gradient(PRODUCT, "a", of_names)
        tp.register_gradient(PRODUCT, "b", lambda dy: dy)
    x, y = floats((3, 3)), floats((3, 3))

    def f(x, y):
        return tp.run_kernel(TOTAL, [[x, y]]) if form == "list" else tp.run_kernel(PRODUCT, [x, y])

    for gradient in tp.grad(total(f), (0, 1))(x, y):
        expect(gradient, "float32", (3, 3), np.ones((3, 3)))
    assert seen == [(3, 3), (3, 3)]


SCALED = tp.KernelSpec("Scaled", ("x", "scale?"), lambda x, scale: x)  # noqa: ARG005  # its type is x's


@pytest.mark.parametrize("given", [True, False])
def test_row_70_an_optional_input_may_be_absent(given):
    """TensorFlow.js saves it all the same, and fails: batchNorm without a scale."""

    def rule(dy, scale):
        return dy if scale is None else dy * scale

    tp.register_kernel(SCALED, "memory", lambda x, scale: x if scale is None else x * scale)
    tp.register_gradient(SCALED, "x", rule)
    inputs = {"scale": tp.asarray([5.0, 7.0])} if given else {}
    gradient = tp.grad(total(lambda x: tp.run_kernel(SCALED, {"x": x, **inputs})))(floats((2,)))
    expect(gradient, "float32", (2,), [5, 7] if given else [1, 1])


# Scenario 15 ----------------------------------------------------------------------------

WRONG = {
    "dtype": (lambda dy: tp.astype(dy, "int32"), r"is int32\[3\], but must be float32\[3\]"),
    "shape": (lambda dy: tp.reshape(dy, (3, 1)), r"is float32\[3,1\], but must be float32\[3\]"),
}


@pytest.mark.parametrize("what", WRONG)
def test_scenario_15_a_wrong_gradient(what):
    rule, message = WRONG[what]
    spec = spec_of("Mine")
    tp.register_kernel(spec, "memory", lambda x: x)
    tp.register_gradient(spec, "x", rule)
    with pytest.raises(GradientError, match=f"'Mine' with respect to 'x' {message}"):
        tp.grad(total(lambda x: tp.run_kernel(spec, [x])))(floats((3,)))


def test_scenario_15_a_missing_gradient():
    """The gradient of one input of two; the other needs none."""
    tp.register_kernel(PRODUCT, "memory", lambda a, b: a * b)
    tp.register_gradient(PRODUCT, "a", lambda dy, b: dy * b)
    x, y = floats((2,)), floats((2,), 3.0)

    def f(x, y):
        return tp.run_kernel(PRODUCT, [x, y])

    with pytest.raises(GradientNotFoundError, match=r"'Product' has no gradient.*input 'b'"):
        tp.grad(total(f), (0, 1))(x, y)
    expect(tp.grad(total(f))(x, y), "float32", (2,), [3, 4])


def test_scenario_15_a_gradient_of_no_input_is_refused_when_it_is_registered():
    with pytest.raises(RegistrationError, match="'c' is not an input; inputs are a, b"):
        tp.register_gradient(PRODUCT, "c", lambda dy: dy)


# Scenario 21 ----------------------------------------------------------------------------


@pytest.fixture
def odd(engine):
    """Return x**2 with a gradient that shows whose it is."""
    tp.register_kernel("Abs", "memory", lambda x: np.fabs(x))  # noqa: PLW0108  # a ufunc has no signature
    return tp.custom_grad(lambda x: (x * x, lambda dy: dy * tp.abs(x)))


def test_scenario_21_a_gradient_of_ones_own(odd):
    x = tp.asarray([-1.0, -2.0, 3.0])
    for _ in range(2):
        expect(tp.grad(total(odd))(x), "float32", (3,), [1, 2, 3])


def test_scenario_21_a_wrong_number_of_gradients():
    both = tp.custom_grad(lambda a, b: (a + b, lambda dy: [dy]))
    with pytest.raises(GradientError, match="1 gradients for 2 arguments"):
        tp.grad(both)(tp.asarray(1.0), tp.asarray(2.0))
    with pytest.raises(ArgumentError, match=r"must return \(tensor, backward function\)"):
        tp.grad(tp.custom_grad(lambda a: a))(tp.asarray(1.0))


def test_scenario_21_without_a_tape_only_the_result_is_left(odd):
    x = tp.asarray([1.0])
    tp.add(x, 1)  # caches its constants
    before = tp.memory()["memory"]
    y = odd(x)
    after = tp.memory()["memory"]
    assert (after.tensors, after.buffers) == (before.tensors + 1, before.buffers + 1)
    assert y.tolist() == [1]


def test_scenario_21_a_second_derivative_through_what_is_saved():
    saved = tp.custom_grad(lambda x: (x * x * 2.5, lambda dy: dy * 5.0 * x))
    x = tp.asarray([1.0, 4.0])
    expect(tp.grad(total(tp.grad(total(saved))))(x), "float32", (2,), [5, 5])


# Scenario 27, with a kernel of our own: the catalogue has no Split yet ---------------------

PIECES = tp.KernelSpec(
    "Pieces",
    ("x",),
    lambda x: tuple(tp.TensorType(x.dtype, (1,)) for _ in range(x.shape[0])),
    outputs=("outs[]",),
)


def joined(dy):
    return tp.concat(dy)


@pytest.fixture
def pieces(engine):
    tp.register_kernel(PIECES, "memory", lambda x: np.split(x, len(x)))
    tp.register_gradient(PIECES, "x", joined)
    return lambda x: tp.run_kernel(PIECES, [x])


SOME = [
    ("the middle one", lambda parts: parts[1], [0, 1, 0]),
    ("first and last", lambda parts: parts[0] + 2.0 * parts[2], [1, 0, 2]),
    ("none", lambda parts: tp.zeros_like(parts[0]), None),
]


@pytest.mark.parametrize(("what", "use", "gradient"), SOME, ids=[row[0] for row in SOME])
def test_scenario_27_some_outputs_are_not_used(what, use, gradient, pieces):
    x = tp.asarray([2.0, 3.0, 4.0])
    if gradient is None:
        with pytest.raises(NotConnectedError):
            tp.grad(total(lambda x: use(pieces(x))))(x)
    else:
        expect(tp.grad(total(lambda x: use(pieces(x))))(x), "float32", (3,), gradient)


def test_row_69_a_list_of_one_output_is_a_list(pieces):
    """TensorFlow.js hands the rule a bare tensor, and split(x, 1) and unstack raise."""
    x = tp.asarray([3.0])
    expect(tp.grad(total(lambda x: pieces(x)[0] * x))(x), "float32", (1,), [6])
