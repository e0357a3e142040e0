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
from tensorplug_cpu.jit.families.pooling import first_equal, window_values
from tensorplug_cpu.jit.forms import formed
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.windows.separable import counts, covered, few, images, joined, overlap, spread
from tensorplug_cpu.windows.sliding import columns, extent, padded, unpadded

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
    work = working(out.dtype)
    native = window_values(windows, x.shape[0], x.shape[-1], work, kind, back=back)
    if native is None:
        return None
    narrow = out.dtype.numpy
    if work == narrow:
        return native
    return lambda x: native(x.astype(work, copy=False)).astype(narrow, copy=False)


def _outside(dtype: DType) -> Any:
    """Return a value that never exceeds an element."""
    return -np.inf if dtype in dt.FLOATING else dtype.min


def _under(x: Array, at: Windows, axis: int, outside: Any) -> Array:
    """Return a view of windows: batch, positions, taps, channels, which were at ``axis``."""
    return columns(padded(np.moveaxis(x, axis, -1), at, outside), at)


def _by_numpy(kind: str, at: Windows, out: TensorType, axis: int) -> Call:
    taps = tuple(range(len(at) + 1, 2 * len(at) + 1))
    narrow, wide = out.dtype.numpy, accumulating(out.dtype)
    if kind == "largest":
        lowest = _outside(out.dtype)

        def largest(x: Array) -> Array:
            most = _under(x, at, axis, lowest).max(axis=taps)
            return np.asarray(np.moveaxis(most, -1, axis))

        return largest
    number = _counted(at, wide)

    def average(x: Array) -> Array:
        total = _under(x, at, axis, 0).sum(axis=taps, dtype=wide) / number
        return np.asarray(np.moveaxis(total, -1, axis).astype(narrow, copy=False))

    return average


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


def _to_largest(x: TensorType, at: Windows, axis: int) -> Call:
    """Add dy to the first element of each window that equals its largest, by their numbers."""
    batch, channels = x.shape[0], x.shape[axis]
    whole = (batch, *map(extent, at), channels)
    lowest, narrow, taps = _outside(x.dtype), x.dtype.numpy, len(at)

    def flat(view: Array) -> Array:
        """Return windows with their taps as the last axis."""
        return np.moveaxis(view, -1, taps + 1).reshape(*view.shape[: taps + 1], channels, -1)

    inside = np.zeros(whole, bool)
    unpadded(inside, at)[...] = True
    real, numbers = flat(columns(inside, at)), np.arange(inside.size).reshape(whole)
    elements = flat(columns(numbers, at))

    def run(dy: Array, x: Array, output: Array) -> Array:
        values = flat(_under(x, at, axis, lowest))
        best = np.moveaxis(output, axis, -1)[..., None]
        wins = ((values == best) | (np.isnan(values) & np.isnan(best))) & real
        chosen = np.take_along_axis(elements, wins.argmax(-1)[..., None], -1)
        given = np.where(wins.any(-1), np.moveaxis(dy, axis, -1), 0)
        result = np.zeros(inside.size, narrow)
        np.add.at(result, chosen.reshape(-1), given.reshape(-1))
        return np.moveaxis(unpadded(result.reshape(whole), at), -1, axis)

    return run


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
        native: Call | None = None
        if form.endswith("C"):
            native = first_equal(
                at,
                out.shape[0],
                out.shape[-1],
                out.dtype.numpy,
                adding=any(map(overlap, at)),
                covered=covered(at),
            )
        if native is None:
            asked = {"attributes": attributes, "backend": backend, "out": out}
            try:
                native = formed(spec)(dy, input, output, **asked)
            except KernelRefusedError:
                native = _to_largest(input, at, form.index("C"))
        return without_warnings(native)


for _spec in (specs.MAX_POOL_GRAD, specs.MAX_POOL_3D_GRAD):
    _register_gradient(_spec)
