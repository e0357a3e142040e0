"""jacobian and hessian."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.core.support.tensors import live, same, tensor

import tensorplug as tp
from tensorplug.autodiff import derivatives
from tensorplug.dispatch.context import current_context
from tensorplug.errors import ArgumentError, DTypeError, NotConnectedError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.array([0.3, -0.7, 1.9])
A = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]])
S = np.array([[2.0, -1.0, 0.5], [3.0, 0.25, -2.0], [1.5, 4.0, 1.0]])

# what, f, argument, its jacobian by another formula
MATRICES: list[tuple[str, Any, Any, Any]] = [
    ("linear map", lambda x: tp.matmul(A, x), X, A),
    ("elementwise", tp.sin, X, np.diag(np.cos(X))),
    ("rank 0 to rank 0", lambda x: x**3, 2.0, 12.0),
    ("to rank 0", lambda x: tp.sum(x * x), X, 2 * X),
    ("from rank 0", lambda x: x * A, 2.0, A),
    ("rank 2 to rank 0", tp.sum, A, np.ones_like(A)),
    ("rank 2 to rank 2", lambda m: tp.matmul(m, S), A, np.einsum("ik,lj->ijkl", np.eye(2), S)),
    ("transpose", tp.matrix_transpose, A, np.einsum("il,jk->ijkl", np.eye(3), np.eye(2))),
    ("broadcast", lambda x: A * x, X, A[:, :, None] * np.eye(3)),
    ("the identity", lambda x: x, X, np.eye(3)),
    ("one element", lambda x: x[1:2], X, [[0, 1, 0]]),
    ("size 1", lambda x: x * 2.0, X[:1], [[2]]),
    ("empty result", lambda x: x[:0] * 2.0, X, np.zeros((0, 3))),
    ("empty result of rank 2", lambda x: tp.reshape(x, (2, 0, 1)), X[:0], np.zeros((2, 0, 1, 0))),
    ("empty argument", lambda x: tp.sum(x), X[:0], np.zeros(0)),  # noqa: PLW0108  # as the others
]


@pytest.mark.parametrize("dtype", [tp.float64, tp.float32], ids=str)
@pytest.mark.parametrize("row", MATRICES, ids=[row[0] for row in MATRICES])
def test_a_matrix_of_derivatives(row: Any, dtype: tp.DType) -> None:
    _, f, x, expected = row
    result = tp.jacobian(lambda x: tp.astype(f(x), dtype))(tp.asarray(x, dtype=dtype))
    same(result, expected, dtype=dtype)
    assert result._node is None


def test_the_dtype_is_the_arguments() -> None:
    result = tp.jacobian(lambda x: tp.astype(x * 2.0, tp.float64))(tensor(X))
    same(result, 2 * np.eye(3), dtype=tp.float32)


def test_argnums_and_keywords() -> None:
    def f(a: tp.Tensor, b: tp.Tensor, *, scale: float) -> tp.Tensor:
        return tp.matmul(a, b) * scale

    a, b = tensor(A), tensor(X)
    wrt_a = 2 * np.einsum("ik,l->ikl", np.eye(2), X)
    same(tp.jacobian(f)(a, b, scale=2.0), wrt_a)
    same(tp.jacobian(f, 1)(a, b, scale=2.0), 2 * A)
    same(tp.jacobian(f, -1)(a, b, scale=2.0), 2 * A)
    both = tp.jacobian(f, (1, 0))(a, b, scale=2.0)
    assert isinstance(both, tuple)
    same(both[0], 2 * A)
    same(both[1], wrt_a)
    (single,) = tp.jacobian(f, [1])(a, b, scale=2.0)
    same(single, 2 * A)
    with pytest.raises(ArgumentError, match="argnums 2 is out of range"):
        tp.jacobian(f, 2)(a, b, scale=2.0)


@dataclass(frozen=True)
class Model:
    weight: Any
    bias: Any = None
    name: str = field(default="m", metadata={"static": True})


def test_trees_of_arguments_and_results() -> None:
    def f(model: Model, x: Any) -> Any:
        assert model.name == "m"
        return {"y": tp.matmul(model.weight, x[0]), "norm": [tp.sum(x[0] * x[0])]}

    result = tp.jacobian(f, (0, 1), unconnected="zeros")(Model(tensor(A)), [tensor(X)])
    assert (list(result), type(result["norm"])) == (["y", "norm"], list)
    model, (x,) = result["y"]
    assert (model.bias, model.name) == (None, "m")
    same(model.weight, np.einsum("ik,l->ikl", np.eye(2), X))
    same(x, A)
    model, (x,) = result["norm"][0]
    same(model.weight, np.zeros_like(A))
    same(x, 2 * X)


def test_unconnected_arguments() -> None:
    with pytest.raises(NotConnectedError, match=r"back to argument 1 \(float32\[3\]\)"):
        tp.jacobian(lambda a, _: a * 2.0, (0, 1))(tensor(X), tensor(X))
    with pytest.raises(NotConnectedError):  # of an empty result as well
        tp.jacobian(lambda _: tensor(X[:0]))(tensor(X))
    with pytest.raises(NotConnectedError, match=r"bool\[3\]"):
        tp.jacobian(lambda x: x > 0)(tensor(X))
    zeros = tp.jacobian(lambda a, _: a * 2.0, (0, 1), unconnected="zeros")(tensor(X), tensor(A))
    same(zeros[1], np.zeros((3, 2, 3)))


def test_one_backward_pass_for_all_elements() -> None:
    calls = []
    seen = tp.custom_grad(lambda x: (x * 3.0, lambda dy: calls.append(1) or dy * 3.0))
    same(tp.jacobian(seen)(tensor(A)), np.eye(A.size).reshape(A.shape * 2) * 3)
    assert len(calls) == 1


def test_large_jacobians_take_several_backward_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    seen = tp.custom_grad(lambda x: (x * 3.0, lambda dy: calls.append(1) or dy * 3.0))
    monkeypatch.setattr(derivatives, "MOST_ELEMENTS", 4 * A.size)
    same(tp.jacobian(seen)(tensor(A)), np.eye(A.size).reshape(A.shape * 2) * 3)
    assert len(calls) == 2  # of four and two elements


def test_a_jacobian_inside_a_gradient() -> None:
    # sum over ij of d(x_i**3)/dx_j = sum of 3 x**2, whose gradient is 6 x.
    f = tp.jacobian(lambda x: x**3)
    same(tp.grad(lambda x: tp.sum(f(x)))(tensor(X)), 6 * X)
    # Forward over reverse over reverse.
    third = tp.jvp(tp.hessian(lambda x: tp.sum(x**3)), (tensor(X),), (tensor([1.0, 2.0, 3.0]),))
    same(third[1], np.diag([6, 12, 18]))


# Hessians -------------------------------------------------------------------------------


def quadratic(x: tp.Tensor) -> tp.Tensor:
    return tp.sum(x * tp.matmul(S, x)) / 2.0


def test_of_a_quadratic_form() -> None:
    x = tp.asarray(X)
    same(tp.hessian(quadratic)(x), (S + S.T) / 2, dtype=tp.float64)


def test_of_a_function_that_mixes_its_elements() -> None:
    result = tp.hessian(lambda x: tp.prod(tp.sin(x)))(tp.asarray(X)).numpy()
    sine, cosine = np.sin(X), np.cos(X)
    expected = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            others = np.prod([sine[k] for k in range(3) if k not in (i, j)])
            expected[i, j] = -np.prod(sine) if i == j else cosine[i] * cosine[j] * others
    np.testing.assert_allclose(result, expected, rtol=1e-12)


LINEAR: dict[str, Any] = {
    "sum": tp.sum,
    "product with a constant": lambda x: tp.sum(x * 3.0),
    "one element": lambda x: x[0],
    "identity of rank 0": lambda x: x[0] + 0.0,
    "relu": lambda x: tp.sum(tp.nn.relu(x)),
}


@pytest.mark.parametrize("f", LINEAR)
def test_of_a_linear_function_it_is_zero(f: str) -> None:
    same(tp.hessian(LINEAR[f])(tensor(X)), np.zeros((3, 3)))


def test_several_arguments_give_a_tuple_of_tuples() -> None:
    f = lambda a, b: tp.sum(a * a * a) * b + b * b  # noqa: E731  # reads as a formula
    result = tp.hessian(f, (0, 1))(tensor(X), tensor(2.0))
    assert [type(result), type(result[0]), len(result), len(result[1])] == [tuple, tuple, 2, 2]
    same(result[0][0], np.diag(12 * X))
    same(result[0][1], 3 * X**2)
    same(result[1][0], 3 * X**2)
    same(result[1][1], 2)


def test_a_tree_gives_a_tree_of_trees() -> None:
    f = lambda p: tp.sum(p["a"] * p["a"]) * p["b"]  # noqa: E731  # reads as a formula
    result = tp.hessian(f)({"a": tensor(X), "b": tensor(2.0), "none": None})
    assert {outer: list(inner) if inner else None for outer, inner in result.items()} == {
        "a": ["a", "b", "none"],
        "b": ["a", "b", "none"],
        "none": None,
    }
    same(result["a"]["a"], 4 * np.eye(3))
    same(result["a"]["b"], 2 * X)
    same(result["b"]["a"], 2 * X)
    same(result["b"]["b"], 0)


def test_results_that_are_no_scalars() -> None:
    result = tp.hessian(lambda x: x**3)(tensor(X))
    expected = np.zeros((3, 3, 3))
    expected[range(3), range(3), range(3)] = 6 * X
    same(result, expected)


def test_a_function_that_ignores_its_argument() -> None:
    constant = lambda _: tensor(1.0)  # noqa: E731  # used twice
    with pytest.raises(NotConnectedError):
        tp.hessian(constant)(tensor(X))
    same(tp.hessian(constant, unconnected="zeros")(tensor(X)), np.zeros((3, 3)))


@pytest.mark.parametrize("who", ["jacobian", "hessian"])
def test_misuse_is_named(who: str) -> None:
    derivative = getattr(tp, who)
    with pytest.raises(ArgumentError, match=f"{who}: f must be a function, got Tensor"):
        derivative(tensor(X))
    with pytest.raises(ArgumentError, match="unconnected must be one of 'error', 'zeros'"):
        derivative(tp.sum, unconnected="none")
    with pytest.raises(DTypeError, match=r"argument 0 is int32\[\]"):
        derivative(tp.sum)(3)
    with pytest.raises(ArgumentError, match=r"must return a tensor, got float at \['x'\]"):
        derivative(lambda _: {"x": 1.0})(tensor(X))
    assert current_context().recording is None


def test_one_tensor_is_left() -> None:
    x = tensor(X)
    for derivative in (tp.jacobian(lambda x: x * x), tp.hessian(lambda x: tp.sum(x * x * x))):
        derivative(x)  # fills the caches
        before = live()
        result = derivative(x)
        assert live() == before + 1
        del result
        assert live() == before
        with tp.tidy():
            result = derivative(x)
        assert result.is_disposed
        del result
        assert live() == before
