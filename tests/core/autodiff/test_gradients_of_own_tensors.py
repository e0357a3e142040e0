"""A function may dispose of its own tensors while its gradient is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.support.tensors import total

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def same(actual: tp.Tensor, expected: Any) -> None:
    wanted = np.array(expected, np.float32)
    assert (actual.dtype, actual.shape) == (tp.float32, wanted.shape)
    np.testing.assert_allclose(actual.numpy(), wanted, rtol=2e-6)


def _dispose_the_argument(x: tp.Tensor) -> tp.Tensor:
    y = x * x * x
    x.dispose()
    return y


def _dispose_an_unused_argument(x: tp.Tensor, w: tp.Tensor) -> tp.Tensor:
    w.dispose()
    return x * x * x


def test_a_function_may_dispose_of_its_argument() -> None:
    x = tp.asarray([1.0, 2.0])
    y, gradient = tp.value_and_grad(_dispose_the_argument)(x, dy=tp.ones_like(x))
    same(y, [1.0, 8.0])
    same(gradient, [3.0, 12.0])
    same(x, [1.0, 2.0])  # the caller's handle is another
    same(tp.grad(lambda x: tp.grad(total(_dispose_the_argument))(x).sum())(x), [6.0, 12.0])


def test_a_disposed_argument_without_a_path_gets_its_zeros() -> None:
    take = tp.grad(total(_dispose_an_unused_argument), (0, 1), unconnected="zeros")
    dx, dw = take(tp.asarray([2.0]), tp.ones((2, 3)))
    same(dx, [12.0])
    same(dw, np.zeros((2, 3)))


def test_a_vjp_outlives_its_result() -> None:
    def g(x: tp.Tensor) -> tp.Tensor:
        y, vjp = tp.vjp(lambda x: x * x * x, x)
        y.dispose()
        return vjp(tp.ones((2,)))[0].sum()  # 3 x**2, so 6 x comes back

    same(tp.grad(g)(tp.asarray([1.0, 2.0])), [6.0, 12.0])


BAD = [  # what, call, error, a part of the message
    ("a leaf", lambda: tp.grad(lambda p: p)({"w": "1"}), DTypeError, r"argument 0\['w'\] is str"),
    ("complex", lambda: tp.grad(lambda x: x)(1j), DTypeError, "complex64.*; return its real part"),
    ("text", lambda: tp.grad(lambda x: x, "0"), ArgumentError, "argnums must be an integer"),
    ("half", lambda: tp.grad(lambda x: x, 0.5), ArgumentError, "argnums must be an integer"),
    ("vjp", lambda: tp.vjp(lambda x: x, {}, object()), DTypeError, "argument 1: object"),
    ("in it", lambda: tp.grad(lambda x: x, (0, None)), ArgumentError, "argnums must be an int"),
]


@pytest.mark.parametrize(
    ("call", "error", "message"), [row[1:] for row in BAD], ids=[row[0] for row in BAD]
)
def test_arguments_that_cannot_be_differentiated_are_named(
    call: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_argnums_may_be_numpys() -> None:
    numbers = np.array([1, 0])
    product = tp.grad(lambda a, b: a * b, (numbers[0], numbers[1]))
    db, da = product(tp.asarray(3.0), tp.asarray(5.0))
    same(db, 3.0)
    same(da, 5.0)
