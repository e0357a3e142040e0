"""Reductions of long rows, which are taken in parts."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.ops import extremes, reduction


def test_a_long_sum_of_equal_terms_does_not_drift(call, near):
    x = np.full(1_000_000, 0.1, np.float32)
    expected = np.longdouble(np.float32(0.1)) * 1_000_000
    near(call(reduction.SUM, x), expected, "float32", ulp=1)


@pytest.mark.parametrize("places", [(5, 100_000, 300_000), (299_000, 299_001), (300_000,)])
def test_the_first_of_equals_in_parts_of_a_row(call, places):
    x = np.zeros(300_001, np.float32)
    x[list(places)] = 1
    assert call(extremes.ARG_MAX, x, axis=0) == places[0]
    assert call(extremes.ARG_MIN, -x, axis=0) == places[0]


def test_integers_wrap_in_parts_of_a_row(call, near):
    x = np.full(300_001, 2**31 - 5, np.int32)
    near(call(reduction.SUM, x, axis=0), x.sum(dtype=np.int32), "int32")
    near(call(reduction.PROD, x, axis=0), x.prod(dtype=np.int32), "int32")
