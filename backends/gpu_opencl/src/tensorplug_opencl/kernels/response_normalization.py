"""Local response normalization: divide each channel by the squares around it.

As forms, on 2^20 elements of 16 channels, it takes 7 to 12 times as long: their loops lie along
the neighbours, of which there are five.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import TensorType, specs
from tensorplug_opencl.codegen import calls, ctypes, folds, layouts
from tensorplug_opencl.codegen.templates import Array

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Write
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch

kernels = calls.Kernels()

# Of each channel: the sum of `term` over the existing channels j within the radius.
_WINDOW: Final = """  const index_t own = i % channels, row = i - own;
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
    dtype, channels = x.dtype, x.shape[-1]
    fold = folds.sum_fold(dtype)
    host = ctypes.host(fold.element)
    radius = min(attributes["depth_radius"], channels - 1)
    return calls.launch_sized(
        backend.runtime,
        f"{title} {dtype}",
        arrays,
        {"items": x.size, "channels": channels, "radius": radius},
        _WINDOW.format(
            state=fold.state, step=fold.step, result=fold.result, term=term, value=value
        ),
        index=layouts.index_dtype(x.size + radius),
        declarations=f"typedef {fold.element} A;",
        constants=[
            (fold.element, name, calls.make_element(value, dtype.compute).astype(host)[()])
            for name, value in attributes.items()
            if name != "depth_radius"
        ],
    )


@kernels.write(specs.LRN)
def lrn(
    x: TensorType, *, attributes: dict[str, Any], backend: OpenedDevice, out: TensorType
) -> Launch:
    """Add the squares of neighbours, raise to a power, multiply."""
    stored = ctypes.stored(x.dtype)
    arrays = (Array("x", stored), Array("y", stored, written=True))
    value = f"({stored})((A)x[i] * pow({_NORM}, -beta))"
    return _launch(backend, "LRN", x, arrays, "(A)x[j] * (A)x[j]", value, attributes)


@kernels.write(specs.LRN_GRAD)
def lrn_grad(
    x: TensorType,
    y: TensorType,
    dy: TensorType,
    *,
    attributes: dict[str, Any],
    backend: OpenedDevice,
    out: TensorType,
) -> Write:
    """Scale dy, and subtract each channel's effect on the norms of its neighbours."""
    stored, element = ctypes.stored(x.dtype), ctypes.computed(x.dtype)
    make_norms = backend.runtime.prepare_empty(TensorType(x.dtype.compute, x.shape))
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

    return write
