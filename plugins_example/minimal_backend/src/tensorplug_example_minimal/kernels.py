"""The 41 primitive kernels; every other kernel is decomposed into these.

A program runs on the device. It names the inputs, then attributes and ``out``, the memory that it
writes to; the core has checked and promoted the inputs. The page of specs says what a kernel must
do at its edges: 0, NaN, ties, indices out of range.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from tensorplug.algorithms import error_function, ratio, scatter_depth
from tensorplug.plugin import DType, KernelSpec, KernelTable, Scalar, TensorType, narrowing, specs
from tensorplug.plugin import dtypes as dt

from tensorplug_example_minimal.backend import Box

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray[Any, Any]
    Axes = tuple[int, ...]


def launch(
    program: Callable[..., object],
    *inputs: Any,
    backend: Any,
    out: TensorType | tuple[TensorType, ...],
    **sizes: Any,
) -> Box | list[Box]:
    """Allocate the results of a kernel, put its program into the stream, and return at once."""
    operands = [
        [x.operand for x in each] if isinstance(each, list) else each.operand for each in inputs
    ]
    types = out if isinstance(out, tuple) else (out,)
    boxes = [Box(backend.driver, each) for each in types]
    backend.driver.launch(program, operands, [box.operand for box in boxes], **sizes)
    return boxes if isinstance(out, tuple) else boxes[0]


kernels = KernelTable(launch)

# REPLACE, one by one: the programs. These are written in the language of the pretended device,
# which is NumPy.

WIDER: Final[dict[Any, Any]] = {np.dtype(np.float32): np.float64}  # in which sums accumulate

SIMPLE: Final[dict[KernelSpec, Callable[..., object]]] = {
    specs.NEG: np.negative,
    specs.ABS: np.absolute,
    specs.FLOOR: np.floor,
    specs.EXP: np.exp,
    specs.LOG: np.log,
    specs.SQRT: np.sqrt,
    specs.SIN: np.sin,
    specs.COS: np.cos,
    specs.ATAN: np.arctan,
    specs.ADD: np.add,
    specs.SUB: np.subtract,
    specs.MULTIPLY: np.multiply,
    specs.REAL_DIV: np.true_divide,
    specs.MOD: np.remainder,
    specs.MAXIMUM: np.maximum,
    specs.EQUAL: np.equal,
    specs.LESS: np.less,
    specs.LOGICAL_AND: np.logical_and,
    specs.LOGICAL_NOT: np.logical_not,
    specs.BATCH_MAT_MUL: lambda a, b, *, transpose_a, transpose_b, out: np.matmul(
        a.mT if transpose_a else a, b.mT if transpose_b else b, out
    ),
    specs.SELECT: lambda condition, t, e, *, out: np.copyto(out, np.where(condition, t, e)),
    specs.FILL: lambda *, value, out: out.fill(value),
    specs.IDENTITY: lambda x, *, out: np.copyto(out, x),
    specs.RESHAPE: lambda x, *, out: np.copyto(out, x.reshape(out.shape)),
    specs.TRANSPOSE: lambda x, *, perm, out: np.copyto(out, x.transpose(perm)),
    specs.BROADCAST_TO: lambda x, *, out: np.copyto(out, x),
    specs.CONCAT: lambda xs, *, axis, out: np.concatenate(xs, axis, out),
    specs.SUM: lambda x, *, axis, out: _reduce(np.add, x, axis, out),
    specs.PROD: lambda x, *, axis, out: _reduce(np.multiply, x, axis, out),
    specs.MAX: lambda x, *, reduction_indices, out: _reduce(np.maximum, x, reduction_indices, out),
}
for _spec, _program in SIMPLE.items():
    kernels.register(_spec)(_program)


def _reduce(function: np.ufunc, x: Array, axis: Axes, out: Array) -> None:
    """Merge the reduced axes into the last of a dense array: NumPy adds that pairwise."""
    kept = [number for number in range(x.ndim) if number not in axis]
    shape = (*(x.shape[number] for number in kept), math.prod(x.shape[number] for number in axis))
    rows = np.ascontiguousarray(x.transpose(*kept, *axis)).reshape(shape)
    if out.size:  # NumPy refuses the maximum of an empty axis
        total = function.reduce(rows, axis=-1, dtype=WIDER.get(out.dtype, out.dtype))
        out[...] = total.reshape(out.shape)


@kernels.register(specs.ERF)
def _erf(x: Array, *, out: Array) -> None:
    """Choose between four quotients of polynomials, in float64."""
    size = np.abs(x.astype(np.float64))
    ends = [size < end for end in error_function.ENDS]
    tails = [ratio(part, size**-2.0) for part in (error_function.MIDDLE, error_function.FAR)]
    middle, far = (1 - np.exp(tail - size * size - 0.5625) / size for tail in tails)
    near = size + size * ratio(error_function.NEAR_0, size * size)
    beside_1 = error_function.AT_1 + ratio(error_function.NEAR_1, size - 1)
    parts = [near, beside_1, middle, far]
    out[...] = np.copysign(np.select([*ends, size < 6], parts, np.minimum(size, 1)), x)


@kernels.register(specs.FLOOR_DIV)
def _floor_div(a: Array, b: Array, *, out: Array) -> None:
    np.floor_divide(a, b, out)
    if a.dtype.kind == "f":  # NumPy returns NaN for an infinite dividend
        np.divide(a, b, out, where=np.isinf(a))


@kernels.register(specs.POW)
def _power(a: Array, b: Array, *, out: Array) -> None:
    if a.dtype.kind != "i":
        np.power(a, b, out)
        return
    inverse = np.where(np.abs(a) == 1, np.where(b % 2 == 1, a, 1), 0)  # which NumPy refuses
    out[...] = np.where(b < 0, inverse, np.power(a, np.maximum(b, 0)))


@kernels.register(specs.CAST)
def _cast(x: Array, *, dtype: DType, out: Array) -> None:
    if dtype in dt.INTEGER and dt.of(x.dtype) in dt.FLOATING:
        # In C a float that does not fit is undefined; modulo 2**64, which is exact, it fits.
        whole = np.fmod(np.trunc(np.where(np.isfinite(x), x, 0)).astype(np.float64), 2.0**64)
        size = np.abs(whole).astype(np.uint64)
        x = np.where(whole < 0, -size, size)
    # NumPy would round twice to bfloat16.
    out[...] = x != 0 if dtype is dt.bool_ else narrowing.convert(x, dtype)


@kernels.register(specs.RANGE)
def _range(*, start: float, step: float, out: Array) -> None:
    """Compute each number from its own position, so that rounding errors do not add up."""
    if isinstance(start, int) and isinstance(step, int):
        exact = np.arange(out.size, dtype=object) * step + start  # Python's integers
        out[...] = (exact % 2**64).astype(np.uint64).astype(np.int64)
    else:
        out[...] = np.arange(out.size) * step + start


@kernels.register(specs.SLICE)
def _slice(x: Array, *, begin: Axes, size: Axes, out: Array) -> None:
    out[...] = x[tuple(slice(at, at + length) for at, length in zip(begin, size, strict=True))]


@kernels.register(specs.PAD_V2)
def _pad(x: Array, *, paddings: Any, constant_value: Scalar, out: Array) -> None:
    out.fill(constant_value)
    axes = zip(paddings, x.shape, strict=True)
    out[tuple(slice(before, before + length) for (before, _), length in axes)] = x


def _positions(indices: Array, length: int) -> Array:
    """Return indices from 0 on, or raise the device's error."""
    outside = indices[(indices < -length) | (indices >= length)]
    if outside.size:
        raise IndexError(f"index {outside[0]} is out of range for an axis of length {length}")
    at = indices.astype(np.intp)
    return np.where(at < 0, at + length, at)


@kernels.register(specs.GATHER_V2)
def _gather(x: Array, indices: Array, *, axis: int, batch_dims: int, out: Array) -> None:
    batch, before = math.prod(x.shape[:batch_dims]), math.prod(x.shape[batch_dims:axis])
    after, count = math.prod(x.shape[axis + 1 :]), math.prod(indices.shape[batch_dims:])
    flat = x.reshape(batch, before, x.shape[axis], after)
    at = _positions(indices, x.shape[axis]).reshape(batch, 1, count)
    picked = flat[np.arange(batch)[:, None, None], np.arange(before)[:, None], at]
    out[...] = picked.reshape(out.shape)


@kernels.register(specs.SCATTER_ND)
def _scatter_nd(indices: Array, updates: Array, *, out: Array) -> None:
    depth = scatter_depth(indices.shape, updates.shape, out.shape)
    count = math.prod(updates.shape[: updates.ndim + depth - out.ndim])
    width = math.prod(out.shape[depth:])
    flat = np.zeros(count, np.intp)
    for axis, length in enumerate(out.shape[:depth]):
        flat = flat * length + _positions(indices.reshape(count, depth)[:, axis], length)
    result = np.zeros((math.prod(out.shape[:depth]), width), WIDER.get(out.dtype, out.dtype))
    np.add.at(result, flat, updates.reshape(count, width))  # unlike ``+=``, of duplicates too
    out[...] = result.reshape(out.shape)


@kernels.register(specs.ARG_MAX)
def _arg_max(x: Array, *, axis: int, out: Array) -> None:
    if out.size:  # NumPy refuses an empty axis
        out[...] = np.argmax(x, axis=axis)


@kernels.register(specs.TOP_K)
def _top_k(x: Array, *, k: int, out: list[Array]) -> None:
    """Sort the reversed axis stably and read it backwards: equal elements stay in order."""
    at = x.shape[-1] - 1 - np.argsort(x[..., ::-1], kind="stable")[..., ::-1][..., :k]
    out[0][...], out[1][...] = np.take_along_axis(x, at, axis=-1), at
