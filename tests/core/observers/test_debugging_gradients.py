"""In a backward pass debug mode also names the gradient rule and the line that was recorded."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from tests.core.support.engines import spec_of
from tests.core.support.gradient_points import POINTS, as_function
from tests.core.support.tensors import total

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.errors import GradientNotFoundError, NonFiniteError
from tensorplug.observers.callsite import CallSite

INF = math.inf

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def root(x):
    half = x * 0.5
    return tp.sqrt(half)  # recorded


def line_of(function, mark):
    source, start = inspect.getsourcelines(function)
    return start + next(at for at, line in enumerate(source) if mark in line)


def failing(function, *args, **options):
    with pytest.raises(NonFiniteError) as caught:
        tp.debug(function, *args, **options)
    return str(caught.value)


def zeros():
    return tp.asarray([1.0, 0.0])


def test_an_infinite_gradient_is_reported_with_both_lines():
    def train():
        return tp.grad(total(root))(zeros())  # asked for

    here, there = line_of(train, "# asked"), line_of(root, "# rec")
    assert failing(train) == (
        "RealDiv made 1 infinity of 2, at [1]: inf\n"
        "  RealDiv(a=float32[2], b=float32[2]) -> float32[2], native by tensorplug-cpu "
        f"{tp.__version__} on cpu\n"
        "  a is 0.5, all finite\n"
        "  b is from 0 to 0.707107, all finite\n"
        f"called at {CallSite(__file__, here, '')} in {train.__qualname__}\n"
        "    return tp.grad(total(root))(zeros())  # asked for\n"
        "in the gradient of 'Sqrt' with respect to 'x'\n"
        f"recorded at {CallSite(__file__, there, '')} in root\n"
        "    return tp.sqrt(half)  # recorded"
    )


def second_derivative(x):
    return tp.grad(lambda x: tp.sum(tp.grad(total(root))(x)))(x)


def by_vjp(x):
    y, vjp = tp.vjp(root, x)
    return vjp(tp.ones_like(y))


def in_a_scope(x):
    with tp.tidy(), tp.use_backend("cpu"):
        return tp.grad(total(root))(x)


def by_a_decomposition(x):
    """The decomposition of Detour has no gradient rule, so its ops are recorded."""
    return tp.grad(total(lambda x: tp.run_kernel(DETOUR, [x])))(x)


DETOUR = spec_of("Detour")


@pytest.mark.parametrize(
    "function",
    [second_derivative, by_vjp, in_a_scope, by_a_decomposition],
    ids=lambda f: f.__name__,
)
def test_wherever_the_backward_pass_is(function):
    with tp.register_decomposition(DETOUR, lambda x: root(x)):  # noqa: PLW0108  # its own line
        message = failing(function, zeros())
    assert "in the gradient of 'Sqrt' with respect to 'x'\nrecorded at" in message
    assert message.endswith("return tp.sqrt(half)  # recorded")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (lambda dy: dy * 1e38 * 10.0, "Multiply made 2 infinities of 2"),
        (lambda dy: 1.0 / (dy * 1e38 * 10.0), None),  # through an infinity to 0
        (lambda dy: tp.where(dy > 5.0, tp.log(dy - dy), dy), None),  # not taken
        (
            lambda dy: tp.where(dy > 0.5, tp.log(dy - dy), dy),
            "Log made 2 infinities of 2",  # the first, not the Select that let it through
        ),
    ],
)
def test_only_what_a_rule_returns_must_be_in_order(rule, said):
    spec = spec_of("Steep")
    with (
        tp.register_kernel(spec, "cpu", lambda x: x.copy()),
        tp.register_gradient(spec, "x", rule),
    ):
        gradient = tp.grad(total(lambda x: tp.run_kernel(spec, [x])))
        plain = gradient(zeros()).numpy()
        if said is None:
            np.testing.assert_array_equal(tp.debug(gradient, zeros()).numpy(), plain)
        else:
            message = failing(gradient, zeros())
            assert message.startswith(said)
            assert "in the gradient of 'Steep' with respect to 'x'\nrecorded at" in message


def test_a_rule_that_makes_it_without_a_kernel():
    spec = spec_of("Steep")
    with (
        tp.register_kernel(spec, "cpu", lambda x: x.copy()),
        tp.register_gradient(spec, "x", lambda x_type: tp.full(x_type.shape, INF)),
    ):
        message = failing(tp.grad(total(lambda x: tp.run_kernel(spec, [x]))), zeros())
    made = "has 2 infinities of 2, the first at [0]: inf"
    assert message.startswith(f"the gradient of 'Steep' with respect to 'x' {made}\nrecorded at")


def test_multiple_outputs_and_variadic_inputs():
    halves = spec_of("Halves", outputs=("low", "high"), infer=lambda x: (x, x))
    with (
        tp.register_kernel(halves, "cpu", lambda x: [x.copy(), x.copy()]),
        tp.register_gradient(halves, "x", lambda dy_low, dy_high: dy_low + dy_high / 0.0),
    ):
        message = failing(tp.grad(total(lambda x: tp.run_kernel(halves, [x])[1])), zeros())
        assert "in the gradient of 'Halves' with respect to 'x'\nrecorded at" in message
    joined = tp.grad(lambda x: tp.sum(tp.concat([x, x * 2.0])))
    np.testing.assert_array_equal(tp.debug(joined, zeros()).numpy(), [3.0, 3.0])


def test_an_infinite_dy_is_its_givers():
    gradient = tp.grad(root)
    x = tp.asarray([1.0, 2.0])
    with tp.debug():
        assert gradient(x, dy=tp.asarray([INF, 1.0])).numpy()[0] == INF


def test_a_custom_gradient_raises_at_its_own_line():
    @tp.custom_grad
    def odd(x):
        def backward(dy):
            return dy / tp.zeros_like(x)  # of the user

        return x * 2.0, backward

    message = failing(tp.grad(total(odd)), zeros())
    assert "/ tp.zeros_like(x)  # of the user" in message
    assert "recorded" not in message


def test_outside_the_block_rules_run_as_ever():
    with tp.debug():
        _, vjp = tp.vjp(root, zeros())
    assert vjp(tp.asarray([1.0, 1.0]))[0].numpy()[1] == INF
    _, vjp = tp.vjp(root, zeros())  # kernels not recorded in debug mode are checked one by one
    message = failing(vjp, tp.asarray([1.0, 1.0]))
    assert message.startswith("RealDiv")
    assert "recorded" not in message
    plain, watched = (
        tp.grad(total(root))(tp.asarray([1.0])),
        tp.debug(tp.grad(total(root)), tp.asarray([1.0])),
    )
    np.testing.assert_array_equal(plain.numpy(), watched.numpy())


def test_a_result_handed_through_is_not_taken_for_the_call_s_own():
    """A decomposition without a rule may return its input, which was recorded elsewhere."""

    block = tp.debug()

    def through(x):
        y = root(x)
        with block:
            return tp.run_kernel(DETOUR, [y])

    with tp.register_decomposition(DETOUR, lambda x: x):
        _, vjp = tp.vjp(through, zeros())
        with block, pytest.raises(NonFiniteError) as caught:
            vjp(tp.asarray([1.0, 1.0]))
    assert str(caught.value).startswith("RealDiv")
    assert "recorded" not in str(caught.value)


def test_errors_of_rules_stay_what_they_are():
    spec = spec_of("Opaque")
    with (
        tp.register_kernel(spec, "cpu", lambda x: x.copy()),
        tp.debug(),
        pytest.raises(GradientNotFoundError),
    ):
        tp.grad(total(lambda x: tp.run_kernel(spec, [x])))(zeros())


@pytest.mark.parametrize("case", POINTS, ids=str)
def test_ordinary_gradients_raise_nothing(case):
    # Whether Bitcast takes a shape depends on the dtype, and the points are of float64.
    f, args = as_function(case, "float64" if case.kernel == "Bitcast" else "float32")
    inputs = tp.tree_map(tp.asarray, args)

    def total(*given):
        y = f(*given)
        return tp.add_n(
            [tp.real(tp.sum(tensor)) for tensor in (y if isinstance(y, list) else [y])]
        )

    gradient = tp.grad(total, tuple(range(len(inputs))), unconnected="zeros")
    for watched, plain in zip(tp.debug(gradient, *inputs), gradient(*inputs), strict=True):
        tp.tree_map(same, watched, plain)


def same(watched, plain):
    assert (watched.dtype, watched.shape) == (plain.dtype, plain.shape)
    assert watched.dtype in dt.FLOATING
    np.testing.assert_array_equal(watched.numpy(), plain.numpy())
