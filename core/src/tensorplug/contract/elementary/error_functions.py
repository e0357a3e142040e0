"""The error function and its complement.

erfc(x) = exp(-x**2) P(x) / Q(x) for x >= 0; no coefficient is negative, so that nothing cancels.
In float32, erf(x) = 1 - exp(-x E(x)) up to where it rounds to 1: E(x) is -log(erfc(x)) / x. In
float64, it is x N(x**2) up to 1/2, and 1 - erfc(x) above. All coefficients minimize the largest
relative error of the result (reweighted least squares at Chebyshev's points): 5.8e-9 of erfc and
4.0e-9 of erf in float32, 9.8e-19 of erfc and 3.9e-18 of erf near 0 in float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.contract import dtypes as dt
from tensorplug.contract.elementary import exponentials
from tensorplug.contract.elementary.building import copy_sign, limited, polynomial, split
from tensorplug.contract.expressions import where

if TYPE_CHECKING:
    from tensorplug.contract.expressions import Expression

__all__ = ["erf", "erfc"]

_ERF: Final = (  # E
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
_ERF_NEAR_0: Final = (  # N
    1.1283791670955125695,
    -0.3761263890318346707,
    0.11283791670924812373,
    -0.026866170632715670232,
    0.0052239773703246098673,
    -0.00085482975242549712399,
    0.00012053324307400211342,
    -0.000014845583592281303422,
    1.4723213955832270655e-6,
)
_ERFC_END: Final = {dt.float32: 10.1, dt.float64: 27.4}  # beyond, erfc rounds to 0
_ERFC: Final = {  # P and Q
    dt.float32: (
        (1.00000000565, 1.23826760878, 0.731438171872, 0.229132856548, 0.0327755920637),
        (1.0, 2.36664733665, 2.40190458766, 1.32505567023, 0.406153828469, 0.058092525403),
    ),
    dt.float64: (
        (
            1.0,
            2.3413745452167249649,
            2.7176647500677214946,
            2.0206078959135401934,
            1.0557879086065535096,
            0.40325563616472026001,
            0.11386960320135745033,
            0.023502186428737837839,
            0.003406210182831902073,
            0.00031524497866405835556,
            0.000014323328618119858449,
        ),
        (
            1.0,
            3.4697537123122378259,
            5.6328625539931519204,
            5.659111718703587379,
            3.9186809915448120995,
            1.9692626705978947026,
            0.73530089941265896813,
            0.20483459805026767828,
            0.041935919431834072542,
            0.0060500440749647135544,
            0.00055875717641271017366,
            0.000025387438966965791265,
        ),
    ),
}


def erf(x: Expression) -> Expression:
    """Return the error function."""
    if x.dtype is dt.float32:
        size = limited(abs(x), high=_ERF_END)
        return copy_sign(exponentials.loss(size * polynomial(_ERF, size)), x)
    near = x * polynomial(_ERF_NEAR_0, x * x)
    far = 1.0 - _erfc_of_positive(abs(x))
    return where(abs(x) < 0.5, near, copy_sign(far, x))


def erfc(x: Expression) -> Expression:
    """Return 1 - erf(x), with its digits also where it is small."""
    result = _erfc_of_positive(abs(x))
    return where(x < 0.0, 2.0 - result, result)


def _erfc_of_positive(x: Expression) -> Expression:
    size = limited(x, high=_ERFC_END[x.dtype])
    head, tail = split(size)
    # The square in two parts, the first of which is exact.
    power = exponentials.exp_of_sum(-(head * head), -(tail * (size + head)))
    above, below = _ERFC[x.dtype]
    return power * (polynomial(above, size) / polynomial(below, size))
