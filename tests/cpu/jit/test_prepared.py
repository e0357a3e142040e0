"""What loops read in the place of constants: one object for programs of all sizes."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_cpu.jit.loops.prepared import prepare


def test_what_was_prepared_lives_as_long_as_it_is_used() -> None:
    constant = np.arange(6.0)
    made: list[str] = []

    def make(array: np.ndarray) -> float:
        made.append("once more")
        return float(array.sum())

    first = prepare(constant, "sum", make)
    assert prepare(constant, "sum", make) is first
    assert prepare(constant[::-1], "sum", make) is not first
    assert prepare(constant, "another form", make) is not first
    assert first.result == 15
    assert len(made) == 3
    del first
    constant[:] = 1
    assert prepare(constant, "sum", make).result == 6


def test_programs_of_all_lengths_share_the_weights_that_loops_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else each length would take the memory of the weights once more."""
    convolution = pytest.importorskip("tensorplug_cpu.jit.families.convolution")
    made: list[object] = []
    panels = convolution.Convolution._panels
    monkeypatch.setattr(
        convolution.Convolution, "_panels", lambda self, x: (made.append(x), panels(self, x))[1]
    )
    weights = tp.ones((3, 3, 16, 32))
    f = tp.compile(lambda x: tp.nn.conv2d(x, weights, pad="same"))
    with tp.use_backend("cpu"):
        for length in range(40, 46):
            f(tp.ones((1, length, 40, 16)))
    assert len(made) == 1
