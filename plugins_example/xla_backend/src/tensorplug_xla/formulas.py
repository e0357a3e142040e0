"""Kernels as formulas of ``jax.numpy``: one table for calls and for whole programs.

These are the 41 primitives. All other kernels are decomposed into them by the core, and XLA fuses
what comes of it. A formula's parameters are the inputs of the spec, and then what it asks for:
attributes, or ``out``, the type of the result.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import jax.numpy as jnp
from jax import lax

from tensorplug.algorithms import scatter_depth
from tensorplug.plugin import DType, KernelSpec, Scalar, TensorType, specs
from tensorplug.plugin import dtypes as dt

Array = Any  # of JAX, which is typed here and there
Axes = tuple[int, ...]
Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Formula:
    """A kernel. ``asks``: names of the attributes that ``function`` takes, and ``out``."""

    spec: KernelSpec
    function: Function
    asks: tuple[str, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return self.spec.input_names

    @property
    def several(self) -> bool:
        """Whether there are several outputs."""
        return self.spec.multiple_outputs


FORMULAS: Final[dict[str, Formula]] = {}


def formula(spec: KernelSpec) -> Callable[[Function], Function]:
    """Enter a function into the table."""

    def decorate(function: Function) -> Function:
        parameters = inspect.signature(function).parameters.values()
        asks = tuple(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)
        FORMULAS[spec.name] = Formula(spec, function, asks)
        return function

    return decorate


SIMPLE: Final[dict[KernelSpec, Function]] = {
    specs.NEG: jnp.negative,
    specs.ABS: jnp.abs,
    specs.FLOOR: jnp.floor,
    specs.EXP: jnp.exp,
    specs.LOG: jnp.log,
    specs.SQRT: jnp.sqrt,
    specs.SIN: jnp.sin,
    specs.COS: jnp.cos,
    specs.ATAN: jnp.arctan,
    specs.ERF: lax.erf,
    specs.ADD: jnp.add,
    specs.SUB: jnp.subtract,
    specs.MULTIPLY: jnp.multiply,
    specs.REAL_DIV: jnp.true_divide,
    specs.MAXIMUM: jnp.maximum,
    specs.EQUAL: jnp.equal,
    specs.LESS: jnp.less,
    specs.LOGICAL_AND: jnp.logical_and,
    specs.LOGICAL_NOT: jnp.logical_not,
    specs.SELECT: jnp.where,
    specs.IDENTITY: lambda x: x,
    specs.RESHAPE: lambda x, *, shape: x.reshape(shape),
    specs.TRANSPOSE: lambda x, *, perm: x.transpose(perm),
    specs.BROADCAST_TO: lambda x, *, shape: jnp.broadcast_to(x, shape),
    specs.CONCAT: lambda xs, *, axis: jnp.concatenate(xs, axis=axis),
    specs.FILL: lambda *, value, out: jnp.full(out.shape, value, out.dtype.numpy),
    specs.SLICE: lambda x, *, begin, size: lax.slice(
        x, begin, [at + length for at, length in zip(begin, size, strict=True)]
    ),
    specs.SUM: lambda x, *, axis, out: jnp.sum(x, axis, out.dtype.numpy).reshape(out.shape),
    specs.PROD: lambda x, *, axis, out: jnp.prod(x, axis, out.dtype.numpy).reshape(out.shape),
}
for _spec, _function in SIMPLE.items():
    if _function.__module__ == __name__:
        formula(_spec)(_function)
    else:  # JAX's own functions take more than a kernel asks for
        FORMULAS[_spec.name] = Formula(_spec, _function, ())


@formula(specs.FLOOR_DIV)
def floor_div(a: Array, b: Array) -> Array:
    """Round the quotient down; of integers, 0 where the divisor is."""
    a, b = jnp.broadcast_arrays(a, b)
    if not jnp.issubdtype(a.dtype, jnp.floating):
        return jnp.where(b == 0, 0, jnp.floor_divide(a, jnp.where(b == 0, 1, b)))
    scale = jnp.where(jnp.abs(b) > 1, 0.5, 1).astype(b.dtype)  # the difference is finite then
    quotient = jnp.round((a * scale - mod(a, b) * scale) / (b * scale))
    exact = jnp.isinf(a) | (b == 0) | jnp.isinf(b)
    return jnp.where(exact, jnp.floor(a / b), quotient)


@formula(specs.MOD)
def mod(a: Array, b: Array) -> Array:
    """Return the remainder with the sign of the divisor; of integers, 0 where that is 0."""
    a, b = jnp.broadcast_arrays(a, b)
    if not jnp.issubdtype(a.dtype, jnp.floating):
        return jnp.where(b == 0, 0, jnp.remainder(a, jnp.where(b == 0, 1, b)))
    rest = lax.rem(a, b)
    return jnp.where(
        (rest != 0) & ((rest < 0) != (b < 0)),
        rest + b,
        jnp.where(rest == 0, jnp.copysign(rest, b), rest),
    )


@formula(specs.POW)
def power(a: Array, b: Array) -> Array:
    """Multiply integers modulo a power of 2; a negative exponent leaves 1, -1 or 0."""
    if jnp.issubdtype(a.dtype, jnp.floating):
        return jnp.power(a, b)
    base, left = jnp.broadcast_arrays(a, jnp.maximum(b, 0))

    def step(_: int, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        result, base, left = state
        return jnp.where(left % 2 == 1, result * base, result), base * base, left // 2

    bits = a.dtype.itemsize * 8
    result, _, _ = lax.fori_loop(0, bits, step, (jnp.ones_like(base), base, left))
    if jnp.issubdtype(a.dtype, jnp.unsignedinteger):
        return result
    inverse = jnp.where(jnp.abs(a) == 1, jnp.where(b % 2 != 0, a, 1), 0)
    return jnp.where(b < 0, inverse, result)


@formula(specs.CAST)
def cast(x: Array, *, dtype: DType) -> Array:
    """Convert; a float that does not fit an integer is cut modulo a power of 2."""
    if dtype is dt.bool_:
        return x != 0
    if dtype in dt.INTEGER and jnp.issubdtype(x.dtype, jnp.floating):
        whole = lax.rem(jnp.trunc(jnp.where(jnp.isfinite(x), x, 0)).astype(jnp.float64), 2.0**64)
        size = jnp.abs(whole).astype(jnp.uint64)
        x = jnp.where(whole < 0, -size, size)
    return x.astype(dtype.numpy)


@formula(specs.RANGE)
def range_(*, start: Scalar, step: Scalar, dtype: DType, out: TensorType) -> Array:
    """Compute each number from its own position."""
    if isinstance(start, int) and isinstance(step, int):
        whole = lax.iota(jnp.int64, out.size)
        wrapped = [(number + 2**63) % 2**64 - 2**63 for number in (start, step)]
        return (whole * wrapped[1] + wrapped[0]).astype(dtype.numpy)
    return (lax.iota(jnp.float64, out.size) * step + start).astype(dtype.numpy)


@formula(specs.PAD_V2)
def pad(x: Array, *, paddings: tuple[tuple[int, int], ...], constant_value: Scalar) -> Array:
    """Fill what is around."""
    filling = jnp.asarray(constant_value, x.dtype)
    return lax.pad(x, filling, [(before, after, 0) for before, after in paddings])


@formula(specs.GATHER_V2)
def gather(x: Array, indices: Array, *, axis: int, batch_dims: int, out: TensorType) -> Array:
    """Take slices along an axis; where an index is out of range, another element is read."""
    batch, before = math.prod(x.shape[:batch_dims]), math.prod(x.shape[batch_dims:axis])
    after, length = math.prod(x.shape[axis + 1 :]), x.shape[axis]
    count = math.prod(indices.shape[batch_dims:])
    if not out.size or not x.size:
        return jnp.zeros(out.shape, x.dtype)
    at = _positions(indices, length).reshape(batch, 1, count, 1)
    flat = x.reshape(batch, before, length, after)
    if batch == 1:
        return jnp.take(flat, at.reshape(count), axis=2, mode="clip").reshape(out.shape)
    return jnp.take_along_axis(flat, at, axis=2, mode="clip").reshape(out.shape)


def _positions(indices: Array, length: int) -> Array:
    at = indices.astype(jnp.int64 if length > 2**31 - 1 else jnp.int32)
    return jnp.where(at < 0, at + length, at)


@formula(specs.SCATTER_ND)
def scatter_nd(indices: Array, updates: Array, *, shape: Axes) -> Array:
    """Add slices at positions; those out of range are left out."""
    depth = scatter_depth(indices.shape, updates.shape, shape)
    count = math.prod(updates.shape[: updates.ndim + depth - len(shape)])
    cells, width = math.prod(shape[:depth]), math.prod(shape[depth:])
    zeros = jnp.zeros((cells, width), updates.dtype)
    flat, inside = jnp.zeros(count, jnp.int64), jnp.ones(count, bool)
    for axis, length in enumerate(shape[:depth]):
        at = _positions(indices.reshape(count, depth)[:, axis], length).astype(jnp.int64)
        inside &= (at >= 0) & (at < length)
        flat = flat * length + at
    flat = jnp.where(inside, flat, cells)
    return zeros.at[flat].add(updates.reshape(count, width), mode="drop").reshape(shape)


@formula(specs.MAX)
def max_(x: Array, *, reduction_indices: Axes, out: TensorType) -> Array:
    """Return an empty result at once; JAX refuses to reduce an empty axis."""
    if not out.size:
        return jnp.zeros(out.shape, x.dtype)
    return jnp.max(x, reduction_indices).reshape(out.shape)


@formula(specs.ARG_MAX)
def arg_max(x: Array, *, axis: int, out: TensorType) -> Array:
    """Return the first of equal maxima, or the first NaN."""
    if not out.size:
        return jnp.zeros(out.shape, jnp.int32)
    return jnp.argmax(x, axis).astype(jnp.int32)


@formula(specs.BATCH_MAT_MUL)
def matmul(a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
    """Multiply the last two axes; the leading ones broadcast."""
    a, b = a.mT if transpose_a else a, b.mT if transpose_b else b
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


@formula(specs.TOP_K)
def top_k(x: Array, *, k: int) -> tuple[Array, Array]:
    """Sort the reversed axis stably and read it backwards: equal elements stay in order."""
    length = x.shape[-1]
    order = jnp.argsort(x[..., ::-1], stable=True)[..., ::-1][..., :k]
    at = length - 1 - order
    return jnp.take_along_axis(x, at, axis=-1), at.astype(jnp.int32)
