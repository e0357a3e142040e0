"""The references for random numbers against published vectors, and against the math module."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.oracle import random as oracle

PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((2**32 - 1,) * 4, (2**32 - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (PI[:4], PI[4:], (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
    ],
)
def test_known_answers_of_random123(
    counter: tuple[int, ...], key: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert oracle.philox(counter, key) == expected


def test_the_counter_carries_into_its_second_word() -> None:
    assert oracle.words((1, 2, 3, 4), 2**32 - 1, 8)[4:] == list(
        oracle.philox((0, 1, 3, 4), (1, 2))
    )


@pytest.mark.parametrize(("dtype", "size"), [("float32", 32), ("float64", 53)])
def test_variates_by_the_math_module(dtype: str, size: int) -> None:
    key = np.array([1, 2, 3, 4], np.uint32)
    drawn = (oracle.longs if dtype == "float64" else oracle.words)((1, 2, 3, 4), 0, 4)
    member = {
        name: getattr(oracle, name)(key, shape=(4,), dtype=dtype)
        for name in ("exponential", "normal")
    }
    x, z = (
        reference.value if isinstance(reference, Bounded) else reference
        for reference in member.values()
    )
    u = [(w >> (11 if dtype == "float64" else 0) | 1) / 2**size for w in drawn]
    np.testing.assert_allclose(x.astype(float), [-math.log(number) for number in u], rtol=1e-9)
    for at in (0, 2):  # a pair lies on the circle that its first word chose
        radius = math.hypot(z[at], z[at + 1])
        assert radius == pytest.approx(math.sqrt(-2 * math.log(u[at])), rel=1e-9)


def test_integers_by_hand() -> None:
    key = np.zeros(4, np.uint32)  # the first known answer: 0xE169C58D6627E8D5 and so on
    word = 0xE169C58D6627E8D5
    for span in (1, 10, 2**32 - 1):
        drawn = oracle.integers(key, np.array(span, np.uint32), shape=())
        assert int(drawn) == int(word / 2**64 * span)
    assert int(oracle.integers(key, np.array(0, np.uint32), shape=())) == 0xE169C58D
