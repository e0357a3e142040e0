"""Traces that are used again at other sizes, which nothing read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.compile.fusion import groups
from tensorplug.compile.fusion.structures import find_key
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.ops.extents import SLICE
from tensorplug.plugin import dispatch
from tensorplug.tensors import tree

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.usefixtures("on_the_cpu"),
    pytest.mark.filterwarnings("ignore::tensorplug.errors.RecompileWarning"),
]

WIDTH = 4
SQUARE = tp.TensorType(tp.float32, (5, WIDTH))
LENGTHS = (3, 7, 5, WIDTH, 9, 1, 11)
"""Among them one that equals a fixed size, and 1, which broadcasts."""


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)


WEIGHTS = numbers(WIDTH, WIDTH)
SEEN: dict[Any, float] = {SQUARE: 10.0}


def block(x: Any) -> Any:
    h = tp.nn.layer_norm(x) @ tp.asarray(WEIGHTS)
    return x + tp.nn.softmax(h @ tp.matrix_transpose(h)) @ h


def first_rows(x: Any) -> Any:
    try:
        return dispatch(SLICE, x, begin=(0, 0), size=(6, WIDTH))
    except ArgumentError:
        return tp.zeros((1,))


def to_both(x: Any) -> Any:
    return {"sum": tp.sum(x, axis=0), "scaled": [x * 0.5, tp.tanh(x)], "constant": tp.ones((2,))}


# Functions whose sizes nothing reads: traced for the first length, for the one that is equal to a
# fixed size, and for 1.
UNREAD: dict[str, Callable[[Any], Any]] = {
    "block": block,
    "tree": to_both,
    "sorted": lambda x: tp.sort(x, axis=0) + 1,
    "of fixed sizes": lambda x: x * tp.asarray(WEIGHTS).shape[0] + tp.asarray(WEIGHTS).size,
    "rank": lambda x: x * x.ndim,
    "types compared": lambda x: x * (2.0 if x.type == (x + 1).type else 3.0),
}

# Functions whose results depend on sizes in other ways than through kernels.
READ: dict[str, Callable[[Any], Any]] = {
    "shape": lambda x: x / x.shape[0],
    "size": lambda x: x + x.size,
    "nbytes": lambda x: x + x.nbytes,
    "len": lambda x: x * len(x),
    "loop": lambda x: sum((row * at for at, row in enumerate(x)), tp.zeros((WIDTH,))),
    "type": lambda x: x * (2.0 if x.type == SQUARE else 3.0),
    "type as a key": lambda x: x * SEEN.get(x.type, 0.5),
    "text of a type": lambda x: x * len(str(x.type)) + len(repr(x.type)),
    "text": lambda x: x * len(f"{x.type}"),
    "index": lambda x: x[-1] + x[1:],
    "padding": lambda x: tp.pad(x, ((0, 9 - min(9, x.shape[0])), (0, 0))),
    "reshape": lambda x: tp.reshape(x, (-1,)),
    "mean": lambda x: x - tp.mean(x, axis=0),
    "variance": tp.var,
    "like": lambda x: x + tp.ones_like(x) * 2,
    "full like": lambda x: tp.full_like(x, 3.0) * x,
    "broadcast": lambda x: tp.broadcast_to(tp.sum(x), x.shape),
    "gradient": tp.grad(lambda y: tp.mean(tp.tanh(y) * y)),
    "vmap": tp.vmap(lambda row: row / row.shape[0] + tp.sum(row)),
    "vmap of columns": tp.vmap(lambda c: c / c.shape[0], in_axes=1),
    "jvp": lambda x: tp.jvp(lambda y: tp.mean(y * y), (x,), (x,))[1],
    "scan": lambda x: tp.scan(lambda carry, row: (carry + row, carry), x[0], x)[1],
    "an error that is caught": first_rows,
    "branch": lambda x: tp.cond(tp.sum(x) > 0, lambda: x / x.shape[0], lambda: x),
}
FUNCTIONS = {**UNREAD, **READ}


def results(f: Callable[[Any], Any], lengths: Any = LENGTHS) -> list[list[np.ndarray[Any, Any]]]:
    return [
        [leaf.numpy() for leaf in tree.flatten(f(tp.asarray(numbers(n, WIDTH))))[0]]
        for n in lengths
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_at_each_size(name: str) -> None:
    f = FUNCTIONS[name]
    lengths = [n for n in LENGTHS if n > 1] if name == "index" else LENGTHS
    for mine, eager in zip(results(tp.compile(f), lengths), results(f, lengths), strict=True):
        for a, b in zip(mine, eager, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", UNREAD)
def test_a_function_is_traced_once_for_sizes_that_nothing_reads(name: str) -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(name)
        return UNREAD[name](x)

    results(tp.compile(f))
    assert len(calls) == 3


def centred(x: Any) -> Any:
    """Divide by numbers of elements, in several groups."""
    c = x - tp.mean(x, axis=0)
    h = tp.tanh(c / tp.sqrt(tp.mean(c * c, axis=0) + 1)) @ tp.asarray(WEIGHTS)
    return tp.exp(h - tp.mean(h, axis=0)) * 2, tp.sum(h, axis=1)


@pytest.mark.parametrize("f", [block, centred, to_both], ids=["block", "centred", "tree"])
def test_a_program_is_made_once_for_sizes_that_compare_alike(
    f: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    monkeypatch.setattr(groups, "find_key", lambda *a, **b: found.append(1) or find_key(*a, **b))
    compiled = tp.compile(f)
    lengths = (9, 11, 1500, 13, 12, 10, 1600)
    for n in lengths:
        compiled(tp.asarray(numbers(n, WIDTH)))
    assert len(found) <= 2  # for few elements, and for many
    for n in lengths:
        x = tp.asarray(numbers(n, WIDTH))
        mine, fresh = compiled.program(x), tp.compile(f).program(x)
        assert str(mine) == str(fresh)
        assert mine.memory() == fresh.memory()
        with tp.profile() as report:
            results = tree.flatten(compiled(x))[0]
        assert str(report).startswith(f"{len(mine.calls)} kernel calls")
        for a, b in zip(results, tree.flatten(f(x))[0], strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-4, atol=2e-5)


def test_pairs_of_sizes_that_are_equal_once_are_traced_again() -> None:
    calls = []

    @tp.compile
    def f(a: Any, b: Any) -> Any:
        calls.append(a)
        return a + b

    for n, m in ((3, 3), (5, 5), (1, 5), (1, 7), (5, 1), (6, 1), (1, 1)):
        a, b = numbers(n, WIDTH), numbers(m, WIDTH)
        np.testing.assert_array_equal(f(tp.asarray(a), tp.asarray(b)).numpy(), a + b)
    assert len(calls) == 4  # equal; 1 and n; n and 1; both 1


def test_sizes_that_become_equal_inside_are_traced_again() -> None:
    """A sum of two lengths happens to be a third one."""

    def f(a: Any, b: Any, c: Any) -> Any:
        both = tp.concat([a, b])
        return both * (2.0 if both.type == c.type else 3.0)

    compiled = tp.compile(f)
    for sizes in ((2, 3, 9), (2, 4, 11), (2, 5, 7), (3, 5, 8), (3, 7, 12)):
        arrays = [tp.asarray(numbers(n)) for n in sizes]
        np.testing.assert_array_equal(compiled(*arrays).numpy(), f(*arrays).numpy())


def test_shapes_that_do_not_fit_raise_as_they_do_in_a_trace() -> None:
    compiled = tp.compile(lambda a, b: tp.concat([a, b]) * tp.ones((5,)))
    compiled(tp.ones((2,)), tp.ones((3,)))
    with pytest.raises(ShapeError, match=r"test_replays\.py|\[6\]|6"):
        compiled(tp.ones((2,)), tp.ones((4,)))
    assert compiled(tp.ones((4,)), tp.ones((1,))).shape == (5,)


def test_variables_generators_and_floats_are_those_of_each_call() -> None:
    traces = []
    state = tp.Variable(tp.zeros((WIDTH,)))

    @tp.compile
    def f(x: Any, rate: float) -> Any:
        traces.append(rate)
        state.assign(state + tp.sum(x, axis=0) * rate)
        return x * state, rate * 2

    total = np.zeros(WIDTH, np.float32)
    for n, rate in ((3, 0.5), (5, 0.25), (6, 2.0), (3, 1.0)):
        x = numbers(n, WIDTH)
        y, double = f(tp.asarray(x), rate)
        total += x.sum(axis=0) * np.float32(rate)
        np.testing.assert_allclose(y.numpy(), x * total, rtol=1e-5)
        assert double == rate * 2
    assert len(traces) == 1


def test_floats_that_are_read_are_told_apart() -> None:
    f = tp.compile(lambda x, rate: x * 2 if rate > 1 else x * 3)
    for n, rate, factor in ((3, 2.0, 2), (5, 2.0, 2), (6, 0.5, 3), (7, 2.0, 2), (8, 0.5, 3)):
        assert f(tp.ones((n,)), rate).tolist() == [float(factor)] * n


def test_arguments_that_are_given_up_or_assigned() -> None:
    @tp.compile
    def assigning(x: Any) -> Any:
        x[0] = 7.0
        return x * 2

    giving = tp.compile(lambda x: tp.tanh(x) + 1, donate="x")
    for n in (3, 5, 8):
        x, given = tp.ones((n,)), tp.zeros((n,))
        assert assigning(x).tolist() == [14.0] + [2.0] * (n - 1)
        assert x.tolist() == [7.0] + [1.0] * (n - 1)
        assert giving(given).tolist() == [1.0] * n
        assert given.is_disposed


def test_observers_see_the_kernels_of_a_trace_that_is_used_again() -> None:
    f = tp.compile(block)
    f(tp.asarray(numbers(3, WIDTH)))
    x = tp.asarray(numbers(300, WIDTH))
    f(x)
    with tp.profile() as report:
        result = f(x)
    assert "BatchMatMul" in str(report)
    np.testing.assert_allclose(result.numpy(), block(x).numpy(), rtol=2e-5, atol=2e-6)


def test_gradients_of_a_function_at_a_size_that_was_not_traced() -> None:
    f = tp.compile(block)
    for n in (3, 7, 9):
        x = tp.asarray(numbers(n, WIDTH))
        mine, eager = (tp.grad(lambda x, f=f: tp.sum(f(x) ** 2))(x) for f in (f, block))
        np.testing.assert_allclose(mine.numpy(), eager.numpy(), rtol=2e-4, atol=2e-5)


def test_a_tensor_that_was_placed_elsewhere_decides_at_each_size() -> None:
    scale = tp.asarray(WEIGHTS[0], device="minimal")
    f = tp.compile(lambda x: x > scale)
    for n in (3, 5, 7):
        result = f(tp.asarray(numbers(n, WIDTH)))
        assert result.device == "minimal"
        assert result.is_committed
        np.testing.assert_array_equal(result.numpy(), numbers(n, WIDTH) > WEIGHTS[0])
