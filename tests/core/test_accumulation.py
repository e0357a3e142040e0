"""Multiply-add: dtypes, rounding, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import DTypeError, ShapeError


@pytest.mark.parametrize("kind", [int, float])
def test_a_number_takes_the_dtype_of_the_tensor_beside_it(kind):
    x = tp.asarray([1.5, -2.0], dtype="float32")
    result = tp.multiply_add(x, kind(2), kind(1))
    assert (result.dtype, result.numpy().tolist()) == (tp.float32, [4.0, -3.0])


def test_a_step_of_gradient_descent_rounds_float16_once():
    w, g = tp.asarray([1.0], dtype="float16"), tp.asarray([2.0**-8], dtype="float16")
    with tp.use_backend("cpu"):
        moved = tp.multiply_add(g, 0.375, w)  # the product alone is below half an ulp of 1
    assert moved.numpy().tolist() == [float(np.float16(1 + 2.0**-8 * 0.375))]


def test_what_does_not_fit():
    with pytest.raises(ShapeError, match="MultiplyAdd"):
        tp.multiply_add(tp.ones(2), tp.ones(3), 1.0)
    with pytest.raises(DTypeError, match="MultiplyAdd"):
        tp.multiply_add(tp.asarray([True]), tp.asarray([True]), tp.asarray([False]))
