"""What formulas of functions share, for numbers, NumPy's arrays and tensors alike."""

from __future__ import annotations

from typing import Any, Final

Coefficients = tuple[float, ...]  # of x**0, x**1, ...
Ratio = tuple[Coefficients, Coefficients]

# A number times 2**k + 1, with half the bits of the dtype behind it (Veltkamp).
_SPLITTERS: Final = {4: 4097.0, 8: 134217729.0}


def polynomial(coefficients: Coefficients, x: Any) -> Any:
    """Return ``coefficients[0] + coefficients[1] * x + ...``, by Horner's scheme."""
    *rest, highest = coefficients
    result: Any = highest
    for coefficient in reversed(rest):
        result = result * x + coefficient
    return result


def ratio(pair: Ratio, x: Any) -> Any:
    """Return the quotient of two polynomials at ``x``; ``pair`` holds the coefficients of both."""
    return polynomial(pair[0], x) / polynomial(pair[1], x)


def high_half(x: Any) -> Any:
    """Return ``x`` rounded to half its bits, so that its square is exact."""
    big = x * _SPLITTERS[x.dtype.itemsize]
    return big - (big - x)
