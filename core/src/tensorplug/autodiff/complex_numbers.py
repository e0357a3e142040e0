"""The two forms of a complex derivative, and where one becomes the other (docs/adr/0018).

What flows back over the tape to z = x + iy is dL/dx - i dL/dy: with that the rule of a
holomorphic function reads as that of the real one. The gradient of a real loss L is
dL/dx + i dL/dy: the direction in which L grows fastest. Each is the other's conjugate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.errors import DTypeError
from tensorplug.ops.complexes import conj

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

__all__ = ["check_holomorphic_result", "check_real_loss", "conjugated"]


def conjugated(derivative: Tensor) -> Tensor:
    """Return a gradient for what flows on the tape, or the other way round."""
    return conj(derivative) if derivative.dtype in dt.COMPLEX else derivative


def check_real_loss(y: Tensor, who: str) -> None:
    """Check that ``y`` is no complex number, which has no direction of fastest growth.

    Raises:
        DTypeError: it is.

    """
    if y.dtype in dt.COMPLEX:
        raise DTypeError(
            f"{who}: the result is {y.type}, but only a real one grows in some direction; return "
            "its real part, its imaginary part or its abs, or, for the derivative of a "
            "holomorphic function, say holomorphic=True"
        )


def check_holomorphic_result(y: Tensor, who: str) -> None:
    """Check that a function that is said to be holomorphic gave a complex number.

    Raises:
        DTypeError: it did not.

    """
    if y.dtype not in dt.COMPLEX:
        raise DTypeError(
            f"{who}: with holomorphic=True the result must be complex, but is {y.type}; a real "
            "one is a loss, whose gradient needs no holomorphic=True"
        )
