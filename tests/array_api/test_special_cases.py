"""Infinities, signed zeros and NaN: the standard's rules, function by function.

One line of a table is one case: the class of each operand, then the result. Classes stand for
several numbers; ``x1`` and ``x2`` are operands themselves, ``+`` and ``-`` a sign alone.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import tensorplug as tp

INF, NAN, PI = math.inf, math.nan, math.pi
POSITIVE = (1e-30, 0.5, 1.0, 2.0, 3.0, 1e30)
NEGATIVE = tuple(-number for number in POSITIVE)
CLASSES: dict[str, tuple[float, ...]] = {
    "nan": (NAN,),
    "+inf": (INF,),
    "-inf": (-INF,),
    "inf": (INF, -INF),
    "+0": (0.0,),
    "-0": (-0.0,),
    "0": (0.0, -0.0),
    "1": (1.0,),
    "-1": (-1.0,),
    "one": (1.0, -1.0),
    "positive": POSITIVE,
    "negative": NEGATIVE,
    "nonzero": POSITIVE + NEGATIVE,
    "finite": (*POSITIVE, *NEGATIVE, 0.0, -0.0),
    "above": (*POSITIVE, INF),
    "below": (*NEGATIVE, -INF),
    ">1": (1.5, 1e30, INF),
    "<1": (0.5, 0.0, -3.0, -INF),
    "<-1": (-1.5, -1e30, -INF),
    "big": (1.5, -2.0, 1e30, INF, -INF),
    "small": (0.5, -0.5, 0.0, -0.0),
    "not 1": (0.0, -1.0, 0.5, INF, -INF, NAN),
    "not nan": (*POSITIVE, *NEGATIVE, 0.0, -0.0, INF, -INF),
    "any": (*POSITIVE, *NEGATIVE, 0.0, -0.0, INF, -INF, NAN),
    "odd": (1.0, 3.0, 7.0),
    "-odd": (-1.0, -3.0, -7.0),
    "no odd": (0.5, 2.0, 4.0, 2.5, INF),
    "-no odd": (-0.5, -2.0, -4.0, -INF),
    "fraction": (0.5, -0.5, 2.5, 1e-30),
    "integer": (1.0, -2.0, 1e30, 7.0),
}
RESULTS = {
    "nan": NAN,
    "+inf": INF,
    "-inf": -INF,
    "+0": 0.0,
    "-0": -0.0,
    "1": 1.0,
    "-1": -1.0,
    "pi": PI,
    "-pi": -PI,
    "pi/2": PI / 2,
    "-pi/2": -PI / 2,
    "pi/4": PI / 4,
    "-pi/4": -PI / 4,
    "3pi/4": 3 * PI / 4,
    "-3pi/4": -3 * PI / 4,
    "true": 1.0,
    "false": 0.0,
}
ZEROS_AND_NAN = "nan: nan; +0: +0; -0: -0"
ROUNDING = f"{ZEROS_AND_NAN}; +inf: +inf; -inf: -inf; integer: x1"
LOGARITHM = "nan: nan; below: nan; 0: -inf; 1: +0; +inf: +inf"
UNARY = {
    "abs": "nan: nan; -0: +0; -inf: +inf; negative: +; positive: x1",
    "acos": "nan: nan; >1: nan; <-1: nan; 1: +0",
    "acosh": "nan: nan; <1: nan; 1: +0; +inf: +inf",
    "asin": f"{ZEROS_AND_NAN}; >1: nan; <-1: nan",
    "asinh": f"{ZEROS_AND_NAN}; +inf: +inf; -inf: -inf",
    "atan": f"{ZEROS_AND_NAN}; +inf: pi/2; -inf: -pi/2",
    "atanh": f"{ZEROS_AND_NAN}; <-1: nan; >1: nan; -1: -inf; 1: +inf",
    "ceil": ROUNDING,
    "cos": "nan: nan; 0: 1; inf: nan",
    "cosh": "nan: nan; 0: 1; inf: +inf",
    "exp": "nan: nan; 0: 1; +inf: +inf; -inf: +0",
    "expm1": f"{ZEROS_AND_NAN}; +inf: +inf; -inf: -1",
    "floor": ROUNDING,
    "isfinite": "nan: false; inf: false; finite: true",
    "isinf": "nan: false; inf: true; finite: false",
    "isnan": "nan: true; inf: false; finite: false",
    "log": LOGARITHM,
    "log1p": f"{ZEROS_AND_NAN}; <-1: nan; -1: -inf; +inf: +inf",
    "log2": LOGARITHM,
    "log10": LOGARITHM,
    "reciprocal": "nan: nan; +0: +inf; -0: -inf; +inf: +0; -inf: -0",
    "round": ROUNDING,
    "sign": "nan: nan; below: -1; above: 1",
    "signbit": "+0: false; -0: true; above: false; below: true",
    "sin": f"{ZEROS_AND_NAN}; inf: nan",
    "sinh": f"{ZEROS_AND_NAN}; +inf: +inf; -inf: -inf",
    "square": "nan: nan; 0: +0; inf: +inf",
    "sqrt": f"{ZEROS_AND_NAN}; below: nan; +inf: +inf",
    "tan": f"{ZEROS_AND_NAN}; inf: nan",
    "tanh": f"{ZEROS_AND_NAN}; +inf: 1; -inf: -1",
    "trunc": ROUNDING,
}
EITHER_NAN = "nan, any: nan; any, nan: nan"
SUM = (
    f"{EITHER_NAN}; +inf, +inf: +inf; -inf, -inf: -inf; finite, +inf: +inf; finite, -inf: -inf; "
    "+inf, finite: +inf; -inf, finite: -inf; -0, -0: -0; -0, +0: +0; +0, 0: +0; "
    "0, nonzero: x2; nonzero, 0: x1"
)
ZERO_BY = "0, 0: nan; +0, above: +0; -0, below: +0; -0, above: -0; +0, below: -0"
QUOTIENT = (
    f"{EITHER_NAN}; inf, inf: nan; {ZERO_BY}; above, +0: +inf; above, -0: -inf; below, +0: -inf; "
    "below, -0: +inf; +inf, positive: +inf; +inf, negative: -inf; -inf, positive: -inf; "
    "-inf, negative: +inf; positive, +inf: +0; negative, -inf: +0; positive, positive: +; "
    "negative, negative: +; positive, negative: -; negative, positive: -"
)
BINARY = {
    "add": f"{SUM}; +inf, -inf: nan; -inf, +inf: nan",
    "atan2": (
        f"{EITHER_NAN}; above, 0: pi/2; +0, above: +0; +0, +0: +0; +0, -0: pi; +0, below: pi; "
        "-0, above: -0; -0, +0: -0; -0, -0: -pi; -0, below: -pi; below, 0: -pi/2; "
        "positive, +inf: +0; positive, -inf: pi; negative, +inf: -0; negative, -inf: -pi; "
        "+inf, finite: pi/2; -inf, finite: -pi/2; +inf, +inf: pi/4; +inf, -inf: 3pi/4; "
        "-inf, +inf: -pi/4; -inf, -inf: -3pi/4"
    ),
    "copysign": "not nan, above: +; not nan, below: -; not nan, +0: +; not nan, -0: -",
    "divide": f"{QUOTIENT}; positive, -inf: -0; negative, +inf: -0",
    "equal": "nan, any: false; any, nan: false; +inf, +inf: true; -inf, -inf: true; 0, 0: true",
    "floor_divide": QUOTIENT,
    "hypot": "inf, any: +inf; any, inf: +inf; finite, nan: nan; nan, finite: nan; +0, -0: +0",
    "logaddexp": f"{EITHER_NAN}; +inf, not nan: +inf; not nan, +inf: +inf; -inf, -inf: -inf",
    "maximum": f"{EITHER_NAN}; +inf, not nan: +inf; -inf, not nan: x2",
    "minimum": f"{EITHER_NAN}; -inf, not nan: -inf; +inf, not nan: x2",
    "multiply": (
        f"{EITHER_NAN}; inf, 0: nan; 0, inf: nan; +inf, above: +inf; +inf, below: -inf; "
        "-inf, above: -inf; -inf, below: +inf; nonzero, +inf: inf of x1; positive, positive: +; "
        "negative, negative: +; positive, negative: -; negative, positive: -; -0, positive: -0"
    ),
    "nextafter": f"{EITHER_NAN}; -0, +0: +0; +0, -0: -0",
    "not_equal": "nan, any: true; any, nan: true; +inf, -inf: true; -inf, +inf: true; 0, 0: false",
    "pow": (
        "not 1, nan: nan; any, 0: 1; nan, above: nan; nan, below: nan; big, +inf: +inf; "
        "big, -inf: +0; one, inf: 1; 1, not nan: 1; small, +inf: +0; small, -inf: +inf; "
        "+inf, above: +inf; +inf, below: +0; -inf, odd: -inf; -inf, no odd: +inf; "
        "-inf, -odd: -0; -inf, -no odd: +0; +0, above: +0; +0, below: +inf; -0, odd: -0; "
        "-0, no odd: +0; -0, -odd: -inf; -0, -no odd: +inf; negative, fraction: nan"
    ),
    "remainder": (
        f"{EITHER_NAN}; inf, inf: nan; 0, 0: nan; 0, positive: +0; 0, negative: -0; "
        "above, 0: nan; below, 0: nan; inf, nonzero: nan; positive, +inf: x1; positive, -inf: x2; "
        "negative, +inf: x2; negative, -inf: x1"
    ),
    "subtract": f"{EITHER_NAN}; +inf, +inf: nan; -inf, -inf: nan; +inf, finite: +inf; 0, -0: +0",
}


def cases(text: str) -> list[tuple[tuple[float, ...], str]]:
    found: list[tuple[tuple[float, ...], str]] = []
    for line in text.split("; "):
        operands, result = line.split(": ")
        classes = [CLASSES[part] for part in operands.split(", ")]
        found += [(numbers, result) for numbers in product(*classes)]
    return found


def agrees(result: str, operands: tuple[float, ...], found: float) -> bool:
    if result in {"+", "-"}:
        return not math.isnan(found) and math.copysign(1.0, found) == float(f"{result}1")
    if result == "inf of x1":
        return found == math.copysign(INF, operands[0])
    wanted = operands[int(result[1:]) - 1] if result in {"x1", "x2"} else RESULTS[result]
    if math.isnan(wanted):
        return math.isnan(found)
    if wanted == 0.0 or math.isinf(wanted):
        return found == wanted and math.copysign(1.0, found) == math.copysign(1.0, wanted)
    return math.isclose(found, wanted, rel_tol=1e-6)


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64], ids=str)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_special_cases(name: str, dtype: tp.DType) -> None:
    table = cases({**UNARY, **BINARY}[name])
    columns = zip(*(operands for operands, _ in table), strict=True)
    rounded = [np.asarray(column, dtype.numpy) for column in columns]
    results = np.asarray(getattr(tp, name)(*map(tp.asarray, rounded))).astype(np.float64)
    wrong = [
        (operands, wanted, found)
        for (_, wanted), *operands, found in zip(table, *rounded, results, strict=True)
        if not agrees(wanted, tuple(map(float, operands)), float(found))
    ]
    assert wrong == []


def test_halves_are_rounded_to_even() -> None:
    halves = np.arange(-9, 10) + 0.5
    assert np.array_equal(
        tp.round(tp.asarray(halves)), [2.0 * round(halve / 2) for halve in halves]
    )


def test_the_sign_of_nan_is_a_bit() -> None:
    x = tp.asarray(np.copysign(np.full(2, np.nan), [1.0, -1.0]))
    assert np.array_equal(tp.signbit(x), [False, True])
    assert np.array_equal(tp.copysign(1.0, x), [1.0, -1.0])


NOTHING = {"mean": NAN, "prod": 1.0, "std": NAN, "sum": 0.0, "var": NAN}


@pytest.mark.parametrize("name", NOTHING)
def test_reductions_of_nothing(name: str) -> None:
    found = getattr(tp, name)(tp.zeros((0,)))
    assert (found.shape, found.dtype) == ((), tp.float32)
    assert np.array_equal(found, NOTHING[name], equal_nan=True)


@pytest.mark.parametrize("name", ["max", "mean", "min", "prod", "std", "sum", "var"])
@pytest.mark.parametrize("place", [0, 3, 6])
def test_nan_is_kept_by_reductions(name: str, place: int) -> None:
    x = np.arange(7.0, dtype=np.float32)
    x[place] = np.nan
    assert math.isnan(float(getattr(tp, name)(tp.asarray(x))))


@pytest.mark.parametrize("name", ["std", "var"])
@pytest.mark.parametrize("correction", [3, 3.0, 4, 10.5])
def test_a_spread_without_degrees_of_freedom_is_nan(name: str, correction: float) -> None:
    for x in ([1.0, 2.0, 4.0], [2.0, 2.0, 2.0]):
        assert math.isnan(float(getattr(tp, name)(tp.asarray(x), correction=correction)))
    near = float(getattr(tp, name)(tp.asarray([1.0, 2.0, 3.0]), correction=2.5))
    assert near == {"std": 2.0, "var": 4.0}[name]
