"""Extents of indices hold whatever may be computed of what lies in extents."""

from __future__ import annotations

import math
from itertools import product

import pytest

from tensorplug_loops.extents import _computed, _Extent

OPERATIONS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "bitwise_and": lambda a, b: a & b,
    "quotient": lambda a, b: math.trunc(a / b),
    "rest": math.fmod,
}
ENDS = [(low, high) for low, high in product(range(-7, 8), repeat=2) if low <= high]


@pytest.mark.parametrize("op", OPERATIONS)
def test_extent_holds_all_results(op):
    held = 0
    for a, b in product(ENDS, ENDS):
        try:
            extent = _computed(op, [_Extent(*a), _Extent(*b)])
        except OverflowError:  # not known
            continue
        held += 1
        for x, y in product(range(a[0], a[1] + 1), range(b[0], b[1] + 1)):
            if y or op not in {"quotient", "rest"}:
                assert extent.low <= OPERATIONS[op](x, y) <= extent.high, (a, b, x, y)
    assert held > len(ENDS)


def test_quotient_by_a_large_number_is_small():
    assert _computed("quotient", [_Extent(0, 131_071), _Extent(65_536, 65_536)]) == (0, 1)
