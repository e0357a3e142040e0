"""linalg.lu against what defines it, its refusals, and its derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.samples import real

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, LinAlgError, ShapeError
from tensorplug.testing import check_grads

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


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats(dtype):
    x = tp.asarray(SQUARE, dtype=dtype)
    parts = lu(x)
    assert [str(part.dtype) for part in parts] == [dtype] * 3
    moves, lower, upper = (part.astype("float64").numpy() for part in parts)
    np.testing.assert_allclose(
        moves @ lower @ upper,
        x.astype("float64").numpy(),
        rtol=0,
        atol=8 * float(tp.finfo(dtype).eps),
    )


def clear(x):
    """Return matrices in which no small change chooses other pivots, and rows are exchanged."""
    return np.roll(x + 4 * np.eye(*x.shape[-2:]), 1, axis=-2)


def outputs(x):
    factors = lu(x)
    return [factors.L * tp.cos(factors.L), factors.U**2]


@pytest.mark.parametrize("x", [SQUARE, TALL, WIDE], ids=["square", "tall", "wide"])
def test_derivatives(x):
    x = clear(x)
    check_grads(outputs, [x], order=2)
    check_grads(
        lambda a, b: [tp.abs(part + 0.5j) ** 2 for part in lu(tp.complex(a, b))[1:]],
        [x, clear(real(*x.shape, salt=3))],
    )
    # Forwards: the product of the factors changes as the rows do.
    order, lower, upper = lu(x, p_indices=True)
    change = real(*x.shape, salt=4)
    (_, lower_dot, upper_dot) = tp.jvp(lu, (x,), (change,))[1]
    moved = np.take_along_axis(change, order.numpy()[..., None].astype(int), axis=-2)
    np.testing.assert_allclose(
        (lower_dot @ upper + lower @ upper_dot).numpy(), moved, rtol=0, atol=1e-12
    )
    assert not np.triu(lower_dot.numpy()).any()
    assert not np.tril(upper_dot.numpy(), -1).any()


def test_singular_matrices_have_no_gradient():
    with pytest.raises(LinAlgError, match="singular matrix"):
        tp.grad(lambda x: tp.sum(lu(x).U))(SINGULAR[:2, :2])


def test_programs_and_batches():
    for x in (SQUARE, TALL, WIDE):
        eager = lu(x)
        for found in (tp.compile(lu)(tp.asarray(x)), tp.vmap(lu)(tp.asarray(x))):
            for part, right in zip(found, eager, strict=True):
                assert (part.dtype, part.shape) == (right.dtype, right.shape)
                np.testing.assert_allclose(part.numpy(), right.numpy(), rtol=1e-13, atol=1e-13)


def test_nan_spoils_no_other_matrix():
    x = np.stack([SQUARE[0], np.full((4, 4), np.nan)])
    found = lu(x)
    assert found.U[0].tolist() == lu(SQUARE[0]).U.tolist()
    assert np.isnan(found.U.numpy()[1, 0]).all()


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
