"""Pooling: native loops over windows, or the forms of the library.

Few elements are left to decompositions. The loops of ``jit.families.pooling`` have no checks in
the middle of an image, and reach each element in one visit; the forms took 1.1 to 6 times as long
on windows that overlap, and 0.4 to 1.1 times on others. For gradients it was 2 to 7 times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.algorithms import dilated_pooling_windows, pooling_windows
from tensorplug.plugin import KernelSpec, TensorType, Windows, specs
from tensorplug_cpu.arrays import UNROUNDED, working
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.jit.families.pooling import first_equal, window_values
from tensorplug_cpu.jit.forms import formed
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.windows.separable import counts, covered, few, images, joined, overlap, spread

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
    if not out.size or not form.endswith("C"):
        return None
    work = working(out.dtype)
    native = window_values(windows, x.shape[0], x.shape[-1], work, kind, back=back)
    if native is None:
        return None
    narrow = out.dtype.numpy
    if work == narrow:
        return native
    return lambda x: native(x.astype(work, copy=False)).astype(narrow, copy=False)


def _register(spec: KernelSpec, kind: str) -> None:
    prepare_form = formed(spec)

    @kernels.prepare(spec, because="faster")
    def prepare(
        x: TensorType, *, attributes: Attributes, backend: Backend, out: TensorType
    ) -> Call:
        at, form = pooling_windows(x.shape, **attributes), _form(attributes)
        native = _values(kind, x, at, out, form) if any(map(overlap, at)) else None
        if native is not None:
            return without_warnings(native)
        return prepare_form(x, attributes=attributes, backend=backend, out=out)


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
    native = _values(kind, input, at, out, "N.C") if any(map(overlap, at)) else None
    if native is not None:
        return without_warnings(native)
    return formed(specs.POOL)(input, attributes=attributes, backend=backend, out=out)


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
    prepare_form = formed(spec)

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
        at = pooling_windows(input.shape, **attributes)
        if out.size and dy.size and _form(attributes).endswith("C"):
            native = first_equal(
                at,
                out.shape[0],
                out.shape[-1],
                out.dtype.numpy,
                adding=any(map(overlap, at)),
                covered=covered(at),
            )
            if native is not None:
                return without_warnings(native)
        types = dy, input, output
        return prepare_form(*types, attributes=attributes, backend=backend, out=out)


for _spec in (specs.MAX_POOL_GRAD, specs.MAX_POOL_3D_GRAD):
    _register_gradient(_spec)
