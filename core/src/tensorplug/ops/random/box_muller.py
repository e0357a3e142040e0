"""Exponential and normal variates from random words: the steps and their constants.

Every step is an addition, a subtraction, a multiplication or, once, a square root and a division
of floats of one precision. The kernels of all backends and the decomposition keep their order. So
the same words give the same bits wherever these operations follow IEEE 754; no library's
logarithm or cosine is involved.

The exponential variate is ``-ln u``. From 32 bits of one word (53 of two) comes an odd integer m
below 2**32 (2**53), and u = m / 2**32: the middle of one of 2**31 cells of (0, 1). With
u = (1 + f) / 2**e and 1 + f in [``LOW``, 2 * ``LOW``)::

    -ln u = e ln 2 - f + f**2 / 2 - f**3 P(f)

f is exact as a sum of two floats, the first two powers have no rounding error, and only a few
hundredths of the result are rounded. The result is a sum of two floats; the second is the
rounding error of the first.

A pair of normal variates is ``r cos a`` and ``r sin a`` with r = sqrt(-2 ln u) and a uniform
angle (Box and Muller, 1958). The angle is drawn by octants: three bits decide whether sine and
cosine are swapped, and their signs. The other bits, an odd integer m below 2**29 (2**50), are the
angle within the octant, b = pi / 4 * m / 2**29. Then with z = b**2::

    sin b = b + b z S(z)        cos b = 1 - z / 2 + z**2 C(z)

r, sin b and cos b are sums of two floats too. The variate is rounded twice, in the product
and in the sum of the small parts, so its error is below 2 units in the last place. The largest
measured error is 1.4, and 0.65 for exponential variates.

P, S and C are minimax polynomials, fitted by the second algorithm of Remez. They add less than
0.02 units in the last place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.dtypes import DType

LOW: Final = 0.70703125  # nearly sqrt(1/2), and 0xB5 / 256


@dataclass(frozen=True, slots=True)
class Precision:
    """The constants for one floating dtype, as numbers of that dtype.

    Attributes:
        dtype: of the steps.
        bits: of m for an exponential variate.
        octant_bits: of m for an angle.
        splitter: ``x * splitter`` splits the bits of x into two halves (Veltkamp).
        ln2: a part with so few bits that its products with e are exact, and the rest.
        quarter_pi: likewise, for products with half a float.
        logarithm: coefficients of P, the constant first.
        sine: of S.
        cosine: of C.

    """

    dtype: DType
    bits: int
    octant_bits: int
    splitter: float
    ln2: tuple[float, float]
    quarter_pi: tuple[float, float]
    logarithm: tuple[float, ...]
    sine: tuple[float, ...]
    cosine: tuple[float, ...]


SINGLE: Final = Precision(
    dtype=dt.float32,
    bits=32,
    octant_bits=29,
    splitter=4097.0,
    ln2=(0.693145751953125, 1.428606765330187e-06),
    quarter_pi=(0.78515625, 0.00024191339616663754),
    logarithm=(
        0.3333331346511841,
        -0.249999538064003,
        0.20002113282680511,
        -0.16670310497283936,
        0.14220108091831207,
        -0.12372665852308273,
        0.11860141903162003,
        -0.11833874136209488,
        0.06972139328718185,
    ),
    sine=(
        -0.1666666716337204,
        0.008333329111337662,
        -0.0001983933470910415,
        2.7183123165741563e-06,
    ),
    cosine=(
        0.04166664555668831,
        -0.001388736767694354,
        2.4438440959784202e-05,
    ),
)

DOUBLE: Final = Precision(
    dtype=dt.float64,
    bits=53,
    octant_bits=50,
    splitter=134217729.0,
    ln2=(0.6931471805599401, 5.2412386838766985e-15),
    quarter_pi=(0.7853981554508209, 7.946627386764098e-09),
    logarithm=(
        0.3333333333333345,
        -0.2500000000000115,
        0.19999999999931634,
        -0.16666666666497462,
        0.14285714295967822,
        -0.12500000014718887,
        0.11111110400722057,
        -0.09999998961838108,
        0.09090936418841947,
        -0.08333383212242047,
        0.07691685107702037,
        -0.07141391995506395,
        0.06674994574103314,
        -0.06275652991391124,
        0.058243405886672595,
        -0.05297604146108268,
        0.0535775933732877,
        -0.06316805187011716,
        0.05874724238090691,
        -0.025458209533651976,
    ),
    sine=(
        -0.16666666666666666,
        0.008333333333333323,
        -0.0001984126984125514,
        2.755731921422799e-06,
        -2.505210492153903e-08,
        1.6058367915943843e-10,
        -7.57876273765749e-13,
    ),
    cosine=(
        0.0416666666666666,
        -0.0013888888888874138,
        2.4801587289491576e-05,
        -2.7557314355164375e-07,
        2.0875723673258616e-09,
        -1.1359669261281692e-11,
    ),
)


def precision(dtype: DType) -> Precision:
    """Return the precision for variates of ``dtype``; float16 is computed in float32."""
    return DOUBLE if dtype is dt.float64 else SINGLE


# The steps below work on NumPy arrays and on tensors.

Pair = tuple[Any, Any]  # a number as the sum of two floats


def exact_sum(a: Any, b: Any) -> Pair:
    """Return a + b and its rounding error, for |a| >= |b| (Dekker)."""
    total = a + b
    return total, b - (total - a)


def halved(precision: Precision, x: Any) -> Pair:
    """Return x rounded to half its bits, and the rest (Veltkamp)."""
    big = x * precision.splitter
    high = big - (big - x)
    return high, x - high


def product(a: Pair, b: Pair) -> Any:
    """Return the product of two numbers as one float."""
    return a[0] * b[0] + (a[0] * b[1] + a[1] * b[0])


def minus_log(precision: Precision, e: Any, f: Any, halves: Pair, rest_of_series: Any) -> Pair:
    """Return ``-ln u`` for ``u = (1 + f) / 2**e``.

    ``halves`` are those of f, and its rounding error; ``rest_of_series`` is ``P(f)``.
    """
    high, low = halves
    curved = low * (high + low * 0.5) - f * f * f * rest_of_series
    total, error = exact_sum(-high, high * high * 0.5)
    total, error2 = exact_sum(total, -low)
    total, error3 = exact_sum(e * precision.ln2[0], total)
    small = ((error + error2) + error3) + (curved + e * precision.ln2[1])
    return exact_sum(total, small)


def root(precision: Precision, minus_log: Pair, sqrt: Callable[[Any], Any]) -> Pair:
    """Return ``sqrt(2 * minus_log)``: the root of the first float and a Newton correction."""
    twice, rest = (part + part for part in minus_log)
    nearly = sqrt(twice)
    high, low = halved(precision, nearly)
    square = nearly * nearly
    error = ((high * high - square) + high * low * 2.0) + low * low
    return nearly, (((twice - square) - error) + rest) / (nearly + nearly)
