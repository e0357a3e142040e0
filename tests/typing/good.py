"""A user's program that type checkers accept, and the types that they find in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, assert_type

import numpy as np

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.typing import ArrayLike, DTypeLike


class Pair(NamedTuple):
    position: tp.Tensor
    speed: tp.Tensor


# Arguments ------------------------------------------------------------------------------------


def arguments(x: tp.Tensor, array: np.ndarray[Any, Any], variable: tp.Variable) -> None:
    for value in (x, array, variable, 1, 2.5, 1j, True, np.float32(1)):
        assert_type(tp.sin(value), tp.Tensor)
    tp.sin([[1.0, 2.0], (3, True)])
    tp.sin([array, array])
    tp.sin(range(3))
    assert_type(tp.add([[1], [2]], x), tp.Tensor)
    tp.asarray("text")
    tp.asarray(["some", "texts"])
    assert_type(tp.zeros((2, 3), dtype="float32"), tp.Tensor)
    tp.zeros(3, dtype=tp.int8)
    tp.zeros([2, 3], dtype=np.float64)
    tp.ones((), dtype=float, device="cpu")
    tp.astype(x, np.dtype("int32"))
    tp.sum(x, axis=(0, -1), keepdims=True)
    tp.max(x, axis=np.int64(0))
    tp.from_dlpack(array)
    assert_type(tp.split(x, 2), tuple[tp.Tensor, ...])
    assert_type(tp.finfo("float32").eps, float)
    assert_type(tp.isdtype(x.dtype, ("integral", "real floating")), bool)
    assert_type(tp.result_type(x, 1.0, "int8"), tp.DType)


def own_function(x: ArrayLike, dtype: DTypeLike | None = None) -> tp.Tensor:
    return tp.exp(tp.asarray(x, dtype=dtype))


# The tensor -----------------------------------------------------------------------------------


def tensors(x: tp.Tensor, array: np.ndarray[Any, Any]) -> None:
    assert_type(x + 1, tp.Tensor)
    assert_type(2 * x, tp.Tensor)
    assert_type(1.0 / x, tp.Tensor)
    assert_type(x @ array, tp.Tensor)
    assert_type(x**2 - np.float32(3), tp.Tensor)
    assert_type(-x, tp.Tensor)
    assert_type(x == 1, tp.Tensor)
    assert_type(x != x, tp.Tensor)  # noqa: PLR0124
    assert_type(x < 2.0, tp.Tensor)
    assert_type((x > 0) & True, tp.Tensor)
    assert_type(x[0], tp.Tensor)
    assert_type(x[..., None, 1:, ::-1], tp.Tensor)
    assert_type(x[[0, 1], np.array([1, 0])], tp.Tensor)
    assert_type(x[x > 0], tp.Tensor)
    x[0, 1:] = 2.0
    x[1] = [1, 2, 3, 4]
    x[x < 2] = [0.5]
    x += 1
    assert_type(x, tp.Tensor)
    assert_type([row for row in x], list[tp.Tensor])  # noqa: C416
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.dtype, tp.DType)
    assert_type(x.ndim, int)
    assert_type(x.device, str)
    assert_type(x.T, tp.Tensor)
    assert_type(x.numpy(), np.ndarray[Any, Any])
    assert_type(float(x[0, 0]), float)
    assert_type(len(x), int)
    assert_type(x.sum(axis=0).reshape(2, -1).transpose(), tp.Tensor)
    assert_type(x.reshape((4, 2)), tp.Tensor)
    assert_type(x.astype("bfloat16"), tp.Tensor)
    assert_type(x.softmax(axis=-1), tp.Tensor)
    assert_type(x.topk(2), tuple[tp.Tensor, tp.Tensor])
    assert_type(x[0].unique().indices, tp.Tensor)


def variables() -> None:
    v = tp.Variable([1.0, 2.0], name="w", dtype="float64")
    assert_type(v, tp.Variable)
    assert_type(v * 2, tp.Tensor)
    assert_type(v.read(), tp.Tensor)
    v.assign([3.0, 4.0])
    v -= 1.0
    assert_type(v, tp.Variable)


# Functions of functions -----------------------------------------------------------------------


def loss(w: tp.Tensor, scale: float = 1.0) -> tp.Tensor:
    return tp.sum(w * w) * scale


def loss_and_count(w: tp.Tensor) -> tuple[tp.Tensor, dict[str, int]]:
    return tp.sum(w), {"count": 1}


def pairs(p: Pair, x: tp.Tensor) -> tuple[Pair, tp.Tensor]:
    return Pair(p.speed, p.position * x), x


def gradients(w: tp.Tensor) -> None:
    gradient: tp.Tensor = tp.grad(loss)(w, scale=2.0)
    assert_type(tp.grad(loss, 0)(gradient, dy=1.0), Any)
    assert_type(tp.grad(loss_and_count, has_aux=True)(w), tuple[Any, dict[str, int]])
    assert_type(tp.value_and_grad(loss)(w, 2.0), tuple[tp.Tensor, Any])
    both = tp.value_and_grad(loss_and_count, has_aux=True)(w)
    assert_type(both, tuple[tuple[tp.Tensor, dict[str, int]], Any])
    assert_type(tp.vjp(loss, w)[0], tp.Tensor)
    assert_type(tp.vjp(loss_and_count, w, has_aux=True)[2], dict[str, int])
    assert_type(tp.jvp(loss, (w,), (w,)), tuple[tp.Tensor, tp.Tensor])
    y, derivative = tp.linearize(pairs, Pair(w, w), w)
    assert_type(y, tuple[Pair, tp.Tensor])
    assert_type(derivative(Pair(w, w), w), tuple[Pair, tp.Tensor])
    tp.hessian(loss)(w, scale=1.0)
    tp.jacobian(loss, argnums=(0,), unconnected="zeros")(w)
    tp.grad(lambda x: tp.sum(x**2))(w)
    v = tp.Variable(w)
    found = tp.variable_grads(lambda: loss(v))
    assert_type(found.value, tp.Tensor)
    assert_type(found.grads, dict[str, tp.Tensor | None])


@tp.compile
def compiled(w: tp.Tensor, rate: float) -> tuple[tp.Tensor, int]:
    return w * rate, 1


@tp.compile(static_floats=True, donate="w")
def compiled_with_options(w: tp.Tensor, rate: float) -> tp.Tensor:
    return w * rate


@tp.checkpoint
def checkpointed(w: tp.Tensor, *, times: int) -> list[tp.Tensor]:
    return [w] * times


@tp.autocast("bfloat16")
def low_precision(w: tp.Tensor) -> tp.Tensor:
    return w @ w


@tp.custom_grad
def double(w: tp.Tensor) -> tuple[tp.Tensor, Callable[[tp.Tensor], tp.Tensor]]:
    return w * 2, lambda dy: dy * 2


class Model:
    @tp.compile
    def call(self, w: tp.Tensor, rate: float) -> tuple[tp.Tensor, int]:
        return w * rate, 1

    @tp.autocast()
    def product(self, w: tp.Tensor) -> tp.Tensor:
        return w @ w


def wrappers(w: tp.Tensor) -> None:
    assert_type(Model().call(w, rate=0.5), tuple[tp.Tensor, int])
    assert_type(Model().product(w), tp.Tensor)
    assert_type(compiled(w, rate=0.5), tuple[tp.Tensor, int])
    assert_type(compiled_with_options(w + 0, 0.5), tp.Tensor)
    assert_type(checkpointed(w, times=2), list[tp.Tensor])
    assert_type(low_precision(w), tp.Tensor)
    assert_type(double(w), tp.Tensor)
    assert_type(tp.vmap(loss, in_axes=(0, None))(w, 2.0), tp.Tensor)
    assert_type(tp.vmap(loss_and_count)(w), tuple[tp.Tensor, dict[str, int]])
    assert_type(tp.tidy(loss, w, scale=2.0), tp.Tensor)
    assert_type(tp.keep(tp.Variable(1.0)), tp.Variable)
    assert_type(tp.debug(loss, w, inf=False), tp.Tensor)
    assert_type(tp.profile(loss, w, scale=1.0).kernel_names, list[str])
    assert_type(tp.time(loss, w, repeat=2).wall_ms, float)
    with tp.tidy(), tp.debug(leaks=True), tp.profile() as profile:
        loss(w)
    assert_type(profile.seconds, float)
    with tp.use_backend("cpu") as name:
        assert_type(name, str)


# Loops and branches ---------------------------------------------------------------------------


def is_near(p: Pair) -> tp.Tensor:
    return tp.all(p.position < 1)


def move(p: Pair) -> Pair:
    return Pair(p.position + p.speed, p.speed)


def move_at(step: tp.Tensor, p: Pair) -> Pair:
    return Pair(p.position + step, p.speed)


def add(total: tp.Tensor, x: tp.Tensor) -> tuple[tp.Tensor, tp.Tensor]:
    return total + x, total


def without_slices(p: Pair, _: None) -> tuple[Pair, tp.Tensor]:
    return p, p.speed


def control(x: tp.Tensor) -> None:
    start = Pair(x, x)
    assert_type(tp.while_loop(is_near, move, start), Pair)
    assert_type(tp.fori_loop(0, 3, move_at, start), Pair)
    assert_type(tp.scan(pairs, start, x), tuple[Pair, tp.Tensor])
    assert_type(tp.scan(without_slices, start, length=3), tuple[Pair, tp.Tensor])
    assert_type(tp.scan(add, 0.0, x), tuple[tp.Tensor, tp.Tensor])  # the number becomes a tensor
    assert_type(tp.map(loss, x), tp.Tensor)
    assert_type(tp.associative_scan(tp.maximum, x), tp.Tensor)
    assert_type(tp.cond(tp.sum(x) > 0, tp.log, lambda v: v * 0, x), tp.Tensor)
    assert_type(tp.cond(tp.any(x > 0), move, move, start), Pair)
    assert_type(tp.switch(1, [tp.sin, tp.cos], x), tp.Tensor)


# Training -------------------------------------------------------------------------------------


def training(params: dict[str, tp.Tensor]) -> None:
    optimizer = tp.train.adam(tp.train.cosine_decay(0.1, 100))
    state = optimizer.init(params)
    updates, state = optimizer.update(params, state)
    assert_type(tp.train.apply_updates(params, updates), dict[str, tp.Tensor])
    moved, state = optimizer.step(params, state, params)
    assert_type(moved, dict[str, tp.Tensor])
    clipped, norm = tp.train.clip_by_global_norm(moved, 1.0)
    assert_type(clipped, dict[str, tp.Tensor])
    assert_type(norm, tp.Tensor)
    v = tp.Variable(norm)
    assert_type(tp.train.adam(0.01).minimize(lambda: loss(v)), tp.Tensor)
    tp.save(params, "model.safetensors")
    assert_type(tp.load("model.safetensors", nested=False), dict[str, tp.Tensor])
    assert_type(tp.load("model.safetensors", names=["w"]), dict[str, tp.Tensor])
    assert_type(tp.load("model.safetensors", like=params), dict[str, tp.Tensor])


def main() -> None:
    """Run all of it: what the types allow works."""
    x = tp.asarray([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    arguments(x, np.ones((2, 4), np.float32), tp.Variable(x))
    own_function([1.0], dtype="float64")
    tensors(x, np.ones((4, 2), np.float32))
    variables()
    gradients(x)
    wrappers(tp.ones((2, 2)))
    control(tp.asarray([0.25, 0.5]))
    training({"w": x})
