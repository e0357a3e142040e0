"""Pooling: native loops over windows, the forms of the library, or NumPy for few elements.

The loops of ``jit.families.pooling`` have no checks in the middle of an image, and reach each
element in one visit; the forms took 1.1 to 6 times as long on windows that overlap, and 0.4 to 1.1
times on others. For gradients it was 2 to 7 times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.algorithms import dilated_pooling_windows, pooling_windows
from tensorplug.plugin import (
    DType,
    KernelRefusedError,
    KernelSpec,
    TensorType,
    Windows,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import UNROUNDED, accumulating, working
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.jit.families.pooling import FirstEqual, WindowValues, suits
from tensorplug_cpu.jit.forms import formed
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.windows.separable import counts, covered, few, images, joined, overlap, spread
from tensorplug_cpu.windows.sliding import inside

if TYPE_CHECKING:
    from tensorplug.plugin import Backend
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

Attributes = dict[str, Any]


def _form(attributes: Attributes) -> str:
    return str(attributes.get("data_format", "NHWC"))


def _values(
    kind: str, x: TensorType, windows: Windows, out: TensorType, form: str, *, back: bool = False
) -> Call | None:
    """Return native loops over windows, None where there are none for these."""
    if not out.size or not form.endswith("C") or x.dtype is not out.dtype:  # averages of integers
        return None
    work, narrow = working(out.dtype), out.dtype.numpy
    how = windows, x.shape[0], x.shape[-1], work, kind
    if not suits(*how):
        return None
    native = WindowValues(*how, back=back)
    if work == narrow:
        return native
    return lambda x: native(x.astype(work, copy=False)).astype(narrow, copy=False)


def _outside(dtype: DType) -> Any:
    """Return a value that never exceeds an element."""
    return -np.inf if dtype in dt.FLOATING else dtype.min


def _by_numpy(kind: str, at: Windows, out: TensorType, axis: int) -> Call:
    """Return a kernel that takes the elements under one tap of all windows at a time."""
    largest, narrow = kind == "largest", out.dtype.numpy
    wide = narrow if largest else accumulating(out.dtype)
    function: np.ufunc = np.maximum if largest else np.add
    first, steps = _outside(out.dtype) if largest else 0, list(inside(at))
    number = None if largest else _counted(at, wide)

    def run(x: Array) -> Array:
        images = np.moveaxis(x, axis, -1)
        result = np.full((len(x), *(window.out for window in at), images.shape[-1]), first, wide)
        for _, positions, elements in steps:
            part = result[positions]
            function(part, images[elements], out=part)
        if number is not None:
            result = (result / number).astype(narrow, copy=False)
        return np.asarray(np.moveaxis(result, -1, axis))

    return run


def _pooled(
    spec: KernelSpec,
    kind: str,
    x: TensorType,
    at: Windows,
    form: str,
    out: TensorType,
    **asked: Any,
) -> Call:
    """Return a kernel: by hand for windows that overlap, else by its form; or by NumPy."""
    if not out.size:
        return lambda _x: np.zeros(out.shape, out.dtype.numpy)
    native = _values(kind, x, at, out, form) if any(map(overlap, at)) else None
    if native is None:
        try:
            native = formed(spec)(x, out=out, **asked)
        except KernelRefusedError:
            native = _by_numpy(kind, at, out, form.index("C"))
    return without_warnings(native)


def _register(spec: KernelSpec, kind: str) -> None:
    @kernels.prepare(spec, because="faster")
    def prepare(
        x: TensorType, *, attributes: Attributes, backend: Backend, out: TensorType
    ) -> Call:
        at, form = pooling_windows(x.shape, **attributes), _form(attributes)
        asked = {"attributes": attributes, "backend": backend}
        return _pooled(spec, kind, x, at, form, out, **asked)


for _spec in (specs.MAX_POOL, specs.MAX_POOL_3D):
    _register(_spec, "largest")
for _spec in (specs.AVG_POOL, specs.AVG_POOL_3D):
    _register(_spec, "average")


@kernels.prepare(specs.POOL, because="faster")
def pool(
    input: TensorType,
    *,
    pooling_type: str,
    attributes: Attributes,
    backend: Backend,
    out: TensorType,
) -> Call:
    """Take the largest or the average."""
    at = dilated_pooling_windows(input.shape, **attributes)
    kind = "largest" if pooling_type == "max" else "average"
    asked = {"attributes": {"pooling_type": pooling_type, **attributes}, "backend": backend}
    return _pooled(specs.POOL, kind, input, at, "N" + "." * len(at) + "C", out, **asked)


def _counted(windows: Windows, dtype: np.dtype[Any]) -> Array:
    """Return how many elements the windows hold, for broadcasting."""
    number = np.ones((), np.float64)
    for at, window in enumerate(windows):
        rest = len(windows) - at
        number = number * counts(window).reshape(window.out, *(1,) * rest)
    return number.astype(dtype)


for _spec in (specs.AVG_POOL_GRAD, specs.AVG_POOL_3D_GRAD):

    @kernels.prepare(_spec, because="faster")
    def avg_pool_grad(
        dy: TensorType, input: TensorType, *, attributes: Attributes, out: TensorType
    ) -> Call:
        """Divide dy equally among the elements of a window: along one axis after the other."""
        at, form = pooling_windows(input.shape, **attributes), _form(attributes)
        narrow, work, axis = out.dtype.numpy, working(out.dtype), form.index("C")
        if not dy.size or not out.size:
            return lambda *_arrays: np.zeros(out.shape, narrow)
        number, channels = _counted(at, work), out.shape[axis]
        native = _values("sum", input, at, out, form, back=True)
        if native is not None:
            return without_warnings(lambda dy, _x: native(np.divide(dy, number, dtype=work)))
        apart = axis == 1 or few(channels)

        def run(dy: Array, _input: Array) -> Array:
            share = np.divide(images(dy, axis) if apart else dy, number, dtype=work)
            wide = spread(share, at).astype(narrow, copy=False)
            return joined(wide, channels, axis) if apart else wide

        return without_warnings(run)


def _register_gradient(spec: KernelSpec) -> None:
    @kernels.prepare(spec, because="faster", dtypes=UNROUNDED)
    def prepare(
        dy: TensorType,
        input: TensorType,
        output: TensorType,
        *,
        attributes: Attributes,
        backend: Backend,
        out: TensorType,
    ) -> Call:
        at, form = pooling_windows(input.shape, **attributes), _form(attributes)
        if not out.size or not dy.size:
            return lambda *_arrays: np.zeros(out.shape, out.dtype.numpy)
        how = at, out.shape[0], out.shape[-1], out.dtype.numpy
        native: Call
        if form.endswith("C") and suits(*how, "first"):
            native = FirstEqual(*how, adding=any(map(overlap, at)), covered=covered(at))
        else:  # the form, or the decomposition
            asked = {"attributes": attributes, "backend": backend, "out": out}
            native = formed(spec)(dy, input, output, **asked)
        return without_warnings(native)


for _spec in (specs.MAX_POOL_GRAD, specs.MAX_POOL_3D_GRAD):
    _register_gradient(_spec)
