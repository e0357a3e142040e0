"""Loops and branches: the same results eager and compiled, as plain loops over NumPy arrays."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from tests.core.compile.test_compile import agree, kernels

import tensorplug as tp
from tensorplug.compile.tracing.nested import NestedPlan

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.array([[0.5, -1.25], [2.0, 0.25], [-0.75, 1.5]])
W = np.array([[0.5, -1.0], [0.25, 0.75]])
H = np.array([0.25, -0.5])


def tensor(values: Any) -> tp.Tensor:
    """Return a float64 tensor."""
    return tp.asarray(values, dtype=tp.float64)


def same(actual: tp.Tensor, expected: Any) -> None:
    """Compare dtype and shape, then values."""
    wanted = np.asarray(expected)
    result = actual.numpy()
    assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(result, wanted, rtol=1e-12, atol=1e-12)


def compiled(f: Any) -> Any:
    return tp.compile(f)


ways = pytest.mark.parametrize("way", [lambda f: f, compiled], ids=["eager", "compiled"])


# Scan -----------------------------------------------------------------------------------------


def _step(h: Any, x: Any) -> Any:
    h = tp.tanh(h @ tensor(W) + x)
    return h, {"sum": tp.sum(h), "both": (h, x * h)}


def _numpy_scan(h: Any, xs: Any, *, reverse: bool) -> Any:
    rows = []
    for x in xs[::-1] if reverse else xs:
        h = np.tanh(h @ W + x)
        rows.append((h.sum(), h, x * h))
    rows = rows[::-1] if reverse else rows
    return h, [np.stack(column) for column in zip(*rows, strict=True)]


@ways
@pytest.mark.parametrize("reverse", [False, True])
def test_scan(way: Any, reverse: bool) -> None:
    f = way(lambda h, xs: tp.scan(_step, h, xs, reverse=reverse))
    last, ys = f(tensor(H), tensor(X))
    expected, (sums, states, products) = _numpy_scan(H, X, reverse=reverse)
    same(last, expected)
    same(ys["sum"], sums)
    same(ys["both"][0], states)
    same(ys["both"][1], products)


@ways
def test_scan_without_sequences(way: Any) -> None:
    f = way(lambda x: tp.scan(lambda c, none: ((c[0] * 2, c[1]), (c[0], none)), (x, 1), length=3))
    (last, one), (ys, none) = f(tensor(1.5))
    same(last, np.float64(12))
    assert (int(one), none) == (1, None)
    same(ys, np.array([1.5, 3.0, 6.0]))


def test_no_steps_leave_no_cycles() -> None:
    x = tensor(X)
    tp.scan(lambda h, row: (h, row * 2), tensor(H), x[:0])
    gc.collect()
    gc.disable()
    try:
        tp.scan(lambda h, row: (h, row * 2), tensor(H), x[:0])
        assert gc.collect() == 0
    finally:
        gc.enable()


@ways
def test_scan_of_nothing(way: Any) -> None:
    last, ys = way(lambda h, xs: tp.scan(_step, h, xs))(tensor(H), tensor(X[:0]))
    same(last, H)
    same(ys["sum"], np.zeros(0))
    same(ys["both"][1], np.zeros((0, 2)))


@ways
def test_integers_pass_through(way: Any) -> None:
    def step(count: Any, x: Any) -> Any:
        return count + 1, x[count]

    last, ys = way(lambda x: tp.scan(step, 0, x))(tp.asarray([[1, 2], [3, 4]], dtype=tp.int8))
    same(last, np.array(2, last.dtype.numpy))
    same(ys, np.array([1, 4], np.int8))


@ways
def test_map(way: Any) -> None:
    result = way(lambda x: tp.map(lambda row: {"max": tp.max(row), "row": row[::-1]}, x))(
        tensor(X)
    )
    same(result["max"], X.max(axis=1))
    same(result["row"], X[:, ::-1])


def _nested(h: Any, xs: Any) -> Any:
    def outer(c: Any, x: Any) -> Any:
        inner, ys = tp.scan(lambda c, y: (c * y, tp.sin(c) + x), c, tp.stack([x, x + 1, c]))
        return tp.cond(tp.sum(inner) > 0, tp.cos, lambda v: v * h, inner), tp.sum(ys)

    return tp.scan(outer, h, xs)


@ways
def test_loops_inside_loops(way: Any) -> None:
    last, ys = way(_nested)(tensor(H), tensor(X))
    h, sums = H, []
    for x in X:
        inner, total = h, 0.0
        for y in (x, x + 1, h):
            total = total + (np.sin(inner) + x).sum()
            inner = inner * y
        h = np.cos(inner) if inner.sum() > 0 else inner * H
        sums.append(total)
    same(last, h)
    same(ys, np.array(sums))


# While and for --------------------------------------------------------------------------------


@ways
@pytest.mark.parametrize(("most", "wanted"), [(None, 243.0), (2, 9.0), (0, 1.0), (9, 243.0)])
def test_while_loop(way: Any, most: int | None, wanted: float) -> None:
    def triple(x: Any, limit: Any) -> Any:
        return tp.while_loop(
            lambda v: v["x"] < limit,
            lambda v: {"x": v["x"] * 3, "steps": v["steps"] + 1},
            {"x": x, "steps": 0},
            max_steps=most,
        )

    result = way(triple)(tensor(1.0), tensor(100.0))
    same(result["x"], np.float64(wanted))
    assert int(result["steps"]) == round(np.log(wanted) / np.log(3))


@ways
@pytest.mark.parametrize("bounds", [(0, 4), (2, 5), (3, 3), (4, 1)])
@pytest.mark.parametrize("given", [int, tp.asarray], ids=["numbers", "tensors"])
def test_fori_loop(way: Any, bounds: tuple[int, int], given: Any) -> None:
    def loop(lower: Any, upper: Any, x: Any) -> Any:
        return tp.fori_loop(lower, upper, lambda i, v: v * x + i, x)

    expected = np.float64(0.5)
    for i in range(*bounds):
        expected = expected * 0.5 + i
    same(way(loop)(*map(given, bounds), tensor(0.5)), np.float64(expected))


@ways
def test_index_of_fori_loop_is_a_tensor(way: Any) -> None:
    def body(i: Any, total: Any) -> Any:
        assert (i.dtype, i.shape) == (tp.int32, ())
        return total + tensor(X)[i]

    same(way(lambda x: tp.fori_loop(0, 3, body, x))(tensor(H)), H + X.sum(axis=0))


# Branches -------------------------------------------------------------------------------------


@ways
@pytest.mark.parametrize("value", [2.0, -2.0])
@pytest.mark.parametrize("dtype", [tp.bool, tp.int32, tp.float64])
def test_cond(way: Any, value: float, dtype: Any) -> None:
    f = way(
        lambda p, x, w: tp.cond(
            p, lambda t: [t["x"] * w], lambda t: [tp.exp(t["x"])], {"x": x, "unused": w}
        )
    )
    predicate = tp.astype(tp.asarray(value > 0), dtype)
    (result,) = f(predicate, tensor(value), tensor(3.0))
    same(result, np.float64(value * 3 if value > 0 else np.exp(value)))


@ways
@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
def test_switch(way: Any, index: int) -> None:
    f = way(lambda i, x: tp.switch(i, [tp.sin, tp.cos, lambda x: x * 2], x))
    expected = [np.sin, np.cos, lambda x: x * 2][min(max(index, 0), 2)]
    same(f(tp.asarray(index), tensor(X)), expected(X))


def test_a_known_predicate_chooses_while_tracing() -> None:
    f = tp.compile(lambda x, flag: tp.cond(flag, tp.sin, lambda _: 1 / 0, x))
    same(f(tensor(X), True), np.sin(X))
    assert kernels(f.program(tensor(X), True)) == ["Sin"]


def test_only_the_chosen_branch_runs() -> None:
    f = tp.compile(lambda x: tp.cond(tp.sum(x) > 0, tp.sin, tp.cos, x))
    f(tensor(X))
    with tp.profile() as profile:
        f(tensor(X))
        f(tensor(-X))
    branches = [record.name for record in profile.kernels if record.depth == 1]
    assert branches == ["Sin", "Cos"]


# Programs -------------------------------------------------------------------------------------


def nested(program: Any, name: str) -> Any:
    """Return the only call of ``name`` in a program."""
    (result,) = [call for call in program.calls if call.plan.spec.name == name]
    assert isinstance(result.plan, NestedPlan)
    return result


# Refusals -------------------------------------------------------------------------------------


def test_results_keep_their_structure() -> None:
    f = lambda x: tp.scan(lambda c, x: ([c[0] + x], {"a": (x,)}), [0.0], x)  # noqa: E731
    x = tp.asarray(np.float32([1, 2]))
    agree(tp.compile(f)(x), f(x))
