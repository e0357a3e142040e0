"""Sizes in attributes of a trace: handed on, they may be others in the next call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.contract.extents import Extent, plain
from tensorplug.errors import ShapeError
from tensorplug.tensors import tree

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.usefixtures("on_the_cpu"),
    pytest.mark.filterwarnings("ignore::tensorplug.errors.RecompileWarning"),
]

WIDTH = 4
LENGTHS = (5, 3, 8, 16, 1, 7, 9, 32, 33, 6)
FIXED = np.arange(WIDTH, dtype=np.float32) + 1

# What is read of a size of 6, beside one of 15: the result, and the sizes that are noted.
USES: dict[str, tuple[Callable[[Any, Any], Any], Any, set[int]]] = {
    "sum": (lambda n, m: n + m - 1, 20, set()),
    "product": (lambda n, m: 2 * n * m, 180, set()),
    "quotient": (lambda n, _: n // 3, 2, set()),
    "quotient with a rest": (lambda n, _: n // 4, 1, {6}),
    "quotient of a product": (lambda n, m: n * m // n, 15, set()),
    "remainder": (lambda n, m: m % n, 3, {6, 15}),
    "fraction": (lambda n, _: 3 / n, 0.5, {6}),
    "negative": (lambda n, _: -n, -6, {6}),
    "power": (lambda n, _: n**2, 36, {6}),
    "float": (lambda n, _: n * 0.5, 3.0, {6}),
    "index": (lambda n, _: list(range(9))[n], 6, {6}),
    "range": (lambda n, _: len(range(n)), 6, {6}),
    "text": (lambda n, _: f"{n}", "6", {6}),
    "key": (lambda n, _: {6: "six"}[n], "six", {6}),
    "one": (lambda n, m: n == 1 or n * m == 1 or n < 1 or n <= 1, False, set()),
    "none": (lambda n, m: bool(n * m), True, set()),
    "both": (lambda n, m: n == m, False, set()),
    "the same products": (lambda n, m: n * m == n * m, True, set()),
    "products": (lambda n, m: n * m == m * n, True, {6, 15}),
    "another number": (lambda n, _: n == 6, True, {6}),
    "order": (lambda n, m: n < m, True, {6, 15}),
    "a sum and none": (lambda n, m: m - n > 0, True, {6, 15}),
}


@pytest.mark.parametrize("name", USES)
def test_what_is_noted(name: str) -> None:
    use, expected, noted = USES[name]
    read: set[int] = set()
    result = use(Extent.of(6, read), Extent.of(15, read))
    assert plain(result) == expected
    assert read == noted
    if isinstance(result, Extent):
        assert result.at({6: 12, 15: 30}) == use(12, 30)
        assert result.moved({6: 12, 15: 30}).at({12: 6, 30: 15}) == expected


def test_a_quotient_must_be_whole_at_other_sizes_too() -> None:
    half = Extent.of(6, set()) // 3
    with pytest.raises(ShapeError, match="7 elements"):
        half.at({6: 7})
    with pytest.raises(ShapeError, match="size 6"):
        half.at({})


def slope(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return tp.grad(f)


# Traced for 5 and for 1, unless the number says otherwise.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "sum": (slope(lambda x: tp.sum(tp.tanh(x))), 2),
    "sum of rows": (slope(lambda x: tp.sum(tp.sum(x, axis=1) ** 2)), 2),
    "mean": (slope(lambda x: tp.mean(tp.tanh(x) * x)), 2),
    "mean alone": (slope(tp.mean), 2),
    "mean of columns": (slope(lambda x: tp.sum(tp.mean(x, axis=0) ** 2)), 2),
    "maximum with a share": (lambda x: tp.maximum(x, slope(tp.mean)(x)), 2),
    "a bias": (lambda x: slope(lambda b: tp.mean((x + b) ** 2))(tp.asarray(FIXED)), 2),
    "flattened": (lambda x: tp.reshape(x, (-1,)) * 2, 2),
    "pairs of columns": (lambda x: tp.sum(tp.reshape(x, (-1, 2)), axis=1), 2),
    "an axis more": (slope(lambda x: tp.mean(tp.expand_dims(x, 1) * tp.asarray(FIXED))), 2),
    "stacked rows": (
        lambda x: slope(lambda w: tp.sum((tp.expand_dims(x, 0) @ w) ** 2))(tp.ones((WIDTH, 2))),
        2,
    ),
    "a constant of its shape": (lambda x: (x, tp.ones_like(x) * 2), 2),
    "a shape that is also fixed": (lambda x: x[:1] + tp.broadcast_to(FIXED, (5, WIDTH)), 10),
    "a number": (lambda x: x * x.shape[0], 10),
    "a condition": (lambda x: x * 2 if x.shape[0] > 6 else x * 3, 10),
    "a loop": (lambda x: sum((x[at] * at for at in range(x.shape[0])), tp.zeros((WIDTH,))), 10),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_and_traces_at_ten_sizes(name: str) -> None:
    f, most = FUNCTIONS[name]
    traces = []
    compiled = tp.compile(lambda x: traces.append(name) or f(x))  # type: ignore[func-returns-value]
    for n in (*LENGTHS, *LENGTHS):
        x = tp.asarray(np.random.default_rng(n).standard_normal((n, WIDTH)).astype(np.float32))
        for mine, eager in zip(tree.leaves(compiled(x)), tree.leaves(f(x)), strict=True):
            assert mine.type == eager.type
            np.testing.assert_allclose(mine.numpy(), eager.numpy(), rtol=2e-5, atol=1e-6)
    assert len(traces) == most


def test_a_shape_that_does_not_fit_is_named_in_a_trace() -> None:
    f = tp.compile(lambda x: tp.reshape(x, (-1, 8)))
    assert f(tp.ones((6, WIDTH))).shape == (3, 8)
    assert f(tp.ones((8, WIDTH))).shape == (4, 8)
    with pytest.raises(ShapeError, match=r"\[7, 4\]"):
        f(tp.ones((7, WIDTH)))
