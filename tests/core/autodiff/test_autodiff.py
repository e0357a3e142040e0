"""grad, value_and_grad and vjp: what they return and what they refuse."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.core.support.tensors import live, same, tensor, total

import tensorplug as tp
from tensorplug.errors import ArgumentError, DisposedError, DTypeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

# Values and gradients -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argnums", "expected"),
    [
        (0, 6.0),
        (1, 2.0),
        (-1, 2.0),
        ((0,), (6.0,)),
        ((1, 0), (2.0, 6.0)),
        ([0, 1], (6.0, 2.0)),
        ((np.int64(1), np.int32(0)), (2.0, 6.0)),
        ((), ()),
    ],
)
def test_argnums(argnums: Any, expected: Any) -> None:
    gradients = tp.grad(lambda x, y: x * y, argnums)(tensor(2.0), tensor(6.0))
    if isinstance(expected, float):
        same(gradients, expected)
        return
    assert isinstance(gradients, tuple)
    assert len(gradients) == len(expected)
    for item, value in zip(gradients, expected, strict=True):
        same(item, value)


@pytest.mark.parametrize("argnums", [2, -3, (0, 5)])
def test_argnums_out_of_range(argnums: Any) -> None:
    with pytest.raises(ArgumentError, match="out of range: the function got 2 arguments"):
        tp.grad(lambda x, y: x * y, argnums)(1.0, 2.0)


def test_keyword_arguments_are_passed_on() -> None:
    gradient = tp.grad(total(lambda x, *, scale: x * scale))(tensor([1.0]), scale=3.0)
    same(gradient, [3])


@pytest.mark.parametrize(
    "x", [2.0, np.float32(2.0), tp.asarray(2.0)], ids=lambda x: type(x).__name__
)
def test_tensor_likes_can_be_differentiated(x: Any) -> None:
    same(tp.grad(lambda x: x**3)(x), 12)


def test_the_function_keeps_its_name() -> None:
    def loss(x: tp.Tensor) -> tp.Tensor:
        """Documented."""
        return x

    assert (tp.grad(loss).__name__, tp.grad(loss).__doc__) == ("loss", "Documented.")


def test_the_same_tensor_in_two_places() -> None:
    x = tensor([2.0, 3.0])
    both = tp.grad(total(lambda a, b: a * a * b), (0, 1))(x, x)
    same(both[0], [8, 18])
    same(both[1], [4, 9])
    same(tp.grad(total(lambda pair: pair[0] * pair[1]))([x, x])[0], [2, 3])
    same(tp.grad(total(lambda x: x * x * x))(x), [12, 27])


def test_gradients_of_one_value_are_disposed_of_separately() -> None:
    dy = tensor([1.0, 2.0])
    a, b = tp.grad(lambda a, b: a + b, (0, 1))(tensor([1.0, 1.0]), tensor([1.0, 1.0]), dy=dy)
    a.dispose()
    same(b, [1, 2])
    b.dispose()
    same(dy, [1, 2])


# Trees ----------------------------------------------------------------------------------


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass(frozen=True)
class Layer:
    weight: Any
    bias: Any


TREES: dict[str, Any] = {
    "dict": lambda a, b: {"b": b, "a": a},
    "list": lambda a, b: [a, b],
    "tuple": lambda a, b: (a, b),
    "named tuple": Pair,
    "dataclass": Layer,
    "nested": lambda a, b: {"layers": [Layer(a, (b,))]},
}


@pytest.mark.parametrize("kind", TREES)
def test_trees_keep_their_structure(kind: str) -> None:
    build = TREES[kind]

    def f(tree: Any) -> tp.Tensor:
        assert type(tree) is type(build(0.0, 0.0))
        if isinstance(tree, dict) and "layers" in tree:
            tree = [tree["layers"][0].weight, tree["layers"][0].bias[0]]
        elif isinstance(tree, dict):
            tree = [tree["a"], tree["b"]]
        elif isinstance(tree, Layer):
            tree = [tree.weight, tree.bias]
        return tp.sum(tree[0] ** 2 * tree[1])

    gradient = tp.grad(f)(build(tensor([1.0, 2.0]), tensor(3.0)))
    expected = build(np.array([6, 12], np.float32), np.array(5, np.float32))
    assert type(gradient) is type(expected)
    tp.tree_map(same, gradient, expected)


@pytest.mark.parametrize("empty", [{}, [], ()], ids=repr)
def test_an_empty_tree_has_an_empty_gradient(empty: Any) -> None:
    value, (none, gradient) = tp.value_and_grad(lambda _, x: x * 2, (0, 1))(empty, tensor(1.0))
    assert none == empty
    same(gradient, 2)
    same(value, 2)
    assert tp.grad(lambda _: tensor(1.0))(empty) == empty
    # Here the value hangs on an outer tape, but not on anything of the inner one.
    outer = tp.grad(lambda x: tp.value_and_grad(lambda _: x * 3.0)(empty)[0])
    same(outer(tensor(1.0)), 3)


def test_a_tree_with_an_integer() -> None:
    with pytest.raises(DTypeError, match=r"argument 0\['step'\] is int32\[\]; only floating"):
        tp.grad(lambda tree: tree["x"] * 2)({"x": tensor(1.0), "step": 3})


# dy -------------------------------------------------------------------------------------


def test_dy_is_multiplied_in() -> None:
    x, dy = tensor([2.0, 3.0]), tensor([10.0, 100.0])
    same(tp.grad(lambda x: x**2)(x, dy=dy), [40, 600])
    same(tp.grad(lambda x: x**2)(x, dy=[10.0, 100.0]), [40, 600])


@pytest.mark.parametrize(
    ("dy", "message"),
    [
        (np.array([1, 2], np.int32), r"dy is int32\[2\], but the result is float32\[2\]"),
        (np.array([1, 2], np.float64), r"dy is float64\[2\], but the result is float32\[2\]"),
        (np.ones((2, 1), np.float32), r"dy is float32\[2,1\], but the result is float32\[2\]"),
        (np.float32(1), r"dy is float32\[\], but the result is float32\[2\]"),
    ],
)
def test_dy_must_fit(dy: Any, message: str) -> None:
    for call in (
        lambda: tp.grad(lambda x: x**2)(tensor([2.0, 3.0]), dy=tp.asarray(dy)),
        lambda: tp.grad(lambda x: x**2)(tensor([2.0, 3.0]), dy=dy),
        lambda: tp.vjp(lambda x: x**2, tensor([2.0, 3.0]))[1](tp.asarray(dy)),
    ):
        with pytest.raises(ArgumentError, match=message):
            call()


# vjp ------------------------------------------------------------------------------------


def test_a_vjp_may_be_called_more_than_once() -> None:
    y, vjp = tp.vjp(lambda a, b: a * b, tensor([2.0, 3.0]), tensor([5.0, 7.0]))
    same(y, [10, 21])
    for dy in ([1.0, 1.0], [0.0, 2.0], [1.0, 1.0]):
        da, db = vjp(tensor(dy))
        same(da, np.multiply(dy, [5, 7]))
        same(db, np.multiply(dy, [2, 3]))


def test_a_vjp_outlives_what_the_user_disposed_of() -> None:
    kept: list[tp.Tensor] = []

    def f(x: tp.Tensor) -> tp.Tensor:
        square = x * x
        kept.append(square)
        return square * square

    x = tensor(3.0)
    y, vjp = tp.vjp(f, x)
    tp.dispose([kept, x, y])
    same(vjp(tensor(1.0))[0], 108)
    with pytest.raises(DisposedError):
        _ = kept[0] + 1


def test_an_intermediate_disposed_of_inside() -> None:
    def f(x: tp.Tensor) -> tp.Tensor:
        square = x * x
        z = square * square
        square.dispose()
        return z

    same(tp.grad(f)(tensor(3.0)), 108)
    same(tp.grad(lambda x: tp.tidy(f, x))(tensor(3.0)), 108)


def test_a_disposed_result() -> None:
    def f(x: tp.Tensor) -> tp.Tensor:
        y = x * 2
        y.dispose()
        return y

    with pytest.raises(DisposedError):
        tp.grad(f)(tensor(1.0))


def _disposes_of_its_argument(x: tp.Tensor) -> tp.Tensor:
    y = x * x * x
    x.dispose()
    return y


def test_a_function_may_dispose_of_its_argument() -> None:
    x = tensor([1.0, 2.0])
    y, gradient = tp.value_and_grad(_disposes_of_its_argument)(x, dy=tp.ones_like(x))
    same(y, [1, 8])
    same(gradient, [3, 12])
    same(x, [1, 2])  # the caller's handle is another
    same(tp.grad(lambda x: tp.grad(total(_disposes_of_its_argument))(x).sum())(x), [6, 12])
    # One that has no path to the result gets its zeros.
    second = total(lambda x, w: w.dispose() or x * x * x)
    dx, dw = tp.grad(second, (0, 1), unconnected="zeros")(tensor([2.0]), tp.ones((2, 3)))
    same(dx, [12])
    same(dw, np.zeros((2, 3)))


def test_tidy_around_a_gradient_frees_all_but_the_gradient() -> None:
    x = tensor([1.0, 2.0])
    f = tp.grad(lambda x: tp.sum(tp.sin(x) * x))
    f(x)  # fills the caches
    before = live()
    gradient = tp.tidy(f, x)
    assert live() == before + 1
    same(gradient, np.sin([1, 2]) + np.array([1, 2]) * np.cos([1, 2]))


def test_tidy_frees_the_value_too() -> None:
    x = tensor([1.0, 2.0])
    own = tp.custom_grad(lambda x: (x, lambda dy: dy))
    with tp.tidy():
        value, gradient = tp.value_and_grad(lambda x: x * x)(x, dy=tp.ones_like(x))
        y, vjp = tp.vjp(lambda a, b: a + b, x, x)
        made = [value, gradient, y, *vjp(tensor([1.0, 1.0])), tp.stop_gradient(x), own(x)]
    assert [tensor.is_disposed for tensor in made] == [True] * 7
    same(x, [1, 2])


# What cannot be differentiated ----------------------------------------------------------


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: tp.grad(lambda _: [])(1.0), ArgumentError, "must return a tensor, got list"),
    (lambda: tp.grad(lambda _: 1.0)(1.0), ArgumentError, "must return a tensor, got float"),
    (lambda: tp.grad(lambda _: None)(1.0), ArgumentError, "must return a tensor, got NoneType"),
    (lambda: tp.grad(lambda _: np.ones(2))(1.0), ArgumentError, "a tensor, got ndarray"),
    (lambda: tp.value_and_grad(lambda x: [x])(1.0), ArgumentError, "a tensor, got list"),
    (lambda: tp.vjp(lambda _: None, 1.0), ArgumentError, "must return a tensor, got NoneType"),
    (lambda: tp.vjp(lambda x: {"a": [x, "b"]}, 1.0), ArgumentError, r"got str at \['a'\]\[1\]"),
    (lambda: tp.grad(lambda p: p)({"w": "1"}), DTypeError, r"argument 0\['w'\] is str"),
    (lambda: tp.grad(lambda x: x)(1j), DTypeError, "complex64.*; return its real part"),
    (lambda: tp.vjp(lambda x: x, {}, object()), DTypeError, "argument 1: object"),
    *(
        (lambda at=at: tp.grad(lambda x: x, at), ArgumentError, "argnums must be an integer")
        for at in ("0", 0.5, (0, None))
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_what_cannot_be_differentiated_is_named(
    call: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("who", ["grad", "value_and_grad", "vjp"])
def test_f_must_be_a_function(who: str) -> None:
    with pytest.raises(ArgumentError, match=f"{who}: f must be a function, got Tensor"):
        getattr(tp, who)(tensor(1.0), tensor(1.0))


def test_a_disposed_argument() -> None:
    x = tensor(1.0)
    x.dispose()
    with pytest.raises(DisposedError):
        tp.grad(lambda x: x * 2)(x)
