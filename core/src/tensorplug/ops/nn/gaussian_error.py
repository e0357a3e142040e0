"""The Gaussian error linear unit. It lives in ``tensorplug.nn``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.contract import attributes, inference
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import chained, dispatch

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["gelu"]

REACH: Final = 40.0
"""Beyond it the result is 0 or x in every dtype. The cut-off avoids infinity times 0."""

CUBIC: Final = 0.044715
"""The cubic coefficient of the tanh approximation, from the paper."""

_ATTRIBUTES = {"approximate": attributes.flag(default=False)}


GELU = KernelSpec(
    "Gelu",
    ("x",),
    inference.same,
    attributes=_ATTRIBUTES,
    accepts=dt.REAL,
    promote=("x",),
    inexact=True,
    elementwise=True,
)
GELU_GRAD = KernelSpec(
    "GeluGrad",
    ("dy", "x"),
    inference.of_one_shape("dy", "x"),
    attributes=_ATTRIBUTES,
    accepts=dt.FLOATING,
    promote=("dy", "x"),
    elementwise=True,
)


@chained
def gelu(x: ArrayLike, /, *, approximate: bool = False) -> Tensor:
    """Return ``x`` times the probability that a standard normal variable is below ``x``.

    It is ``x / 2 * (1 + erf(x / sqrt(2)))``. With ``approximate`` it is
    ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``. Integers become floats first.
    At minus infinity it is 0.

    Source: Gaussian error linear units (Hendrycks and Gimpel, 2016).

    Raises:
        DTypeError: complex numbers or strings.

    Examples:
        >>> tp.nn.gelu([-1.0, 0.0, 1.0]).numpy().round(4)
        array([-0.1587,  0.    ,  0.8413], dtype=float32)
        >>> tp.nn.gelu([-1.0, 0.0, 1.0], approximate=True).numpy().round(4)
        array([-0.1588,  0.    ,  0.8412], dtype=float32)

    """
    return dispatch(GELU, x, approximate=approximate)
