"""Cases for the cross-entropy of softmax, and for the gradient of softmax."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ShapeError, specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle.nn import cross_entropy as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

Shape = tuple[int, ...]

_SHAPES: tuple[tuple[str, Shape], ...] = (
    ("rank 1", (5,)),
    ("rows", (4, 7)),
    ("rank 3", (2, 3, 4)),
    ("one class", (3, 1)),
    ("no examples", (0, 3)),
    ("no classes", (3, 0)),
    ("large", (257, 259)),
    ("many classes", (2, 1000)),
)


def _one_hot(corpus: Corpus, shape: Shape) -> Array:
    """Return labels whose classes repeat in turn."""
    chosen = np.arange(int(np.prod(shape[:-1], dtype=int))) % max(shape[-1], 1)
    return corpus.of(np.eye(shape[-1])[chosen].reshape(shape) if shape[-1] else np.zeros(shape))


def _scores(corpus: Corpus) -> list[tuple[str, Array, Array]]:
    """Return cases that overflow without a shift, and soft labels."""
    far = corpus.of([[1000.0, 1001, 999], [-1000, -1001, -1000], [0, 30, -30]])
    return [
        ("far", corpus.of([[0.0, 1, 0], [1, 0, 0], [0.0, 1, 0]]), far),
        ("soft labels", corpus.of([[0.25, 0.5, 0.25]]), corpus.ordinary((1, 3))),
        ("labels that do not add up to 1", corpus.ordinary((2, 3)), corpus.ordinary((2, 3))),
        ("uniform", corpus.of([[1.0, 0, 0, 0]]), corpus.of(np.zeros((1, 4)))),
        ("sure", corpus.of([[1.0, 0]]), corpus.of([[12.0, -4]])),
        ("far apart", corpus.of([[0.0, 1, 0]]), corpus.of([[500.0, -400, 3]])),
        (
            "impossible classes",
            corpus.of([[0.0, 1, 0]] * 2),
            corpus.of([[-inf, 2, 1], [-inf, 3, -inf]]),
        ),
        ("impossible label", corpus.of([[0.0, 1, 0]]), corpus.of([[3.0, -inf, 2]])),
    ]


@cases.of(specs.SOFTMAX_CROSS_ENTROPY, oracle=oracle.cross_entropy)
def cross_entropy(corpus: Corpus) -> Iterator[Case]:
    """One-hot and soft labels, scores of any size."""
    for name, shape in _SHAPES:
        yield Case(name, (_one_hot(corpus, shape), corpus.ordinary(shape)))
    if corpus.floating:
        for name, labels, scores in _scores(corpus):
            yield Case(name, (labels, scores))
        yield Case("not a number", (corpus.of([[1.0, 0]]), corpus.of([[np.nan, 0]])))
    for layout in ("transposed", "sliced"):
        yield Case(layout, (_one_hot(corpus, (3, 4)), corpus.ordinary((3, 4))), layout=layout)


@cases.of(specs.SOFTMAX_CROSS_ENTROPY_GRAD, oracle=oracle.cross_entropy_grad)
def cross_entropy_grad(corpus: Corpus) -> Iterator[Case]:
    for name, shape in _SHAPES:
        dy, labels = corpus.ordinary(shape[:-1]), _one_hot(corpus, shape)
        yield Case(name, (dy, labels, corpus.ordinary(shape)))
    for name, labels, scores in _scores(corpus):
        yield Case(name, (corpus.ordinary(labels.shape[:-1]), labels, scores))


def _classes(shape: Shape) -> Array:
    """Return labels that name each class in turn, the last first."""
    count = int(np.prod(shape[:-1], dtype=int))
    numbers = shape[-1] - 1 - np.arange(count, dtype=np.int32) % shape[-1]
    return np.asarray(numbers.reshape(shape[:-1]))


_SPARSE_SHAPES = tuple((name, shape) for name, shape in _SHAPES if shape[-1])


@cases.of(specs.SPARSE_SOFTMAX_CROSS_ENTROPY, oracle=oracle.sparse_cross_entropy)
def sparse_cross_entropy(corpus: Corpus) -> Iterator[Case]:
    """Labels of every integer dtype, scores of any size, labels that name no class."""
    for name, shape in _SPARSE_SHAPES:
        yield Case(name, (_classes(shape), corpus.ordinary(shape)))
    if corpus.floating:
        for name, labels, scores in _scores(corpus):
            yield Case(name, (labels.argmax(axis=-1).astype(np.int32), scores))
        lost = corpus.of([[np.nan, 0], [0.0, 1]])
        yield Case("not a number", (np.array([1, 0], np.int32), lost))
    numbers = np.array([2, 0, 1])
    for dtype in ("int8", "uint8", "int16", "uint16", "uint32", "int64", "uint64"):
        yield Case(dtype, (numbers.astype(dtype), corpus.ordinary((3, 4))))
    for layout in ("transposed", "sliced"):
        yield Case(layout, (_classes((3, 4, 5)), corpus.ordinary((3, 4, 5))), layout=layout)
    scores = corpus.ordinary((2, 3))
    yield Case("shapes differ", (numbers, scores), expected=ShapeError)
    yield Case("no classes", (numbers, corpus.ordinary((3, 0))), expected=ShapeError)
    yield Case("one number", (np.array(0), corpus.of(0)), expected=ShapeError)


@cases.of(specs.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD, oracle=oracle.sparse_cross_entropy_grad)
def sparse_cross_entropy_grad(corpus: Corpus) -> Iterator[Case]:
    for name, shape in _SPARSE_SHAPES:
        yield Case(name, (corpus.ordinary(shape[:-1]), _classes(shape), corpus.ordinary(shape)))
    for name, labels, scores in _scores(corpus):
        chosen = labels.argmax(axis=-1).astype(np.int32)
        yield Case(name, (corpus.ordinary(chosen.shape), chosen, scores))
    lost = corpus.of([[np.nan, 0], [-inf, -inf], [0.0, 1]])
    yield Case("ignored rows", (corpus.of([0.0, 0, 2]), np.zeros(3, np.int32), lost))
    dy, chosen = corpus.ordinary((3, 4)), _classes((3, 4, 5))
    for layout in ("transposed", "sliced"):
        yield Case(layout, (dy, chosen, corpus.ordinary((3, 4, 5))), layout=layout)
    wrong = (dy[:2], chosen, corpus.ordinary((3, 4, 5)))
    yield Case("dy does not fit", wrong, expected=ShapeError)


_AXES: tuple[tuple[str, Shape, dict[str, Any]], ...] = (
    ("last axis", (3, 4), {}),
    ("first axis", (4, 3), {"dim": 0}),
    ("negative axis", (2, 3, 2), {"dim": -2}),
    ("rank 1", (5,), {}),
    ("one class", (3, 1), {}),
    ("empty", (0, 3), {}),
    ("no classes", (3, 0), {}),
    ("large", (257, 259), {}),
    ("large, first axis", (259, 257), {"dim": 0}),
    ("many classes", (2, 40000), {}),
    ("rank 6", (1, 2, 1, 3, 1, 2), {"dim": 3}),
)


@cases.of(specs.SOFTMAX_GRAD, oracle=oracle.softmax_grad)
def softmax_grad(corpus: Corpus) -> Iterator[Case]:
    """Along any axis, for any y."""
    for name, shape, attributes in _AXES:
        yield Case(name, (corpus.ordinary(shape), corpus.ordinary(shape, 0.0, 1.0)), attributes)
    for layout in ("transposed", "sliced"):
        yield Case(layout, (corpus.ordinary((3, 5)), corpus.ordinary((3, 5))), layout=layout)


_POINTS: tuple[tuple[str, Shape], ...] = (
    ("rows", (2, 3)),
    ("rank 1", (3,)),
    ("rank 3", (2, 1, 2)),
    ("one class", (2, 1)),
    ("no examples", (0, 3)),
)


@cases.gradients(specs.SOFTMAX_CROSS_ENTROPY, "labels", "logits", slopes=oracle.slopes)
def cross_entropy_points(corpus: Corpus) -> Iterator[Case]:
    for name, shape in _POINTS:
        yield Case(name, (corpus.ordinary(shape), corpus.ordinary(shape, -1.0, 1.0)))


@cases.gradients(specs.SOFTMAX_CROSS_ENTROPY_GRAD, "dy", "labels", "logits", cancelled=1)
def cross_entropy_grad_points(corpus: Corpus) -> Iterator[Case]:
    for name, shape in (*_POINTS, ("rank 4", (1, 2, 1, 2))):
        dy, scores = corpus.ordinary(shape[:-1]), corpus.ordinary(shape, -1.0, 1.0)
        yield Case(name, (dy, corpus.ordinary(shape), scores))


@cases.gradients(specs.SPARSE_SOFTMAX_CROSS_ENTROPY, "logits")
def sparse_cross_entropy_points(corpus: Corpus) -> Iterator[Case]:
    for name, shape in _POINTS:
        yield Case(name, (_classes(shape), corpus.ordinary(shape, -1.0, 1.0)))


@cases.gradients(specs.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD, "dy", "logits")
def sparse_cross_entropy_grad_points(corpus: Corpus) -> Iterator[Case]:
    for name, shape in _POINTS:
        scores = corpus.ordinary(shape, -1.0, 1.0)
        yield Case(name, (corpus.ordinary(shape[:-1]), _classes(shape), scores))


@cases.gradients(specs.SOFTMAX_GRAD, "dy", "y", cancelled=1)
def softmax_grad_points(corpus: Corpus) -> Iterator[Case]:
    for name, shape in _POINTS:
        yield Case(name, (corpus.ordinary(shape), corpus.ordinary(shape, 0.0, 1.0)))
    pair = corpus.ordinary((3, 2)), corpus.ordinary((3, 2))
    yield Case("first axis", pair, {"dim": 0})
    yield Case("negative axis", pair, {"dim": -2})
    deep = corpus.ordinary((1, 2, 3)), corpus.ordinary((1, 2, 3))
    yield Case("third axis", deep, {"dim": 2})
