"""What depends on expressions alone, found once: groups of other lengths have the same objects."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tensorplug.plugin import Expression
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.recording import compute, plain
from tensorplug_loops.statements import rewritten, variable

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from tensorplug.plugin import DType, Scalar

    Roots = tuple[Expression, ...]

_MOST: Final = 2048
_KEPT: Final = {-1, 0, 1}  # these stay in the kernel
_SHIFTS: Final = {"bitwise_left_shift", "bitwise_right_shift"}
_DIVIDES: Final = {"floor_divide", "remainder", *_SHIFTS}
_SMALL: Final = 16
_FLOATS_KEPT: Final = {0.5, 2.0, float("inf"), float("-inf")}
# The dtypes of other constants, whose bits are numbers of the kernel.
_BITS: Final = {
    dt.int32: dt.int32,
    dt.int64: dt.int64,
    dt.uint32: dt.int32,
    dt.uint64: dt.int64,
    dt.float32: dt.int32,
    dt.float64: dt.int64,
}
_numbers: Final[dict[Hashable, int]] = {}


class Constant(NamedTuple):
    """The value and the dtype of a number; whether it may be an index."""

    value: int
    dtype: DType
    is_index: bool


class Structure(NamedTuple):
    """Expressions of a kernel: of axes that remain, and of numbers in the place of constants.

    ``constants``: the numbers ``q0``, ``q1``, ... ``number``: equal for equal roots.
    """

    roots: Roots
    constants: tuple[Constant, ...]
    number: int


@lru_cache(_MOST)
def axes_in(roots: Roots) -> frozenset[int]:
    """Return the axes whose indices are values."""
    nodes = ex.order(roots, lambda _: False)
    return frozenset(int(node.value) for node in nodes if node.op == "axis")  # type: ignore[arg-type]


@lru_cache(_MOST)
def parameters_in(roots: Roots) -> frozenset[int]:
    """Return the numbers of the parameters."""
    nodes = ex.order(roots, lambda _: False)
    return frozenset(int(node.value) for node in nodes if node.op == "parameter")  # type: ignore[arg-type]


@lru_cache(_MOST)
def structure_of(roots: Roots, axes: tuple[int, ...]) -> Structure:
    """Return roots of a kernel with these axes of a group; the index along others is 0."""
    constants: list[Constant] = []
    new: dict[int, Expression] = {}
    unified = ex.unify(roots)
    divisors = list(_divisors(ex.linearize(unified)))
    for node in ex.linearize(unified):
        if node.op == "axis":
            remains = node.value in axes
            new[id(node)] = (
                ex.axis(axes.index(int(node.value)))  # type: ignore[arg-type]  # a number
                if remains
                else ex.constant(0, dt.int64)
            )
        elif node.op == "constant":
            if _is_kept(node, divisors):
                new[id(node)] = ex.constant(plain(node.value), node.dtype)
            else:
                new[id(node)] = _lifted(node, constants)
        else:
            operands = tuple(new[id(each)] for each in node.operands)
            new[id(node)] = Expression(node.op, node.dtype, operands, node.value)
    made = ex.unify([new[id(root)] for root in unified])
    nodes = ex.linearize(made)
    number = {id(node): at for at, node in enumerate(nodes)}
    description = (
        tuple(number[id(root)] for root in made),
        tuple(each.is_index and each.value > 0 for each in constants),
        *(
            (node.op, node.dtype, repr(node.value), *(number[id(each)] for each in node.operands))
            for node in nodes
        ),
    )
    return Structure(
        tuple(made), tuple(constants), _numbers.setdefault(description, len(_numbers))
    )


def _divisors(nodes: Sequence[Expression]) -> Iterator[Expression]:
    """Return constants that stay in the kernel, since compilers know better how to use them."""
    for node in nodes:
        if node.op in _DIVIDES and node.operands[1].op == "constant":
            by = node.operands[1]
            is_index = by.dtype is dt.int64
            if node.op in _SHIFTS or not is_index or 0 < by.value <= _SMALL:  # type: ignore[operator]  # a number
                yield by


def _is_kept(node: Expression, divisors: Sequence[Expression]) -> bool:
    """Return whether a constant stays in the kernel; equal sizes are not one expression."""
    kept = [
        *(_KEPT | _FLOATS_KEPT if node.dtype in dt.FLOATING else _KEPT),
        *(by.value for by in divisors if by.dtype is node.dtype),
    ]
    return node.dtype not in _BITS or any(node.value == each for each in kept)


def _lifted(node: Expression, constants: list[Constant]) -> Expression:
    """Return a number of the kernel for a constant that differs from call to call."""
    bits, is_index = _BITS[node.dtype], node.dtype is dt.int64
    held = dt.uint64 if bits is dt.int64 and not is_index else dt.int64
    number = Constant(compute(_bits_of, node.value, node.dtype), held, is_index)
    if number not in constants:  # sizes may be equal that are not always
        constants.append(number)
    name = f"q{constants.index(number)}"
    if is_index:
        return variable(name)
    if held is dt.uint64:
        return ex.bitcast(variable(name, dt.uint64), node.dtype)
    return ex.bitcast(ex.cast(variable(name), bits), node.dtype)


def _bits_of(value: Scalar, dtype: DType) -> int:
    """Return the bits of a number as a whole number."""
    with np.errstate(over="ignore", invalid="ignore"):
        return int(np.array(value).astype(dtype.numpy).view(_BITS[dtype].numpy))


@lru_cache(_MOST)
def written(roots: Roots) -> tuple[str, ...]:
    """Return expressions as text."""
    return tuple(map(str, roots))


@lru_cache(_MOST)
def renumbered(roots: Roots, new: tuple[tuple[int, int], ...]) -> Roots:
    """Return expressions with other numbers of parameters."""
    numbers = dict(new)

    def rule(node: Expression, operands: Roots) -> Expression:
        value = node.value
        if node.op == "parameter":
            value = numbers.get(int(value), int(value))  # type: ignore[arg-type]  # a number
        return Expression(node.op, node.dtype, operands, value)

    return tuple(rewritten(roots, rule))


@lru_cache(_MOST)
def parameter(number: int, dtype: DType, to: DType | None = None) -> Expression:
    """Return a parameter, converted to another dtype if one is given."""
    return ex.cast(ex.parameter(number, dtype), to or dtype)
