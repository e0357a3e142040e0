"""Layouts: which Transposes of a compiled program are left, and that nothing else changes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.compile.fusion.reshapes import moved

pytestmark = pytest.mark.usefixtures("on_the_cpu")

RNG = np.random.default_rng(7)


def _drawn(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


X, IMAGES = _drawn(2, 4, 5, 6), _drawn(2, 5, 6, 4)
ONE, TWO, WIDE = _drawn(1, 1, 4, 4), _drawn(1, 1, 4, 4), _drawn(1, 1, 8, 4)
BIAS, SCALE = _drawn(4, 1, 1), _drawn(2, 4, 1, 1)
DEPTHWISE = _drawn(1, 1, 4, 1)


def _first(x: Any, w: Any, **options: Any) -> Any:
    return tp.nn.conv2d(x, w, data_format="NCHW", **options)


def _mixed(x: Any, w: Any) -> Any:
    """Return a convolution of one pixel with channels first, in double precision."""
    return np.einsum("nchw,ck->nkhw", np.asarray(x, np.float64), w[0, 0])


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


def _shuffle(x: Any) -> Any:
    parts = tp.permute_dims(tp.reshape(x, (2, 2, 2, 5, 6)), (0, 2, 1, 3, 4))
    return tp.reshape(parts, (2, 4, 5, 6))


def _two(between: Any) -> Any:
    """Return a function with something between two convolutions of images."""
    return lambda x, v, w, *others: _first(between(_first(x, v), *others), w)


def _returned_in_between(x: Any, v: Any, w: Any) -> Any:
    y = _first(x, v)
    return y, _first(y, w)


# The function, its arguments, the result in double precision, and how many Transposes there are.
PROGRAMS: dict[str, tuple[Any, tuple[Any, ...], Any, int]] = {
    "two": (_two(lambda y: y), (X, ONE, TWO), lambda x, v, w: _mixed(_mixed(x, v), w), 2),
    "a bias": (
        _two(lambda y, b: y + b),
        (X, ONE, TWO, BIAS),
        lambda x, v, w, b: _mixed(_mixed(x, v) + b, w),
        2,
    ),
    "a constant bias and a relu": (
        _two(lambda y: tp.nn.relu(y + tp.asarray(BIAS))),
        (X, ONE, TWO),
        lambda x, v, w: _mixed(_relu(_mixed(x, v) + BIAS), w),
        2,
    ),
    "a scale by image and channel": (
        _two(lambda y, s: s * y),
        (X, ONE, TWO, SCALE),
        lambda x, v, w, s: _mixed(s * _mixed(x, v), w),
        3,
    ),
    "a row": (
        _two(lambda y, s: y - s[0, 0, 0, :1] * 2 + tp.asarray(X[0, 0])),
        (X, ONE, TWO, X),
        lambda x, v, w, s: _mixed(_mixed(x, v) - s[0, 0, 0, 0] * 2 + X[0, 0], w),
        2,
    ),
    "a sum of both": (
        lambda x, v, w: tp.nn.relu(_first(_first(x, v), w) + _first(x, w)),
        (X, ONE, TWO),
        lambda x, v, w: _relu(_mixed(_mixed(x, v), w) + _mixed(x, w)),
        2,
    ),
    "joined channels": (
        lambda x, u, v, w: _first(tp.concat([_first(x, u), _first(x, v)], axis=1), w),
        (X, ONE, TWO, WIDE),
        lambda x, u, v, w: _mixed(np.concatenate([_mixed(x, u), _mixed(x, v)], 1), w),
        2,
    ),
    "parts of the channels": (
        _two(lambda y: tp.concat(tp.split(y, 2, axis=1)[::-1], axis=1)),
        (X, ONE, TWO),
        lambda x, v, w: _mixed(np.roll(_mixed(x, v), 2, 1), w),
        2,
    ),
    "padding and a slice": (
        _two(lambda y: tp.pad(y[:, :, 1:, 2:5], ((0, 0), (0, 0), (1, 2), (3, 0)))),
        (X, ONE, TWO),
        lambda x, v, w: _mixed(
            np.pad(_mixed(x, v)[:, :, 1:, 2:5], ((0, 0), (0, 0), (1, 2), (3, 0))), w
        ),
        2,
    ),
    "pooling with channels last": (
        _two(lambda y: tp.moveaxis(tp.nn.pool(tp.moveaxis(y, 1, -1), 2, "max"), -1, 1)),
        (X, ONE, TWO),
        lambda x, v, w: _mixed(
            np.lib.stride_tricks.sliding_window_view(_mixed(x, v), (2, 2), (2, 3)).max((4, 5)), w
        ),
        2,
    ),
    "means of images": (
        lambda x, v, w: tp.mean(_first(_first(x, v), w), axis=(2, 3)),
        (X, ONE, TWO),
        lambda x, v, w: _mixed(_mixed(x, v), w).mean((2, 3)),
        1,
    ),
    "the largest by channel, kept": (
        _two(lambda y: y - tp.max(y, axis=(2, 3), keepdims=True)),
        (X, ONE, TWO),
        lambda x, v, w: _mixed(_mixed(x, v) - _mixed(x, v).max((2, 3), keepdims=True), w),
        2,
    ),
    "a flat image": (
        lambda x, v, w: tp.reshape(
            _first(tp.sum(_first(x, v), axis=(2, 3), keepdims=True), w), (2, 4)
        ),
        (X, ONE, TWO),
        lambda x, v, w: _mixed(_mixed(x, v).sum((2, 3), keepdims=True), w)[:, :, 0, 0],
        1,
    ),
    "shuffled channels": (
        _two(_shuffle),
        (X, ONE, TWO),
        lambda x, v, w: _mixed(
            _mixed(x, v).reshape(2, 2, 2, 5, 6).swapaxes(1, 2).reshape(2, 4, 5, 6), w
        ),
        3,
    ),
    "depthwise": (
        lambda x, v, d: tp.nn.depthwise_conv2d(_first(x, v), d, data_format="NCHW"),
        (X, ONE, DEPTHWISE),
        lambda x, v, d: _mixed(x, v) * d[0, 0].reshape(-1, 1, 1),
        2,
    ),
    "transposed": (
        lambda x, v, w: tp.nn.conv2d_transpose(
            _first(x, v), w, (2, 4, 9, 11), 2, data_format="NCHW"
        )[:, :, ::2, ::2],
        (X, ONE, TWO),
        lambda x, v, w: _mixed(_mixed(x, v), w.swapaxes(2, 3)),
        2,
    ),
    "returned in between": (
        _returned_in_between,
        (X, ONE, TWO),
        lambda x, v, w: (_mixed(x, v), _mixed(_mixed(x, v), w)),
        3,
    ),
    # What comes in and goes out has channels last already.
    "the function's own Transposes": (
        lambda x, v, w: tp.moveaxis(_first(_first(tp.moveaxis(x, -1, 1), v), w), 1, -1),
        (IMAGES, ONE, TWO),
        lambda x, v, w: np.asarray(x, np.float64) @ v[0, 0] @ w[0, 0],
        0,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_transposes_are_moved_and_cancelled(name: str) -> None:
    f, arrays, formula, transposes = PROGRAMS[name]
    tensors = [tp.asarray(array) for array in arrays]
    compiled = tp.compile(f)
    kernels = [call.plan.spec.name for call in compiled.program(*tensors).calls]
    assert kernels.count("Transpose") == transposes
    compiled(*tensors)  # the first run is kernel by kernel
    result, expected = compiled(*tensors), formula(*arrays)
    pairs = (
        [(result, expected)]
        if isinstance(result, tp.Tensor)
        else zip(result, expected, strict=True)
    )
    for ours, right in pairs:
        assert ours.dtype is tp.float32
        assert ours.shape == right.shape
        np.testing.assert_allclose(ours.numpy(), right, rtol=1e-5, atol=1e-5)


def test_one_convolution_stays_as_it_is() -> None:
    program = tp.compile(lambda x: _first(x, tp.asarray(ONE))).program(tp.asarray(X))
    assert [call.plan.spec.name for call in program.calls] == ["Conv2D"]


def test_programs_without_windows_stay_as_they_are() -> None:
    program = tp.compile(lambda x: tp.permute_dims(tp.exp(x.T).T, (1, 0))).program(tp.ones((2, 3)))
    assert [call.plan.spec.name for call in program.calls].count("Transpose") == 3


def _turned(x: Any) -> Any:
    return np.swapaxes(np.asarray(x, np.float64), -1, -2)


TALL, SQUARE = _drawn(2, 3, 4), _drawn(2, 4, 4)
PRODUCTS: dict[str, Any] = {  # the function, its arguments, the result, how many are left
    "left": (lambda a, b: a.mT @ b, (TALL, TALL), _turned(TALL) @ TALL, 0),
    "right": (lambda a, b: a @ b.mT, (TALL, TALL), TALL @ _turned(TALL), 0),
    "both": (lambda a, b: a.mT @ b.mT, (TALL, _drawn(2, 5, 3)), None, 0),
    "twice": (lambda a, b: a @ tp.matmul(b, a, transpose_b=True).mT, (SQUARE, SQUARE), None, 0),
    "other axes": (
        lambda a, b: a @ tp.permute_dims(b, (1, 2, 0)),
        (SQUARE, _drawn(4, 2, 4)),
        None,
        1,
    ),
    "needed elsewhere": (lambda a, b: (a @ b.mT, b.mT), (TALL, TALL), None, 1),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_take_transposed_matrices_as_they_are(name: str) -> None:
    function, arguments, wanted, left = PRODUCTS[name]
    tensors = [tp.asarray(each) for each in arguments]
    compiled = tp.compile(function)
    found, eager = (f(*tensors) for f in (compiled, function))
    wanted = eager if wanted is None else (wanted,)
    for own, other in zip(
        *(x if isinstance(x, tuple) else (x,) for x in (found, wanted)), strict=True
    ):
        np.testing.assert_allclose(own.numpy(), np.asarray(other), rtol=1e-5, atol=1e-5)
    kernels = [call.plan.spec.name for call in compiled.program(*tensors).calls]
    assert kernels.count("Transpose") == left


def test_equal_products_share_a_plan() -> None:
    def f(x: Any, weights: Any) -> Any:
        for w in weights:
            x = tp.sin(x @ w.T)
        return x

    x, weights = tp.ones((2, 3)), [tp.ones((3, 3))] * 3
    program = tp.compile(f).program(x, weights)
    products = [call.plan for call in program.calls if call.plan.spec.name == "BatchMatMul"]
    assert [plan.attributes["transpose_b"] for plan in products] == [True] * 3
    assert len(set(map(id, products))) == 1


@pytest.mark.parametrize("strides", [1, 2])
def test_windows_and_their_gradients(strides: int) -> None:
    """By differences of double precision along a direction."""
    x = tp.asarray(RNG.standard_normal((2, 3, 7, 8)))
    v, w = (tp.asarray(RNG.standard_normal(s)) for s in ((3, 2, 3, 4), (2, 2, 4, 2)))

    def loss(x: Any, v: Any, w: Any) -> Any:
        y = tp.nn.relu(_first(x, v, strides=strides, pad=((0, 0), (0, 0), (1, 2), (0, 1))))
        return tp.sum(_first(y, w, dilations=2) ** 2)

    compiled = tp.compile(tp.grad(loss, (0, 1, 2)))
    result = compiled(x, v, w)
    kernels = [call.plan for call in compiled.program(x, v, w).calls]
    formats = [plan.attributes["data_format"] for plan in kernels if "Conv" in plan.spec.name]
    assert formats == ["NHWC"] * 6
    arrays = [x.numpy(), v.numpy(), w.numpy()]
    for at, gradient in enumerate(result):
        direction = RNG.standard_normal(gradient.shape)
        ends = []
        for step in (1e-6, -1e-6):
            moved_by = [
                a + step * direction * (n == at) if n == at else a for n, a in enumerate(arrays)
            ]
            ends.append(float(loss(*map(tp.asarray, moved_by))))
        slope = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(np.vdot(gradient.numpy(), direction), slope, rtol=1e-5)


RESHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((2, 4, 5, 6), (2, 2, 2, 5, 6)),
    ((2, 4, 5, 6), (2, 4, 30)),
    ((2, 4, 5, 6), (8, 5, 6)),
    ((2, 4, 1, 1), (2, 4)),
    ((2, 4, 1, 3), (2, 1, 4, 3)),
    ((2, 2, 3, 5), (2, 6, 5)),
    ((1, 4, 5, 6), (4, 5, 6)),
    ((1, 1, 1), ()),
]


@pytest.mark.parametrize(("before", "after"), RESHAPES, ids=str)
def test_reshapes_of_axes_in_any_order(before: Any, after: Any) -> None:
    value = np.arange(np.prod(before)).reshape(before)
    for perm in itertools.permutations(range(len(before))):
        source = value.transpose(np.argsort(perm))
        split, order, merged, back = moved(source.shape, perm, after)
        result = source.reshape(split).transpose(order).reshape(merged).transpose(back)
        np.testing.assert_array_equal(result, value.reshape(after))


@pytest.mark.parametrize(
    ("before", "after"), [((2, 6, 5), (2, 3, 10)), ((4, 6), (6, 4)), ((0, 3), (3, 0))]
)
def test_other_reshapes_need_the_value_itself(before: Any, after: Any) -> None:
    assert moved(before, tuple(range(len(before))), after) is None


def test_a_constant_filter_may_change_in_place_afterwards() -> None:
    """What a kernel prepared of a captured tensor is what the program captured."""
    filter = tp.asarray(np.ones((3, 3, 16, 16), np.float32))
    x = tp.asarray(_drawn(1, 16, 16, 16))
    compiled = tp.compile(lambda x: tp.nn.conv2d(x, filter, pad="same"))
    before = [compiled(x).numpy().copy() for _ in range(2)][1]
    filter[...] = 2.0
    np.testing.assert_array_equal(compiled(x).numpy(), before)
