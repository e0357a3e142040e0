"""Folds: how elements are combined, written once for numbers and for vectors of numbers.

A fold's texts name the type ``A``. In a program that is the type of an element, or, in an inner
scope, a vector of such elements, whose lanes are then folded separately.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug_opencl.codegen import ctypes

if TYPE_CHECKING:
    from tensorplug.plugin import DType


class Fold(NamedTuple):
    """An associative operation with a neutral element.

    ``element`` is the C type in which it is done; ``initial`` the neutral element; ``joined`` the
    expression for ``{a}`` and ``{b}`` together. A ``compensated`` fold is a sum that keeps the
    rounding error of each addition (Knuth's error-free sum), so that the error of a walk of any
    length is about one rounding. An overflow or an infinity makes that error NaN; then the plain
    sum is the result.
    """

    element: str
    initial: str
    joined: str
    compensated: bool = False

    def join(self, a: str, b: str) -> str:
        """Return the expression for the names ``a`` and ``b`` together, each rounding once."""
        return f"({self.joined.format(a=a, b=b)})"

    def declare(self, name: str, ctype: str = "A") -> str:
        """Return the declaration of the initial state ``name``, of ``ctype``."""
        rest = f", {name}_low = ({ctype})(0)" if self.compensated else ""
        return f"{ctype} {name} = ({ctype})({self.initial}){rest};"

    def take(self, name: str, v: str = "v", ctype: str = "A") -> str:
        """Return the statement that takes ``v``, a name, into the state."""
        if not self.compensated:
            return f"{name} = {self.join(name, v)};"
        return (
            f"{{ const {ctype} t = {name} + {v}; const {ctype} z = t - {name}; "
            f"{name}_low += ({name} - (t - z)) + ({v} - z); {name} = t; }}"
        )

    def close(self, name: str) -> str:
        """Return the expression for the state's result."""
        if not self.compensated:
            return name
        # The difference is 0 only for finite numbers; drivers would call a function for isfinite.
        return f"({name}_low - {name}_low == 0 ? {name} + {name}_low : {name})"

    # The state under the name ``acc``, for programs that have one.

    @property
    def state(self) -> str:
        """The declaration of ``acc``."""
        return self.declare("acc")

    @property
    def step(self) -> str:
        """The statement that takes ``v`` into ``acc``."""
        return self.take("acc")

    @property
    def result(self) -> str:
        """The expression for the result of ``acc``."""
        return self.close("acc")


# NaN wins. Comparisons of vectors give masks, which `|` joins as it joins 0 and 1.
_LARGER: Final = "({a} > {b}) | ({a} != {a}) ? {a} : {b}"
_SMALLER: Final = "({a} < {b}) | ({a} != {a}) ? {a} : {b}"


def sum_fold(dtype: DType) -> Fold:
    """Return the fold that adds up, in a dtype in which sums are stored."""
    return Fold(ctypes.ring(dtype), "0", "{a} + {b}", compensated=dtype.kind == "float")


def product_fold(dtype: DType) -> Fold:
    """Return the fold that multiplies, in a dtype in which products are stored."""
    return Fold(ctypes.ring(dtype), "1", "{a} * {b}")


def max_fold(dtype: DType) -> Fold:
    """Return the fold that keeps the largest element, or a NaN."""
    text = _LARGER if dtype.kind == "float" else "max({a}, {b})"
    return Fold(ctypes.computed(dtype), lowest(dtype), text)


def min_fold(dtype: DType) -> Fold:
    """Return the fold that keeps the smallest element, or a NaN."""
    text = _SMALLER if dtype.kind == "float" else "min({a}, {b})"
    return Fold(ctypes.computed(dtype), highest(dtype), text)


def any_fold(_dtype: DType) -> Fold:
    """Return the fold of booleans that is 1 where any of them is."""
    return Fold("uchar", "0", "{a} | {b}")


def all_fold(_dtype: DType) -> Fold:
    """Return the fold of booleans that is 1 where all of them are."""
    return Fold("uchar", "1", "{a} & {b}")


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
