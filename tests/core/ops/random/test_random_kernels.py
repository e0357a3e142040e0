"""The kernels of random numbers: what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

KEY = (0xA4093822, 0x299F31D0, 0x13198A2E, 0x03707344)


def key(words: Any = KEY) -> tp.Tensor:
    return tp.asarray(np.array(words, np.uint32))


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


@pytest.mark.usefixtures("on_the_cpu")
def test_multinomial_is_called_by_name() -> None:
    for logits, options, error, message in (
        (np.zeros((1, 2, 3)), {}, ShapeError, "logits must have rank 1 or 2"),
        (np.zeros((2, 0)), {}, ShapeError, "a nonempty last axis"),
        (np.zeros(3), {"seed": -1}, ArgumentError, "attribute 'seed': must be in"),
        (np.zeros(3), {"num_samples": -1}, ArgumentError, "must be at least 0"),
    ):
        attributes = {"num_samples": 5, "seed": 7, **options}
        with pytest.raises(error, match=message):
            tp.run_kernel("Multinomial", {"logits": logits}, attributes)
    with pytest.raises(AttributeError, match=r"here it is tensorplug.random.categorical"):
        tp.multinomial  # noqa: B018  # the hint
