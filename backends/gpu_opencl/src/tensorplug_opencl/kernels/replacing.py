"""Writing at indices, where the last of multiple updates replaces the old elements.

The number of the last update is found for each row first: by an atomic maximum, so that it does
not depend on the order in which work-items run. Then each row is copied once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, ctypes, layouts, templates
from tensorplug_opencl.kernels import indexing
from tensorplug_opencl.kernels.scattering import Targets, check_number
from tensorplug_opencl.movement import moving

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch, Runtime

kernels = KernelTable()


@kernels.prepare(specs.TENSOR_SCATTER_UPDATE)
def tensor_scatter_update(
    tensor: TensorType,
    indices: TensorType,
    updates: TensorType,
    *,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Find the last update of each row, then take each row from there or from the tensor."""
    if not updates.size:
        return lambda tensor, _indices, _updates: tensor
    runtime, targets = backend.runtime, Targets.of(indices, updates, tensor.shape)
    steps = (targets.inner, targets.inner)
    replace = _make_replacer(runtime, targets, steps, out)

    def write(
        tensor: DeviceBuffer, indices: DeviceBuffer, updates: DeviceBuffer, result: DeviceBuffer
    ) -> None:
        replace(tensor, indices, updates, result)

    return calls.make_producer(runtime, out, write)


@kernels.prepare(specs.SPARSE_TO_DENSE)
def sparse_to_dense(
    sparse_indices: TensorType,
    sparse_values: TensorType,
    default_value: TensorType | None,
    *,
    output_shape: Shape,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Find the last value of each element, then take it or the default."""
    runtime = backend.runtime
    if not out.size:
        return calls.make_empty(runtime, out)
    count = check_number(sparse_indices.shape[0] if sparse_indices.rank else 1)
    targets = Targets(sparse_indices, output_shape, count, 1)
    replace = _make_replacer(runtime, targets, (0, min(sparse_values.rank, 1)), out)
    zero = runtime.upload_table(np.zeros(1, out.dtype.numpy))

    def write(
        indices: DeviceBuffer,
        values: DeviceBuffer,
        default: DeviceBuffer | None,
        result: DeviceBuffer,
    ) -> None:
        replace(zero if default is None else default, indices, values, result)

    return calls.make_producer(runtime, out, write)


def _make_replacer(
    runtime: Runtime, targets: Targets, steps: tuple[int, int], out: TensorType
) -> Callable[[DeviceBuffer, DeviceBuffer, DeviceBuffer, DeviceBuffer], None]:
    """Return a callable that writes (old, indices, updates, result).

    ``steps``: the distances between rows of the old elements, and between updates.
    """
    make_last = runtime.prepare_empty(TensorType(dt.int32, (targets.rows,)))
    none = calls.make_element(-1, dt.int32)
    find = _launch_find_last(runtime, targets) if targets.number else None
    choose = _launch_choose(runtime, targets, steps, out)

    def replace(
        old: DeviceBuffer, indices: DeviceBuffer, updates: DeviceBuffer, result: DeviceBuffer
    ) -> None:
        last = make_last()
        runtime.fill(last, none)
        if find is not None:
            find(indices, last)
        choose(old, last, updates, result)

    return replace


def _launch_find_last(runtime: Runtime, targets: Targets) -> Launch:
    """Return the launch giving the number of the last update of each row."""
    index = layouts.index_dtype(targets.indices.size, targets.rows)
    text = templates.write_program(
        f"find the last by {targets.indices.dtype}",
        [targets.array, templates.Array("last", "int", written=True)],
        [*templates.declare_indices("items"), "const Lengths lengths"],
        f"""  const index_t i = get_global_id(0);
  if (i >= items) return;
  const long row = {targets.row("i")};
  if (row >= 0) atomic_max(last + (index_t)row, (int)i);""",
        index=index,
        declarations=targets.function,
    )
    constants = [index.type(targets.number), indexing.pack_lengths(targets.named)]
    return runtime.launch(text, 2, constants, targets.number)


def _launch_choose(
    runtime: Runtime, targets: Targets, steps: tuple[int, int], out: TensorType
) -> Launch:
    """Return the launch that copies each row from its last update, or else from the old ones."""
    pieces = moving.cut_pieces(runtime, targets.inner)
    items = targets.rows * pieces.number
    reach = targets.number * targets.inner
    index, ctype = layouts.index_dtype(out.size, reach, items), ctypes.moved(out.dtype)
    text = templates.write_program(
        f"choose rows of {ctype}",
        [
            templates.Array("x", ctype),
            templates.Array("last", "int"),
            templates.Array("updates", ctype),
            templates.Array("y", ctype, written=True),
        ],
        templates.declare_indices(
            *("items", "inner", "pieces", "first", "span", "step", "x_by", "update_by")
        ),
        f"""  const index_t i = get_global_id(0);
  if (i >= items) return;
  {pieces.place}
  const int update = last[row];
  global const {ctype} *restrict from =
    update < 0 ? x + row * x_by : updates + (index_t)update * update_by;
  global {ctype} *restrict to = y + row * inner;
  const index_t begin = piece * first, end = min(inner, begin + span);
  for (index_t k = begin; k < end; k += {"1" if runtime.is_cpu else "step"}) to[k] = from[k];""",
        index=index,
    )
    numbers: tuple[Any, ...] = (items, targets.inner, *pieces, *steps)
    constants = [*map(index.type, numbers)]
    return runtime.launch(text, 4, constants, items, heavy=pieces.heavy)
