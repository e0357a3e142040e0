"""Reductions along axes: a fold per kernel and kind of dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.ops.reduction import ALL, ANY, ARG_MAX, MAX, MEAN, MIN, PROD, SUM
from tensorplug.tables import KernelTable
from tensorplug_opencl.kernels import calls, ctypes, ranking, rows
from tensorplug_opencl.kernels.rows import Fold

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dtypes import DType
    from tensorplug.spec import KernelSpec, TensorType
    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer

    Call = Callable[..., DeviceBuffer]

kernels = KernelTable()

# Knuth's error-free sum: `low` gathers what every addition rounds off, so that the error of a
# walk of any length is about one rounding. Blocks of eight are added as a tree before that.
# An overflow or an infinity turns `low` into NaN, and then `sum` alone is the answer.
_TWO_SUM: Final = (
    "{ const A t = sum + v; const A z = t - sum; low += (sum - (t - z)) + (v - z); sum = t; }"
)
_CLOSED: Final = "(isfinite(low) ? sum + low : sum)"


def sum_fold(dtype: DType) -> Fold:
    """Return the fold that adds up, in a dtype in which sums are stored."""
    if dtype.kind != "float":
        return Fold(ctypes.ring(dtype), "A sum = 0;", "sum += v;", "sum")
    return Fold(ctypes.ring(dtype), "A sum = 0, low = 0;", _TWO_SUM, _CLOSED, _TWO_SUM)


def product_fold(dtype: DType) -> Fold:
    """Return the fold that multiplies, in a dtype in which products are stored."""
    return Fold(ctypes.ring(dtype), "A product = 1;", "product *= v;", "product")


def max_fold(dtype: DType) -> Fold:
    """Return the fold that keeps the largest element, or a NaN."""
    step = "best = v > best || v != v ? v : best;"
    return Fold(ctypes.computed(dtype), f"A best = {lowest(dtype)};", step, "best")


def min_fold(dtype: DType) -> Fold:
    """Return the fold that keeps the smallest element, or a NaN."""
    step = "best = v < best || v != v ? v : best;"
    return Fold(ctypes.computed(dtype), f"A best = {highest(dtype)};", step, "best")


def any_fold(_dtype: DType) -> Fold:
    """Return the fold that is 1 where any element is not 0."""
    return Fold("uchar", "A any_of = 0;", "any_of |= v != 0;", "any_of")


def all_fold(_dtype: DType) -> Fold:
    """Return the fold that is 1 where no element is 0."""
    return Fold("uchar", "A all_of = 1;", "all_of &= v != 0;", "all_of")


def lowest(dtype: DType) -> str:
    """Return the C constant that no element of ``dtype`` lies below."""
    if dtype.kind == "float":
        return "-INFINITY"
    if dtype.kind in ("bool", "unsigned"):
        return "0"
    return f"{ctypes.LIMITS[dtype]}_MIN"


def highest(dtype: DType) -> str:
    """Return the C constant that no element of ``dtype`` lies above."""
    if dtype.kind == "float":
        return "INFINITY"
    return "1" if dtype.kind == "bool" else f"{ctypes.LIMITS[dtype]}_MAX"


def _prepared(
    spec: KernelSpec,
    fold: Callable[[DType], Fold],
    x: TensorType,
    axes: tuple[int, ...],
    backend: OpenCLBackend,
    out: TensorType,
    last: Fold | None = None,
) -> Call:
    if not out.size:
        return calls.empty(backend.runtime, out)
    over = rows.walk(x.shape, axes)
    return rows.reducer(backend.runtime, spec.name, over, x.dtype, out, fold(out.dtype), last=last)


def _along_axis(spec: KernelSpec, fold: Callable[[DType], Fold]) -> None:
    def prepare(
        x: TensorType, *, axis: tuple[int, ...], backend: OpenCLBackend, out: TensorType
    ) -> Call:
        return _prepared(spec, fold, x, axis, backend, out)

    kernels.prepare(spec)(prepare)


for _spec, _fold in {
    SUM: sum_fold,
    PROD: product_fold,
    MIN: min_fold,
    ANY: any_fold,
    ALL: all_fold,
}.items():
    _along_axis(_spec, _fold)


@kernels.prepare(MAX)
def max_(
    x: TensorType,
    *,
    reduction_indices: tuple[int, ...],
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Return the largest element, under the attribute name that this one kernel has."""
    return _prepared(MAX, max_fold, x, reduction_indices, backend, out)


@kernels.prepare(MEAN)
def mean(x: TensorType, *, axis: tuple[int, ...], backend: OpenCLBackend, out: TensorType) -> Call:
    """Return the sum divided once, by the number of elements."""
    fold = sum_fold(out.dtype)
    divided = fold._replace(result=f"{fold.result} / (A)total")
    return _prepared(MEAN, sum_fold, x, axis, backend, out, divided)


@kernels.prepare(ARG_MAX)
def arg_max(x: TensorType, *, axis: int, backend: OpenCLBackend, out: TensorType) -> Call:
    """Return the index of the first largest element."""
    if not out.size:
        return calls.empty(backend.runtime, out)
    return ranking.arg_max(backend.runtime, rows.walk(x.shape, (axis,)), x.dtype, out)
