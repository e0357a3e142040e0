"""Complex numbers with infinite, NaN or zero parts: the standard's rules.

One line of a table: the classes of the real and the imaginary part, then both parts of the result.
``~`` leaves a sign open; ``cos`` and ``sin`` are those of the imaginary part, times the number.
"""

from __future__ import annotations

import cmath
import math
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.testing import isolated_engine
from tensorplug_conformance.primitives import PRIMITIVES

if TYPE_CHECKING:
    from collections.abc import Iterator

INF, NAN, PI = math.inf, math.nan, math.pi
POSITIVE = (0.5, 1.0, 2.5)
NONZERO = (*POSITIVE, *(-number for number in POSITIVE))
FINITE = (*NONZERO, 0.0, -0.0)
ANY = (*FINITE, INF, -INF, NAN)
CLASSES: dict[str, tuple[float, ...]] = {
    "+0": (0.0,),
    "-0": (-0.0,),
    "0": (0.0, -0.0),
    "1": (1.0,),
    "-1": (-1.0,),
    "+inf": (INF,),
    "-inf": (-INF,),
    "inf": (INF, -INF),
    "nan": (NAN,),
    "positive": POSITIVE,
    "nonzero": NONZERO,
    "finite": FINITE,
    "not 0": (*NONZERO, INF, -INF),
    "any": ANY,
}
NUMBERS = {
    "+0": 0.0,
    "-0": -0.0,
    "1": 1.0,
    "-1": -1.0,
    "+inf": INF,
    "-inf": -INF,
    "nan": NAN,
    "pi": PI,
    "pi/2": PI / 2,
    "pi/4": PI / 4,
    "3pi/4": 3 * PI / 4,
}
LOGARITHM = (
    "finite, +inf: +inf, pi/2; finite, nan: nan, nan; -inf, positive: +inf, pi; "
    "+inf, positive: +inf, +0; -inf, +inf: +inf, 3pi/4; +inf, +inf: +inf, pi/4; "
    "inf, nan: +inf, nan; nan, finite: nan, nan; nan, +inf: +inf, nan; nan, nan: nan, nan"
)
EXPONENTIAL = (
    "finite, +inf: nan, nan; finite, nan: nan, nan; +inf, +0: +inf, +0; "
    "+inf, nonzero: +inf cos, +inf sin; +inf, +inf: ~+inf, nan; +inf, nan: ~+inf, nan; "
    "nan, +0: nan, +0; nan, not 0: nan, nan; nan, nan: nan, nan"
)
TABLES = {
    "acos": (
        "0, +0: pi/2, -0; 0, nan: pi/2, nan; finite, +inf: pi/2, -inf; nonzero, nan: nan, nan; "
        "-inf, positive: pi, -inf; +inf, positive: +0, -inf; -inf, +inf: 3pi/4, -inf; "
        "+inf, +inf: pi/4, -inf; inf, nan: nan, ~+inf; nan, finite: nan, nan; "
        "nan, +inf: nan, -inf; nan, nan: nan, nan"
    ),
    "acosh": (
        "0, +0: +0, pi/2; finite, +inf: +inf, pi/2; nonzero, nan: nan, nan; +0, nan: nan, ~pi/2; "
        "-inf, positive: +inf, pi; +inf, positive: +inf, +0; -inf, +inf: +inf, 3pi/4; "
        "+inf, +inf: +inf, pi/4; inf, nan: +inf, nan; nan, finite: nan, nan; "
        "nan, +inf: +inf, nan; nan, nan: nan, nan"
    ),
    "asinh": (
        "+0, +0: +0, +0; positive, +inf: +inf, pi/2; finite, nan: nan, nan; "
        "+inf, positive: +inf, +0; +inf, +inf: +inf, pi/4; nan, +0: nan, +0; "
        "nan, nonzero: nan, nan; nan, +inf: ~+inf, nan; nan, nan: nan, nan"
    ),
    "atanh": (
        "+0, +0: +0, +0; +0, nan: +0, nan; 1, +0: +inf, +0; positive, +inf: +0, pi/2; "
        "nonzero, nan: nan, nan; +inf, positive: +0, pi/2; +inf, +inf: +0, pi/2; "
        "+inf, nan: +0, nan; nan, finite: nan, nan; nan, +inf: ~+0, pi/2; nan, nan: nan, nan"
    ),
    "cosh": (
        "+0, +0: 1, +0; +0, +inf: nan, ~+0; +0, nan: nan, ~+0; nonzero, +inf: nan, nan; "
        "nonzero, nan: nan, nan; +inf, +0: +inf, +0; +inf, nonzero: +inf cos, +inf sin; "
        "+inf, +inf: ~+inf, nan; +inf, nan: +inf, nan; nan, 0: nan, ~+0; "
        "nan, nonzero: nan, nan; nan, nan: nan, nan"
    ),
    "exp": (
        f"{EXPONENTIAL}; 0, +0: 1, +0; -inf, finite: +0 cos, +0 sin; -inf, +inf: ~+0, ~+0; "
        "-inf, nan: ~+0, ~+0"
    ),
    "expm1": (
        f"{EXPONENTIAL}; 0, +0: ~+0, +0; -inf, finite: -1, +0 sin; -inf, +inf: -1, ~+0; "
        "-inf, nan: -1, ~+0"
    ),
    "log": f"{LOGARITHM}; -0, +0: -inf, pi; +0, +0: -inf, +0",
    "log1p": f"{LOGARITHM}; -1, +0: -inf, +0",
    "sign": "0, 0: ~+0, ~+0; nan, any: nan, nan; any, nan: nan, nan",
    "sinh": (
        "+0, +0: +0, +0; +0, +inf: ~+0, nan; +0, nan: ~+0, nan; positive, +inf: nan, nan; "
        "positive, nan: nan, nan; +inf, +0: +inf, +0; +inf, positive: +inf cos, +inf sin; "
        "+inf, +inf: ~+inf, nan; +inf, nan: ~+inf, nan; nan, +0: nan, +0; "
        "nan, nonzero: nan, nan; nan, nan: nan, nan"
    ),
    "sqrt": (  # beside a positive part, as in C; the standard's text exchanges -inf and +inf
        "0, +0: +0, +0; any, +inf: +inf, +inf; finite, nan: nan, nan; -inf, positive: +0, +inf; "
        "+inf, positive: +inf, +0; -inf, nan: nan, ~+inf; +inf, nan: +inf, nan; "
        "nan, finite: nan, nan; nan, nan: nan, nan"
    ),
    "tanh": (
        "+0, +0: +0, +0; nonzero, +inf: nan, nan; +0, +inf: +0, nan; nonzero, nan: nan, nan; "
        "+0, nan: +0, nan; +inf, positive: 1, ~+0; +inf, +inf: 1, ~+0; +inf, nan: 1, ~+0; "
        "nan, +0: nan, +0; nan, nonzero: nan, nan; nan, nan: nan, nan"
    ),
}


@pytest.fixture(scope="module", params=["native", "decomposed"], autouse=True)
def form(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run with the native kernels, and then with the primitives alone."""
    with isolated_engine("cpu"):
        if request.param == "decomposed":
            for name in tp.kernels_for("cpu"):
                if name not in PRIMITIVES:
                    tp.unregister_kernel(name, "cpu")
        yield request.param


Line = tuple[complex, tuple[str, str]]


def lines(text: str) -> list[Line]:
    found: list[Line] = []
    for line in text.split("; "):
        (real, imaginary), (one, other) = (half.split(", ") for half in line.split(": "))
        pairs = product(CLASSES[real], CLASSES[imaginary])
        found += [(complex(*pair), (one, other)) for pair in pairs]
    return found


def agrees(text: str, angle: float, found: float) -> bool:
    """Return whether a part of a result is as the table says."""
    number, _, function = text.removeprefix("~").partition(" ")
    wanted = NUMBERS[number] * (getattr(math, function)(angle) if function else 1.0)
    if text.startswith("~"):
        found = abs(found)
    if math.isnan(wanted):
        return math.isnan(found)
    if wanted == 0.0:
        return found == 0.0 and math.copysign(1.0, found) == math.copysign(1.0, wanted)
    return math.isclose(found, wanted, rel_tol=1e-6)


@pytest.mark.parametrize("dtype", [tp.complex64, tp.complex128], ids=str)
@pytest.mark.parametrize("name", TABLES)
def test_special_cases(name: str, dtype: tp.DType) -> None:
    table = lines(TABLES[name])
    x = tp.asarray(np.asarray([number for number, _ in table], dtype.numpy))
    results = np.asarray(getattr(tp, name)(x)).tolist()
    assert [
        (number, wanted, found)
        for (number, wanted), found in zip(table, results, strict=True)
        if not agrees(wanted[0], number.imag, found.real)
        or not agrees(wanted[1], number.imag, found.imag)
    ] == []


EVERY = [complex(*pair) for pair in product(ANY, ANY)]


def same(one: complex, other: complex) -> bool:
    """Return whether both are equal within rounding, or infinite or NaN in the same parts."""
    if cmath.isinf(one) or cmath.isinf(other):
        return cmath.isinf(one) and cmath.isinf(other)
    return bool(np.allclose([one.real, one.imag], [other.real, other.imag], equal_nan=True))


@pytest.mark.parametrize("dtype", [tp.complex64, tp.complex128], ids=str)
@pytest.mark.parametrize(
    ("name", "other"), [("asin", "asinh"), ("atan", "atanh"), ("sin", "sinh"), ("tan", "tanh")]
)
def test_as_if_by_the_hyperbolic_function(name: str, other: str, dtype: tp.DType) -> None:
    turned = [complex(-number.imag, number.real) for number in EVERY]  # j times each, part by part
    direct = np.asarray(getattr(tp, name)(tp.asarray(np.asarray(EVERY, dtype.numpy)))).tolist()
    hyper = np.asarray(getattr(tp, other)(tp.asarray(np.asarray(turned, dtype.numpy)))).tolist()
    back = [complex(number.imag, -number.real) for number in hyper]
    pairs = zip(EVERY, direct, back, strict=True)
    assert [(x, one, two) for x, one, two in pairs if not same(one, two)] == []


@pytest.mark.parametrize("dtype", [tp.complex64, tp.complex128], ids=str)
def test_abs_is_hypot_and_predicates_ask_both_parts(dtype: tp.DType) -> None:
    x = tp.asarray(np.asarray(EVERY, dtype.numpy))
    moduli = [math.hypot(number.real, number.imag) for number in EVERY]
    assert np.allclose(np.asarray(tp.abs(x)), moduli, rtol=1e-6, equal_nan=True)
    for name in ("isfinite", "isinf", "isnan"):
        wanted = [getattr(cmath, name)(number) for number in EVERY]
        assert np.array_equal(getattr(tp, name)(x), wanted), name
