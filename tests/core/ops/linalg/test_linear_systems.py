"""Triangular systems and least squares, against products with the solution and NumPy's lstsq."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, LinAlgError, ShapeError
from tensorplug.testing import check_grads

pytestmark = pytest.mark.usefixtures("on_the_cpu")

RANDOM = np.random.default_rng(17)
TOLERANCES = {"float16": 0.02, "float32": 1e-5, "float64": 1e-13, "complex128": 1e-13}


def draw(shape, dtype):
    x = RANDOM.uniform(-1, 1, shape)
    return (x + 1j * RANDOM.uniform(-1, 1, shape) if dtype.startswith("c") else x).astype(dtype)


def near(actual, expected, dtype):
    wanted = np.asarray(expected)
    assert (actual.dtype.name, actual.shape) == (dtype, wanted.shape)
    tolerance = TOLERANCES[dtype]
    np.testing.assert_allclose(actual.numpy(), wanted, rtol=tolerance, atol=tolerance)


# Triangular systems ----------------------------------------------------------------------

FORMS = list(itertools.product([0, 1, 2, "N", "T", "C"], [False, True], [False, True]))
SHAPES = [
    ((3, 3), (3,)),
    ((1, 1), (1, 2)),
    ((2, 3, 3), (3, 2)),
    ((5, 5), (2, 5, 1)),
    ((65, 65), (65,)),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=repr)
@pytest.mark.parametrize("form", FORMS, ids=repr)
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_triangular_systems(dtype, form, shapes):
    trans, lower, unit_diagonal = form
    a = draw(shapes[0], dtype) / 8 + np.eye(shapes[0][-1], dtype=dtype) * 2
    if unit_diagonal:  # small elements beside it, as the solution must not grow
        a = (a / shapes[0][-1]).astype(dtype)
    b = draw(shapes[1], dtype)
    triangle = (np.tril if lower else np.triu)(a.astype(complex), -1 if lower else 1)
    n = a.shape[-1]
    diagonal = np.ones(n) if unit_diagonal else np.diagonal(a, axis1=-2, axis2=-1)
    triangle[..., range(n), range(n)] = diagonal
    if trans not in (0, "N"):
        triangle = triangle.swapaxes(-1, -2)
    if trans in (2, "C"):
        triangle = triangle.conj()
    garbage = np.where(np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T, a, np.nan)
    found = tp.linalg.solve_triangular(
        garbage.astype(dtype), b, trans, lower=lower, unit_diagonal=unit_diagonal
    )
    columns = b[:, None] if b.ndim == 1 else b
    wanted = np.linalg.inv(triangle) @ columns
    wanted = wanted[..., 0] if b.ndim == 1 else wanted
    near(found, wanted if dtype.startswith("c") else wanted.real, dtype)


def test_triangular_systems_of_integers_and_strange_sizes():
    near(tp.linalg.solve_triangular([[2, 1], [0, 4]], [4, 8]), [1, 2], "float32")
    near(
        tp.linalg.solve_triangular(np.zeros((0, 0)), np.zeros((0, 2))), np.zeros((0, 2)), "float64"
    )
    assert tp.linalg.solve_triangular(np.eye(3), np.zeros((3, 0))).shape == (3, 0)
    compiled = tp.compile(lambda a, b: tp.linalg.solve_triangular(a, b, 1, lower=True))
    near(compiled(tp.asarray([[2.0, 9.0], [1.0, 4.0]]), tp.asarray([4.0, 8.0])), [1, 2], "float32")


@pytest.mark.parametrize("form", FORMS[:12], ids=repr)
def test_gradients_of_triangular_systems(form):
    trans, lower, unit = form
    a, b = draw((3, 3), "float64") + 2 * np.eye(3), draw((2, 3, 1), "float64")

    def loss(a, b):
        return tp.sum(tp.linalg.solve_triangular(a, b, trans, lower, unit) ** 2)

    check_grads(loss, [a, b], order=2)
    slope = tp.grad(loss)(tp.asarray(a), tp.asarray(b)).numpy()
    skipped = (np.triu if lower else np.tril)(
        slope, (1 if lower else -1) - (lower - (not lower)) * unit
    )
    assert not skipped.any()  # the elements that are not read
    assert slope.any()


def test_gradients_of_complex_triangular_systems():
    a, b = draw((2, 2, 3, 3), "float64"), draw((2, 3, 2), "float64")

    def loss(re, im, b_re, b_im):
        x = tp.linalg.solve_triangular(
            tp.complex(re, im) + 2 * np.eye(3), tp.complex(b_re, b_im), 2, lower=True
        )
        return tp.sum(tp.abs(x) ** 2)

    check_grads(loss, [a[0], a[1], b[0], b[1]], order=2)


# Least squares ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shapes", [((5, 3), (5, 2)), ((3, 5), (3, 2)), ((4, 4), (4, 1)), ((6, 2), (6,))]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_least_squares(dtype, shapes):
    a, b = (draw(shape, dtype) for shape in shapes)
    found = tp.linalg.lstsq(a, b)
    x, _, rank, s = np.linalg.lstsq(a, b)
    near(found.x, x, dtype)
    near(found.s, s, "float64" if dtype == "complex128" else dtype)
    assert (found.rank.dtype.name, found.rank.shape, found.rank.item()) == ("int32", (), rank)
    away = b - a @ x
    wanted = np.atleast_1d((np.abs(away) ** 2).sum(axis=0))
    near(found.residuals, wanted, "float64" if dtype == "complex128" else dtype)


def test_least_squares_of_batches_and_low_rank():
    a, b = draw((2, 1, 5, 3), "float64"), draw((4, 5, 2), "float64")
    found = tp.linalg.lstsq(a, b)
    for at in np.ndindex(2, 4):
        x, residuals, _, s = np.linalg.lstsq(a[at[0], 0], b[at[1]])
        near(found.x[at], x, "float64")
        near(found.residuals[at], residuals, "float64")
        near(found.s[at[0], 0], s, "float64")
    low = draw((5, 2), "float64") @ draw((2, 3), "float64")
    for matrix, rcond in ((low, None), (np.diag([1.0, 0.5, 1e-3]), 0.01)):
        b = draw((matrix.shape[0],), "float64")
        found, wanted = tp.linalg.lstsq(matrix, b, rcond=rcond), np.linalg.lstsq(matrix, b, rcond)
        near(found.x, wanted[0], "float64")
        assert found.rank.item() == wanted[2] == 2


def test_least_squares_are_as_exact_as_lapack():
    """Check matrices of a high condition, where pinv(a) @ b alone loses digits."""
    for seed in range(5):
        random = np.random.default_rng(seed)
        u, _ = np.linalg.qr(random.normal(size=(60, 8)))
        v, _ = np.linalg.qr(random.normal(size=(8, 8)))
        a = (u * np.logspace(0, -4, 8)) @ v
        x = random.normal(size=8)
        b = (a @ x).astype("f4")
        a = a.astype("f4")
        exact = np.linalg.lstsq(a.astype("f8"), b.astype("f8"))[0]
        ours = np.abs(tp.linalg.lstsq(a, b).x.numpy() - exact).max()
        theirs = np.abs(np.linalg.lstsq(a, b)[0] - exact).max()
        assert ours < max(4 * theirs, 1e-2), (ours, theirs)


def test_least_squares_of_integers_and_strange_sizes():
    found = tp.linalg.lstsq([[0, 1], [1, 1], [2, 1]], [1, 3, 5])
    near(found.x, [2, 1], "float32")
    assert tp.linalg.lstsq(np.ones((3, 0)), np.ones(3)).x.shape == (0,)
    assert tp.linalg.lstsq(np.ones((2, 3)), np.ones((2, 0))).x.shape == (3, 0)
    compiled = tp.compile(lambda a, b: tp.linalg.lstsq(a, b).x)
    near(compiled(tp.asarray([[2.0], [2.0]]), tp.asarray([2.0, 4.0])), [1.5], "float32")


@pytest.mark.parametrize(
    "shapes", [((4, 2), (4, 2)), ((2, 4), (2,)), ((3, 3), (2, 3, 1))], ids=repr
)
def test_gradients_of_least_squares(shapes):
    operands = [draw(shape, "float64") for shape in shapes]
    check_grads(lambda a, b: tp.sum(tp.linalg.lstsq(a, b).x ** 2), operands, order=2)
    check_grads(lambda a, b: tp.sum(tp.linalg.lstsq(a, b).residuals), operands, order=1)
    equal = tp.linalg.lstsq  # singular values that are equal have no bad gradients
    check_grads(
        lambda a, b: tp.sum(equal(a, b).x ** 2), [np.eye(3), draw((3,), "float64")], order=2
    )


SQUARE, LINE = np.eye(3, dtype=np.float32), np.ones(3, np.float32)
BAD = [  # call, error, what the message says
    (lambda: tp.linalg.solve_triangular(LINE, LINE), ShapeError, "a must have at least rank 2"),
    (lambda: tp.linalg.solve_triangular(SQUARE[:2], LINE[:2]), ShapeError, "must be square"),
    (lambda: tp.linalg.solve_triangular(SQUARE, LINE[:2]), ShapeError, "3 rows, but the right"),
    (lambda: tp.linalg.solve_triangular(SQUARE, LINE, 3), ArgumentError, "trans must be 0, 1, 2,"),
    (
        lambda: tp.linalg.solve_triangular(SQUARE, LINE, []),
        ArgumentError,
        "trans must be 0, 1, 2,",
    ),
    (
        lambda: tp.linalg.solve_triangular(SQUARE, LINE, 0, 1),
        ArgumentError,
        "lower must be a bool",
    ),
    (lambda: tp.linalg.solve_triangular(SQUARE, LINE, 0, True, 1), ArgumentError, "unit_diagonal"),
    (lambda: tp.linalg.solve_triangular(SQUARE - 1, LINE), LinAlgError, "singular matrix"),
    (lambda: tp.linalg.solve_triangular(["a"], LINE), ShapeError, "a must have at least rank 2"),
    (lambda: tp.linalg.solve_triangular([["a"]], LINE), DTypeError, "string"),
    (lambda: tp.linalg.lstsq(LINE, LINE), ShapeError, "lstsq: a must have at least rank 2"),
    (lambda: tp.linalg.lstsq(SQUARE, LINE[:2]), ShapeError, "lstsq: b must have 3 rows, as a has"),
    (lambda: tp.linalg.lstsq(SQUARE, 1.0), ShapeError, "lstsq: b must have 3 rows, as a has"),
    (lambda: tp.linalg.lstsq([["a"]], LINE), DTypeError, "lstsq: a must hold numbers"),
    (
        lambda: tp.linalg.lstsq(SQUARE, LINE, rcond="a"),
        ArgumentError,
        "lstsq: rcond must be a num",
    ),
    (lambda: tp.linalg.lstsq(SQUARE * np.nan, LINE), LinAlgError, "converge"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_input(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
