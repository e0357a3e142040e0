"""Memory of checkpoint: kept between the passes, and at the peak."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support.tensors import same, tensor

import tensorplug as tp
from tensorplug.autodiff.tape import Node

if TYPE_CHECKING:
    from collections.abc import Iterator

SEGMENTS, DEPTH = 5, 4


class Buffers:
    """Counts those that the kernel of Exp made and that somebody still holds."""

    def __init__(self) -> None:
        self.made: list[weakref.ref[np.ndarray]] = []
        self.most = 0

    def exp(self, x: np.ndarray) -> np.ndarray:
        made = np.asarray(np.exp(x))
        self.made.append(weakref.ref(made))
        self.most = max(self.most, self.held())
        return made

    def held(self) -> int:
        return sum(item() is not None for item in self.made)


@pytest.fixture
def buffers(engine: Any) -> Iterator[Buffers]:
    counted = Buffers()
    with tp.register_kernel("Exp", "memory", counted.exp, override=True):
        yield counted


def segment(x: tp.Tensor) -> tp.Tensor:
    for _ in range(DEPTH):
        x = tp.exp(x * -1.0)  # of the two, the exponential alone keeps a tensor: its output
    return x


def nodes() -> int:
    return sum(issubclass(type(get_object_), Node) for get_object_ in gc.get_objects())


def forward(wrap: Any, buffers: Buffers) -> tuple[Any, list[tuple[int, int]]]:
    """Return the vjp, and the numbers of buffers and nodes held after each segment."""
    held: list[tuple[int, int]] = []
    before = nodes()

    def network(x: tp.Tensor) -> tp.Tensor:
        step = wrap(segment)
        for _ in range(SEGMENTS):
            x = step(x)
            held.append((buffers.held(), nodes() - before))
        return x

    y, vjp = tp.vjp(network, tensor([0.5, 1.0]))
    y.dispose()
    return vjp, held


def test_between_the_passes_only_arguments_are_held(buffers: Buffers) -> None:
    gc.collect()
    gc.disable()
    try:
        plain, kept = forward(lambda f: f, buffers)
        # After each segment there are the outputs of all of its steps, and two nodes for each.
        assert kept == [(n * DEPTH, 2 * n * DEPTH + 1) for n in range(1, SEGMENTS + 1)]
        expected = plain([1.0, 1.0])[0].numpy()
        del plain
        assert buffers.held() == 0

        buffers.most = 0
        vjp, kept = forward(tp.checkpoint, buffers)
        # The results of the segments alone, and a node for each.
        assert kept == [(n, n + 1) for n in range(1, SEGMENTS + 1)]
        # While a segment runs there are its own besides.
        assert buffers.most == SEGMENTS + DEPTH - 1
        buffers.most = 0
        same(vjp([1.0, 1.0])[0], expected)
        # The backward pass holds one segment at a time, and the results.
        assert buffers.most == SEGMENTS + DEPTH
        assert buffers.held() == SEGMENTS
        del vjp
        assert buffers.held() == 0
    finally:
        gc.enable()
