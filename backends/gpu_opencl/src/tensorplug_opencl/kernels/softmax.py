"""Softmax, its logarithm, cross-entropy with it, and their gradients: recipes over rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import DType, KernelTable, TensorType, specs
from tensorplug_opencl.kernels import calls, ctypes, folds, rows
from tensorplug_opencl.kernels.rowwise import Pass, Read, Recipe

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer

    Call = Callable[..., DeviceBuffer]

kernels = KernelTable()

# e = exp(x - best). The exponential would multiply the subtraction's rounding error (Knuth's
# error-free difference) by its size: e**(d + low) is e**d (1 + low).
_SHIFTED: Final = (
    "const A d = x - best; const A z = d - x; const A low = (x - (d - z)) - (best + z); "
    "const A plain = exp(d); const A e = (low - low == 0) ? plain + plain * low : plain;"
)
# Elements equal to the largest have the exponential 1: these are counted, and the others added up.
# Without one of these 1, `rest` keeps the digits that the logarithm needs. It is NaN for a NaN or
# an infinity.
_REST: Final = "const A rest = (equals - 1) + others + (best - best);"


def _make_largest_pass(dtype: DType) -> Pass:
    return Pass({"best": folds.max_fold(dtype)}, ("x",), "const A best_v = x;", cheap=True)


def _make_exponentials_pass(dtype: DType) -> Pass:
    total = folds.sum_fold(dtype)
    statements = (
        f"{_SHIFTED} const A equals_v = x == best ? (A)(1) : (A)(0); "
        "const A others_v = x == best ? (A)(0) : e;"
    )
    return Pass({"equals": total, "others": total}, ("x",), statements, _REST)


def _map_rows(
    backend: OpenCLBackend, recipe: Recipe, x: TensorType, axis: int, out: TensorType
) -> Call:
    """Return the callable of ``recipe`` along one axis of arrays of the shape of ``x``."""
    if not x.size:
        return calls.make_empty(backend.runtime, out)
    return rows.make_mapper(backend.runtime, recipe, rows.make_walk(x.shape, (axis,)), x, out)


def _make_recipe(name: str, dtype: DType, reads: list[Read], passes: list[Pass]) -> Recipe:
    stored = ctypes.stored(dtype)
    return Recipe(f"{name} {dtype}", ctypes.computed(dtype), stored, reads, passes)


@kernels.prepare(specs.SOFTMAX)
def softmax(logits: TensorType, *, dim: int, backend: OpenCLBackend, out: TensorType) -> Call:
    """Divide the exponentials of the distances from the largest by their sum."""
    dtype = logits.dtype
    reads = [Read("x", ctypes.stored(dtype))]
    passes = [_make_largest_pass(dtype), _make_exponentials_pass(dtype)]
    recipe = _make_recipe("Softmax", dtype, reads, passes)._replace(
        statements=f"{_SHIFTED} const A value = e / (1 + rest);", final_reads=("x",)
    )
    return _map_rows(backend, recipe, logits, dim, out)


@kernels.prepare(specs.LOG_SOFTMAX)
def log_softmax(logits: TensorType, *, axis: int, backend: OpenCLBackend, out: TensorType) -> Call:
    """Subtract the logarithm of the sum of exponentials from the distances to the largest."""
    dtype = logits.dtype
    reads = [Read("x", ctypes.stored(dtype))]
    sums = _make_exponentials_pass(dtype)
    logarithm = sums._replace(after=f"{sums.after} const A log_sum = log1p(rest);")
    recipe = _make_recipe(
        "LogSoftmax", dtype, reads, [_make_largest_pass(dtype), logarithm]
    )._replace(statements="const A value = (x - best) - log_sum;", final_reads=("x",))
    return _map_rows(backend, recipe, logits, axis, out)


@kernels.prepare(specs.SOFTMAX_GRAD)
def softmax_grad(
    dy: TensorType, y: TensorType, *, dim: int, backend: OpenCLBackend, out: TensorType
) -> Call:
    """Subtract from dy its mean under the distribution y, then multiply by y."""
    stored = ctypes.stored(out.dtype)
    mean = Pass(
        {"mean": folds.sum_fold(out.dtype)}, ("dy", "w"), "const A mean_v = dy * w;", cheap=True
    )
    reads = [Read("dy", stored), Read("w", stored)]
    recipe = _make_recipe("SoftmaxGrad", out.dtype, reads, [mean])._replace(
        statements="const A value = w * (dy - mean);", final_reads=("dy", "w")
    )
    return _map_rows(backend, recipe, y, dim, out)


@kernels.prepare(specs.SOFTMAX_CROSS_ENTROPY)
def cross_entropy(
    labels: TensorType, logits: TensorType, *, backend: OpenCLBackend, out: TensorType
) -> Call:
    """Add up the labels times the negative logarithms of softmax."""
    dtype, stored = logits.dtype, ctypes.stored(logits.dtype)
    sums = _make_exponentials_pass(dtype)
    loss = Pass(
        {"loss": folds.sum_fold(dtype)},
        ("x", "label"),
        "const A loss_v = label * (log_sum - (x - best));",
    )
    logarithm = sums._replace(after=f"{sums.after} const A log_sum = log1p(rest);")
    reads = [Read("label", stored), Read("x", stored)]
    passes = [_make_largest_pass(dtype), logarithm, loss]
    recipe = _make_recipe("SoftmaxCrossEntropy", dtype, reads, passes)._replace(result="loss")
    if not out.size or logits.size:
        return _map_rows(backend, recipe, logits, logits.rank - 1, out)
    return calls.make_constant(backend.runtime, out)


@kernels.prepare(specs.SOFTMAX_CROSS_ENTROPY_GRAD)
def cross_entropy_grad(
    dy: TensorType,
    labels: TensorType,
    logits: TensorType,
    *,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Scale softmax by the sum of the labels, subtract the labels, multiply by dy."""
    dtype, stored = logits.dtype, ctypes.stored(logits.dtype)
    sums = _make_exponentials_pass(dtype)
    with_labels = sums._replace(
        folds={**sums.folds, "whole": folds.sum_fold(dtype)},
        reads=("x", "label"),
        statements=f"{sums.statements} const A whole_v = label;",
        after=f"{sums.after} const A share = whole / (1 + rest);",
    )
    reads = [Read("dy", stored, "row"), Read("label", stored), Read("x", stored)]
    recipe = _make_recipe(
        "SoftmaxCrossEntropyGrad", dtype, reads, [_make_largest_pass(dtype), with_labels]
    )
    recipe = recipe._replace(
        statements=f"{_SHIFTED} const A value = dy * (e * share - label);",
        final_reads=("x", "label"),
    )
    return _map_rows(backend, recipe, logits, logits.rank - 1, out)
