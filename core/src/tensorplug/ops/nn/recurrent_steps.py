"""Recurrent layers and their gradient kernels, step by step: for rules and decompositions.

float16 is computed in float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.ops.creation import zeros_like
from tensorplug.ops.elementwise import astype, tanh, where
from tensorplug.ops.indexing.slicing import split, unstack
from tensorplug.ops.kinds import widen_half
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.movement import concat, expand_dims, reshape, slice, stack
from tensorplug.ops.nn.activation import sigmoid

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    after: list[tuple[Tensor, Tensor]] = []
    for x, seen in zip(_steps(gates), _seen(mask, gates), strict=True):
        i, f, g, o = split(x + matmul(h, recurrent), 4, axis=1)
        new_c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        new_h = sigmoid(o) * tanh(new_c)
        h, c = _kept(seen, new_h, h), _kept(seen, new_c, c)
        after.append((h, c))
    if not after:
        empty = reshape(gates, (gates.shape[0], 0, h.shape[1]))
        return _narrow([empty, empty], operands)
    return _narrow([stack(states, axis=1) for states in zip(*after, strict=True)], operands)


def lstm_grad(operands: Tensors, mask: Tensor | None) -> list[Tensor]:
    """Return the cotangents of gates, h and c, from the last step to the first.

    All that does not depend on cotangents is computed for all steps at once.
    """
    dhidden, dcell, gates, recurrent, h, c, hidden, cell = _wide(operands)
    products = matmul(states_before(h, hidden), recurrent)
    i, f, g, o = split(gates + products, 4, axis=-1)
    i, f, g, o = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
    before, top = states_before(c, cell), tanh(cell)
    of_c = _steps(
        concat([g * i * (1 - i), before * f * (1 - f), i * (1 - g * g)], axis=-1)
    )  # of the gates, from the new c
    of_h = _steps(top * o * (1 - o))
    to_c, keep = _steps(o * (1 - top * top)), _steps(f)
    above = _steps(dhidden), _steps(dcell)
    dh, dc = zeros_like(h), zeros_like(c)
    found = []
    for dy, dz, to_gates, to_o, through, forget, seen in reversed(
        list(zip(*above, of_c, of_h, to_c, keep, _seen(mask, gates), strict=True))
    ):
        dh, dc = dh + dy, dc + dz
        inner = dc + dh * through
        dgates = concat([concat([inner] * 3, axis=1) * to_gates, dh * to_o], axis=1)
        dgates = _kept(seen, dgates, zeros_like(dgates))
        dh = _kept(seen, matmul(dgates, recurrent, transpose_b=True), dh)
        dc = _kept(seen, inner * forget, dc)
        found.append(dgates)
    of_gates = stack(found[::-1], axis=1) if found else gates
    return _narrow([of_gates, dh, dc], operands)


def gru(operands: Tensors, mask: Tensor | None) -> Tensor:
    """Return the state after each step; see ``tensorplug.ops.nn.gru``."""
    gates, recurrent, bias, h = _wide(operands)
    after = []
    for x, seen in zip(_steps(gates), _seen(mask, gates), strict=True):
        xr, xz, xn = split(x, 3, axis=1)
        ar, az, an = split(matmul(h, recurrent) + bias, 3, axis=1)
        z = sigmoid(xz + az)
        n = tanh(xn + sigmoid(xr + ar) * an)
        h = _kept(seen, (1 - z) * n + z * h, h)
        after.append(h)
    hidden = stack(after, axis=1) if after else reshape(gates, (gates.shape[0], 0, h.shape[1]))
    return _narrow([hidden], operands)[0]


def gru_grad(operands: Tensors, mask: Tensor | None) -> list[Tensor]:
    """Return the cotangents of gates, of the products with their bias, and of h."""
    dhidden, gates, recurrent, bias, h, hidden = _wide(operands)
    before = states_before(h, hidden)
    xr, xz, xn = split(gates, 3, axis=-1)
    ar, az, an = split(matmul(before, recurrent) + bias, 3, axis=-1)
    r, z = sigmoid(xr + ar), sigmoid(xz + az)
    n = tanh(xn + r * an)
    of_n = (1 - z) * (1 - n * n)
    of_gates = concat([of_n * an * r * (1 - r), (before - n) * z * (1 - z), of_n], axis=-1)
    of_products = concat([of_n * an * r * (1 - r), (before - n) * z * (1 - z), of_n * r], axis=-1)
    dh = zeros_like(h)
    found: list[tuple[Tensor, Tensor]] = []
    for dy, to_gates, to_products, keep, seen in reversed(
        list(
            zip(
                _steps(dhidden),
                _steps(of_gates),
                _steps(of_products),
                _steps(z),
                _seen(mask, gates),
                strict=True,
            )
        )
    ):
        dh = dh + dy
        above = _kept(seen, dh, zeros_like(dh))
        thrice = concat([above] * 3, axis=1)
        dproducts = thrice * to_products
        dh = _kept(seen, dh * keep + matmul(dproducts, recurrent, transpose_b=True), dh)
        found.append((thrice * to_gates, dproducts))
    if not found:
        return _narrow([gates, gates, dh], operands)
    dgates, dproducts = (stack(parts[::-1], axis=1) for parts in zip(*found, strict=True))
    return _narrow([dgates, dproducts, dh], operands)


def _wide(operands: Tensors) -> list[Tensor]:
    return [widen_half(x) for x in operands]


def _narrow(found: Tensors, operands: Tensors) -> list[Tensor]:
    return [astype(x, operands[0].dtype, copy=False) for x in found]


def _steps(x: Tensor) -> tuple[Tensor, ...]:
    return unstack(x, axis=1)


def _seen(mask: Tensor | None, gates: Tensor) -> Sequence[Tensor | None]:
    """Return whether each step counts, as columns; None where all do."""
    if mask is None:
        return [None] * gates.shape[1]
    return unstack(expand_dims(mask, axis=-1), axis=1)


def _kept(seen: Tensor | None, new: Tensor, old: Tensor) -> Any:
    return new if seen is None else where(seen, new, old)
