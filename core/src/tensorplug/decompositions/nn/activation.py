"""Activation functions from primitives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.decompositions.elementwise import complex_functions as parts
from tensorplug.decompositions.elementwise.complex_functions import by_parts
from tensorplug.ops.creation import full
from tensorplug.ops.elementwise.arithmetic import maximum, minimum
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import not_equal
from tensorplug.ops.elementwise.powers import log1p
from tensorplug.ops.elementwise.unary import abs as abs_
from tensorplug.ops.elementwise.unary import exp, log, tanh
from tensorplug.ops.nn import activation as ops
from tensorplug.ops.reduction import max as max_
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(reads=())
decompositions.of(ops.RELU)(lambda x: maximum(x, 0))
decompositions.of(ops.RELU6)(lambda x: minimum(maximum(x, 0), 6))
decompositions.of(ops.ELU)(lambda x: where(x > 0, x, _compute_expm1_below_0(x)))
decompositions.of(ops.ELU_GRAD)(lambda dy, y: where(y >= 0, dy, dy * (y + 1.0)))


@decompositions.of(ops.SELU)
def selu(x: Tensor) -> Tensor:
    below = _compute_expm1_below_0(x) * (ops.SELU_SCALE * ops.SELU_ALPHA)
    return where(x > 0, x * ops.SELU_SCALE, below)


def _compute_expm1_below_0(x: Tensor) -> Tensor:
    """Return ``e**x - 1`` for x <= 0, accurate near 0 too."""
    low = minimum(x, 0.0)
    return tanh(low * 0.5) * (exp(low) + 1.0)


decompositions.of(ops.LEAKY_RELU)(lambda x, *, alpha: where(x < 0, x * alpha, x))
decompositions.of(ops.PRELU)(lambda x, alpha: where(x < 0, x * alpha, x))


@decompositions.of(ops.SOFTPLUS)
def softplus(x: Tensor) -> Tensor:
    small = exp(-abs_(x))
    # log(1 + small), plus the part of small that 1 + small rounds away.
    total = small + 1.0
    return maximum(x, 0.0) + (log(total) + (small - (total - 1.0)) / total)


@decompositions.of(ops.STEP)
def step(x: Tensor, *, alpha: float) -> Tensor:
    high, low = full((), 1, dtype=x.dtype), full((), alpha, dtype=x.dtype)
    return where(not_equal(x, x), x, where(x > 0, high, low))


@decompositions.of(ops.SIGMOID)
@by_parts(parts.sigmoid)
def sigmoid(x: Tensor) -> Tensor:
    small = exp(-abs_(x))  # at most 1: nothing overflows, tiny results are kept
    return where(x < 0, small, 1.0) / (small + 1.0)


@decompositions.of(ops.SIGMOID_GRAD)
def sigmoid_grad(dy: Tensor, x: Tensor) -> Tensor:
    small = exp(-abs_(x))
    total = small + 1.0
    return dy * (small / total / total)


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
    # The largest elements count 1 each. Without one of these the sum keeps the digits that the
    # logarithm needs if the others are small.
    largest = shifted == 0
    others = sum_(where(largest, 0.0, exp(shifted)), axis=axis, keepdims=True)
    more = sum_(astype(largest, logits.dtype), axis=axis, keepdims=True) - 1.0
    return shifted - log1p(others + more)
