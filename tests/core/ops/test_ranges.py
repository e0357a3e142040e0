"""Ranges: no number in them that their dtype cannot hold, whole for NumPy's integers too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


RANGES = [  # arguments, dtype asked, dtype that comes, values
    ((2**31, 2**31 + 2), None, "int64", [2**31, 2**31 + 1]),
    ((2**31 - 2, 2**31), None, "int32", [2**31 - 2, 2**31 - 1]),
    ((-(2**31) - 1, -(2**31) + 1), None, "int64", [-(2**31) - 1, -(2**31)]),
    ((0, -(2**32), -(2**31)), None, "int32", [0, -(2**31)]),
    ((2**63 - 1, 2**63), None, "int64", [2**63 - 1]),
    ((np.int64(3),), None, "int32", [0, 1, 2]),
    ((np.uint8(1), np.int16(3)), None, "int32", [1, 2]),
    ((np.float64(2.0),), None, "float32", [0.0, 1.0]),
    ((254, 256), "uint8", "uint8", [254, 255]),
    ((2**63, 2**63 + 2), "uint64", "uint64", [2**63, 2**63 + 1]),
    ((0.0, 510.0, 255.0), "uint8", "uint8", [0, 255]),
    ((300, 300), "uint8", "uint8", []),
    ((2**40, 2**40), None, "int32", []),
]


@pytest.mark.parametrize(("given", "asked", "dtype", "values"), RANGES, ids=repr)
def test_ranges(given: tuple[Any, ...], asked: str | None, dtype: str, values: list[Any]) -> None:
    found = tp.arange(*given, dtype=asked)
    assert (found.dtype.name, found.shape) == (dtype, (len(values),))
    np.testing.assert_array_equal(found.numpy(), np.array(values, dtype))


REFUSED = [  # arguments, dtype asked, a part of the message
    ((254, 257), "uint8", "256 does not fit into uint8"),
    ((-1, 2), "uint8", "-1 does not fit into uint8"),
    ((2, -2, -1), "uint16", "-1 does not fit into uint16"),
    ((0, 2**31 + 1, 2**30), "int32", "2147483648 does not fit into int32"),
    ((2**63, 2**63 + 2), None, "9223372036854775808 does not fit into int64"),
    ((0.0, 600.0, 300.0), "uint8", "300 does not fit into uint8"),
]


@pytest.mark.parametrize(("given", "asked", "message"), REFUSED, ids=repr)
def test_numbers_beyond_the_dtype(given: tuple[Any, ...], asked: str | None, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        tp.arange(*given, dtype=asked)
