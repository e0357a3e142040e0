"""Loss scaling: no gradient vanishes, steps that are not finite are skipped, the factor adapts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError

from .expecting import expect


def states(scaling: tp.train.LossScale, finite: str) -> list[tuple[float, int]]:
    """Return the factors and the counts before the first step and after each: 1 is finite."""
    state = scaling.init()
    found = [state]
    for step in finite:
        state = scaling.update(state, tp.asarray(step == "1"))
        found.append(state)
    for each in found:
        assert (each["scale"].dtype, each["finite_steps"].dtype) == ("float32", "int32")
    return [(each["scale"].item(), each["finite_steps"].item()) for each in found]


SEQUENCES: dict[str, tuple[tp.train.LossScale, str, list[tuple[float, int]]]] = {
    "grows after an interval": (
        tp.train.LossScale(8.0, interval=2),
        "1111",
        [(8, 0), (8, 1), (16, 0), (16, 1), (32, 0)],
    ),
    "shrinks at once, and counts again": (
        tp.train.LossScale(8.0, interval=2),
        "1011",
        [(8, 0), (8, 1), (4, 0), (4, 1), (8, 0)],
    ),
    "not below 1": (tp.train.LossScale(2.0), "00", [(2, 0), (1, 0), (1, 0)]),
    "below 1 it stays": (tp.train.LossScale(0.5), "0", [(0.5, 0), (0.5, 0)]),
    "not to infinity": (tp.train.LossScale(2.0**127, interval=1), "1", [(2.0**127, 0)] * 2),
    "other factors": (
        tp.train.LossScale(16.0, interval=1, growth=4.0, backoff=0.25),
        "10",
        [(16, 0), (64, 0), (16, 0)],
    ),
    "static": (tp.train.LossScale(8.0, interval=None), "101", [(8, 0)] * 4),
}


@pytest.mark.parametrize("what", SEQUENCES)
def test_the_factor_adapts(what: str) -> None:
    scaling, finite, expected = SEQUENCES[what]
    assert states(scaling, finite) == expected


GRADIENTS = {
    "w": np.array([2.0, -4.0], np.float32),
    "h": np.array([2.0], np.float16),
    "d": np.array(6.0),
    "z": np.array([2 + 4j], np.complex64),
}


def tensors(tree: dict[str, Any]) -> dict[str, tp.Tensor]:
    return {name: tp.asarray(value) for name, value in tree.items()}


def test_unscale_divides_each_leaf_in_its_dtype() -> None:
    scaling = tp.train.LossScale(2.0)
    found, finite = scaling.unscale(tensors(GRADIENTS), scaling.init())
    expect(finite, "bool", (), True)
    for name, value in GRADIENTS.items():
        expect(found[name], str(value.dtype), value.shape, value / 2)


NOT_FINITE = [
    *[(where, bad) for where in GRADIENTS for bad in (math.inf, -math.inf, math.nan)],
    ("z", complex(0, math.inf)),
]


@pytest.mark.parametrize(("where", "bad"), NOT_FINITE)
def test_one_element_that_is_not_finite_is_found(where: str, bad: complex) -> None:
    given = {name: value.copy() for name, value in GRADIENTS.items()}
    given[where].flat[0] = bad
    scaling = tp.train.LossScale()
    assert not scaling.unscale(tensors(given), scaling.init())[1].item()


def test_a_loss_in_halves_is_scaled_in_float32() -> None:
    scaling = tp.train.LossScale(2.0**15)
    state = scaling.init()
    for given, wanted in (("float16", "float32"), ("float32", "float32"), ("float64", "float64")):
        scaled = scaling.scale(tp.asarray(8.0, dtype=given), state)
        expect(scaled, wanted, (), 2.0**18)  # more than float16 has


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial": 0.0}, "initial must be positive, got 0.0"),
        ({"initial": math.inf}, "initial must be positive"),
        ({"initial": True}, "initial must be positive, got True"),
        ({"growth": 0.5}, "growth must be at least 1, got 0.5"),
        ({"backoff": 1.0}, "backoff must be between 0 and 1, got 1.0"),
        ({"interval": 0}, "interval must be a positive integer or None, got 0"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=f"LossScale: {message}"):
        tp.train.LossScale(**options)


def test_leaves_that_are_no_gradients_are_refused() -> None:
    scaling = tp.train.LossScale()
    with pytest.raises(ArgumentError, match=r"unscale: gradients\['w'\] must be a tensor, got 1"):
        scaling.unscale({"w": 1.0}, scaling.init())
    with pytest.raises(DTypeError, match=r"unscale: gradients\['w'\] is int32\[\]"):
        scaling.unscale({"w": tp.asarray(1)}, scaling.init())
