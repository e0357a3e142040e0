"""Errors of exponential and normal variates against exact functions of their bits.

The decomposition draws its bits by the kernel RandomBits. Here that kernel hands out words that a
test chose: thousands of ordinary ones, and those at which logarithm, sine and cosine have their
limits. What the CPU's kernels make of these words has the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support import exact_random as exact

import tensorplug as tp
from tensorplug.contract import dtypes
from tensorplug.ops.random import box_muller
from tensorplug.testing import isolated_engine
from tensorplug_cpu.numerics import variates

if TYPE_CHECKING:
    from collections.abc import Iterator

DTYPES = ["float32", "float64"]


class Words:
    """The words that the kernel RandomBits gives in place of random ones."""

    given: np.ndarray = np.zeros(0, np.uint32)

    def of(self, numbers: list[int], dtype: str) -> int:
        """Hand out these numbers of 32 or 64 bits; return how many there are."""
        parts = [
            [number] if dtype == "float32" else [number % 2**32, number >> 32]
            for number in numbers
        ]
        self.given = np.array(parts, np.uint32).ravel()
        return len(numbers)


@pytest.fixture
def chosen() -> Iterator[Words]:
    words = Words()
    with isolated_engine("cpu"):
        for kernel in ("RandomExponential", "RandomNormal"):
            tp.unregister_kernel(kernel, "cpu")

        def handed_out(key: np.ndarray, *, shape: tuple[int, ...]) -> np.ndarray:
            return words.given.reshape(shape)

        tp.register_kernel("RandomBits", "cpu", handed_out, override=True)
        yield words


def drawn(kernel: str, count: int, dtype: str) -> np.ndarray[Any, Any]:
    result = tp.run_kernel(kernel, [tp.random.key(0)], {"shape": (count,), "dtype": dtype})
    assert isinstance(result, tp.Tensor)
    return np.array(result.numpy())


def width(dtype: str) -> int:
    return 64 if dtype == "float64" else 32


def precision(dtype: str) -> box_muller.Precision:
    return box_muller.precision(dtypes.of(dtype))


def array(numbers: list[int], dtype: str) -> np.ndarray:
    return np.array(numbers, np.uint64 if dtype == "float64" else np.uint32)


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponential(chosen: Words, dtype: str) -> None:
    numbers = exact.extreme_words(width(dtype))
    found = drawn("RandomExponential", chosen.of(numbers, dtype), dtype)
    assert exact.units_off(found, exact.exponential(numbers, dtype)) <= 0.75
    assert (found > 0).all()
    native = variates.minus_log(precision(dtype), array(numbers, dtype))[0]
    assert found.tobytes() == native.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_normal(chosen: Words, dtype: str) -> None:
    """Extreme radii with ordinary angles, ordinary radii with extreme angles, and both."""
    extreme = exact.extreme_words(width(dtype))
    mixed = np.random.default_rng(3).permutation(len(extreme))
    angles = [extreme[item] for item in mixed] + extreme
    pairs = zip(extreme + extreme, angles, strict=True)
    numbers = [item for pair in pairs for item in pair]
    found = drawn("RandomNormal", chosen.of(numbers, dtype), dtype)
    assert exact.units_off(found, exact.normal(numbers, dtype)) <= 1.5
    assert (found != 0).all()
    native = variates.normals(precision(dtype), array(numbers, dtype))
    assert found.tobytes() == native.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_limits(chosen: Words, dtype: str) -> None:
    """The largest and the smallest numbers there are, as the documentation gives them."""
    largest = drawn("RandomExponential", chosen.of([0], dtype), dtype)[0]
    assert round(float(largest), 1) == {"float32": 22.2, "float64": 36.7}[dtype]
    radius = np.abs(drawn("RandomNormal", chosen.of([0, 0], dtype), dtype)).max()
    assert round(float(radius), 2) == {"float32": 6.66, "float64": 8.57}[dtype]
    everything = 2 ** width(dtype) - 1
    smallest = drawn("RandomExponential", chosen.of([everything], dtype), dtype)[0]
    assert smallest == {"float32": 2.0**-32, "float64": 2.0**-53}[dtype]
