"""What the formulas of special functions share.

A formula is written once, for NumPy's arrays and for tensors alike. ``xp`` holds the functions
that it calls (``abs``, ``exp``, ``floor``, ``log``, ``sin``, ``cos``, ``sqrt``, ``where``): NumPy
itself, or ours. All branches are computed, and ``where`` chooses; what a branch gives outside its
interval does not matter. The dtype is that of the argument, float32 or float64.
"""

from __future__ import annotations

from typing import Any, Final

Coefficients = tuple[float, ...]  # of x**0, x**1, ...
Ratio = tuple[Coefficients, Coefficients]

# A number times 2**k + 1, with half the bits of the dtype behind it (Veltkamp).
_SPLITTERS: Final = {4: 4097.0, 8: 134217729.0}


def polynomial(coefficients: Coefficients, x: Any) -> Any:
    """Evaluate a polynomial by Horner's scheme."""
    *rest, highest = coefficients
    result: Any = highest
    for coefficient in reversed(rest):
        result = result * x + coefficient
    return result


def ratio(pair: Ratio, x: Any) -> Any:
    """Evaluate the quotient of two polynomials."""
    return polynomial(pair[0], x) / polynomial(pair[1], x)


def high_half(x: Any) -> Any:
    """Return ``x`` rounded to half its bits, so that its square is exact."""
    big = x * _SPLITTERS[x.dtype.itemsize]
    return big - (big - x)


def distance_to_whole(xp: Any, size: Any) -> Any:
    """Return ``size`` >= 0 less the nearest whole number: exact, in (-0.5, 0.5]."""
    part = size - xp.floor(size)
    return xp.where(part > 0.5, part - 1.0, part)
