"""Determinants: a kernel that is wrong by a thousandth is caught, one that rounds is not."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance import Corpus
from tensorplug_conformance.cases.linalg import factorization as cases
from tensorplug_conformance.oracle.linalg import factorization as oracle

FLOAT32 = Corpus(dt.of("float32"))
GIVEN = [np.asarray(array.inputs[0]) for array in cases.determinant(FLOAT32)]
LARGEST = [array for array in GIVEN if array.shape in ((16, 16), (17, 17))]


def exact(matrix: np.ndarray[Any, Any]) -> float:
    """Return the determinant, eliminated in fractions."""
    rows = [[Fraction(float(number)) for number in row] for row in matrix]
    result = Fraction(1)
    while rows:
        at = next(k for k, row in enumerate(rows) if row[0])
        first = rows.pop(at)
        result *= first[0] * (-1) ** at
        rows = [
            [a - row[0] / first[0] * b for a, b in zip(row[1:], first[1:], strict=True)]
            for row in rows
        ]
    return float(result)


def eliminated(matrix: np.ndarray[Any, Any]) -> Any:
    """Return the determinant as a device without float64 computes it."""
    work, result = matrix.copy(), matrix.dtype.type(1)
    for at in range(len(work)):
        row = at + int(np.argmax(np.abs(work[at:, at])))
        if row != at:
            work[[at, row]] = work[[row, at]]
            result = -result
        result *= work[at, at]
        factors = work[at + 1 :, at] / work[at, at]
        work[at + 1 :] -= factors[:, None] * work[at]
    return result


def test_there_are_large_ones_among_the_cases() -> None:
    assert {len(matrix) for matrix in LARGEST} == {16, 17}


@pytest.mark.parametrize("matrix", LARGEST, ids=len)
def test_a_thousandth_is_too_much(matrix: np.ndarray[Any, Any]) -> None:
    reference = oracle.matrix_determinant(matrix)
    value, bound = float(reference.value), float(reference.bound)
    assert value == pytest.approx(exact(matrix), rel=1e-15)
    assert bound < 0.001 * abs(value)
    assert abs(float(eliminated(matrix)) - value) < bound / 4


@pytest.mark.parametrize("n", [1, 2, 3, 5, 17])
def test_rounding_is_not_too_much(n: int) -> None:
    for seed in range(50):
        matrix = np.random.default_rng(seed).uniform(-1, 1, (n, n)).astype(np.float32)
        reference = oracle.matrix_determinant(matrix)
        assert abs(float(eliminated(matrix)) - float(reference.value)) < float(reference.bound) / 2


def test_a_kernel_that_is_wrong_by_a_thousandth_fails() -> None:
    with tp.use_backend("cpu"):
        for matrix in LARGEST:
            reference = oracle.matrix_determinant(matrix)
            right = tp.linalg.det(matrix)
            wrong = right * 1.001
            assert abs(right.item() - float(reference.value)) <= float(reference.bound)
            assert abs(wrong.item() - float(reference.value)) > float(reference.bound)
