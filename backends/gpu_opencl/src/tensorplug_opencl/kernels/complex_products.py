"""Products of complex numbers: along axes, and of matrices."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import KernelRefusedError, KernelTable, TensorType, specs
from tensorplug_loops.forms.matrix_products import product
from tensorplug_loops.forms.table import Operand
from tensorplug_loops.templates import sized
from tensorplug_opencl import pairs
from tensorplug_opencl.codegen import calls, complex_functions, layouts, templates
from tensorplug_opencl.groups import loops
from tensorplug_opencl.movement import moving
from tensorplug_opencl.reductions import rows

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.reductions.rows import Walk
    from tensorplug_opencl.runtime import Launch, Runtime

complex_kernels = KernelTable()

SHORTEST_PART: Final = 256  # elements that are worth another work-item


@complex_kernels.prepare(specs.PROD)
def prod(x: TensorType, *, axis: tuple[int, ...], backend: OpenedDevice, out: TensorType) -> Call:
    """Multiply along walks; long ones are cut into parts, whose products are multiplied again."""
    runtime = backend.runtime
    if not out.size:
        return calls.make_empty(runtime, out)
    walk = rows.make_walk(x.shape, axis)
    idle = max(1, runtime.parallel_items // walk.outputs)
    parts = max(1, min(idle, walk.length // SHORTEST_PART))
    if parts == 1:
        return calls.make_producer(runtime, out, _launch_product(runtime, walk, 1, out))
    between = TensorType(out.dtype, (walk.outputs, parts))
    first = calls.make_producer(runtime, between, _launch_product(runtime, walk, parts, out))
    rest = prod(between, axis=(1,), backend=backend, out=out)
    return lambda x: rest(first(x))


def _launch_product(runtime: Runtime, walk: Walk, parts: int, out: TensorType) -> Launch:
    """Return the launch that multiplies each part of each walk."""
    ctype, span = complex_functions.pair_type(out.dtype), -(-walk.length // parts)
    return rows.launch_walk(
        runtime,
        walk,
        f"Prod {out.dtype}",
        [templates.Array("x", ctype), templates.Array("y", ctype, written=True)],
        {"items": walk.outputs * parts, "parts": parts, "length": walk.length, "span": span},
        f"""  x += {walk.row("i / parts")};
  const index_t first = i % parts * span;
  const index_t end = min(length, first + span);
  A product = (A)(1, 0);
  for (index_t r = first; r < end; r++) product = times(product, x[{walk.element("r")}]);
  y[i] = product;""",
        [complex_functions.define("times(x)", out.dtype)],
        span,
    )


@complex_kernels.prepare(specs.BATCH_MAT_MUL)
def batch_mat_mul(
    a: TensorType,
    b: TensorType,
    *,
    transpose_a: bool,
    transpose_b: bool,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Multiply real matrices: A as it lies in memory, with twice the columns, by a wider B.

    Row p of B becomes two: its numbers as pairs (re, im), then times i, (-im, re). So each complex
    product takes only the four real ones that it needs, and only B is copied.
    """
    runtime = backend.runtime
    rows_, inner = a.shape[-2:][:: -1 if transpose_a else 1]
    columns = out.shape[-1]
    if not out.size or not inner:
        return calls.make_zeros(runtime, out)
    turn = _transpose(runtime, a) if transpose_a else None
    part = pairs.pair_type(out).dtype
    wide_a = TensorType(part, (*a.shape[:-2], rows_, 2 * inner))
    wide_b = TensorType(part, (*b.shape[:-2], 2 * inner, 2 * columns))
    wide_out = TensorType(part, (*out.shape[:-1], 2 * columns))
    widen = calls.make_producer(
        runtime, wide_b, _launch_widening(runtime, b, inner, columns, turned=transpose_b)
    )
    form = product(Operand(wide_a, 0), Operand(wide_b, 1), wide_out)
    group = replace(form.group, name="real matrices")
    multiply = loops.compile_group(sized(group), runtime)
    if multiply is None:
        raise KernelRefusedError(f"products of {part} are declined")

    def run(a: DeviceBuffer, b: DeviceBuffer) -> DeviceBuffer:
        first = pairs.as_pairs(a if turn is None else turn(a)).view(wide_a.shape)
        (result,) = multiply(first, widen(b))
        return result.reinterpret(out.dtype, out.shape)

    return run


def _transpose(runtime: Runtime, a: TensorType) -> Call:
    """Return a callable that transposes the matrices of ``a``."""
    strides = layouts.row_major(a.shape)
    shape = (*a.shape[:-2], a.shape[-1], a.shape[-2])
    steps = (*strides[:-2], strides[-1], strides[-2])
    target = layouts.row_major(shape)
    copy = moving.make_mover(runtime, a.dtype, shape, steps, target, a.size)
    return calls.make_producer(runtime, TensorType(a.dtype, shape), copy)


def _launch_widening(
    runtime: Runtime, b: TensorType, inner: int, columns: int, *, turned: bool
) -> Launch:
    """Return the launch that writes each number of ``b`` as the pairs (re, im) and (-im, re)."""
    ctype = complex_functions.pair_type(b.dtype)
    index = layouts.index_dtype(2 * b.size)
    return calls.launch_sized(
        runtime,
        f"{'columns' if turned else 'rows'} of {b.dtype} as real matrices",
        [templates.Array("b", ctype), templates.Array("wide", ctype, written=True)],
        {"items": b.size, "inner": inner, "columns": columns},
        f"""  const index_t column = i % columns, row = i / columns % inner;
  const index_t matrix = i / columns / inner;
  const {ctype} z = b[matrix * inner * columns
                      + {"column * inner + row" if turned else "row * columns + column"}];
  const index_t at = (matrix * inner + row) * 2 * columns + column;
  wide[at] = z;
  wide[at + columns] = ({ctype})(-z.y, z.x);""",
        index=index,
    )
