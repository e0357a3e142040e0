"""What third parties import to write CPU kernels; expected values are NumPy's on whole arrays."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

from tensorplug import dtypes as dt
from tensorplug.spec import TensorType
from tensorplug.testing import isolated_engine
from tensorplug_cpu import extending
from tensorplug_cpu.extending import elementwise

MANY = (1 << 19) + 3  # several blocks, in several threads, the last one shorter


def work(results, inputs):
    (total, scaled), (x, y, factor, absent) = results, inputs
    assert absent is None
    assert factor.shape in ((), total.shape)
    np.add(x, y, out=total)
    np.multiply(total, factor, out=scaled)
    np.divide(scaled, 0, out=scaled, where=x < 0)  # NumPy would warn


def types(shape):
    return [TensorType(dt.float32, shape), TensorType(dt.float64, shape)]


def test_the_documented_example():
    with isolated_engine("cpu"):
        found = doctest.testmod(extending)
    assert (found.attempted > 5, found.failed) == (True, 0)


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0, 4), (MANY,), (3, 1 << 16)], ids=str)
@pytest.mark.parametrize("number", [(), (1,), (1, 1)], ids=str)
def test_results_are_those_of_whole_arrays(shape, number):
    x = np.linspace(-1, 2, int(np.prod(shape))).reshape(shape)
    y, factor = np.ones(shape[::-1]).T, np.full(number, 3.0)
    total, scaled = elementwise(work, types(shape))(x, y, factor, None)
    wanted = (x + 1).astype(np.float32)
    with np.errstate(all="ignore"):
        product = wanted * np.float64(3)
        product = np.where(x < 0, product / 0, product)
    for made, right in ((total, wanted), (scaled, product)):
        assert (made.shape, made.dtype) == (shape, right.dtype)
        np.testing.assert_array_equal(made, right)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"results must have one shape, got .*float32\[2\]"):
        elementwise(work, [*types((2,)), *types((3,))])
    with pytest.raises(ValueError, match=r"an input has shape \(3,\), the results \(2,\)"):
        elementwise(work, types((2,)))(np.zeros(2), np.zeros(3), np.zeros(()), None)


def test_what_a_thread_raises_is_raised():
    def fails(results, _inputs):
        if len(results[0]) < extending._BLOCK:
            raise ZeroDivisionError("in the last block")

    with pytest.raises(ZeroDivisionError, match="last block"):
        elementwise(fails, types((MANY,)))()
