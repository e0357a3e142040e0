"""Numbers in groups are arguments: one program serves all of them."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_opencl.programs.program import Programs

X = np.random.default_rng(3).standard_normal((600, 500)).astype(np.float32) * 4
MANY = [np.float32(0.3 + 0.7 * at) for at in range(20)]


def horner(x, first):
    """A polynomial with more numbers than most groups have, and one that changes."""
    return reduce(lambda sum_, number: sum_ * x * np.float32(0.1) + number, MANY, x * first)


def leaky(x, slope):
    return np.where(x > 0, x, x * slope)


# The function of x and a number, and what it is in float32 arithmetic, or in float64.
ROWS = {
    "an element": (lambda x, v: tp.clip(x * 3, -v, v), lambda x, v: np.clip(x * 3, -v, v), 0),
    "whole numbers": (
        lambda x, v: tp.astype(tp.astype(x, "int32") * round(v * 100) + round(v * 30), "float32"),
        lambda x, v: (x.astype(np.int32) * round(v * 100) + round(v * 30)).astype(np.float32),
        0,
    ),
    "rows": (
        lambda x, v: tp.max(tp.clip(x * 3, -v, v), axis=1),
        lambda x, v: np.clip(x * 3, -v, v).max(1),
        0,
    ),
    "few long rows": (
        lambda x, v: tp.max(tp.nn.leaky_relu(x * 3, v)),
        lambda x, v: leaky(x * 3, v).max(),
        0,
    ),
    "few long rows that are added": (
        lambda x, v: tp.sum(tp.clip(x * 3, -v, v)),
        lambda x, v: np.clip(x * 3, -v, v).sum(dtype=np.float64),
        1e-5,
    ),
    "twenty numbers": (
        lambda x, v: tp.nn.leaky_relu(horner(x, 0.7), v),
        lambda x, v: leaky(horner(x, np.float32(0.7)), v),
        0,
    ),
}


@pytest.mark.parametrize("what", ROWS)
def test_a_program_serves_all_numbers(monkeypatch, what):
    ours, expected, rtol = ROWS[what]
    texts = set()
    kernel = Programs.kernel

    def noted(self, source):
        texts.add(source)
        return kernel(self, source)

    monkeypatch.setattr(Programs, "kernel", noted)
    with tp.use_backend("opencl"):
        compiled = tp.compile(ours, static_floats=True)
        x = tp.asarray(X)
        counts = []
        for number in np.array([0.31, 0.77, 1.9, 5.1], np.float32):
            actual = compiled(x, float(number)).numpy()
            counts.append(len(texts))
            right = np.asarray(expected(X, number))
            assert (actual.shape, actual.dtype) == (right.shape, np.float32)
            np.testing.assert_allclose(actual, right, rtol=rtol)
    assert counts[0] > 0
    assert counts == counts[:1] * 4
