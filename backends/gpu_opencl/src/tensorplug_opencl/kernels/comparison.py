"""Comparison and logic: the C operator per kernel; a boolean is a byte that is 0 or 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.contract.tables import KernelTable
from tensorplug.ops.comparison import (
    EQUAL,
    GREATER,
    GREATER_EQUAL,
    IS_FINITE,
    IS_INF,
    IS_NAN,
    LESS,
    LESS_EQUAL,
    LOGICAL_AND,
    LOGICAL_NOT,
    LOGICAL_OR,
    LOGICAL_XOR,
    NOT_EQUAL,
)
from tensorplug_opencl.kernels import pointwise
from tensorplug_opencl.kernels.pointwise import Formula

if TYPE_CHECKING:
    from tensorplug.contract.spec import KernelSpec

kernels = KernelTable()

EXPRESSIONS: Final[dict[KernelSpec, Formula]] = {
    EQUAL: Formula("a == b"),
    NOT_EQUAL: Formula("a != b"),
    LESS: Formula("a < b"),
    LESS_EQUAL: Formula("a <= b"),
    GREATER: Formula("a > b"),
    GREATER_EQUAL: Formula("a >= b"),
    LOGICAL_AND: Formula("a & b"),
    LOGICAL_OR: Formula("a | b"),
    LOGICAL_XOR: Formula("a ^ b"),
    LOGICAL_NOT: Formula("!x"),
    # The difference is NaN for infinities and NaN, and 0 for all else.
    IS_FINITE: Formula("x - x == 0"),
    IS_INF: Formula("x == x && x - x != 0"),
    IS_NAN: Formula("x != x"),
}
pointwise.register(kernels, EXPRESSIONS)
