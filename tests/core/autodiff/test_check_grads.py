"""check_grads sees right gradients pass and every kind of wrong one fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError
from tensorplug.testing import check_grads

X = np.array([0.3, -0.7, 1.9])


pytestmark = pytest.mark.usefixtures("on_the_cpu")


def with_gradient(rule: Any) -> Any:
    """Return the sine with ``rule(dy, x)`` for its gradient."""
    return tp.custom_grad(lambda x: (tp.sin(x), lambda dy: rule(dy, x)))


RIGHT = with_gradient(lambda dy, x: dy * tp.cos(x))
WRONG = {
    "factor": with_gradient(lambda dy, x: dy * tp.cos(x) * 2.0),
    "sign": with_gradient(lambda dy, x: -dy * tp.cos(x)),
    "small error": with_gradient(lambda dy, x: dy * tp.cos(x) * 1.0001),
    "one element": with_gradient(lambda dy, x: dy * (tp.cos(x) + np.array([0, 0, 1e-3]))),
    "NaN": with_gradient(lambda dy, x: dy * tp.cos(x) * float("nan")),
    "zero": with_gradient(lambda dy, x: tp.zeros_like(dy * x)),
    "stopped": lambda x: tp.sin(tp.stop_gradient(x)),
    "dy ignored": with_gradient(lambda dy, x: tp.cos(x) + 0.0 * dy),
}


WHOLE = [1, 2, None]  # numbers of random directions, and each element by itself


@pytest.mark.parametrize("directions", WHOLE)
@pytest.mark.parametrize("mode", ["vjp", "jvp"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("f", [RIGHT, tp.exp, tp.sum, lambda x: x, lambda x: 3.0 * x])
def test_right_gradients_pass(f: Any, order: Any, mode: Any, directions: Any) -> None:
    check_grads(f, [X], order=order, modes=(mode,), directions=directions)


@pytest.mark.parametrize("directions", WHOLE)
@pytest.mark.parametrize("mode", ["vjp", "jvp"])
@pytest.mark.parametrize("what", WRONG)
def test_wrong_gradients_fail(what: str, mode: Any, directions: Any) -> None:
    place = r" at element \[\d\]" if directions is None else ""
    message = (
        rf"order 1, with respect to argument 0{place}, mode {mode}.*numeric \S+, analytic \S+"
    )
    with pytest.raises(AssertionError, match=message):
        check_grads(WRONG[what], [X], modes=(mode,), directions=directions)


@pytest.mark.parametrize("directions", WHOLE)
@pytest.mark.parametrize("mode", ["vjp", "jvp"])
def test_a_gradient_that_is_wrong_on_a_broadcast_axis_alone(mode: Any, directions: Any) -> None:
    def product(backward: Any) -> Any:
        return tp.custom_grad(lambda a, b: (a * b, lambda dy: (dy * b, backward(dy, a))))

    a, b = np.arange(1.0, 7.0).reshape(2, 3), np.array([0.5, -1.0, 2.0])
    right = product(lambda dy, a: tp.sum(dy * a, axis=0))
    mean = product(lambda dy, a: tp.mean(dy * a, axis=0))  # along the axis, but not its sum
    first = product(lambda dy, a: (dy * a)[0])
    check_grads(right, [a, b], modes=(mode,), directions=directions)
    for wrong in (mean, first):
        check_grads(wrong, [a, b], argnums=0, modes=(mode,), directions=directions)
        with pytest.raises(AssertionError, match="with respect to argument 1"):
            check_grads(wrong, [a, b], modes=(mode,), directions=directions)


def test_elementwise_names_the_element() -> None:
    x = np.arange(1.0, 7.0).reshape(2, 3)
    one_off = np.array([[0, 0, 0], [0, 0, 1e-3]])
    f = with_gradient(lambda dy, x: dy * (tp.cos(x) + one_off))
    with pytest.raises(AssertionError, match=r"argument 0 at element \[1, 2\], mode vjp: numeric"):
        check_grads(f, [x], directions=None)
    message = r"argument 0 at element \[1, 2\], mode jvp at element \[1, 2\]: numeric"
    with pytest.raises(AssertionError, match=message):
        check_grads(f, [x], directions=None, modes=("jvp",))


def test_a_large_input_is_checked_along_directions() -> None:
    calls = 0

    def f(x: tp.Tensor) -> tp.Tensor:
        nonlocal calls
        calls += 1
        return tp.sum(tp.sin(x) * x)

    x = np.linspace(-1, 1, 20_000).reshape(100, 200)
    check_grads(f, [x], order=2, directions=3)
    assert calls < 100
    with pytest.raises(AssertionError):
        check_grads(lambda x: tp.sum(WRONG["small error"](x)), [x], directions=1)


SECOND_ORDER_WRONG = {
    "constant": with_gradient(lambda dy, x: dy * tp.stop_gradient(tp.cos(x))),
    "in dy": with_gradient(lambda dy, x: tp.stop_gradient(dy) * tp.cos(x)),
}


@pytest.mark.parametrize("directions", WHOLE)
@pytest.mark.parametrize("what", SECOND_ORDER_WRONG)
def test_wrong_second_derivatives_fail_in_second_order_alone(what: str, directions: Any) -> None:
    f = SECOND_ORDER_WRONG[what]
    check_grads(f, [X], modes=("vjp",), directions=directions)
    hung_on = "argument 0" if what == "constant" else "the incoming dy"
    message = f"order 2, of the gradient of argument 0, with respect to {hung_on}"
    with pytest.raises(AssertionError, match=message):
        check_grads(f, [X], order=2, modes=("vjp",), directions=directions)


def test_the_message_names_the_argument_that_is_wrong() -> None:
    @tp.custom_grad
    def product(a: tp.Tensor, b: tp.Tensor) -> Any:
        return a * b, lambda dy: (dy * b, dy * a * 3.0)

    with pytest.raises(AssertionError, match="order 1, with respect to argument 1, mode vjp"):
        check_grads(product, [X, X + 1])

    def of_tree(first: Any, tree: Any) -> Any:
        return product(tree["a"], tree["b"]) + first

    with pytest.raises(AssertionError, match=r"with respect to argument 1\['b'\], mode vjp"):
        check_grads(of_tree, [X, {"a": X, "b": X + 1}])


def test_argnums_choose() -> None:
    @tp.custom_grad
    def product(a: tp.Tensor, b: tp.Tensor) -> Any:
        return a * b, lambda dy: (dy * b, dy * a * 3.0)

    def f(scale: Any, tree: Any) -> tp.Tensor:
        assert isinstance(scale, np.ndarray)  # it is not differentiated, and so left as it is
        return product(tree["a"] * scale, tree["b"])

    tree = {"a": X, "b": X + 1, "none": None}
    check_grads(product, [X, X + 1], argnums=(0,))
    with pytest.raises(AssertionError, match=r"argument 1\['b'\], mode vjp"):
        check_grads(f, [X, tree], argnums=-1)


def test_trees_of_results() -> None:
    wrong = WRONG["one element"]
    matrix = np.arange(1.0, 7.0).reshape(2, 3)

    def f(x: tp.Tensor, m: tp.Tensor) -> Any:
        return {"sum": tp.sum(m * x), "pair": (m @ x, tp.exp(x)), "none": None}

    check_grads(f, [X, matrix], order=2)
    message = r"mode jvp of the result\['pair'\]\[1\] at element \[2\]"
    with pytest.raises(AssertionError, match=message):
        check_grads(lambda x: {"x": x, "pair": (x, wrong(x))}, [X], modes=("jvp",))
    with pytest.raises(AssertionError, match="mode vjp"):
        check_grads(lambda x: {"x": x, "pair": (x, wrong(x))}, [X], modes=("vjp",))


def test_ranks_and_sizes() -> None:
    for shape in ((), (1,), (0,), (2, 0), (1, 1, 2)):
        point = np.full(shape, 0.5)
        check_grads(tp.exp, [point], order=2, directions=None)
        check_grads(tp.sum, [point], order=2, directions=1)


def test_the_message_holds_both_values() -> None:
    tripled = tp.custom_grad(lambda x: (x * 2.0, lambda dy: dy * 6.0))
    with pytest.raises(AssertionError) as caught:
        check_grads(tripled, [1.0], modes=("jvp",))
    text = str(caught.value)
    # One element: the unit direction is 1 or -1.
    assert any(
        f"numeric {sign}2" in text and f"analytic {sign}6," in text and "differ by 4 " in text
        for sign in ("", "-")
    ), text


def test_arguments_that_are_not_floating_are_passed_on() -> None:
    def f(x: tp.Tensor, at: Any, *, scale: float = 2.0) -> tp.Tensor:
        assert isinstance(at, np.ndarray)
        return tp.gather(x, at) * scale

    check_grads(f, [X, np.array([2, 2, 0], np.int32)], order=2)


def test_float32_arguments_are_checked_in_float64() -> None:
    seen = set()

    def f(x: tp.Tensor) -> tp.Tensor:
        seen.add(x.dtype)
        return tp.exp(x)

    check_grads(f, [tp.asarray([1.0, 2.0], dtype=tp.float32)], rtol=1e-8, atol=1e-8)
    assert seen == {tp.float64}


def test_the_same_seed_gives_the_same_directions() -> None:
    def text(seed: int) -> str:
        with pytest.raises(AssertionError) as caught:
            check_grads(WRONG["factor"], [X], seed=seed)
        return str(caught.value)

    assert text(3) == text(3)
    assert text(3) != text(4)


def test_tolerances_decide() -> None:
    check_grads(WRONG["small error"], [X], rtol=1e-3)
    with pytest.raises(AssertionError, match="rtol=1e-05"):
        check_grads(WRONG["small error"], [X], rtol=1e-5, atol=0.0)


@pytest.mark.parametrize(
    ("f", "args", "options", "message"),
    [
        (tp.sin, [X], {"order": 3}, "order must be 1 or 2, got 3"),
        (tp.sin, [X], {"modes": ("fwd",)}, "modes must be of 'vjp' and 'jvp'"),
        (tp.sin, [X], {"modes": ()}, "modes must be of 'vjp' and 'jvp'"),
        (tp.abs, [np.array([1, 2])], {}, "at least one argument must be floating"),
        (tp.sin, [X], {"directions": 0}, "directions must be at least 1, got 0"),
        (tp.sin, [X], {"directions": 1.5}, "directions must be an integer, got 1.5"),
        (tp.sin, [X], {"argnums": 1}, "argnums 1 is out of range: the function got 1"),
        (tp.sin, [X], {"argnums": ()}, "at least one argument must be floating"),
        (lambda x: [x, 2.0], [X], {}, "return a tensor, got float"),
        (lambda _: [], [X], {}, "return a tensor, got list"),
        (lambda _: None, [X], {}, "return a tensor, got NoneType"),
        (lambda x: x > 0, [X], {}, "return a floating or complex tensor, got bool"),
    ],
)
def test_misuse_is_named(f: Any, args: Any, options: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        check_grads(f, args, **options)


# Complex numbers ---------------------------------------------------------------------------

Z = X + 1j * np.array([1.0, 0.5, -2.0])


def modulus_with(rule: Any) -> Any:
    """Return |z|**2 z, which is not holomorphic, with ``rule(dy, z)`` for its gradient."""
    return tp.custom_grad(lambda z: (z * tp.abs(z) ** 2, lambda dy: rule(dy, z)))


def _right(dy: Any, z: Any) -> Any:
    return dy * 2 * tp.abs(z) ** 2 + tp.conj(dy) * tp.conj(z) ** 2


COMPLEX_WRONG = {
    "conjugate": lambda dy, z: tp.conj(_right(dy, z)),
    "as if holomorphic": lambda dy, z: dy * 2 * tp.abs(z) ** 2,
    "of the real part alone": lambda dy, z: tp.complex(tp.real(_right(dy, z)), 0.0),
    "linear in dy over complex numbers alone": lambda dy, z: (
        dy * (2 * tp.abs(z) ** 2 + tp.conj(z) ** 2)
    ),
}


@pytest.mark.parametrize("directions", WHOLE)
@pytest.mark.parametrize("mode", ["vjp", "jvp"])
@pytest.mark.parametrize("order", [1, 2])
def test_right_gradients_of_complex_numbers_pass(order: Any, mode: Any, directions: Any) -> None:
    options: Any = {"order": order, "modes": (mode,), "directions": directions}
    for f in (modulus_with(_right), tp.exp, tp.abs, tp.conj, lambda z: [tp.real(z), z * z]):
        check_grads(f, [Z], **options)
    check_grads(lambda x, p: x * p["z"], [X, {"z": Z, "n": 2}], **options)


@pytest.mark.parametrize("directions", WHOLE)
@pytest.mark.parametrize("mode", ["vjp", "jvp"])
@pytest.mark.parametrize("what", COMPLEX_WRONG)
def test_wrong_gradients_of_complex_numbers_fail(what: str, mode: Any, directions: Any) -> None:
    place = r" at element \[\d\] \((real|imaginary) part\)" if directions is None else ""
    with pytest.raises(AssertionError, match=rf"order 1, with respect to argument 0{place}, mode"):
        check_grads(modulus_with(COMPLEX_WRONG[what]), [Z], modes=(mode,), directions=directions)


def test_complex_leaves_are_taken_in_double_precision() -> None:
    def f(z: Any) -> Any:
        assert z.dtype is tp.complex128
        return z * z

    check_grads(f, [Z.astype("complex64")])
