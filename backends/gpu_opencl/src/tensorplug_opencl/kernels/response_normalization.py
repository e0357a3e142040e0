"""Local response normalization: divide each channel by the squares around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import KernelTable, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, ctypes, folds, layouts, templates
from tensorplug_opencl.codegen.templates import Array

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch

kernels = KernelTable()

# Of each channel: the sum of `term` over the existing channels j within the radius.
_WINDOW: Final = """  const index_t i = get_global_id(0);
  if (i >= items) return;
  const index_t own = i % channels, row = i - own;
  const index_t low = own > radius ? own - radius : 0, high = min(channels, own + radius + 1);
  {state}
  for (index_t j = row + low; j < row + high; j++) {{ const A v = {term}; {step} }}
  const A window = {result};
  y[i] = {value};"""

_NORM: Final = "bias + alpha * window"


def _launch(
    backend: OpenedDevice,
    title: str,
    x: TensorType,
    arrays: tuple[Array, ...],
    term: str,
    value: str,
    attributes: dict[str, Any],
) -> Launch:
    """Return the launch over all elements of arrays like ``x``, the last of which it writes."""
    dtype = x.dtype
    fold = folds.sum_fold(dtype)
    radius = min(attributes["depth_radius"], x.shape[-1] - 1)
    names = ("bias", "alpha", "beta")
    index = layouts.index_dtype(x.size + radius)
    text = templates.write_program(
        f"{title} {dtype}",
        arrays,
        [
            *templates.declare_indices("items", "channels", "radius"),
            *(f"const {fold.element} {name}" for name in names),
        ],
        _WINDOW.format(
            state=fold.state, step=fold.step, result=fold.result, term=term, value=value
        ),
        index=index,
        declarations=f"typedef {fold.element} A;",
    )
    host = ctypes.host(fold.element)
    values = [
        calls.make_element(attributes[name], dtype.compute).astype(host)[()] for name in names
    ]
    constants = [*map(index.type, (x.size, x.shape[-1], radius)), *values]
    return backend.runtime.launch(text, len(arrays), constants, x.size)


@kernels.prepare(specs.LRN)
def lrn(
    x: TensorType,
    *,
    depth_radius: int,
    bias: dt.Scalar,
    alpha: dt.Scalar,
    beta: dt.Scalar,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Add the squares of neighbours, raise to a power, multiply."""
    if not out.size:
        return calls.make_empty(backend.runtime, out)
    attributes = {"depth_radius": depth_radius, "bias": bias, "alpha": alpha, "beta": beta}
    stored = ctypes.stored(x.dtype)
    arrays = (Array("x", stored), Array("y", stored, written=True))
    value = f"({stored})((A)x[i] * pow({_NORM}, -beta))"
    launch = _launch(backend, "LRN", x, arrays, "(A)x[j] * (A)x[j]", value, attributes)
    return calls.make_producer(backend.runtime, out, launch)


@kernels.prepare(specs.LRN_GRAD)
def lrn_grad(
    x: TensorType,
    y: TensorType,
    dy: TensorType,
    *,
    depth_radius: int,
    bias: dt.Scalar,
    alpha: dt.Scalar,
    beta: dt.Scalar,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Scale dy, and subtract each channel's effect on the norms of its neighbours."""
    runtime = backend.runtime
    if not out.size:
        return calls.make_empty(runtime, out)
    attributes = {"depth_radius": depth_radius, "bias": bias, "alpha": alpha, "beta": beta}
    stored, element = ctypes.stored(x.dtype), ctypes.computed(x.dtype)
    kept = x.dtype.compute
    make_norms = runtime.prepare_empty(TensorType(kept, x.shape))
    arrays = (Array("x", stored), Array("y", element, written=True))
    norms_of = _launch(backend, "LRN norms", x, arrays, "(A)x[j] * (A)x[j]", _NORM, attributes)
    term = "(A)z[j] * (A)dy[j] / norm[j]"
    value = f"({stored})((A)dy[i] * pow(norm[i], -beta) - 2 * alpha * beta * (A)x[i] * window)"
    reads = (Array("x", stored), Array("z", stored), Array("dy", stored), Array("norm", element))
    both = (*reads, Array("y", stored, written=True))
    combine = _launch(backend, "LRNGrad", x, both, term, value, attributes)

    def write(x: DeviceBuffer, y: DeviceBuffer, dy: DeviceBuffer, result: DeviceBuffer) -> None:
        norms = make_norms()
        norms_of(x, norms)
        combine(x, y, dy, norms, result)

    return calls.make_producer(runtime, out, write)
