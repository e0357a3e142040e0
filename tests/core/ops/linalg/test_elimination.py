"""linalg.lu against what defines it, and its refusals."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.samples import real

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

lu = tp.linalg.lu
SQUARE = real(2, 4, 4)
TALL = real(2, 5, 3)
WIDE = TALL.swapaxes(1, 2)
SINGULAR = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 1.0, 1.0]])


@pytest.mark.parametrize(
    "x",
    [SQUARE, TALL, WIDE, SQUARE + 1j * real(2, 4, 4, salt=1), SINGULAR, np.zeros((2, 3))],
    ids=["square", "tall", "wide", "complex", "singular", "zeros"],
)
@pytest.mark.parametrize("double", [True, False])
def test_factors(x, double):
    dtype = (
        np.result_type(x.dtype, 0.0) if double else np.complex64 if x.dtype == complex else "f4"
    )
    x = x.astype(dtype)
    rows, columns = x.shape[-2:]
    few, leading = min(rows, columns), x.shape[:-2]
    moves, lower, upper = (factor.numpy() for factor in lu(x))
    assert moves.dtype == lower.dtype == upper.dtype == dtype
    assert [moves.shape, lower.shape, upper.shape] == [
        (*leading, *shape) for shape in ((rows, rows), (rows, few), (few, columns))
    ]
    np.testing.assert_allclose(moves @ lower @ upper, x, rtol=0, atol=8 * np.finfo(dtype).eps * 4)
    assert set(moves.real.ravel()) == {0, 1}
    assert (moves.sum(-1) == 1).all()
    assert (moves.sum(-2) == 1).all()
    assert (np.diagonal(lower, axis1=-2, axis2=-1) == 1).all()
    assert not np.triu(lower, 1).any()
    assert not np.tril(upper, -1).any()
    assert np.abs(lower).max() <= 1 + np.finfo(dtype).eps
    order, *factors = (part.numpy() for part in lu(x, p_indices=True))
    assert (order.dtype, order.shape) == (np.int32, (*leading, rows))
    for part, same in zip(factors, (lower, upper), strict=True):
        assert part.tolist() == same.tolist()
    moved = np.take_along_axis(x, order[..., None].astype(int), axis=-2)
    assert moved.tolist() == (moves.swapaxes(-1, -2) @ x).tolist()


def test_by_hand():
    moves, lower, upper = lu([[2, 4, 7], [8, 4, 2], [4, 8, 3]])  # integers become float32
    assert moves.dtype is tp.float32
    assert moves.tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert lower.tolist() == [[1, 0, 0], [0.5, 1, 0], [0.25, 0.5, 1]]
    assert upper.tolist() == [[8, 4, 2], [0, 6, 2], [0, 0, 5.5]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lu([1.0]), ShapeError, "Lu(input=float32[1]): the operand must have at least"),
        (lambda: lu([["a"]]), DTypeError, "Lu(input=string[1,1]): input 'input' is string[1,1]"),
        (lambda: lu([[1.0]], p_indices=1), ArgumentError, "lu: p_indices must be True or False"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
