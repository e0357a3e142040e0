"""Results that are trees, auxiliary results, and the gradients that arrive at them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.core.support.tensors import live, same, tensor, total

import tensorplug as tp
from tensorplug.errors import (
    ArgumentError,
    DisposedError,
    DTypeError,
    NotConnectedError,
    ShapeError,
)

pytestmark = pytest.mark.usefixtures("on_the_cpu")

# Trees of results -----------------------------------------------------------------------


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass
class Out:
    loss: Any
    logits: Any


BUILDS: dict[str, Any] = {
    "dict": lambda a, b: {"a": a, "b": b},
    "ordered dict": lambda a, b: OrderedDict(b=b, a=a),
    "list": lambda a, b: [a, b],
    "named tuple": Pair,
    "dataclass": Out,
    "nested": lambda a, b: (a, {"deep": [b, None], "empty": ()}),
}


@pytest.mark.parametrize("kind", BUILDS)
def test_vjp_of_a_tree(kind: str) -> None:
    build = BUILDS[kind]
    x, w = tensor([2.0, 3.0]), tensor(5.0)
    y, vjp = tp.vjp(lambda x, w: build(x * x, tp.sum(x) * w), x, w)
    expected = build(np.array([4, 9], np.float32), np.array(25, np.float32))
    assert type(y) is type(expected)
    tp.tree_map(same, y, expected)
    dx, dw = vjp(build(tensor([1.0, 10.0]), tensor(100.0)))
    same(dx, [4 + 500, 60 + 500])
    same(dw, 500)
    # Numbers take the dtypes.
    dx, dw = vjp(build([1, 10], 0))
    same(dx, [4, 60])
    same(dw, 0)


def test_one_tensor_twice_and_one_made_from_another() -> None:
    def f(x: tp.Tensor) -> Any:
        y = tp.exp(x)
        return [y, y, y * y, x]

    x = tensor(0.5)
    y, vjp = tp.vjp(f, x)
    e = np.exp(0.5)
    same(vjp([1.0, 10.0, 100.0, 1000.0])[0], 11 * e + 200 * e * e + 1000)
    y[0].dispose()
    same(y[1], e)


def test_parts_that_do_not_depend_on_the_arguments() -> None:
    y, vjp = tp.vjp(lambda x: {"x": x * 2.0, "c": tp.asarray(7.0), "big": x > 0}, tensor(1.0))
    same(y["c"], 7)
    dys = tp.tree_map(tp.ones_like, y)
    same(vjp(dys)[0], 2)
    _, vjp = tp.vjp(lambda _: [tensor(7.0), tensor(8.0)], tensor(1.0))
    with pytest.raises(NotConnectedError, match=r"result \(float32\[\], float32\[\]\)"):
        vjp([1.0, 1.0])


def test_the_message_names_the_argument_that_is_not_connected() -> None:
    f = lambda a, p: tp.sum(a * p["w"][0])  # noqa: E731  # called twice
    params = {"w": [tensor(1.0), tensor([1.0, 2.0])]}
    with pytest.raises(
        NotConnectedError, match=r"back to argument 1\['w'\]\[1\] \(float32\[2\]\)"
    ):
        tp.grad(f, (0, 1))(tensor(2.0), params)
    gradient = tp.grad(f, 1, unconnected="zeros")(tensor(2.0), params)
    same(gradient["w"][0], 2)
    same(gradient["w"][1], [0, 0])


@pytest.mark.parametrize("who", ["grad", "value_and_grad"])
def test_a_constant_result(who: str) -> None:
    constant = tensor(1.0)
    with pytest.raises(NotConnectedError, match=r"the result \(float32\[\]\) back to argument 0"):
        getattr(tp, who)(lambda _: constant)(tensor(1.0))
    result = getattr(tp, who)(lambda _: constant, unconnected="zeros")(tensor([5.0]))
    same(result if who == "grad" else result[1], [0])
    if who == "value_and_grad":
        result[0].dispose()
    same(constant, 1)


def test_values_of_unconnected() -> None:
    wrong: Any = "zero"
    for call in (
        lambda: tp.grad(tp.exp, unconnected=wrong),
        lambda: tp.value_and_grad(tp.exp, unconnected=wrong),
        lambda: tp.vjp(tp.exp, 1.0, unconnected=wrong),
    ):
        with pytest.raises(ArgumentError, match="must be one of 'error', 'zeros', got 'zero'"):
            call()


def test_second_order_through_a_tree() -> None:
    def slope(x: tp.Tensor) -> tp.Tensor:
        _, vjp = tp.vjp(lambda x: [tp.sin(x), (x * x,)], x)
        return vjp([1.0, (x,)])[0]  # cos x + 2 x x

    same(tp.grad(slope)(tensor(0.3)), -np.sin(0.3) + 4 * 0.3)


def test_variables_among_arguments_and_results() -> None:
    v = tp.Variable(tensor([2.0, 3.0]))
    y, vjp = tp.vjp(lambda x: {"v": v, "x": x * x}, v)
    assert [type(tensor) for tensor in y.values()] == [tp.Tensor, tp.Tensor]
    v.assign(tensor([7.0, 7.0]))
    same(y["v"], [2, 3])
    same(vjp({"v": v, "x": v})[0], [28, 42])
    y["v"].dispose()
    same(v.read(), [7, 7])
    value, gradient = tp.value_and_grad(lambda x: tp.sum(x * v))(v)
    same(value, 98)
    same(gradient, [7, 7])


def test_an_empty_tree_of_results() -> None:
    y, vjp = tp.vjp(lambda _: {}, {})
    assert (y, vjp({})) == ({}, ({},))


DY: list[tuple[str, Any, type[Exception], str]] = [
    ("None", None, ArgumentError, r"^dy is NoneType, but the result is dict of \['a', 'b'\]"),
    ("a tensor", 1.0, ArgumentError, r"^dy is float, but the result is dict of"),
    ("a list", [1.0, 1.0], ArgumentError, r"^dy is list of \[0, 1\], but the result is dict"),
    ("no b", {"a": [1, 1]}, ArgumentError, r"^dy is dict of \['a'\], but the result is dict of"),
    ("deeper", {"a": [1, 1], "b": (1.0,)}, ArgumentError,
     r"^dy\['b'\] is tuple of \[0\], but the result is list of \[0\] there"),
    ("shape", {"a": [1], "b": [1.0]}, ArgumentError,
     r"^dy\['a'\] is float32\[1\], but the result is float32\[2\]"),
    ("rank", {"a": [1, 1], "b": [[1.0]]}, ArgumentError, r"^dy\['b'\]\[0\] is float32\[1\], but "),
    ("no number", {"a": [1, 1], "b": [None]}, DTypeError, r"dy\['b'\]\[0\]: NoneType"),
]  # fmt: skip


@pytest.mark.parametrize("row", DY, ids=[row[0] for row in DY])
def test_dy_must_have_the_structure_of_the_result(row: Any) -> None:
    _, dy, error, message = row
    _, vjp = tp.vjp(lambda x: {"a": x * x, "b": [tp.sum(x)]}, tensor([1.0, 2.0]))
    with pytest.raises(error, match=message):
        vjp(dy)
    same(vjp({"b": [1.0], "a": [0, 0]})[0], [1, 1])  # the order of keys does not matter


@pytest.mark.parametrize("wrong", [np.ones(3, np.float32), np.ones(2), np.ones(2, np.int32)])
def test_dy_is_checked_before_the_backward_pass(wrong: np.ndarray) -> None:
    ran: list[int] = []
    watched = tp.custom_grad(lambda x: (x * 2.0, lambda dy: ran.append(1) or dy * 2.0))
    x = tensor([1.0, 2.0])
    for dy in (wrong, tp.asarray(wrong)):
        with pytest.raises(ArgumentError, match=r"^dy is "):
            tp.grad(watched)(x, dy=dy)
        with pytest.raises(ArgumentError, match=r"^dy is "):
            tp.vjp(watched, x)[1](dy)
        with pytest.raises(ArgumentError, match=r"^dy\[0\] is "):
            tp.vjp(lambda x: [watched(x)], x)[1]([dy])
    assert ran == []
    same(tp.grad(watched)(x, dy=[1.0, 1.0]), [2, 2])
    assert ran == [1]


def test_a_disposed_dy() -> None:
    dy = tensor(1.0)
    dy.dispose()
    with pytest.raises(DisposedError):
        tp.grad(tp.exp)(tensor(1.0), dy=dy)


# The caller's own tensors ---------------------------------------------------------------

HOLDS = tp.asarray([3.0, 4.0])


def _dispose_of_dy(dy: tp.Tensor) -> tp.Tensor:
    gradient = dy * 2.0
    dy.dispose()
    return gradient


HANDED_ON: dict[str, Any] = {
    "dy itself": lambda x: x,
    "dy to two": lambda x: x + x * 1.0,
    "dy twice to one": lambda x: x + x,
    "dy to one of two inputs": lambda x: x % x,
    "dy in another shape": lambda x: tp.reshape(x, (2,)),
    "a backward that returns dy": tp.custom_grad(lambda x: (x * 1.0, lambda dy: dy)),
    "a backward that disposes of dy": tp.custom_grad(lambda x: (x * 2.0, _dispose_of_dy)),
    "a backward that returns what the user holds": tp.custom_grad(
        lambda x: (x * 2.0, lambda _: HOLDS)
    ),
    "a checkpoint": tp.checkpoint(lambda x: x + 1.0),
}


@pytest.mark.parametrize("how", HANDED_ON)
def test_the_callers_tensors_are_left_alone(how: str) -> None:
    f = HANDED_ON[how]
    x, dy = tensor([1.0, 2.0]), tensor([5.0, 6.0])
    _, vjp = tp.vjp(lambda x: [f(x), f(x)], x)
    tp.dispose([vjp([dy, dy]), tp.grad(f)(x, dy=dy)])
    with tp.tidy():
        vjp([dy, dy])
        tp.grad(f)(x, dy=dy)
    for kept, values in ((dy, [5, 6]), (x, [1, 2]), (HOLDS, [3, 4])):
        same(kept, values)
    (gradient,) = vjp([dy, dy])
    expected = gradient.numpy().copy()
    dy.dispose()
    same(gradient, expected)


def test_a_gradient_that_others_need_is_not_disposed_of() -> None:
    greedy = HANDED_ON["a backward that disposes of dy"]
    same(tp.grad(total(lambda x: greedy(x) + greedy(x * 3.0) + x))(tensor([1.0])), [2 + 6 + 1])


def test_a_rule_that_disposes_of_dy() -> None:
    dy = tensor([5.0])
    with tp.register_gradient("Exp", "x", _dispose_of_dy, override=True):
        same(tp.grad(tp.exp)(tensor([1.0]), dy=dy), [10])
    same(dy, [5])


# aux ------------------------------------------------------------------------------------


def with_aux(x: tp.Tensor) -> Any:
    h = tp.exp(x)
    return tp.sum(h * h), {"h": h, "x": x, "name": "h", "n": 3, "none": None}


def _check_aux(aux: dict[str, Any], x: np.ndarray) -> None:
    same(aux["h"], np.exp(x))
    same(aux["x"], x)
    assert (aux["name"], aux["n"], aux["none"]) == ("h", 3, None)
    assert [aux["h"]._node, aux["x"]._node] == [None, None]


def test_aux_is_handed_on() -> None:
    x = np.array([0.1, 0.2], np.float32)
    (value, aux), gradient = tp.value_and_grad(with_aux, has_aux=True)(tensor(x))
    same(value, np.exp(2 * x).sum())
    same(gradient, 2 * np.exp(2 * x))
    _check_aux(aux, x)
    gradient, aux = tp.grad(with_aux, has_aux=True)(tensor(x), dy=2.0)
    same(gradient, 4 * np.exp(2 * x))
    _check_aux(aux, x)
    value, vjp, aux = tp.vjp(with_aux, tensor(x), has_aux=True)
    same(value, np.exp(2 * x).sum())
    same(vjp(1.0)[0], 2 * np.exp(2 * x))
    _check_aux(aux, x)
    (a, b), aux = tp.grad(lambda a, b: (tp.sum(a * b), 7), (0, 1), has_aux=True)(x, 2 * x)
    same(a, 2 * x)
    same(b, x)
    assert aux == 7


def test_aux_stays_on_the_tape_around() -> None:
    def f(x: tp.Tensor) -> tp.Tensor:
        gradient, aux = tp.grad(with_aux, has_aux=True)(x)
        return tp.sum(gradient + aux["h"] * 10.0)

    x = np.array([0.1, 0.2], np.float32)
    same(tp.grad(f)(tensor(x)), 4 * np.exp(2 * x) + 10 * np.exp(x))


def test_aux_keeps_no_graph_alive() -> None:
    f = tp.grad(with_aux, has_aux=True)
    x = tensor([0.1, 0.2])
    f(x)  # fills the caches
    before = live()
    gradient, aux = f(x)
    assert live() == before + 3  # the gradient, h and x
    del gradient, aux
    assert live() == before


@pytest.mark.parametrize("result", ["tensor", "triple", "list", "no tensor first"])
def test_aux_needs_a_pair(result: str) -> None:
    build: dict[str, Any] = {
        "tensor": (lambda x: x, r"must return \(y, aux\), got Tensor"),
        "triple": (lambda x: (x, 1, 2), r"must return \(y, aux\), got tuple"),
        "list": (lambda x: [x, 1], r"must return \(y, aux\), got list"),
        "no tensor first": (lambda x: (1, x), "must return a tensor, got int"),
    }
    f, message = build[result]
    for call in (tp.grad(f, has_aux=True), lambda x: tp.vjp(f, x, has_aux=True)):
        with pytest.raises(ArgumentError, match=message):
            call(tensor(1.0))


NOT_SCALARS = {
    "two elements": (lambda x: x * x, "float32[2]"),
    "an axis of one element": (lambda x: tp.sum(x, axis=0, keepdims=True), "float32[1]"),
    "no element": (lambda x: x[:0], "float32[0]"),
    "holomorphic": (lambda x: x * x, "complex64[2]"),
    "with aux": (lambda x: (x * x, "kept"), "float32[2]"),
}


@pytest.mark.parametrize("who", ["grad", "value_and_grad"])
@pytest.mark.parametrize("name", NOT_SCALARS)
def test_a_result_that_is_no_scalar(name: str, who: str) -> None:
    f, shown = NOT_SCALARS[name]
    options = {"holomorphic": {"holomorphic": True}, "with aux": {"has_aux": True}}.get(name, {})
    x = tp.astype(tensor([1.0, 2.0]), "complex64" if name == "holomorphic" else "float32")
    with pytest.raises(ShapeError) as caught:
        getattr(tp, who)(f, **options)(x)
    assert str(caught.value) == (
        f"{who}: f must return a scalar, a tensor of shape [], got {shown}; return y.sum() or "
        "y.mean(), pass dy, the cotangent of y, or take tensorplug.vjp(f, x)"
    )


def test_a_cotangent_is_for_any_shape() -> None:
    same(tp.grad(lambda x: x * x)(tensor([1.0, 2.0]), dy=tensor([1.0, 10.0])), [2, 40])
    result = tp.vmap(tp.grad(lambda x: x * x))(tensor([1.0, 2.0]))  # a scalar for each element
    same(result, [2, 4])
