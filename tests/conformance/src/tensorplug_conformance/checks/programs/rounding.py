"""Narrow floats in programs: each call rounds, so a value is the same whoever reads it.

All operations are correctly rounded, from float32 too, so results are exact: their bits must be
those of the calls alone.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.checks.check import Check
from tensorplug_conformance.checks.programs.compiling import Program, compiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import DType
    from tensorplug_conformance.case import Array


_ROWS: Final = (1 << 14) + 3
"""Rows of two: with more than 2**14 elements, backends tend to take programs in blocks."""


def _drawn(dtype: DType, rows: int) -> Callable[[int], tuple[Array, ...]]:
    """Return a function of a seed: 200 times the first array does not fit into float16."""

    def arguments(seed: int) -> tuple[Array, ...]:
        random = np.random.default_rng(seed)
        return tuple(
            random.uniform(-most, most, (rows, 2)).astype(dtype.numpy) for most in (500, 100)
        )

    return arguments


def _wide(x: Any) -> Any:
    return tp.astype(x, tp.float32)


def _chain(x: Any, y: Any) -> Any:
    product, large, rest, grown = x * y, x * 200, (x + y) - x, _wide(tp.exp(y * 0.0625))
    return (
        _wide(large),
        _wide(tp.astype(grown, x.dtype)) == grown,  # a function, whose last digit is free
        _wide(large) > _wide(x) * 200,
        large * 0.25 == x * 50,
        tp.sum(tp.astype(tp.isinf(large), tp.int32)),
        rest,
        _wide(product) - _wide(x) * _wide(y),
        tp.where(rest == y, product, tp.maximum(large, y) * 0.25),
        _wide(tp.mean(product, axis=1)),
        _wide(tp.sum(large, axis=1) * 0.5),
        _wide(tp.grad(lambda x: tp.sum(x * y * 3))(x)),
    )


@np.errstate(all="ignore")
def _chain_in_numpy(dtype: DType, x: Array, y: Array) -> Any:
    r = partial(_rounded, dtype)
    product, large, rest = r(x * y), r(x * 200), r(r(x + y) - x)
    return (
        large,
        np.ones(x.shape, np.bool_),
        large > np.float32(x * 200),
        r(large * 0.25) == r(x * 50),
        np.sum(np.isinf(large)),
        rest,
        product - x * y,
        np.where(rest == y, product, r(np.maximum(large, y) * 0.25)),
        r(product.mean(axis=1)),
        r(r(large.sum(axis=1)) * 0.5),
        r(3 * y),
    )


def _nested(x: Any, y: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        return carry * 0.75 + row, (_wide(carry * 200), carry * 3 > row)

    def grows(carry: Any) -> Any:
        return tp.all(tp.isfinite(carry * 200))

    last, (large, more) = tp.scan(step, x[0], y)
    return (
        _wide(last),
        large,
        more,
        _wide(tp.while_loop(grows, lambda carry: carry * 1.5 + 1, tp.abs(y), 64)),
        tp.cond(tp.any(tp.isinf(x * 200)), lambda v: _wide(v * 200), _wide, x),
        tp.vmap(lambda row: _wide(row * 200) * 0.5)(x),
    )


@np.errstate(all="ignore")
def _nested_in_numpy(dtype: DType, x: Array, y: Array) -> Any:
    r = partial(_rounded, dtype)
    carry, large, more, grown = x[0], [], [], np.abs(y)
    for row in y:
        large.append(r(carry * 200))
        more.append(r(carry * 3) > row)
        carry = r(r(carry * 0.75) + row)
    for _ in range(64):
        if not np.all(np.isfinite(r(grown * 200))):
            break
        grown = r(r(grown * 1.5) + 1)
    scaled = r(x * 200)
    chosen = scaled if np.any(np.isinf(scaled)) else x
    return carry, np.stack(large), np.stack(more), grown, chosen, scaled * 0.5


def _rounded(dtype: DType, x: Array) -> Array:
    """Round float64 to the numbers of a dtype."""
    return x.astype(dtype.numpy).astype(np.float64)


PROGRAMS: Final = tuple(
    Program(
        f"{name} of {dtype}", function, _drawn(dtype, rows), partial(reference, dtype), steps=0
    )
    for dtype in (dt.float16, dt.bfloat16)
    for name, function, reference, rows in (
        ("chain", _chain, _chain_in_numpy, 7),
        ("long chain", _chain, _chain_in_numpy, _ROWS),
        ("loops", _nested, _nested_in_numpy, 7),
    )
)

CHECKS: Final = tuple(
    Check(4, f"each call rounds: {program.name}", partial(compiles, program))
    for program in PROGRAMS
)
