"""Sums: how elements are combined, written once for numbers and for vectors of numbers.

A fold's texts name the type ``A``. In a program that is the type of an element, or, in an inner
scope, a vector of such elements, whose lanes are then folded separately.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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


def sum_fold(dtype: DType) -> Fold:
    """Return the fold that adds up, in a dtype in which sums are stored."""
    return Fold(ctypes.ring(dtype), "0", "{a} + {b}", compensated=dtype.kind == "float")
