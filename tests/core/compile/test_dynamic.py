"""Dynamic sizes: padded programs give the exact results, and say where they cannot."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.compile.dynamic.sizes import padded_size
from tensorplug.errors import RecompileWarning
from tensorplug.tensors import tree

pytestmark = pytest.mark.usefixtures("on_the_cpu")

SIZES = (17, 18, 23, 24)  # one bucket of the series: 16, 24


def floats(*shape: int, seed: int = 0) -> Any:
    drawn = np.random.default_rng((seed, *shape)).standard_normal(shape)
    return tp.asarray(drawn.astype(np.float32))


def integers(*shape: int) -> Any:
    """Return numbers other than 0, with which padding is filled."""
    return tp.asarray(np.random.default_rng(shape).integers(1, 19, shape).astype(np.int32))


def matrix(n: int) -> Any:
    return floats(n, 4)


W = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
KERNEL = np.random.default_rng(2).standard_normal((3, 3, 2, 5)).astype(np.float32)


def traces(f: Any, **options: Any) -> tuple[Any, list[Any]]:
    """Return ``f`` compiled, and the list of the types with which it is traced."""
    seen: list[Any] = []

    def traced(x: Any, *rest: Any) -> Any:
        seen.append(x.type)
        return f(x, *rest)

    return tp.compile(traced, **options), seen


def programs(compiled: Any) -> int:
    """Return how many programs at padded sizes there are."""
    templates = {id(each): each for each in compiled._dynamic._templates.values()}
    return sum(len(template.programs) for template in templates.values())


def assert_same(actual: Any, expected: Any) -> None:
    """Compare trees: types first, then values, within roundings of sums in another order."""
    one, two = tree.flatten(actual)[0], tree.flatten(expected)[0]
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        assert a.type == b.type
        x, y = a.numpy(), b.numpy()
        if x.dtype.kind in "fc":
            scale = np.abs(y[np.isfinite(y)]).max(initial=1e-30)
            np.testing.assert_allclose(x, y, rtol=0, atol=64 * np.finfo(x.dtype).eps * scale)
        else:
            np.testing.assert_array_equal(x, y)


def standardized(x):
    return (x - tp.mean(x, axis=0)) / tp.std(x, axis=0)


def self_attention(x):
    return tp.nn.softmax(x @ tp.matrix_transpose(x)) @ x


def convolve(x):
    hidden = tp.nn.relu(tp.nn.conv2d(x, KERNEL, 1, "same"))
    return tp.nn.max_pool(hidden, 2, 2, "valid"), tp.nn.avg_pool(hidden, 2, 2, "valid")


def convolution_gradients(x):
    def loss(x, kernel):
        return tp.sum(tp.nn.max_pool(tp.nn.conv2d(x, kernel, 1, "same"), 2, 2, "valid") ** 2)

    return tp.grad(loss, (0, 1))(x + 1, tp.asarray(KERNEL))


def train(x):
    target = tp.one_hot(tp.argmax(x, axis=1) % 3, 3)

    def loss(w):
        return tp.losses.softmax_cross_entropy(target, tp.nn.gelu(x @ w))

    return tp.value_and_grad(loss)(tp.asarray(W))


def embedded(ids):
    """Indices in the padding, 9, are out of range; gradients are scattered to their places."""
    places = tp.where(ids == 0, 9, (ids + 9) % 4)
    return tp.value_and_grad(lambda w: tp.sum(tp.take(w, places, axis=0) ** 2))(tp.asarray(W))


def second_derivative(x):
    slope = tp.grad(lambda w: tp.sum(tp.tanh(x @ w) ** 2))
    return tp.grad(lambda w: tp.sum(slope(w) ** 2))(tp.asarray(W))


def other_values(x):
    a, b = tp.sin(x), tp.sin(-x)
    return (a if x.shape[0] < 20 else b) * 2, a * b


def recurrent(x):
    """A scan over time, which is axis 0; means and sizes of the batch are inside."""

    def step(h, row):
        h = tp.tanh(row + h) * (20 / x.shape[1])
        h = h - tp.mean(h, axis=0)
        return h, (h, tp.max(h - 5, axis=0))

    return tp.scan(step, tp.ones(x.shape[1:]), x)


def train_recurrent(x):
    def loss(w):
        def step(h, row):
            return tp.tanh(row + h @ w), None

        return tp.mean(tp.scan(step, tp.ones(x.shape[1:]), x)[0] ** 2)

    return tp.value_and_grad(loss)(floats(4, 4))


def looped(x):
    def grow(state):
        return state[0] + 1, state[1] * 1.5

    _, grown = tp.while_loop(lambda state: state[0] < 5, grow, (tp.argmax(x[0]), x))
    return tp.cond(x[0, 0] > x[0, 1], lambda y: y + 1, lambda y: -y, grown)


def key_of(x):
    return tp.astype(tp.abs(x[0]) * 100, tp.uint32)


def images(n):
    return floats(n, 6, 6, 2)


def sequences(n):
    return floats(2, n, 4)


# Functions whose sizes share a program: name -> function, argument by size, dynamic axes.
SHARED: dict[str, tuple[Any, Any, Any]] = {
    "elementwise": (lambda x: tp.nn.relu(x) * 2 + tp.exp(x), matrix, [0]),
    "division by padding": (lambda x: tp.sum(1 / x, axis=0), matrix, [0]),
    "logarithm of padding": (lambda x: tp.mean(tp.log(tp.abs(x)) * x), matrix, [0]),
    "sum": (lambda x: (tp.sum(x, axis=0), tp.sum(x), tp.sum(x, axis=1)), matrix, [0]),
    "product": (lambda x: tp.prod(x, axis=0), matrix, [0]),
    "extremes": (lambda x: (tp.max(x - 9, axis=0), tp.min(x + 9, axis=0)), matrix, [0]),
    "positions": (lambda x: (tp.argmax(x - 9, axis=0), tp.argmin(x + 9, axis=0)), matrix, [0]),
    "extremes of integers": (
        lambda x: (tp.max(x - 20), tp.min(x + 20), tp.prod(x % 2 + 1), tp.sum(x + 1)),
        integers,
        [0],
    ),
    "conditions": (lambda x: (tp.all(x < 99, axis=0), tp.any(x > 99, axis=0)), matrix, [0]),
    "mean and variance": (lambda x: (tp.mean(x, axis=0), tp.var(x, axis=0)), matrix, [0]),
    "size as a number": (lambda x: tp.sum(x, axis=0) / (x.shape[0] - 1), matrix, [0]),
    "size in an argument": (lambda x: x * tp.full((1,), 1.0 / x.shape[0]), matrix, [0]),
    "size as a table": (
        lambda x: x * tp.asarray(np.hanning(x.shape[0]).astype(np.float32))[:, None],
        matrix,
        [0],
    ),
    "range": (
        lambda x: x * tp.astype(tp.arange(x.shape[0]), tp.float32)[:, None],
        matrix,
        [0],
    ),
    "ones": (lambda x: x + tp.ones((x.shape[0], 4)), matrix, [0]),
    "standardized": (standardized, matrix, [0]),
    "rows of softmax": (lambda x: (tp.nn.softmax(x), tp.nn.log_softmax(x)), matrix, [0]),
    "columns of softmax": (lambda x: tp.nn.softmax(x - 5, axis=0), matrix, [0]),
    "log of a sum of exponentials": (lambda x: tp.log_sum_exp(x - 500, axis=0), matrix, [0]),
    "layer norm": (tp.nn.layer_norm, matrix, [0]),
    "norm": (tp.linalg.vector_norm, matrix, [0]),
    "products": (lambda x: (x @ tp.asarray(W), tp.matrix_transpose(x) @ x), matrix, [0]),
    "products of padding": (
        lambda x: tp.matrix_transpose(1 / (x - x)) @ tp.ones((x.shape[0], 2)),
        matrix,
        [0],
    ),
    "Einstein sum": (lambda x: tp.einsum("nk,nj->kj", x, 1 / x), matrix, [0]),
    "attention": (self_attention, sequences, [1]),
    "convolution": (convolve, images, [0]),
    "gradients of a convolution": (convolution_gradients, images, [0]),
    "training": (train, matrix, [0]),
    "embedding": (embedded, integers, [0]),
    "second derivative": (second_derivative, matrix, [0]),
    "flattened": (lambda x: tp.reshape(x, (-1,)) * 2, matrix, [0]),
    "split": (lambda x: tp.sum(tp.reshape(x, (x.shape[0], 2, 2)), axis=1), matrix, [0]),
    "transposed": (lambda x: tp.sum(x.T, axis=1), matrix, [0]),
    "neighbours": (lambda x: x[1:] - x[:-1], matrix, [0]),
    "gradient of neighbours": (
        tp.grad(lambda x: tp.sum((x[1:] - x[:-1]) ** 2)),
        matrix,
        [0],
    ),
    "first rows": (lambda x: (x[:3], x[2]), lambda n: floats(n, 4), [0]),
    "padded": (
        lambda x: tp.sum(tp.pad(x / 0, [[1, 2], [0, 0]], constant_value=3.0)[-1]),
        matrix,
        [0],
    ),
    "joined behind": (lambda x: tp.concat([tp.ones((2, 4)), x]), matrix, [0]),
    "stacked": (lambda x: tp.stack([x, -x], axis=1), matrix, [0]),
    "sorted": (lambda x: (tp.sort(x, axis=0), tp.sort(x, axis=0, descending=True)), matrix, [0]),
    "order": (lambda x: (tp.argsort(x, axis=0), tp.argsort(-x, axis=0)), matrix, [0]),
    "largest": (lambda x: tp.topk(-tp.abs(x.T) - 1, 3), matrix, [0]),
    "running sums": (
        lambda x: (tp.cumsum(x, 0), tp.cumsum(1 / x, 0, reverse=True), tp.cumprod(x, 0)),
        matrix,
        [0],
    ),
    "numbers drawn": (
        lambda x: (
            tp.random.normal(key_of(x), x.shape) + tp.random.bits(key_of(x), (x.shape[0], 1))
        ),
        matrix,
        [0],
    ),
    "rows at places": (lambda x: (x[2] + x[-1], x[tp.asarray([1, 0, 5])]), matrix, [0]),
    "rows set at places": (
        lambda x: tp.tensor_scatter_update(x, [[2]], [[1, 2, 3, 4]]),
        matrix,
        [0],
    ),
    "two axes": (
        lambda x: (tp.sum(x), x @ tp.matrix_transpose(x)),
        lambda n: floats(n, n + 8),
        [0, 1],
    ),
    "steps": (recurrent, lambda n: floats(5, n, 4), [1]),
    "training over steps": (train_recurrent, lambda n: floats(5, n, 4), [1]),
    "loops and branches": (looped, matrix, [0]),
    "an axis from behind": (lambda x: tp.sum(x / 2, axis=-1), lambda n: floats(3, n), -1),
    "float64": (lambda x: tp.nn.softmax(tp.astype(x, tp.float64), axis=0), matrix, 0),
    "complex": (lambda x: tp.sum(tp.fft.fft(tp.complex(x, x)), axis=0), matrix, [0]),
}


@pytest.mark.parametrize("name", SHARED)
def test_sizes_share_a_program(name):
    f, make, axes = SHARED[name]
    compiled, seen = traces(f, dynamic={"x": axes})
    for n in SIZES:
        x = make(n)
        assert_same(compiled(x), f(x))
        assert_same(compiled(x), f(x))  # by the program that is known now
    shared = [type_ for type_ in seen if type_ != make(24).type]
    assert [type_ == make(n).type for type_, n in zip(shared, SIZES[:3], strict=True)] == [
        True
    ] * 3
    assert programs(compiled) == 1


# Functions of a matrix that padding would change, and what the warning says.
REFUSED: list[tuple[Any, str]] = [
    (lambda x: x * 2 if x.shape[0] < 20 else x + 1, r"calls Multiply .* at one size, and Add"),
    (
        lambda x: sum(x[at] * 2 for at in range(x.shape[0])),
        "GatherV2|StridedSlice|kernels at one",
    ),
    (
        lambda x: [x := x * 2 for _ in range(x.shape[0])][-1],
        "calls 17 kernels at one size, and 24 at another",
    ),
    (lambda x: tp.concat([x, tp.ones((2, 4))]), "follows padding along"),
    (lambda x: x[-3:] + 1, "an attribute depends on the size"),
    (lambda x: tp.flip(x, axis=0), "Reverse"),
    (lambda x: tp.reshape(x.T, (-1,)), "not the outermost"),
    (lambda x: tp.tile(x, (2, 1)), "Reshape"),
    (lambda x: tp.take(x, tp.argmax(x, axis=0), axis=0), "reach the padding"),
    (
        lambda x: x + tp.asarray(np.ones((17, 1), np.float32)),
        "at the padded sizes, the function raises ShapeError",
    ),
    (lambda x: tp.clip_by_value(x, 0.0, 1.0 / x.shape[0]), "an attribute depends"),
    (lambda x: tp.random.uniform(key_of(x), (4, x.shape[0])) + x.T, "row-major"),
    (
        lambda x: tp.tensor_scatter_update(x, tp.argmax(x, axis=0)[:, None], tp.ones((4, 4))),
        "the places of its updates",
    ),
    (other_values, "uses other values at another size"),
    (lambda x: [x[:, :1]] * x.shape[0], "other results"),
    (
        lambda x: tp.scan(lambda c, row: (c + row, c), tp.zeros((4,)), x)[0],
        r"Scan .*: an attribute depends on the size",
    ),
    (
        lambda x: tp.while_loop(lambda y: tp.sum(y) < 1000, lambda y: y + 1, x),
        r"While .*: padding takes part inside",
    ),
    (
        lambda x: tp.fori_loop(0, 3, lambda _, y: tp.flip(y, axis=0), x),
        r"(Scan|While) .*: inside: Reverse",
    ),
]
UNPADDED: list[tuple[Any, Any, Any, str]] = [  # function, argument by size, axes, warning
    *((f, matrix, [0], message) for f, message in REFUSED),
    (tp.linalg.inv, lambda n: floats(n, 3, 3), [0], "no rule for padding, and no decomposition"),
    (lambda x: tp.nn.conv2d(x, KERNEL, 1, "same"), lambda n: floats(2, n, 6, 2), [1], "Conv2D"),
]


@pytest.mark.parametrize(("f", "make", "axes", "message"), UNPADDED)
def test_what_padding_would_change_is_compiled_exactly(f, make, axes, message):
    compiled, _ = traces(f, dynamic={0: axes})
    with pytest.warns(RecompileWarning) as caught:
        assert_same(compiled(make(17)), f(make(17)))
    text = str(caught[0].message)
    assert "traced is compiled anew for each of its dynamic sizes, which cannot be padded" in text
    assert re.search(message, text), text
    assert programs(compiled) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        assert_same(compiled(make(17)), f(make(17)))
        if "ShapeError" not in message:  # else one argument fits the other at that size only
            assert_same(compiled(make(18)), f(make(18)))


def test_the_series_of_sizes():
    series = sorted({padded_size(n) for n in range(100)})
    assert series == [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128]
    assert all(n <= padded_size(n) < max(1.5 * n, 2) for n in range(2, 1000))


def test_sizes_of_the_series_and_those_below_two_are_exact():
    compiled, seen = traces(lambda x: tp.sum(x, axis=0), dynamic={"x": 0})
    for n in (0, 1, 2, 8, 24):
        assert_same(compiled(matrix(n)), tp.sum(matrix(n), axis=0))
    assert [type_.shape[0] for type_ in seen] == [0, 1, 2, 8, 24]
    assert programs(compiled) == 0


def test_a_size_of_one_broadcasts_at_that_size_only():
    compiled = tp.compile(lambda x: x[16:] + x[:8], dynamic={"x": 0})
    with pytest.warns(RecompileWarning, match="broadcasts at one of the sizes only"):
        assert_same(compiled(matrix(17)), matrix(17)[16] + matrix(17)[:8])
