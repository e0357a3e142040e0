"""Recurrent layers: all steps of all sequences in one call.

A step multiplies the states of all sequences by the weights of all gates; then come some ufuncs
on small arrays, with their results in place. The gradient kernels first compute, for a block of
steps at once, the gates and the factors by which a cotangent passes them. A block fits into a
cache: large temporary arrays would take longer to allocate than to compute.

In a block the steps come first, [steps, batch, gates * units], so that each is contiguous.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.arrays import working
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.execution.outputs import output_allocator
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

_BLOCK: Final = 1 << 15  # numbers in the gates of a block


def _blocks(of_gates: TensorType) -> list[slice]:
    """Return the steps of gates [batch, time, gates * units] in blocks, from the first on."""
    batch, time, width = of_gates.shape
    length = max(1, _BLOCK // max(batch * width, 1))
    return [slice(first, min(first + length, time)) for first in range(0, time, length)]


def _steps(x: Array, block: slice, dtype: np.dtype[Any]) -> Array:
    """Return a block of [batch, time, ...] as [steps, batch, ...], an array of its own."""
    return np.array(x[:, block].swapaxes(0, 1), dtype, order="C")


def _before(first: Array, states: Array, block: slice, dtype: np.dtype[Any]) -> Array:
    """Return the state before each step of a block, from the states after each step."""
    result = np.empty((block.stop - block.start, *first.shape), dtype)
    if block.start:
        result[...] = states[:, block.start - 1 : block.stop - 1].swapaxes(0, 1)
    else:
        result[0] = first
        result[1:] = states[:, : block.stop - 1].swapaxes(0, 1)
    return result


def _parts(x: Array, count: int) -> Iterator[Array]:
    """Yield the parts of the last axis."""
    units = x.shape[-1] // count
    return (x[..., at * units : (at + 1) * units] for at in range(count))


def _sigmoid(x: Array) -> None:
    """Replace x by ``1 / (1 + exp(-x))``."""
    np.multiply(x, -1, out=x)  # np.negative of NumPy 2.4 in place is wrong for some strides
    np.exp(x, out=x)
    x += 1
    np.reciprocal(x, out=x)


def _product(rows: Array, weights: Array) -> Array:
    """Return the product of each state of a block with the weights."""
    steps, batch, units = rows.shape
    found: Array = np.matmul(rows.reshape(steps * batch, units), weights)
    return found.reshape(steps, batch, weights.shape[1])


def _left_out(mask: Array | None) -> Array | None:
    """Return which steps do not count, as columns [time, batch, 1]; None where all do."""
    return None if mask is None or mask.all() else ~mask.T[..., None]


def _sigmoids_first(target: Array, source: Array) -> Array:
    """Copy the quarters i, f, g, o of the last axis in the order i, f, o, g."""
    units = source.shape[-1] // 4
    target[..., : 2 * units] = source[..., : 2 * units]
    target[..., 2 * units : 3 * units] = source[..., 3 * units :]
    target[..., 3 * units :] = source[..., 2 * units : 3 * units]
    return target


@kernels.prepare(specs.LSTM, because="faster")
def lstm(
    gates: TensorType,
    recurrent: TensorType,
    h: TensorType,
    c: TensorType,
    mask: TensorType | None,
    *,
    out: tuple[TensorType, TensorType],
) -> Call:
    batch, _, units = out[0].shape
    dtype, blocks = working(out[0].dtype), _blocks(gates)
    allocators = [output_allocator(item) for item in out]

    def run(
        gates: Array,
        recurrent: Array,
        first_h: Array,
        first_c: Array,
        mask: Array | None,
    ) -> list[Array]:
        weights = _sigmoids_first(np.empty(recurrent.shape, dtype), recurrent)
        left_out, (hidden, cell) = _left_out(mask), (allocate() for allocate in allocators)
        h, c = first_h.astype(dtype), first_c.astype(dtype)
        old_h, old_c, inner = (np.empty_like(h) for _ in range(3))
        products = np.empty((batch, 4 * units), dtype)
        for block in blocks:
            source = gates[:, block].swapaxes(0, 1)
            for t, z in enumerate(
                _sigmoids_first(np.empty(source.shape, dtype), source), block.start
            ):
                np.add(z, np.matmul(h, weights, out=products), out=z)
                _sigmoid(z[:, : 3 * units])
                i, f, o, g = _parts(z, 4)
                np.tanh(g, out=g)
                old_h, h, old_c, c = h, old_h, c, old_c
                np.multiply(f, old_c, out=c)
                c += np.multiply(i, g, out=inner)
                np.multiply(o, np.tanh(c, out=inner), out=h)
                if left_out is not None:
                    np.copyto(h, old_h, where=left_out[t])
                    np.copyto(c, old_c, where=left_out[t])
                hidden[:, t], cell[:, t] = h, c
        return [hidden, cell]

    return without_warnings(run)


@kernels.prepare(specs.LSTM_GRAD, because="faster")
def lstm_grad(
    dhidden: TensorType,
    dcell: TensorType,
    gates: TensorType,
    recurrent: TensorType,
    h: TensorType,
    c: TensorType,
    hidden: TensorType,
    cell: TensorType,
    mask: TensorType | None,
    *,
    out: tuple[TensorType, ...],
) -> Call:
    """Pass the cotangents of the states from the last step to the first."""
    batch, _, width = out[0].shape
    units, dtype, narrow = width // 4, working(out[0].dtype), out[0].dtype.numpy
    allocate, blocks = output_allocator(out[0]), _blocks(out[0])

    def run(
        dhidden: Array,
        dcell: Array,
        gates: Array,
        recurrent: Array,
        h: Array,
        c: Array,
        hidden: Array,
        cell: Array,
        mask: Array | None,
    ) -> list[Array]:
        weights = recurrent.astype(dtype, copy=False)
        turned, left_out = np.ascontiguousarray(weights.T), _left_out(mask)
        dgates = allocate()
        dh, dc = np.zeros((batch, units), dtype), np.zeros((batch, units), dtype)
        for block in reversed(blocks):
            z = _steps(gates, block, dtype)
            z += _product(_before(h, hidden, block, dtype), weights)
            _sigmoid(z[..., : 2 * units])
            _sigmoid(z[..., 3 * units :])
            i, f, g, o = _parts(z, 4)
            np.tanh(g, out=g)
            top, before = np.tanh(_steps(cell, block, dtype)), _before(c, cell, block, dtype)
            found = np.empty((len(z), batch, 4, units), dtype)
            of_i, of_f, of_g, of_o = (found[:, :, at] for at in range(4))
            np.multiply(g * i, 1 - i, out=of_i)
            np.multiply(before * f, 1 - f, out=of_f)
            np.multiply(i, 1 - g * g, out=of_g)
            np.multiply(top * o, 1 - o, out=of_o)
            to_c = o * (1 - top * top)
            for t in range(block.stop - 1, block.start - 1, -1):
                at = t - block.start
                dh += dhidden[:, t]
                dc += dcell[:, t]
                inner = dh * to_c[at]
                inner += dc
                found[at, :, :3] *= inner[:, None]
                found[at, :, 3] *= dh
                inner *= f[at]
                if left_out is None:
                    np.matmul(found[at].reshape(batch, width), turned, out=dh)
                    dc = inner
                    continue
                np.copyto(found[at], 0, where=left_out[t][..., None])
                counts = ~left_out[t]
                np.copyto(dh, found[at].reshape(batch, width) @ turned, where=counts)
                np.copyto(dc, inner, where=counts)
            dgates[:, block] = found.reshape(z.shape).swapaxes(0, 1)
        return [dgates, dh.astype(narrow), dc.astype(narrow)]

    return without_warnings(run)


@kernels.prepare(specs.GRU, because="faster")
def gru(
    gates: TensorType,
    recurrent: TensorType,
    bias: TensorType,
    h: TensorType,
    mask: TensorType | None,
    *,
    out: TensorType,
) -> Call:
    (batch, _, units), dtype = out.shape, working(out.dtype)
    allocate, blocks = output_allocator(out), _blocks(gates)

    def run(
        gates: Array,
        recurrent: Array,
        bias: Array,
        first: Array,
        mask: Array | None,
    ) -> Array:
        weights, left_out = recurrent.astype(dtype, copy=False), _left_out(mask)
        hidden, h = allocate(), first.astype(dtype)
        products, old = np.empty((batch, 3 * units), dtype), np.empty_like(h)
        of_n = products[:, 2 * units :]
        for block in blocks:
            for t, x in enumerate(_steps(gates, block, dtype), block.start):
                np.matmul(h, weights, out=products)
                np.add(products, bias, out=products)
                both, n = x[:, : 2 * units], x[:, 2 * units :]
                both += products[:, : 2 * units]
                _sigmoid(both)
                r, z = _parts(both, 2)
                n += np.multiply(r, of_n, out=of_n)
                np.tanh(n, out=n)
                old, h = h, old
                np.multiply(z, old, out=h)
                np.subtract(1, z, out=z)
                h += np.multiply(z, n, out=n)
                if left_out is not None:
                    np.copyto(h, old, where=left_out[t])
                hidden[:, t] = h
        return hidden

    return without_warnings(run)


@kernels.prepare(specs.GRU_GRAD, because="faster")
def gru_grad(
    dhidden: TensorType,
    gates: TensorType,
    recurrent: TensorType,
    bias: TensorType,
    h: TensorType,
    hidden: TensorType,
    mask: TensorType | None,
    *,
    out: tuple[TensorType, ...],
) -> Call:
    """Pass the cotangent of the state from the last step to the first."""
    batch, _, width = out[0].shape
    units, dtype, narrow = width // 3, working(out[0].dtype), out[0].dtype.numpy
    allocators, blocks = [output_allocator(item) for item in out[:2]], _blocks(out[0])

    def run(
        dhidden: Array,
        gates: Array,
        recurrent: Array,
        bias: Array,
        first: Array,
        hidden: Array,
        mask: Array | None,
    ) -> list[Array]:
        weights = recurrent.astype(dtype, copy=False)
        turned, left_out = np.ascontiguousarray(weights.T), _left_out(mask)
        dgates, dproducts = (allocate() for allocate in allocators)
        dh = np.zeros((batch, units), dtype)
        for block in reversed(blocks):
            before = _before(first, hidden, block, dtype)
            products, x = _product(before, weights), _steps(gates, block, dtype)
            products += bias
            both, new = x[..., : 2 * units], products[..., 2 * units :]
            both += products[..., : 2 * units]
            _sigmoid(both)
            r, z = _parts(both, 2)
            n = np.tanh(x[..., 2 * units :] + r * new)
            of_n = (1 - z) * (1 - n * n)
            found = np.empty((len(x), batch, 3, units), dtype)
            np.multiply(of_n * new * r, 1 - r, out=found[:, :, 0])
            np.multiply((before - n) * z, 1 - z, out=found[:, :, 1])
            np.multiply(of_n, r, out=found[:, :, 2])
            for t in range(block.stop - 1, block.start - 1, -1):
                at = t - block.start
                dh += dhidden[:, t]
                found[at] *= dh[:, None]
                of_n[at] *= dh
                passed = found[at].reshape(batch, width) @ turned
                passed += dh * z[at]
                if left_out is None:
                    dh = passed
                    continue
                np.copyto(found[at], 0, where=left_out[t][..., None])
                np.copyto(of_n[at], 0, where=left_out[t])
                np.copyto(dh, passed, where=~left_out[t])
            by_sequence = found.reshape(x.shape).swapaxes(0, 1)
            dgates[:, block] = dproducts[:, block] = by_sequence
            dgates[:, block, 2 * units :] = of_n.swapaxes(0, 1)
        return [dgates, dproducts, dh.astype(narrow)]

    return without_warnings(run)
