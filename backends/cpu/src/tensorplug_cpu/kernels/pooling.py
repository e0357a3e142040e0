"""Pooling: one vectorised step for each tap of the window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug import dtypes as dt
from tensorplug.ops import pooling as ops
from tensorplug.tables import KernelTable
from tensorplug_cpu.quiet import quietly
from tensorplug_cpu.sliding import padded, taps, unpadded

if TYPE_CHECKING:
    from tensorplug.dtypes import DType
    from tensorplug.spec import TensorType
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()

Attributes = dict[str, Any]

Pair = tuple[int, int]


def _lowest(dtype: DType) -> Array:
    """Return what never wins against an element."""
    if dtype in dt.FLOATING:
        return np.array(-np.inf, dtype.numpy)
    return np.array(np.iinfo(dtype.name).min, dtype.numpy)


@kernels.prepare(ops.MAX_POOL)
def max_pool(
    x: TensorType,
    *,
    attributes: Attributes,
) -> Call:
    """Take the maximum over the taps."""
    at = ops.geometry(x.shape, **attributes)
    lowest = _lowest(x.dtype)
    blocks = list(taps(at))

    def run(x: Array) -> Array:
        wide = padded(x, at, lowest)
        result = wide[blocks[0]].copy()
        for block in blocks[1:]:
            np.maximum(result, wide[block], out=result)
        return result

    return quietly(run)


@kernels.prepare(ops.MAX_POOL_GRAD)
def max_pool_grad(
    dy: TensorType,
    input: TensorType,
    output: TensorType,
    *,
    attributes: Attributes,
) -> Call:
    """Give dy to the first tap, in row-major order, whose element is the window's maximum."""
    at = ops.geometry(input.shape, **attributes)
    lowest = _lowest(input.dtype)
    blocks = list(taps(at))
    # Padding must not win even where the window's largest element is -inf, as padding is.
    inside = padded(np.ones((1, *input.shape[1:3], 1), bool), at, value=False)

    def run(dy: Array, x: Array, output: Array) -> Array:
        wide = padded(x, at, lowest)
        result = np.zeros(wide.shape, dy.dtype)
        searching = np.ones(dy.shape, bool)  # windows whose maximum has not been met yet
        undefined = np.isnan(output)
        # dy or 0.0, as a product of its bits: several times as fast as choosing by a random mask,
        # and infinities times 0 do not become NaN.
        bits = dy.view(f"i{dy.dtype.itemsize}")
        any_undefined = bool(undefined.any())
        for block in blocks:
            wins = wide[block] == output
            if any_undefined:
                wins |= undefined & np.isnan(wide[block])
            wins &= searching
            wins &= inside[block]
            searching ^= wins
            result[block] += (bits * wins).view(dy.dtype)
        return unpadded(result, at)

    return quietly(run)
