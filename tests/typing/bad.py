"""Mistakes that type checkers find: one in each line with a comment that says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Hashable


class Pair(NamedTuple):
    position: tp.Tensor
    speed: tp.Tensor


def loss(w: tp.Tensor, scale: float = 1.0) -> tp.Tensor:
    return tp.sum(w) * scale


def loss_and_count(w: tp.Tensor) -> tuple[tp.Tensor, int]:
    return tp.sum(w), 1


def size(w: tp.Tensor) -> int:
    return w.size


def move(p: Pair) -> Pair:
    return p


def speed(p: Pair) -> tp.Tensor:
    return p.speed


def add(total: tp.Tensor, x: tp.Tensor) -> tuple[tp.Tensor, tp.Tensor]:
    return total, x


@tp.compile
def compiled(w: tp.Tensor, rate: float) -> tp.Tensor:
    return w * rate


@tp.checkpoint
def checkpointed(w: tp.Tensor, *, times: int) -> tp.Tensor:
    return w * times


class Model:
    @tp.compile
    def call(self, w: tp.Tensor) -> tp.Tensor:
        return w


@tp.custom_grad  # error
def without_backward(w: tp.Tensor) -> tp.Tensor:
    return w


def arguments(x: tp.Tensor) -> None:
    tp.sin("text")  # error
    tp.sin(["some", "texts"])  # error
    tp.sin(None)  # error
    tp.add(x, "1")  # error
    tp.sin(x, x)  # error
    tp.sun(x)  # error
    tp.sum(x, axis="rows")  # error
    tp.sum(x, axis=0.5)  # error
    tp.sum(x, keepdim=True)  # error
    tp.zeros(2.5)  # error
    tp.reshape(x, "2,3")  # error
    tp.zeros(3, dtype="flaot32")  # error
    tp.asarray([1.0], dtype="flaot32")  # error
    tp.astype(x, "float23")  # error
    tp.Variable(1.0, dtype="flaot32")  # error
    tp.finfo("flaot32")  # error
    tp.isdtype(x.dtype, "integers")  # error
    tp.from_dlpack([1.0])  # error
    tp.stop_gradient("text")  # error
    tp.set_backend(1)  # error
    tp.save({"x": x}, 3)  # error


def tensors(x: tp.Tensor) -> None:
    x + "text"  # error
    x - [1.0]  # error
    x @ None  # error
    len(x.ndim)  # error
    x["name"]  # error
    x[1.5]  # error
    x[0:1, "name"]  # error
    x[0] = None  # error
    x.sun()  # error
    x.sum(axis="rows")  # error
    x.astype("int33")  # error
    x.reshape(2.5, 1)  # error
    x.add("text")  # error
    x.shape = (1,)  # error
    x.numpy().sun()  # error
    keys: list[Hashable] = [x]  # error
    keys.clear()
    (x == 1).all(axis=x.device)  # error


def functions(w: tp.Tensor, pair: Pair) -> None:
    tp.grad(loss)(w, "wide")  # error
    tp.grad(loss)(w, size=2.0)  # error
    tp.grad(loss)()  # error
    tp.grad(loss, "w")  # error
    tp.grad(loss, unconnected="ignore")  # error
    tp.grad(size)  # error
    tp.grad(loss_and_count)  # error
    tp.value_and_grad(loss, has_aux=True)  # error
    tp.value_and_grad(loss)(w)[0].sun()  # error
    tp.value_and_grad(loss_and_count, has_aux=True)(w)[0][1].sun()  # error
    tp.vjp(loss, w)[0].sun()  # error
    tp.jvp(loss, (w,), (w,))[1].sun()  # error
    tp.jacobian(loss)(w, rate=1.0)  # error
    tp.hessian(loss)(w, "wide")  # error
    tp.variable_grads(loss)  # error
    compiled(w, "fast")  # error
    compiled(w)  # error
    compiled(w, 0.5).sun()  # error
    Model().call(w, 0.5)  # error
    Model().call(w).sun()  # error
    checkpointed(w, 2)  # error
    tp.vmap(loss)(w, "wide")  # error
    tp.vmap(loss, in_axes="0")  # error
    tp.tidy(loss, w, size=1.0)  # error
    tp.tidy(loss, w).sun()  # error
    tp.profile(loss, w, size=1.0)  # error
    tp.debug(loss, w).sun()  # error
    tp.autocast("flaot16")  # error
    tp.keep(1.0)  # error
    tp.while_loop(speed, speed, pair)  # error
    tp.fori_loop(0, 3, add, w)  # error
    tp.fori_loop(0.5, 3, lambda _, value: value, w)  # error
    tp.scan(add, pair, w)  # error
    tp.scan(add, w, w)[0].sun()  # error
    tp.cond(w > 0, move, loss, pair)  # error
    tp.switch(0, [move], w)  # error
    tp.map(move, w)  # error
    tp.associative_scan(move, pair)  # error
    tp.train.adam("fast")  # error
    tp.train.adam(0.1).minimize(loss)  # error
    tp.train.clip_by_norm({"w": w}, 1.0).sun()  # error
