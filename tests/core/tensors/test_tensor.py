"""Tensor: operators, conversions, NumPy's protocols, and disposed tensors."""

from __future__ import annotations

import operator
import re

import numpy as np
import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.errors import DTypeError, ShapeError, TensorplugError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
A = np.array([[1.5, -2.0, 3.0], [4.0, 5.5, 0.5]], np.float32)
B = np.array([2.0, 0.5, 3.0], np.float32)


@pytest.mark.parametrize("symbol", list(BINARY))
@pytest.mark.parametrize("other", ["tensor", "array", "scalar", "numpy scalar"])
@pytest.mark.parametrize("reflected", [False, True])
def test_operators(symbol, other, reflected):
    operate = BINARY[symbol]
    a = np.abs(A) if symbol == "**" else A
    b = {"scalar": 2.0, "numpy scalar": np.float32(2)}.get(other, np.abs(B))
    given = tp.asarray(b) if other == "tensor" else b
    pair, expected = [tp.asarray(a), given], [a.astype(float), np.asarray(b, float)]
    if reflected:
        pair.reverse()
        expected.reverse()
    result = operate(*pair)
    right = operate(*expected)
    assert isinstance(result, tp.Tensor)
    assert (str(result.dtype), result.shape) == (
        "bool" if right.dtype == bool else "float32",
        right.shape,
    )
    np.testing.assert_allclose(result.numpy(), right, rtol=1e-6)


@pytest.mark.parametrize("other", ["tensor", "array", "scalar"])
@pytest.mark.parametrize("reflected", [False, True])
def test_divmod(other, reflected):
    b = 2.0 if other == "scalar" else np.abs(B)
    pair = [tp.asarray(A), tp.asarray(b) if other == "tensor" else b]
    expected = [A, np.asarray(b, np.float32)]
    if reflected:
        pair.reverse()
        expected.reverse()
    for result, right in zip(divmod(*pair), divmod(*expected), strict=True):
        expect(result, "float32", (2, 3), right)


def test_round_of_python():
    x = tp.asarray([1.25, -2.5])
    expect(round(x), "float32", (2,), [1, -2])
    expect(round(x, 1), "float32", (2,), np.round(np.float32([1.25, -2.5]), 1))


@pytest.mark.parametrize("reflected", [False, True])
def test_matrix_product(reflected):
    a, b = A, np.arange(6, dtype=np.float32).reshape(3, 2)
    pair = (a, tp.asarray(b)) if reflected else (tp.asarray(a), b)
    result = operator.matmul(*pair)
    expect(result, "float32", (2, 2), a.astype(float) @ b)


@pytest.mark.parametrize("operate", [operator.and_, operator.or_], ids=["&", "|"])
@pytest.mark.parametrize("other", [True, False, np.array([True, False, True])])
def test_logic(operate, other):
    a = np.array([True, False, False])
    for result in (operate(tp.asarray(a), other), operate(other, tp.asarray(a))):
        expect(result, "bool", (3,), operate(a, other))
    expect(~tp.asarray(a), "bool", (3,), ~a)


@pytest.mark.parametrize(
    ("operate", "expected"), [(operator.neg, -A), (operator.pos, A), (abs, np.abs(A))]
)
def test_unary_operators(operate, expected):
    expect(operate(tp.asarray(A)), "float32", (2, 3), expected)


@pytest.mark.parametrize(
    "symbol", [binary for binary in BINARY if binary not in ("==", "!=")] + ["@", "divmod"]
)
@pytest.mark.parametrize("other", [None, [1, 2, 3], {}, frozenset(), object()])
def test_unknown_types_give_type_error(symbol, other):
    operate = {**BINARY, "@": operator.matmul, "divmod": divmod}[symbol]
    x = tp.asarray(A)
    for pair in ((x, other), (other, x)):
        with pytest.raises(TypeError) as caught:
            operate(*pair)
        assert not isinstance(caught.value, TensorplugError)


def test_unknown_types_are_not_equal():
    x = tp.asarray(A)
    assert (x == "text", x != "text", x == None) == (False, True, False)  # noqa: E711


class Answers:
    def __radd__(self, other):
        return "answered"


def test_the_other_operand_may_answer():
    assert tp.asarray(A) + Answers() == "answered"


@pytest.mark.parametrize("in_place", [operator.iadd, operator.imul, operator.isub])
def test_in_place_operators_change_the_handle(in_place):
    x = same = tp.asarray([1.0, 2.0])
    other = x[...]
    x = in_place(x, 3)
    assert x is same
    assert same.tolist() == [in_place(1.0, 3), in_place(2.0, 3)]
    assert other.tolist() == [1, 2]


# Conversions ------------------------------------------------------------------------------


def test_tensors_are_made_by_ops():
    with pytest.raises(TypeError, match=re.escape("create tensors with tensorplug.asarray(...)")):
        tp.Tensor()


def test_shape_attributes():
    x = tp.asarray(A)
    assert (x.shape, x.ndim, x.size, x.nbytes) == ((2, 3), 2, 6, 24)
    assert (x.dtype is tp.float32, x.device, str(x.type)) == (True, "cpu", "float32[2,3]")
    expect(x.T, "float32", (3, 2), A.T)
    cube = np.arange(8, dtype=np.int32).reshape(2, 2, 2)
    expect(tp.asarray(cube).mT, "int32", (2, 2, 2), cube.swapaxes(1, 2))
    expect(x.real, "float32", (2, 3), A)
    expect(x.imag, "float32", (2, 3), np.zeros((2, 3)))
    z = tp.asarray(A + 2j * A)
    expect(z.real, "float32", (2, 3), A)
    expect(z.imag, "float32", (2, 3), 2 * A)


@pytest.mark.parametrize("axes", [(), (None,), ((2, 0, 1),), ([2, 0, -2],), (1, 2, 0)], ids=repr)
def test_transpose_as_numpys_method(axes):
    cube = np.arange(6, dtype=np.int32).reshape(1, 2, 3)
    wanted = cube.transpose(*axes)
    expect(tp.asarray(cube).transpose(*axes), "int32", wanted.shape, wanted)
    with pytest.raises(ShapeError, match=r"\[0, 1\] is not a permutation of 3 axes"):
        tp.asarray(cube).transpose(0, 1)


# Disposed tensors -------------------------------------------------------------------------


def test_not_a_dtype():
    with pytest.raises(DTypeError, match="astype: unknown dtype 'real'"):
        tp.asarray(A).astype("real")
