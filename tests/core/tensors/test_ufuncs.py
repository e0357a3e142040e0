"""NumPy's ufuncs on tensors: tensorplug's functions, with their gradients, or a clear refusal."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.errors import ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X, Y = np.float32([[0.25, 0.5, 0.75]]), np.float32([[0.5], [1.0]])
WHOLE, MASK = np.int32([[6, 3, 1]]), np.array([[True, False, True]])
OPERANDS = {  # by the ufunc's name; others take floats
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), (WHOLE, np.int32([[5], [2]]))),
    **dict.fromkeys(("left_shift", "right_shift"), (WHOLE, np.int32([[1], [2]]))),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), (MASK, ~MASK)),
    **dict.fromkeys(("invert", "logical_not"), (MASK,)),
    "arccosh": (X + 1,),
    "matmul": (X, X.T),
    "vecdot": (X, X),
}
# What NumPy has, and tensorplug does not.
REFUSED = (
    *("bitwise_count", "cbrt", "deg2rad", "degrees", "exp2", "float_power", "fmax", "fmin"),
    *("fmod", "frexp", "gcd", "heaviside", "isnat", "lcm", "ldexp", "logaddexp2", "matvec"),
    *("modf", "rad2deg", "radians", "spacing", "vecmat"),
)
UFUNCS = {
    name: value
    for name, value in vars(np).items()
    if isinstance(value, np.ufunc) and value.__name__ == name
}


@pytest.mark.parametrize("name", sorted(UFUNCS.keys() - set(REFUSED)))
def test_a_ufunc_is_the_function(name):
    ufunc = UFUNCS[name]
    operands = OPERANDS.get(name, (X, Y)[: ufunc.nin])
    wanted = ufunc(*operands)
    for given in {0, ufunc.nin - 1}:  # one of them is a tensor, the other one an array
        mixed = [tp.asarray(x) if at == given else x for at, x in enumerate(operands)]
        found = ufunc(*mixed)
        for one, right in zip(
            found if ufunc.nout > 1 else [found],
            wanted if ufunc.nout > 1 else [wanted],
            strict=True,
        ):
            assert isinstance(one, tp.Tensor)
            assert (one.dtype, one.shape) == (right.dtype, right.shape)
            np.testing.assert_allclose(one.numpy(), right, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", [name for name in REFUSED if name in UFUNCS])
def test_what_tensorplug_does_not_have(name):
    ufunc = UFUNCS[name]
    with pytest.raises(
        TypeError, match=f"^numpy.{name} takes no Tensor: module 'tensorplug' has no"
    ):
        ufunc(*[tp.asarray(X)] * ufunc.nin)


def test_gradients_are_kept():
    found = tp.grad(lambda x: np.sum(np.exp(x) * np.float32(2)))(tp.asarray(X))
    np.testing.assert_allclose(found.numpy(), 2 * np.exp(X), rtol=1e-6)
    compiled = tp.compile(lambda x: np.maximum(np.ones(3, np.float32), np.sin(x) * 2))
    np.testing.assert_allclose(compiled(tp.asarray(X)).numpy(), np.maximum(1, np.sin(X) * 2))


NAMES = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "lt",
    "ge",
    "eq",
    "ne",
)


@pytest.mark.parametrize("name", NAMES)
def test_operators_of_arrays_and_numpys_numbers(name):
    operate = getattr(operator, name)
    array = np.float32([3, 4, 5])
    x = tp.asarray(X[0])
    for other in (array, array[0])[: 1 if name == "matmul" else 2]:
        wanted = operate(other, X[0])
        expect(operate(other, x), str(wanted.dtype), wanted.shape, wanted)


@pytest.mark.parametrize(
    "call", [lambda x: np.round(x, 1), lambda x: np.clip(x, 0.3, 0.6)], ids=["round", "clip"]
)
def test_functions_that_call_methods(call):
    expect(call(tp.asarray(X)), "float32", (1, 3), call(X))


def test_lists():
    expect(np.add(tp.asarray([1, 2]), [3, 4]), "int32", (2,), [4, 6])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.add(1, 2, out=x), r"numpy.add\(out=...\) takes no Tensor; pass x.numpy"),
        (lambda x: np.sin(x, dtype="float64"), r"numpy.sin\(dtype=...\) takes no Tensor"),
        (np.add.reduce, "numpy.add.reduce takes no Tensor"),
        (np.frompyfunc(abs, 1, 1), "the ufunc abs .* takes no Tensor"),
        (lambda x: np.add(x, object()), "returned NotImplemented"),
    ],
)
def test_what_has_no_counterpart(call, message):
    with pytest.raises(TypeError, match=message):
        call(tp.asarray([1.0, 2.0]))


def test_an_array_is_not_overwritten():
    array = np.float32([1, 2])
    with pytest.raises(TypeError, match=r"numpy.add\(out=...\) takes no Tensor"):
        array += tp.asarray([1.0, 2.0])
    assert array.tolist() == [1, 2]


def test_errors_are_those_of_the_function():
    with pytest.raises(ShapeError, match="Add"):
        np.ones(2) + tp.ones(3)
    with pytest.raises(ShapeError, match="Equal"):
        np.ones(2) == tp.ones(3)  # noqa: B015  # it raises
