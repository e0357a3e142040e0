"""The 41 primitive kernels on plain NumPy; every other kernel is decomposed into these.

The parameters of a kernel name what it needs: inputs, then attributes and ``out``, the type of
the result. The core has checked and promoted the inputs, and it checks the result. The page of
specs says what a kernel must do at its edges: 0, NaN, ties, indices out of range.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from tensorplug.algorithms import scatter_depth
from tensorplug.plugin import (
    DType,
    KernelSpec,
    KernelTable,
    OutOfRangeError,
    Scalar,
    TensorType,
    narrowing,
    specs,
)
from tensorplug.plugin import dtypes as dt

from tensorplug_example_minimal.backend import Box

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_example_minimal.backend import Array

    Axes = tuple[int, ...]
    Function = Callable[..., Any]

kernels = KernelTable()


def native(spec: KernelSpec) -> Callable[[Function], Function]:
    """Register a function of arrays as the kernel of ``spec``, which is a function of boxes.

    REPLACE, one by one: a kernel that runs on the device takes and returns boxes itself; register
    it with ``@kernels.register(spec)``.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)  # so that the table sees the names of the parameters
        def kernel(*boxes: Any, **attributes: Any) -> Any:
            with np.errstate(all="ignore"):  # 1/0 is infinite, as on every other backend
                result = function(*map(_opened, boxes), **attributes)
            if isinstance(result, tuple):
                return [Box(array) for array in result]
            return Box(np.asarray(result))  # NumPy returns a scalar for rank 0

        kernels.register(spec)(kernel)
        return function

    return decorate


def _opened(boxes: Any) -> Any:
    return [box.array for box in boxes] if isinstance(boxes, list) else boxes.array


# Kernels that are functions of NumPy ------------------------------------------------------

WIDER: Final[dict[DType, Any]] = {dt.float32: np.float64}  # the dtype in which sums accumulate
_erf = np.frompyfunc(math.erf, 1, 1)  # NumPy has no erf; this is the C library's, in float64


def _unary(function: Function) -> Function:
    return lambda x: function(x)  # noqa: PLW0108  # the parameters of a ufunc have no names


def _binary(function: Function) -> Function:
    return lambda a, b: function(a, b)  # noqa: PLW0108  # as above


SIMPLE: Final[dict[KernelSpec, Function]] = {
    specs.NEG: _unary(np.negative),
    specs.ABS: _unary(np.absolute),
    specs.FLOOR: _unary(np.floor),
    specs.EXP: _unary(np.exp),
    specs.LOG: _unary(np.log),
    specs.SQRT: _unary(np.sqrt),
    specs.SIN: _unary(np.sin),
    specs.COS: _unary(np.cos),
    specs.ATAN: _unary(np.arctan),
    specs.ERF: lambda x: np.asarray(_erf(x)).astype(x.dtype),
    specs.ADD: _binary(np.add),
    specs.SUB: _binary(np.subtract),
    specs.MULTIPLY: _binary(np.multiply),
    specs.REAL_DIV: _binary(np.true_divide),
    specs.MOD: _binary(np.remainder),
    specs.MAXIMUM: _binary(np.maximum),
    specs.SELECT: lambda condition, t, e: np.where(condition, t, e),  # noqa: PLW0108  # names
    specs.EQUAL: _binary(np.equal),
    specs.LESS: _binary(np.less),
    specs.LOGICAL_AND: _binary(np.logical_and),
    specs.LOGICAL_NOT: _unary(np.logical_not),
    specs.FILL: lambda *, value, out: np.full(out.shape, value, out.dtype.numpy),
    specs.IDENTITY: lambda x: x,
    specs.RESHAPE: lambda x, *, shape: x.reshape(shape),
    specs.TRANSPOSE: lambda x, *, perm: x.transpose(perm),
    specs.BROADCAST_TO: lambda x, *, shape: np.broadcast_to(x, shape),
    specs.CONCAT: lambda xs, *, axis: np.concatenate(xs, axis=axis),
    specs.SUM: lambda x, *, axis, out: _accumulated(np.add, x, axis, out),
    specs.PROD: lambda x, *, axis, out: _accumulated(np.multiply, x, axis, out),
}


def _accumulated(function: np.ufunc, x: Array, axis: Axes, out: TensorType) -> Any:
    work = WIDER.get(out.dtype, out.dtype.numpy)
    total = function.reduce(_rows(x, axis), axis=-1, dtype=work)
    return total.astype(out.dtype.numpy).reshape(out.shape)


def _rows(x: Array, axis: Axes) -> Array:
    """Return ``x`` dense, with the reduced axes merged into the last: NumPy adds that pairwise."""
    kept = [number for number in range(x.ndim) if number not in axis]
    shape = (*(x.shape[number] for number in kept), math.prod(x.shape[number] for number in axis))
    return np.ascontiguousarray(x.transpose(*kept, *axis)).reshape(shape)


for _spec, _function in SIMPLE.items():
    native(_spec)(_function)

# Kernels of a few lines -------------------------------------------------------------------


@native(specs.FLOOR_DIV)
def floor_div(a: Array, b: Array) -> Any:
    """Replace NaN, which NumPy returns for an infinite dividend."""
    quotient = np.floor_divide(a, b)
    return np.where(np.isinf(a), a / b, quotient) if a.dtype.kind == "f" else quotient


@native(specs.POW)
def power(a: Array, b: Array) -> Any:
    """Compute negative powers of integers, which NumPy refuses."""
    if a.dtype.kind != "i":
        return np.power(a, b)
    inverse = np.where(np.abs(a) == 1, np.where(b % 2 == 1, a, 1), 0)
    return np.where(b < 0, inverse, np.power(a, np.maximum(b, 0))).astype(a.dtype)


@native(specs.CAST)
def cast(x: Array, *, dtype: DType) -> Any:
    """Convert by way of a dtype that every number fits."""
    if dtype is dt.bool_:
        return x != 0
    if dtype in dt.INTEGER and dt.of(x.dtype) in dt.FLOATING:
        # In C a float that does not fit is undefined; modulo 2**64, which is exact, it fits.
        whole = np.fmod(np.trunc(np.where(np.isfinite(x), x, 0)).astype(np.float64), 2.0**64)
        size = np.abs(whole).astype(np.uint64)
        x = np.where(whole < 0, -size, size)
    return narrowing.convert(x, dtype)  # NumPy would round twice to bfloat16


@native(specs.RANGE)
def range_(*, start: float, step: float, dtype: DType, out: TensorType) -> Any:
    """Compute each number from its own position, so that rounding errors do not add up."""
    if isinstance(start, int) and isinstance(step, int):
        exact = np.arange(out.size, dtype=object) * step + start  # Python's integers
        return (exact % 2**64).astype(np.uint64).astype(np.int64).astype(dtype.numpy)
    return (np.arange(out.size) * step + start).astype(dtype.numpy)


@native(specs.SLICE)
def slice_(x: Array, *, begin: Axes, size: Axes) -> Any:
    """Return a view; without the ellipsis, NumPy returns a scalar for rank 0."""
    block: Any = (..., *(slice(at, at + length) for at, length in zip(begin, size, strict=True)))
    return x[block]


@native(specs.PAD_V2)
def pad(
    x: Array, *, paddings: tuple[tuple[int, int], ...], constant_value: Scalar, out: TensorType
) -> Any:
    """Fill the result, then write the elements into its middle."""
    result = np.full(out.shape, constant_value, x.dtype)
    axes = zip(paddings, x.shape, strict=True)
    middle: Any = (..., *(slice(before, before + length) for (before, _), length in axes))
    result[middle] = x
    return result


def _positions(indices: Array, length: int) -> Array:
    """Return indices as NumPy takes them; its own error would not be one of tensorplug's."""
    outside = indices[(indices < -length) | (indices >= length)]
    if outside.size:
        raise OutOfRangeError(f"index {outside[0]} is out of range for an axis of length {length}")
    at = indices.astype(np.intp)
    return np.where(at < 0, at + length, at)


@native(specs.GATHER_V2)
def gather(x: Array, indices: Array, *, axis: int, batch_dims: int, out: TensorType) -> Any:
    """Take slices along an axis, with separate indices for each batch."""
    batch, before = math.prod(x.shape[:batch_dims]), math.prod(x.shape[batch_dims:axis])
    after, count = math.prod(x.shape[axis + 1 :]), math.prod(indices.shape[batch_dims:])
    flat = x.reshape(batch, before, x.shape[axis], after)
    at = _positions(indices, x.shape[axis]).reshape(batch, 1, count)
    picked = flat[np.arange(batch)[:, None, None], np.arange(before)[:, None], at]
    return picked.reshape(out.shape)


@native(specs.SCATTER_ND)
def scatter_nd(indices: Array, updates: Array, *, shape: Axes, out: TensorType) -> Any:
    """Add slices at positions; unlike ``+=``, ``add.at`` handles duplicate positions."""
    depth = scatter_depth(indices.shape, updates.shape, shape)
    count = math.prod(updates.shape[: updates.ndim + depth - len(shape)])
    width = math.prod(shape[depth:])
    flat = np.zeros(count, np.intp)
    for axis, length in enumerate(shape[:depth]):
        flat = flat * length + _positions(indices.reshape(count, depth)[:, axis], length)
    result = np.zeros((math.prod(shape[:depth]), width), WIDER.get(out.dtype, out.dtype.numpy))
    np.add.at(result, flat, updates.reshape(count, width))
    return result.reshape(shape).astype(updates.dtype)


@native(specs.MAX)
def max_(x: Array, *, reduction_indices: Axes, out: TensorType) -> Any:
    """Return an empty result at once; NumPy refuses to reduce an empty axis."""
    if not out.size:
        return np.empty(out.shape, x.dtype)
    return np.maximum.reduce(_rows(x, reduction_indices), axis=-1).reshape(out.shape)


@native(specs.ARG_MAX)
def arg_max(x: Array, *, axis: int, out: TensorType) -> Any:
    """Return the index of the maximum; what NumPy does for ties and NaN is right."""
    return np.argmax(x, axis=axis).astype(np.int32) if out.size else np.empty(out.shape, np.int32)


@native(specs.BATCH_MAT_MUL)
def matmul(a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Any:
    """Multiply the last two axes; the leading ones broadcast."""
    return np.matmul(a.mT if transpose_a else a, b.mT if transpose_b else b)


@native(specs.TOP_K)
def top_k(x: Array, *, k: int) -> tuple[Array, Array]:
    """Sort the reversed axis stably and read it backwards: equal elements stay in order."""
    indices = x.shape[-1] - 1 - np.argsort(x[..., ::-1], kind="stable")[..., ::-1][..., :k]
    return np.take_along_axis(x, indices, axis=-1), indices.astype(np.int32)
