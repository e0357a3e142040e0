"""Reductions of blocks, and of the results of all blocks."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import accumulating, working
from tensorplug_cpu.summation import summer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import DType, Reduction, Shape
    from tensorplug_cpu.arrays import Array
    from tensorplug_cpu.blocks.loops import Loops


_UFUNCS: Final[dict[str, np.ufunc]] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}

_summer = lru_cache(maxsize=256)(summer)


def of_block(op: str, axes: tuple[int, ...], dtype: DType) -> Callable[[Array, Array], None]:
    """Return a function that fills its first argument with the reduction of its second.

    The result keeps the reduced axes with length 1. It may have a wider dtype than the elements.
    """
    wide = _wider(op, dtype)
    if op == "sum" and dtype in dt.INEXACT:
        work = working(dtype)

        def add(result: Array, x: Array) -> None:
            shape: Shape = x.shape
            total = _summer(shape, axes, work, keep_dims=True, wide=wide)
            result[...] = total(x.astype(work, copy=False))

        return add
    function = _UFUNCS[op]

    def reduce(result: Array, x: Array) -> None:
        result[...] = function.reduce(x, axis=axes, keepdims=True, dtype=wide)

    return reduce


def _wider(op: str, dtype: DType) -> np.dtype[Any]:
    """Return the dtype of the results of blocks, before they are reduced to one."""
    return accumulating(dtype) if op in {"sum", "prod"} else dtype.numpy


class Partial:
    """A reduction of each block, and then of the results of all blocks."""

    def __init__(self, reduction: Reduction, loops: Loops) -> None:
        self.axes = reduction.axes
        self._op = reduction.op
        self._numbers = tuple(at for at, reduced in enumerate(reduction.axes) if reduced)
        self._shape = loops.partial_shape(reduction.axes)
        self._dtype = reduction.expression.dtype
        self._wide = _wider(reduction.op, self._dtype)
        inside = tuple(at - loops.cut for at in self._numbers if at >= loops.cut)
        self.of_block = of_block(reduction.op, inside, self._dtype)

    def empty(self) -> Array:
        """Return an array for the results of all blocks."""
        return np.empty(self._shape, self._wide)

    def combine(self, results: Array) -> Array:
        """Return the reduction of the results of blocks; the reduced axes have length 1."""
        function = _UFUNCS[self._op]
        total = function.reduce(results, axis=self._numbers, keepdims=True, dtype=self._wide)
        return np.asarray(total).astype(self._dtype.numpy, copy=False)
