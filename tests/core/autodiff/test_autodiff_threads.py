"""Threads and tasks that differentiate at the same time."""

from __future__ import annotations

import asyncio
import threading
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import numpy as np
from tests.core.support.engines import together, using
from tests.core.support.tensors import same, tensor

import tensorplug as tp
from tensorplug.dispatch.context import current_context

if TYPE_CHECKING:
    from tensorplug.engine.engine import Engine

X = np.array([0.3, -0.7], np.float32)


def test_two_threads_differentiate_in_turns(engine: Engine) -> None:
    """Each waits inside its function until the other is inside too."""
    barrier = threading.Barrier(2)
    result: dict[int, Any] = {}

    def work(number: int) -> None:
        with using(engine):
            factor = float(number + 2)

            def f(x: tp.Tensor) -> tp.Tensor:
                h = tp.exp(x * factor)
                barrier.wait()
                y = tp.sum(h * x)
                barrier.wait()
                return y

            first = tp.grad(f)
            result[number] = tp.value_and_grad(lambda x: tp.sum(first(x)))(tensor(X))

    together(2, work)
    for number, (value, gradient) in result.items():
        a = float(number + 2)
        same(value, np.sum(np.exp(a * X) * (1 + a * X)))
        same(gradient, np.exp(a * X) * (2 * a + a * a * X))


def test_one_vjp_in_several_threads(engine: Engine) -> None:
    block = tp.checkpoint(lambda x: tp.exp(x) * x)
    _, vjp = tp.vjp(lambda x: [tp.sum(block(x)), x * x], tensor(X))

    def work(number: int) -> None:
        with using(engine):
            for turn in range(20):
                scale = float(number + turn)
                (gradient,) = vjp([scale, [1, 1]])
                same(gradient, scale * np.exp(X) * (1 + X) + 2 * X)

    together(4, work)


def test_a_thread_started_inside_f(engine: Engine) -> None:
    def in_thread(run: Any) -> list[Any]:
        result: list[Any] = []
        thread = threading.Thread(target=lambda: result.append(run()))
        thread.start()
        thread.join()
        return result

    def f(x: tp.Tensor, inside: bool) -> tp.Tensor:
        context = copy_context()

        def double() -> tp.Tensor:
            assert (current_context().recording is not None) is inside
            return tp.exp(x) if inside else tp.exp(tp.asarray(X))

        (h,) = in_thread((lambda: context.run(double)) if inside else lambda: _on(engine, double))
        return tp.sum(h * x)

    same(tp.grad(lambda x: f(x, inside=True))(tensor(X)), np.exp(X) * (1 + X))
    # In a context of its own the thread's work is a constant.
    same(tp.grad(lambda x: f(x, inside=False))(tensor(X)), np.exp(X))


def _on(engine: Engine, work: Any) -> Any:
    with using(engine):
        return work()


def test_asyncios_threads_have_the_context(engine: Engine) -> None:
    async def work(x: tp.Tensor) -> list[tp.Tensor]:
        return await asyncio.gather(asyncio.to_thread(tp.exp, x), asyncio.to_thread(lambda: x * x))

    def f(x: tp.Tensor) -> tp.Tensor:
        h, square = asyncio.run(work(x))
        return tp.sum(h * square)

    same(tp.grad(f)(tensor(X)), np.exp(X) * (X * X + 2 * X))
