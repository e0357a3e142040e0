"""Bessel functions of orders 0 and 1.

The rational functions and polynomials are our own. Each interpolates at Chebyshev nodes of its
interval, in arithmetic of 50 digits, and is accurate to 1e-16. The modified functions are scaled
by exp(-|x|). The others have their first two zeros as factors up to 5; above, they are Hankel's
expansion (DLMF 10.17.3) with rational functions instead of its series.
"""

from __future__ import annotations

import math
from typing import Any, Final

from tensorplug.algorithms import polynomial, ratio

Coefficients = tuple[float, ...]  # of x**0, x**1, ...
Ratio = tuple[Coefficients, Coefficients]

# i0(x) for (x / 16)**2, |x| <= 16
_I0_NEAR: Final = (
    (
        1.0,
        63.178769281866295,
        971.7457224028803,
        6460.25942485732,
        23454.713598636485,
        52796.16966594011,
        79727.04120258494,
        85140.14421511647,
        66687.43490847111,
        39290.81427464074,
        17700.169541249077,
        6147.264773090925,
        1644.7843769985595,
        334.73775717582566,
        50.117629681946276,
        5.10297206792867,
        0.2825858276239843,
    ),
    (
        1.0,
        -0.8212307181337049,
        0.30448836343745056,
        -0.0653528115412591,
        0.008577038550994738,
        -0.0006534857989101876,
        2.260432093679517e-05,
    ),
)
# sqrt(x) i0e(x) for 16 / x, x >= 16
_I0_FAR: Final = (
    0.3989422804014327,
    0.003116736565636399,
    0.00010957276987231283,
    7.1336442107905814e-06,
    6.827075631368385e-07,
    8.644058274754524e-08,
    1.343795989727832e-08,
    3.161197779013516e-09,
    -8.154333383549735e-10,
    2.355833669527929e-09,
    -2.3786907051233995e-09,
    1.7364798194964476e-09,
    -7.242194620036617e-10,
    1.425823515515954e-10,
)
# i1(x) / x for (x / 16)**2, |x| <= 16
_I1_NEAR: Final = (
    (
        0.5,
        15.52786547780295,
        155.76882702534644,
        755.7438991230615,
        2123.211426203636,
        3827.1029884696554,
        4725.325427980769,
        4177.502385726156,
        2726.524846863229,
        1341.0842597098524,
        503.27468731928036,
        144.71707024946923,
        31.72592129885266,
        5.206940108189108,
        0.6140547158311551,
        0.04749381998585727,
        0.001868869248919899,
    ),
    (
        1.0,
        -0.9442690443941011,
        0.4209301379707538,
        -0.11591012686568382,
        0.02160307884079181,
        -0.0027952190024743925,
        0.0002455718460088121,
        -1.3410655591156676e-05,
        3.488899060610294e-07,
    ),
)
# sqrt(x) i1e(x) for 16 / x, x >= 16
_I1_FAR: Final = (
    0.3989422804014327,
    -0.009350209696908798,
    -0.00018262128312859427,
    -9.987101780562209e-06,
    -8.77767866597597e-07,
    -1.0564397457529047e-07,
    -1.5902515231481142e-08,
    -3.59192824391819e-09,
    8.226952090061224e-10,
    -2.5040070733139414e-09,
    2.517149808717535e-09,
    -1.8386600301514661e-09,
    7.66271830201782e-10,
    -1.5090749072371809e-10,
)
# j0(x) without its first two zeros, for x**2, |x| <= 5
_J0_NEAR: Final = (
    0.005674693325155617,
    -0.00025120235414943397,
    4.784356140904163e-06,
    -5.317886335202576e-08,
    3.935827378974691e-10,
    -2.0931214084068986e-12,
    8.413184775762446e-15,
    -2.6504977669610348e-17,
    6.72768839420786e-20,
    -1.4048419907288446e-22,
    2.422940453295708e-25,
    -3.027341846156215e-28,
)
# j1(x) / x without its first two zeros, for x**2, |x| <= 5
_J1_NEAR: Final = (
    0.0006919228366408253,
    -2.530477407973052e-05,
    4.0859145336524104e-07,
    -3.929471053740682e-09,
    2.557633445162873e-11,
    -1.2121603955634093e-13,
    4.389759631294681e-16,
    -1.257470262923774e-18,
    2.924810096966701e-21,
    -5.634791037496399e-24,
    9.032726597645911e-27,
    -1.0631969736944809e-29,
)
# P of j0 for 1 / x**2, x >= 5
_J0_COSINE: Final = (
    (
        1.0,
        170.06669296677524,
        9648.285465411383,
        228643.9038183456,
        2322403.9788176185,
        9300222.261096548,
        11570089.581262175,
        2187583.17860576,
    ),
    (
        1.0,
        170.1370054667752,
        9660.136071508734,
        229304.623414842,
        2337534.885278938,
        9443470.21512831,
        12060208.289659526,
        2585976.923447634,
    ),
)
# x Q of j0 for 1 / x**2, x >= 5
_J0_SINE: Final = (
    (
        -0.125,
        -31.164453616313253,
        -2745.0284935241525,
        -109036.90444113498,
        -2068719.9999130121,
        -18288316.089392446,
        -67770606.44367477,
        -81196661.31408215,
        -13425659.411828032,
    ),
    (
        1.0,
        249.9015664305059,
        22104.837783260245,
        884807.0735743442,
        17031299.210171822,
        154939429.26459518,
        610880557.0773536,
        856482517.8932024,
        260119567.45813867,
    ),
)
# P of j1 for 1 / x**2, x >= 5
_J1_COSINE: Final = (
    (
        1.0,
        167.82410360562335,
        9369.546707370198,
        217737.54661212288,
        2159709.829475858,
        8417289.323963562,
        10275315.022363745,
        2164358.3642413733,
    ),
    (
        1.0,
        167.7069161056234,
        9350.037748695626,
        216665.34506305525,
        2135561.007868095,
        8192977.177612853,
        9523815.66057205,
        1566213.9274547955,
    ),
)
# x Q of j1 for 1 / x**2, x >= 5
_J1_SINE: Final = (
    (
        0.375,
        92.60566842970898,
        8068.7089569001855,
        316592.5767691643,
        5926228.6506792735,
        51683181.27667859,
        189681934.96706444,
        229830232.12424368,
        45028818.51637732,
    ),
    (
        1.0,
        247.22188664589058,
        21583.416749172928,
        849970.908392141,
        16020955.78276455,
        141671780.55061227,
        535993808.6580282,
        702107650.3535845,
        184345527.27684456,
    ),
)
# The zeros below 8: what float32 holds of each, and the rest.
_J0_ZEROS: Final = (
    (2.404825448989868, 1.0870590460455913e-07),
    (5.520078182220459, -7.19341483347784e-08),
)
_J1_ZEROS: Final = (
    (3.8317060470581055, -7.685059315313556e-08),
    (7.015586853027344, -1.8321172499646294e-07),
)


def i0e(xp: Any, x: Any) -> Any:
    """Return ``exp(-|x|) i0(x)``."""
    return _modified(xp, xp.abs(x), _I0_NEAR, _I0_FAR)


def i1e(xp: Any, x: Any) -> Any:
    """Return ``exp(-|x|) i1(x)``."""
    size = xp.abs(x)
    scaled = size * 0.0625
    near = x * (xp.exp(-size) * ratio(_I1_NEAR, scaled * scaled))
    far = _far(xp, size, _I1_FAR)
    return xp.where(size < 16.0, near, xp.where(x < 0.0, -far, far))


def _modified(xp: Any, size: Any, near: Ratio, far: Coefficients) -> Any:
    scaled = size * 0.0625
    return xp.where(size < 16.0, xp.exp(-size) * ratio(near, scaled * scaled), _far(xp, size, far))


def _far(xp: Any, size: Any, coefficients: Coefficients) -> Any:
    return polynomial(coefficients, 16.0 / size) / xp.sqrt(size)


def j0(xp: Any, x: Any) -> Any:
    """Return the Bessel function of the first kind and order 0."""
    size = xp.abs(x)
    near = _without_zeros(size, _J0_ZEROS) * polynomial(_J0_NEAR, size * size)
    w = 1.0 / (size * size)
    cosine, sine = xp.cos(size), xp.sin(size)
    even, odd = ratio(_J0_COSINE, w), ratio(_J0_SINE, w) / size
    wave = even * (cosine + sine) + odd * (cosine - sine)
    return _joined(xp, size, near, wave)


def j1(xp: Any, x: Any) -> Any:
    """Return the Bessel function of the first kind and order 1."""
    size = xp.abs(x)
    near = size * _without_zeros(size, _J1_ZEROS) * polynomial(_J1_NEAR, size * size)
    w = 1.0 / (size * size)
    cosine, sine = xp.cos(size), xp.sin(size)
    even, odd = ratio(_J1_COSINE, w), ratio(_J1_SINE, w) / size
    wave = even * (sine - cosine) + odd * (sine + cosine)
    found = _joined(xp, size, near, wave)
    return xp.where(x < 0.0, -found, found)


def _without_zeros(size: Any, zeros: tuple[tuple[float, float], ...]) -> Any:
    product: Any = 1.0
    for high, low in zeros:
        product = product * (((size - high) - low) * (size + (high + low)))
    return product


def _joined(xp: Any, size: Any, near: Any, wave: Any) -> Any:
    far = xp.where(size == math.inf, 0.0, wave / xp.sqrt(size)) * math.sqrt(1.0 / math.pi)
    return xp.where(size < 5.0, near, far)
