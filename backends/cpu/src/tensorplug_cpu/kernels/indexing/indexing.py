"""Reading and writing at indices."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.algorithms import scatter_depth
from tensorplug.plugin import OutOfRangeError, Scalar, Shape, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import element
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.jit.families.gathers import gatherer
from tensorplug_cpu.jit.forms import by_form
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.segments import row_sums

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


def _positions(indices: Array, length: int, axis: int) -> Array:
    """Return indices into an axis counted from the front.

    Raises:
        OutOfRangeError: naming the first one outside ``[-length, length)``.

    """
    if not indices.size:
        return indices.astype(np.intp)
    low, high = int(indices.min()), int(indices.max())
    if low < -length or high >= length:
        outside = (indices >= length) if high >= length else (indices < -length)
        raise OutOfRangeError(
            f"index {indices[outside].flat[0]} is out of range for axis {axis} of length {length}"
        )
    positions = indices.astype(np.intp, copy=False)
    return np.where(positions < 0, positions + length, positions) if low < 0 else positions


def _position(index: Array, length: int, axis: int) -> int:
    """Return one index into an axis; see ``_positions``."""
    number = int(index)
    if not -length <= number < length:
        _positions(index, length, axis)  # raises
    return number


def flatten_indices(shape: Shape, count: int) -> Callable[[Array], Array]:
    """Return the function from ``count`` indices in ``shape`` to positions in row-major order.

    Raises:
        OutOfRangeError: (the function) an index is out of range.

    """
    depth = len(shape)

    def flattened(indices: Array) -> Array:
        rows = indices.reshape(count, depth)
        if depth == 1:
            return _positions(rows[:, 0], shape[0], 0)
        flat = np.zeros(count, np.intp)
        for axis in range(depth):
            flat *= shape[axis]
            flat += _positions(rows[:, axis], shape[axis], axis)
        return flat

    return flattened


def _taken(x: Array, indices: Array, length: int, axis: int) -> Array:
    """Return slices of an axis.

    Raises:
        OutOfRangeError: naming an index.

    """
    try:
        # take() copies all of an array whose elements do not lie in order.
        if not x.flags.c_contiguous and indices.size < length:
            lead: Any = (slice(None),) * axis
            parts: Array = x[(*lead, indices)]
            return parts
        return x.take(indices, axis=axis)
    except IndexError:
        _positions(indices, length, axis)  # raises, naming the index
        raise


@kernels.prepare(specs.GATHER_V2)
def gather_v2(
    x: TensorType, indices: TensorType, *, axis: int, batch_dims: int, out: TensorType
) -> Call:
    """Take slices along an axis, with one set of indices for each batch."""
    length, shape = x.shape[axis], out.shape
    lead: Any = (slice(None),) * axis
    if not indices.rank:
        if x.rank == 1:
            return lambda x, indices: np.asarray(x[_position(indices, length, 0)], x.dtype)
        if not axis:
            return lambda x, indices: x[_position(indices, length, 0)]
        return lambda x, indices: x[(*lead, _position(indices, length, axis))]
    batch, before = prod(x.shape[:batch_dims]), prod(x.shape[batch_dims:axis])
    after = prod(x.shape[axis + 1 :])
    count = prod(indices.shape[batch_dims:])
    native = gatherer((batch, before, length, after), count, x.dtype.numpy, indices.dtype.numpy)
    if not batch_dims:
        wide = indices.dtype is dt.uint64  # NumPy does not accept it as an index

        def run(x: Array, indices: Array) -> Any:
            at = _positions(indices, length, axis) if wide else indices
            return _taken(x, at, length, axis)

        return without_warnings(_native_or(run, native, shape))
    starts = np.arange(batch * before, dtype=np.intp).reshape(batch, before, 1) * length

    def run_batched(x: Array, indices: Array) -> Array:
        positions = _positions(indices, length, axis).reshape(batch, 1, count)
        rows = x.reshape(batch * before * length, after)
        return rows.take(starts + positions, axis=0).reshape(shape)

    return without_warnings(_native_or(run_batched, native, shape))


def _native_or(
    run: Call, native: Callable[[Array, Array], Array | None] | None, shape: Shape
) -> Call:
    """Return ``native``, with ``run`` for arrays with gaps and for the error of a bad index."""
    if native is None:
        return run

    def take(x: Array, indices: Array) -> Any:
        if x.flags.c_contiguous:
            result = native(x, indices)
            if result is not None:
                return result.reshape(shape)
        return run(x, indices)

    return take


@kernels.prepare(specs.GATHER_ND, because="faster")
def gather_nd(params: TensorType, indices: TensorType, *, out: TensorType) -> Call:
    """Take rows of the axes that the indices name, merged into one."""
    depth, shape = indices.shape[-1], out.shape
    rows, width = prod(params.shape[:depth]), prod(params.shape[depth:])
    flattened = flatten_indices(params.shape[:depth], prod(indices.shape[:-1]))
    if indices.rank == 1:
        return _one(params, depth)
    if depth == 1 and indices.dtype is not dt.uint64:  # NumPy does not accept it as an index
        length, lead = params.shape[0], indices.shape[:-1]

        native = gatherer(
            (1, 1, length, width), prod(lead), params.dtype.numpy, indices.dtype.numpy
        )

        def run_along_first(params: Array, indices: Array) -> Array:
            return _taken(params, indices.reshape(lead), length, 0)

        return without_warnings(_native_or(run_along_first, native, shape))

    def run(params: Array, indices: Array) -> Array:
        return params.reshape(rows, width).take(flattened(indices), axis=0).reshape(shape)

    return without_warnings(run)


def _key(index: Array, sizes: Shape) -> tuple[int, ...]:
    """Return one index of the first axes as Python's integers; see ``_positions``."""
    key = tuple(index.tolist())
    for axis, (number, size) in enumerate(zip(key, sizes, strict=True)):
        if not -size <= number < size:
            _positions(index[axis], size, axis)  # raises
    return key


def _one(params: TensorType, depth: int) -> Call:
    """Return the function that takes what one index of some axes names: a view of it."""
    sizes = params.shape[:depth]
    if depth == params.rank:
        return lambda params, indices: np.asarray(params[_key(indices, sizes)], params.dtype)
    return lambda params, indices: params[_key(indices, sizes)]


def _with_one(shape: Shape, depth: int) -> Call:
    """Return the function that copies, then writes what one index of some axes names."""
    sizes = shape[:depth]

    def run(tensor: Array, indices: Array, updates: Array) -> Array:
        result = np.array(tensor, order="C")
        key: Any = _key(indices, sizes)
        result[(*key, ...)] = updates
        return result

    return without_warnings(run)


@kernels.prepare(specs.SCATTER_ND)
def scatter_nd(indices: TensorType, updates: TensorType, *, shape: Shape, out: TensorType) -> Call:
    """Add slices at positions. A negative position counts from the end, as in GatherV2."""
    depth = scatter_depth(indices.shape, updates.shape, shape)
    rows, width = prod(shape[:depth]), prod(shape[depth:])
    count = prod(updates.shape[: updates.rank - (len(shape) - depth)])
    flattened = flatten_indices(shape[:depth], count)

    def run(indices: Array, updates: Array) -> Array:
        return row_sums(flattened(indices), updates.reshape(count, width), rows).reshape(shape)

    return without_warnings(run)


@kernels.prepare(specs.TENSOR_SCATTER_UPDATE, because="faster")
def tensor_scatter_update(
    tensor: TensorType, indices: TensorType, updates: TensorType, *, out: TensorType
) -> Call:
    """Copy, then write rows; of equal indices NumPy lets the last one win."""
    shape = tensor.shape
    depth = scatter_depth(indices.shape, updates.shape, shape)
    rows, width = prod(shape[:depth]), prod(shape[depth:])
    count = prod(updates.shape[: updates.rank - (len(shape) - depth)])
    flattened = flatten_indices(shape[:depth], count)
    if indices.shape == (depth,) and updates.shape == shape[depth:]:
        return _with_one(shape, depth)

    def run(tensor: Array, indices: Array, updates: Array) -> Array:
        result = np.array(tensor, order="C").reshape(rows, width)
        result[flattened(indices)] = updates.reshape(count, width)
        return result.reshape(shape)

    return without_warnings(run)


@kernels.prepare(specs.SPARSE_TO_DENSE, because="faster")
def sparse_to_dense(
    sparse_indices: TensorType,
    sparse_values: TensorType,
    default_value: TensorType | None,
    *,
    output_shape: Shape,
    out: TensorType,
) -> Call:
    """Fill, then write elements; of equal indices NumPy lets the last one win."""
    count = sparse_indices.shape[0] if sparse_indices.rank else 1
    flattened = flatten_indices(output_shape, count)
    dtype, size = out.dtype.numpy, out.size

    def run(sparse_indices: Array, sparse_values: Array, default_value: Array | None) -> Array:
        if default_value is None:
            result = np.zeros(size, dtype)
        else:
            result = np.full(size, default_value, dtype)
        result[flattened(sparse_indices)] = sparse_values
        return result.reshape(output_shape)

    return without_warnings(run)


@kernels.prepare(specs.ONE_HOT, because="faster")
@by_form(specs.ONE_HOT)
def one_hot(
    indices: TensorType, *, depth: int, on_value: Scalar, off_value: Scalar, out: TensorType
) -> Call:
    """Fill with ``off_value`` and write ``on_value`` where an index names a column."""
    on, off = element(on_value, out.dtype), element(off_value, out.dtype)
    shape, count = out.shape, indices.size

    def run(indices: Array) -> Any:
        result = np.full((count, depth), off, off.dtype)
        flat = indices.reshape(-1)
        rows = np.flatnonzero((flat >= 0) & (flat < depth))
        result[rows, flat[rows].astype(np.intp)] = on
        return result.reshape(shape)

    return without_warnings(run)
