"""Layer normalization and its gradient: recipes over rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import DType, KernelRefusedError, KernelTable, TensorType, specs
from tensorplug_opencl.kernels import calls, ctypes, folds, pointwise, rows
from tensorplug_opencl.kernels.rowwise import Pass, Read, Recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.kernels.rows import Walk

    Call = Callable[..., DeviceBuffer]

kernels = KernelTable()

_SQUARES: Final = "const A c0 = x - mean; const A squares_v = c0 * c0;"
_DEVIATION: Final = "const A scale = 1 / sqrt(squares / count + epsilon);"


def _make_mean_pass(dtype: DType) -> Pass:
    total = folds.sum_fold(dtype)
    after = "const A mean = total_x / count;"
    return Pass({"total_x": total}, ("x",), "const A total_x_v = x;", after, cheap=True)


def _walk_side_by_side(x: TensorType, axis: tuple[int, ...]) -> Walk:
    walk = rows.make_walk(x.shape, axis)
    if walk.reduced.rank > 1:
        raise KernelRefusedError(f"axes {list(axis)} of {list(x.shape)} do not lie side by side")
    return walk


def _make_recipe(name: str, dtype: DType, reads: Sequence[Read], passes: Sequence[Pass]) -> Recipe:
    computed = ctypes.computed(dtype)
    constants = [("epsilon", computed)]
    stored = ctypes.stored(dtype)
    return Recipe(f"{name} {dtype}", computed, stored, reads, passes, constants=constants)


def _round_epsilon(dtype: DType, epsilon: float) -> Any:
    return calls.make_element(epsilon, dtype).astype(ctypes.host(ctypes.computed(dtype)))[()]


@kernels.prepare(specs.LAYER_NORM)
def layer_norm(
    x: TensorType,
    scale: TensorType | None,
    offset: TensorType | None,
    *,
    axis: tuple[int, ...],
    epsilon: float,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Subtract the mean, divide by the deviation; then scale and shift, broadcasting these."""
    runtime, dtype = backend.runtime, x.dtype
    if not out.size:
        return calls.make_empty(runtime, out)
    walk, stored = _walk_side_by_side(x, axis), ctypes.stored(dtype)
    named = {"by": scale, "shift": offset}
    along = {name: type_ for name, type_ in named.items() if type_ is not None}
    fused = all(_is_along(type_, x, axis, walk) for type_ in along.values())
    own = along if fused else {}
    reads = [Read("x", stored), *(Read(name, stored, "along") for name in own)]
    squares = Pass({"squares": folds.sum_fold(dtype)}, ("x",), _SQUARES, _DEVIATION, cheap=True)
    value = "(x - mean) * scale" + " * by" * ("by" in own) + " + shift" * ("shift" in own)
    recipe = _make_recipe("LayerNorm", dtype, reads, [_make_mean_pass(dtype), squares])._replace(
        statements=f"const A value = {value};", final_reads=("x", *own)
    )
    call = rows.make_mapper(
        runtime, recipe, walk, x, out, constants=[_round_epsilon(dtype, epsilon)]
    )
    if fused:
        return lambda x, *inputs: call(x, *(buffer for buffer in inputs if buffer is not None))
    affine = "z" + " * by" * ("by" in along) + " + shift" * ("shift" in along)
    formula, types = pointwise.Formula(affine), {"z": x, **along}
    finish = pointwise.prepare_formula(runtime, f"LayerNorm affine {dtype}", formula, types, out)
    return lambda x, *inputs: finish(call(x), *(buffer for buffer in inputs if buffer is not None))


def _is_along(operand: TensorType, x: TensorType, axis: tuple[int, ...], walk: Walk) -> bool:
    """Return whether ``operand`` has one number for each place in a row, in the rows' order."""
    own = operand.shape[max(0, operand.rank - len(axis)) :]
    last = axis == tuple(range(x.rank - len(axis), x.rank))
    return last and operand.size == walk.length and own == tuple(x.shape[at] for at in axis)


@kernels.prepare(specs.LAYER_NORM_GRAD)
def layer_norm_grad(
    dy: TensorType,
    x: TensorType,
    *,
    axis: tuple[int, ...],
    epsilon: float,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Subtract from dy its mean and its part along the normalized row."""
    runtime, dtype = backend.runtime, x.dtype
    if not out.size:
        return calls.make_empty(runtime, out)
    walk, stored = _walk_side_by_side(x, axis), ctypes.stored(dtype)
    total = folds.sum_fold(dtype)
    second = Pass(
        {"squares": total, "plain_sum": total, "along": total},
        ("x", "dy"),
        f"{_SQUARES} const A plain_sum_v = dy; const A along_v = dy * c0;",
        f"{_DEVIATION} const A level = plain_sum / count; "
        "const A slope = along / count * scale * scale;",
    )
    reads = [Read("dy", stored), Read("x", stored)]
    recipe = _make_recipe(
        "LayerNormGrad", dtype, reads, [_make_mean_pass(dtype), second]
    )._replace(
        statements="const A value = (dy - level - (x - mean) * slope) * scale;",
        final_reads=("dy", "x"),
    )
    return rows.make_mapper(
        runtime, recipe, walk, x, out, constants=[_round_epsilon(dtype, epsilon)]
    )
