"""Bad calls of public functions: data of test_bad_input."""

from __future__ import annotations

import numpy as np

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError, TensorplugError

x = np.ones((3, 4), np.float32)
B = np.ones((3, 4), bool)
image = np.ones((1, 5, 5, 2), np.float32)
f = np.ones((3, 3, 2, 1), np.float32)
I = np.zeros((3,), np.int32)  # noqa: E741  # indices, beside x


def five(x):  # the result does not depend on it
    return 5


def constant(x):  # the result does not depend on it
    return tp.ones(())


CASES = {  # error: call, what the message says
    ArgumentError: [
        (lambda: tp.full(2.5, 1), "Fill(): attribute 'shape': shape must"),
        (lambda: tp.full(2, [1]), "attribute 'value': must be a number"),
        (lambda: tp.full(2, 300, dtype="int8"), "300 does not fit into in"),
        (lambda: tp.arange(0, 5, 0), "Range(): step must not be 0"),
        (lambda: tp.arange(float("nan")), "must be finite real numbers"),
        (lambda: tp.arange(0, float("inf")), "must be finite real numbers"),
        (lambda: tp.arange(2j), "must be finite real numbers"),
        (lambda: tp.arange("3"), "'stop': must be a number, got '3'"),
        (
            lambda: tp.asarray([1.0], copy=False),
            "asarray: obj must be copied, since a list has no memory that a tensor could share",
        ),
        (
            lambda: tp.asarray(tp.asarray(x), dtype="int8", copy=False),
            "asarray: obj, float32[3,4] on 'cpu', must be copied to become int8 on 'cpu'",
        ),
        (lambda: tp.add(tp.asarray(1, dtype="int8"), 300), "Add: input 'b': 30"),
        (lambda: tp.add(np.uint8(1), -1), "-1 does not fit into uint8"),
        (lambda: tp.reshape(x, "12"), "Reshape(x=float32[3,4]): attribute"),
        (lambda: tp.concat([]), "concat: xs must contain at least one"),
        (lambda: tp.concat(tp.asarray(x)), "concat: xs must be a list of"),
        (lambda: tp.concat(5), "concat: xs must be a list of tensors, got"),
        (lambda: tp.stack([]), "stack: xs must contain at least one"),
        (lambda: tp.sum(x, keepdims=1), "'keep_dims': must be True or False, go"),
        (lambda: tp.topk(x, -1), "attribute 'k': must be at least 0, got -1"),
        (lambda: tp.gather(x, [3]), "index 3 is out of range for axis 0"),
        (lambda: tp.gather(x, I, batch_dims=2), "batch_dims 2 is out of ran"),
        (lambda: tp.one_hot(I, -1), "'depth': must be at least 0, got -1"),
        (lambda: tp.nn.conv2d(image, f, 0), "'strides': must be a positive in"),
        (lambda: tp.nn.conv2d(image, f, pad="full"), "'pad': must be 'same', 'va"),
        (lambda: tp.nn.conv2d(image, f, data_format="HWC"), "must be one of 'N"),
        (
            lambda: tp.nn.conv2d(image, f, dim_rounding_mode="ceil"),
            "must be a number or pairs where dim_rounding_mode is",
        ),
        (lambda: tp.nn.max_pool(image, (1, 2, 3), 1), "'filter_size': must be"),
        (lambda: tp.grad(5), "grad: f must be a function, got int"),
        (lambda: tp.grad(five)(x), "must return a tensor, got int"),
        (lambda: tp.grad(tp.sum, 1)(x), "argnums 1 is out of range: the function got 1 arg"),
        (lambda: tp.grad(tp.square)(x, dy=x[0]), "dy is float32[4], but the res"),
        (lambda: tp.add_n(x), "add_n: xs must be a list of tensors"),
        (lambda: tp.add_n([]), "AddN(xs=[]): xs is empty"),
        (
            lambda: tp.clip(x, 2, 1),
            "'clip_value_max': must be at least clip_value_min (2.0), got 1.0",
        ),
        (lambda: tp.clip_by_value(x, np.nan, 1), "attribute 'clip_value_min': must not be NaN"),
        (lambda: tp.clip_by_value(x, "0", 1), "must be a real number, got '0'"),
    ],
    ShapeError: [
        (lambda: tp.zeros((2, -1)), "must not contain negative sizes, got (2"),
        (lambda: tp.full(2, tp.asarray([1])), "fill_value must be one number, got int32[1]"),
        (lambda: tp.where(B, x, x[:2]), "Select(condition=bool[3,4], t=float"),
        (lambda: tp.reshape(x, (5, 3)), "cannot reshape [3, 4] of 12 elements to"),
        (lambda: tp.reshape(x, (-1, -1)), "may contain one -1 but no other"),
        (lambda: tp.permute_dims(x, (0, 0)), "[0, 0] is not a permutation of 2 axe"),
        (lambda: tp.permute_dims(x, (0, 2)), "axis 2 is out of range for rank"),
        (lambda: tp.matrix_transpose([1]), "matrix_transpose: x must have at least rank"),
        (lambda: tp.squeeze(x, 0), "squeeze: axis 0 of float32[3,4] must have length"),
        (lambda: tp.squeeze(x[None], (0, 0)), "names an axis twice"),
        (lambda: tp.broadcast_to(x, (3, 5)), "BroadcastTo(x=float32[3,4]): shapes"),
        (lambda: tp.broadcast_to(x, (4,)), "does not broadcast to [4]"),
        (lambda: tp.slice(x, (0, 3), (3, 2)), "the slice of 2 from 3 exceeds axis 1"),
        (lambda: tp.slice(x, (-1, 0)), "from -1 exceeds axis 0 of length 3"),
        (lambda: tp.slice(x, (0, 0, 0)), "[0, 0, 0] has more entries than the ra"),
        (lambda: tp.slice(x, 0, (1, 1, 1)), "[1, 1, 1] has more entries than the"),
        (lambda: tp.pad(x, [(0, 0)]), "must be 2 (before, after) pairs, one per axis, got [("),
        (lambda: tp.pad(x, [(0, 0, 0), (0, 0)]), "must be (before, after) pairs, one per axis"),
        (lambda: tp.pad(x, [(-1, 0), (0, 0)]), "padding must not contain negative"),
        (lambda: tp.concat([x, x[:, :2]]), "got float32[3,4] and float32[3,2]"),
        (lambda: tp.concat([x, x[0]]), "got float32[3,4] and float32[4]"),
        (lambda: tp.concat([x, [[1], [1, 2]]]), "Concat: input 'xs': nested li"),
        (lambda: tp.stack([x, x[0]]), "must have the same shape"),
        (lambda: tp.max(x[:0]), "Max(x=float32[0,4]): the reduced axes must"),
        (lambda: tp.argmax(x[:0], axis=0), "ArgMax(x=float32[0,4]): the"),
        (lambda: tp.topk(x, 5), "TopK(x=float32[3,4]): k must be at most 4, the length"),
        (lambda: tp.topk(1.0), "x must have at least rank 1"),
        (lambda: tp.matmul(x, x), "the inner sizes 4 and 3 differ"),
        (lambda: tp.matmul(x, 1.0), "matmul: the operands must have at least rank 1, got float3"),
        (lambda: tp.matmul(np.ones((2, 3, 4)), np.ones((3, 4, 3))), "cannot be bro"),
        (lambda: tp.scatter_nd([[0]], [1.0, 2.0], (3,)), "updates must have s"),
        (lambda: tp.scatter_nd([[0, 0]], [1.0], (3,)), "indices of depth 2 do"),
        (lambda: tp.scatter_nd(0, 1.0, (3,)), "indices must have at least rank 1"),
        (lambda: tp.nn.conv2d(x, f), "Conv2D(x=float32[3,4], filter=float32[3,3,2"),
        (lambda: tp.nn.conv2d(image[..., :1], f), "x has 1 channels, but the f"),
        (lambda: tp.nn.conv2d(image[:, :2], f), "a window of 3 taps with dilatio"),
        (
            lambda: tp.nn.conv2d(image, f, pad=[(1, 0), (0, 0), (0, 0), (0, 0)]),
            "batch and channels cannot be padded",
        ),
        (
            lambda: tp.nn.conv2d(image, f[:0]),
            "a window must have at least one tap along each axis, got [0",
        ),
        (lambda: tp.nn.max_pool(x, 2, 2), "MaxPool(x=float32[3,4]): x must have r"),
        (lambda: tp.nn.max_pool(image, 6, 1), "a window of 6 taps with dilation 1"),
        (
            lambda: tp.losses.softmax_cross_entropy(x, x[:2]),
            "softmax_cross_entropy: labels and logits must have the same shape, got float32[3,4]",
        ),
        (lambda: tp.stop_gradient([[1], [1, 2]]), "must be rectangular"),
        (lambda: tp.add_n([x, x[0]]), "xs must have the same shape, got float3"),
    ],
    DTypeError: [
        (lambda: tp.full(2, 0.5, dtype="int8"), "0.5 is not an integer"),
        (lambda: tp.add(B, B), "Add(a=bool[3,4], b=bool[3,4]): input 'a' is"),
        (lambda: tp.less([1j], 1), "input 'a' is complex64[1], but its dtype"),
        (lambda: tp.logical_and([1], [2]), "is int32[1], but its dtype must be o"),
        (lambda: tp.where(I, x, x), "input 'condition' is int32[3], but its"),
        (lambda: tp.pad(I, [(1, 0)], 0.5), "PadV2(x=int32[3]): 0.5 is not an int"),
        (lambda: tp.gather(x, [0.5]), "input 'indices' is float32[1], but its"),
        (lambda: tp.one_hot([0.5], 3), "input 'indices' is float32[1], but"),
        (lambda: tp.one_hot(I, 2, 0.5, dtype="int8"), "0.5 is not an integer"),
        (lambda: tp.nn.conv2d(image.astype(int), f.astype(int)), "input 'x' is in"),
        (lambda: tp.grad(tp.sum)(I), "is int32[3]; only floating and"),
        (lambda: tp.clip(I, 0.5, 1), "clip: the bounds of int32[3] must be integers, got 0.5"),
        (
            lambda: tp.clip(I, max=np.array(1, np.float32)),
            "clip: max must be an integer, like x, int32[3], got float32[]",
        ),
        (
            lambda: tp.bitwise_and(x, 1),
            "input 'a' is float32[3,4], but its dtype must be one of bool, int16",
        ),
        (lambda: tp.atan2(x, 1j), "input 'a' is complex64[3,4]"),
    ],
    TensorplugError: [
        (lambda: tp.grad(constant)(x), "no differentiable"),
    ],
}
