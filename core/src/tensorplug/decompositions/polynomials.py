"""Polynomials, of which the approximations of functions are made."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

__all__ = ["polynomial"]


def polynomial(z: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """Return the value by Horner's scheme; ``coefficients`` start with the constant."""
    *rest, highest = coefficients
    result = z * 0.0 + highest
    for coefficient in reversed(rest):
        result = result * z + coefficient
    return result
