"""What is composed of factorizations, ranks, norms, parts, stacks of many axes; refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.core.support.refusals import refused
from tests.core.support.samples import real

import tensorplug as tp
from tensorplug.errors import (
    ArgumentError,
    GradientNotFoundError,
    LinAlgError,
    ShapeError,
    TensorplugError,
)

L = tp.linalg
REGULAR = real(2, 3, 3) + 3 * np.eye(3)
TALL = real(2, 4, 3) + 2 * np.eye(4, 3)
COMPLEX = REGULAR + 1j * real(2, 3, 3, salt=1)
INF = math.inf


pytestmark = pytest.mark.usefixtures("on_the_cpu")


def adjoint(x):
    return np.swapaxes(x, -1, -2).conj()


def close(got, expected, tolerance=1e-11):
    array = got.numpy()
    assert array.shape == np.shape(expected)
    np.testing.assert_allclose(array, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("x", [REGULAR, COMPLEX], ids=["real", "complex"])
def test_what_is_composed_of_kernels(x):
    close(L.matrix_power(x, 5), x @ x @ x @ x @ x, 1e-10)
    close(tp.asarray(x @ x) @ L.matrix_power(x, -2), np.stack([np.eye(3)] * 2))
    close(L.matrix_power(x, 0), np.stack([np.eye(3)] * 2))
    vector = x[0, 0]
    close(L.solve(x, vector), np.linalg.solve(x, np.stack([vector[:, None]] * 2))[..., 0])
    definite = x @ adjoint(x)
    close(L.cholesky(definite, upper=True), adjoint(L.cholesky(definite).numpy()))
    for matrix in (x, x[:, :2], x[..., :2]):
        pseudo = L.pinv(matrix).numpy()
        np.testing.assert_allclose(matrix @ pseudo @ matrix, matrix, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(pseudo @ matrix, adjoint(pseudo @ matrix), atol=1e-12)


@pytest.mark.parametrize(
    "name", ["eig", "eigvals", "eigh", "eigvalsh", "svd", "svdvals", "pinv", "lu"]
)
@pytest.mark.parametrize("leading", [(1,) * 30, (1,) * 61 + (2,), (0,) + (1,) * 61])
def test_stacks_with_many_axes_are_those_of_one_axis(name, leading):
    function = getattr(tp.linalg, name)
    stack = np.broadcast_to(np.float32([[2, 1], [1, 3]]), (math.prod(leading), 2, 2))
    flat, deep = function(stack), function(stack.reshape(*leading, 2, 2))
    parts = zip(flat, deep, strict=True) if isinstance(flat, tuple) else [(flat, deep)]
    for one, many in parts:
        assert many.dtype == one.dtype
        assert many.shape == (*leading, *one.shape[1:])
        assert many.numpy().ravel().tolist() == one.numpy().ravel().tolist()


def test_ranks():
    assert L.matrix_rank(np.ones((3, 4))).item() == 1
    assert L.matrix_rank(np.zeros((3, 4))).item() == 0
    assert L.matrix_rank(np.diag([4.0, 2.0, 1.0]), rtol=0.4).item() == 2
    assert L.matrix_rank(np.stack([np.diag([4.0, 1.0])] * 2), rtol=[0.5, 0.1]).tolist() == [1, 2]
    assert L.matrix_rank(np.zeros((2, 0))).item() == 0
    close(L.pinv(np.diag([4.0, 1.0]), rtol=0.5), np.diag([0.25, 0]))


M = np.array([[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]])
MATRIX_NORMS = {
    "fro": 91**0.5,
    1: 9.0,
    -1: 5.0,
    INF: 15.0,
    -INF: 6.0,
}
VECTOR_NORMS = {2: 91**0.5, 1: 21.0, 0: 6.0, INF: 6.0, -INF: 1.0, 3: 441 ** (1 / 3), -1: 1 / 2.45}


def test_norms():
    for order, expected in MATRIX_NORMS.items():
        assert L.matrix_norm(M, ord=order).item() == pytest.approx(expected)
        assert L.matrix_norm(M[None], ord=order, keepdims=True).shape == (1, 1, 1)
        assert L.norm(M, order, [0, 1]).item() == pytest.approx(expected)
    for order, expected in VECTOR_NORMS.items():
        assert L.vector_norm(M, ord=order).item() == pytest.approx(expected)
        assert L.norm(M, order).item() == pytest.approx(expected)
    values = L.svdvals(M).numpy()
    for order, expected in {2: values[0], -2: values[1], "nuc": values.sum()}.items():
        assert L.matrix_norm(M, ord=order).item() == pytest.approx(expected)
    assert L.vector_norm(M, axis=0, keepdims=True).shape == (1, 3)
    assert L.vector_norm(M, axis=(0, 1)).item() == pytest.approx(91**0.5)
    assert L.vector_norm([3j, 4.0]).dtype is tp.float32
    assert L.vector_norm([3, 4]).item() == 5
    assert L.vector_norm(np.full(4, 300.0, np.float16)).item() == 600  # squares overflow there
    assert tp.asarray(M).norm("euclidean", 1, keepdims=True).shape == (2, 1)
    assert tp.asarray(M).euclidean_norm().item() == pytest.approx(91**0.5)


def test_parts_of_matrices():
    x = np.arange(12).reshape(3, 4)
    for offset in range(-4, 6):
        got = L.diagonal(x, offset=offset)
        wanted = [int(x[i, i + offset]) for i in range(3) if 0 <= i + offset < 4]
        assert got.tolist() == wanted
        assert L.trace(x, offset=offset).item() == sum(wanted)
    assert L.trace(x, dtype="float64").dtype is tp.float64
    for lower, upper in ((0, 0), (1, 0), (0, 2), (-1, 0), (0, -1), (-1, -1), (3, 4)):
        kept = [
            [
                int(x[i, j])
                if (lower < 0 or i - j <= lower) and (upper < 0 or j - i <= upper)
                else 0
                for j in range(4)
            ]
            for i in range(3)
        ]
        assert L.band_part(x, lower, upper).tolist() == kept
    assert L.outer([1, 2], [3, 4]).tolist() == [[3, 4], [6, 8]]
    assert L.cross([1, 0, 0], [[0, 1, 0], [0, 0, 1]]).tolist() == [[0, 0, 1], [0, -1, 0]]
    assert L.cross([[1], [0], [0]], [[0], [1], [0]], axis=-2).tolist() == [[0], [0], [1]]


def test_gram_schmidt_as_tfjs_has_it():
    basis = L.gram_schmidt(REGULAR[0])
    close(basis @ tp.matrix_transpose(basis), np.eye(3))
    np.testing.assert_allclose(np.cross(basis.numpy()[0], REGULAR[0, 0]), 0, atol=1e-12)
    listed = L.gram_schmidt([[3.0, 0.0], [1.0, 2.0]])
    assert [vector.tolist() for vector in listed] == [[1, 0], [0, 1]]


REFUSED = {  # error: call, what the message says
    ShapeError: [
        (lambda: L.det(np.ones((2, 3))), "must be square, got 2 rows and 3"),
        (lambda: L.svd(np.ones(3)), "must have at least rank 2"),
        (lambda: L.solve(np.eye(2), [1.0]), "have 2 rows, but the right-hand sides have 1"),
        (lambda: L.pinv(np.eye(2), rtol=[0.1]), "rtol of shape [1] does not"),
        (lambda: L.matrix_norm([1.0]), "matrix_norm: x must have at least rank 2"),
        (lambda: L.matrix_power(M, 2), "matrix_power: the matrices must be square"),
        (lambda: L.cross([1, 2], [3, 4]), "must have length 3 along axis -1"),
        (lambda: L.outer(M, [1]), "outer: the operands must be vectors"),
        (lambda: L.gram_schmidt([[1.0], [2.0]]), "2 vectors of 1 elements cannot"),
        (lambda: L.gram_schmidt([]), "xs must be vectors of the same length, got none"),
    ],
    LinAlgError: [
        (lambda: L.inv(np.zeros((2, 2))), "singular"),
        (lambda: L.solve(np.zeros((2, 2)), [1.0, 2.0]), "singular"),
        (lambda: L.cholesky(-np.eye(2)), "not positive definite"),
    ],
    ArgumentError: [
        (lambda: L.qr(np.eye(2), mode="r"), "mode must be one of 'reduced'"),
        (lambda: L.matrix_norm(M, ord=3), "ord must be 'fro', 'nuc', 1"),
        (lambda: L.vector_norm(M, ord="fro"), "ord must be a real number"),
        (lambda: L.norm(M, 2, [0, 1]), "ord of a matrix must be"),
        (lambda: L.norm(M, 2, [0, 1, 2]), "axis must name one or two axes"),
        (lambda: L.band_part(M, 3, 0), "num_lower must be at most 2"),
    ],
}

test_refusals = refused(REFUSED)


def test_the_error_of_linear_algebra_is_also_numpys():
    assert issubclass(LinAlgError, TensorplugError)
    assert issubclass(LinAlgError, np.linalg.LinAlgError)


def test_gradients_at_zero_and_at_equal_values_are_finite():
    assert tp.grad(L.vector_norm)(np.zeros(3, np.float32)).tolist() == [0, 0, 0]
    assert tp.grad(lambda x: tp.sum(L.svdvals(x)))(np.eye(2)).tolist() == [[1, 0], [0, 1]]
    assert tp.grad(lambda x: tp.sum(L.svd(x).S))(np.eye(2)).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("f", "x", "message"),
    [
        (lambda x: L.svd(x).S, TALL, "use full_matrices=False or svdvals"),
        (lambda x: L.qr(x, mode="complete").R, TALL, "use mode='reduced'"),
    ],
)
def test_missing_gradients_raise(f, x, message):
    with pytest.raises(GradientNotFoundError) as caught:
        tp.grad(lambda x: tp.sum(f(x)))(x)
    assert message in str(caught.value)


@pytest.mark.parametrize("order", [1, 2, INF, "fro", "nuc"])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 0), (0, 2, 2)])
def test_norms_of_empty_matrices_are_0(shape, order):
    got = L.matrix_norm(np.zeros(shape), ord=order)
    assert got.dtype is tp.float64
    np.testing.assert_array_equal(got.numpy(), np.zeros(shape[:-2]))
    kept = L.matrix_norm(np.zeros(shape), ord=order, keepdims=True)
    np.testing.assert_array_equal(kept.numpy(), np.zeros((*shape[:-2], 1, 1)))
