"""Reading at indices, and writing indices out as one-hot rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import DType, KernelTable, Scalar, Shape, TensorType, shapes, specs
from tensorplug_opencl.codegen import calls, ctypes, layouts, templates
from tensorplug_opencl.movement import moving

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch, Runtime


kernels = KernelTable()

# An index as a long, counted from the front; unsigned ones beyond a long's range stay too large.
# Mesa 22 takes a long that was an int for an unsigned one where it is compared with a constant: so
# the code tests the sign of the index itself, and finds indices out of range without it.
_POSITION: Final = {
    "signed": "long position = entry[axis]; if (entry[axis] < 0) position += lengths.of[axis];",
    "unsigned": "long position = min((ulong)entry[axis], (ulong)LONG_MAX);",
}
_CLAMPED: Final = "position = clamp(position, (long)0, lengths.of[axis] - 1);"
_REFUSED: Final = "if ((ulong)position >= (ulong)lengths.of[axis]) return -1;"


def define_place_of(dtype: DType, depth: int, *, clamped: bool) -> str:
    """Return the C function ``place_of(pointer to an index, lengths)``.

    An index is ``depth`` numbers of ``dtype``, one for each of so many axes; its place is counted
    in row-major order. Negative ones count from the end. A device cannot raise: a read clamps an
    index that is out of range, so that it stays inside the array; for a write, the place is -1.
    """
    return f"""typedef struct {{ long of[{max(depth, 1)}]; }} Lengths;
long place_of(global const {ctypes.stored(dtype)} *entry, Lengths lengths) {{
  long place = 0;
  for (int axis = 0; axis < {depth}; axis++) {{
    {_POSITION[dtype.kind]}
    {_CLAMPED if clamped else _REFUSED}
    place = place * lengths.of[axis] + position;
  }}
  return place;
}}"""


def pack_lengths(shape: Shape) -> np.ndarray[Any, Any]:
    """Return the constant that ``define_place_of`` takes."""
    return np.array(shape or (1,), np.int64)


@kernels.prepare(specs.GATHER_V2)
def gather_v2(
    x: TensorType,
    indices: TensorType,
    *,
    axis: int,
    batch_dims: int,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Read [batch, outer, length, inner] at [batch, wanted]: [batch, outer, wanted, inner]."""
    if not out.size:
        return calls.make_empty(backend.runtime, out)
    batch = shapes.size(x.shape[:batch_dims])
    blocks = batch * shapes.size(x.shape[batch_dims:axis])
    reads = shapes.size(indices.shape[batch_dims:])
    launch = _launch_gather(
        backend.runtime, x, indices, x.shape[axis : axis + 1], (blocks, batch, reads), out
    )
    return calls.make_producer(backend.runtime, out, launch)


@kernels.prepare(specs.GATHER_ND)
def gather_nd(
    params: TensorType, indices: TensorType, *, backend: OpenedDevice, out: TensorType
) -> Call:
    """Read rows of the axes that the indices name, merged into one."""
    runtime, depth = backend.runtime, indices.shape[-1]
    if not out.size:
        return calls.make_empty(runtime, out)
    count = shapes.size(indices.shape[:-1])
    if depth == 0:  # each index names all there is
        whole = (count, params.size)
        repeat = moving.make_reader(runtime, params.dtype, whole, (0, 1), params.size, out)
        return lambda params, _indices: repeat(params)
    named = params.shape[:depth]
    launch = _launch_gather(runtime, params, indices, named, (1, 1, count), out)
    return calls.make_producer(runtime, out, launch)


def _launch_gather(
    runtime: Runtime,
    x: TensorType,
    indices: TensorType,
    named: Shape,
    sizes: tuple[int, int, int],
    out: TensorType,
) -> Launch:
    """Return the launch that copies the wanted rows from each block of x.

    ``named``: the axes of a block that an index names. ``sizes``: how many blocks there are,
    how many sets of indices for them, and how many indices are in each set.
    """
    blocks, sets, reads = sizes
    inner = out.size // (blocks * reads)
    pieces = moving.cut_pieces(runtime, inner)
    items = blocks * reads * pieces.number
    index = layouts.index_dtype(out.size, x.size, indices.size, items)
    ctype, index_ctype = ctypes.moved(x.dtype), ctypes.stored(indices.dtype)
    depth = len(named)
    place_of = define_place_of(indices.dtype, depth, clamped=True)
    if blocks == 1:
        source_index = f"place_of(indices + row * {depth}, lengths)"
    else:
        source_index = (
            "row / wanted * rows + place_of(indices + (row / wanted / per_set * wanted"
            f" + row % wanted) * {depth}, lengths)"
        )
    if inner == 1:
        copy = "  const index_t row = i;\n  y[i] = x[FOUND];"
    else:
        copy = f"""  {pieces.place}
  global const {ctype} *restrict from = x + FOUND * inner;
  global {ctype} *restrict to = y + row * inner;
  const index_t begin = piece * first, end = min(inner, begin + span);
  for (index_t k = begin; k < end; k += {"1" if runtime.is_cpu else "step"}) to[k] = from[k];"""
    text = templates.write_program(
        f"gather {ctype} by {indices.dtype}",
        [
            templates.Array("x", ctype),
            templates.Array("indices", index_ctype),
            templates.Array("y", ctype, written=True),
        ],
        [
            *templates.declare_indices("items", "inner", "pieces", "first", "span", "step"),
            *templates.declare_indices("wanted", "rows", "per_set"),
            "const Lengths lengths",
        ],
        f"  const index_t i = get_global_id(0);\n  if (i >= items) return;\n{copy}",
        index=index,
        declarations=f"{place_of}\n#define FOUND (index_t)({source_index})",
    )
    numbers = (items, inner, *pieces, reads, shapes.size(named), max(blocks // max(sets, 1), 1))
    constants = [*map(index.type, numbers), pack_lengths(named)]
    return runtime.launch(text, 3, constants, items, heavy=pieces.heavy)


@kernels.prepare(specs.ONE_HOT)
def one_hot(
    indices: TensorType,
    *,
    depth: int,
    on_value: Scalar,
    off_value: Scalar,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Compare the index with the place along the last axis."""
    if not out.size:
        return calls.make_empty(backend.runtime, out)
    index = layouts.index_dtype(out.size)
    ctype = ctypes.moved(out.dtype)
    text = templates.write_program(
        f"OneHot {ctype} by {indices.dtype}",
        [
            templates.Array("indices", ctypes.stored(indices.dtype)),
            templates.Array("y", ctype, written=True),
        ],
        ["const index_t items", "const index_t depth", f"const {ctype} on", f"const {ctype} off"],
        f"""  const index_t i = get_global_id(0);
  if (i >= items) return;
  const {ctypes.stored(indices.dtype)} wanted = indices[i / depth];
  y[i] = wanted >= 0 && (ulong)wanted == (ulong)(i % depth) ? on : off;""",
        index=index,
    )
    values = (calls.make_element(value, out.dtype) for value in (on_value, off_value))
    constants = [index.type(out.size), index.type(depth), *values]
    launch = backend.runtime.launch(text, 2, constants, out.size)
    return calls.make_producer(backend.runtime, out, launch)
