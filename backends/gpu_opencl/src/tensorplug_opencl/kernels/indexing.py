"""Reading and writing at indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug import dtypes as dt
from tensorplug import shapes
from tensorplug.ops.indexing import GATHER_V2, ONE_HOT, SCATTER_ND, scatter_depth
from tensorplug.spec import TensorType
from tensorplug.tables import KernelTable
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import calls, ctypes, ranking, reduction, templates

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dtypes import Scalar
    from tensorplug.shapes import Shape
    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch

    Call = Callable[..., DeviceBuffer]

kernels = KernelTable()


@kernels.prepare(GATHER_V2)
def gather_v2(
    x: TensorType,
    indices: TensorType,
    *,
    axis: int,
    batch_dims: int,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Read [batch, outer, length, inner] at [batch, wanted]; out is [batch, outer, wanted, inner].

    Negative indices count from the end. A device cannot raise: an index that is out of range
    is clamped, so that nothing outside of x is read.
    """
    if not out.size:
        return calls.empty(backend.runtime, out)
    outer = shapes.size(x.shape[batch_dims:axis])
    length, inner = x.shape[axis], shapes.size(x.shape[axis + 1 :])
    wanted = shapes.size(indices.shape[batch_dims:])
    index = layouts.index_dtype(out.size, x.size, indices.size)
    ctype = ctypes.moved(x.dtype)
    text = templates.program(
        f"GatherV2 {ctype} by {indices.dtype}",
        [
            templates.Array("x", ctype),
            templates.Array("indices", ctypes.stored(indices.dtype)),
            templates.Array("y", ctype, written=True),
        ],
        templates.indices("items", "outer", "length", "wanted", "inner"),
        f"""  const index_t i = get_global_id(0);
  if (i >= items) return;
  const index_t row = i / inner / wanted;
  const index_t which = row / outer * wanted + i / inner % wanted;
  {_POSITION[indices.dtype.kind].format(given="indices[which]", length="length")}
  const index_t at = clamp(position, (long)0, (long)length - 1);
  y[i] = x[(row * length + at) * inner + i % inner];""",
        index=index,
    )
    constants = map(index.type, (out.size, outer, length, wanted, inner))
    launch = backend.runtime.launch(text, 3, [*constants], out.size)
    return calls.producer(backend.runtime, out, launch)


# An index as a long, counted from the front; unsigned ones beyond a long's range stay too large.
_POSITION = {
    "signed": "long position = {given}; if (position < 0) position += {length};",
    "unsigned": "const long position = min((ulong){given}, (ulong)LONG_MAX);",
}


@kernels.prepare(ONE_HOT)
def one_hot(
    indices: TensorType,
    *,
    depth: int,
    on_value: Scalar,
    off_value: Scalar,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Compare the index with the place along the last axis."""
    if not out.size:
        return calls.empty(backend.runtime, out)
    index = layouts.index_dtype(out.size)
    ctype = ctypes.moved(out.dtype)
    text = templates.program(
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
    values = (calls.element(value, out.dtype) for value in (on_value, off_value))
    constants = [index.type(out.size), index.type(depth), *values]
    launch = backend.runtime.launch(text, 2, constants, out.size)
    return calls.producer(backend.runtime, out, launch)


@kernels.prepare(SCATTER_ND)
def scatter_nd(
    indices: TensorType,
    updates: TensorType,
    *,
    shape: Shape,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Add updates at their places, duplicates in the order in which they are given.

    Atomics would add floats in whatever order the hardware takes. Instead the updates' targets
    are sorted, and one work-item for each run of equal targets (and each element of a slice)
    adds them up: the result is the same every time, in every dtype. Negative indices count
    from the end; updates out of range are dropped.
    """
    runtime = backend.runtime
    if not updates.size:
        return calls.constant(runtime, out)
    zero = calls.element(0, out.dtype)
    depth = scatter_depth(indices.shape, updates.shape, shape)
    count = indices.size // depth if depth else shapes.size(indices.shape[:-1])
    make_targets = runtime.maker(TensorType(dt.int64, (count,)))
    find = _target_finder(backend, indices, shape[:depth], count)
    sort = ranking.sorter(runtime, dt.int64, 1, count, ranking.ASCENDING)
    add = _run_adder(backend, updates, count, out)

    def write(indices: DeviceBuffer, updates: DeviceBuffer, result: DeviceBuffer) -> None:
        targets = make_targets()
        runtime.fill(result, zero)
        find(indices, targets)
        add(updates, targets, sort(targets), result)

    return calls.producer(runtime, out, write)


def _target_finder(
    backend: OpenCLBackend, indices: TensorType, shape: Shape, count: int
) -> Callable[[DeviceBuffer, DeviceBuffer], None]:
    """Return the launch giving each update's slice of the output; -1 for out of range.

    ``shape``: of the axes that an index names.
    """
    depth = len(shape)
    if depth == 0:  # every update goes to the one slice there is

        def zeros(_indices: DeviceBuffer, targets: DeviceBuffer) -> None:
            backend.runtime.fill(targets, calls.element(0, dt.int64))

        return zeros
    index = layouts.index_dtype(indices.size, count)
    position = _POSITION[indices.dtype.kind].format(
        given="indices[i * DEPTH + axis]", length="layout.size[axis]"
    )
    text = templates.program(
        f"ScatterNd targets by {indices.dtype} of depth {depth}",
        [
            templates.Array("indices", ctypes.stored(indices.dtype)),
            templates.Array("targets", "long", written=True),
        ],
        ["const index_t items", "const Layout layout"],
        f"""  const index_t i = get_global_id(0);
  if (i >= items) return;
  long target = 0;
  for (int axis = 0; axis < DEPTH; axis++) {{
    {position}
    const int fits = position >= 0 && position < layout.size[axis];
    target = fits && target >= 0 ? target * layout.size[axis] + position : -1;
  }}
  targets[i] = target;""",
        index=index,
        declarations=(f"#define DEPTH {depth}\ntypedef struct {{ long size[DEPTH]; }} Layout;"),
    )
    sizes = np.array(shape, dtype=np.int64)
    return backend.runtime.launch(text, 2, [index.type(count), sizes], count)


def _run_adder(backend: OpenCLBackend, updates: TensorType, count: int, out: TensorType) -> Launch:
    """Return the launch that adds up each run of equal targets in sorted order."""
    inner = updates.size // count
    index = layouts.index_dtype(updates.size, out.size)
    fold = reduction.sum_fold(out.dtype)
    stored = ctypes.stored(out.dtype)
    text = templates.program(
        f"ScatterNd {out.dtype}",
        [
            templates.Array("updates", stored),
            templates.Array("targets", "long"),
            templates.Array("order", "int"),
            templates.Array("y", stored, written=True),
        ],
        templates.indices("items", "count", "inner"),
        f"""  const index_t i = get_global_id(0);
  if (i >= items) return;
  const index_t first = i / inner, element = i % inner;
  const long target = targets[order[first]];
  if (target < 0 || (first > 0 && targets[order[first - 1]] == target)) return;
  {fold.state}
  for (index_t at = first; at < count && targets[order[at]] == target; at++) {{
    const A v = (A)updates[(index_t)order[at] * inner + element];
    {fold.step}
  }}
  y[(index_t)target * inner + element] = ({stored})({fold.result});""",
        index=index,
        declarations=f"typedef {fold.element} A;",
    )
    constants = map(index.type, (updates.size, count, inner))
    return backend.runtime.launch(text, 4, [*constants], updates.size)
