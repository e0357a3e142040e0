"""Recurrent layers and their gradient kernels, step by step: for rules and decompositions.

float16 is computed in float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.ops.arrangement import moveaxis
from tensorplug.ops.creation import zeros_like
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.unary import tanh
from tensorplug.ops.extents import slice
from tensorplug.ops.indexing.slicing import split
from tensorplug.ops.joining import concat
from tensorplug.ops.kinds import widen_half
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.movement import expand_dims, reshape
from tensorplug.ops.nn.activation import sigmoid
from tensorplug.ops.stepping import run_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.dispatch.tensor import Tensor

    Tensors = Sequence[Tensor]


def states_before(first: Tensor, states: Tensor) -> Tensor:
    """Return the state before each step, of the state after each step, [batch, time, units]."""
    batch, time, units = states.shape
    if not time:
        return states
    earlier = slice(states, (0, 0, 0), (batch, time - 1, units))
    return concat([expand_dims(first, axis=1), earlier], axis=1)


def sum_of_steps(a: Tensor, b: Tensor) -> Tensor:
    """Return the sum of ``a^T b`` over the steps of all sequences."""
    rows = a.shape[0] * a.shape[1]
    return matmul(reshape(a, (rows, a.shape[2])), reshape(b, (rows, b.shape[2])), transpose_a=True)


def lstm(operands: Tensors, mask: Tensor | None) -> list[Tensor]:
    """Return the states after each step; see ``tensorplug.ops.nn.lstm``."""
    gates, recurrent, h, c = _wide(operands)
    if not gates.shape[1]:
        empty = reshape(gates, (gates.shape[0], 0, h.shape[1]))
        return _narrow([empty, empty], operands)

    def step(states: Tensors, slices: Tensors, seen: Tensor | None) -> tuple[Tensors, Tensors]:
        (h, c), (x,) = states, slices
        i, f, g, o = split(x + matmul(h, recurrent), 4, axis=1)
        new_c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        new_h = sigmoid(o) * tanh(new_c)
        after = _kept(seen, new_h, h), _kept(seen, new_c, c)
        return after, after

    return _narrow(_run(step, [h, c], [gates], mask)[1], operands)


def lstm_grad(operands: Tensors, mask: Tensor | None) -> list[Tensor]:
    """Return the cotangents of gates, h and c, from the last step to the first.

    All that does not depend on cotangents is computed for all steps at once.
    """
    dhidden, dcell, gates, recurrent, h, c, hidden, cell = _wide(operands)
    zeros = [zeros_like(h), zeros_like(c)]
    if not gates.shape[1]:
        return _narrow([gates, *zeros], operands)
    products = matmul(states_before(h, hidden), recurrent)
    i, f, g, o = split(gates + products, 4, axis=-1)
    i, f, g, o = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
    before, top = states_before(c, cell), tanh(cell)
    of_c = concat([g * i * (1 - i), before * f * (1 - f), i * (1 - g * g)], axis=-1)
    of_h, to_c = top * o * (1 - o), o * (1 - top * top)  # of_c, of_h: of the gates

    def step(states: Tensors, slices: Tensors, seen: Tensor | None) -> tuple[Tensors, Tensors]:
        (dh, dc), (dy, dz, to_gates, to_o, through, forget) = states, slices
        dh, dc = dh + dy, dc + dz
        inner = dc + dh * through
        dgates = concat([concat([inner] * 3, axis=1) * to_gates, dh * to_o], axis=1)
        dgates = _kept(seen, dgates, zeros_like(dgates))
        dh = _kept(seen, matmul(dgates, recurrent, transpose_b=True), dh)
        return (dh, _kept(seen, inner * forget, dc)), [dgates]

    sequences = [dhidden, dcell, of_c, of_h, to_c, f]
    states, gradients = _run(step, zeros, sequences, mask, backwards=True)
    return _narrow([*gradients, *states], operands)


def gru(operands: Tensors, mask: Tensor | None) -> Tensor:
    """Return the state after each step; see ``tensorplug.ops.nn.gru``."""
    gates, recurrent, bias, h = _wide(operands)
    if not gates.shape[1]:
        return _narrow([reshape(gates, (gates.shape[0], 0, h.shape[1]))], operands)[0]

    def step(states: Tensors, slices: Tensors, seen: Tensor | None) -> tuple[Tensors, Tensors]:
        (h,), (x,) = states, slices
        xr, xz, xn = split(x, 3, axis=1)
        ar, az, an = split(matmul(h, recurrent) + bias, 3, axis=1)
        z = sigmoid(xz + az)
        n = tanh(xn + sigmoid(xr + ar) * an)
        after = [_kept(seen, (1 - z) * n + z * h, h)]
        return after, after

    return _narrow(_run(step, [h], [gates], mask)[1], operands)[0]


def gru_grad(operands: Tensors, mask: Tensor | None) -> list[Tensor]:
    """Return the cotangents of gates, of the products with their bias, and of h."""
    dhidden, gates, recurrent, bias, h, hidden = _wide(operands)
    if not gates.shape[1]:
        return _narrow([gates, gates, zeros_like(h)], operands)
    before = states_before(h, hidden)
    xr, xz, xn = split(gates, 3, axis=-1)
    ar, az, an = split(matmul(before, recurrent) + bias, 3, axis=-1)
    r, z = sigmoid(xr + ar), sigmoid(xz + az)
    n = tanh(xn + r * an)
    of_n = (1 - z) * (1 - n * n)
    of_gates = concat([of_n * an * r * (1 - r), (before - n) * z * (1 - z), of_n], axis=-1)
    of_products = concat([of_n * an * r * (1 - r), (before - n) * z * (1 - z), of_n * r], axis=-1)

    def step(states: Tensors, slices: Tensors, seen: Tensor | None) -> tuple[Tensors, Tensors]:
        (dh,), (dy, to_gates, to_products, keep) = states, slices
        dh = dh + dy
        thrice = concat([dh] * 3, axis=1)
        dgates, dproducts = (
            _kept(seen, thrice * to, zeros_like(thrice)) for to in (to_gates, to_products)
        )
        after = dh * keep + matmul(dproducts, recurrent, transpose_b=True)
        return [_kept(seen, after, dh)], [dgates, dproducts]

    sequences = [dhidden, of_gates, of_products, z]
    states, gradients = _run(step, [zeros_like(h)], sequences, mask, backwards=True)
    return _narrow([*gradients, *states], operands)


def _run(
    step: Callable[[Tensors, Tensors, Tensor | None], tuple[Tensors, Tensors]],
    states: Tensors,
    sequences: Tensors,
    mask: Tensor | None,
    *,
    backwards: bool = False,
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the last states, and what the steps give, [batch, time, ...] like ``sequences``.

    ``step`` takes the states, a slice of each sequence, and whether the step counts, as a column
    (None: all do); it returns the next states, and results.
    """
    columns = [moveaxis(x, 1, 0) for x in sequences]
    if mask is not None:
        columns.append(moveaxis(expand_dims(mask, axis=-1), 1, 0))
    count = len(states)

    def flat(now: list[Tensor]) -> list[Tensor]:
        slices = now[count:]
        seen = None if mask is None else slices.pop()
        after, results = step(now[:count], slices, seen)
        return [*after, *results]

    stacked = run_steps(flat, states, columns, reverse=backwards)
    return stacked[:count], [moveaxis(x, 0, 1) for x in stacked[count:]]


def _wide(operands: Tensors) -> list[Tensor]:
    return [widen_half(x) for x in operands]


def _narrow(gradients: Tensors, operands: Tensors) -> list[Tensor]:
    return [astype(x, operands[0].dtype, copy=False) for x in gradients]


def _kept(seen: Tensor | None, new: Tensor, old: Tensor) -> Any:
    return new if seen is None else where(seen, new, old)
