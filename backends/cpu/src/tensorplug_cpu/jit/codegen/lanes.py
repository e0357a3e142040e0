"""Vectors with the operators of NumPy's arrays: what computes on arrays writes a loop.

A formula that consists of operators, ``astype`` and ``view`` is written once, for arrays, and
called with ``Lanes`` to get its instructions. The results have the same bits, because the
operations are the same, in the same order, none of them contracted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorplug_cpu.jit.codegen.functions import Function

    Value = Any  # of llvmlite


class Lanes:
    """A vector in a function that is being written, with elements of a NumPy dtype.

    The other operand of an operator is a vector, or a number of NumPy's or Python's. A float32
    beside a float64 is converted. Comparisons, of floats, give the conditions of LLVM.
    """

    __array_ufunc__ = None  # NumPy's numbers leave operators to this class

    def __init__(self, f: Function, value: Value, dtype: Any) -> None:
        self.f, self.value, self.dtype = f, value, np.dtype(dtype)

    @property
    def count(self) -> int:
        """The number of elements."""
        return int(self.value.type.count)

    def astype(self, dtype: Any) -> Lanes:
        """Return the elements converted, as NumPy does."""
        old, new = self.dtype, np.dtype(dtype)
        if old == new:
            return self
        build = self.f.builder
        type_ = self.f.vector(self.count, self.f.scalar(new.name))
        if old.kind == "f" and new.kind == "f":
            convert = build.fpext if new.itemsize > old.itemsize else build.fptrunc
        elif new.kind == "f":
            convert = build.sitofp if old.kind == "i" else build.uitofp
        elif old.kind in "iu" and new.kind in "iu":
            wider = build.sext if old.kind == "i" else build.zext
            convert = wider if new.itemsize > old.itemsize else build.trunc
        else:
            raise TypeError(f"no conversion from {old} to {new}")
        return Lanes(self.f, convert(self.value, type_), new)

    def view(self, dtype: Any) -> Lanes:
        """Return the same bits as elements of another dtype of this size."""
        new = np.dtype(dtype)
        type_ = self.f.vector(self.count, self.f.scalar(new.name))
        if type_ == self.value.type:
            return Lanes(self.f, self.value, new)
        return Lanes(self.f, self.f.builder.bitcast(self.value, type_), new)

    def sqrt(self) -> Lanes:
        """Return the square roots, correctly rounded."""
        return Lanes(self.f, self.f.intrinsic("sqrt", self.value), self.dtype)

    def chosen(self, condition: Value, then: Any, otherwise: Any) -> Lanes:
        """Return elements of this dtype: ``then`` where a condition holds, else ``otherwise``."""
        a, b = (self._pair(each)[1].value for each in (then, otherwise))
        return Lanes(self.f, self.f.builder.select(condition, a, b), self.dtype)

    def _pair(self, other: Any) -> tuple[Lanes, Lanes]:
        if isinstance(other, Lanes):
            dtype = np.promote_types(self.dtype, other.dtype)
            return self.astype(dtype), other.astype(dtype)
        number = self.dtype.type(other).item()
        return self, Lanes(self.f, self.f.number(number, self.value.type), self.dtype)

    def _apply(self, other: Any, floating: str, integer: str, *, swapped: bool = False) -> Lanes:
        a, b = self._pair(other)
        if swapped:
            a, b = b, a
        name = floating if a.dtype.kind == "f" else integer
        if not name:
            raise TypeError(f"no such operation on {a.dtype}")
        return Lanes(self.f, getattr(self.f.builder, name)(a.value, b.value), a.dtype)

    def __add__(self, other: Any) -> Lanes:
        return self._apply(other, "fadd", "add")

    __radd__ = __add__

    def __sub__(self, other: Any) -> Lanes:
        return self._apply(other, "fsub", "sub")

    def __rsub__(self, other: Any) -> Lanes:
        return self._apply(other, "fsub", "sub", swapped=True)

    def __mul__(self, other: Any) -> Lanes:
        return self._apply(other, "fmul", "mul")

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Lanes:
        return self._apply(other, "fdiv", "")

    def _compare(self, other: Any, how: str) -> Value:
        return self.f.builder.fcmp_ordered(how, self.value, self._pair(other)[1].value)

    def __lt__(self, other: Any) -> Value:
        return self._compare(other, "<")

    def __gt__(self, other: Any) -> Value:
        return self._compare(other, ">")

    def __ge__(self, other: Any) -> Value:
        return self._compare(other, ">=")

    def __neg__(self) -> Lanes:
        return Lanes(self.f, self.f.builder.fneg(self.value), self.dtype)

    def __and__(self, other: Any) -> Lanes:
        return self._apply(other, "", "and_")

    def __or__(self, other: Any) -> Lanes:
        return self._apply(other, "", "or_")

    def __xor__(self, other: Any) -> Lanes:
        return self._apply(other, "", "xor")

    def __lshift__(self, other: Any) -> Lanes:
        return self._apply(other, "", "shl")

    def __rshift__(self, other: Any) -> Lanes:
        return self._apply(other, "", "lshr" if self.dtype.kind == "u" else "ashr")
