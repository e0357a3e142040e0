"""Polynomials for approximations of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

__all__ = ["polynomial"]


def polynomial(z: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """Evaluate a polynomial by Horner's scheme; ``coefficients`` begin with the constant."""
    *rest, highest = coefficients
    result = z * 0.0 + highest
    for coefficient in reversed(rest):
        result = result * z + coefficient
    return result
