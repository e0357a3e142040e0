"""The error function and its complement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.contract import dtypes as dt
from tensorplug.contract.elementary import exponentials
from tensorplug.contract.elementary.building import copy_sign, limited, polynomial

if TYPE_CHECKING:
    from tensorplug.contract.expressions import Expression

__all__ = ["erf"]

# In float32, erf(x) = 1 - exp(-x P(x)) up to where it rounds to 1: P(x) is -log(erfc(x)) / x. The
# largest relative error of erf is 4e-9 (reweighted least squares at Chebyshev's points).
_ERF: Final = (
    1.12837917164,
    0.636619382589,
    0.10277783002,
    -0.0191530904538,
    -0.000160293359542,
    0.00166687515184,
    -0.000632729623925,
    0.000117605486762,
    -9.25172714173e-6,
)
_ERF_END: Final = 3.95


def erf(x: Expression) -> Expression:
    """Return the error function."""
    assert x.dtype is dt.float32
    size = limited(abs(x), high=_ERF_END)
    return copy_sign(exponentials.loss(size * polynomial(_ERF, size)), x)
