"""The parts of complex numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["imag"]


def imag(input: NDArray[Any]) -> NDArray[Any]:
    """Return the imaginary part, which is 0 for real numbers."""
    return np.array(input.imag)
