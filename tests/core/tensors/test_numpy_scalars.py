"""NumPy's scalars beside a tensor mean what Python's numbers mean; arrays of rank 0 are arrays."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from tests.core.support.public_functions import FUNCTIONS

import tensorplug as tp
from tensorplug.errors import ArgumentError, TensorplugError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


# The Python number that each scalar equals, so that results must be equal too.
SCALARS = [
    (np.bool_(True), True),
    (np.int8(2), 2),
    (np.uint8(2), 2),
    (np.int64(2), 2),
    (np.float16(0.5), 0.5),
    (np.float32(0.5), 0.5),
    (np.float64(0.5), 0.5),
    (np.complex64(0.5), 0.5 + 0j),
    (np.complex128(0.5), 0.5 + 0j),
]
TENSORS = {
    "float16": [1.0, 2.0, 4.0],
    "float32": [1.0, 2.0, 4.0],
    "float64": [1.0, 2.0, 4.0],
    "int8": [1, 2, 4],
    "uint16": [1, 2, 4],
    "bool": [True, False, True],
    "complex64": [1.0, 2.0, 4.0],
}
T, N, MASK = "tensor", "number", "mask"
PATTERNS = ((T, N), (N, T), (T, T, N), (T, N, T), (T, N, N), (MASK, T, N), (MASK, N, T))
# Functions whose dtype comes from one argument, or that convert each one by itself. A scalar there
# is beside no tensor; NumPy's keep their dtypes, as in asarray.
APART = {
    **dict.fromkeys(("clip", "percentile", "nanpercentile"), ((N, T),)),
    **dict.fromkeys(("meshgrid", "broadcast_arrays", "convolve"), PATTERNS),
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d"), PATTERNS),
    "where": ((T, N, N),),
}
# The dtype of a zero point is that of the quantized numbers.
ZERO_POINT = dict.fromkeys(("quantize", "fake_quantize"), ((T, T, N), (T, N, N), (MASK, T, N)))


def answer(function: Any, arguments: list[Any]) -> Any:
    """Return types and values of a call; None if the call is not possible."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = function(*arguments)
    except (TensorplugError, TypeError):
        return None
    return seen(result)


def seen(result: Any) -> Any:
    if isinstance(result, tuple | list):
        return [seen(part) for part in result]
    if not isinstance(result, tp.Tensor):
        return result
    return str(result.type), result.numpy().tobytes()


def fill(pattern: tuple[str, ...], tensor: Any, number: Any) -> list[Any]:
    mask = tp.asarray([True, False, True])
    return [{T: tensor, N: number, MASK: mask}[part] for part in pattern]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_takes_it_for_the_python_number(name):
    function, apart = FUNCTIONS[name], {**APART, **ZERO_POINT}.get(name.rpartition(".")[2], ())
    wrong = []
    for dtype, values in TENSORS.items():
        tensor = tp.asarray(values, dtype=dtype)
        for pattern in [one for one in PATTERNS if one not in apart]:
            for scalar, number in SCALARS:
                expected = answer(function, fill(pattern, tensor, number))
                found = expected and answer(function, fill(pattern, tensor, scalar))
                if found != expected:
                    wrong.append((dtype, pattern, repr(scalar), found, expected))
    assert wrong == []


def test_the_functions_include_the_usual_ones():
    answered = {
        name
        for name, function in FUNCTIONS.items()
        if answer(function, [tp.asarray([0.5, 1.0]), 0.25])
    }
    usual = ("add", "pow", "maximum", "less", "atan2", "full_like", "isin", "searchsorted")
    assert set(usual) <= answered


@pytest.mark.parametrize("name", APART)
def test_beside_no_tensor_it_keeps_its_dtype(name):
    function = FUNCTIONS[name]
    x, scalar = tp.asarray([True, False]), np.float64(0.5)
    result = function(x, scalar, scalar) if name == "where" else function(scalar, np.float32(1))
    first = result[0] if isinstance(result, tuple | list) else result
    assert first.dtype == tp.float64


# Operators ----------------------------------------------------------------------------------

BESIDE = [  # the tensor's dtype, the scalar, the dtype of the sum
    ("float32", np.float64(0.5), "float32"),
    ("float16", np.float32(0.5), "float16"),
    ("float32", np.int64(2), "float32"),
    ("float32", np.bool_(True), "float32"),
    ("float32", np.longdouble(0.5), "float32"),
    ("float32", np.complex128(0.5), "complex64"),
    ("float64", np.complex64(0.5), "complex128"),
    ("complex64", np.float64(0.5), "complex64"),
    ("int8", np.int64(2), "int8"),
    ("uint16", np.uint64(2), "uint16"),
    ("uint64", np.int8(2), "uint64"),
    ("int64", np.float16(0.5), "float32"),
    ("int8", np.float64(0.5), "float32"),
    ("int16", np.bool_(True), "int16"),
    ("bool", np.int64(2), "int32"),
]


@pytest.mark.parametrize(("dtype", "scalar", "wanted"), BESIDE)
def test_the_dtype_of_a_sum(dtype, scalar, wanted):
    x = tp.asarray([1, 0, 1], dtype=dtype)
    for result in (x + scalar, scalar + x, tp.add(x, scalar), tp.add(scalar, x)):
        assert isinstance(result, tp.Tensor)
        assert (result.dtype.name, result.shape) == (wanted, (3,))
        np.testing.assert_array_equal(result.numpy(), np.asarray([1, 0, 1]) + scalar.item())


def test_options_that_are_numbers():
    x = tp.asarray([1.0, 2.0, 6.0])
    assert tp.var(x, correction=np.int64(1)).item() == tp.var(x, correction=1).item() == 7
    assert tp.linalg.vector_norm(x, ord=np.float32(1)).item() == 9
    assert tp.full_like(x, np.float64(0.5)).dtype == tp.float32
    weighted = tp.losses.absolute_difference(x, x + 1, np.float64(0.5))
    assert (weighted.dtype, weighted.item()) == (tp.float32, 0.5)


def test_an_integer_that_does_not_fit():
    x = tp.asarray([1, 2], dtype="int8")
    for scalar in (np.int64(300), np.uint8(200)):
        for call in (lambda s: x + s, lambda s: s + x, lambda s: tp.where(x > 1, x, s)):
            with pytest.raises(ArgumentError, match=f"{scalar.item()} does not fit into int8"):
                call(scalar)
    with pytest.raises(ArgumentError, match="-1 does not fit into uint8"):
        tp.maximum(tp.asarray([1], dtype="uint8"), np.int64(-1))


# What is no scalar beside a tensor ----------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "complex128"])
def test_arrays_of_rank_0_and_scalars_alone_keep_their_dtype(dtype):
    scalar = np.dtype(dtype).type(2)
    x = tp.asarray([1.0, 2.0])
    assert (x + np.array(scalar)).dtype == tp.result_type(tp.float32, dtype)
    both, with_one = tp.add(scalar, scalar), tp.add(scalar, 1)
    for alone in (tp.asarray(scalar), tp.square(scalar), both, with_one):
        assert alone.dtype.name == dtype
    assert tp.add(np.float32(1), np.float64(2)).dtype == tp.float64
    assert tp.where(tp.asarray(True), scalar, 0).dtype.name == dtype


def test_no_number():
    x = tp.asarray([1.0, 2.0])
    for scalar in (np.timedelta64(1), np.datetime64(1, "s"), np.void(b"x")):
        with pytest.raises((TensorplugError, TypeError)):
            x + scalar
        with pytest.raises(TensorplugError):
            tp.add(x, scalar)


def test_result_type():
    assert tp.result_type(tp.asarray([1.0]), np.float64(1)) is tp.float32
    assert tp.result_type(tp.int8, np.int64(1), 1) is tp.int8
    assert tp.result_type(tp.int8, np.float64(1)) is tp.float32
    assert tp.result_type(np.float64(1), np.int8(1)) is tp.float64
    assert tp.result_type(np.array(1.0), tp.float32) is tp.float64


# Gradients, programs, caches ----------------------------------------------------------------


def loss(x, scalar):
    return tp.sum(tp.where(x > scalar, x**scalar, x / scalar) * np.float64(3))


def test_gradients_have_the_dtype_of_the_tensor():
    x = tp.asarray([1.0, 4.0])
    derivative = tp.grad(lambda x: loss(x, np.float64(2)))(x)
    assert (derivative.dtype, derivative.tolist()) == (tp.float32, [1.5, 24])
    second = tp.grad(lambda x: tp.sum(tp.grad(lambda x: loss(x, np.int64(2)))(x)))(x)
    assert (second.dtype, second.tolist()) == (tp.float32, [0, 6])


def test_a_cotangent():
    _, pull = tp.vjp(tp.sum, tp.asarray([1.0, 2.0]))
    (cotangent,) = pull(np.float64(2))
    assert (cotangent.dtype, cotangent.tolist()) == (tp.float32, [2, 2])
    with pytest.raises(ArgumentError, match=r"float64\[\], but the result is float32\[\]"):
        pull(np.array(2.0))


def test_compiled_functions():
    x = tp.asarray([1.0, 4.0], dtype="float16")
    compiled = tp.compile(loss)
    for scalar in (np.float64(2), np.int64(2), np.float64(3)):
        expected = loss(x, scalar.item())
        for _ in range(2):
            found = compiled(x, scalar)
            assert (found.dtype, found.item()) == (tp.float16, expected.item())


def test_equal_scalars_share_a_constant():
    x = tp.asarray([1.0, 2.0])
    device = x._placement.device
    x + 0.4375  # the call is the test
    before = len(device.constants)
    for scalar in (np.float64(0.4375), np.float32(0.4375), np.float16(0.4375)):
        x + scalar
    for _ in range(3):
        tp.maximum(x, np.float64("nan"))
    assert len(device.constants) <= before + 1
    assert (x * np.float64(-0.0)).numpy().tobytes() == (x * -0.0).numpy().tobytes()
