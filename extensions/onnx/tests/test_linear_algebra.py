"""Products of matrices and vectors, einsum, determinants."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_onnx import NodeError

from .one_operator import WAYS, assert_same, model_of, outputs_of

A = np.array([[1.0, 2, 3], [4, 5, 6]], np.float32)
B = np.array([[1.0, 0, 2, 1], [0, 1, 1, 1], [2, 2, 0, 1]], np.float32)
C = np.array([10.0, 20, 30, 40], np.float32)
WHOLE = A.astype(np.int32), B.astype(np.int32), C.astype(np.int32)
BATCH = np.arange(12, dtype=np.float32).reshape(2, 2, 3)

# What is asked, by name: operator, inputs, attributes, opset, expected output.
CASES = {
    "Gemm 7": ("Gemm", [A, B, C], {}, 7, A @ B + C),
    "Gemm, factors": ("Gemm", [A, B, C], {"alpha": 0.5, "beta": 0.25}, 9, A @ B / 2 + C / 4),
    "Gemm, transposed": ("Gemm", [A.T, B.T, C], {"transA": 1, "transB": 1}, 13, A @ B + C),
    "Gemm, a column": ("Gemm", [A, B, C[:2, None]], {}, 11, A @ B + C[:2, None]),
    "Gemm of two": ("Gemm", [A, B], {"alpha": 2.0}, 11, 2 * (A @ B)),
    "Gemm of integers": ("Gemm", [*WHOLE], {"beta": 0.5}, 9, WHOLE[0] @ WHOLE[1] + WHOLE[2] // 2),
    "MatMul of vectors": ("MatMul", [A[0], A[1]], {}, 9, A[0] @ A[1]),
    "MatMul of a batch": ("MatMul", [BATCH, B], {}, 13, BATCH @ B),
    "MatMul of integers": ("MatMul", [WHOLE[0], WHOLE[1]], {}, 9, WHOLE[0] @ WHOLE[1]),
    "Einsum, named output": ("Einsum", [A, B], {"equation": " ij, jk -> ki "}, 12, (A @ B).T),
    "Einsum, no output": ("Einsum", [B[:, :3]], {"equation": "ii"}, 12, np.float32(2)),
    "Einsum, any axes": ("Einsum", [BATCH, A[0]], {"equation": "...i,i"}, 12, BATCH @ A[0]),
    "Einsum of integers": (
        "Einsum", [WHOLE[0], WHOLE[0]], {"equation": "ij,kj->ik"}, 12, WHOLE[0] @ WHOLE[0].T),
    "Det": ("Det", [np.float64([[2, 1], [7, 4]])], {}, 11, np.float64(1)),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_values(name, way):
    operator, inputs, attributes, opset, expected = CASES[name]
    (found,) = outputs_of(way, operator, inputs, attributes, opset=opset)
    if operator == "Det":
        found = found.round(12)
    assert_same(found, expected)


def test_gradients_reach_both_factors_and_the_bias():
    model = model_of("Gemm", [A, B, C], {"alpha": 3.0, "beta": 2.0})

    def total(a, b, c):
        return tp.sum(model.apply({}, {"x0": a, "x1": b, "x2": c})["y0"])

    of_a, of_b, of_c = tp.grad(total, (0, 1, 2))(*map(tp.asarray, (A, B, C)))
    assert_same(of_a.numpy(), 3 * np.ones((2, 4), np.float32) @ B.T)
    assert_same(of_b.numpy(), 3 * A.T @ np.ones((2, 4), np.float32))
    assert_same(of_c.numpy(), np.full(4, 4, np.float32))


# What must not run, by name: operator, inputs, attributes.
WRONG = {
    "inner sizes": ("MatMul", [A, A], {}),
    "a vector": ("Gemm", [A, B[:, 0]], {}),
    "a batch": ("Gemm", [BATCH, B], {}),
    "a bias that is too large": ("Gemm", [A[:1], B, np.ones((2, 4), np.float32)], {}),
    "a letter of two sizes": ("Einsum", [A, A], {"equation": "ij,jk->ik"}),
    "not square": ("Det", [A], {}),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_the_node(name):
    operator, inputs, attributes = WRONG[name]
    with pytest.raises(NodeError, match=operator):
        outputs_of("called", operator, inputs, attributes)
