"""polyfit and polyval, against NumPy's in float64 and complex128."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.testing import check_grads

X = np.linspace(-1.0, 2.0, 9)
Y = np.sin(X)
TWO = np.stack([Y, X**4], axis=1)
W = np.linspace(0.5, 2.0, 9)
Z = X + 1j * np.cos(3 * X)


@pytest.mark.parametrize(
    ("x", "y", "deg", "given"),
    [
        (X, Y, 0, {}),
        (X, Y, 3, {}),
        (X, TWO, 2, {}),
        (X, Y, 3, {"w": W}),
        (X, TWO, 8, {"w": W}),
        (Z, Y, 3, {}),
        (X, Z, 2, {"w": W}),
        (1e6 * X, Y, 3, {}),  # powers of many sizes
        (np.repeat(X[:2], 3), Y[:6], 3, {}),  # two places are too few for four coefficients
        (X, Y, 5, {"rcond": 0.5}),
    ],
)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.RankWarning")
def test_fits(x, y, deg, given):
    right, squares, rank, values, limit = np.polyfit(x, y, deg, full=True, **given)
    found = tp.polyfit(x, y, deg, full=True, **given)
    kind = "complex128" if np.iscomplexobj(right) else "float64"
    assert [str(part.dtype) for part in found[:4]] == [kind, "float64", "int32", "float64"]
    assert [part.shape for part in found[:4]] == [
        right.shape,
        np.shape(y)[1:] or (1,),
        (),
        (deg + 1,),
    ]
    assert np.all(np.abs(found.coefficients.numpy() - right) <= 1e-9 * np.abs(right).max(axis=0))
    assert (found.rank.item(), found.rcond) == (rank, pytest.approx(limit))
    if not np.iscomplexobj(x):  # NumPy scales complex powers by the root of the sum of squares
        np.testing.assert_allclose(found.singular_values.numpy(), values, rtol=0, atol=1e-12)
    if squares.size:  # NumPy leaves them out for a low rank
        np.testing.assert_allclose(found.residuals.numpy(), squares, rtol=1e-7, atol=1e-20)
    alone = tp.polyfit(x, y, deg, **given)
    assert alone.tolist() == found.coefficients.tolist()


@pytest.mark.parametrize(
    ("dtype", "wanted", "tolerance"),
    [("float16", "float16", 2e-3), ("bfloat16", "bfloat16", 2e-2), ("int8", "float32", 1e-5)],
)
def test_dtypes(dtype, wanted, tolerance):
    x = tp.asarray([-2, -1, 0, 1, 3], dtype=dtype)
    y = tp.asarray([9, 4, 1, 0, 4], dtype=dtype)  # (x - 1)**2
    found = tp.polyfit(x, y, 2)
    assert (str(found.dtype), found.shape) == (wanted, (3,))
    np.testing.assert_allclose(found.astype("float64").numpy(), [1, -2, 1], rtol=0, atol=tolerance)
    if tp.isdtype(x.dtype, "integral"):
        assert (tp.polyval(x, x).dtype, tp.polyval(x, x).tolist()) == (
            x.dtype,
            [-23, 1, 3, 1, 256 - 183],
        )
        return
    # In one rounding: each of Horner's steps in float16 or bfloat16 would add one.
    p = tp.asarray([1.0, 1.0, 1.0, 1.0], dtype=dtype)
    at = tp.asarray([1.125], dtype=dtype)
    assert tp.polyval(p, at).astype("float64").tolist() == pytest.approx(
        [1.125**3 + 1.125**2 + 2.125], rel=float(tp.finfo(dtype).eps) / 2
    )


COEFFICIENTS = np.array([0.5, -1.25, 1.5, 0.75])


@pytest.mark.parametrize(
    ("p", "x"),
    [
        (COEFFICIENTS, X),
        (COEFFICIENTS, 1.5),
        (COEFFICIENTS, X.reshape(3, 3)),
        (COEFFICIENTS[:1], X),
        (COEFFICIENTS, Z),
        (np.reshape([0.5, -1.5, 1.0, 0.25, -0.75, 1.75], (3, 2)), X[:, None]),
        (np.zeros(0), X),
        ([2, 0, -3], np.arange(5)),
    ],
)
def test_values(p, x):
    right = np.polyval(np.asarray(p), np.asarray(x))
    found = tp.polyval(p, x)
    assert found.shape == right.shape
    assert found.numpy().dtype.kind == right.dtype.kind
    np.testing.assert_allclose(found.numpy(), right, rtol=1e-13, atol=1e-13)


def test_a_constant_has_its_value_at_infinity():
    assert tp.polyval([5.0], [np.inf]).tolist() == [5.0]


def test_gradients():
    check_grads(lambda x, y, w: tp.polyfit(x, y, 2, w=w), [X[:5], Y[:5], W[:5]])
    check_grads(lambda y: tp.polyfit(X, y, 3) ** 2, [TWO], order=2)
    check_grads(lambda x: tp.polyfit(x, Y[:4], 1), [np.array([0.0, 1.0, 0.0, 2.0])])
    check_grads(tp.polyval, [COEFFICIENTS, X], order=2)


def test_programs_and_batches():
    for function, given in (
        (lambda x, y: tp.polyfit(x, y, 2), (X, Y)),
        (tp.polyval, (COEFFICIENTS, X)),
    ):
        eager = function(*given)
        compiled = tp.compile(function)(*map(tp.asarray, given))
        assert (compiled.dtype, compiled.shape) == (eager.dtype, eager.shape)
        np.testing.assert_allclose(compiled.numpy(), eager.numpy(), rtol=1e-12)
        batch = [tp.stack([tp.asarray(x), 2.0 * tp.asarray(x)]) for x in given]
        mapped = tp.vmap(function)(*batch)
        assert mapped.shape == (2, *eager.shape)
        np.testing.assert_allclose(mapped[0].numpy(), eager.numpy(), rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tp.polyfit(TWO, Y, 1), ShapeError, "x must have rank 1, got float64[9,2]"),
        (
            lambda: tp.polyfit(X, Y[:3], 1),
            ShapeError,
            "y must have the shape [9] or [9, k], got float64[3]",
        ),
        (lambda: tp.polyfit(X, Y, -1), ArgumentError, "deg must be at least 0, got -1"),
        (lambda: tp.polyfit(X, Y, 1.5), ArgumentError, "deg must be an integer, got 1.5"),
        (
            lambda: tp.polyfit(X[:3], Y[:3], 3),
            ShapeError,
            "a polynomial of degree 3 needs at least 4 points, got x of float64[3]",
        ),
        (
            lambda: tp.polyfit(X, Y, 1, w=[1.0]),
            ShapeError,
            "w must have the shape of x, [9], got float32[1]",
        ),
        (lambda: tp.polyfit(X, Y, 1, w=Z), DTypeError, "w must hold real numbers, got complex128"),
        (
            lambda: tp.polyfit(X, Y, 1, "0.1"),
            ArgumentError,
            "rcond must be a real number, got '0.1'",
        ),
        (lambda: tp.polyfit(X, Y, 1, full=1), ArgumentError, "full must be True or False, got 1"),
        (lambda: tp.polyval(1.0, X), ShapeError, "p must have at least rank 1, got float64[]"),
        (
            lambda: tp.polyval([True], [True]),
            DTypeError,
            "p and x must hold numbers, got bool[1] and bool[1]",
        ),
        (
            lambda: tp.polyval(np.ones((2, 3)), X),
            ShapeError,
            "polyval of float64[2,3] and float64[9]: shapes [3] and [9] cannot be broadcast",
        ),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
    assert str(caught.value).startswith(("polyfit", "polyval"))
