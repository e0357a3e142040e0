"""Softmax cross-entropy and the gradient kernels of softmax, from primitives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import equal, less
from tensorplug.ops.indexing.indexing import take_along_axis
from tensorplug.ops.movement import expand_dims, squeeze
from tensorplug.ops.nn import cross_entropy as ops
from tensorplug.ops.nn.activation import log_softmax, softmax
from tensorplug.ops.ranges import arange
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(reads=())


@decompositions.of(ops.SOFTMAX_CROSS_ENTROPY)
def cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    # A class that cannot be, at -inf, and is none adds 0 times -inf.
    terms = where(equal(labels, 0), 0.0, labels * log_softmax(logits))
    return 0 - sum_(terms, axis=-1)  # 0 minus 0 is 0, and its negative is not


@decompositions.of(ops.SOFTMAX_CROSS_ENTROPY_GRAD)
def cross_entropy_grad(dy: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
    whole = sum_(labels, axis=-1, keepdims=True)
    return expand_dims(dy, axis=-1) * (softmax(logits) * whole - labels)


@decompositions.of(ops.SPARSE_SOFTMAX_CROSS_ENTROPY)
def sparse_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    wide = _widen(labels)
    # A negative label, which would count from the end, is out of range too.
    at = expand_dims(where(less(wide, 0), logits.shape[-1], wide), axis=-1)
    return 0 - squeeze(take_along_axis(log_softmax(logits), at, axis=-1), axis=-1)


@decompositions.of(ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD)
def sparse_cross_entropy_grad(dy: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
    wide = _widen(labels)
    chosen = equal(expand_dims(wide, axis=-1), arange(logits.shape[-1], dtype=wide.dtype))
    shares = softmax(logits)
    slope = expand_dims(dy, axis=-1)
    return where(equal(slope, 0), 0, slope * where(chosen, shares - 1, shares))


def _widen(labels: Tensor) -> Tensor:
    """Return labels in a dtype that holds the number of classes."""
    small = labels.dtype.itemsize < dt.default_int.itemsize
    return astype(labels, dt.default_int) if small else labels


decompositions.of(ops.SOFTMAX_GRAD)(
    lambda dy, y, *, dim: y * (dy - sum_(dy * y, axis=dim, keepdims=True))
)
