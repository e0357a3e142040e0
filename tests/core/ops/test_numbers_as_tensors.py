"""Functions of creation take tensors and arrays of rank 0 for numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError


@pytest.fixture(autouse=True)
def engine(on_the_cpu):
    return on_the_cpu


@pytest.mark.parametrize("made", [tp.asarray, np.asarray])
@pytest.mark.parametrize(
    ("number", "dtype", "wanted"),
    [(2.5, None, "float32"), (3, None, "int32"), (2.5, "float64", "float64"), (3, "int8", "int8")],
)
def test_full(made, number, dtype, wanted):
    value = made(np.asarray(number, "float32" if isinstance(number, float) else "int32"))
    for filled in (tp.full((2, 3), value, dtype=dtype), tp.full([2, 3], value, dtype=dtype)):
        assert (filled.dtype.name, filled.shape) == (wanted, (2, 3))
        np.testing.assert_array_equal(filled.numpy(), np.full((2, 3), number))
    like = tp.full_like(tp.zeros((2, 3), dtype="int16"), value)
    assert (like.dtype.name, like.numpy().tolist()) == ("int16", [[int(number)] * 3] * 2)


def test_the_gradient_of_a_filled_tensor_is_the_sum():
    weights = tp.asarray([1.0, 2.0, 4.0])
    derivative = tp.grad(lambda x: tp.sum(tp.full(3, x) * weights))(tp.asarray(2.0))
    assert derivative.item() == 7


def test_a_filled_tensor_is_a_view_of_nothing():
    number = tp.asarray(2.0)
    filled = tp.full(3, number)
    filled[0] = 1.0
    number[()] = 5.0
    assert (filled.tolist(), number.item()) == ([1, 2, 2], 5)


def test_the_number_may_be_on_another_device():
    with tp.use_backend("minimal"):
        number = tp.asarray(3)
    assert tp.full(2, number).device == "cpu"
    assert tp.full(2, number, device="minimal").device == "minimal"


@pytest.mark.parametrize("made", [tp.asarray, np.asarray])
def test_arange(made):
    one, four, two = made(np.int64(1)), made(np.int64(4)), made(np.float64(2.0))
    assert tp.arange(four).tolist() == [0, 1, 2, 3]
    assert tp.arange(one, four).dtype == tp.int32
    assert tp.arange(one, four, two).tolist() == [1, 3]
    assert tp.arange(1, four, two).dtype == tp.float32


@pytest.mark.parametrize("made", [tp.asarray, np.asarray])
def test_more_than_one_number(made):
    with pytest.raises(ShapeError, match=r"full: fill_value must be one number, got int32\[1\]"):
        tp.full(3, made(np.int32([1])))
    with pytest.raises(ArgumentError, match="must be a number"):
        tp.arange(made(np.int32([3])))
