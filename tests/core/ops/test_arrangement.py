"""Tiles, mirrors, parts and blocks: public ops against NumPy, copies, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.engines import same
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import ArgumentError, CopyNeededError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
WORDS = np.array(["one", "two", "three"], np.dtypes.StringDType())


def gathered(x, places, axis):
    """Return elements picked along an axis by plain lists."""
    return np.stack([np.take(x, place, axis) for place in places], axis)


PUBLIC = {
    "expand twice": (lambda x: tp.expand_dims(x, (0, -1)), X[None, ..., None]),
    "expand out of order": (lambda x: tp.expand_dims(x, axis=(3, 1)), X[:, None, :, None]),
    "expand by nothing": (lambda x: tp.expand_dims(x, ()), X),
    "moveaxis two": (lambda x: tp.moveaxis(x, (0, 2), (2, 0)), X.transpose(2, 1, 0)),
    "reshape a list": (lambda x: x.reshape([4, -1]), X.reshape(4, 6)),
    "tile more": (lambda x: x.tile((2, 1, 1, 2)), np.tile(X, (2, 1, 1, 2))),
    "flip": (tp.flip, gathered(gathered(gathered(X, [1, 0], 0), [2, 1, 0], 1), [3, 2, 1, 0], 2)),
    "roll two": (lambda x: tp.roll(x, (1, 2), axis=(0, 2)), np.roll(X, (1, 2), (0, 2))),
    "roll one for all": (lambda x: tp.roll(x, 1, axis=(0, 1)), np.roll(X, 1, (0, 1))),
    "roll twice": (lambda x: tp.roll(x, (1, 2), axis=(2, -1)), gathered(X, [1, 2, 3, 0], 2)),
    "roll not at all": (lambda x: tp.roll(x, 3, axis=1), X),
    "repeat by one": (lambda x: tp.repeat(x, tp.asarray([2]), axis=0), np.repeat(X, 2, 0)),
    "repeat by a tensor": (
        lambda x: tp.repeat(x, tp.asarray([1, 2], dtype="uint64"), axis=0),
        gathered(X, [0, 1, 1], 0),
    ),
    "concat flat": (lambda x: tp.concat([x, x[0]], axis=None), np.append(X.ravel(), X[0])),
    "concat promotes": (
        lambda x: tp.concat([tp.asarray([1], dtype="int8"), x[0, 0]]),
        np.array([1, 0, 1, 2, 3], np.float32),
    ),
    "stack promotes": (
        lambda _: tp.stack([[1, 2], [True, False]]),
        np.array([[1, 2], [1, 0]], "i4"),
    ),
    "mirror symmetric": (
        lambda x: x.mirror_pad([(0, 0), (3, 1), (0, 0)], "symmetric"),
        gathered(X, [2, 1, 0, 0, 1, 2, 2], 1),
    ),
    "words padded": (lambda _: tp.pad(WORDS, [(1, 0)]), np.array(["", *WORDS], WORDS.dtype)),
    "words rolled": (lambda _: tp.roll(WORDS, 1), WORDS[[2, 0, 1]]),
    "words repeated": (lambda _: tp.repeat(WORDS, [0, 2, 1]), WORDS[[1, 1, 2]]),
}


@pytest.mark.parametrize("what", PUBLIC)
def test_public_ops(what):
    call, expected = PUBLIC[what]
    same(call(tp.asarray(X)), expected)


def test_parts():
    x = tp.asarray(X)
    for part, expected in zip(tp.unstack(x, axis=1), (X[:, i] for i in range(3)), strict=True):
        same(part, expected)
    assert isinstance(tp.unstack(x), tuple)
    for part, expected in zip(x.split([1, -1], axis=2), (X[..., :1], X[..., 1:]), strict=True):
        same(part, expected)
    assert [part.shape for part in tp.split(x, 3, 1)] == [(2, 1, 4)] * 3
    assert tp.unstack(tp.zeros((0, 2))) == ()


# Kernels by name: what TensorFlow.js leaves out ------------------------------------------------


KERNELS = {
    "Slice": ({"x": X}, {"begin": 1, "size": -1}, X[1:]),
    "Slice to the end": ({"x": X}, {"begin": [0, 1], "size": [1, -1]}, X[:1, 1:]),
    "BroadcastTo": ({"x": X[:1]}, {"shape": [2, 3, 4], "input_shape": [1, 3, 4]}, X[[0, 0]]),
    "Fill": ({}, {"shape": [2], "value": "a"}, np.array(["a", "a"], WORDS.dtype)),
    "Range": ({}, {"start": 5, "stop": 2}, np.array([5, 4, 3], "f4")),  # step is 1, so it is -1
    "LinSpace": ({}, {"start": 0, "stop": 1, "num": 3}, np.array([0, 0.5, 1], "f4")),
    "MatrixBandPart": (
        {"input": np.ones((3, 3), "f4"), "num_lower": 0, "num_upper": -1},
        {},
        np.array([[1, 1, 1], [0, 1, 1], [0, 0, 1]], "f4"),
    ),
}


@pytest.mark.parametrize("what", KERNELS)
def test_kernels_by_name(what):
    inputs, attributes, expected = KERNELS[what]
    same(tp.run_kernel(what.split()[0], inputs, attributes), expected)


def test_masks():
    y = np.arange(120).reshape(2, 3, 4, 5)
    part = tp.strided_slice(
        y,
        [0, 7, 9, 3],
        [1, 7, 9, 1],
        [1, 1, 1, -2],
        begin_mask=1,
        end_mask=9,
        ellipsis_mask=4,
        new_axis_mask=2,
    )
    same(part, y[:, None, ..., 3::-2])


# Copies and views ----------------------------------------------------------------------------


def memory(x):
    return x._live().backend.allocation(x._buffer)[0]


def test_views_share_memory():
    x = tp.asarray(X)
    for view in (tp.flip(x), tp.strided_slice(x, [0], [2], [1]), *tp.unstack(x), *tp.split(x, 2),
                 tp.expand_dims(x), tp.reshape(x, (6, 4), copy=False)):  # fmt: skip
        assert memory(view) == memory(x)


def test_reshape_and_copy():
    x = tp.asarray(X)
    copied = tp.reshape(x, (6, 4), copy=True)
    assert memory(copied) != memory(x)
    same(copied, X.reshape(6, 4))
    turned = tp.permute_dims(x)
    same(tp.reshape(turned, (24,), copy=True), X.T.reshape(24))
    with pytest.raises(CopyNeededError, match=r"reshape: .* must be copied"):
        tp.reshape(turned, (24,), copy=False)
    slope = tp.grad(lambda x: tp.sum(tp.reshape(x, (24,), copy=True) * np.arange(24, dtype="f4")))
    same(slope(x), X)


# Gradients where the size depends on data ------------------------------------------------------


def test_gradient_of_repeat():
    x = tp.asarray([1.0, 2.0, 3.0])
    weights = tp.asarray([1.0, 10.0, 100.0, 1000.0])
    slope = tp.grad(lambda x: tp.sum(tp.repeat(x, [2, 0, 2]) * weights))
    same(slope(x), np.array([11, 0, 1100], np.float32))
    slope = tp.grad(lambda x: tp.sum(tp.roll(tp.repeat(x, 2), 1)[:3] ** 2))
    same(slope(x), np.array([4, 0, 6], np.float32))


BAD = {  # error: call, what the message says
    ShapeError: [
        (lambda: tp.tile(X, (1, -1, 1)), "Tile(x=float32[2,3,4]): reps must not"),
        (lambda: tp.flip(X, axis=3), "'dims': axis 3 is out of range for rank 3"),
        (lambda: tp.repeat(X, [1, 2], axis=1), "repeats must have 1 or 3 elements"),
        (
            lambda: tp.mirror_pad(X, [(2, 0), (0, 0), (0, 0)], "reflect"),
            "padding [2, 0] is too large for axis 0 of length 2: mode 'reflect' allows at most 1",
        ),
        (lambda: tp.moveaxis(X, (0, 1), 2), "source has 2 axes, but destination has 1"),
        (lambda: tp.moveaxis(X, (0, 0), (1, 2)), "names an axis twice"),
        (lambda: tp.expand_dims(X, (0, 0)), "names an axis twice"),
        (lambda: tp.split(X, 5, 1), "3 elements cannot be split into 5 equal"),
        (
            lambda: tp.split(X, [1, 1], 1),
            "sizes [1, 1] do not make up the 3 elements of the axis (the list holds the sizes of",
        ),
        (lambda: tp.split(X, [-1, -1], 1), "may hold one -1"),
        (lambda: tp.strided_slice(X[0, 0], [0, 0], [1, 1]), "2 entries of begin"),
        (
            lambda: tp.strided_slice(X, [2], [3], shrink_axis_mask=1),
            "index 2 is out of range for axis 0 of length 2",
        ),
        (lambda: tp.depth_to_space(X[None], 3), "4 channels are not a multiple of 9"),
        (lambda: tp.depth_to_space(X, 2), "x must have rank 4, got 3"),
        (
            lambda: tp.batch_to_space_nd(X, [3], [(0, 0)]),
            "the batch size 2 is not a multiple of 3",
        ),
        (
            lambda: tp.space_to_batch_nd(X, [2], [(0, 0)]),
            "axis 1 of length 3, padded by [0, 0], is not a multiple of 2",
        ),
        (lambda: tp.tril(X[0, 0]), "x must have at least rank 2"),
        (
            lambda: tp.run_kernel(
                "BroadcastTo", {"x": X}, {"shape": [2, 3, 4], "input_shape": [1]}
            ),
            "'input_shape': must be the shape of x, [2, 3, 4], got [1]",
        ),
    ],
    ArgumentError: [
        (lambda: tp.roll(X, (1, 2)), "roll of float32[2,3,4]: axis must name 2 axes"),
        (lambda: tp.roll(X, (1, 2), axis=(0, 1, 2)), "shift has 2 entries, but axis has 3"),
        (lambda: tp.repeat(X, -1), "repeats must not be negative, got -1"),
        (lambda: tp.repeat(X, [1, -2], axis=0), "negative, got -2"),
        (lambda: tp.repeat(X, "2"), "repeats must be an integer"),
        (lambda: tp.mirror_pad(X, [(0, 0)] * 3, "wrap"), "one of 'reflect', 'sym"),
        (lambda: tp.strided_slice(X, [0], [1], [0]), "must not hold 0"),
        (
            lambda: tp.strided_slice(X, [0, 0], [1, 1], ellipsis_mask=3),
            "can have only one bit, for one ellipsis, got 0b11",
        ),
        (
            lambda: tp.depth_to_space(X[None], 2, "HWCN"),
            "must be one of 'NHWC', 'NCHW', got 'HWCN'",
        ),
    ],
    DTypeError: [
        (lambda: tp.repeat(X, [1.5]), "repeats must be integers"),
        (lambda: tp.pad(X[0, 0], [(1, 1)], "a"), "'a' cannot become floa"),
        (lambda: tp.pad(WORDS, [(1, 1)], 1), "1 cannot become string"),
    ],
}


test_refused = refused(BAD)
