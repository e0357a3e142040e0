"""Integer divisors of 0: results of 0, and NumPy's warning at the caller's line."""

from __future__ import annotations

import operator
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = {
    "rank 0": (),
    "small": (5,),
    "recycled memory": (300_000,),
    "several threads": (2_500_000,),
}
DIVISIONS = {"floor_divide": operator.floordiv, "remainder": operator.mod}


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64"])
@pytest.mark.parametrize("shape", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("name", DIVISIONS)
def test_a_zero_among_the_divisors_warns(name: str, shape: tuple[int, ...], dtype: str) -> None:
    divide: Callable[[Any, Any], Any] = DIVISIONS[name]
    dividend = np.full(shape, 7, dtype)
    divisor = np.full(shape, 2, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fine = divide(tp.asarray(dividend), tp.asarray(divisor)).numpy()
    np.testing.assert_array_equal(fine, np.full(shape, 3 if name == "floor_divide" else 1, dtype))
    divisor.reshape(-1)[-1] = 0
    with pytest.warns(RuntimeWarning, match=f"divide by zero encountered in {name}") as caught:
        result = divide(tp.asarray(dividend), tp.asarray(divisor)).numpy()
    assert [one.filename for one in caught] == [__file__]
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, np.where(divisor == 0, 0, fine))


def test_floats_divide_by_zero_without_a_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (tp.asarray(1.0) / 0).item() == np.inf
        assert (tp.asarray(1.0) // 0).item() == np.inf
        assert np.isnan((tp.asarray(1.0) % 0).item())
