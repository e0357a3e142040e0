"""The two forms of a complex derivative, and their conversion (docs/adr/0018).

The cotangent of z = x + iy on the tape is dL/dx - i dL/dy, so that the rule of a holomorphic
function is that of the real one. The gradient of a real loss L is dL/dx + i dL/dy, the direction
of steepest ascent. Each is the conjugate of the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.errors import DTypeError
from tensorplug.ops.elementwise.complexes import conj

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor


def conjugate(derivative: Tensor) -> Tensor:
    """Convert a cotangent on the tape to a gradient, or the reverse."""
    return conj(derivative) if derivative._placement.type.dtype in dt.COMPLEX else derivative


def check_real_loss(y: Tensor, who: str) -> None:
    """Check that ``y`` is not complex: such a result has no direction of steepest ascent.

    Raises:
        DTypeError: it is complex.

    """
    if y._placement.type.dtype in dt.COMPLEX:
        raise DTypeError(
            f"{who}: the result must be real, got {y.type}; return its real part, its imaginary "
            "part or its abs, or, for the derivative of a holomorphic function, set "
            "holomorphic=True"
        )


def check_holomorphic_result(y: Tensor, who: str) -> None:
    """Check that the result of a function with ``holomorphic=True`` is complex.

    Raises:
        DTypeError: it is not complex.

    """
    if y.dtype not in dt.COMPLEX:
        raise DTypeError(
            f"{who}: with holomorphic=True the result must be complex, got {y.type}; omit "
            "holomorphic=True for the gradient of a real loss"
        )
