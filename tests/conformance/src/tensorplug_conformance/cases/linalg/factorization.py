"""Cases for factorizations of matrices, and for solutions computed with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import LinAlgError, ShapeError, specs
from tensorplug_conformance.case import Bounded, Case, Relation
from tensorplug_conformance.floats import finfo
from tensorplug_conformance.oracle.linalg import factorization as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

    Shape = tuple[int, ...]

cases = CaseTable()

_LARGE = (7283, 3, 3)  # more than 2**16 elements
_SQUARE: tuple[Shape, ...] = (
    (1, 1),
    (2, 2),
    (3, 3),
    (17, 17),
    (2, 3, 3),
    (2, 1, 1, 2, 2, 2),
    _LARGE,
)
_EMPTY: tuple[Shape, ...] = ((0, 0), (0, 3, 3), (2, 0, 0))
_ANY: tuple[Shape, ...] = (
    (1, 1),
    (3, 3),
    (4, 2),
    (2, 4),
    (1, 5),
    (5, 1),
    (11, 7),
    (2, 3, 4),
    (2, 1, 1, 2, 3, 2),
    _LARGE,
)


def _named(shape: Shape) -> str:
    return "x".join(map(str, shape))


def regular(corpus: Corpus, shape: Shape) -> Array:
    """Return matrices far from singular: a dominant diagonal, rows in another order."""
    if not np.prod(shape):
        return corpus.ordinary(shape)
    eye = np.eye(shape[-1]) * (1 + shape[-1] / 2)
    return np.roll(corpus.of(corpus.ordinary(shape, -1.0, 1.0) + eye), 1, axis=-2)


def definite(corpus: Corpus, shape: Shape) -> Array:
    """Return Hermitian matrices with positive eigenvalues."""
    if not np.prod(shape):
        return corpus.ordinary(shape)
    x = corpus.ordinary(shape, -1.0, 1.0)
    eye = np.eye(shape[-1]) * (1 + shape[-1])
    return corpus.of((x + np.swapaxes(x, -1, -2).conj()) / 2 + eye)


def _of_squares(
    corpus: Corpus, make: Callable[[Corpus, Shape], Array], **attributes: Any
) -> Iterator[Case]:
    for shape in (*_SQUARE, *_EMPTY):
        yield Case(_named(shape), (make(corpus, shape),), attributes)
    for layout in ("transposed", "sliced"):
        yield Case(layout, (make(corpus, (3, 3)),), attributes, layout=layout)
    for shape in ((2, 3), (3,), ()):
        wrong = corpus.ordinary(shape)
        yield Case(f"wrong: {_named(shape)}", (wrong,), attributes, expected=ShapeError)


def _of_lower_triangle(corpus: Corpus, answer: Callable[[Array], Any]) -> Case:
    """Return a case whose other triangle has numbers that nothing may read."""
    meant = definite(corpus, (2, 11, 11))
    right = answer(meant)
    whole = np.tril(meant) + np.triu(corpus.ordinary(meant.shape, -1.0, 1.0), 1)
    return Case(
        "lower triangle", (whole,), expected=right if isinstance(right, Relation) else (right,)
    )


# Algorithms differ for matrices that are not finite or badly conditioned.
@cases.of(specs.CHOLESKY, oracle=oracle.cholesky, ordinary=("input",))
def cholesky(corpus: Corpus) -> Iterator[Case]:
    """Definite matrices, and one that is not."""
    yield from _of_squares(corpus, definite)
    yield Case("diagonal", (corpus.of([[4, 0], [0, 9]]),))
    yield _of_lower_triangle(corpus, oracle.cholesky)
    yield Case("not definite", (corpus.of([[1, 2], [2, 1]]),), expected=LinAlgError)


@cases.of(specs.MATRIX_INVERSE, oracle=oracle.matrix_inverse, ordinary=("input",))
def inverse(corpus: Corpus) -> Iterator[Case]:
    """Rows that must be exchanged, adjoints, and a singular matrix."""
    yield from _of_squares(corpus, regular)
    yield Case("adjoint", (regular(corpus, (2, 3, 3)),), {"adjoint": True})
    yield Case("permutation", (corpus.of([[0, 1, 0], [0, 0, 1], [1, 0, 0]]),))
    yield Case("singular", (corpus.of([[1, 2], [0, 0]]),), expected=LinAlgError)


@cases.of(specs.MATRIX_SOLVE, oracle=oracle.matrix_solve, ordinary=("matrix", "rhs"))
def solve(corpus: Corpus) -> Iterator[Case]:
    """One and several right-hand sides, none, broadcast batches."""
    for a, b, attributes in (
        ((3, 3), (3, 1), {}),
        ((3, 3), (3, 4), {}),
        ((1, 1), (1, 2), {}),
        ((2, 3, 3), (2, 3, 2), {}),
        ((2, 3, 3), (2, 3, 2), {"adjoint": True}),
        ((3, 3), (2, 3, 2), {}),
        ((2, 1, 2, 2), (3, 2, 1), {}),
        ((2, 2), (1, 2, 1, 2, 1), {}),
        ((3, 3), (3, 0), {}),
        ((0, 0), (0, 2), {}),
        ((0, 3, 3), (3, 2), {}),
        ((17, 17), (17, 5), {}),
        (_LARGE, (3, 1), {}),
    ):
        name = f"{_named(a)}; {_named(b)}{' adjoint' if attributes else ''}"
        yield Case(name, (regular(corpus, a), corpus.ordinary(b)), attributes)
    for layout in ("transposed", "sliced"):
        yield Case(layout, (regular(corpus, (3, 3)), corpus.ordinary((3, 2))), layout=layout)
    singular = corpus.of([[1, 2], [0, 0]])
    yield Case("singular", (singular, corpus.ordinary((2, 1))), expected=LinAlgError)
    wrong_shapes: tuple[tuple[Shape, Shape], ...] = (
        ((3, 3), (2, 1)),
        ((2, 3), (2, 1)),
        ((3, 3), (3,)),
        ((2, 3, 3), (3, 3, 1)),
    )
    for left, right in wrong_shapes:
        wrong = (corpus.ordinary(left), corpus.ordinary(right))
        yield Case(f"wrong: {_named(left)}; {_named(right)}", wrong, expected=ShapeError)


@cases.of(specs.MATRIX_DETERMINANT, oracle=oracle.matrix_determinant, ordinary=("input",))
def determinant(corpus: Corpus) -> Iterator[Case]:
    """Regular and singular matrices."""
    yield from _of_squares(corpus, lambda corpus, shape: corpus.ordinary(shape, -1.0, 1.0))
    yield Case("singular", (corpus.of([[1, 2], [2, 4]]),))
    yield Case("permutation", (corpus.of([[0, 1, 0], [1, 0, 0], [0, 0, 1]]),))
    yield Case("far from singular", (_signs(corpus, 16),))


def _signs(corpus: Corpus, n: int) -> Array:
    """Return a matrix of +-1/2 with orthogonal rows (Sylvester's): of condition 1."""
    at = np.arange(n)
    common = at[:, None] & at
    odd = np.array([int(number).bit_count() % 2 for number in common.flat]).reshape(n, n)
    return corpus.of(0.5 - odd)


@cases.of(specs.LOG_MATRIX_DETERMINANT, oracle=oracle.log_matrix_determinant, ordinary=("input",))
def log_determinant(corpus: Corpus) -> Iterator[Case]:
    """Signs, and a determinant that would overflow."""
    yield from _of_squares(corpus, regular)
    yield Case("singular", (corpus.of([[1, 2], [0, 0]]),))
    yield Case("permutation", (corpus.of([[0, 1, 0], [1, 0, 0], [0, 0, 1]]),))
    yield Case("huge", (corpus.of(np.eye(30) * 6e4),))


@cases.of(specs.PSEUDO_INVERSE, oracle=oracle.pseudo_inverse, ordinary=("input", "rtol"))
def pseudo_inverse(corpus: Corpus) -> Iterator[Case]:
    """Full ranks, and one that is not."""
    for shape in (
        (1, 1),
        (3, 3),
        (4, 2),
        (2, 4),
        (2, 3, 2),
        (11, 7),
        (2, 1, 1, 2, 3, 2),
        (0, 2, 2),
    ):
        some = corpus.ordinary(shape, -1.0, 1.0)
        eye = 2 * np.eye(*shape[-2:])
        yield Case(_named(shape), (corpus.of(some + eye), None))
    many = corpus.ordinary((5462, 4, 3), -0.25, 0.25)
    yield Case("large", (corpus.of(many + 2 * np.eye(4, 3)), None))
    ones = corpus.of(np.ones((2, 4)))
    eighth = Bounded(np.full((4, 2), 0.125), np.full((4, 2), float(finfo(ones.dtype).eps)))
    yield Case("rank 1", (ones, None), expected=(eighth,))
    real = ones.real.dtype
    inputs = (corpus.of([[4, 0], [0, 1]]), np.asarray(0.5, real))
    quarter = Bounded(np.array([[0.25, 0], [0, 0]]), np.full((2, 2), float(finfo(real).eps)))
    yield Case("rtol", inputs, expected=(quarter,))
    yield Case("wrong: 3", (corpus.ordinary((3,)), None), expected=ShapeError)


@cases.of(specs.QR, oracle=oracle.qr, ordinary=("input",))
def qr(corpus: Corpus) -> Iterator[Case]:
    """Tall, wide, square; reduced and complete; dependent columns."""
    for shape in (*_ANY, (0, 3), (3, 0), (0, 3, 2)):
        yield Case(_named(shape), (corpus.ordinary(shape),))
        if shape != _LARGE:
            full = {"full_matrices": True}
            yield Case(f"{_named(shape)} complete", (corpus.ordinary(shape),), full)
    yield Case("zeros", (corpus.of(np.zeros((3, 2))),))
    yield Case("dependent", (corpus.of([[1, 2], [2, 4], [3, 6]]),))
    yield Case("wrong: 3", (corpus.ordinary((3,)),), expected=ShapeError)


@cases.of(specs.SVD, oracle=oracle.svd, ordinary=("input",))
def svd(corpus: Corpus) -> Iterator[Case]:
    """Tall, wide, square; full and thin; equal values, and zeros."""
    for shape in (*_ANY, (0, 3, 2)):
        yield Case(_named(shape), (corpus.ordinary(shape),))
        yield Case(f"{_named(shape)} values", (corpus.ordinary(shape),), {"compute_uv": False})
        if shape != _LARGE:
            full = {"full_matrices": True}
            yield Case(f"{_named(shape)} full", (corpus.ordinary(shape),), full)
    yield Case("zeros", (corpus.of(np.zeros((3, 2))),))
    yield Case("identity", (corpus.of(np.eye(3)),))
    yield Case("wrong: 3", (corpus.ordinary((3,)),), expected=ShapeError)


@cases.of(specs.SELF_ADJOINT_EIG, oracle=oracle.self_adjoint_eig, ordinary=("input",))
def self_adjoint_eig(corpus: Corpus) -> Iterator[Case]:
    """Hermitian matrices; equal values."""
    yield from _of_squares(corpus, definite)
    yield _of_lower_triangle(corpus, oracle.self_adjoint_eig)
    yield Case("values", (definite(corpus, (2, 3, 3)),), {"compute_v": False})
    yield Case("negative", (corpus.of([[0, 2], [2, 0]]),))
    yield Case("identity", (corpus.of(np.eye(3)),))


@cases.of(specs.EIG, oracle=oracle.eig, ordinary=("input",))
def eig(corpus: Corpus) -> Iterator[Case]:
    """Real and complex values of any square matrices."""
    shapes = ((1, 1), (2, 2), (3, 3), (2, 4, 4), (2, 1, 1, 2, 2, 2), *_EMPTY)
    for shape in shapes:
        yield Case(_named(shape), (corpus.ordinary(shape),))
    yield Case("values", (corpus.ordinary((2, 3, 3)),), {"compute_v": False})
    yield Case("turn", (corpus.of([[0, -1], [1, 0]]),))
    yield Case("wrong: 2x3", (corpus.ordinary((2, 3)),), expected=ShapeError)
    yield Case("large", (corpus.ordinary((16400, 2, 2)),))


# Gradients. Of multiple outputs the first is tried: of Svd and SelfAdjointEigV2 the values.


def _points(make: Callable[[Corpus, Shape], Array], *shapes: Shape, **attributes: Any) -> Any:
    def points(corpus: Corpus) -> Iterator[Case]:
        for shape in shapes:
            yield Case(_named(shape), (make(corpus, shape),), attributes)

    return points


def _spread(corpus: Corpus, shape: Shape) -> Array:
    """Return matrices whose singular values are far apart, and from 0."""
    steps = np.zeros(shape)
    for at in range(min(shape[-2:])):
        steps[..., at, at] = 2.0 * (at + 1)
    return corpus.of(corpus.ordinary(shape, -0.5, 0.5) + steps)


def _spread_hermitian(corpus: Corpus, shape: Shape) -> Array:
    x = _spread(corpus, shape)
    return corpus.of((x + np.swapaxes(x, -1, -2).conj()) / 2)


cases.gradients(specs.CHOLESKY, "input")(_points(definite, (3, 3), (2, 2, 2), (1, 1), *_EMPTY))


@cases.gradients(specs.MATRIX_DETERMINANT, "input")
def determinants(corpus: Corpus) -> Iterator[Case]:
    """Polynomials of the elements, also where they are 0."""
    yield from _points(regular, (3, 3), (2, 2, 2), (1, 1), (4, 4), *_EMPTY)(corpus)
    yield Case("singular", (corpus.of([[1, 2], [2, 4]]),))
    yield Case("singular, 3x3", (corpus.of([[0, 1, 2], [3, 4, 5], [6, 7, 8]]),))


@cases.gradients(specs.LOG_MATRIX_DETERMINANT, "input")
def log_determinants(corpus: Corpus) -> Iterator[Case]:
    """Regular matrices, one with a negative determinant."""
    yield from _points(regular, (3, 3), (2, 2, 2), (1, 1), *_EMPTY)(corpus)
    yield Case("negative", (corpus.of([[1, 2], [3, 4]]),))


@cases.gradients(specs.SVD, "input")
def singular_values(corpus: Corpus) -> Iterator[Case]:
    """Square, tall and wide; the values beside the vectors, and alone."""
    yield from _points(_spread, (3, 3), (3, 2), (2, 2, 3), (1, 1), (0, 2, 2))(corpus)
    yield Case("values", (_spread(corpus, (3, 2)),), {"compute_uv": False})


@cases.gradients(specs.SELF_ADJOINT_EIG, "input")
def eigenvalues(corpus: Corpus) -> Iterator[Case]:
    """The values beside the vectors, and alone."""
    yield from _points(_spread_hermitian, (3, 3), (2, 2, 2), (1, 1), (0, 2, 2))(corpus)
    yield Case("values", (_spread_hermitian(corpus, (3, 3)),), {"compute_v": False})


@cases.gradients(specs.MATRIX_INVERSE, "input")
def inverted(corpus: Corpus) -> Iterator[Case]:
    """One matrix, several, none; the inverse and its adjoint."""
    for shape in ((3, 3), (2, 2, 2), (1, 1), *_EMPTY):
        for adjoint in (False, True):
            inputs = (regular(corpus, shape),)
            yield Case(f"{_named(shape)} {adjoint}", inputs, {"adjoint": adjoint})


@cases.gradients(specs.MATRIX_SOLVE, "matrix", "rhs")
def solved(corpus: Corpus) -> Iterator[Case]:
    """Broadcast batches and adjoints."""
    for a, b in (
        ((2, 2), (2, 2)),
        ((2, 2, 2), (2, 1)),
        ((2, 2), (3, 2, 1)),
        ((2, 1, 2, 2), (3, 2, 1)),
        ((1, 1), (1, 2)),
        ((0, 0), (0, 2)),
        ((2, 2), (0, 2, 1)),
    ):
        for adjoint in (False, True):
            inputs = (regular(corpus, a), corpus.ordinary(b))
            yield Case(f"{_named(a)}; {_named(b)} {adjoint}", inputs, {"adjoint": adjoint})


@cases.gradients(specs.PSEUDO_INVERSE, "input")
def pseudo_inverted(corpus: Corpus) -> Iterator[Case]:
    """Square, tall and wide."""
    for shape in ((2, 2), (3, 2), (2, 2, 3), (1, 1), (1, 2), (0, 2, 2)):
        yield Case(_named(shape), (_spread(corpus, shape), None))
    yield Case("cut off", (_spread(corpus, (3, 2)), corpus.of(1e-3).real))
