"""Windows whose place is data: views, and assignments to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import InPlace, Shape, TensorType, specs
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


def _make_key(lengths: Shape, sizes: Shape) -> Callable[[Sequence[int]], tuple[Any, ...]]:
    """Return what makes the key of a window of its starts, which it moves into the axes."""
    both = enumerate(zip(lengths, sizes, strict=True))
    moved = [(axis, length, size) for axis, (length, size) in both if size < length]
    whole = [slice(None)] * len(lengths)

    def key(starts: Sequence[int]) -> tuple[Any, ...]:
        slices = whole.copy()
        for axis, length, size in moved:
            at = starts[axis]
            first = min(max(at + length if at < 0 else at, 0), length - size)
            slices[axis] = slice(first, first + size)
        return tuple(slices)

    return key


@kernels.prepare(specs.DYNAMIC_SLICE, because="faster")
def dynamic_slice(x: TensorType, starts: TensorType, *, sizes: Shape, out: TensorType) -> Call:
    """View; a copy of the window of each example."""
    batch = starts.shape[:-1]
    key = _make_key(x.shape[len(batch) :], sizes)
    if not batch:
        return lambda x, starts: x[(*key(starts.tolist()), ...)]
    shape, dtype = out.shape, out.dtype.numpy

    def run(x: Array, starts: Array) -> Array:
        result = np.empty(shape, dtype)
        for example in np.ndindex(batch):
            result[example] = x[(*example, *key(starts[example].tolist()))]
        return result

    return run


@kernels.prepare(specs.DYNAMIC_UPDATE_SLICE, because="faster")
def dynamic_update_slice(x: TensorType, update: TensorType, starts: TensorType) -> Call:
    """Write into the window, of a copy if something else needs x."""
    batch = starts.shape[:-1]
    key = _make_key(x.shape[len(batch) :], update.shape[len(batch) :])

    def write(result: Array, update: Array, starts: Array) -> Array:
        if not batch:
            result[(*key(starts.tolist()), ...)] = update
            return result
        for example in np.ndindex(batch):
            result[(*example, *key(starts[example].tolist()))] = update[example]
        return result

    silent = without_warnings(write)
    return InPlace(lambda x, *rest: silent(np.array(x, order="C"), *rest), silent)
