"""Activation functions from primitives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug import dtypes as dt
from tensorplug.ops import activation as ops
from tensorplug.ops.elementwise import abs as abs_
from tensorplug.ops.elementwise import exp, log, maximum, where
from tensorplug.ops.reduction import max as max_
from tensorplug.ops.reduction import sum as sum_
from tensorplug.tables import DecompositionTable

if TYPE_CHECKING:
    from tensorplug.tensor import Tensor

decompositions = DecompositionTable()


@decompositions.of(ops.RELU)
def relu(x: Tensor) -> Tensor:
    return maximum(x, 0)


@decompositions.of(ops.SIGMOID, dtypes=dt.REAL)  # Abs, which keeps it stable, is real
def sigmoid(x: Tensor) -> Tensor:
    small = exp(-abs_(x))  # at most 1, so nothing overflows and tiny results are kept
    return where(x < 0, small, 1.0) / (small + 1.0)


@decompositions.of(ops.SOFTMAX)
def softmax(logits: Tensor, *, dim: int) -> Tensor:
    if not logits.size:
        return logits
    powers = exp(logits - max_(logits, axis=dim, keepdims=True))
    return powers / sum_(powers, axis=dim, keepdims=True)


@decompositions.of(ops.LOG_SOFTMAX)
def log_softmax(logits: Tensor, *, axis: int) -> Tensor:
    if not logits.size:
        return logits
    shifted = logits - max_(logits, axis=axis, keepdims=True)
    return shifted - log(sum_(exp(shifted), axis=axis, keepdims=True))
