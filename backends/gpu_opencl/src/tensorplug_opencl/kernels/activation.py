"""Activation functions: expressions, and softmax over rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.ops.activation import LOG_SOFTMAX, RELU, SIGMOID, SOFTMAX
from tensorplug.tables import KernelTable
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import calls, ctypes, pointwise, reduction, rows, templates
from tensorplug_opencl.kernels.pointwise import Formula

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dtypes import DType
    from tensorplug.spec import KernelSpec, TensorType
    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer

    Call = Callable[..., DeviceBuffer]

kernels = KernelTable()

EXPRESSIONS: Final[dict[KernelSpec, Formula]] = {
    RELU: Formula("x > 0 || x != x ? x : 0"),
    SIGMOID: Formula("logistic(x)"),
}
pointwise.register(kernels, EXPRESSIONS)

# What becomes of one element, given the largest of its row and `rest`, the sum of the others'
# exponentials: without that first term, whose exponential is 1, the logarithm keeps its digits.
_SOFTMAX: Final = "shifted_exp((A)x[at], best) / (1 + rest)"
_LOG_SOFTMAX: Final = "((A)x[at] - best) - log1p(rest)"

# exp(x - best), where what the subtraction rounds off (Knuth's error-free difference) would be
# multiplied by its size: e**(d + low) is e**d (1 + low).
_SHIFTED_EXP: Final = """
A shifted_exp(A x, A best) {
  const A d = x - best;
  const A z = d - x;
  const A low = (x - (d - z)) - (best + z);
  const A e = exp(d);
  return isfinite(low) ? e + e * low : e;
}"""


@kernels.prepare(SOFTMAX)
def softmax(logits: TensorType, *, dim: int, backend: OpenCLBackend, out: TensorType) -> Call:
    """Exponentials of the distances from the largest, divided by their sum."""
    return _over_rows("Softmax", _SOFTMAX, logits, dim, backend, out)


@kernels.prepare(LOG_SOFTMAX)
def log_softmax(logits: TensorType, *, axis: int, backend: OpenCLBackend, out: TensorType) -> Call:
    """Distances from the largest, minus the logarithm of the sum of their exponentials."""
    return _over_rows("LogSoftmax", _LOG_SOFTMAX, logits, axis, backend, out)


def _over_rows(
    title: str,
    expression: str,
    x: TensorType,
    axis: int,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Return the kernel with one work-item per row: largest, sum, then every element."""
    runtime = backend.runtime
    if not out.size:
        return calls.empty(runtime, out)
    over = rows.walk(x.shape, (axis,))
    index = layouts.index_dtype(x.size)
    text = _source(f"{title} {x.dtype}", expression, x.dtype, over.kept.rank, index)
    step = layouts.row_major(x.shape)[axis]
    constants = [index.type(n) for n in (over.outputs, over.length, step)]
    struct = layouts.packed([over.kept], index)
    packed = [] if struct is None else [struct]
    launch = runtime.launch(text, 2, [*constants, *packed], over.outputs, heavy=True)
    return calls.producer(runtime, out, launch)


def _source(title: str, expression: str, dtype: DType, rank: int, index: templates.Index) -> str:
    fold = reduction.sum_fold(dtype)
    body = f"""  const index_t i = get_global_id(0);
  if (i >= rows) return;
  const index_t start = {"kept_place(i, layout)" if rank else "0"};
  const index_t end = start + length * step;
  A best = (A)x[start];
  index_t best_at = start;
  for (index_t at = start; at < end; at += step) {{
    const A v = (A)x[at];
    if (v > best || v != v) {{ best = v; best_at = at; }}
  }}
  {fold.state}
  for (index_t at = start; at < end; at += step) {{
    if (at == best_at) continue;
    const A v = shifted_exp((A)x[at], best);
    {fold.step}
  }}
  const A rest = {fold.result} + (best - best);  // NaN for a NaN or an infinity
  for (index_t at = start; at < end; at += step)
    y[at] = ({ctypes.stored(dtype)})({expression});"""
    struct = templates.layout_struct([("size", rank), ("by", rank)])
    place = templates.place("kept_place", rank, "size", "by") if rank else ""
    return templates.program(
        title,
        [
            templates.Array("x", ctypes.stored(dtype)),
            templates.Array("y", ctypes.stored(dtype), written=True),
        ],
        templates.indices("rows", "length", "step", layout=rank > 0),
        body,
        index=index,
        declarations=f"typedef {fold.element} A;{_SHIFTED_EXP}\n{struct}\n{place}",
    )
