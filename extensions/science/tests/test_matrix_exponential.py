"""linalg.expm against its series in 60 digits, and closed forms."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

expm = tp.linalg.expm


def real(*shape, salt=0):
    return np.random.default_rng([salt, len(shape), *shape]).uniform(-2, 2, shape)


def series(x):
    """Return the exponential by its series: of x / 2**8, squared 8 times, in 60 digits."""
    with mpmath.workdps(60):
        small = mpmath.matrix(x.tolist()) / 256
        result = term = mpmath.eye(len(x))
        for k in range(1, 60):
            term = term * small / k
            result = result + term
        for _ in range(8):
            result = result * result
        return np.array(result.tolist(), complex)


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
)
@pytest.mark.parametrize("size", [1e-3, 0.3, 1.0, 3.0, 5.0])  # no, one, several squarings
def test_values(dtype, size):
    x = real(2, 3, 3) * size
    if dtype.startswith("complex"):
        x = x + 1j * real(2, 3, 3, salt=1) * size
    given = tp.asarray(x, dtype=dtype)
    exact = given.numpy().astype(complex)
    found = expm(given)
    assert (str(found.dtype), found.shape) == (dtype, (2, 3, 3))
    eps = float(tp.finfo(dtype).eps)
    for matrix, right in zip(found.numpy().astype(complex), map(series, exact), strict=True):
        bound = 8 * eps * (1 + size) * np.abs(right).max()
        assert np.abs(matrix - right).max() <= bound


def rotation(angle):
    return [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]


@pytest.mark.parametrize(
    ("x", "wanted"),
    [
        ([[0.0, 0.0], [0.0, 0.0]], np.eye(2)),
        ([[2.0]], [[np.exp(2.0)]]),
        ([[0.0, 1.0, 2.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]], [[1, 1, 3.5], [0, 1, 3], [0, 0, 1]]),
        ([[0.0, -1000.0], [1000.0, 0.0]], rotation(1000.0)),
        ([[-1e5, 0.0], [0.0, -700.0]], [[0.0, 0.0], [0.0, np.exp(-700.0)]]),
        ([[1e-300, 1e-300], [0.0, 1e-300]], [[1.0, 1e-300], [0.0, 1.0]]),
        ([[3, 0], [0, -3]], np.diag([np.exp(3.0), np.exp(-3.0)])),
        (np.zeros((0, 0)), np.zeros((0, 0))),
        (np.zeros((0, 2, 2)), np.zeros((0, 2, 2))),
    ],
)
def test_closed_forms(x, wanted):
    found = expm(np.asarray(x, np.float64))
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-11, atol=1e-11)


def test_matrices_out_of_reach_give_nan_and_spoil_no_other():
    x = np.stack([np.eye(2), np.eye(2) * 1e9, [[0, np.inf], [0, 0]], [[0, np.nan], [0, 0]]])
    found = expm(x).numpy()
    np.testing.assert_allclose(found[0], np.eye(2) * np.e, rtol=1e-15)
    assert np.isnan(found[1:]).all()
    turn = np.array([[0.0, -20.0], [20.0, 0.0]])
    np.testing.assert_allclose(expm(turn, max_squarings=2).numpy(), rotation(20.0), rtol=1e-13)
    assert np.isnan(expm(turn, max_squarings=1).numpy()).all()
    assert np.isnan(expm(turn * 1e6).numpy()).all()
    np.testing.assert_allclose(
        expm(turn * 1e6, max_squarings=40).numpy(), rotation(2e7), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: expm(np.ones((2, 3))), ShapeError, "square matrices, got float64[2,3]"),
        (lambda: expm([1.0]), ShapeError, "square matrices, got float32[1]"),
        (lambda: expm([["a"]]), DTypeError, "expm: x must hold numbers, got string[1,1]"),
        (lambda: expm([[1.0]], max_squarings=-1), ArgumentError, "must be from 0 to 100, got -1"),
        (lambda: expm([[1.0]], max_squarings=101), ArgumentError, "from 0 to 100, got 101"),
        (lambda: expm([[1.0]], max_squarings=1.5), ArgumentError, "must be an integer, got 1.5"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match="expm: ") as caught:
        call()
    assert message in str(caught.value)
