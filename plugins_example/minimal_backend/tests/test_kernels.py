"""Kernels, primitive and decomposed, against formulas of NumPy and of the math module."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorplug as tp

PRIMITIVE, DECOMPOSED = "native", "decomposed"


def f32(*shape, low=-2.0, high=2.0):
    return np.random.default_rng(len(shape)).uniform(low, high, shape).astype(np.float32)


def i32(*values):
    return np.array(values, np.int32)


def softmax(x, axis):
    powers = np.exp(x.astype(float) - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def convolved(x, w, stride):
    """Sum over each window, without padding, as loops."""
    n, height, width, _ = x.shape
    rows, columns = (height - w.shape[0]) // stride + 1, (width - w.shape[1]) // stride + 1
    out = np.zeros((n, rows, columns, w.shape[3]))
    for i in range(rows):
        for j in range(columns):
            block = x[
                :, i * stride : i * stride + w.shape[0], j * stride : j * stride + w.shape[1]
            ]
            out[:, i, j] = np.tensordot(block.astype(float), w.astype(float), 3)
    return out


def transposed(linear, shape):
    """Apply the transpose of a linear map to DY; the images of the unit vectors define the map."""
    result = np.zeros(shape)
    for at in np.ndindex(shape):
        unit = np.zeros(shape)
        unit[at] = 1
        result[at] = np.sum(linear(unit) * DY)
    return result


def row(*values):
    """Return an image of one row and one channel."""
    return np.array(values, np.float32).reshape(1, 1, -1, 1)


A, B = f32(3, 4), f32(4)
POSITIVE = f32(5, low=0.1, high=9.0)
EDGES = np.array([-np.inf, -1.5, -0.0, 0.0, 2.5, np.inf, np.nan], np.float32)
WHOLE = i32(7, -7, 7, -7, 5, -(2**31))
DIVISORS = i32(2, 2, -2, -2, 0, -1)
IMAGE, FILTER, DY = f32(2, 5, 6, 3), f32(3, 2, 3, 4), f32(2, 2, 3, 4)
CUBE = f32(2, 3, 4)
LOGICAL = np.array([False, True, True])

# Name, how it runs, inputs, attributes, expected result in float64 (a tuple for multiple outputs).
CASES = [
    ("Neg", PRIMITIVE, [EDGES], {}, -EDGES),
    ("Abs", PRIMITIVE, [i32(-3, 0, -(2**31))], {}, i32(3, 0, -(2**31))),
    ("Floor", PRIMITIVE, [f32(7, high=9)], {}, np.floor(f32(7, high=9))),
    ("Floor", PRIMITIVE, [i32(-3, 2)], {}, i32(-3, 2)),
    ("Exp", PRIMITIVE, [f32(7)], {}, [math.exp(x) for x in f32(7)]),
    ("Log", PRIMITIVE, [POSITIVE], {}, [math.log(x) for x in POSITIVE]),
    ("Sqrt", PRIMITIVE, [POSITIVE], {}, [math.sqrt(x) for x in POSITIVE]),
    ("Sin", PRIMITIVE, [f32(7)], {}, [math.sin(x) for x in f32(7)]),
    ("Cos", PRIMITIVE, [f32(7)], {}, [math.cos(x) for x in f32(7)]),
    ("Atan", PRIMITIVE, [f32(7)], {}, [math.atan(x) for x in f32(7)]),
    ("Erf", PRIMITIVE, [f32(7)], {}, [math.erf(x) for x in f32(7)]),
    ("Erf", PRIMITIVE, [np.float32(0.5)], {}, math.erf(0.5)),
    ("Add", PRIMITIVE, [A, B], {}, A.astype(float) + B),
    ("Sub", PRIMITIVE, [A, B], {}, A.astype(float) - B),
    ("Multiply", PRIMITIVE, [i32(2**30, -3), i32(4, 5)], {}, i32(0, -15)),
    ("RealDiv", PRIMITIVE, [A, B], {}, A.astype(float) / B),
    ("FloorDiv", PRIMITIVE, [WHOLE, DIVISORS], {}, i32(3, -4, -4, 3, 0, -(2**31))),
    ("FloorDiv", PRIMITIVE, [EDGES[[0, 1, 5]], np.float32(2)], {}, [-math.inf, -1, math.inf]),
    ("Mod", PRIMITIVE, [WHOLE, DIVISORS], {}, i32(1, 1, -1, -1, 0, 0)),
    ("Pow", PRIMITIVE, [i32(2, -2, 1, -1, -1, 0), i32(5, 3, -2, -2, -3, -1)], {},
     i32(32, -8, 1, 1, -1, 0)),
    ("Pow", PRIMITIVE, [POSITIVE, np.float32(-1.5)], {}, POSITIVE.astype(float) ** -1.5),
    ("Maximum", PRIMITIVE, [EDGES, np.float32(1)], {}, [1, 1, 1, 1, 2.5, math.inf, math.nan]),
    ("Equal", PRIMITIVE, [EDGES, EDGES], {}, [True] * 6 + [False]),
    ("Less", PRIMITIVE, [EDGES, np.float32(0)], {}, [True, True, *[False] * 5]),
    ("LogicalAnd", PRIMITIVE, [LOGICAL[:, None], LOGICAL], {}, np.outer(LOGICAL, LOGICAL)),
    ("LogicalNot", PRIMITIVE, [LOGICAL], {}, [True, False, False]),
    ("Select", PRIMITIVE, [LOGICAL, i32(1, 2, 3), i32(9)], {}, i32(9, 2, 3)),
    ("Cast", PRIMITIVE, [np.array([2.9, -2.9, 2.0**31, -1e10, math.nan, math.inf])],
     {"dtype": "int32"}, i32(2, -2, -(2**31), 2 * 2**32 - 10**10, 0, 0)),
    ("Cast", PRIMITIVE, [np.array([-1.0, 255.5, 2.0**63])], {"dtype": "uint64"},
     np.array([2**64 - 1, 255, 2**63], np.uint64)),
    ("Cast", PRIMITIVE, [EDGES], {"dtype": "bool"}, [True, True, False, False, True, True, True]),
    ("Fill", PRIMITIVE, [], {"shape": (2,), "value": 7, "dtype": "int32"}, i32(7, 7)),
    ("Range", PRIMITIVE, [], {"start": 1, "stop": 2.1, "step": 0.25}, [1, 1.25, 1.5, 1.75, 2]),
    ("Range", PRIMITIVE, [], {"start": 5, "stop": -4, "step": -3, "dtype": "int32"},
     i32(5, 2, -1)),
    ("Identity", PRIMITIVE, [A], {}, A),
    ("Reshape", PRIMITIVE, [A], {"shape": (2, -1)}, np.reshape(A, (2, 6))),
    ("Transpose", PRIMITIVE, [CUBE], {"perm": (2, 0, 1)}, np.moveaxis(CUBE, 2, 0)),
    ("BroadcastTo", PRIMITIVE, [B], {"shape": (3, 4)}, np.ones((3, 1)) * B),
    ("Slice", PRIMITIVE, [A], {"begin": (1, 1), "size": (-1, 2)}, A[1:, 1:3]),
    ("Slice", PRIMITIVE, [np.float32(3)], {"begin": (), "size": ()}, 3.0),
    ("PadV2", PRIMITIVE, [i32(1, 2)], {"paddings": ((1, 2),), "constant_value": 9},
     i32(9, 1, 2, 9, 9)),
    ("PadV2", PRIMITIVE, [np.float32(3)], {"paddings": ()}, 3.0),
    ("Concat", PRIMITIVE, [[A, A[:, :1]]], {"axis": 1}, np.hstack([A, A[:, :1]])),
    ("GatherV2", PRIMITIVE, [CUBE, i32(2, -1, 0)], {"axis": 1}, CUBE[:, [2, 2, 0]]),
    ("GatherV2", PRIMITIVE, [CUBE, np.array([[3, 0], [1, -1]], np.int32)],
     {"axis": 2, "batch_dims": 1}, np.stack([CUBE[0][:, [3, 0]], CUBE[1][:, [1, 3]]])),
    ("ScatterNd", PRIMITIVE, [i32(2, 0, 2)[:, None], i32(5, 6, 7)], {"shape": (4,)},
     i32(6, 0, 12, 0)),
    ("ScatterNd", PRIMITIVE, [i32([-1, -3], [0, 1]), i32(5, 6)], {"shape": (2, 3)},
     i32([0, 6, 0], [5, 0, 0])),
    ("Sum", PRIMITIVE, [CUBE], {"axis": (0, 2)}, CUBE.astype(float).sum((0, 2))),
    ("Sum", PRIMITIVE, [LOGICAL], {}, np.int32(2)),
    ("Prod", PRIMITIVE, [CUBE], {"axis": 1, "keep_dims": True},
     CUBE.astype(float).prod(1, keepdims=True)),
    ("Max", PRIMITIVE, [CUBE], {"reduction_indices": (0, 1)}, CUBE.max((0, 1))),
    ("Max", PRIMITIVE, [np.zeros((0, 3), np.float32)], {"reduction_indices": 1}, np.zeros(0)),
    ("ArgMax", PRIMITIVE, [i32(3, 8, 8)], {"axis": 0}, np.int32(1)),
    ("BatchMatMul", PRIMITIVE, [CUBE, CUBE], {"transpose_b": True},
     np.einsum("bik,bjk->bij", CUBE.astype(float), CUBE)),
    ("TopK", PRIMITIVE, [i32(4, 9, 9, 1)], {"k": 3}, (i32(9, 9, 4), i32(1, 2, 0))),
    ("Relu", DECOMPOSED, [EDGES], {}, [0, 0, 0, 0, 2.5, math.inf, math.nan]),
    ("Sigmoid", DECOMPOSED, [f32(7)], {}, [1 / (1 + math.exp(-x)) for x in f32(7)]),
    ("Sigmoid", DECOMPOSED, [np.array([-90.0, 90.0])], {}, [math.exp(-90), 1]),
    ("Softmax", DECOMPOSED, [CUBE], {"dim": 1}, softmax(CUBE, 1)),
    ("LogSoftmax", DECOMPOSED, [CUBE], {}, np.log(softmax(CUBE, 2))),
    ("NotEqual", DECOMPOSED, [EDGES, EDGES], {}, [False] * 6 + [True]),
    ("LessEqual", DECOMPOSED, [EDGES, np.float32(0)], {}, [True] * 4 + [False] * 3),
    ("Greater", DECOMPOSED, [EDGES, np.float32(0)], {}, [False] * 4 + [True, True, False]),
    ("GreaterEqual", DECOMPOSED, [EDGES, np.float32(0)], {}, [False] * 2 + [True] * 4 + [False]),
    ("LogicalOr", DECOMPOSED, [LOGICAL, ~LOGICAL], {}, [True] * 3),
    ("ZerosLike", DECOMPOSED, [EDGES], {}, np.zeros(7)),
    ("OnesLike", DECOMPOSED, [WHOLE], {}, i32(1, 1, 1, 1, 1, 1)),
    ("Tanh", DECOMPOSED, [f32(7)], {}, [math.tanh(x) for x in f32(7)]),
    ("Tanh", DECOMPOSED, [f32(7) / 4], {}, [math.tanh(x) for x in f32(7) / 4]),
    ("Square", DECOMPOSED, [A], {}, A.astype(float) ** 2),
    ("Minimum", DECOMPOSED, [i32(-(2**31), 5), i32(0, 7)], {}, i32(-(2**31), 5)),
    ("SquaredDifference", DECOMPOSED, [A, B], {}, (A.astype(float) - B) ** 2),
    ("OneHot", DECOMPOSED, [i32(2, 0, 5)], {"depth": 3}, np.eye(3)[[2, 0, 1]] * [[1], [1], [0]]),
    ("Mean", DECOMPOSED, [CUBE], {"axis": (0, 2)}, CUBE.astype(float).mean((0, 2))),
    ("Min", DECOMPOSED, [WHOLE], {}, np.int32(-(2**31))),
    ("Any", DECOMPOSED, [LOGICAL], {}, True),
    ("All", DECOMPOSED, [LOGICAL], {}, False),
    ("Conv2D", DECOMPOSED, [IMAGE, FILTER], {"strides": 2, "pad": "valid"},
     convolved(IMAGE, FILTER, 2)),
    ("MaxPool", DECOMPOSED, [IMAGE], {"filter_size": 2, "strides": 2, "pad": "valid"},
     IMAGE[:, :4].reshape(2, 2, 2, 3, 2, 3).max((2, 4))),
    ("Conv2DBackpropFilter", DECOMPOSED, [IMAGE, DY],
     {"strides": 2, "pad": "valid", "filter_shape": FILTER.shape},
     transposed(lambda w: convolved(IMAGE, w, 2), FILTER.shape)),
    ("Conv2DBackpropInput", DECOMPOSED, [DY, FILTER],
     {"strides": 2, "pad": "valid", "input_shape": IMAGE.shape},
     transposed(lambda x: convolved(x, FILTER, 2), IMAGE.shape)),
    ("MaxPoolGrad", DECOMPOSED, [row(2, 3), row(1, 5, 7, 7), row(5, 7)],
     {"filter_size": (1, 2), "strides": 2, "pad": "valid"}, row(0, 2, 3, 0)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "how", "inputs", "attributes", "expected"),
    CASES,
    ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)],
)
def test_kernel_against_formula(name, how, inputs, attributes, expected):
    explained = tp.explain(name, inputs, attributes)
    assert explained.how == how, explained
    found = tp.run_kernel(name, inputs, attributes)
    multiple = isinstance(expected, tuple)
    for tensor, reference in zip(
        found if multiple else [found], expected if multiple else [expected], strict=True
    ):
        wide = np.asarray(reference)
        actual = tensor.numpy()
        assert tensor.shape == actual.shape == wide.shape
        assert actual.dtype == expected_dtype(inputs, wide)
        if actual.dtype.kind == "f":
            tolerance = 16 * np.finfo(actual.dtype).eps  # a sum of a few terms of size 1
            np.testing.assert_allclose(actual, wide, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(actual, wide)


def expected_dtype(inputs, wide):
    """Return the dtype of a result; the expected values are in float64, the inputs may not be."""
    if wide.dtype.kind != "f":
        return wide.dtype
    lists = [operand if isinstance(operand, list) else [operand] for operand in inputs]
    arrays = [array for arrays in lists for array in arrays]
    floats = (array.dtype for array in arrays if array.dtype.kind == "f")
    return next(floats, np.dtype(np.float32))
