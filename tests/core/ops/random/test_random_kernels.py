"""The kernels of random numbers: known answers, and the decomposition bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support import exact_random as exact

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.testing import isolated_engine
from tensorplug_conformance.primitives import PRIMITIVES

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = (0xA4093822, 0x299F31D0, 0x13198A2E, 0x03707344)
SHAPES = [(), (0,), (1,), (2,), (3,), (4,), (5,), (7, 3), (2, 0), (1, 2, 1, 9), (20_001,)]
STARTS = [0, 1, 2**32 - 2, 2**40 + 5, 2**63, 2**64 - 2]
REAL = ["RandomUniform", "RandomExponential", "RandomNormal"]
FLOATS = ["float16", "float32", "float64"]
SPANS = {
    "uint32": [1, 2, 3, 1000, 2**31, 2**31 + 1, 2**32 - 1, 0],
    "uint64": [1, 3, 2**32 - 1, 2**32, 2**32 + 1, 2**63, 2**63 + 1, 2**64 - 1, 0],
}


@pytest.fixture(params=["native", "decomposed"])
def how(request: Any) -> Iterator[str]:
    """Run on an engine of its own, with all kernels of the CPU or with the primitives alone."""
    with isolated_engine("cpu"):
        if request.param == "decomposed":
            remove_all_but_primitives()
        yield request.param


def remove_all_but_primitives() -> None:
    for name in tp.kernels_for("cpu"):
        if name not in PRIMITIVES:
            tp.unregister_kernel(name, "cpu")


def key(words: Any = KEY) -> tp.Tensor:
    return tp.asarray(np.array(words, np.uint32))


def run(kernel: str, *inputs: Any, **attributes: Any) -> np.ndarray[Any, Any]:
    result = tp.run_kernel(kernel, inputs, attributes)
    assert isinstance(result, tp.Tensor)
    return np.array(result.numpy())


def same_bits(actual: np.ndarray, expected: np.ndarray) -> None:
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    assert actual.tobytes() == expected.tobytes()


@pytest.mark.parametrize(("counter", "words", "expected"), exact.KNOWN)
def test_known_answers(
    how: str, counter: list[int], words: list[int], expected: list[int]
) -> None:
    assert tp.explain("RandomBits", [key()], {"shape": (4,)}).how == how
    low, high, *upper = counter
    found = run("RandomBits", key([*words, *upper]), shape=(4,), start=low | high << 32)
    same_bits(found, np.array(expected, np.uint32))


@pytest.mark.parametrize(("counter", "words", "expected"), exact.KNOWN)
def test_known_answers_of_the_oracle(
    counter: list[int], words: list[int], expected: list[int]
) -> None:
    assert exact.philox(counter, words) == expected


def test_bits_of_many_blocks(how: str) -> None:
    """More than are made at a time, and past the end of the counter's lower word."""
    count, start = 4 * (1 << 14) + 70_001, 2**32 - 20_000
    found = run("RandomBits", key(), shape=(count,), start=start)
    for block in (0, (1 << 14) - 1, 1 << 14, 19_999, 20_000, count // 4 - 1):
        expected = exact.words(KEY, 4, start + block)
        assert found[4 * block : 4 * block + 4].tolist() == expected


@pytest.fixture(scope="module")
def native() -> dict[Any, np.ndarray]:
    with isolated_engine("cpu"):
        return everything()


def everything() -> dict[Any, np.ndarray]:
    """Return what every kernel draws, in every dtype, for all shapes and starts."""
    found = {}
    for shape, start in [(shape, 0) for shape in SHAPES] + [((9,), start) for start in STARTS]:
        where = {"shape": shape, "start": start}
        found["RandomBits", shape, start] = run("RandomBits", key(), **where)
        for kernel in REAL:
            for dtype in FLOATS:
                found[kernel, dtype, shape, start] = run(kernel, key(), dtype=dtype, **where)
        for dtype, spans in SPANS.items():
            for span in spans[-2:]:
                drawn = run("RandomIntegers", key(), np.array(span, dtype), **where)
                found["RandomIntegers", dtype, span, shape, start] = drawn
    return found


def test_the_decomposition_gives_the_native_kernels_bits(native: dict[Any, np.ndarray]) -> None:
    with isolated_engine("cpu"):
        remove_all_but_primitives()
        decomposed = everything()
    assert decomposed.keys() == native.keys()
    for case, expected in native.items():
        assert decomposed[case].tobytes() == expected.tobytes(), case


def test_variates_from_native_bits_are_the_same(native: dict[Any, np.ndarray]) -> None:
    """A backend may have some of the kernels only."""
    with isolated_engine("cpu"):
        for kernel in REAL:
            tp.unregister_kernel(kernel, "cpu")
        for kernel in REAL:
            for dtype in FLOATS:
                found = run(kernel, key(), shape=(7, 3), dtype=dtype)
                same_bits(found, native[kernel, dtype, (7, 3), 0])


@pytest.mark.parametrize("kernel", REAL)
@pytest.mark.parametrize("dtype", FLOATS)
def test_elements_do_not_depend_on_shape_or_number(
    native: dict[Any, np.ndarray], kernel: str, dtype: str
) -> None:
    many = native[kernel, dtype, (20_001,), 0]
    for shape in SHAPES:
        fewer = native[kernel, dtype, shape, 0].ravel()
        same_bits(fewer, many[: fewer.size])


@pytest.mark.parametrize(
    ("kernel", "inputs", "attributes", "error", "message"),
    [
        ("RandomBits", [(1, 2, 3)], {"shape": 2}, ShapeError, r"a key is uint32\[4\], got"),
        ("RandomBits", [KEY], {"shape": -1}, ShapeError, "must not contain negative sizes"),
        ("RandomBits", [KEY], {"shape": 2, "start": -1}, ArgumentError, r"\[0, 2\*\*64\), got -1"),
        ("RandomBits", [KEY], {"shape": 2, "start": 2**64}, ArgumentError, "attribute 'start'"),
        ("RandomBits", [KEY], {}, ArgumentError, "attribute 'shape' is missing"),
        ("RandomUniform", [KEY], {"shape": 2, "dtype": "int32"}, DTypeError, "got int32"),
        ("RandomNormal", [KEY], {"shape": 2, "dtype": "complex64"}, DTypeError, "got complex64"),
        ("RandomIntegers", [KEY, (1, 2)], {"shape": 3}, ShapeError, r"shape \[\] or \[3\]"),
    ],
)
@pytest.mark.usefixtures("on_the_cpu")
def test_bad_calls(kernel: str, inputs: Any, attributes: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        tp.run_kernel(kernel, [key(operand) for operand in inputs], attributes)


@pytest.mark.usefixtures("on_the_cpu")
def test_keys_and_spans_have_their_dtypes() -> None:
    signed = np.array(KEY, np.uint32).view(np.int32)
    with pytest.raises(DTypeError, match=r"input 'key' is int32\[4\], but .* one of uint32"):
        tp.run_kernel("RandomBits", [signed], {"shape": 2})
    with pytest.raises(DTypeError, match=r"input 'span' is int32\[\], but .* uint32, uint64"):
        tp.run_kernel("RandomIntegers", [key(), np.int32(5)], {"shape": 2})
