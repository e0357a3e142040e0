"""Bad calls of reductions, indexing, products and gradients: data of test_bad_input."""

from __future__ import annotations

import numpy as np

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError, TensorplugError

x = np.ones((3, 4), np.float32)
image = np.ones((1, 5, 5, 2), np.float32)
f = np.ones((3, 3, 2, 1), np.float32)
I = np.zeros((3,), np.int32)  # noqa: E741  # indices, beside x


def five(x):  # the result does not depend on it
    return 5


def constant(x):  # the result does not depend on it
    return tp.ones(())


CASES = [  # id, call, error, what the message says
    (
        "max of nothing",
        lambda: tp.max(x[:0]),
        ShapeError,
        "Max(x=float32[0,4]): the reduced axes must",
    ),
    (
        "argmax of nothing",
        lambda: tp.argmax(x[:0], axis=0),
        ShapeError,
        "ArgMax(x=float32[0,4]): the",
    ),
    (
        "keepdims",
        lambda: tp.sum(x, keepdims=1),
        ArgumentError,
        "'keep_dims': must be True or False, go",
    ),
    (
        "topk",
        lambda: tp.topk(x, 5),
        ShapeError,
        "TopK(x=float32[3,4]): k must be at most 4, the length",
    ),
    (
        "topk negative",
        lambda: tp.topk(x, -1),
        ArgumentError,
        "attribute 'k': must be at least 0, got -1",
    ),
    ("topk of a number", lambda: tp.topk(1.0), ShapeError, "x must have at least rank 1"),
    ("matmul inner", lambda: tp.matmul(x, x), ShapeError, "the inner sizes 4 and 3 differ"),
    (
        "matmul number",
        lambda: tp.matmul(x, 1.0),
        ShapeError,
        "matmul: the operands must have at least rank 1, got float3",
    ),
    (
        "matmul batch",
        lambda: tp.matmul(np.ones((2, 3, 4)), np.ones((3, 4, 3))),
        ShapeError,
        "cannot be bro",
    ),
    (
        "gather floats",
        lambda: tp.gather(x, [0.5]),
        DTypeError,
        "input 'indices' is float32[1], but its",
    ),
    ("gather out", lambda: tp.gather(x, [3]), ArgumentError, "index 3 is out of range for axis 0"),
    (
        "gather batch",
        lambda: tp.gather(x, I, batch_dims=2),
        ArgumentError,
        "batch_dims 2 is out of ran",
    ),
    (
        "scatter shape",
        lambda: tp.scatter_nd([[0]], [1.0, 2.0], (3,)),
        ShapeError,
        "updates must have s",
    ),
    (
        "scatter depth",
        lambda: tp.scatter_nd([[0, 0]], [1.0], (3,)),
        ShapeError,
        "indices of depth 2 do",
    ),
    (
        "scatter rank",
        lambda: tp.scatter_nd(0, 1.0, (3,)),
        ShapeError,
        "indices must have at least rank 1",
    ),
    (
        "one hot floats",
        lambda: tp.one_hot([0.5], 3),
        DTypeError,
        "input 'indices' is float32[1], but",
    ),
    (
        "one hot depth",
        lambda: tp.one_hot(I, -1),
        ArgumentError,
        "'depth': must be at least 0, got -1",
    ),
    (
        "one hot value",
        lambda: tp.one_hot(I, 2, 0.5, dtype="int8"),
        DTypeError,
        "0.5 is not an integer",
    ),
    (
        "conv rank",
        lambda: tp.nn.conv2d(x, f),
        ShapeError,
        "Conv2D(x=float32[3,4], filter=float32[3,3,2",
    ),
    (
        "conv channels",
        lambda: tp.nn.conv2d(image[..., :1], f),
        ShapeError,
        "x has 1 channels, but the f",
    ),
    (
        "conv window",
        lambda: tp.nn.conv2d(image[:, :2], f),
        ShapeError,
        "a window of 3 taps with dilatio",
    ),
    (
        "conv ints",
        lambda: tp.nn.conv2d(image.astype(int), f.astype(int)),
        DTypeError,
        "input 'x' is in",
    ),
    (
        "conv stride",
        lambda: tp.nn.conv2d(image, f, 0),
        ArgumentError,
        "'strides': must be a positive in",
    ),
    (
        "conv pad",
        lambda: tp.nn.conv2d(image, f, pad="full"),
        ArgumentError,
        "'pad': must be 'same', 'va",
    ),
    (
        "conv batch pad",
        lambda: tp.nn.conv2d(image, f, pad=[(1, 0), (0, 0), (0, 0), (0, 0)]),
        ShapeError,
        "batch and channels cannot be padded",
    ),
    (
        "conv format",
        lambda: tp.nn.conv2d(image, f, data_format="HWC"),
        ArgumentError,
        "must be one of 'N",
    ),
    (
        "conv no taps",
        lambda: tp.nn.conv2d(image, f[:0]),
        ShapeError,
        "a window must have at least one tap along each axis, got [0",
    ),
    (
        "conv rounding",
        lambda: tp.nn.conv2d(image, f, dim_rounding_mode="ceil"),
        ArgumentError,
        "must be a number or pairs where dim_rounding_mode is",
    ),
    (
        "pool rank",
        lambda: tp.nn.max_pool(x, 2, 2),
        ShapeError,
        "MaxPool(x=float32[3,4]): x must have r",
    ),
    (
        "pool size",
        lambda: tp.nn.max_pool(image, 6, 1),
        ShapeError,
        "a window of 6 taps with dilation 1",
    ),
    (
        "pool filter",
        lambda: tp.nn.max_pool(image, (1, 2, 3), 1),
        ArgumentError,
        "'filter_size': must be",
    ),
    (
        "cross entropy",
        lambda: tp.losses.softmax_cross_entropy(x, x[:2]),
        ShapeError,
        "softmax_cross_entropy: labels and logits must have the same shape, got float32[3,4] and",
    ),
    ("stop_gradient", lambda: tp.stop_gradient([[1], [1, 2]]), ShapeError, "must be rectangular"),
    ("grad no function", lambda: tp.grad(5), ArgumentError, "grad: f must be a function, got int"),
    (
        "grad no tensor",
        lambda: tp.grad(five)(x),
        ArgumentError,
        "must return a tensor, got int",
    ),
    ("grad of ints", lambda: tp.grad(tp.sum)(I), DTypeError, "is int32[3]; only floating and"),
    (
        "grad argnums",
        lambda: tp.grad(tp.sum, 1)(x),
        ArgumentError,
        "argnums 1 is out of range: the function got 1 arg",
    ),
    (
        "grad dy",
        lambda: tp.grad(tp.square)(x, dy=x[0]),
        ArgumentError,
        "dy is float32[4], but the res",
    ),
    (
        "no path",
        lambda: tp.grad(constant)(x),
        TensorplugError,
        "no differentiable",
    ),
    ("add_n of one", lambda: tp.add_n(x), ArgumentError, "add_n: xs must be a list of tensors"),
    ("add_n of none", lambda: tp.add_n([]), ArgumentError, "AddN(xs=[]): xs is empty"),
    (
        "add_n shapes",
        lambda: tp.add_n([x, x[0]]),
        ShapeError,
        "xs must have the same shape, got float3",
    ),
    (
        "clip turned round",
        lambda: tp.clip(x, 2, 1),
        ArgumentError,
        "'clip_value_max': must be at least clip_value_min (2.0), got 1.0",
    ),
    (
        "clip integers by a fraction",
        lambda: tp.clip(I, 0.5, 1),
        DTypeError,
        "clip: the bounds of int32[3] must be integers, got 0.5",
    ),
    (
        "clip integers by floats",
        lambda: tp.clip(I, max=np.array(1, np.float32)),
        DTypeError,
        "clip: max must be an integer, like x, int32[3], got float32[]",
    ),
    (
        "clip by value NaN",
        lambda: tp.clip_by_value(x, np.nan, 1),
        ArgumentError,
        "attribute 'clip_value_min': must not be NaN",
    ),
    (
        "clip by value of text",
        lambda: tp.clip_by_value(x, "0", 1),
        ArgumentError,
        "must be a real number, got '0'",
    ),
    (
        "bits of floats",
        lambda: tp.bitwise_and(x, 1),
        DTypeError,
        "input 'a' is float32[3,4], but its dtype must be one of bool, int16",
    ),
    ("atan2 complex", lambda: tp.atan2(x, 1j), DTypeError, "input 'a' is complex64[3,4]"),
]
