"""Bad calls of creation, arithmetic and movement: data of test_bad_input."""

from __future__ import annotations

import numpy as np

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

x = np.ones((3, 4), np.float32)
B = np.ones((3, 4), bool)
I = np.zeros((3,), np.int32)  # noqa: E741  # indices, beside x


CASES = [  # id, call, error, what the message says
    (
        "full shape",
        lambda: tp.full(2.5, 1),
        ArgumentError,
        "Fill(): attribute 'shape': shape must",
    ),
    (
        "full negative",
        lambda: tp.zeros((2, -1)),
        ShapeError,
        "must not contain negative sizes, got (2",
    ),
    ("full value", lambda: tp.full(2, [1]), ArgumentError, "attribute 'value': must be a number"),
    (
        "full tensor",
        lambda: tp.full(2, tp.asarray([1])),
        ShapeError,
        "fill_value must be one number, got int32[1]",
    ),
    (
        "full range",
        lambda: tp.full(2, 300, dtype="int8"),
        ArgumentError,
        "300 does not fit into in",
    ),
    ("full fraction", lambda: tp.full(2, 0.5, dtype="int8"), DTypeError, "0.5 is not an integer"),
    ("arange step", lambda: tp.arange(0, 5, 0), ArgumentError, "Range(): step must not be 0"),
    ("arange nan", lambda: tp.arange(float("nan")), ArgumentError, "must be finite real numbers"),
    (
        "arange inf",
        lambda: tp.arange(0, float("inf")),
        ArgumentError,
        "must be finite real numbers",
    ),
    ("arange complex", lambda: tp.arange(2j), ArgumentError, "must be finite real numbers"),
    ("arange text", lambda: tp.arange("3"), ArgumentError, "'stop': must be a number, got '3'"),
    (
        "asarray copy",
        lambda: tp.asarray([1.0], copy=False),
        ArgumentError,
        "asarray: obj must be copied, since a list has no memory that a tensor could share",
    ),
    (
        "asarray cast",
        lambda: tp.asarray(tp.asarray(x), dtype="int8", copy=False),
        ArgumentError,
        "asarray: obj, float32[3,4] on 'cpu', must be copied to become int8 on 'cpu'",
    ),
    ("add bools", lambda: tp.add(B, B), DTypeError, "Add(a=bool[3,4], b=bool[3,4]): input 'a' is"),
    (
        "less complex",
        lambda: tp.less([1j], 1),
        DTypeError,
        "input 'a' is complex64[1], but its dtype",
    ),
    (
        "and ints",
        lambda: tp.logical_and([1], [2]),
        DTypeError,
        "is int32[1], but its dtype must be o",
    ),
    (
        "where ints",
        lambda: tp.where(I, x, x),
        DTypeError,
        "input 'condition' is int32[3], but its",
    ),
    (
        "where shapes",
        lambda: tp.where(B, x, x[:2]),
        ShapeError,
        "Select(condition=bool[3,4], t=float",
    ),
    (
        "weak int",
        lambda: tp.add(tp.asarray(1, dtype="int8"), 300),
        ArgumentError,
        "Add: input 'b': 30",
    ),
    (
        "weak unsigned",
        lambda: tp.add(np.uint8(1), -1),
        ArgumentError,
        "-1 does not fit into uint8",
    ),
    (
        "reshape",
        lambda: tp.reshape(x, (5, 3)),
        ShapeError,
        "cannot reshape [3, 4] of 12 elements to",
    ),
    ("reshape -1", lambda: tp.reshape(x, (-1, -1)), ShapeError, "may contain one -1 but no other"),
    (
        "reshape text",
        lambda: tp.reshape(x, "12"),
        ArgumentError,
        "Reshape(x=float32[3,4]): attribute",
    ),
    (
        "permute",
        lambda: tp.permute_dims(x, (0, 0)),
        ShapeError,
        "[0, 0] is not a permutation of 2 axe",
    ),
    (
        "permute range",
        lambda: tp.permute_dims(x, (0, 2)),
        ShapeError,
        "axis 2 is out of range for rank",
    ),
    (
        "transpose",
        lambda: tp.matrix_transpose([1]),
        ShapeError,
        "matrix_transpose: x must have at least rank",
    ),
    (
        "squeeze",
        lambda: tp.squeeze(x, 0),
        ShapeError,
        "squeeze: axis 0 of float32[3,4] must have length",
    ),
    ("squeeze twice", lambda: tp.squeeze(x[None], (0, 0)), ShapeError, "names an axis twice"),
    (
        "broadcast",
        lambda: tp.broadcast_to(x, (3, 5)),
        ShapeError,
        "BroadcastTo(x=float32[3,4]): shapes",
    ),
    ("broadcast rank", lambda: tp.broadcast_to(x, (4,)), ShapeError, "does not broadcast to [4]"),
    (
        "slice out",
        lambda: tp.slice(x, (0, 3), (3, 2)),
        ShapeError,
        "the slice of 2 from 3 exceeds axis 1",
    ),
    (
        "slice before",
        lambda: tp.slice(x, (-1, 0)),
        ShapeError,
        "from -1 exceeds axis 0 of length 3",
    ),
    (
        "slice rank",
        lambda: tp.slice(x, (0, 0, 0)),
        ShapeError,
        "[0, 0, 0] has more entries than the ra",
    ),
    (
        "slice sizes",
        lambda: tp.slice(x, 0, (1, 1, 1)),
        ShapeError,
        "[1, 1, 1] has more entries than the",
    ),
    (
        "pad pairs",
        lambda: tp.pad(x, [(0, 0)]),
        ShapeError,
        "must be 2 (before, after) pairs, one per axis, got [(",
    ),
    (
        "pad triple",
        lambda: tp.pad(x, [(0, 0, 0), (0, 0)]),
        ShapeError,
        "must be (before, after) pairs, one per axis",
    ),
    (
        "pad negative",
        lambda: tp.pad(x, [(-1, 0), (0, 0)]),
        ShapeError,
        "padding must not contain negative",
    ),
    (
        "pad value",
        lambda: tp.pad(I, [(1, 0)], 0.5),
        DTypeError,
        "PadV2(x=int32[3]): 0.5 is not an int",
    ),
    (
        "concat nothing",
        lambda: tp.concat([]),
        ArgumentError,
        "concat: xs must contain at least one",
    ),
    (
        "concat tensor",
        lambda: tp.concat(tp.asarray(x)),
        ArgumentError,
        "concat: xs must be a list of",
    ),
    (
        "concat number",
        lambda: tp.concat(5),
        ArgumentError,
        "concat: xs must be a list of tensors, got",
    ),
    (
        "concat shapes",
        lambda: tp.concat([x, x[:, :2]]),
        ShapeError,
        "got float32[3,4] and float32[3,2]",
    ),
    (
        "concat ranks",
        lambda: tp.concat([x, x[0]]),
        ShapeError,
        "got float32[3,4] and float32[4]",
    ),
    (
        "concat ragged",
        lambda: tp.concat([x, [[1], [1, 2]]]),
        ShapeError,
        "Concat: input 'xs': nested li",
    ),
    ("stack nothing", lambda: tp.stack([]), ArgumentError, "stack: xs must contain at least one"),
    ("stack shapes", lambda: tp.stack([x, x[0]]), ShapeError, "must have the same shape"),
]
