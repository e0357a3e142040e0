"""Combining updates by index."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.algorithms import scatter_depth
from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.arrays import UNROUNDED
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.kernels.indexing.indexing import flatten_indices
from tensorplug_cpu.segments import row_sums

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

_FOLDS: Final = {"multiply": np.multiply, "max": np.maximum, "min": np.minimum}


@kernels.prepare(specs.TENSOR_SCATTER_REDUCE, because="faster", dtypes=UNROUNDED)
def tensor_scatter_reduce(
    tensor: TensorType,
    indices: TensorType,
    updates: TensorType,
    *,
    reduction: str,
    include_self: bool,
    out: TensorType,
) -> Call:
    """Fold each update into a copy."""
    shape = out.shape
    depth = scatter_depth(indices.shape, updates.shape, shape)
    size, width = prod(shape[:depth]), prod(shape[depth:])
    count = prod(updates.shape[: updates.rank - (len(shape) - depth)])
    find_targets = flatten_indices(shape[:depth], count)

    def run(tensor: Array, indices: Array, updates: Array) -> Array:
        targets = find_targets(indices)
        rows = updates.reshape(count, width)
        old = tensor.reshape(size, width)
        if reduction == "add":
            sums = row_sums(targets, rows, size)
            if include_self:
                return (old + sums).reshape(shape)
            result = np.array(old, order="C")
            result[targets] = sums.take(targets, axis=0)
            return result.reshape(shape)
        result = np.array(old, order="C")
        if not include_self:
            result[targets] = rows  # the last update of each target; the others are folded into it
            if reduction == "multiply":  # an extremum may meet the last one twice
                last = np.empty(size, np.intp)
                numbers = np.arange(count)
                last[targets] = numbers
                left = np.flatnonzero(last.take(targets) != numbers)
                targets, rows = targets.take(left), rows.take(left, axis=0)
        _fold_rows(_FOLDS[reduction], result, targets, rows)
        return result.reshape(shape)

    return without_warnings(run)


def _fold_rows(fold: np.ufunc, result: Array, targets: Array, rows: Array) -> None:
    """Fold rows ``[n, width]`` into ``result``, one element after the other.

    In one dimension, ``ufunc.at`` has a fast loop.
    """
    count, width = rows.shape
    flat: Any = targets
    if width != 1:
        flat = (targets.reshape(count, 1) * width + np.arange(width)).reshape(-1)
    fold.at(result.reshape(-1), flat, rows.reshape(-1))
