"""What a compiled function refers to is freed with it, without the garbage collector."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.fixture(autouse=True)
def _without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def read(w: tp.Variable, x: tp.Tensor) -> Any:
    return tp.compile(lambda x: x * w)(x)


def assign(w: tp.Variable, x: tp.Tensor) -> Any:
    return tp.compile(lambda x: w.assign(x * w))(x)


def train(w: tp.Variable, x: tp.Tensor) -> Any:
    optimizer = tp.train.adam(0.1)
    return tp.compile(lambda x: optimizer.minimize(lambda: tp.sum(tp.square(w - x)), [w]))(x)


def differentiate(w: tp.Variable, x: tp.Tensor) -> Any:
    return tp.grad(lambda x: tp.sum(tp.compile(lambda x: x * w)(x)))(x)


def fail(w: tp.Variable, x: tp.Tensor) -> Any:
    try:
        tp.compile(lambda x: float(tp.sum(x * w)))(x)
    except tp.errors.CompileError:
        return None


@pytest.mark.parametrize("use", [read, assign, train, differentiate, fail])
def test_a_variable_goes_with_its_last_reference(
    use: Callable[[tp.Variable, tp.Tensor], Any],
) -> None:
    w = tp.Variable([1.0, 2.0])
    use(w, tp.asarray([1.0, 1.0]))
    gone = weakref.ref(w)
    del w
    assert gone() is None


def test_a_captured_tensor() -> None:
    def capture() -> weakref.ref[Any]:
        memory = np.ones(1000, np.float32)
        table = tp.asarray(memory, copy=False)
        tp.compile(lambda x: x * table)(tp.asarray(1.0))
        return weakref.ref(memory)

    assert capture()() is None
