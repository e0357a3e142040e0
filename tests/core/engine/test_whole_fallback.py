"""Calls that leave a backend as a whole, rather than call by call of their decomposition."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.engines import expect, using

import tensorplug as tp
from tensorplug.contract.tables import KernelTable
from tensorplug.plugin import specs

KERNELS = {
    "Cast": lambda x, *, dtype: x,  # noqa: ARG005  # the spec names them
    "Multiply": lambda a, b: a * b,
    "Square": lambda x: x * x,
    "Sum": lambda x, *, axis, keep_dims: np.asarray(x.sum(axis, keepdims=keep_dims)),
    "RealDiv": lambda a, b: np.asarray(a / b),
    "Mean": lambda x, *, axis, keep_dims: np.asarray(x.mean(axis, keepdims=keep_dims)),
}
NUMBERS = np.arange(1, 5, dtype=np.float32)
CASES = [  # the kernel, what is at home and away, how it runs, what runs away
    ("Square", [], ["Multiply", "Square"], "fallback", ["Square"]),  # 32 bytes rather than 48
    ("Square", [], ["Multiply"], "decomposed", ["Multiply"]),
    ("Square", ["Multiply"], ["Multiply", "Square"], "decomposed", []),
    ("Mean", ["Cast"], ["Sum", "RealDiv", "Mean"], "fallback", ["Mean"]),  # 20 bytes, not 32
    ("Mean", ["Cast", "Sum"], ["RealDiv", "Mean"], "decomposed", ["RealDiv"]),  # 12 bytes
]


def _engine(home: list[str], away: list[str]):
    def table(names):
        kernels = KernelTable()
        for name in names:
            spec = next(spec for spec in vars(specs).values() if getattr(spec, "name", "") == name)
            kernels.register(spec)(KERNELS[name])
        return [kernels]

    return engines.make({"home": table(home), "away": table(away)}, fallback="allow")


@pytest.mark.parametrize(("kernel", "home", "away", "how", "left"), CASES)
def test_the_way_that_copies_less_is_taken(kernel, home, away, how, left):
    with using(_engine(home, away)):
        x = tp.asarray(NUMBERS)
        for _ in range(3):  # the second call of a decomposition makes a program of it
            result = tp.run_kernel(kernel, [x])
            expected = NUMBERS**2 if kernel == "Square" else np.float32(2.5)
            expect(result, "float32", expected.shape, expected)
        assert tp.explain(kernel, [x]).how == how
        assert tp.memory()["home"].fallbacks == dict.fromkeys(left, 3)
        program = tp.compile(lambda x: tp.run_kernel(kernel, [x]))
        expect(program(x), "float32", expected.shape, expected)
        assert tp.memory()["home"].fallbacks == dict.fromkeys(left, 4)


def test_the_explanation_says_what_would_be_copied():
    with using(_engine([], ["Multiply", "Square"])):
        steps = tp.explain("Square", [tp.asarray(NUMBERS)]).steps
    assert steps[1:] == (
        ("decomposed", "its calls would copy 48 bytes to other backends and back, this one 32"),
        ("fallback", "runs on backend 'away'"),
    )
