"""What the suite leaves to the backend, and tighter bounds of erf."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.ops.elementwise import arithmetic
from tensorplug.ops.elementwise import unary as ops

INF = math.inf


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("spec", "a", "b", "expected"),
    [
        (arithmetic.FLOOR_DIV, 1.5, -INF, -1.0),  # the floor of the exact quotient
        (arithmetic.FLOOR_DIV, -1.5, INF, -1.0),
        (arithmetic.FLOOR_DIV, 0.0, -INF, -0.0),
        (arithmetic.MOD, 1.5, -INF, -INF),
        (arithmetic.MOD, -1.5, INF, INF),
        (arithmetic.MOD, -1.5, -INF, -1.5),
    ],
)
def test_numbers_divided_by_infinities_of_the_other_sign(call, near, spec, a, b, expected, dtype):
    """The array API standard has these; the suite leaves them to the backend."""
    near(call(spec, np.array(a, dtype), np.array(b, dtype)), expected, dtype)


def test_erf_on_every_piece(call, near):
    pieces = np.concatenate([np.linspace(-7, 7, 4001), 10.0 ** np.linspace(-300, 0, 301)])
    ends = [0.84375, 1.25, 1 / 0.35, 4.0, 6.0]
    x = np.concatenate([pieces, ends, np.nextafter(ends, 0), np.nextafter(ends, 9)])
    near(call(ops.ERF, x), [math.erf(number) for number in x], "float64", ulp=1)
    single = x.astype("float32")
    near(call(ops.ERF, single), [math.erf(number) for number in single], "float32", ulp=4)
