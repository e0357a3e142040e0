"""First and second derivatives where formulas cancel, underflow or overflow: far out and near 0.

Expected values come from formulas in extended precision in which nothing cancels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable

    Function = Callable[[Any], Any]

wide = np.longdouble
SIDES = (0.0, 1e-10, -1e-10, 0.001, -0.001, 1.0, -1.0, 9.5, -9.5, 20.0, -20.0, 40.0, -40.0)
INSIDE = (0.0, 1e-10, -1e-10, 0.001, -0.001, 0.25, -0.5, 0.75, -0.9375)
LOW = (-0.001, -1.0, -9.5, -20.0, -40.0, -80.0)


pytestmark = pytest.mark.usefixtures("on_the_cpu")


def bell(x: Any) -> Any:
    """Return the slope of the sigmoid."""
    return 1 / (2 * np.cosh(x / 2)) ** 2


def bend(x: Any) -> Any:
    return -bell(x) * np.tanh(x / 2)


def silu_slope(x: Any) -> Any:
    return (1 + np.exp(-x) + x * np.exp(-x)) / (1 + np.exp(-x)) ** 2


def silu_bend(x: Any) -> Any:
    return bell(x) * (2 - x * np.tanh(x / 2))


def density(x: Any) -> Any:
    return np.exp(-x * x / 2) / np.sqrt(2 * wide(np.pi))


def logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


# Function, points, first and second derivative.
DERIVATIVES: dict[str, tuple[Function, tuple[float, ...], Function, Function]] = {
    "sigmoid": (tp.nn.sigmoid, SIDES, bell, bend),
    "softplus": (tp.nn.softplus, SIDES, logistic, bell),
    "log_sigmoid": (tp.nn.log_sigmoid, SIDES, lambda x: logistic(-x), lambda x: -bell(x)),
    "logaddexp": (lambda x: tp.logaddexp(x, 0.0), SIDES, logistic, bell),
    "logaddexp, the other": (lambda x: tp.logaddexp(0.0, x), SIDES, logistic, bell),
    "silu": (tp.nn.silu, SIDES, silu_slope, silu_bend),
    "elu": (tp.nn.elu, LOW, np.exp, np.exp),
    "asin": (tp.asin, INSIDE, lambda x: (1 - x * x) ** -0.5, lambda x: x * (1 - x * x) ** -1.5),
    "acos": (
        tp.acos,
        INSIDE,
        lambda x: -((1 - x * x) ** -0.5),
        lambda x: -x * (1 - x * x) ** -1.5,
    ),
    "atanh": (tp.atanh, INSIDE, lambda x: 1 / (1 - x * x), lambda x: 2 * x / (1 - x * x) ** 2),
    "ndtr": (tp.special.ndtr, INSIDE, density, lambda x: -x * density(x)),
    "pow 0": (lambda x: x**0.0, (1e-30, -1e-30, 1e-10, 0.0), np.zeros_like, np.zeros_like),
    "pow 1": (lambda x: x**1.0, (1e-30, -1e-30, 1e-10, 0.0), np.ones_like, np.zeros_like),
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name: str, dtype: str) -> None:
    f, points, *derivatives = DERIVATIVES[name]
    x = np.array(points, dtype)
    first = derive(f)
    second = derive(first)
    about = np.finfo(dtype)
    for order, (found, exact) in enumerate(zip((first, second), derivatives, strict=True), 1):
        got, expected = found(tp.asarray(x)).numpy(), exact(x.astype(wide))
        assert (got.dtype, got.shape) == (x.dtype, x.shape)
        room = 16 * float(about.eps) * np.abs(expected) + 16 * float(about.smallest_subnormal)
        wrong = np.abs(got.astype(wide) - expected) > room
        shown = np.stack([x, got, expected.astype(dtype)], axis=1)[wrong]
        assert not wrong.any(), f"order {order}: x, found and right\n{shown}"


def test_a_small_number_has_a_slope_of_its_logarithm() -> None:
    x = tp.asarray([3e-309], dtype=tp.float64)  # 1 / x is infinite, 1 / (x ln 10) is not
    got = tp.grad(lambda x: tp.sum(tp.log10(x)))(x).numpy()
    np.testing.assert_allclose(got, [1 / np.log(10) * 1e300 / 3e-9], rtol=1e-14)


def test_the_third_derivatives_of_powers_near_0_are_0() -> None:
    x = tp.asarray([1e-160, -1e-200, 0.0], dtype=tp.float64)
    for f in (lambda x: x**0.0, lambda x: x**1.0, lambda x: x**2.0):
        np.testing.assert_array_equal(derive(derive(derive(f)))(x).numpy(), [0, 0, 0])


def derive(f: Function) -> Function:
    """Return the derivative of an elementwise function."""
    return tp.grad(lambda x: tp.sum(f(x)), unconnected="zeros")
