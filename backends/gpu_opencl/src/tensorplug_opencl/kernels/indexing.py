"""Reading at indices, and writing indices out as one-hot rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import DType, Scalar, Shape, TensorType, shapes, specs
from tensorplug_opencl.codegen import calls, ctypes, layouts
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.movement import moving

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call, Constant
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch, Runtime


kernels = calls.Kernels()

# An index as a long, counted from the front; unsigned ones beyond a long's range stay too large.
# Mesa 22 takes a long that was an int for an unsigned one where it is compared with a constant: so
# the code tests the sign of the index itself, and finds indices out of range without it.
_POSITION: Final = {
    "signed": "long position = entry[axis]; if (entry[axis] < 0) position += lengths.of[axis];",
    "unsigned": "long position = min((ulong)entry[axis], (ulong)LONG_MAX);",
}
_CLAMPED: Final = "position = clamp(position, (long)0, lengths.of[axis] - 1);"
_REFUSED: Final = "if ((ulong)position >= (ulong)lengths.of[axis]) return -1;"


def define_position_of(dtype: DType, depth: int, *, clamped: bool) -> str:
    """Return the C function ``position_of(pointer to an index, lengths)``.

    An index is ``depth`` numbers of ``dtype``, one for each of so many axes; positions are counted
    in row-major order. Negative ones count from the end. A device cannot raise: a read clamps an
    index that is out of range, so that it stays inside the array; for a write it is -1.
    """
    return f"""typedef struct {{ long of[{max(depth, 1)}]; }} Lengths;
long position_of(global const {ctypes.stored(dtype)} *entry, Lengths lengths) {{
  long flat = 0;
  for (int axis = 0; axis < {depth}; axis++) {{
    {_POSITION[dtype.kind]}
    {_CLAMPED if clamped else _REFUSED}
    flat = flat * lengths.of[axis] + position;
  }}
  return flat;
}}"""


def pack_lengths(shape: Shape) -> Constant:
    """Return the constant that ``define_position_of`` takes."""
    return "Lengths", "lengths", np.array(shape or (1,), np.int64)


@kernels.write(specs.GATHER_V2)
def gather_v2(
    x: TensorType,
    indices: TensorType,
    *,
    axis: int,
    batch_dims: int,
    backend: OpenedDevice,
    out: TensorType,
) -> Launch:
    """Read [batch, outer, length, inner] at [batch, count]: [batch, outer, count, inner]."""
    batch = shapes.size(x.shape[:batch_dims])
    blocks = batch * shapes.size(x.shape[batch_dims:axis])
    reads = shapes.size(indices.shape[batch_dims:])
    return _launch_gather(
        backend.runtime, x, indices, x.shape[axis : axis + 1], (blocks, batch, reads), out
    )


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
        repeat = moving.make_reader(runtime, params, whole, (0, 1), out)
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
    """Return the launch that copies the rows at the indices from each block of x.

    ``named``: the axes of a block that an index names. ``sizes``: how many blocks there are,
    how many sets of indices for them, and how many indices are in each set.
    """
    blocks, sets, reads = sizes
    inner = out.size // (blocks * reads)
    pieces = moving.cut_pieces(runtime, inner)
    items = blocks * reads * pieces.number
    ctype, depth = ctypes.moved(x.dtype), len(named)
    position_of = define_position_of(indices.dtype, depth, clamped=True)
    if blocks == 1:
        source_index = f"position_of(indices + row * {depth}, lengths)"
    else:
        source_index = (
            "row / reads * rows + position_of(indices + (row / reads / per_set * reads"
            f" + row % reads) * {depth}, lengths)"
        )
    if inner == 1:
        copy = "  const index_t row = i;\n  y[i] = x[SOURCE_ROW];"
    else:
        copy = f"""  {pieces.declare}
  global const {ctype} *restrict from = x + SOURCE_ROW * inner;
  global {ctype} *restrict to = y + row * inner;
  const index_t begin = piece * first, end = min(inner, begin + span);
  for (index_t k = begin; k < end; k += {"1" if runtime.is_cpu else "step"}) to[k] = from[k];"""
    per_set = max(blocks // max(sets, 1), 1)
    return calls.launch_sized(
        runtime,
        f"gather {ctype} by {indices.dtype}",
        [
            Array("x", ctype),
            Array("indices", ctypes.stored(indices.dtype)),
            Array("y", ctype, written=True),
        ],
        {"items": items, "inner": inner, **pieces.sizes}
        | {"reads": reads, "rows": shapes.size(named), "per_set": per_set},
        copy,
        index=layouts.index_dtype(out.size, x.size, indices.size, items),
        declarations=f"{position_of}\n#define SOURCE_ROW (index_t)({source_index})",
        constants=[pack_lengths(named)],
        heavy=pieces.heavy,
    )


@kernels.write(specs.ONE_HOT)
def one_hot(
    indices: TensorType,
    *,
    depth: int,
    on_value: Scalar,
    off_value: Scalar,
    backend: OpenedDevice,
    out: TensorType,
) -> Launch:
    """Compare the index with the position along the last axis."""
    ctype, stored = ctypes.moved(out.dtype), ctypes.stored(indices.dtype)
    values = [calls.make_element(value, out.dtype) for value in (on_value, off_value)]
    return calls.launch_sized(
        backend.runtime,
        f"OneHot {ctype} by {indices.dtype}",
        [Array("indices", stored), Array("y", ctype, written=True)],
        {"items": out.size, "depth": depth},
        f"""  const {stored} hot = indices[i / depth];
  y[i] = hot >= 0 && (ulong)hot == (ulong)(i % depth) ? on : off;""",
        index=layouts.index_dtype(out.size),
        constants=[(ctype, "on", values[0]), (ctype, "off", values[1])],
    )
