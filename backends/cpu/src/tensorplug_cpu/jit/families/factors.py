"""Products of float32 and float16 along one axis, in one pass over memory.

Factors are multiplied in float64, four at a time, which cannot leave its range. The product so far
is kept as a number in [1, 2) and an exponent, so that only the result can be too large or too
small, whatever the order.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.execution import parallel
from tensorplug_cpu.jit.codegen.functions import Function
from tensorplug_cpu.jit.codegen.processor import converts_halves
from tensorplug_cpu.jit.codegen.settings import is_worthwhile
from tensorplug_cpu.jit.loops.addresses import address
from tensorplug_cpu.jit.loops.calls import fold_columns
from tensorplug_cpu.memory.pool import empty

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_cpu.arrays import Array
    from tensorplug_cpu.jit.codegen.control_flow import Variable

    Value = Any  # of llvmlite
    Group = tuple[int, bool]


_SHARED: Final = 1 << 20  # elements from which threads are worth their hand-over
_DTYPES: Final = (np.dtype(np.float16), np.dtype(np.float32))
_LANES: Final = 8
_FACTORS: Final = 4
_WIDE: Final = 1 << 9  # columns whose products so far stay in the first cache
_RESULT: Final = np.dtype(np.float32)

_BITS: Final = 52  # of a fraction
_BIAS: Final = 1023
_FIELD: Final = 0x7FF
_FAR: Final = 600  # an exponent that makes float32 infinite or 0 after any product of lanes


def multiplier(merged: Sequence[Group], dtype: np.dtype[Any]) -> Callable[[Array], Array] | None:
    """Return what multiplies along the one of the merged axes that is folded, in float32.

    None where there is no such loop: several such axes, other dtypes, little to do.
    """
    folded = [number for number, (_, folds) in enumerate(merged) if folds]
    lengths = [length for length, _ in merged]
    if dtype not in _DTYPES or len(folded) != 1 or not is_worthwhile(prod(lengths)):
        return None
    if dtype == np.float16 and not converts_halves():
        return None
    at = folded[0]
    before, length, after = prod(lengths[:at]), lengths[at], prod(lengths[at + 1 :])
    shared = prod(lengths) >= _SHARED
    matrix = length * after * dtype.itemsize

    def run(x: Array) -> Array:
        source, result = np.ascontiguousarray(x), empty((before, after), _RESULT)
        origin, to = (address(array) for array in (source, result))
        if after == 1:
            rows = _row_function(dtype.name)
            parallel.in_parts(
                lambda start, stop: rows(
                    origin + start * matrix, to + start * _RESULT.itemsize, stop - start, length
                ),
                before,
                shared=shared,
            )
            return result
        columns = _column_function(dtype.name)
        fold_columns(columns, source, result, (before, length, after), shared=shared)
        return result

    return run


class _Product:
    """Products in all lanes, as instructions of the function ``f``."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self.wide = f.scalar("float64")
        self.vector = f.vector(_LANES, self.wide)
        self.whole = f.vector(_LANES, f.integer)
        self.one = f.number(1.0, self.vector)
        self.zero = f.number(0, self.whole)
        self._blank = f.number(1.0, f.vector(_LANES))

    def read(self, offset: Value, mask: Value = None) -> Value:
        """Return elements of x as float64, ones where ``mask`` does not hold."""
        f = self.f
        if mask is None:
            x = f.load(f["x"], offset, _LANES)
        else:
            x = f.load_where(mask, self._blank, f["x"], offset)
        return f.builder.fpext(x, self.vector)

    def product(self, factors: list[Value]) -> Value:
        """Return the product of at most four factors, as a tree."""
        while len(factors) > 1:
            pairs = zip(factors[::2], factors[1::2], strict=True)
            factors = [self.f.builder.fmul(a, b) for a, b in pairs]
        return factors[0]

    def multiply(self, total: Variable, exponent: Variable, factor: Value) -> None:
        """Multiply into a product; zeros, infinities and NaN stay as they are."""
        f, build = self.f, self.f.builder

        def number(value: int) -> Value:
            return f.number(value, self.whole)

        new = build.fmul(total.get(), factor)
        bits = build.bitcast(new, self.whole)
        field = build.and_(build.lshr(bits, number(_BITS)), number(_FIELD))
        special = build.icmp_unsigned(">=", build.sub(field, number(1)), number(_FIELD - 1))
        fraction = build.and_(bits, number(~(_FIELD << _BITS)))
        unit = build.bitcast(build.or_(fraction, number(_BIAS << _BITS)), self.vector)
        total.set(build.select(special, new, unit))
        power = build.select(special, self.zero, build.sub(field, number(_BIAS)))
        exponent.set(build.add(exponent.get(), power))

    def rounded(self, total: Value, exponent: Value) -> Value:
        """Return products in float32, of vectors or of scalars."""
        f, build = self.f, self.f.builder
        count = getattr(total.type, "count", 1)
        type_ = exponent.type
        for name, limit in (("smin", _FAR), ("smax", -_FAR)):
            exponent = f.intrinsic(name, exponent, f.number(limit, type_))
        bits = build.shl(build.add(exponent, f.number(_BIAS, type_)), f.number(_BITS, type_))
        scale = build.bitcast(bits, total.type)
        narrow = f.vector(count, f.scalar("float32"))
        return build.fptrunc(build.fmul(total, scale), narrow)

    def across(self, x: Value, name: str) -> Value:
        """Return the lanes combined by an instruction."""
        count = _LANES
        while count > 1:
            count //= 2
            x = getattr(self.f.builder, name)(
                self.f.part(x, 0, count), self.f.part(x, count, count)
            )
        return x


@cache
def _row_function(dtype: str) -> Callable[..., None]:
    """Return the function for ``rows`` of ``length`` elements, side by side."""
    f = Function(f"products_{dtype}", dtype, ("x", "out"), ("rows", "length"))
    how = _Product(f)
    total, exponent = f.variable(how.one), f.variable(how.zero)
    step = _FACTORS * _LANES
    with f.loop(0, f["rows"]) as row:
        begin = f.multiply(row, f["length"])
        total.set(how.one)
        exponent.set(how.zero)
        done = f.variable(0)
        with f.loop(0, f.add(f.subtract(f["length"], step), 1), step) as first:
            factors = [
                how.read(f.add(begin, first, number * _LANES)) for number in range(_FACTORS)
            ]
            how.multiply(total, exponent, how.product(factors))
            done.set(f.add(first, step))
        with f.loop(done.get(), f["length"], _LANES) as first:
            mask = f.mask(first, f["length"], _LANES)
            how.multiply(total, exponent, how.read(f.add(begin, first), mask))
        whole, power = how.across(total.get(), "fmul"), how.across(exponent.get(), "add")
        f.store(how.rounded(whole, power), f["out"], row)
    return f.compiled()


@cache
def _column_function(dtype: str) -> Callable[..., None]:
    """Return the function for ``width`` columns of ``before`` matrices ``[length, stride]``."""
    f = Function(
        f"column_products_{dtype}", dtype, ("x", "out"), ("before", "length", "width", "stride")
    )
    how = _Product(f)
    totals, exponents = f.array(_WIDE, how.wide), f.array(_WIDE, f.integer)

    def step(begin: Value, rows: int, column: Value, mask: Value = None) -> None:
        total = f.variable(f.load(totals, column, _LANES, how.wide))
        exponent = f.variable(f.load(exponents, column, _LANES, f.integer))
        offsets = [f.add(begin, f.multiply(row, f["stride"]), column) for row in range(rows)]
        how.multiply(total, exponent, how.product([how.read(offset, mask) for offset in offsets]))
        f.store(total.get(), totals, column)
        f.store(exponent.get(), exponents, column)

    with f.loop(0, f["before"]) as matrix, f.loop(0, f["width"], _WIDE) as left:
        width = f.least(f.subtract(f["width"], left), _WIDE)
        with f.loop(0, width, _LANES) as column:
            f.store(how.one, totals, column)
            f.store(how.zero, exponents, column)
        top = f.add(f.multiply(f.multiply(matrix, f["length"]), f["stride"]), left)
        at = f.variable(0)
        for rows in (_FACTORS, 1):
            with f.loop(at.get(), f.add(f.subtract(f["length"], rows), 1), rows) as row:
                begin = f.add(top, f.multiply(row, f["stride"]))
                rest = f.variable(0)
                with f.loop(0, f.add(f.subtract(width, _LANES), 1), _LANES) as column:
                    step(begin, rows, column)
                    rest.set(f.add(column, _LANES))
                column = rest.get()
                with f.when(f.less(column, width)):
                    step(begin, rows, column, f.mask(column, width, _LANES))
                at.set(f.add(row, rows))
        to = f.add(f.multiply(matrix, f["stride"]), left)
        with f.loop(0, width, _LANES) as column:
            total = f.load(totals, column, _LANES, how.wide)
            exponent = f.load(exponents, column, _LANES, f.integer)
            mask = f.mask(column, width, _LANES)
            f.store_where(mask, how.rounded(total, exponent), f["out"], f.add(to, column))
    return f.compiled()
