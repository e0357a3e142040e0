"""Hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.elementary import exponentials
from tensorplug.contract.elementary.building import copy_sign

if TYPE_CHECKING:
    from tensorplug.contract.expressions import Expression

__all__ = ["tanh"]


def tanh(x: Expression) -> Expression:
    """Return the hyperbolic tangent."""
    less = exponentials.loss(2.0 * abs(x))
    return copy_sign(less / (less + 2.0), x)
