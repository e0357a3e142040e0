"""Softmax cross-entropy of labels that are numbers of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import OutOfRangeError, TensorType, specs
from tensorplug_cpu.arrays import working
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.execution.outputs import output_allocator
from tensorplug_cpu.execution.rowwise import RowSums, by_blocks
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


def _shifted(logits: Array, dtype: np.dtype[Any]) -> Array:
    wide = logits.astype(dtype, copy=False)
    columns = wide.T.copy() if wide.shape[1] <= 32 else wide.T  # of few classes, a copy is faster
    return np.asarray(wide - np.maximum.reduce(columns, axis=0)[:, None])


def _as_positions(labels: Array, classes: int) -> Array:
    """Return the class numbers of all rows as indices.

    Raises:
        OutOfRangeError: naming the first label outside ``[0, classes)``.

    """
    flat = labels.reshape(-1)
    outside = (flat < 0) | (flat >= classes)
    if outside.any():
        raise OutOfRangeError(
            f"label {flat[outside][0]} is out of range for {classes} classes, which are numbered "
            "from 0"
        )
    return flat.astype(np.intp, copy=False)


@kernels.prepare(specs.SPARSE_SOFTMAX_CROSS_ENTROPY, because="faster")
def sparse_cross_entropy(labels: TensorType, logits: TensorType, *, out: TensorType) -> Call:
    """Subtract the label's score from the logarithm of the sum of all powers.

    That logarithm is taken in float64: where one score is far above the others the sum is 1 and a
    little, and the little is the result.
    """
    dtype, narrow = working(out.dtype), out.dtype.numpy
    rows, classes = labels.size, logits.shape[-1]
    if not rows:
        return lambda _labels, _logits: np.zeros(out.shape, narrow)

    def run(labels: Array, logits: Array) -> Array:
        at, source = _as_positions(labels, classes), logits.reshape(rows, classes)
        losses, numbers = np.empty(rows, np.float64), np.arange(rows)

        def work(block: slice) -> None:
            powers = _shifted(source[block], dtype)
            chosen = powers[numbers[: len(powers)], at[block]]
            np.exp(powers, out=powers)
            total = np.add.reduce(powers, axis=1, dtype=np.float64)
            np.subtract(np.log(total, out=total), chosen, out=losses[block])

        by_blocks(work, rows, classes)
        return losses.astype(narrow, copy=False).reshape(out.shape)

    return without_warnings(run)


@kernels.prepare(specs.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD, because="faster")
def sparse_cross_entropy_grad(
    dy: TensorType, labels: TensorType, logits: TensorType, *, out: TensorType
) -> Call:
    """Subtract 1 from softmax where the label is, and multiply by dy; rows of dy 0 are 0."""
    dtype = working(out.dtype)
    rows, classes = labels.size, logits.shape[-1]
    if not rows:
        return lambda _dy, _labels, logits: logits
    allocate, along = output_allocator(out), RowSums(classes, dtype)

    def run(dy: Array, labels: Array, logits: Array) -> Array:
        at, source = _as_positions(labels, classes), logits.reshape(rows, classes)
        cotangents, numbers = dy.reshape(rows, 1).astype(dtype, copy=False), np.arange(rows)
        result = allocate().reshape(rows, classes)

        def work(block: slice) -> None:
            powers, cotangent = _shifted(source[block], dtype), cotangents[block]
            np.exp(powers, out=powers)
            powers /= along.sums(powers)
            powers[numbers[: len(powers)], at[block]] -= 1
            np.multiply(powers, cotangent, out=result[block], casting="same_kind")

        by_blocks(work, rows, classes)
        if not cotangents.all():
            result[cotangents[:, 0] == 0] = 0  # also of scores that are NaN
        return result.reshape(out.shape)

    return without_warnings(run)
