"""Least squares against NumPy's lstsq; refusals, of triangular systems too."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, LinAlgError, ShapeError

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


SQUARE, LINE = np.eye(3, dtype=np.float32), np.ones(3, np.float32)
BAD = {  # error: call, what the message says
    ShapeError: [
        (lambda: tp.linalg.solve_triangular(LINE, LINE), "a must have at least rank 2"),
        (lambda: tp.linalg.solve_triangular(SQUARE[:2], LINE[:2]), "must be square"),
        (lambda: tp.linalg.solve_triangular(SQUARE, LINE[:2]), "3 rows, but the right"),
        (lambda: tp.linalg.solve_triangular(["a"], LINE), "a must have at least rank 2"),
        (lambda: tp.linalg.lstsq(LINE, LINE), "lstsq: a must have at least rank 2"),
        (lambda: tp.linalg.lstsq(SQUARE, LINE[:2]), "lstsq: b must have 3 rows, as a has"),
        (lambda: tp.linalg.lstsq(SQUARE, 1.0), "lstsq: b must have 3 rows, as a has"),
    ],
    ArgumentError: [
        (lambda: tp.linalg.solve_triangular(SQUARE, LINE, 3), "trans must be 0, 1, 2,"),
        (lambda: tp.linalg.solve_triangular(SQUARE, LINE, []), "trans must be 0, 1, 2,"),
        (lambda: tp.linalg.solve_triangular(SQUARE, LINE, 0, 1), "lower must be a bool"),
        (lambda: tp.linalg.solve_triangular(SQUARE, LINE, 0, True, 1), "unit_diagonal"),
        (lambda: tp.linalg.lstsq(SQUARE, LINE, rcond="a"), "lstsq: rcond must be a num"),
    ],
    LinAlgError: [
        (lambda: tp.linalg.solve_triangular(SQUARE - 1, LINE), "singular matrix"),
        (lambda: tp.linalg.lstsq(SQUARE * np.nan, LINE), "converge"),
    ],
    DTypeError: [
        (lambda: tp.linalg.solve_triangular([["a"]], LINE), "string"),
        (lambda: tp.linalg.lstsq([["a"]], LINE), "lstsq: a must hold numbers"),
    ],
}


test_bad_input = refused(BAD)
