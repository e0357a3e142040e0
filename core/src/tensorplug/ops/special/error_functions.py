"""The complement of the error function. It lives in ``tensorplug.special``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import dispatch_unary

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["erfc"]

ERFC = KernelSpec(
    "Erfc",
    ("x",),
    inference.same,
    accepts=dt.REAL,
    promote=("x",),
    inexact=True,
    expression="erfc",
)


def erfc(x: ArrayLike, /) -> Tensor:
    """Return ``1 - erf(x)`` elementwise, also accurate where it is small.

    Integers become the default float first.

    Raises:
        DTypeError: complex numbers or strings.

    Source: DLMF 7.2.2.

    Examples:
        >>> tp.special.erfc([-np.inf, 0.0, 0.5]).numpy().round(4)
        array([2.    , 1.    , 0.4795], dtype=float32)
        >>> f"{tp.special.erfc(5.0):.4e}"  # 1 - erf(5) is 0 in float32
        '1.5375e-12'

    """
    return dispatch_unary(ERFC, x)
