"""Derivatives by complex arguments: the definition of each function, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.support.complex_functions import SQUARE, W, X, Z, squared
from tests.core.support.tensors import total

import tensorplug as tp
from tensorplug import train
from tensorplug.errors import DTypeError, GradientError, NotConnectedError
from tensorplug.testing import check_grads, isolated_engine

pytestmark = pytest.mark.usefixtures("on_the_cpu")

with tp.use_backend("cpu"):
    z, w, x = tp.asarray(Z), tp.asarray(W), tp.asarray(X)


def close(
    actual: Any, expected: Any, dtype: tp.DType = tp.complex128, rtol: float = 1e-10
) -> None:
    wanted = np.asarray(expected, dtype.numpy)
    assert (actual.dtype, actual.shape) == (dtype, wanted.shape)
    np.testing.assert_allclose(actual.numpy(), wanted, rtol=rtol, atol=rtol)


def square(z: Any) -> Any:
    return tp.sum(tp.real(z * tp.conj(z)))


def mixed(z: Any, x: Any) -> Any:
    """A loss that is not holomorphic in z, of a real x too."""
    return tp.sum(tp.abs(z) ** 3 + tp.imag(z**2 * x) * tp.exp(x))


# The gradient of a real loss: dL/dx + i dL/dy ----------------------------------------------

BY_VALUE: dict[str, tuple[Any, Any]] = {
    "|z|**2": (square, 2 * Z),
    "|z|": (lambda z: tp.sum(tp.abs(z)), Z / np.abs(Z)),
    "real part": (lambda z: tp.sum(tp.real(z)), np.ones(5)),
    "imaginary part": (lambda z: tp.sum(tp.imag(z)), np.full(5, 1j)),
    "real part of z**2": (lambda z: tp.sum(tp.real(z**2)), 2 * Z.conj()),
    "real part of c z": (lambda z: tp.sum(tp.real(z * (2 + 3j))), np.full(5, 2 - 3j)),
    "real part of c conj z": (
        lambda z: tp.sum(tp.real(tp.conj(z) * (2 + 3j))),
        np.full(5, 2 + 3j),
    ),
    "angle": (lambda z: tp.sum(tp.atan2(tp.imag(z), tp.real(z))), 1j * Z / np.abs(Z) ** 2),
}


@pytest.mark.parametrize(("f", "expected"), BY_VALUE.values(), ids=BY_VALUE)
def test_it_points_to_where_the_loss_grows(f: Any, expected: Any) -> None:
    gradient = tp.grad(f)(z)
    close(gradient, expected)
    assert float(f(z - 1e-4 * gradient)) < float(f(z)) < float(f(z + 1e-4 * gradient))
    value, again = tp.value_and_grad(f)(z)
    close(again, expected)
    assert value.dtype is tp.float64
    close(tp.jacobian(f)(z), expected)
    close(tp.vjp(f, z)[1](tp.asarray(1.0, dtype=tp.float64))[0], np.conj(expected))


def test_at_zero_a_modulus_has_gradient_zero() -> None:
    zero = tp.zeros(2, dtype=tp.complex128)
    close(tp.grad(lambda z: tp.sum(tp.abs(z)))(zero), [0, 0])
    close(tp.grad(tp.linalg.vector_norm)(zero), [0, 0])
    close(tp.grad(lambda z: tp.sum(tp.real(tp.sign(z))))(zero), [0, 0])


def test_elements_that_are_zero_count_in_the_second_derivative_of_a_norm() -> None:
    at = tp.asarray([3.0, 0.0, 4.0], dtype=tp.float64)
    expected = (np.eye(3) - np.outer([0.6, 0, 0.8], [0.6, 0, 0.8])) / 5
    close(tp.hessian(tp.linalg.vector_norm)(at), expected, tp.float64)
    check_grads(tp.linalg.vector_norm, [np.array([3.0, 0.0, 4j])], order=2)


def test_real_arguments_have_real_gradients() -> None:
    dz, dx = tp.grad(lambda z, x: tp.sum(tp.real(z * x) + tp.imag(z) * x), (0, 1))(z, x)
    close(dz, X + 1j * X)
    close(dx, Z.real + Z.imag, tp.float64)
    # a real scalar that is broadcast against complex numbers; float32 beside complex128
    narrow = tp.asarray(2.0)
    close(tp.grad(lambda x: square(x * z))(narrow), 4 * np.sum(np.abs(Z) ** 2), tp.float32, 1e-6)
    close(tp.grad(lambda x: square(x + 1j))(x), 2 * X, tp.float64)
    whole = tp.asarray([1, 2, 3, 4, 5])
    close(tp.grad(lambda z: tp.sum(tp.real(whole * z)))(z), [1, 2, 3, 4, 5])


def test_dy_of_a_complex_result_is_a_gradient_itself() -> None:
    inner, outer = lambda z: tp.exp(z) * tp.conj(z), square
    chained = tp.grad(inner)(z, dy=tp.grad(outer)(inner(z)))
    close(chained, tp.grad(lambda z: outer(inner(z)))(z).numpy())


def test_trees_and_what_is_handed_on() -> None:
    def f(p: Any) -> Any:
        return square(p["z"] * p["x"][0]), {"seen": p["z"] * 2}

    (value, aux), result = tp.value_and_grad(f, has_aux=True)({"z": z, "x": [x]})
    close(value, np.sum(np.abs(Z * X) ** 2), tp.float64)
    close(aux["seen"], 2 * Z)
    close(result["z"], 2 * Z * X**2)
    close(result["x"][0], 2 * X * np.abs(Z) ** 2, tp.float64)


def test_unconnected_arguments() -> None:
    f = lambda a, _: square(a)  # noqa: E731  # reads as a formula
    close(tp.grad(f, (0, 1), unconnected="zeros")(z, w)[1], np.zeros(5))
    with pytest.raises(NotConnectedError, match=r"argument 1 \(complex128\[5\]\)"):
        tp.grad(f, (0, 1))(z, w)
    with pytest.raises(NotConnectedError):
        tp.grad(lambda z: square(tp.stop_gradient(z)))(z)
    close(tp.grad(lambda z: square(z * tp.stop_gradient(z)) / 2)(z), np.abs(Z) ** 2 * Z)


def test_a_sign_turns_where_it_is_complex_and_is_a_step_where_it_is_real() -> None:
    close(tp.grad(lambda z: tp.sum(tp.imag(tp.sign(z))))(z), 1j * Z.real * Z / np.abs(Z) ** 3)
    with pytest.raises(NotConnectedError):
        tp.grad(lambda x: tp.sum(tp.sign(x)))(x)


# The derivative of a holomorphic function --------------------------------------------------


def test_the_derivative_of_a_holomorphic_function() -> None:
    cube = lambda z: z**3  # noqa: E731  # reads as a formula
    first = tp.grad(total(cube), holomorphic=True)
    close(first(z), 3 * Z**2)
    close(tp.grad(cube, holomorphic=True)(z, dy=w), 3 * Z**2 * W)
    close(tp.grad(lambda z: tp.sum(first(z)), holomorphic=True)(z), 6 * Z)
    value, result = tp.value_and_grad(cube, holomorphic=True)(z, dy=tp.ones_like(z))
    close(value, Z**3)
    close(result, 3 * Z**2)
    close(tp.jacobian(cube, holomorphic=True)(z), np.diag(3 * Z**2))
    close(tp.hessian(lambda z: tp.sum(cube(z)), holomorphic=True)(z), np.diag(6 * Z))
    (result, aux) = tp.grad(lambda z: (tp.sum(cube(z)), 1), holomorphic=True, has_aux=True)(z)
    close(result, 3 * Z**2)
    assert aux == 1


REFUSED: dict[str, tuple[Any, str]] = {
    "grad": (lambda: tp.grad(tp.exp)(z), "its real part, its imaginary part or its abs"),
    "value_and_grad": (lambda: tp.value_and_grad(tp.exp)(z), "set holomorphic=True"),
    "of real arguments": (lambda: tp.grad(lambda x: x * 1j)(x), "set holomorphic=True"),
    "jacobian": (
        lambda: tp.jacobian(tp.exp)(z),
        r"jacobian: the result must be real, got complex128\[5\]",
    ),
    "hessian": (lambda: tp.hessian(square)(z), "by real and imaginary parts"),
    "holomorphic of a real argument": (
        lambda: tp.grad(lambda x: x * 1j, holomorphic=True)(x),
        r"argument 0 is float64\[5\]; with holomorphic=True it must be complex",
    ),
    "holomorphic with a real result": (
        lambda: tp.grad(square, holomorphic=True)(z),
        r"the result must be complex, got float64\[\]",
    ),
    "jacobian, real result": (lambda: tp.jacobian(tp.abs, holomorphic=True)(z), "must be complex"),
    "hessian, real argument": (lambda: tp.hessian(tp.exp, holomorphic=True)(x), "must be complex"),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_a_missing_derivative_raises(call: Any, message: str) -> None:
    with pytest.raises(DTypeError, match=message):
        call()


# Second order, vectors, checkpoints, gradients of one's own ---------------------------------


def test_second_derivatives_are_those_of_the_parts() -> None:
    """The Hessian times a vector, by the gradient of a gradient and over the reals."""

    def of_parts(a: Any, b: Any) -> Any:
        return mixed(tp.complex(a, b), x)

    u = W
    hvp = tp.grad(lambda z: tp.sum(tp.real(tp.conj(tp.grad(mixed)(z, x)) * u)))(z)
    (aa, ab), (ba, bb) = tp.hessian(of_parts, (0, 1))(tp.real(z), tp.imag(z))
    real_part = aa.numpy() @ u.real + ab.numpy() @ u.imag
    imaginary = ba.numpy() @ u.real + bb.numpy() @ u.imag
    close(hvp, real_part + 1j * imaginary)
    # and along the direction, by differences
    step, gradient = 1e-6, tp.grad(mixed)
    ahead, behind = (gradient(tp.asarray(Z + k * step * u), x).numpy() for k in (1, -1))
    np.testing.assert_allclose(hvp.numpy(), (ahead - behind) / (2 * step), rtol=1e-7)


def test_a_gradient_is_differentiable_in_any_number_of_steps() -> None:
    check_grads(tp.grad(mixed, (0, 1)), [Z, X], order=2, rtol=1e-5, atol=1e-5)


def test_jvp_moves_with_the_argument() -> None:
    f = lambda z, x: tp.abs(z) * z + tp.conj(z) * x  # noqa: E731  # reads as a formula
    y, moved = tp.jvp(f, (z, x), (w, tp.ones_like(x)))
    close(y, np.abs(Z) * Z + Z.conj() * X)
    step = 1e-6
    ahead, behind = (
        f(tp.asarray(Z + k * step * W), tp.asarray(X + k * step)).numpy() for k in (1, -1)
    )
    close(moved, (ahead - behind) / (2 * step), rtol=1e-8)
    close(tp.jvp(tp.exp, (z,), (w,))[1], np.exp(Z) * W)
    close(tp.jvp(lambda x: x * 1j, (x,), (x,))[1], 1j * X)
    close(tp.jvp(tp.abs, (z,), (z,))[1], np.abs(Z), tp.float64)


def test_vjp_is_the_transpose_of_jvp() -> None:
    f = lambda z: tp.abs(z) * z  # noqa: E731  # reads as a formula
    dy = np.exp(1j * np.arange(5))
    _, vjp = tp.vjp(f, z)
    _, moved = tp.jvp(f, (z,), (w,))
    along = np.sum(vjp(tp.asarray(dy))[0].numpy() * W).real
    np.testing.assert_allclose(np.sum(dy * moved.numpy()).real, along)


def test_a_checkpoint_changes_nothing() -> None:
    f = lambda z: squared(tp.fft.fft(tp.exp(z) * tp.conj(z)))  # noqa: E731  # reads as a formula
    close(tp.grad(tp.checkpoint(f))(z), tp.grad(f)(z).numpy())
    check_grads(tp.checkpoint(f), [Z / 3], order=2, rtol=1e-5, atol=1e-5)


def test_a_gradient_of_ones_own_reads_as_that_of_a_real_function() -> None:
    cube = tp.custom_grad(lambda z: (z**3, lambda dy: dy * 3 * z**2))
    check_grads(cube, [Z], order=2)
    close(tp.grad(total(cube), holomorphic=True)(z), 3 * Z**2)
    modulus = tp.custom_grad(lambda z: (tp.abs(z), lambda dy: dy * tp.conj(z) / tp.abs(z)))
    check_grads(modulus, [Z], order=2)
    product = tp.custom_grad(lambda x, z: (x * z, lambda dy: (dy * z, dy * x)))
    check_grads(product, [X, Z], order=2)  # the driver takes the real part for x
    check_grads(product, [2.0, Z], order=2)
    real_for_complex = tp.custom_grad(lambda z: (tp.real(z), lambda dy: dy))
    with pytest.raises(GradientError, match=r"is float64\[5\], but must be complex128\[5\]"):
        tp.grad(lambda z: tp.sum(real_for_complex(z)))(z)


def test_a_registered_rule_reads_as_that_of_a_real_function() -> None:
    with isolated_engine("cpu"):
        tp.unregister_gradient("Square")
        tp.register_gradient("Square", "x", lambda dy, x: dy * 2 * x)
        close(tp.grad(lambda z: tp.sum(tp.real(tp.square(z))))(tp.asarray(Z)), 2 * Z.conj())


# Variables and optimizers ------------------------------------------------------------------


@pytest.mark.usefixtures("own_engine")
def test_gradients_of_variables() -> None:
    v, scale = tp.Variable(Z, name="v"), tp.Variable(2.0, name="scale")
    result = tp.variable_grads(lambda: square(v * scale))
    close(result.grads["v"], 8 * Z)
    close(result.grads["scale"], 4 * np.sum(np.abs(Z) ** 2), tp.float32, 1e-6)
    assert set(tp.variable_grads(lambda: square(v), [v]).grads) == {"v"}
    with pytest.raises(
        DTypeError, match="variable_grads: the result must be real, got complex128"
    ):
        tp.variable_grads(lambda: tp.sum(v))


@pytest.mark.usefixtures("own_engine")
def test_an_optimizer_goes_on_where_another_stopped() -> None:
    v = tp.Variable(SQUARE, name="v")
    first, second = train.adam(0.1), train.adam(0.1)
    first.minimize(lambda: square(v @ v))
    second.state = first.state
    start = v.read()
    gradient = tp.grad(lambda a: square(a @ a))(start)
    first.apply_gradients({"v": gradient})
    moved = v.numpy().copy()
    v.assign(start)
    second.apply_gradients({"v": gradient})
    np.testing.assert_array_equal(v.numpy(), moved)
    assert np.abs(moved - start.numpy()).min() > 1e-3
