"""The sigmoid-weighted linear unit. It lives in ``tensorplug.nn``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import chained, dispatch_unary

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["silu"]

REACH: Final = 1000.0
"""Beyond it the result is 0 or x in every dtype. The cut-off avoids infinity times 0."""

SILU = KernelSpec(
    "Silu", ("x",), inference.same, accepts=dt.REAL, promote=("x",), inexact=True, elementwise=True
)


SILU_GRAD = KernelSpec(
    "SiluGrad",
    ("dy", "x"),
    inference.of_one_shape("dy", "x"),
    accepts=dt.FLOATING,
    promote=("dy", "x"),
    elementwise=True,
)


@chained
def silu(x: ArrayLike, /) -> Tensor:
    """Return ``x * sigmoid(x)`` elementwise, also called swish; integers become floats first.

    At minus infinity it and its derivative are 0; at infinity its derivative is 1.

    Raises:
        DTypeError: complex numbers or strings.

    Source: sigmoid-weighted linear units (Elfwing et al., 2017).

    Examples:
        >>> tp.nn.silu([-np.inf, 0.0, 1.0]).numpy().round(4)
        array([0.    , 0.    , 0.7311], dtype=float32)

    """
    return dispatch_unary(SILU, x)
