"""associative_scan: the same as a loop over NumPy arrays."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.core.compile.test_compile import kernels
from tests.core.compile.test_control_flow import same, tensor, ways

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


@ways
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 7, 8, 13])
def test_sums(way: Any, length: int, reverse: bool) -> None:
    x = np.random.default_rng(length).normal(size=(length, 2))
    f = way(lambda x: tp.associative_scan(tp.add, x, reverse=reverse))
    expected = np.cumsum(x[::-1], axis=0)[::-1] if reverse else np.cumsum(x, axis=0)
    same(f(tensor(x)), expected)


def _affine(a: Any, b: Any) -> Any:
    """Return ``b`` after ``a``, for functions ``x -> scale * x + shift``: not commutative."""
    return {
        "scale": a["scale"] * b["scale"],
        "shift": b["scale"] * a["shift"] + b["shift"],
    }


@ways
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("reverse", [False, True])
def test_an_order_that_matters(way: Any, axis: int, reverse: bool) -> None:
    rng = np.random.default_rng(1)
    scale, shift = rng.normal(size=(2, 5, 6))
    f = way(lambda xs: tp.associative_scan(_affine, xs, reverse=reverse, axis=axis))
    result = f({"scale": tensor(scale), "shift": tensor(shift)})
    rows = zip(np.moveaxis(scale, axis, 0), np.moveaxis(shift, axis, 0), strict=True)
    steps = [{"scale": a, "shift": b} for a, b in rows]
    expected = list(itertools.accumulate(steps[::-1] if reverse else steps, _affine))
    for name, values in result.items():
        stacked = np.stack([step[name] for step in (expected[::-1] if reverse else expected)])
        same(values, np.moveaxis(stacked, 0, axis))


def test_associative_scan_has_a_gradient() -> None:
    x = np.array([1.5, -2.0, 0.5, 3.0, -1.0])
    gradient = tp.grad(lambda x: tp.sum(tp.associative_scan(tp.multiply, x)))(tensor(x))
    products = np.cumprod(x)
    same(gradient, np.array([products[at:].sum() / x[at] for at in range(5)]))


def test_calls_grow_like_the_logarithm() -> None:
    f = tp.compile(lambda x: tp.associative_scan(tp.add, x))
    counts = [kernels(f.program(tensor(np.ones(1 << n)))).count("Add") for n in (4, 8, 12)]
    assert counts == [7, 15, 23]


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "no function": (lambda x: tp.associative_scan(1, x), ArgumentError, "f must be a function"),
    "another shape": (
        lambda x: tp.associative_scan(lambda a, _: tp.sum(a), x),
        ArgumentError,
        r"the result of f is float64\[\], but associative_scan: a is float64\[2\]",
    ),
    "no axis": (
        lambda x: tp.associative_scan(tp.add, x, axis=1),
        ShapeError,
        r"xs is float64\[4\], which has no axis 1",
    ),
    "several lengths": (
        lambda x: tp.associative_scan(tp.add, [x, x[:2]]),
        ShapeError,
        r"xs\[1\] is float64\[2\], of 2 slices along axis 0, but the tensors before have 4",
    ),
    "no tensor": (lambda _: tp.associative_scan(tp.add, ()), ShapeError, "xs has no tensor"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_associative_scan_refuses(name: str) -> None:
    f, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        f(tensor([1.0, 2.0, 3.0, 4.0]))
